# test_torch_examples.py - the example with torch, as a user runs it.
import os
import re
import subprocess
import sys
from pathlib import Path

import torch_ranks

import pccl

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "torch_train.py"


def test_torch_train():
    done = subprocess.run(
        [torch_ranks.program(), "-n", "3", "--elastic", sys.executable,
         str(EXAMPLE), "60"], capture_output=True, text=True,
        timeout=torch_ranks.LIMIT, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(pccl.__file__).parents[1])})
    assert done.returncode == 0, done.stderr
    assert sorted(re.findall(r"step 1: rank (\d) of 3", done.stdout)) == \
        ["0", "1", "2"]
    assert re.search(r"^60 steps, error [\d.]+$", done.stdout, re.M)
