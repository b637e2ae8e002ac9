"""`await operation`: asyncio's side of an operation under way."""
from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

from pccl import _native

# The first waits are short; a thread is worth its price for longer ones.
_POLLS = 20
_POLL_SECONDS = 0.0005
_SLICE_SECONDS = 0.2


async def _result(operation: _native.Operation) -> _native.ReduceInfo:
    for _ in range(_POLLS):
        if operation.done():
            return operation.result()
        await asyncio.sleep(_POLL_SECONDS)
    # In slices, so that no thread waits for an operation whose task is over.
    while not await asyncio.to_thread(operation.wait, _SLICE_SECONDS):
        pass
    return operation.result()


def iterate(operation: _native.Operation) -> Generator[
        Any, None, _native.ReduceInfo]:
    """What Operation.__await__ returns."""
    return _result(operation).__await__()
