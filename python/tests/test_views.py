"""The view, groups, shared state and messages."""
from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest

import pccl
from conftest import join, together

numpy = pytest.importorskip("numpy")
Pair = tuple[pccl.Run, pccl.Run]


def test_view(pair: Pair) -> None:
    a, b = pair
    assert a.view() == (a.epoch, a.rank, a.size) and a.size == b.size == 2
    assert (a.rank, b.rank) == (0, 1) and a.epoch == b.epoch
    assert [m.rank for m in a.members] == [0, 1]
    assert a.members[1].id == b.id != a.id
    assert a.members[0].host == a.members[1].host
    assert sorted(a.ring) == [0, 1] and a.world_size == 2
    assert "rank 1 of 2" in repr(b)
    a.traits = 5
    with pytest.raises(pccl.InvalidArgument):
        a.traits = -1


def test_update_says_whether_members_changed(master: pccl.Master) -> None:
    with pccl.connect(master.address) as a:
        assert a.update() is False
        b = join(a, master.address)
        assert together(a.update, b.update) == [False, False]
        c: list[pccl.Run] = []

        def third() -> None:
            c.append(pccl.connect(master.address))

        thread = threading.Thread(target=third)
        thread.start()
        said = together(a.update, b.update)
        while not any(said):
            said = together(a.update, b.update)
        thread.join()
        assert said == [True, True]
        # A loss is reported to a newcomer as to the others.
        b.close()
        x = numpy.ones(3)
        together(lambda: a.all_reduce(x, retry=True),
                 lambda: c[0].all_reduce(x.copy(), retry=True))
        assert together(a.update, c[0].update) == [True, True]
        assert together(a.update, c[0].update) == [False, False]
        c[0].close()


def test_groups(master: pccl.Master) -> None:
    with pccl.connect(master.address, group=1) as a:
        with join(a, master.address, group=2) as b:
            assert a.world_size == b.world_size == 2
            assert a.size == b.size == 1 and a.group_count == 2
            together(a.update, b.update)


def test_address(master: pccl.Master) -> None:
    host, port = master.address.split(":")
    assert host == "127.0.0.1" and int(port) == master.port
    with pccl.connect(f"localhost:{port}") as run:
        assert run.size == 1
    for bad, words in [("127.0.0.1:x", "no port"), ("h:70000", "no port")]:
        with pytest.raises(pccl.InvalidArgument, match=words):
            pccl.connect(bad)
    with pytest.raises(pccl.MasterConnectionFailed, match="no name"):
        pccl.connect("no-such-host.invalid:1")


def test_no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PCCL_MASTER", raising=False)
    with pytest.raises(pccl.InvalidArgument, match="PCCL_MASTER"):
        pccl.connect()


def test_master_is_away() -> None:
    with pccl.Master() as away:
        address = away.address
    with pytest.raises(pccl.MasterConnectionFailed):
        pccl.connect(address, deadline=0.5)


def test_ipv6() -> None:
    try:
        six = pccl.Master("[::1]:0")
        six.run()
    except pccl.PCCLError:
        pytest.skip("this machine has no ::1")
    with six, pccl.connect(six.address) as run:
        assert run.size == 1


# ------------------------------------------------------------ shared state


def test_sync(pair: Pair) -> None:
    a, b = pair
    left: dict[str, Any] = {
        "w": numpy.arange(5.0), "layers": [numpy.ones(3, "f4")],
        "step": 7, "nested": {"lr": 0.5, "on": True, "name": "sgd",
                              "none": None, "betas": (0.9, 0.99)}}
    right: dict[str, Any] = {
        "w": numpy.zeros(5), "layers": [numpy.zeros(3, "f4")],
        "step": 0, "nested": {"lr": 0.1, "on": False, "name": "adam",
                              "none": None, "betas": (0.1, 0.2)}}
    infos = together(lambda: a.sync(left), lambda: b.sync(right))
    assert (right["w"] == numpy.arange(5)).all()
    assert (right["layers"][0] == 1).all()
    assert right["step"] == 7 and right["nested"]["lr"] == 0.5
    assert right["nested"]["on"] is True
    assert right["nested"]["name"] == "adam"  # a setting
    assert [info.revision for info in infos] == [0, 0]
    assert infos[0].tx_bytes == infos[1].rx_bytes > 0
    again = together(lambda: a.sync(left), lambda: b.sync(right))
    assert [(i.revision, i.rx_bytes) for i in again] == [(1, 0), (1, 0)]


def test_sync_strategies(pair: Pair) -> None:
    a, b = pair
    x, y = numpy.frombuffer(b"\1\2", "u1"), numpy.zeros(2, "u1")
    together(lambda: a.sync([x], strategy="send"),
             lambda: b.sync([y], strategy="receive"))
    assert list(y) == [1, 2]
    with pytest.raises(pccl.InvalidArgument, match="strategy is 'x'"):
        a.sync([y], strategy="x")


def test_newcomer_is_brought_along(master: pccl.Master) -> None:
    with pccl.connect(master.address) as a:
        x = numpy.arange(4.0)
        for _ in range(3):
            a.sync({"x": x})
        with join(a, master.address) as b:
            y = numpy.zeros(4)
            infos = together(lambda: a.sync({"x": x}),
                             lambda: b.sync({"x": y}))
            assert (x == y).all() and infos[0].revision == 3
            assert a.revision == b.revision == 4


def test_bad_state(pair: Pair) -> None:
    a, _ = pair
    with pytest.raises(pccl.InvalidArgument, match="a.b is read-only"):
        a.sync({"a": {"b": numpy.frombuffer(b"ab", "u1")}})
    with pytest.raises(TypeError, match="x is a object, and no array"):
        a.sync({"x": object()})
    with pytest.raises(pccl.InvalidArgument, match="w is not C-contiguous"):
        a.sync({"w": numpy.zeros((4, 4)).T[::2]})


def test_other_tensors_are_named(pair: Pair) -> None:
    a, b = pair
    x = numpy.zeros(3)

    def refused() -> None:
        with pytest.raises(pccl.InvalidArgument, match="weight"):
            b.sync({"weight": numpy.zeros(4)})
        b.sync({"weight": x.copy()})

    def goes_on() -> None:
        a.sync({"weight": x})
        a.sync({"weight": x})

    together(goes_on, refused)


# ---------------------------------------------------------------- messages


def events_until(run: pccl.Run, kind: str) -> pccl.Event:
    while True:
        event = run.take_event(1)
        if event is not None and event.kind == kind:
            return event


def test_messages(pair: Pair) -> None:
    a, b = pair
    assert a.take_event(0) is None
    a.post(b.id, b"body", b"head")
    a.post(b.id, numpy.arange(3, dtype="u1"))
    got = events_until(b, "message")
    assert (got.member, got.body, got.header) == (a.id, b"body", b"head")
    assert events_until(b, "message").body == b"\0\1\2"
    with pytest.raises(pccl.InvalidArgument):
        a.post(b.id, bytes(100_000))
    with pytest.raises(pccl.InvalidArgument):
        a.post(a.id, b"")
    with pytest.raises(pccl.RankConnectionLost):
        a.post(12345, b"")
    with pytest.raises(TypeError):
        a.post(b.id, "text")
    memory = numpy.arange(4, dtype="u1")  # as an address, which keeps it
    a.post(b.id, (memory.ctypes.data, memory.size, 0, 0, memory))
    assert events_until(b, "message").body == b"\0\1\2\3"


def test_bulk(pair: Pair) -> None:
    a, b = pair
    x, y = numpy.arange(200_000.0), numpy.zeros(200_000)
    a.send_bulk(b.id, 3, x)
    b.expect_bulk(a.id, 3, y)
    sent: list[pccl.Event] = []
    together(lambda: events_until(b, "received"),
             lambda: sent.append(events_until(a, "sent")))
    assert (x == y).all() and sent[0].key == 3 and sent[0].result == 0
    b.expect_bulk(a.id, 4, y)
    b.cancel_bulk(a.id, 4)
    with pytest.raises(pccl.InvalidUsage):
        b.cancel_bulk(a.id, 4)
    with pytest.raises(pccl.InvalidArgument, match="read-only"):
        b.expect_bulk(a.id, 5, b"abc")


def test_bulk_keeps_and_releases_its_array(pair: Pair) -> None:
    a, b = pair
    y = numpy.zeros(1000)
    alive = weakref.ref(y)
    b.expect_bulk(a.id, 1, y)
    del y
    gc.collect()
    assert alive() is not None
    b.cancel_bulk(a.id, 1)
    gc.collect()
    assert alive() is None


def test_lost_member_is_an_event(master: pccl.Master) -> None:
    with pccl.connect(master.address) as a:
        b = join(a, master.address)
        a.take_event(0)
        lost = b.id
        b.close()
        assert events_until(a, "lost").member == lost
