"""The calls of libpccl_train, against numpy and with losses."""
from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

import pccl
from conftest import PATIENCE, join, together
from pccl import train

numpy = pytest.importorskip("numpy")
Pair = tuple[pccl.Run, pccl.Run]


def weights(value: float = 1.0) -> dict[str, Any]:
    return {"w": numpy.full((6, 4), value, "f4"),
            "b": numpy.full(4, value, "f4")}


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return all((a[name] == b[name]).all() for name in a)


# ------------------------------------------------------------------- local


def test_adamw() -> None:
    w, g = weights(), weights(0.5)
    m = v = 0.0
    by_hand = 1.0
    adam = train.AdamW(w, rate=0.1, decay=0.02)
    for step in range(1, 4):
        adam.step(w, g)
        m, v = 0.9 * m + 0.1 * 0.5, 0.999 * v + 0.001 * 0.25
        by_hand -= 0.1 * (m / (1 - 0.9**step) / (
            math.sqrt(v / (1 - 0.999**step)) + 1e-8) + 0.02 * by_hand)
    for x in w.values():
        assert numpy.allclose(x, by_hand, rtol=1e-5)
    adam.rate = 0.0
    before = w["w"].copy()
    adam.step(w, g)
    assert adam.rate == 0 and (w["w"] == before).all()


def test_sgd_takes_lists_and_what_is_no_numpy() -> None:
    import array
    w, g = [array.array("f", [1] * 3)], [array.array("f", [2] * 3)]
    sgd = train.SGD(w, rate=0.5, momentum=0.5)
    sgd.step(w, g)
    assert list(w[0]) == [1 - 0.5 * (2 + 0.5 * 2)] * 3


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    net = torch.nn.Linear(3, 2)
    w = dict(net.named_parameters())
    before = net.weight.detach().clone()
    train.SGD(w, rate=1.0, momentum=0.0).step(
        w, {name: torch.ones_like(x) for name, x in w.items()})
    assert torch.equal(net.weight.detach(), before - 1)


def test_clip() -> None:
    g = weights(2.0)
    assert train.clip(g) == pytest.approx(2 * math.sqrt(28))
    assert (g["w"] == 2).all()
    train.clip(g, 1.0)
    assert train.clip(g) == pytest.approx(1.0, rel=1e-6)
    train.clip_stage(g, 4)
    assert train.clip(g) == pytest.approx(0.5, rel=1e-6)
    g["b"][1] = numpy.nan
    with pytest.raises(pccl.OperationFailed):
        train.clip(g, 1.0)
    for stages in (0, -1):
        with pytest.raises(pccl.InvalidArgument):
            train.clip_stage(g, stages)


def test_state_is_memory_of_the_object() -> None:
    w = weights()
    adam = train.AdamW(w, name="inner")
    adam.step(w, weights(1.0))
    state = adam.state
    assert any("inner" in name for name in state)
    arrays = {name: numpy.asarray(x) for name, x in state.items()}
    assert sum(x.size for x in arrays.values()) >= 2 * 28
    del adam, state
    for x in arrays.values():
        x[...] = 0  # it is still there
    assert len(memoryview(train.Sparta(w).state.popitem()[1])) == 1


@pytest.mark.parametrize("make, error, words", [
    (lambda: train.AdamW(weights(), rate=-1.0), pccl.InvalidArgument, "rate"),
    (lambda: train.SGD(weights(), momentum=1.5), pccl.InvalidArgument,
     "momentum"),
    (lambda: train.AdamW({"w": numpy.ones((0, 3), "f4")}),
     pccl.InvalidArgument, "w"),
    (lambda: train.AdamW([]), pccl.InvalidArgument, None),
    (lambda: train.PowerSGD(weights(), rank=0), pccl.InvalidArgument, "rank"),
    (lambda: train.Sparta(weights(), parts=0), pccl.InvalidArgument, "parts"),
    (lambda: train.Sparta(weights(), deadline=-1.0), pccl.InvalidArgument,
     "deadline is -1"),
    (lambda: train.DiLoCo({"w": numpy.ones(3)}), pccl.InvalidArgument,
     "w is of float64"),
    (lambda: train.DiLoCo({"w": numpy.ones(6, "f4")[::2]}),
     pccl.InvalidArgument, "contiguous"),
    (lambda: train.DiLoCo({"w": [1.0]}), TypeError, None),
    (lambda: train.DiLoCo(weights(), quantize="complex"), KeyError, None),
])
def test_wrong_options(make: Callable[[], object], error: type[Exception],
                       words: str | None) -> None:
    with pytest.raises(error, match=words):
        make()


def test_wrong_arrays() -> None:
    w, g = weights(), weights()
    sgd = train.SGD(w)
    read_only = weights()
    read_only["w"].flags.writeable = False
    for bad, words in (
            ({"w": g["w"]}, "has no 'b'"),
            ({**g, "c": g["b"]}, "has 'c', which"),
            ({"w": g["w"], "c": g["b"]}, "has no 'b'"),
            ({**g, "b": numpy.ones(5, "f4")}, "b has 5 elements instead of 4"),
            ({**g, "b": numpy.ones(4)}, "b is of float64"),
            ([g["w"]], "1 arrays were passed for 2")):
        with pytest.raises(pccl.InvalidArgument, match=words):
            sgd.step(w, bad)
    sgd.step(w, read_only)  # gradients are read alone
    with pytest.raises(pccl.InvalidArgument, match="w is read-only"):
        sgd.step(read_only, g)
    sparta = train.Sparta(w, stat_count=2)
    with pytest.raises(TypeError, match="no pccl.Run"):
        sparta.step("run", w, numpy.zeros(2, "f4"))  # type: ignore[arg-type]


# -------------------------------------------------------------- with others


def test_powersgd(pair: Pair) -> None:
    rng = numpy.random.default_rng(1)
    shape = {"w": (32, 16), "b": (16,)}
    grads = [{name: rng.standard_normal(sides).astype("f4")
              for name, sides in shape.items()} for _ in pair]
    kept = [{name: x.copy() for name, x in g.items()} for g in grads]
    made = [train.PowerSGD(g, rank=2, seed=3) for g in grads]
    infos = together(*(lambda i=i: made[i].reduce(pair[i], grads[i])
                       for i in range(2)))
    assert infos[0].world_size == 2
    assert same(grads[0], grads[1])
    assert numpy.allclose(grads[0]["b"], (kept[0]["b"] + kept[1]["b"]) / 2)
    left = sum(numpy.asarray(m.error("w")).reshape(32, 16) for m in made) / 2
    mean = (kept[0]["w"] + kept[1]["w"]) / 2
    assert numpy.allclose(grads[0]["w"] + left, mean, atol=1e-4)
    assert made[0].error("b") is None
    info = made[0].info
    assert info.steps == 1 and info.compressed == 1
    assert info.sent < info.elements == 32 * 16 + 16
    grads[1]["w"][0, 0] = numpy.inf

    def fails(i: int) -> None:
        with pytest.raises(pccl.OperationFailed):
            made[i].reduce(pair[i], grads[i])
    together(lambda: fails(0), lambda: fails(1))
    assert made[0].info.steps == 1


def test_sparta_averages_each_element_once(pair: Pair) -> None:
    w = [weights(0.0), weights(2.0)]
    made = [train.Sparta(x, parts=4, every=2, stat_count=1) for x in w]
    rounds = 0
    for _ in range(8):
        stats = [numpy.full(1, float(i), "f4") for i in range(2)]
        infos = together(*(
            lambda i=i: made[i].step(pair[i], w[i], stats[i])
            for i in range(2)))
        if infos[0].world_size == 2:
            rounds += 1
            assert stats[0][0] == stats[1][0] == 0.5
            info = made[0].info
            assert info.averaged == info.chosen
    assert rounds == 4 and made[0].info.steps == 8
    assert same(w[0], w[1]) and same(w[0], weights(1.0))


def test_sparta_with_a_deadline(pair: Pair) -> None:
    w = weights(3.0)
    made = train.Sparta(w, parts=1, every=1, deadline=0.4)
    made.step(pair[0], w)  # the other one does not call
    assert made.info.averaged == made.info.chosen == 28
    assert same(w, weights(3.0))


@pytest.mark.parametrize("quantize", [None, "uint8"])
def test_diloco(pair: Pair, quantize: str | None) -> None:
    w = [weights(1.0), weights(1.0)]
    made = [train.DiLoCo(x, rate=1.0, momentum=0.0, stat_count=1,
                         quantize=quantize) for x in w]
    for i, x in enumerate(w):  # inner steps
        for array in x.values():
            array -= 0.5 + i
    stats = [numpy.full(1, 4.0 * i, "f4") for i in range(2)]
    infos = together(*(lambda i=i: made[i].step(pair[i], w[i], stats[i])
                       for i in range(2)))
    assert infos[0].world_size == 2 and same(w[0], w[1])
    assert numpy.allclose(w[0]["w"], 0.0, atol=0.02)
    progress = made[0].progress
    assert progress == train.DiLoCoProgress(1, 1, 2, (2.0,), False)
    made[0].get_weights(w[1])
    assert same(w[0], w[1])


def test_asynchronous_diloco(pair: Pair) -> None:
    w = [weights(1.0), weights(1.0)]
    made = [train.DiLoCo(x, rate=1.0, momentum=0.0) for x in w]
    for phase in range(3):
        for i in range(2):
            for array in w[i].values():
                array -= 1.0
            made[i].take(w[i])
        if phase > 0:
            together(*(lambda i=i: made[i].land(pair[i]) for i in range(2)))
            for one in made:
                one.apply()
        for i in range(2):
            made[i].launch(pair[i])
            assert made[i].progress.in_flight
            made[i].get_weights(w[i])
    assert same(w[0], w[1]) and made[0].progress.step == 2
    with pytest.raises(pccl.InvalidUsage):
        made[0].launch(pair[0])
    # One ends with its communicator, one goes away before it.
    pair[0].close()
    made.clear()


def test_a_newcomer_takes_the_outer_state(master: pccl.Master) -> None:
    with pccl.connect(master.address) as a:
        w = weights(5.0)
        outer = train.DiLoCo(w, goes_on_alone=True)
        w["w"] -= 1.0
        outer.step(a, w)
        with join(a, master.address) as b:
            mine = weights(0.0)
            new = train.DiLoCo(mine)
            together(lambda: a.sync(outer.state), lambda: b.sync(new.state))
            new.get_weights(mine)
            assert same(mine, w)
            assert new.progress.step == outer.progress.step == 1


def test_a_lone_survivor_discards_its_step(pair: Pair) -> None:
    a, b = pair
    w = weights(1.0)
    outer = train.DiLoCo(w)
    b.close()
    with pytest.raises(pccl.TooFewPeers):
        outer.step(a, w)
    assert outer.progress == train.DiLoCoProgress(0, 0, 0, (), False)


def test_one_thread_at_a_time(pair: Pair) -> None:
    a, b = pair
    w = [weights(), weights()]
    made = [train.DiLoCo(x) for x in w]
    thread = threading.Thread(target=made[0].step, args=(a, w[0]))
    thread.start()
    refused = False
    while not refused:
        try:
            _ = made[0].progress
        except pccl.InvalidUsage as error:
            refused = "another thread" in error.reason
    with pytest.raises(pccl.InvalidUsage, match="another thread"):
        made[0].apply()
    made[1].step(b, w[1])
    thread.join(PATIENCE)
    assert made[0].progress.step == 1


INTERRUPTED = """
import os, signal, sys, threading, numpy, pccl
from pccl import train
how, address = sys.argv[1:]
run = pccl.connect(address)
w = {"w": numpy.full((64, 64), 2.0, "f4")}
call = {
    "powersgd": lambda one=train.PowerSGD(w, rank=1): one.reduce(run, w),
    "sparta": lambda one=train.Sparta(w, parts=1, every=1): one.step(run, w),
    "diloco": lambda one=train.DiLoCo(w): one.step(run, w),
}[how]
one = call.__defaults__[0]
def interrupt():
    try:
        while True:
            one.state  # refused as soon as the call is under way
    except pccl.InvalidUsage:
        os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    call()
except KeyboardInterrupt:
    print("interrupted", flush=True)
other = {"w": w["w"].copy()}
try:
    one.reduce(run, other) if how == "powersgd" else one.step(run, other)
    raise SystemExit("it took other arrays")
except pccl.InvalidUsage as error:
    assert "interrupted" in error.reason, error
print("again", flush=True)
call()
assert (w["w"] == 2).all(), w
"""


@pytest.mark.parametrize("how", ["powersgd", "sparta", "diloco"])
def test_an_interrupted_call_is_taken_up(
        master: pccl.Master, script: Callable[..., Any], how: str) -> None:
    with pccl.connect(master.address) as run:
        one = script(INTERRUPTED, how, master.address)
        while run.size < 2:
            run.update()
        one.wait_for("interrupted")
        one.wait_for("again")
        w = {"w": numpy.full((64, 64), 2.0, "f4")}
        if how == "powersgd":
            train.PowerSGD(w, rank=1).reduce(run, w)
        elif how == "sparta":
            train.Sparta(w, parts=1, every=1).step(run, w)
        else:
            train.DiLoCo(w).step(run, w)
        one.succeed()


ENDS = """
import sys, numpy, pccl
from pccl import train
how, address = sys.argv[1:]
run = pccl.connect(address)
w = {"w": numpy.full((64, 64), 2.0, "f4")}
outer = train.DiLoCo(w)
outer.take(w)
outer.launch(run)
rounds = run.all_reduce_partial_async(numpy.ones(100000), deadline=1000)
if how == "object first":
    del outer, rounds
elif how == "run first":
    del run
elif how == "cycle":
    run.held = (run, outer, rounds)
    del run, outer, rounds
"""


@pytest.mark.parametrize("how", ["plain", "object first", "run first",
                                 "cycle"])
def test_interpreter_ends_with_a_mean_in_flight(
        master: pccl.Master, script: Callable[..., Any], how: str) -> None:
    with pccl.connect(master.address) as run:
        one = script(ENDS, how, master.address)
        while run.size < 2:
            run.update()
        status, _, errors = one.end()
        assert status == 0 and "Fatal" not in errors, (status, errors)


def test_forked_child(pair: Pair) -> None:
    a, b = pair
    w = [weights(), weights()]
    made = [train.DiLoCo(x) for x in w]
    made[0].take(w[0])
    made[0].launch(a)
    child = os.fork()
    if child == 0:
        good = False
        try:
            made[0].land(a)
        except pccl.InvalidUsage as error:
            good = "belongs to the process" in error.reason
        made[1].get_weights(w[1])  # what is local works
        made.clear()
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    made[1].step(b, w[1])
    made[0].land(a)
    made[0].apply()
    assert made[0].progress.contributors == 2
