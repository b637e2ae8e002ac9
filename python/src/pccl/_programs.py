"""pccl-master and pccl-bench, which the package holds."""
from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

# Beside this file also where that is a link, as in a build tree.
PREFIX = Path(__file__).absolute().parent / "_prefix"


def program(name: str) -> str:
    """The path of a program of this package."""
    path = PREFIX / "bin" / name
    if not path.exists():
        raise FileNotFoundError(f"this build of pccl has no {name}")
    return str(path)


def get_include() -> str:
    """The folder of pccl.h, for C programs."""
    return str(PREFIX / "include")


def get_library_dir() -> str:
    """The folder of libpccl.so and of the MPI libraries."""
    return str(PREFIX / "lib" / "mpich-abi")


def _run(name: str) -> NoReturn:
    path = program(name)
    # The ranks find this interpreter, and with it this package.
    os.execv(path, [path, *sys.argv[1:]])


def master() -> NoReturn:
    """The command pccl-master."""
    _run("pccl-master")


def bench() -> NoReturn:
    """The command pccl-bench."""
    _run("pccl-bench")
