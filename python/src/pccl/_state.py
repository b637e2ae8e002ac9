"""State for sync(): nested dicts and lists as named arrays."""
from __future__ import annotations

import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple


class Flat(NamedTuple):
    """Named arrays, and what puts numbers back where they were."""

    entries: list[tuple[str, Any, bool]]
    numbers: list[Callable[[], None]]

    def write_back(self) -> None:
        """After the arrays of numbers were written."""
        for put in self.numbers:
            put()


def _put(holder: Any, key: Any, kind: type, cell: array.array[Any]
         ) -> Callable[[], None]:
    def put() -> None:
        value = kind(cell[0])
        if holder[key] != value:
            holder[key] = value
    return put


def _walk(flat: Flat, holder: Any, key: Any, name: str) -> None:
    value = holder[key]
    if isinstance(value, Mapping):
        for inner in value:
            _walk(flat, value, inner, f"{name}.{inner}" if name else
                  str(inner))
    elif value is None or isinstance(value, (str, bytes)):
        return
    elif isinstance(value, (bool, int, float)):
        if not hasattr(holder, "__setitem__"):
            return  # in a tuple: it belongs to the program's settings
        wide = isinstance(value, float)
        cell = array.array("d" if wide else "q", [value])
        flat.entries.append((name, cell, False))
        flat.numbers.append(_put(holder, key, type(value), cell))
    elif isinstance(value, (list, tuple)):
        for place in range(len(value)):
            _walk(flat, value, place, f"{name}.{place}" if name else
                  str(place))
    else:
        flat.entries.append((name, value, False))


def flatten(state: Mapping[Any, Any] | Sequence[Any] | Any) -> Flat:
    """The arrays of a state, in the order in which they stand there."""
    flat = Flat([], [])
    if isinstance(state, (Mapping, list, tuple)):
        _walk(flat, [state], 0, "")
    else:
        _walk(flat, [state], 0, "state")
    return flat
