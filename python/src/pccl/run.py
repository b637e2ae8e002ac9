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
from pccl.errors import (
    InvalidArgument, MasterConnectionFailed, NoSharedStateAvailable, Result)
from pccl.partial import (
    PartialInfo, PartialOperation, PrefetchInfo, Progress)

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

    # ------------------------------------- rounds that wait for nobody

    def all_reduce_partial(
            self, x: Any, out: Any = None, *, op: Any = "avg",
            weight: float = 1.0, deadline: float = 3.0, gather: float = 0.0,
            evict_after: int = 0, tag: int = 0) -> PartialInfo:
        """Averages by a deadline what has come by then; blocks until then.

        x, out: arrays in host memory of equal length and one of the twelve
        types, as all_reduce takes them; without out the result goes to x. The
        result's `coverage` says which parts of the vector are averaged and
        whose data are in them; elements of missing parts stay in out as they
        were. All members get the same parts with the same bits.

        op: "avg", the mean by weight, or "sum".
        weight: of this member's x, above 0; say the number of its samples.
        deadline: seconds from the first member's call to the end of the round.
        gather: seconds for which the first one waits for others to call before
        data move; 0: a quarter of the deadline. When all have called and hold
        all parts the round is over at once.
        evict_after: a member that is in no part of so many rounds in a row is
        evicted; 0: never.
        tag: rounds of a tag are counted; members call as often as each other.

        A loss or a straggler raises nothing. A member that calls after its
        round was decided gets that round's parts at once, with contributed
        False. Raises InvalidUsage if this member has missed rounds that are
        kept no more: sync() the state and go on; MasterConnectionFailed if it
        was evicted: connect anew; InvalidArgument where members disagree, or
        if the tag is under way. x and out are as they were then.

        Ctrl-C ends the waiting. The round itself goes on, with the arrays, by
        its deadline and at most one more; the next round of its tag waits for
        it.
        """
        return self.all_reduce_partial_async(
            x, out, op=op, weight=weight, deadline=deadline, gather=gather,
            evict_after=evict_after, tag=tag).result()

    def all_reduce_partial_async(
            self, x: Any, out: Any = None, *, op: Any = "avg",
            weight: float = 1.0, deadline: float = 3.0, gather: float = 0.0,
            evict_after: int = 0, tag: int = 0) -> PartialOperation:
        """Starts all_reduce_partial, which may run beside anything else.

        Returns an operation, to be awaited by result() or by asyncio. At most
        64 rounds of different tags are under way at once."""
        return PartialOperation(self._partial(
            x, out, op=op, weight=weight, deadline=deadline, gather=gather,
            evict_after=evict_after, tag=tag))

    def progress(self) -> Progress:
        """How many samples the group has of the step; never blocks.

        `reached` becomes true, and stays so, when the samples are the target,
        or when a member has gone on to a higher step: then all members average
        and begin the next one. Figures are at most a tenth of the run's
        deadline old. Raises MasterConnectionFailed if this member is out of
        the run: connect anew.
        """
        return Progress(*self._progress())

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

    def offer(self, state: Any, *, revision: int | None = None,
              bytes_per_second: int = 0, round_part: float = 0.0) -> None:
        """Lets newcomers download the state before they join; see prefetch().

        state: as sync() has it, in host memory or a GPU's. Nothing is copied:
        the arrays are kept and read by the library until the next offer, or
        offer(None), or close(); the program may go on writing them. Numbers
        are offered as they are now.
        revision: what newcomers are told; by default that of the last sync().
        bytes_per_second: to all newcomers together, 0 for no limit.
        round_part: newcomers are served in this first part of a round, 0 to 1,
        by the length of the last round; 0: in all of it.

        Local, does not block. Call it once in each round, after sync() or the
        outer step. Raises MasterConnectionFailed if this member is out of the
        run: connect anew.
        """
        entries = None if state is None else _state.flatten(state).entries
        self._offer(entries, self._last if revision is None else revision,
                    bytes_per_second, round_part)

    _prefetched: PrefetchInfo | None = None

    @property
    def prefetched(self) -> PrefetchInfo | None:
        """What prefetch() downloaded before this member joined, or None."""
        return self._prefetched

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


def _create(address: str | None, group: int, rank_hint: int, deadline: float,
            connections: int, evicts_nobody: bool, ports: str,
            announce: str) -> Run:
    text = _address.of_launcher() if address is None else address
    host, port = _address.resolve(text)
    return Run(host, port, group, connections, rank_hint, deadline,
               evicts_nobody, ports, announce)


def connect(address: str | None = None, *, group: int = 0,
            rank_hint: int = -1, deadline: float = 0.0, connections: int = 0,
            evicts_nobody: bool = False, attempts: int = 1, ports: str = "",
            announce: str = "") -> Run:
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
    ports: "FIRST-LAST" or "PORT", of which the first free one is where this
    process listens for others; "": PCCL_PORTS, or any.
    announce: "HOST" or "HOST:PORT", where others reach this process before they
    try the address that the master sees; "": PCCL_ANNOUNCE, or nothing. A wrong
    text, or a name that is not found, is InvalidArgument.
    """
    run = _create(address, group, rank_hint, deadline, connections,
                  evicts_nobody, ports, announce)
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


def prefetch(state: Any, address: str | None = None, *, max_stale: int = 0,
             group: int = 0, rank_hint: int = -1, deadline: float = 0.0,
             connections: int = 0, evicts_nobody: bool = False,
             attempts: int = 1, ports: str = "", announce: str = "") -> Run:
    """Downloads the state that members offer, and then joins, as connect().

    The members train on meanwhile, and do not know this process; the sync()
    that has to follow moves only what has changed since. Without it nothing of
    the state may be used: it is checked there.

    state: as sync() has it, with the members' names, types and lengths. Arrays
    are overwritten, also if the call fails; numbers are left to sync().
    max_stale: so many revisions a block may be behind what is offered. A
    newcomer that waits for its admission until it is further behind is
    refused, and downloads again here, up to `attempts` times in all.
    The others: as connect() has them.

    Blocks for a member to offer its state (Run.offer), without a limit; Ctrl-C
    ends it. Where nobody is in the group it founds it. Returns the run;
    run.prefetched says what was downloaded, None: nobody was there.
    """
    flat = _state.flatten(state)
    run = _create(address, group, rank_hint, deadline, connections,
                  evicts_nobody, ports, announce)
    for attempt in range(1, attempts + 1):
        try:
            try:
                run._prefetched = PrefetchInfo(
                    *run._prefetch(flat.entries, max_stale))
            except NoSharedStateAvailable:
                run._prefetched = None
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
