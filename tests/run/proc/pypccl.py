#!/usr/bin/env python3
"""pypccl.py LIBRARY BUILD: PCCL 1.0's own Python package on top of our library.

The package is PyPI's, which is fetched into BUILD/pypccl with what it needs,
once; or the folder "pccl" in the one that PCCL_PYPCCL_DIR names, with the cffi
and numpy of this interpreter. It is linked into a scratch folder with our
library beside its loader, and two peers reduce numpy arrays. Exits 77, with a
word, where nothing can be fetched."""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "pypccl==1.0.0"
PATIENCE = 300  # seconds, for peers; never a measure

PEER = """
import sys
import numpy
import pccl

comm = pccl.Communicator(sys.argv[1], 0)
comm.connect(n_attempts=5)
size = pccl.Attribute.GLOBAL_WORLD_SIZE
while comm.get_attribute(size) < 2:
    comm.update_topology()
for step in range(20):
    assert not comm.are_peers_pending()
    send = numpy.full(1000, step + 1, dtype=numpy.float32)
    recv = numpy.zeros_like(send)
    handle = comm.all_reduce_async(
        send, recv,
        operand_descriptor=pccl.ReduceOperandDescriptor(
            datatype=pccl.DataType.FLOAT,
            distribution_hint=pccl.DistributionHint.NONE),
        quantization_options=pccl.QuantizationOptions(
            quantized_datatype=pccl.DataType.FLOAT,
            algorithm=pccl.QuantizationAlgorithm.NONE),
        op=pccl.ReduceOp.SUM)
    ok, status, info = handle.wait()
    assert ok and info.local_world_size == 2, status
    assert (recv == 2 * (step + 1)).all()
print("ok")
"""

MASTER = """
import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])


class Address(ctypes.Structure):
    _fields_ = [("protocol", ctypes.c_int), ("ipv4", ctypes.c_uint8 * 4),
                ("ipv6", ctypes.c_uint8 * 16), ("port", ctypes.c_uint16)]


address = Address(ipv4=(127, 0, 0, 1))
master, port = ctypes.c_void_p(), ctypes.c_uint16()
assert library.pcclCreateMaster(address, ctypes.byref(master)) == 0
assert library.pcclRunMaster(master) == 0
assert library.pcclGetMasterPort(master, ctypes.byref(port)) == 0
print(port.value, flush=True)
library.pcclMasterAwaitTermination(master)
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def run(*command):
    subprocess.run([str(word) for word in command], check=True)


def fetch(place):
    """An interpreter with cffi and numpy, and the folder of the package. Its
    wheel is one for Python 3.12 on x86_64 by its library alone, which ours
    replaces."""
    python, ready = place / "environment" / "bin" / "python", place / "ready"
    if not ready.exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet",
               "--retries", "1", "--timeout", "20"]
        try:
            run(sys.executable, "-m", "venv", place / "environment")
            run(*pip, "install", "cffi", "numpy")
            run(*pip, "download", "--no-deps", "--only-binary", ":all:",
                "--python-version", "3.12", "--platform",
                "manylinux_2_17_x86_64", "--dest", place, PACKAGE)
        except subprocess.CalledProcessError:
            skip(f"{PACKAGE}, cffi and numpy cannot be had here")
        wheel, = place.glob("*.whl")
        zipfile.ZipFile(wheel).extractall(place / "source")
        ready.touch()
    return python, place / "source"


def given(source):
    """The same by PCCL_PYPCCL_DIR."""
    if not (pathlib.Path(source) / "pccl").is_dir():
        skip("PCCL_PYPCCL_DIR names no folder with the package pccl")
    for module in ("cffi", "numpy"):
        if not importlib.util.find_spec(module):
            skip(f"no {module}")
    return sys.executable, pathlib.Path(source)


def main():
    library = pathlib.Path(sys.argv[1]).resolve()
    folder = os.environ.get("PCCL_PYPCCL_DIR")
    python, source = given(folder) if folder else \
        fetch(pathlib.Path(sys.argv[2]).resolve() / "pypccl")
    with tempfile.TemporaryDirectory() as scratch:
        package = pathlib.Path(scratch) / "pccl"
        package.mkdir()
        for path in (source / "pccl").iterdir():
            if path.name != "libpccl.so":
                (package / path.name).symlink_to(path.resolve())
        (package / "libpccl.so").symlink_to(library)
        env = dict(os.environ, PYTHONPATH=scratch)
        master = subprocess.Popen([sys.executable, "-c", MASTER, library],
                                  stdout=subprocess.PIPE, text=True)
        peers = []
        try:
            where = "127.0.0.1:" + master.stdout.readline().strip()
            peers = [subprocess.Popen([python, "-c", PEER, where],
                                      env=env) for _ in range(2)]
            failed = [peer.wait(timeout=PATIENCE) for peer in peers]
        finally:
            for process in peers + [master]:
                process.kill()
                process.wait()
    sys.exit(any(failed))


if __name__ == "__main__":
    main()
