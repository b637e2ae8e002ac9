"""pccl.cuda: whether shared state may lie on a GPU."""
from __future__ import annotations

from pccl import _native

is_cuda_available: bool = _native.has_cuda


def is_available() -> bool:
    """Whether shared state may lie on a GPU."""
    return is_cuda_available
