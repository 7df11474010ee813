"""What flows from a program, with the values that nobody may keep (keys) taken out of it.

A value may come in pieces: what could be the beginning of one is held back until it is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import AnyStr, Final, Generic

from proofstone.adapters.sandbox.job import Sink

HIDDEN: Final = "…"
"""What stands in its place."""


class Flow(Generic[AnyStr]):
    def __init__(self, values: Sequence[AnyStr], hidden: AnyStr) -> None:
        self._values: Sequence[AnyStr] = values
        self._hidden: AnyStr = hidden
        self._held: AnyStr = hidden[:0]

    def add(self, piece: AnyStr) -> AnyStr:
        """What may be shown by now."""
        known = without(self._held + piece, self._values, self._hidden)
        shown = len(known) - begun(known, self._values)
        self._held = known[shown:]
        return known[:shown]

    def end(self) -> AnyStr:
        """What was held back, and was the beginning of nothing."""
        rest, self._held = self._held, self._hidden[:0]
        return rest


def without(text: AnyStr, values: Sequence[AnyStr], hidden: AnyStr) -> AnyStr:
    for value in values:
        text = text.replace(value, hidden)
    return text


def begun(text: AnyStr, values: Sequence[AnyStr]) -> int:
    """How much of the end of the text may be the beginning of a value: the most, if several begin there."""
    return max((_begun(text, value) for value in values), default=0)


def _begun(text: AnyStr, value: AnyStr) -> int:
    at = text.find(value[:1], max(0, len(text) - len(value) + 1))
    while at >= 0:
        if value.startswith(text[at:]):
            return len(text) - at
        at = text.find(value[:1], at + 1)
    return 0


@dataclass(frozen=True)
class _MaskedSink:
    sink: Sink
    flow: Flow[bytes]

    def write(self, data: bytes, /) -> None:
        if known := self.flow.add(data):
            self.sink.write(known)


@contextmanager
def masked(sink: Sink, values: Sequence[bytes]) -> Iterator[Sink]:
    """The sink, as whoever may print the values is given it."""
    if not values:
        yield sink
        return
    flow = Flow(values, HIDDEN.encode())
    try:
        yield _MaskedSink(sink, flow)
    finally:
        if rest := flow.end():
            sink.write(rest)
