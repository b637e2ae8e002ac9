"""Rounds of the partial all-reduce, and how far a step of training is."""
from __future__ import annotations

import asyncio
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

from pccl import _native


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the vector, which all members have alike or none has."""

    begin: int   # its first element
    count: int   # elements
    weight: float  # sum of the weights of its contributors
    contributors: tuple[int, ...]  # ids of members; (): the part is missing

    @property
    def end(self) -> int:
        """The element behind the last one."""
        return self.begin + self.count


@dataclass(frozen=True, slots=True)
class PartialInfo:
    """What a round has: equal on all members but for the last three."""

    round: int
    count: int            # elements of the vector
    elements: int         # of them, those that are averaged
    members: tuple[int, ...]  # ids that the round was for
    coverage: tuple[Part, ...]  # ascending, without gaps
    contributed: bool     # this member's data are in some part
    tx_bytes: int
    rx_bytes: int

    @property
    def mean_coverage(self) -> float:
        """The share of the elements that are averaged, 0 to 1."""
        return self.elements / self.count if self.count else 1.0

    @property
    def mean_contributors(self) -> float:
        """Contributors of an element, on the average over the elements."""
        total = sum(len(p.contributors) * p.count for p in self.coverage)
        return total / self.count if self.count else 0.0


def _info(raw: _native._RawRound) -> PartialInfo:
    number, count, elements, contributed, sent, received = raw[:6]
    parts, members, sets, row = raw[6:]
    ids = tuple(members)

    def contributors(part: int) -> tuple[int, ...]:
        bits = int.from_bytes(sets[part * row:(part + 1) * row], "little")
        return tuple(m for at, m in enumerate(ids) if bits >> at & 1)

    return PartialInfo(
        number, count, elements, ids,
        tuple(Part(begin, length, weight, contributors(at))
              for at, (begin, length, weight, _) in enumerate(parts)),
        bool(contributed), sent, received)


class PartialOperation:
    """A round under way; it may be awaited by asyncio.

    The arrays are the library's until the round is over. It cannot be taken
    back: if this object goes away before that, the round goes on, by its
    deadline and at most one more, and the next round of its tag waits for it.
    """

    def __init__(self, round: _native.Round) -> None:
        self._round = round
        self._done: PartialInfo | None = None

    @property
    def tag(self) -> int:
        """The tag that it was started with."""
        return self._round.tag

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for up to timeout seconds and a twentieth.

        Returns whether result() would return at once. Several threads may
        wait."""
        return self._done is not None or self._round.wait(timeout)

    def result(self, timeout: float | None = None) -> PartialInfo:
        """Waits, and returns what the round has, or raises; TimedOut after
        timeout seconds, and then it goes on."""
        if self._done is None:
            self._done = _info(self._round.result(timeout))
        return self._done

    async def _wait(self) -> PartialInfo:
        # In slices, so that no thread waits for a round whose task is over.
        while not await asyncio.to_thread(self.wait, 0.2):
            pass
        return self.result()

    def __await__(self) -> Generator[Any, None, PartialInfo]:
        return self._wait().__await__()


class Progress(NamedTuple):
    """How far the group is with a step."""

    step: int     # of the group: the highest that a member has reported
    samples: int  # that the members have of it, as far as known here
    target: int   # that they are to have
    members: int  # that have reported for it
    reached: bool  # the step that was reported here last is to end now


class PrefetchInfo(NamedTuple):
    """What a download before joining did."""

    rx_bytes: int  # of blocks that differed
    revision: int  # of the oldest block
    offered: int   # the revision that was offered last
