"""The names of PCCL 1.0, the stubs, the programs."""
from __future__ import annotations

import ast
import gc
import inspect
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import pccl
from conftest import EXAMPLES, launch, launcher, together
from pccl import _native

numpy = pytest.importorskip("numpy")

PLAIN = pccl.QuantizationOptions(pccl.DataType.FLOAT,
                                 pccl.QuantizationAlgorithm.NONE)


def joined(master: pccl.Master) -> tuple[pccl.Communicator, pccl.Communicator]:
    a = pccl.Communicator(master.address, 0)
    a.connect()
    b = pccl.Communicator(master.address, 0)
    thread = threading.Thread(target=b.connect, kwargs={"n_attempts": 1})
    thread.start()
    size = pccl.Attribute.GLOBAL_WORLD_SIZE
    while a.get_attribute(size) < 2:
        if a.are_peers_pending():
            a.update_topology()
    thread.join()
    return a, b


def test_communicator(master: pccl.Master) -> None:
    a, b = joined(master)
    assert a.get_attribute(pccl.Attribute.LOCAL_WORLD_SIZE) == 2
    x, y = numpy.full(100, 1, "f4"), numpy.full(100, 2, "f4")
    out = [numpy.zeros(100, "f4"), numpy.zeros(100, "f4")]
    together(lambda: a.all_reduce(x, out[0], op=pccl.ReduceOp.SUM),
             lambda: b.all_reduce(y, out[1], op=pccl.ReduceOp.SUM))
    assert (out[0] == 3).all() and (out[1] == 3).all()
    operand = pccl.ReduceOperandDescriptor(pccl.DataType.FLOAT)
    handles = [c.all_reduce_async(x, o, op=pccl.ReduceOp.AVG, tag=5,
                                  operand_descriptor=operand,
                                  quantization_options=PLAIN)
               for c, o in zip((a, b), out)]
    for handle in handles:
        ok, status, info = handle.wait()
        assert ok and status == 0 and info.local_world_size == 2
        assert handle.wait()[0]
    with pytest.raises(pccl.PCCLError):
        a.all_reduce(x, out[0], op=pccl.ReduceOp.SUM,
                     operand_descriptor=pccl.ReduceOperandDescriptor(
                         pccl.DataType.DOUBLE))


def test_multiple(master: pccl.Master) -> None:
    a, b = joined(master)

    def reduce(c: pccl.Communicator) -> list[Any]:
        arrays = [numpy.full(50, float(i), "f4") for i in range(9)]
        descriptors = [pccl.ReduceOpDescriptor.from_numpy(
            x, x, pccl.ReduceDescriptor(
                x.size, pccl.ReduceOp.SUM, i,
                pccl.ReduceOperandDescriptor(pccl.DataType.FLOAT), PLAIN))
            for i, x in enumerate(arrays)]
        info = c.all_reduce_multiple_with_retry(descriptors, max_in_flight=4)
        assert info.local_world_size == 2 and info.tx_bytes > 0
        return arrays

    for arrays in together(lambda: reduce(a), lambda: reduce(b)):
        assert isinstance(arrays, list)
        assert all((x == 2 * i).all() for i, x in enumerate(arrays))


def test_addresses_instead_of_arrays(master: pccl.Master) -> None:
    a, b = joined(master)
    x, y = numpy.ones(8), numpy.ones(8)

    def reduce(c: pccl.Communicator, z: Any) -> None:
        d = pccl.ReduceDescriptor(
            8, pccl.ReduceOp.SUM, 0,
            pccl.ReduceOperandDescriptor(pccl.DataType.DOUBLE), PLAIN)
        one = pccl.ReduceOpDescriptor(z.ctypes.data, z.ctypes.data, d)
        c.all_reduce_multiple_with_retry([one])

    together(lambda: reduce(a, x), lambda: reduce(b, y))
    assert (x == 2).all() and (y == 2).all()


def test_shared_state(master: pccl.Master) -> None:
    a, b = joined(master)
    x, y = numpy.arange(5.0), numpy.zeros(5)
    states = [pccl.SharedState([pccl.TensorInfo.from_numpy(z, "z")])
              for z in (x, y)]
    infos = together(lambda: a.sync_shared_state(states[0]),
                     lambda: b.sync_shared_state(states[1]))
    assert (x == y).all() and infos[1].rx_bytes > 0
    for state in states:
        state.push_revision()
    raw = pccl.SharedState([pccl.TensorInfo(
        "z", x.ctypes.data, numel=5, dtype=pccl.DataType.DOUBLE,
        device_type=pccl.DeviceType.CPU, allow_content_inequality=False)])
    raw.revision = states[0].revision
    together(lambda: a.sync_shared_state(raw),
             lambda: b.sync_shared_state(states[1]))
    assert raw.revision == states[1].revision == 1
    with pytest.raises(ValueError):
        pccl.SharedState([])


def test_world_of_one_and_unconnected(master: pccl.Master) -> None:
    a = pccl.Communicator(master.address)
    with pytest.raises(pccl.PCCLError):
        a.update_topology()
    a.connect()
    x = numpy.ones(3)
    with pytest.raises(pccl.TooFewPeers):
        a.all_reduce_async(x, x, op=pccl.ReduceOp.SUM)
    del a
    gc.collect()


def test_datatypes() -> None:
    for datatype in pccl.DataType:
        if datatype is pccl.DataType.BFLOAT16:
            continue
        dtype = datatype.to_numpy_dtype()
        assert pccl.DataType.from_numpy_dtype(dtype) is datatype
    with pytest.raises(ValueError):
        pccl.DataType.from_numpy_dtype(numpy.dtype("c8"))
    assert pccl.cuda.is_available() is _native.has_cuda


def test_stubs_name_what_is_there() -> None:
    """Every public name of the extension has a stub, and the other way."""
    text = (Path(pccl.__file__).parent / "_native.pyi").read_text()
    for node in ast.parse(text).body:
        if not isinstance(node, ast.ClassDef):
            continue
        there = getattr(_native, node.name)
        stub = {item.name for item in node.body
                if isinstance(item, ast.FunctionDef)}
        stub |= {item.target.id for item in node.body
                 if isinstance(item, ast.AnnAssign) and
                 isinstance(item.target, ast.Name)}
        # __buffer__ is a name from Python 3.12 on.
        for name in stub - {"__new__", "__buffer__"}:
            assert hasattr(there, name), f"{node.name}.{name}"
        if node.name in ("Comm", "Operation", "Master", "Round", "Train"):
            real = {name for name in vars(there)
                    if not name.startswith("__")}
            assert real <= stub, real - stub


def test_everything_public_is_documented() -> None:
    for name in pccl.__all__:
        thing = getattr(pccl, name)
        if callable(thing):
            assert inspect.getdoc(thing), name
    for thing in (pccl.Run, pccl.PartialInfo, pccl.PartialOperation,
                  *vars(pccl.train).values()):
        if not inspect.isclass(thing) or "pccl" not in thing.__module__:
            continue
        assert inspect.getdoc(thing), thing
        for name, method in inspect.getmembers(thing):
            field = inspect.isdatadescriptor(method) and not isinstance(
                method, property)
            if not name.startswith("_") and not field:
                assert inspect.getdoc(method), (thing, name)


def test_types() -> None:
    pytest.importorskip("mypy")
    package = Path(pccl.__file__).parent
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental",
         "--exclude", "/torch/", *map(str, package.glob("*.py*"))],
        capture_output=True, text=True, check=False, cwd=package.parent)
    missing = "import-not-found", "import-untyped"
    errors = [line for line in done.stdout.splitlines() if " error: " in line
              and not any(word in line for word in missing)]
    assert not errors, errors


def test_launcher_and_example() -> None:
    done = launch("-n", "3", "--elastic", sys.executable,
                  str(EXAMPLES / "train.py"), "--steps", "10",
                  PYTHONPATH=str(Path(pccl.__file__).parents[1]))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("up to 3 members") == 3
    assert Path(pccl.get_include()).name == "include"
    assert launcher()
