#!/usr/bin/env python3
"""pypccl.py LIBRARY: PCCL 1.0's own Python package on top of our library.

PCCL_PYPCCL_DIR names a folder that holds the package "pccl"; it is linked
into a scratch folder with our library beside its loader, and two peers reduce
numpy arrays. Exits 77 without the folder, cffi or numpy."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

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


def main():
    library = pathlib.Path(sys.argv[1]).resolve()
    source = os.environ.get("PCCL_PYPCCL_DIR")
    if not source or not (pathlib.Path(source) / "pccl").is_dir():
        print("PCCL_PYPCCL_DIR names no folder with the package pccl")
        sys.exit(77)
    for module in ("cffi", "numpy"):
        if not importlib.util.find_spec(module):
            print(f"no {module}")
            sys.exit(77)
    with tempfile.TemporaryDirectory() as scratch:
        package = pathlib.Path(scratch) / "pccl"
        package.mkdir()
        for path in (pathlib.Path(source) / "pccl").iterdir():
            if path.name != library.name:
                (package / path.name).symlink_to(path.resolve())
        (package / "libpccl.so").symlink_to(library)
        env = dict(os.environ, PYTHONPATH=scratch)
        master = subprocess.Popen([sys.executable, "-c", MASTER, library],
                                  stdout=subprocess.PIPE, text=True)
        peers = []
        try:
            where = "127.0.0.1:" + master.stdout.readline().strip()
            peers = [subprocess.Popen([sys.executable, "-c", PEER, where],
                                      env=env) for _ in range(2)]
            failed = [peer.wait(timeout=60) for peer in peers]
        finally:
            for process in peers + [master]:
                process.kill()
                process.wait()
    sys.exit(any(failed))


if __name__ == "__main__":
    main()
