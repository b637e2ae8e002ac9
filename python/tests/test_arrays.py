"""Arrays of any library, and those that cannot be sent."""
from __future__ import annotations

import array
from typing import Any

import pytest

import pccl
from pccl import _native

numpy = pytest.importorskip("numpy")

TYPES = ["uint8", "int8", "int16", "uint16", "uint32", "int32", "uint64",
         "int64", "float16", "float32", "float64"]


class OnlyDLPack:
    """An array that has DLPack and nothing else."""

    def __init__(self, inner: Any, versions: bool = True) -> None:
        self.inner, self.versions = inner, versions

    def __dlpack__(self, **keywords: Any) -> Any:
        if not self.versions and keywords:
            raise TypeError("no versions")
        return self.inner.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.inner.__dlpack_device__()


@pytest.fixture
def alone(master: pccl.Master) -> Any:
    with pccl.connect(master.address) as run:
        yield run


@pytest.mark.parametrize("name", TYPES)
def test_numpy(name: str) -> None:
    x = numpy.zeros((3, 5), name)
    assert _native.describe(x) == (x.ctypes.data, 15, name)


@pytest.mark.parametrize("versions", [True, False])
@pytest.mark.parametrize("name", TYPES)
def test_dlpack(name: str, versions: bool) -> None:
    x = numpy.zeros((3, 5), name)
    found = _native.describe(OnlyDLPack(x, versions))
    assert found == (x.ctypes.data, 15, name)


def test_buffers() -> None:
    for x, elements, name in [
            (array.array("d", [1, 2]), 2, "float64"),
            (array.array("f", [1, 2, 3]), 3, "float32"),
            (array.array("l", [1]), 1, "int64"),
            (bytearray(7), 7, "uint8"),
            (memoryview(bytearray(8)).cast("i"), 2, "int32"),
            (b"abc", 3, "uint8")]:
        assert _native.describe(x)[1:] == (elements, name)


def test_empty_arrays() -> None:
    assert _native.describe(numpy.zeros(0, "f4"))[1:] == (0, "float32")
    assert _native.describe(numpy.zeros((0, 3), "f4"))[1] == 0
    assert _native.describe(numpy.zeros((), "f4"))[1] == 1


def test_bfloat16() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = numpy.zeros(9, ml_dtypes.bfloat16)
    assert _native.describe(x) == (x.ctypes.data, 9, "bfloat16")


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    for name in TYPES + ["bfloat16"]:
        if not hasattr(torch, name):
            continue
        x = torch.zeros(3, 4, dtype=getattr(torch, name))
        assert _native.describe(x) == (x.data_ptr(), 12, name)
    weight = torch.nn.Linear(2, 3).weight
    assert _native.describe(weight)[1] == 6
    for bad, words in [(torch.zeros(4, 4).t(), "not contiguous"),
                       (torch.zeros(4, dtype=torch.complex64), "complex64"),
                       (torch.zeros(4, device="meta"), "device meta")]:
        with pytest.raises(pccl.InvalidArgument, match=words):
            _native.describe(bad)


@pytest.mark.parametrize("make, words", [
    (lambda: numpy.zeros((4, 4))[:, ::2], "not C-contiguous"),
    (lambda: numpy.zeros((4, 4), order="F"), "not C-contiguous"),
    (lambda: OnlyDLPack(numpy.zeros((4, 4))[:, ::2]), "not C-contiguous"),
    (lambda: numpy.zeros(4, "c16"), "type 'Zd'"),
    (lambda: numpy.zeros(4, "?"), r"type '\?'"),
    (lambda: numpy.zeros(4, ">f4"), "type '>f'"),
    (lambda: numpy.zeros(4, "U3"), "type '3w'"),
    (lambda: numpy.zeros(4, [("a", "f4")]), "type 'T"),
    (lambda: numpy.zeros(4, "O"), "type 'O'"),
    (lambda: numpy.frombuffer(b"abcd", "u1"), "x is read-only"),
    (lambda: OnlyDLPack(numpy.zeros(4, "c16")), "DLPack's type 5"),
    (lambda: b"abcd", "x is read-only"),
])
def test_refused(alone: pccl.Run, make: Any, words: str) -> None:
    with pytest.raises(pccl.InvalidArgument, match=words) as caught:
        alone.broadcast(make())
    assert caught.value.result is pccl.Result.INVALID_ARGUMENT
    alone.broadcast(numpy.zeros(3))


def test_no_array(alone: pccl.Run) -> None:
    for bad in (3, "text", None, [1.0, 2.0], object()):
        with pytest.raises(TypeError, match="no array"):
            alone.broadcast(bad)


def test_two_arrays(alone: pccl.Run) -> None:
    x = numpy.zeros(4, "f4")
    with pytest.raises(pccl.InvalidArgument, match="float32 and out of"):
        alone.all_reduce(x, numpy.zeros(4))
    with pytest.raises(pccl.InvalidArgument, match="4 elements and out has 5"):
        alone.all_reduce(x, numpy.zeros(5, "f4"))
    with pytest.raises(pccl.InvalidArgument, match="out is read-only"):
        alone.all_reduce(x, numpy.frombuffer(b"abcd" * 4, "f4"))


@pytest.mark.parametrize("keywords, error, words", [
    ({"op": "xor"}, pccl.InvalidArgument, "op is 'xor'"),
    ({"op": 9}, pccl.InvalidArgument, "op is not between 0 and 4"),
    ({"op": 1.5}, TypeError, "integer"),
    ({"tag": -1}, pccl.InvalidArgument, "tag is not between"),
    ({"quantize": "int3"}, pccl.InvalidArgument, "quantize is 'int3'"),
    ({"quantize": (1, 7)}, pccl.InvalidArgument, "not between 0 and 2"),
    ({"quantize": 5}, pccl.InvalidArgument, "quantize is None"),
    ({"members": [77]}, pccl.InvalidArgument, "does not contain this"),
    ({"tags": 1}, TypeError, "no argument 'tags'"),
    ({"x": 1}, TypeError, "two values for 'x'"),
])
def test_wrong_arguments(alone: pccl.Run, keywords: dict[str, Any],
                         error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        alone.all_reduce(numpy.zeros(4, "f4"), **keywords)


def test_memory_is_released() -> None:
    x = bytearray(8)
    _native.describe(x)
    x.extend(b"grows only if nobody holds it")
