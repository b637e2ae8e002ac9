"""Rounds that wait for nobody, progress of a step, and downloads before
joining."""
from __future__ import annotations

import array
import asyncio
import gc
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

import pccl
from conftest import PATIENCE, together

numpy = pytest.importorskip("numpy")
Pair = tuple[pccl.Run, pccl.Run]
FOREVER = 250.0  # a round that ends before has not waited for its deadline


def test_a_round_of_all(pair: Pair) -> None:
    a, b = pair
    x, y = numpy.full(10, 1.0, "f4"), numpy.full(10, 4.0, "f4")
    out = numpy.zeros(10, "f4")
    one, two = together(
        lambda: a.all_reduce_partial(x, weight=2, deadline=FOREVER),
        lambda: b.all_reduce_partial(y, out, weight=1, deadline=FOREVER))
    assert isinstance(one, pccl.PartialInfo)
    assert isinstance(two, pccl.PartialInfo)
    assert (x == 2).all() and (out == 2).all() and (y == 4).all()
    assert one.coverage == two.coverage and one.members == two.members
    assert set(one.members) == {a.id, b.id}
    assert one.contributed and two.contributed
    assert one.count == one.elements == 10 and one.mean_coverage == 1
    assert one.mean_contributors == 2
    assert one.coverage[0].begin == 0 and one.coverage[-1].end == 10
    for part in one.coverage:
        assert part.weight == 3 and part.contributors == one.members
    assert one.tx_bytes > 0 and two.rx_bytes > 0


def test_a_round_ends_without_those_that_do_not_call(pair: Pair) -> None:
    a, b = pair
    x = numpy.arange(1000, dtype="f8")
    early = a.all_reduce_partial(x, op="sum", deadline=0.4, gather=0.1)
    assert early.contributed and early.mean_coverage == 1
    assert all(p.contributors == (a.id,) for p in early.coverage)
    y = numpy.full(1000, 7.0)
    late = b.all_reduce_partial(y, op="sum", deadline=0.4, gather=0.1)
    assert late.round == early.round and not late.contributed
    assert late.coverage == early.coverage
    assert (y == numpy.arange(1000)).all()  # the same bits, though late


def test_a_loss_raises_nothing(pair: Pair) -> None:
    a, b = pair
    b.close()
    x = numpy.ones(5)
    done = a.all_reduce_partial(x, deadline=0.4)
    assert done.contributed and (x == 1).all()


def test_rounds_beside_each_other(pair: Pair) -> None:
    a, b = pair
    mine = [numpy.full(100, float(i)) for i in range(5)]
    theirs = [numpy.full(100, float(2 * i)) for i in range(5)]
    started = [a.all_reduce_partial_async(x, op="sum", tag=i, deadline=FOREVER)
               for i, x in enumerate(mine)]
    assert [operation.tag for operation in started] == list(range(5))
    assert not started[0].wait(0.05)
    with pytest.raises(pccl.TimedOut):
        started[0].result(0.05)
    a.all_reduce_async(numpy.ones(3), tag=1)  # no relation to those tags
    b.all_reduce(numpy.ones(3), tag=1)
    for i, y in enumerate(theirs):
        b.all_reduce_partial(y, op="sum", tag=i, deadline=FOREVER)
    for i, operation in enumerate(started):
        assert operation.wait() and operation.result() is operation.result()
        assert (mine[i] == 3 * i).all()


def test_a_round_is_awaited_by_asyncio(pair: Pair) -> None:
    a, b = pair

    async def main() -> None:
        x, y = numpy.ones(7), numpy.ones(7)
        first = a.all_reduce_partial_async(x, op="sum", deadline=FOREVER)
        second = b.all_reduce_partial_async(y, op="sum", deadline=FOREVER)
        infos = await asyncio.gather(first._wait(), second._wait())
        assert (await first) is infos[0]
        assert (x == 2).all() and infos[0].coverage == infos[1].coverage

    asyncio.run(main())


def test_several_threads_await_a_round(pair: Pair) -> None:
    a, b = pair
    operation = a.all_reduce_partial_async(numpy.ones(9), deadline=FOREVER)
    infos = together(
        operation.result, operation.result,
        lambda: b.all_reduce_partial(numpy.ones(9), deadline=FOREVER))
    assert infos[0] == infos[1]


def test_a_round_that_nobody_awaits(pair: Pair) -> None:
    """The next one of its tag waits for it; its array stays until then."""
    a, _ = pair
    a.all_reduce_partial_async(numpy.ones(1 << 16), deadline=0.3)
    gc.collect()
    done = a.all_reduce_partial(numpy.ones(1 << 16), deadline=0.3)
    assert done.contributed
    kept = a.all_reduce_partial_async(numpy.ones(9), deadline=0.3)
    with pytest.raises(pccl.InvalidArgument):  # somebody may await that one
        a.all_reduce_partial(numpy.ones(9), deadline=0.3)
    assert kept.result().round == done.round + 1


def test_arrays_of_other_libraries(pair: Pair) -> None:
    a, b = pair
    torch = pytest.importorskip("torch")
    x, y = torch.ones(4, requires_grad=True), array.array("f", [3] * 4)
    together(lambda: a.all_reduce_partial(x, deadline=FOREVER),
             lambda: b.all_reduce_partial(y, deadline=FOREVER))
    assert x.tolist() == list(y) == [2, 2, 2, 2]


@pytest.mark.parametrize("arguments, error, words", [
    (dict(x=numpy.ones(4)[::2]), pccl.InvalidArgument, "contiguous"),
    (dict(x=numpy.ones(4), out=numpy.ones(5)), pccl.InvalidArgument, "equal"),
    (dict(x=numpy.ones(4), out=numpy.ones(4, "f4")), pccl.InvalidArgument,
     "float64 and out of float32"),
    (dict(x=b"abcd"), pccl.InvalidArgument, "read-only"),
    (dict(x=numpy.ones(4, "c8")), pccl.InvalidArgument, "type"),
    (dict(x=[1.0]), TypeError, "x is a list"),
    (dict(x=numpy.ones(4), op="max"), pccl.InvalidArgument, None),
    (dict(x=numpy.ones(4), op="median"), pccl.InvalidArgument, "median"),
    (dict(x=numpy.ones(4, "i4"), op="avg"), pccl.InvalidArgument, None),
    (dict(x=numpy.ones(4), deadline=0), pccl.InvalidArgument, "deadline is 0"),
    (dict(x=numpy.ones(4), deadline=-1.0), pccl.InvalidArgument, "deadline"),
    (dict(x=numpy.ones(4), deadline=1e9), pccl.InvalidArgument, "deadline"),
    (dict(x=numpy.ones(4), deadline=float("nan")), pccl.InvalidArgument,
     "deadline is nan"),
    (dict(x=numpy.ones(4), deadline=1, gather=2), pccl.InvalidArgument, None),
    (dict(x=numpy.ones(4), gather=-1), pccl.InvalidArgument, "gather"),
    (dict(x=numpy.ones(4), weight=0), pccl.InvalidArgument, "weight"),
    (dict(x=numpy.ones(4), weight=float("inf")), pccl.InvalidArgument, None),
    (dict(x=numpy.ones(4), tag=-1), pccl.InvalidArgument, "tag"),
])
def test_wrong_arguments(master: pccl.Master, arguments: dict[str, Any],
                         error: type[Exception], words: str | None) -> None:
    with pccl.connect(master.address) as run:
        with pytest.raises(error, match=words):
            run.all_reduce_partial(**arguments)
        assert run.all_reduce_partial(numpy.ones(3)).contributed


def test_members_that_disagree(pair: Pair) -> None:
    a, b = pair
    with pytest.raises(pccl.InvalidArgument, match="count"):
        together(lambda: a.all_reduce_partial(numpy.ones(4), deadline=1),
                 lambda: b.all_reduce_partial(numpy.ones(5), deadline=1))


INTERRUPTED = """
import sys, numpy, pccl
run = pccl.connect(sys.argv[1])
x = numpy.full(100000, 3.0)
try:
    print("ready", flush=True)
    run.all_reduce_partial(x, deadline=float(sys.argv[2]))
except KeyboardInterrupt:
    print("interrupted", flush=True)
if float(sys.argv[2]) < 10:
    assert run.all_reduce_partial(x, deadline=0.5).contributed
run.close()
"""


@pytest.mark.parametrize("deadline", ["3", "1000"])
def test_keyboard_interrupt(master: pccl.Master, script: Callable[..., Any],
                            deadline: str) -> None:
    with pccl.connect(master.address) as run:
        one = script(INTERRUPTED, master.address, deadline)
        while run.size < 2:
            run.update()
        one.wait_for("ready")
        one.interrupt()
        assert "interrupted" in one.succeed()


def test_close_ends_a_round_of_another_thread(pair: Pair) -> None:
    a, _ = pair
    texts: list[str] = []
    started = a.all_reduce_partial_async(numpy.ones(100), deadline=FOREVER)

    def wait() -> None:
        with pytest.raises(pccl.InvalidUsage) as caught:
            started.result()
        texts.append(caught.value.reason)

    thread = threading.Thread(target=wait)
    thread.start()
    a.close()
    thread.join(PATIENCE)
    assert not thread.is_alive() and "closed" in texts[0]
    for call in (started.wait, started.result, a.progress,
                 lambda: a.report_progress(1),
                 lambda: a.offer({"x": numpy.ones(1)}),
                 lambda: a.all_reduce_partial(numpy.ones(1))):
        with pytest.raises(pccl.InvalidUsage, match="closed"):
            call()


def test_forked_child(pair: Pair) -> None:
    a, b = pair
    operation = a.all_reduce_partial_async(numpy.ones(3), deadline=FOREVER)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        texts = []
        for call in (operation.result, a.progress,
                     lambda: a.all_reduce_partial(numpy.ones(3))):
            try:
                call()
            except pccl.InvalidUsage as error:
                texts.append(error.reason)
        del call, operation
        a.close()
        os.write(writer, "\n".join(texts).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        texts = pipe.read().split("\n")
    assert os.waitpid(child, 0)[1] == 0
    assert len(texts) == 3, texts
    assert all("belongs to the process that made it" in t for t in texts)
    b.all_reduce_partial(numpy.ones(3), deadline=FOREVER)
    assert operation.result().mean_contributors == 2


# ---------------------------------------------------------------- progress


def test_progress(pair: Pair) -> None:
    a, b = pair
    assert a.progress() == pccl.Progress(0, 0, 0, 0, False)
    a.report_progress(30, step=5, target=100)
    assert not a.progress().reached and a.progress().step == 5
    b.report_progress(70, step=5, target=100)
    for run in pair:
        while not run.progress().reached:
            pass
    b.report_progress(1, step=6, target=100)
    while a.progress().step != 6:
        pass
    assert a.progress().reached  # of step 5, which it has reported last
    with pytest.raises(pccl.InvalidArgument):
        a.report_progress(1 << 52, step=7)
    with pytest.raises(pccl.InvalidArgument, match="samples"):
        a.report_progress(-1)


# ------------------------------------------------- joining while others train


def test_a_newcomer_downloads_before_it_joins(master: pccl.Master) -> None:
    with pccl.connect(master.address) as first:
        state = {"w": numpy.arange(200_000.0), "step": 7}
        first.sync(state)
        first.offer(state)
        mine = {"w": numpy.zeros(200_000), "step": 0}
        joined: list[pccl.Run] = []
        thread = threading.Thread(target=lambda: joined.append(
            pccl.prefetch(mine, master.address)))
        thread.start()
        while first.size < 2:
            first.update()
        thread.join(PATIENCE)
        with joined[0] as second:
            assert second.prefetched is not None
            assert second.prefetched.rx_bytes >= mine["w"].nbytes
            assert second.prefetched.revision == second.prefetched.offered
            assert (mine["w"] == state["w"]).all()
            _, info = together(lambda: first.sync(state),
                               lambda: second.sync(mine))
            assert mine["step"] == 7 and info.rx_bytes < 1000
            first.offer(state, revision=9, bytes_per_second=1 << 20,
                        round_part=0.5)
            first.offer(None)


def test_who_prefetches_first_founds_the_group(master: pccl.Master) -> None:
    with pccl.prefetch({"w": numpy.ones(3)}, master.address) as run:
        assert run.size == 1 and run.prefetched is None
        with pytest.raises(pccl.InvalidArgument):
            run.offer({"w": numpy.ones(3)}, round_part=2.0)
        with pytest.raises(pccl.InvalidUsage):
            run._prefetch([("w", numpy.ones(3), False)], 0)


PREFETCHES = """
import sys, numpy, pccl
try:
    print("ready", flush=True)
    pccl.prefetch({"w": numpy.ones(3)}, sys.argv[1])
except KeyboardInterrupt:
    print("interrupted")
"""


def test_prefetch_is_interrupted(master: pccl.Master,
                                 script: Callable[..., Any]) -> None:
    with pccl.connect(master.address):  # it offers nothing
        one = script(PREFETCHES, master.address)
        one.wait_for("ready")
        one.interrupt()
        assert "interrupted" in one.succeed()


def test_an_offer_keeps_its_arrays(pair: Pair) -> None:
    import weakref
    a, _ = pair
    x = numpy.ones(5)
    gone = weakref.ref(x)
    a.offer({"x": x})
    del x
    gc.collect()
    assert gone() is not None
    a.offer({"x": numpy.ones(5)})
    gc.collect()
    assert gone() is None
