"""One exception class for each result of the library.

    PCCLError(Exception)
        NotInitialized(PCCLError, RuntimeError)
        InternalError(PCCLError, RuntimeError)
        InvalidArgument(PCCLError, ValueError)
        InvalidUsage(PCCLError, RuntimeError)
        TooFewPeers(PCCLError)
        MasterConnectionFailed(PCCLError, ConnectionError)
        RankConnectionFailed(PCCLError, ConnectionError)
        RankConnectionLost(PCCLError, ConnectionError)    call again
        NoSharedStateAvailable(PCCLError)
        PendingAsyncOps(PCCLError, RuntimeError)
        UpdateTopologyFailed(PCCLError, ConnectionError)
        TopologyOptimizationFailed(PCCLError)
        OperationFailed(PCCLError)
        Cancelled(PCCLError)
        TimedOut(PCCLError, TimeoutError)

`error.result` is the Result, `error.function` the call that failed, and
`error.reason` what the library says of it: which member, which argument.
"""
from __future__ import annotations

from enum import Enum

from pccl import _native


class Result(Enum):
    """The results of the library."""

    SUCCESS = 0
    NOT_INITIALIZED = 1
    INTERNAL_ERROR = 2
    INVALID_ARGUMENT = 3
    INVALID_USAGE = 4
    TOO_FEW_PEERS = 5
    MASTER_CONNECTION_FAILED = 6
    RANK_CONNECTION_FAILED = 7
    RANK_CONNECTION_LOST = 8
    NO_SHARED_STATE_AVAILABLE = 9
    PENDING_ASYNC_OPS = 10
    UPDATE_TOPOLOGY_FAILED = 11
    TOPOLOGY_OPTIMIZATION_FAILED = 12
    OPERATION_FAILED = 13
    CANCELLED = 14
    TIMED_OUT = 15
    FILE_ERROR = 16


class PCCLError(Exception):
    """A call of the library failed.

    The exception that is raised is of the class of its result; a program may
    also make one of PCCL 1.0's form, PCCLError(result, function).
    """

    result: Result
    function: str
    reason: str

    def __init__(self, result: Result | int, function: str = "",
                 reason: str = "") -> None:
        self.result = Result(result)
        self.function = function
        self.reason = reason
        text = f"{function} failed with {self.result.name}"
        super().__init__(f"{text}: {reason}" if reason else text)

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[type, tuple[int, str, str]]:
        return type(self), (self.result.value, self.function, self.reason)

    @staticmethod
    def check(result: int, function: str) -> None:
        """Raises the exception of a result that is not SUCCESS."""
        if result != Result.SUCCESS.value:
            raise error_class(result)(result, function)


class NotInitialized(PCCLError, RuntimeError):
    """The library was not initialized."""


class InternalError(PCCLError, RuntimeError):
    """Out of memory, descriptors, threads, or room for operations."""


class InvalidArgument(PCCLError, ValueError):
    """An argument is wrong here, or members disagree on one."""


class InvalidUsage(PCCLError, RuntimeError):
    """The call is not allowed now."""


class TooFewPeers(PCCLError):
    """A collective in a world of one."""


class MasterConnectionFailed(PCCLError, ConnectionError):
    """The master is unreachable, refused, or was lost: connect anew."""


class RankConnectionFailed(PCCLError, ConnectionError):
    """The members cannot all reach each other."""


class RankConnectionLost(PCCLError, ConnectionError):
    """A member was lost. The view is repaired and x is as it was: call again.
    """


class NoSharedStateAvailable(PCCLError):
    """No member that may give the shared state has it."""


class PendingAsyncOps(PCCLError, RuntimeError):
    """An operation has not been awaited, or a queue is full."""


class UpdateTopologyFailed(PCCLError, ConnectionError):
    """This member was evicted, or the master was lost: connect anew."""


class TopologyOptimizationFailed(PCCLError):
    """No ring connects all members."""


class OperationFailed(PCCLError):
    """A member ended the operation for all, with fail() or by Ctrl-C."""


class Cancelled(PCCLError):
    """The call was cancelled; what it waited for goes on."""


class TimedOut(PCCLError, TimeoutError):
    """The time limit passed; what it waited for goes on."""


class FileError(PCCLError, OSError):
    """A checkpoint cannot be written or read, or was damaged or edited."""


_CLASSES: list[type[PCCLError]] = [
    PCCLError, NotInitialized, InternalError, InvalidArgument, InvalidUsage,
    TooFewPeers, MasterConnectionFailed, RankConnectionFailed,
    RankConnectionLost, NoSharedStateAvailable, PendingAsyncOps,
    UpdateTopologyFailed, TopologyOptimizationFailed, OperationFailed,
    Cancelled, TimedOut, FileError,
]


def error_class(result: int) -> type[PCCLError]:
    """The exception class of a result."""
    return _CLASSES[result]


_native.set_errors(_CLASSES)
