"""Training over slow networks: optimizers, DiLoCo, PowerSGD, SPARTA, clipping.

Weights and gradients are float32 arrays in host memory (numpy, torch, whatever
has the buffer protocol or DLPack): a dict by name, as a state_dict() is, or a
list. They are read and written where they lie, and are not kept between calls
unless it is said. All members have equal names and shapes.

Each object has a `state`, a dict of arrays: the part that all members hold
alike. It goes into sync(), offer() and save() beside the weights:

    inner = pccl.train.AdamW(model, rate=3e-4)
    outer = pccl.train.DiLoCo(model)
    with pccl.connect() as run:
        while outer.progress.step < 100:
            if run.update() or fresh:
                run.sync(outer.state)
                outer.get_weights(model)
            for _ in range(500):
                inner.step(model, gradient(model))
            outer.step(run, model)

Results of values that all members hold are equal on all of them to the last
bit. A call that communicates changes nothing unless it succeeds: after
RankConnectionLost call it again. Ctrl-C in one leaves it under way in the
library; the same call with the same arguments takes it up, or close() ends it.
One thread at a time uses an object.

Where a member has numbers that are not finite, no call spoils the others: each
says what it does then.
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pccl import _native
from pccl.errors import InvalidArgument, Result
from pccl.run import ReduceInfo, Run

Arrays = Mapping[str, Any] | Sequence[Any]

_OPTIMIZER, _POWERSGD, _SPARTA, _DILOCO = range(4)
(_OPTIMIZE, _REDUCE, _ROUND, _STEP, _TAKE, _LAUNCH, _LAND, _APPLY,
 _GET) = range(1, 10)
_ADAMW, _NESTEROV = 0, 1


def _shape(x: Any) -> tuple[int, ...]:
    shape: Iterable[Any] | None = getattr(x, "shape", None)
    if shape is None:
        shape = memoryview(x).shape
    return tuple(int(side) for side in shape or ())


def _tensor(name: str, x: Any) -> tuple[str, int, int]:
    sides = _shape(x)
    if len(sides) < 2:
        return name, 1, math.prod(sides)
    return name, sides[0], math.prod(sides[1:])


def _items(arrays: Arrays) -> list[tuple[str, Any]]:
    if isinstance(arrays, Mapping):
        return [(str(name), x) for name, x in arrays.items()]
    return [(str(place), x) for place, x in enumerate(arrays)]


class _Object:
    """What all of them have."""

    def __init__(self, kind: int, arrays: Arrays, options: tuple[Any, ...],
                 keeps: bool = False) -> None:
        items = _items(arrays)
        self._names = [name for name, _ in items]
        self._native = _native.Train(
            kind, [_tensor(name, x) for name, x in items], options,
            [x for _, x in items] if keeps else None)

    def _list(self, arrays: Arrays, what: str) -> list[Any]:
        if not isinstance(arrays, Mapping):
            return list(arrays)
        if len(arrays) == len(self._names):
            try:
                return [arrays[name] for name in self._names]
            except KeyError as error:
                missing = error.args[0]
        else:
            missing = next((n for n in self._names if n not in arrays), None)
        extra = next((n for n in arrays if n not in self._names), None)
        raise InvalidArgument(
            Result.INVALID_ARGUMENT, type(self).__name__,
            f"{what} has no '{missing}'" if missing is not None else
            f"{what} has '{extra}', which the object was not made for")

    @property
    def state(self) -> dict[str, Any]:
        """What all members hold alike, as arrays that belong to this object:
        part of the state for sync(), offer(), save() and load()."""
        return dict(self._native.state())


class _Optimizer(_Object):
    _rate: float

    def step(self, weights: Arrays, gradients: Arrays) -> None:
        """Changes the weights by the gradients. Local.

        Equal gradients and states give equal bits on all members. Gradients
        that are not finite go in as they are: clip() notices them.
        """
        self._native.call(_OPTIMIZE, None, self._list(weights, "weights"),
                          self._list(gradients, "gradients"), 0.0)

    @property
    def rate(self) -> float:
        """Of the next steps; may be set, for schedules."""
        return self._rate

    @rate.setter
    def rate(self, rate: float) -> None:
        self._native.set_rate(rate)
        self._rate = rate


class AdamW(_Optimizer):
    """AdamW (Loshchilov & Hutter, ICLR 2019).

    weights: for their names and shapes; they are not kept.
    betas: of the first and the second moment, 0 to below 1.
    epsilon: above 0. decay: of weights; a step takes rate * decay of them.
    name: of its arrays in the shared state.
    """

    def __init__(self, weights: Arrays, rate: float = 1e-3, *,
                 betas: tuple[float, float] = (0.9, 0.999),
                 epsilon: float = 1e-8, decay: float = 0.01,
                 name: str = "optimizer") -> None:
        super().__init__(_OPTIMIZER, weights, (
            _ADAMW, rate, betas[0], betas[1], epsilon, decay, name))
        self._rate = rate


class SGD(_Optimizer):
    """SGD with Nesterov's momentum, as torch.optim.SGD(nesterov=True) has it.

    weights: for their names and shapes; they are not kept.
    momentum: 0 to below 1. name: of its arrays in the shared state.
    """

    def __init__(self, weights: Arrays, rate: float = 1e-2, *,
                 momentum: float = 0.9, name: str = "optimizer") -> None:
        super().__init__(_OPTIMIZER, weights, (
            _NESTEROV, rate, momentum, 0.0, 1e-8, 0.0, name))
        self._rate = rate


def clip(gradients: Arrays, limit: float = math.inf) -> float:
    """Scales the gradients, in place, to a Euclidean norm of at most limit.

    Local. Returns the norm over all of them before that; infinity measures and
    scales nothing. Clip the mean, so that all members scale alike. Raises
    OperationFailed, and scales nothing, if the norm is not finite: skip the
    step; with means all members do.
    """
    items = _items(gradients)
    return _native.clip([_tensor(name, x) for name, x in items],
                        [x for _, x in items], limit, 0, False)


def clip_stage(gradients: Arrays, stages: int, *, tail: bool = False) -> float:
    """clip() for one of `stages` of a model none of which knows the norm of
    the others: to 1 / sqrt(stages), the last one (tail) to 5 / sqrt(stages).
    """
    if stages < 1:
        raise InvalidArgument(Result.INVALID_ARGUMENT, "clip_stage",
                              f"stages is {stages}, and not at least 1")
    items = _items(gradients)
    return _native.clip([_tensor(name, x) for name, x in items],
                        [x for _, x in items], 0.0, stages, tail)


class PowerSGDInfo(NamedTuple):
    """What compression does with the list."""

    steps: int       # reductions that have succeeded, of the run
    compressed: int  # tensors; the others ride along as they are
    elements: int    # of all tensors
    sent: int        # numbers that are summed instead of them


class PowerSGD(_Object):
    """Means of gradients that travel as products of low rank
    (Vogels et al., NeurIPS 2019). What they leave out is added to the next
    gradients.

    tensors: for their names and shapes. Matrices are compressed that become
    half as large or less; a tensor counts as first side x the others.
    rank: 1 and up. seed: equal on all members. tag: of the operations.
    name: of its arrays in the shared state.
    """

    def __init__(self, tensors: Arrays, rank: int = 4, *, seed: int = 0,
                 tag: int = 0, name: str = "powersgd") -> None:
        super().__init__(_POWERSGD, tensors, (rank, seed, tag, name))

    def reduce(self, run: Run, gradients: Arrays, weight: float = 1.0
               ) -> ReduceInfo:
        """Replaces the gradients by their compressed mean over all members.

        Blocks as all_reduce does, twice. weight: what this member counts, 0
        and up: its samples, or 1. Raises RankConnectionLost: all is as it
        was, call again with the same gradients; OperationFailed: a member has
        numbers that are not finite, all skip the step, nothing has changed.
        """
        return self._native.call(_REDUCE, run,
                                 self._list(gradients, "gradients"), None,
                                 weight)

    @property
    def info(self) -> PowerSGDInfo:
        """How much is compressed."""
        return PowerSGDInfo(*self._native.info())

    def error(self, name: str) -> Any:
        """What of a tensor has not been sent yet, as an array; None: it is
        not compressed. This member's own, for its checkpoint; it may be
        written, and is valid until the next reduce()."""
        return self._native.error(self._names.index(name))


class SpartaInfo(NamedTuple):
    """Where the averages of parameters are."""

    steps: int     # of the run
    chosen: int    # elements of the last round here,
    averaged: int  # and those that are means now


class Sparta(_Object):
    """Sparse averages of parameters (Beton et al., 2025): in each `every`-th
    step one of `parts` parts of the weights is replaced by its mean.

    weights: for their names and shapes.
    seed: of the choice of elements; equal on all members.
    stat_count: further numbers that are averaged in each round.
    deadline: seconds after which a round ends with what has come, as
    all_reduce_partial does; 0: it waits for all members.
    """

    def __init__(self, weights: Arrays, *, parts: int = 20, every: int = 5,
                 seed: int = 0, tag: int = 0, stat_count: int = 0,
                 deadline: float = 0.0, name: str = "sparta") -> None:
        milliseconds = math.ceil(deadline * 1000)
        if not 0 <= milliseconds < 1 << 31:
            raise InvalidArgument(
                Result.INVALID_ARGUMENT, "Sparta",
                f"deadline is {deadline} seconds, and not 0 to 2147483")
        super().__init__(_SPARTA, weights, (parts, every, seed, tag,
                                            stat_count, name, milliseconds))

    def step(self, run: Run, weights: Arrays, stats: Any = None) -> ReduceInfo:
        """Counts a step; in each `every`-th one averages the next part.

        To be called in each step by all members; blocks in rounds alone.
        stats: stat_count numbers of float32, replaced by their means.
        world_size of the result is 0 in steps without a round. Raises
        RankConnectionLost (not with a deadline): call again; OperationFailed:
        nothing came, the weights are as they were, and the step counts. A
        member with numbers that are not finite takes the mean of the others.
        """
        return self._native.call(_ROUND, run, self._list(weights, "weights"),
                                 stats, 0.0)

    @property
    def info(self) -> SpartaInfo:
        """Where it is, and what has come of the last round."""
        return SpartaInfo(*self._native.info())


class DiLoCoProgress(NamedTuple):
    """Where a training is."""

    begun: int         # pseudo-gradients that were taken in the run
    step: int          # outer steps; less than begun: one is outstanding
    contributors: int  # members of the last outer step
    stats: tuple[float, ...]  # means of the last outer step
    in_flight: bool    # launched here and not landed


class DiLoCo(_Object):
    """Members train alone for some inner steps; the mean of what they have
    changed is one outer step, by SGD with Nesterov's momentum
    (Douillard et al., 2024).

    weights: the outer weights to begin with; copied. Five vectors of their
    size are held.
    rate, momentum: of the outer steps.
    stat_count: further numbers that are averaged along: a loss.
    tag: of the operations, this one and, quantized, the next.
    quantize: the type of codes by which pseudo-gradients travel: "uint8" sends
    a quarter; or as quantization() returns it.
    goes_on_alone: a member that all others have left applies its own
    pseudo-gradients; else it gets TooFewPeers.
    """

    def __init__(self, weights: Arrays, *, rate: float = 0.7,
                 momentum: float = 0.9, stat_count: int = 0, tag: int = 0,
                 quantize: str | Sequence[int] | None = None,
                 goes_on_alone: bool = False, name: str = "diloco") -> None:
        from pccl.run import quantization
        if isinstance(quantize, str):
            quantize = quantization(quantize)
        codes = tuple(quantize) if quantize is not None else (0, 0)
        super().__init__(_DILOCO, weights, (
            rate, momentum, stat_count, tag, *codes, name, goes_on_alone),
            keeps=True)

    def step(self, run: Run, weights: Arrays, stats: Any = None,
             weight: float = 1.0) -> ReduceInfo:
        """The outer step, whole; blocks for the others. Losses are handled
        inside: it returns with the mean of the survivors.

        weights: this member's after its inner steps; then the outer weights.
        stats: stat_count numbers of float32. weight: what this member counts,
        0 and up; 1 for all is the plain mean. Numbers that are not finite
        count 0. Raises TooFewPeers in a world of one: admit newcomers, sync,
        and go on from the weights. After an error the weights are as they
        were.
        """
        return self._native.call(_STEP, run, self._list(weights, "weights"),
                                 stats, weight)

    def take(self, weights: Arrays, stats: Any = None, weight: float = 1.0
             ) -> None:
        """Takes the pseudo-gradient, outer weights less these. Local.

        In asynchronous DiLoCo the mean of round k moves during the inner
        steps of round k + 1: take, then land and apply of the one before if
        one is in flight, launch, get_weights.
        """
        self._native.call(_TAKE, None, self._list(weights, "weights"), stats,
                          weight)

    def launch(self, run: Run) -> None:
        """Starts the mean of what was taken, and returns."""
        self._native.call(_LAUNCH, run, None, None, 0.0)

    def land(self, run: Run) -> ReduceInfo:
        """Waits for the mean in flight. Raises TooFewPeers, OperationFailed:
        it was dropped."""
        return self._native.call(_LAND, run, None, None, 0.0)

    def apply(self) -> None:
        """The outer step with the mean that has landed. Local."""
        self._native.call(_APPLY, None, None, None, 0.0)

    def get_weights(self, weights: Arrays) -> None:
        """Copies the outer weights into these. Local."""
        self._native.call(_GET, None, self._list(weights, "weights"), None,
                          0.0)

    @property
    def progress(self) -> DiLoCoProgress:
        """Where the training is. Local."""
        begun, step, contributors, stats, in_flight = self._native.info()
        return DiLoCoProgress(begun, step, contributors, tuple(stats),
                              in_flight)
