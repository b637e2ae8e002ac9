"""The examples run, and each is run by a test."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pccl
from conftest import EXAMPLES, PATIENCE, launcher

pytest.importorskip("numpy")

# What runs elsewhere: test_names.py, torch_backend/test_torch_examples.py.
OTHERS = {"train.py", "torch_train.py"}

# Without matplotlib everything but the picture.
WHOLE = """
import importlib.util, pathlib, sys
import {name}
place = pathlib.Path(sys.argv[1])
outcome = {name}.train(place)
if importlib.util.find_spec("matplotlib"):
    {name}.draw_picture({order}, str(place / "picture.svg"))
    assert (place / "picture.svg").stat().st_size > 10000
"""


def run(place: Path, name: str, order: str) -> list[list[list[float]]]:
    """The example's logs: the lines of each member."""
    path = f"{Path(launcher()).parent}:{os.environ['PATH']}"
    modules = f"{EXAMPLES}:{Path(pccl.__file__).parents[1]}"
    done = subprocess.run(
        [sys.executable, "-B", "-c", WHOLE.format(name=name, order=order),
         str(place)], capture_output=True, text=True, timeout=PATIENCE,
        env={**os.environ, "PATH": path, "PYTHONPATH": modules})
    assert done.returncode == 0, done.stderr
    return [[json.loads(line) for line in log.read_text().splitlines()
             if line.endswith("]")] for log in place.glob("*.log")]


def test_kill_and_join(tmp_path: Path) -> None:
    steps = 450
    logs = run(tmp_path, "kill_and_join", "place, *outcome")
    lines = max(logs, key=len)
    assert [line[1] for line in lines] == list(range(1, steps + 1))
    members = {line[3] for line in lines}
    assert lines[0][3] == 4 and 3 in members
    # On a busy machine the newcomer may come too late.
    assert len(logs) in (4, 5) and members == {3, 4}
    assert sum(log[-1][1] < steps for log in logs) == 1
    assert lines[-1][2] < lines[0][2]


def test_partial(tmp_path: Path) -> None:
    logs = run(tmp_path, "partial", "*outcome")
    assert len(logs) == 4
    assert max(log[-1][1] for log in logs) == 150
    shortest = min(logs, key=lambda log: log[-1][1])
    assert 0 < shortest[-1][1] < 150  # the one that was killed


def test_every_example_has_a_test() -> None:
    tested = {f"{name[5:]}.py" for name in globals() if name[:5] == "test_"}
    there = {path.name for path in EXAMPLES.glob("*.py")}
    assert there <= tested | OTHERS, there
