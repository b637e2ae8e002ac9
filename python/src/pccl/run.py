"""The Pythonic face: connect(), Run and Master."""
from __future__ import annotations

import atexit
import os
import time
import weakref
from collections.abc import Sequence
from enum import IntEnum
from types import TracebackType
from typing import Any, NamedTuple, Self

from pccl import _address, _native, _state
from pccl.errors import InvalidArgument, MasterConnectionFailed, Result

Member = _native.Member
ReduceInfo = _native.ReduceInfo
Operation = _native.Operation
Event = _native.Event


class ReduceOp(IntEnum):
    """How elements are joined."""

    SUM = 0
    AVG = 1
    PROD = 2
    MAX = 3
    MIN = 4


class Attribute(IntEnum):
    """Numbers of the world, for attribute()."""

    GLOBAL_WORLD_SIZE = 1
    LOCAL_WORLD_SIZE = 2
    NUM_DISTINCT_PEER_GROUPS = 3
    LARGEST_PEER_GROUP_WORLD_SIZE = 4


class SyncInfo(NamedTuple):
    """What a synchronization did."""

    revision: int
    tx_bytes: int
    rx_bytes: int


class Checkpoint(NamedTuple):
    """What a checkpoint has."""

    revision: int
    time_ns: int  # of the copy, since 1970
    cut_ns: int   # the time that a load chose by
    bytes: int    # of both files
    world_size: int


_STRATEGIES = {"popular": 0, "receive": 1, "send": 2}

# Whoever is alive at the end of the interpreter leaves its run then: arrays go
# away after that, and operations under way would write into them.
_alive: weakref.WeakSet[_native.Comm] = weakref.WeakSet()


@atexit.register
def _leave_all() -> None:
    for comm in list(_alive):
        comm.close()


class Run(_native.Comm):
    """A member of a run; made by connect().

    Collectives, messages and the view are methods of this object. Any thread
    may call; collectives that are under way at the same time have different
    tags. Blocking calls release the GIL, and Ctrl-C ends them.

    It is a context manager that leaves the run at the end. A forked child
    cannot use its parent's: its methods raise InvalidUsage there.
    """

    _revision = 0
    _last = 0  # of the last synchronization, or of what was loaded

    def __new__(cls, *args: Any, **keywords: Any) -> Self:
        self = super().__new__(cls, *args, **keywords)
        _alive.add(self)
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None,
                 error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<pccl.Run, closed>"
        epoch, rank, size = self.view()
        return f"<pccl.Run, rank {rank} of {size} in epoch {epoch}>"

    # ------------------------------------------------------------- the view

    @property
    def rank(self) -> int:
        """This member's place in its group, 0 .. size-1."""
        return self.view()[1]

    @property
    def size(self) -> int:
        """How many members the group has."""
        return self.view()[2]

    @property
    def epoch(self) -> int:
        """The number of the view in force; it changes with the members."""
        return self.view()[0]

    @property
    def world_size(self) -> int:
        """How many members the run has, in all groups."""
        return self.attribute(Attribute.GLOBAL_WORLD_SIZE)

    @property
    def group_count(self) -> int:
        """How many groups the run has."""
        return self.attribute(Attribute.NUM_DISTINCT_PEER_GROUPS)

    @property
    def members(self) -> list[Member]:
        """The members of the group, in rank order."""
        return self._members()[2]

    @property
    def id(self) -> int:
        """The id of this member, which it keeps while ranks change."""
        _, rank, members = self._members()
        return members[rank].id

    @property
    def ring(self) -> list[int]:
        """Ranks in the order in which large operations pass data on."""
        return self._ring()

    def connect(self) -> None:
        """Joins the run; waits until its members admit this one."""
        super().connect()
        self._seen = self.epoch

    _seen = 0

    def update(self, force: bool = False) -> bool:
        """Admits newcomers if any wait, or in any case with force.

        All members of all groups have to call, as often as each other. Returns
        whether this group's members are others than when it was last called,
        or connect(): the same answer for all of them.
        """
        if force or self.peers_pending():
            self.update_topology()
        before, self._seen = self._seen, self.epoch
        return self._seen != before

    # --------------------------------------------------------- shared state

    @property
    def revision(self) -> int:
        """The revision that the next sync() has, if none is given."""
        return self._revision

    @revision.setter
    def revision(self, value: int) -> None:
        self._revision = value

    def sync(self, state: Any, *, strategy: str = "popular",
             revision: int | None = None) -> SyncInfo:
        """Makes the state of all members equal, and returns what moved.

        state is a dict or a list, nested as one likes, of arrays, as a
        state_dict() is. Arrays are written in place. Numbers in dicts and
        lists are synchronized too and are replaced there; strings and None are
        left as they are. All members have equal names, shapes and types.

        strategy "popular": what most members hold wins. "send" gives only,
        "receive" takes only; then no member says "popular".

        Revisions count the calls of this method; a newcomer takes that of the
        others.
        """
        if strategy not in _STRATEGIES:
            raise InvalidArgument(
                Result.INVALID_ARGUMENT, "sync",
                f"strategy is '{strategy}', and none of popular, receive, "
                "send")
        flat = _state.flatten(state)
        wanted = self._revision if revision is None else revision
        got, sent, received = self._sync(flat.entries, wanted,
                                         _STRATEGIES[strategy])
        if strategy != "send":
            flat.write_back()
        self._revision = got + 1
        self._last = got
        return SyncInfo(got, sent, received)

    def save(self, directory: str | os.PathLike[str], state: Any, *,
             keep: int = 2, wait: bool = False,
             this_member: bool = False) -> None:
        """Writes a checkpoint of the state, after a sync() of it.

        All members call; the one with rank 0 copies the arrays and writes in
        the background (wait: without copy, and before it returns). The latest
        `keep` checkpoints of the group stay. If the save before failed, its
        FileError is raised and nothing is saved. this_member: this one writes,
        whatever its rank.
        """
        flat = _state.flatten(state)
        self._save(flat.entries, directory, self._last, keep, int(wait),
                   int(this_member))

    def await_save(self) -> Checkpoint | None:
        """Waits until the checkpoint is on the disk; None: there was none.

        Raises FileError if it could not be written.
        """
        done = Checkpoint(*self._await_save())
        return done if done.bytes > 0 else None

    def load(self, directory: str | os.PathLike[str], state: Any, *,
             revision: int | None = None, time_ns: int | None = None
             ) -> Checkpoint | None:
        """Reads a checkpoint into the state; None: there is none.

        It is the newest that all groups have come to, that of a revision, or
        the one nearest to a time. The next sync() has its revision. Nothing is
        overwritten unless all of it is what was written; FileError says what
        is not.
        """
        flat = _state.flatten(state)
        choice, value = 0, 0
        if revision is not None:
            choice, value = 3, revision
        elif time_ns is not None:
            choice, value = 2, time_ns
        found = self._load(flat.entries, directory, choice, value)
        if found is None:
            return None
        flat.write_back()
        self._revision = self._last = found[0]
        return Checkpoint(*found)


def connect(address: str | None = None, *, group: int = 0,
            rank_hint: int = -1, deadline: float = 0.0, connections: int = 0,
            evicts_nobody: bool = False, attempts: int = 1) -> Run:
    """Joins a run and returns this process's member of it.

    address: the master's "host:port"; None: of the pccl-master that started
    this process. Blocks until the members admit this one, at their next
    update().

    group: members with the same number do collectives with each other.
    rank_hint: wanted order among the first members.
    deadline: seconds for reaching the master, 0 for the default.
    connections: TCP connections to each neighbour, 0 for a choice.
    evicts_nobody: nobody is put out because members cannot reach each other.
    attempts: how often to try, a second apart.
    """
    text = _address.of_launcher() if address is None else address
    host, port = _address.resolve(text)
    run = Run(host, port, group, connections, rank_hint, deadline,
              evicts_nobody)
    for attempt in range(1, attempts + 1):
        try:
            run.connect()
            break
        except MasterConnectionFailed:
            if attempt == attempts:
                run.close()
                raise
            time.sleep(1)
        except BaseException:
            run.close()
            raise
    return run


class Master(_native.Master):
    """A coordinator inside this process; pccl-master is one in its own.

    As a context manager it runs from the beginning to the end of the block.
    """

    def __new__(cls, address: str = "127.0.0.1:0") -> Self:
        host, port = _address.resolve(address)
        self = super().__new__(cls, host, port)
        self._host = _address.split(address)[0] or "127.0.0.1"
        return self

    _host: str

    def __init__(self, address: str = "127.0.0.1:0") -> None:
        """Does not listen yet; port 0 is any free one."""

    @property
    def address(self) -> str:
        """What members on this host connect to."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host,
                                                         self._host)
        return f"[{host}]:{self.port}" if ":" in host else (
            f"{host}:{self.port}")

    def run(self) -> None:
        """Starts serving in a thread of its own."""
        super().run()
        self._runs = True

    _runs = False

    def __enter__(self) -> Self:
        if not self._runs:
            self.run()
        return self

    def __exit__(self, kind: type[BaseException] | None,
                 error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


def quantization(datatype: str, algorithm: str = "min_max"
                 ) -> Sequence[int]:
    """For quantize=...: the type of the codes and how they are spread.

    "min_max" spreads them between the extremes of a block,
    "zero_point_scale" keeps zero exact.
    """
    from pccl._pccl import DataType, QuantizationAlgorithm
    aliases = {"FLOAT32": "FLOAT", "FLOAT64": "DOUBLE"}
    name = datatype.upper()
    return (DataType[aliases.get(name, name)].value,
            QuantizationAlgorithm[algorithm.upper()].value)
