"""Collectives of two members in one process, blocking and started."""
from __future__ import annotations

import array
import asyncio
import gc
from typing import Any

import pytest

import pccl
from conftest import together

numpy = pytest.importorskip("numpy")
Pair = tuple[pccl.Run, pccl.Run]


def test_all_reduce(pair: Pair) -> None:
    a, b = pair
    for op, wanted in [("sum", 5), ("avg", 2.5), ("prod", 6), ("max", 3),
                       ("min", 2), (pccl.ReduceOp.SUM, 5)]:
        x, y = numpy.full(9, 2.0), numpy.full(9, 3.0)
        infos = together(lambda: a.all_reduce(x, op=op),
                         lambda: b.all_reduce(y, op=op))
        assert (x == wanted).all() and (y == wanted).all()
        assert infos[0].world_size == infos[1].local_world_size == 2


def test_out_of_place(pair: Pair) -> None:
    a, b = pair
    x = numpy.frombuffer(b"\1\2\3", "u1")  # read-only is enough
    out, y = numpy.zeros(3, "u1"), bytearray(b"\1\1\1")
    together(lambda: a.all_reduce(x, out), lambda: b.all_reduce(y))
    assert bytes(y) == b"\2\3\4" == out.tobytes() and x[0] == 1


def test_libraries_mix(pair: Pair) -> None:
    a, b = pair
    x, y = array.array("f", [1, 2]), numpy.array([3, 4], "f4")
    together(lambda: a.all_reduce(x), lambda: b.all_reduce(y))
    assert list(x) == list(y) == [4, 6]


def test_quantized(pair: Pair) -> None:
    a, b = pair
    for quantize in ["uint8", pccl.quantization("int8", "zero_point_scale")]:
        x = numpy.linspace(0, 1, 2000, dtype="f4")
        y = x.copy()
        together(lambda: a.all_reduce(x, quantize=quantize),
                 lambda: b.all_reduce(y, quantize=quantize))
        assert (x == y).all()
        assert numpy.abs(x - 2 * numpy.linspace(0, 1, 2000)).max() < 0.05


def test_other_collectives(pair: Pair) -> None:
    a, b = pair
    x, y = numpy.zeros(4), numpy.arange(4.0)
    together(lambda: a.broadcast(x, 1), lambda: b.broadcast(y, 1))
    assert (x == y).all()
    out = [numpy.zeros(8), numpy.zeros(8)]
    together(lambda: a.all_gather(x + 10, out[0]),
             lambda: b.all_gather(y, out[1]))
    assert list(out[0]) == list(out[1]) == [10, 11, 12, 13, 0, 1, 2, 3]
    got = [numpy.zeros(3), numpy.zeros(3)]
    together(lambda: a.all_to_all(numpy.arange(3.0), got[0], [1, 2], [1, 2]),
             lambda: b.all_to_all(numpy.arange(3.0) + 5, got[1], [2, 1],
                                  [2, 1]))
    assert list(got[0]) == [0, 5, 6] and list(got[1]) == [1, 2, 7]
    together(a.barrier, b.barrier)


def test_reduce_scatter(pair: Pair) -> None:
    a, b = pair
    try:
        a.reduce_scatter(numpy.ones(1), numpy.ones(1), members=[a.id])
    except pccl.InvalidArgument as error:
        assert "unknown kind" in error.reason
        pytest.skip("this library has no reduce-scatter")
    out = [numpy.zeros(2), numpy.zeros(2)]
    together(lambda: a.reduce_scatter(numpy.arange(4.0), out[0]),
             lambda: b.reduce_scatter(numpy.ones(4), out[1]))
    assert list(out[0]) == [1, 2] and list(out[1]) == [3, 4]


def test_scope(pair: Pair) -> None:
    a, b = pair
    x = numpy.ones(3)
    a.all_reduce(x, members=[a.id], tag=5)
    assert (x == 1).all()
    with pytest.raises(pccl.InvalidArgument, match="does not contain"):
        b.barrier(members=[a.id])


def test_disagreement_names_the_argument(pair: Pair) -> None:
    a, b = pair
    errors: list[Any] = []

    def call(run: pccl.Run, elements: int) -> None:
        with pytest.raises(pccl.InvalidArgument) as caught:
            run.all_reduce(numpy.zeros(elements))
        errors.append(caught.value)

    together(lambda: call(a, 3), lambda: call(b, 4))
    assert all("count" in error.reason and "3" in error.reason and
               "4" in error.reason for error in errors)


def test_agreement_beside_the_arguments(pair: Pair) -> None:
    a, b = pair
    errors: list[str] = []

    def call(run: pccl.Run, text: str) -> None:
        with pytest.raises(pccl.InvalidArgument) as caught:
            run.barrier(agree=(("model", "x"), ("layer", text)))
        errors.append(caught.value.reason)

    together(lambda: call(a, "seven"), lambda: call(b, "eight"))
    assert all("layer" in text and "seven" in text and "eight" in text
               for text in errors), errors
    together(*(lambda run=run: run.barrier(agree=(("model", "x"),))
               for run in pair))
    for wrong in ([("a", "b")], (("a",),), (("a", 1),), (("a", "b"),) * 9):
        with pytest.raises((pccl.InvalidArgument, TypeError)):
            a.barrier(agree=wrong)


def test_epoch(pair: Pair) -> None:
    """A call that was made for another view has no effect."""
    a, b = pair
    x, out = numpy.ones(2), numpy.zeros(4)
    for call in (lambda: a.all_reduce(x, epoch=a.epoch + 1),
                 lambda: a.all_gather(x, out, epoch=a.epoch + 1),
                 lambda: a.broadcast(x, 1, epoch=a.epoch + 1)):
        with pytest.raises(pccl.RankConnectionLost):
            call()
    together(lambda: a.all_reduce(x, epoch=a.epoch),
             lambda: b.all_reduce(numpy.ones(2)))
    assert (x == 2).all()


def test_gather_in_place(pair: Pair) -> None:
    out = [numpy.zeros(4), numpy.zeros(4)]
    for run, full in zip(pair, out):
        full[2 * run.rank:2 * run.rank + 2] = run.rank + 1
    together(*(lambda run=run, full=full: run.all_gather(None, full)
               for run, full in zip(pair, out)))
    assert all((full == [1, 1, 2, 2]).all() for full in out)
    with pytest.raises(pccl.InvalidArgument, match="3 elements"):
        pair[0].all_gather(None, numpy.zeros(3))


def test_result_has_a_time_limit(pair: Pair) -> None:
    a, b = pair
    x = numpy.ones(3)
    operation = a.all_reduce_async(x)
    for seconds in (0, 0.01):
        with pytest.raises(pccl.TimedOut):
            operation.result(seconds)
    b.all_reduce(numpy.ones(3))
    assert operation.result(300).world_size == 2 and (x == 2).all()


def test_operations(pair: Pair) -> None:
    a, b = pair
    xs = [numpy.full(1000, float(i)) for i in range(8)]
    ys = [x.copy() for x in xs]
    started = [a.all_reduce_async(x, tag=i) for i, x in enumerate(xs)]
    assert not started[0].done()
    assert not started[0].wait(0) and not started[0].wait(0.01)
    others = [b.all_reduce_async(y, tag=i) for i, y in enumerate(ys)]
    for operation in started + others:
        assert operation.result().world_size == 2
        assert operation.done() and operation.wait() and operation.wait(0)
        assert operation.result().world_size == 2  # again, the same
    assert all((x == 2 * i).all() for i, x in enumerate(xs))
    together(a.update, b.update)


def test_tag_in_flight(pair: Pair) -> None:
    a, b = pair
    first = a.all_reduce_async(numpy.ones(3), tag=7)
    with pytest.raises(pccl.InvalidArgument, match="tag 7 is in flight"):
        a.all_reduce(numpy.ones(3), tag=7)
    b.all_reduce(numpy.ones(3), tag=7)
    first.result()


def test_arrays_outlive_their_names(pair: Pair) -> None:
    a, b = pair
    for _ in range(20):
        operation = a.all_reduce_async(numpy.ones(100_000))
        gc.collect()
        y = numpy.ones(100_000)
        b.all_reduce(y)
        assert (y == 2).all() and operation.result().world_size == 2


def test_dropped_operation_is_named_by_the_update(pair: Pair) -> None:
    a, b = pair
    a.all_reduce_async(numpy.ones(100_000))
    gc.collect()
    b.all_reduce(numpy.ones(100_000))
    with pytest.raises(pccl.PendingAsyncOps):
        a.update_topology()


def test_asyncio(pair: Pair) -> None:
    a, b = pair

    async def main() -> list[pccl.ReduceInfo]:
        mine = [a.all_reduce_async(numpy.ones(9), tag=i) for i in range(3)]
        late = asyncio.get_running_loop().run_in_executor(
            None, lambda: [b.all_reduce(numpy.ones(9), tag=i)
                           for i in range(3)])
        infos = list(await asyncio.gather(*mine))
        await late
        return infos

    assert [info.world_size for info in asyncio.run(main())] == [2, 2, 2]


def test_fail(pair: Pair) -> None:
    a, b = pair
    operation = a.all_reduce_async(numpy.ones(3), tag=9)
    a.fail(9)
    with pytest.raises(pccl.OperationFailed):
        operation.result()
    with pytest.raises(pccl.OperationFailed):
        operation.result()  # as often as it is asked
    with pytest.raises(pccl.OperationFailed):
        b.all_reduce(numpy.ones(3), tag=9)
    with pytest.raises(pccl.InvalidUsage):
        a.fail(10)


MEMBER = """
import sys, numpy, pccl
run = pccl.connect(sys.argv[1])
print("joined", flush=True)
x = numpy.ones(1000)
run.all_reduce(x)
print("reduced", flush=True)
sys.stdin.read()
import time
while True: time.sleep(10)
"""


def test_loss_and_retry(master: pccl.Master, script: Any) -> None:
    with pccl.connect(master.address) as run:
        other = script(MEMBER, master.address)
        while run.size < 2:
            run.update()
        x = numpy.ones(1000)
        run.all_reduce(x)
        other.wait_for("reduced")
        other.kill()
        with pytest.raises(pccl.RankConnectionLost) as caught:
            run.all_reduce(x)
        assert "1 are left" in caught.value.reason
        assert (x == 2).all()  # as it was
        assert run.size == 1 and run.rank == 0

        other = script(MEMBER, master.address)
        while run.size < 2:
            run.update()
        run.all_reduce(x)
        other.wait_for("reduced")
        other.kill()
        info = run.all_reduce(x, retry=True)
        assert info.world_size == 1
