#!/usr/bin/env python3
"""package.py STEP BUILD: the Python package in environments of its own.

    environment  makes BUILD/python/environment with what the tests need
    wheel        builds the wheel of the tree BUILD, installs it into an empty
                 environment and runs a job there
    unit         pytest of python/tests with the wheel
    upstream     PCCL 1.0's own tests, from a checkout that PCCL_UPSTREAM_DIR
                 names, with the wheel in the place of its package

Exits 77, with a word, where packages cannot be had."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

NEEDED = ["scikit-build-core>=0.10", "pytest", "numpy", "ml_dtypes", "mypy",
          "safetensors"]
WHEEL_MOST = 5_000_000
PATIENCE = 1800
SOURCE = pathlib.Path(__file__).resolve().parents[3]

# Of a wheel: what has to be there.
CONTENTS = [
    r"pccl/__init__\.py", r"pccl/py\.typed", r"pccl/_native\.pyi",
    r"pccl/torch/__init__\.pyi", r"pccl/torch/ft\.pyi",
    r"pccl/_native\.abi3\.so", r"pccl/_prefix/bin/pccl-master",
    r"pccl/_prefix/bin/pccl-bench", r"pccl/_prefix/include/pccl\.h",
    r"pccl/_prefix/lib/mpich-abi/libpccl\.so\.\d+",
    r"pccl/_prefix/lib/mpich-abi/libpccl_train\.so\.\d+",
    r"pccl/_prefix/include/pccl_train\.h",
]
CONTENTS_MPI = [
    r"pccl/_prefix/lib/mpich-abi/libmpi_pccl\.so\.\d+",
    r"pccl/_prefix/lib/mpich-abi/libmpi\.so\.12",
    r"pccl/_prefix/lib/mpich-abi/libmpich\.so\.12",
]


# A program that was built for another MPI loads it by this name.
MPI = """
import ctypes, sys
mpi = ctypes.CDLL(sys.argv[1])
assert mpi.MPI_Init(None, None) == 0
assert mpi.MPI_Finalize() == 0
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def run(*command, **keywords):
    print("+", *command, flush=True)
    return subprocess.run([str(word) for word in command], check=True,
                          timeout=PATIENCE, **keywords)


def make_environment(place):
    """Its interpreter."""
    shutil.rmtree(place, ignore_errors=True)
    try:
        run(sys.executable, "-m", "venv", place)
    except subprocess.CalledProcessError:
        skip("this Python makes no environments (Debian: python3-venv)")
    return place / "bin" / "python"


def pip(python, *words):
    return run(python, "-m", "pip", "--disable-pip-version-check", "--quiet",
               "--retries", "1", "--timeout", "20", *words)


def environment(build):
    ready = build / "python" / "environment.ready"
    place = build / "python" / "environment"
    if ready.exists() and ready.read_text() == repr(NEEDED):
        return
    python = make_environment(place)
    try:
        pip(python, "install", *NEEDED)
    except subprocess.CalledProcessError:
        skip("no Python packages can be had here")
    ready.write_text(repr(NEEDED))


def the_python(build):
    if not (build / "python" / "environment.ready").exists():
        skip("there is no environment: python_environment has not passed")
    return build / "python" / "environment" / "bin" / "python"


def the_wheel(build):
    found = sorted((build / "python" / "wheels").glob("pccl_mpi-*.whl"))
    if len(found) != 1:
        skip("there is no wheel: python_wheel has not passed")
    return found[0]


def check_contents(wheel, build):
    names = zipfile.ZipFile(wheel).namelist()
    wanted = CONTENTS + (CONTENTS_MPI if
                         (build / "lib" / "libmpi_pccl.so").exists() else [])
    for pattern in wanted:
        if not any(re.fullmatch(pattern, name) for name in names):
            sys.exit(f"the wheel has no {pattern}: {names}")
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size} bytes, {len(names)} files")
    if size > WHEEL_MOST:
        sys.exit(f"more than {WHEEL_MOST} bytes")
    if "-cp311-abi3-" not in wheel.name:
        sys.exit("the wheel is not for every Python from 3.11 on")


def wheel(build):
    python = the_python(build)
    wheels = build / "python" / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    pip(python, "wheel", "--no-deps", "--no-build-isolation", "-w", wheels,
        "-C", "cmake.source-dir=prebuilt",
        "-C", f"cmake.define.PCCL_PREBUILT={build}", SOURCE / "python")
    made = the_wheel(build)
    check_contents(made, build)
    place = build / "python" / "empty"
    empty = make_environment(place)
    pip(empty, "install", "--no-index", made)
    path = f"{place / 'bin'}:{os.environ['PATH']}"
    done = run("pccl-master", "-n", 4, "--elastic", "python",
               SOURCE / "python" / "examples" / "train.py", "--steps", 20,
               cwd=place, stdout=subprocess.PIPE, text=True,
               env={**clean(), "PATH": path})
    print(done.stdout)
    if done.stdout.count("4 members") != 4:
        sys.exit("not every one of four ranks said that there were four")
    names = {path.name for path in place.rglob("mpich-abi/*")}
    for library in ("libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1"):
        if library in names:
            run("pccl-master", "-n", 2, "python", "-c", MPI, library,
                cwd=place, env={**clean(), "PATH": path})


def clean():
    """The environment without what would lead to another package."""
    return {name: value for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "LD_LIBRARY_PATH", "PYTHONHOME")}


def installed(build):
    """The interpreter of the environment, with the wheel."""
    python = the_python(build)
    pip(python, "install", "--no-index", "--no-deps", "--force-reinstall",
        the_wheel(build))
    return python


def unit(build):
    python = installed(build)
    tests = SOURCE / "python" / "tests"
    # python_torch runs those of the backend, where there is a torch.
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider",
        "--ignore", tests / "torch_backend", tests,
        cwd=build / "python", env=clean())


def upstream(build):
    root = os.environ.get("PCCL_UPSTREAM_DIR")
    if not root:
        skip("PCCL_UPSTREAM_DIR names no checkout of PCCL 1.0")
    python = installed(build)
    tests = pathlib.Path(root) / "python" / "tests"
    folders = ["unit_tests", "numpy_only_tests"]
    if subprocess.run([python, "-c", "import torch"], check=False,
                      stderr=subprocess.DEVNULL).returncode == 0:
        folders = ["unit_tests", "end_to_end/basic_reduce_test"]
    for folder in folders:
        names = sorted(str(path) for path in (tests / folder).glob("*test.py"))
        run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *names,
            cwd=build / "python", env=clean())


def main():
    steps = {"environment": environment, "wheel": wheel, "unit": unit,
             "upstream": upstream}
    try:
        steps[sys.argv[1]](pathlib.Path(sys.argv[2]).resolve())
    except subprocess.CalledProcessError as error:
        sys.exit(f"failed: {error}")


if __name__ == "__main__":
    main()
