"""Signals, threads, forks and ends at bad moments: an exception that says
what was wrong, and no crash."""
from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import pccl
from conftest import PATIENCE, join, together

numpy = pytest.importorskip("numpy")
Pair = tuple[pccl.Run, pccl.Run]


# ------------------------------------------------------------------ errors


def test_every_result_has_a_class() -> None:
    from pccl.errors import error_class
    for result in pccl.Result:
        error = error_class(result.value)(result, "call", "why")
        assert isinstance(error, pccl.PCCLError) and error.result is result
        assert str(error) == f"call failed with {result.name}: why"
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error)
    with pytest.raises(pccl.RankConnectionLost):
        pccl.PCCLError.check(8, "call")
    pccl.PCCLError.check(0, "call")
    assert issubclass(pccl.InvalidArgument, ValueError)
    assert issubclass(pccl.RankConnectionLost, ConnectionError)


# ----------------------------------------------------------------- closed


def test_closed(pair: Pair) -> None:
    a, b = pair
    under_way = a.all_reduce_async(numpy.zeros(3))
    other = b.id
    a.close()
    a.close()
    assert a.closed and repr(a) == "<pccl.Run, closed>"
    x = numpy.zeros(3)
    for call in (
            a.view, a.update, a.connect, a.optimize, a.barrier,
            lambda: a.rank, lambda: a.members, lambda: a.ring,
            lambda: a.traits, lambda: a.all_reduce(x),
            lambda: a.all_reduce_async(x), lambda: a.sync([x]),
            lambda: a.post(other, b""), a.take_event, lambda: a.fail(1),
            lambda: a.expect_bulk(other, 1, x), lambda: a.abort(1),
            under_way.result, under_way.wait, under_way.done):
        with pytest.raises(pccl.InvalidUsage, match="is closed"):
            call()


def test_operation_of_an_earlier_connection(master: pccl.Master) -> None:
    with pccl.connect(master.address) as a, pytest.raises(pccl.InvalidUsage):
        a.connect()


def test_not_connected(master: pccl.Master) -> None:
    run = pccl.Run(bytes([127, 0, 0, 1]), master.port)
    for call in (run.view, run.update_topology, run.barrier,
                 lambda: run.attribute(1)):
        with pytest.raises(pccl.InvalidUsage):
            call()
    run.close()


@pytest.mark.parametrize("arguments", [
    (b"abc", 1), (b"abcd", 70000), (b"abcd", -1), (b"abcd", 1, 2**40),
    (b"abcd", 1, 0, 0, -1, -5.0), (b"abcd", 1, 0, 0, -1, float("nan"))])
def test_bad_addresses(arguments: Any) -> None:
    with pytest.raises(pccl.InvalidArgument):
        pccl.Run(*arguments)


def test_close_ends_the_calls_of_other_threads(pair: Pair) -> None:
    a, _ = pair
    texts: list[str] = []
    waiting = threading.Event()

    def reduce(tag: int) -> None:
        waiting.set()
        with pytest.raises(pccl.InvalidUsage) as caught:
            a.all_reduce(numpy.zeros(100), tag=tag)
        texts.append(caught.value.reason)

    threads = [threading.Thread(target=reduce, args=(tag,))
               for tag in range(3)]
    for thread in threads:
        thread.start()
    waiting.wait()
    a.close()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert len(texts) == 3 and all("closed" in text for text in texts)


def test_arrays_of_a_call_that_close_ends(master: pccl.Master) -> None:
    """The library uses them until close() has returned."""
    def reduce(run: pccl.Run) -> None:
        try:
            run.all_reduce(numpy.ones(3_000_000))
        except pccl.PCCLError:
            pass
        others = [numpy.full(3_000_000, 7.0) for _ in range(3)]
        assert all((other == 7).all() for other in others)

    with pccl.connect(master.address) as b:
        for _ in range(10):
            a = join(b, master.address)
            together(lambda: reduce(a), lambda: reduce(b), a.close)


# ----------------------------------------------------------------- signals

INTERRUPTED = """
import sys, time, numpy, pccl
what, address = sys.argv[1:]
if what == "connect":
    try:
        print("ready", flush=True)
        pccl.connect(address)
    except KeyboardInterrupt:
        print("interrupted")
    sys.exit()
run = pccl.connect(address)
other = [m.id for m in run.members if m.id != run.id]
x = numpy.full(100000, 3.0)
operation = run.all_reduce_async(x, tag=1) if "operation" in what else None
calls = {
    "all_reduce": lambda: run.all_reduce(x),
    "small": lambda: run.all_reduce(x[:2]),
    "barrier": run.barrier,
    "update": run.update_topology,
    "pending": run.peers_pending,
    "optimize": run.optimize,
    "sync": lambda: run.sync({"x": x}),
    "event": run.take_event,
    "operation": lambda: operation.result(),
    "operation wait": lambda: operation.wait(),
}
try:
    print("ready", flush=True)
    calls[what]()
    print("returned")
except KeyboardInterrupt:
    assert (x == 3).all()
    print("interrupted")
run.close()
"""

WAITING = ["all_reduce", "small", "barrier", "update", "pending", "optimize",
           "sync", "event", "operation", "operation wait", "connect"]


@pytest.mark.parametrize("what", WAITING)
def test_keyboard_interrupt(master: pccl.Master, script: Callable[..., Any],
                            what: str) -> None:
    with pccl.connect(master.address) as run:
        one = script(INTERRUPTED, what, master.address)
        while run.size < 2 and what != "connect":
            run.update()
        one.wait_for("ready")
        time.sleep(0.2)
        one.interrupt()
        assert "interrupted" in one.succeed()
        while what != "connect" and run.size > 1:  # it has left in order
            run.update(force=True)
        run.all_reduce(numpy.zeros(3), tag=77)


def test_interrupted_collective_fails_for_the_others(
        master: pccl.Master, script: Callable[..., Any]) -> None:
    with pccl.connect(master.address) as run:
        one = script(INTERRUPTED, "all_reduce", master.address)
        while run.size < 2:
            run.update()
        one.wait_for("ready")
        time.sleep(0.2)
        one.interrupt()
        assert "interrupted" in one.succeed()
        with pytest.raises((pccl.OperationFailed, pccl.RankConnectionLost)):
            run.all_reduce(numpy.full(100000, 3.0))


HANDLED = """
import os, signal, sys, numpy, pccl
run = pccl.connect(sys.argv[1])
seen = []
def handler(number, frame):
    seen.append(number)
    try:
        run.close()
    except pccl.InvalidUsage as error:
        assert "signal handler" in str(error)
        print("handled", flush=True)
signal.signal(signal.SIGUSR1, handler)
x = numpy.ones(5)
print("ready", flush=True)
run.all_reduce(x)
assert (x == 2).all() and seen == [signal.SIGUSR1], (x, seen)
"""


def test_a_handler_that_returns_leaves_the_call_waiting(
        master: pccl.Master, script: Callable[..., Any]) -> None:
    with pccl.connect(master.address) as run:
        one = script(HANDLED, master.address)
        while run.size < 2:
            run.update()
        one.wait_for("ready")
        time.sleep(0.2)
        one.process.send_signal(signal.SIGUSR1)
        one.wait_for("handled")
        run.all_reduce(numpy.ones(5))
        one.succeed()


# -------------------------------------------------------------------- fork


def test_forked_child(pair: Pair) -> None:
    a, b = pair
    operation = a.all_reduce_async(numpy.ones(3), tag=4)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        texts = []
        for call in (lambda: a.all_reduce(numpy.ones(3)), a.update,
                     operation.result, lambda: a.members):
            try:
                call()
            except pccl.InvalidUsage as error:
                texts.append(error.reason)
        a.close()
        del call, operation, a, b
        os.write(writer, "\n".join(texts).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        texts = pipe.read().split("\n")
    assert os.waitpid(child, 0)[1] == 0
    assert len(texts) == 4, texts
    assert all("belongs to the process that made it" in t for t in texts)
    b.all_reduce(numpy.ones(3), tag=4)
    assert operation.result().world_size == 2


def test_fork_beside_a_call(pair: Pair) -> None:
    """A child closes what another thread of its parent waits in."""
    a, b = pair
    waiting = threading.Thread(target=a.barrier, kwargs={"tag": 1})
    waiting.start()
    for _ in range(10):  # at the latest the last one sees it wait
        child = os.fork()
        if child == 0:
            a.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    b.barrier(tag=1)
    waiting.join()


FORKS = """
import multiprocessing, sys, numpy, pccl
run = pccl.connect(sys.argv[1])
def work(x):
    return x + 1
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(work, range(4)) == [1, 2, 3, 4]
    x = numpy.ones(3)
    run.all_reduce(x)
def child():
    with pccl.Master() as own, pccl.connect(own.address) as mine:
        assert mine.size == 1
    sys.exit(0)
process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join()
assert process.exitcode == 0
run.all_reduce(x)
assert (x == 4).all(), x
"""


def test_workers_of_a_member(master: pccl.Master, script: Callable[..., Any]
                             ) -> None:
    with pccl.connect(master.address) as run:
        one = script(FORKS, master.address)
        while run.size < 2:
            run.update()
        run.all_reduce(numpy.ones(3))
        run.all_reduce(numpy.full(3, 2.0))
        one.succeed()


# ---------------------------------------------------------------- the end

ENDS = """
import atexit, os, sys, threading, numpy, pccl
how, address = sys.argv[1:]
run = pccl.connect(address)
other = [m.id for m in run.members if m.id != run.id][0]
started = [run.all_reduce_async(numpy.ones(200000), tag=i) for i in range(9)]
run.expect_bulk(other, 1, numpy.zeros(200000))
if how == "thread":
    thread = threading.Thread(target=run.barrier, daemon=True)
    thread.start()
elif how == "garbage":
    del run, started
    import gc
    gc.collect()
elif how == "exception":
    raise ValueError("on purpose")
elif how == "cycle":
    run.me, run.operations = run, started
    del run, started
elif how == "global":
    import builtins
    builtins.kept = (run, started)
"""


@pytest.mark.parametrize(
    "how", ["plain", "thread", "garbage", "exception", "cycle", "global"])
def test_interpreter_ends_with_operations_under_way(
        master: pccl.Master, script: Callable[..., Any], how: str) -> None:
    with pccl.connect(master.address) as run:
        one = script(ENDS, how, master.address)
        while run.size < 2:
            run.update()
        others = [run.all_reduce_async(numpy.ones(200000), tag=i)
                  for i in range(4)]
        status, _, errors = one.end()
        assert status == (how == "exception"), (status, errors)
        assert "Fatal" not in errors and "Segmentation" not in errors
        for operation in others:
            try:
                operation.result()
            except pccl.RankConnectionLost:
                pass
        assert run.all_reduce(numpy.ones(3), retry=True).world_size == 1


def test_many_runs_leave_nothing(master: pccl.Master) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with pccl.connect(master.address) as a:
            b = join(a, master.address)
            b.close()
    assert len(os.listdir("/proc/self/fd")) <= before + 2


def test_master() -> None:
    with pccl.Master() as master:
        with pytest.raises(pccl.InvalidUsage):
            master.run()
        threading.Timer(0.2, master.interrupt).start()
        master.join()
    master.close()
    for call in (master.run, master.interrupt, master.join,
                 lambda: master.port):
        with pytest.raises(pccl.InvalidUsage, match="closed"):
            call()
    with pytest.raises(pccl.InvalidUsage):
        pccl.Master().interrupt()


SERVES = """
import sys, pccl
with pccl.Master() as master:
    try:
        print("ready", flush=True)
        master.join()
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_master_is_interrupted(script: Callable[..., Any]) -> None:
    one = script(SERVES)
    one.wait_for("ready")
    time.sleep(0.2)
    one.interrupt()
    assert "interrupted" in one.succeed()
