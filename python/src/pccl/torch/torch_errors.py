# torch_errors.py - exceptions of the backend, as torch's programs catch them.
"""What the library reports, as errors of torch.distributed."""
import torch.distributed as dist

from pccl.errors import PCCLError, Result


class PcclError(dist.DistBackendError):
    """A call of the library failed; `result` is its pccl.Result."""

    result = Result.INTERNAL_ERROR

    def __init__(self, text, result=None):
        super().__init__(text)
        if result is not None:
            self.result = result


class MemberLost(PcclError):
    """A member that the call needs is gone, and the call had no effect."""

    result = Result.RANK_CONNECTION_LOST


class MasterLost(PcclError):
    """This process is out of the run: evicted, or the coordinator is gone."""

    result = Result.MASTER_CONNECTION_FAILED


class InvalidArgument(PcclError, ValueError):
    """An argument is wrong here, or the members disagree on it."""

    result = Result.INVALID_ARGUMENT


class TooFewMembers(PcclError):
    """Fewer members are left than the run needs (pccl-master --min-ranks): on
    all of them, and the call had no effect. update() waits for others."""

    result = Result.TOO_FEW_PEERS


_CLASSES = {kind.result: kind for kind in (MemberLost, MasterLost,
                                           InvalidArgument, TooFewMembers)}


def translated(failure, doing):
    """The exception for one of the package."""
    kind = _CLASSES.get(failure.result, PcclError)
    reason = failure.reason or failure.result.name
    return kind(f"{doing}: {reason}", failure.result)


def destroyed(what):
    return PcclError(f"{what} was destroyed", Result.INVALID_USAGE)


class calling:
    """Around calls of the library: `with calling("send"): ...`"""

    __slots__ = ("doing",)

    def __init__(self, doing):
        self.doing = doing

    def __enter__(self):
        pass

    def __exit__(self, kind, failure, trace):
        if isinstance(failure, PCCLError):
            raise translated(failure, self.doing) from None
