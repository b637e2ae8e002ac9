#!/usr/bin/env python3
"""torch_tests.py BUILD: the tests of pccl.torch with the library of BUILD.

TORCH_PYTHON (environment) names an interpreter that has torch and pytest;
default: this one. Exits 77, with a word, where it has not. torch is too large
to be fetched for a test."""
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[3]
PROBE = """
import importlib.util
missing = [name for name in ("torch", "pytest", "numpy")
           if not importlib.util.find_spec(name)]
if missing:
    print("no " + " and no ".join(missing))
else:
    import torch.distributed
    if not torch.distributed.is_available():
        print("torch without torch.distributed")
    elif not hasattr(torch, "__version__") or \\
            tuple(map(int, torch.__version__.split(".")[:2])) < (2, 4):
        print("torch " + torch.__version__ + " is older than 2.4")
"""


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    python = os.environ.get("TORCH_PYTHON", sys.executable)
    package = build / "python"
    if not list(package.glob("pccl/_native.*.so")):
        print("skipped: this build has no Python package (python3-dev)")
        sys.exit(77)
    environment = dict(os.environ, PYTHONPATH=str(package),
                       OMP_NUM_THREADS="1")
    try:
        probe = subprocess.run([python, "-c", PROBE], text=True,
                               capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"{python} does not run: {error}")
    if probe.stdout:
        print(f"skipped: {python} has {probe.stdout.strip()}; set TORCH_PYTHON")
        sys.exit(77)
    sys.exit(subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider",
         SOURCE / "python" / "tests" / "torch_backend"],
        env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
