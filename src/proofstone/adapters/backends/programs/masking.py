"""Keys of the person's that a program was given: whatever it says, they are neither shown nor kept.

Rules: a value counts by the name of its variable, and only if it is long enough to be one: a placeholder's letters are
in every word. It is looked for as it is and as JSON spells it, and hidden too where a text ends in the middle of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from proofstone.adapters.executors.masked import HIDDEN, Flow, begun, without

_KEYS: Final = ("_KEY", "_TOKEN", "_SECRET", "_HEADERS")
_HEADERS: Final = "_HEADERS"
_SHORTEST: Final = 8


@dataclass(frozen=True)
class Mask:
    values: tuple[str, ...] = ()
    """The longest first: one may be a part of another."""

    @staticmethod
    def of(variables: Mapping[str, str]) -> Mask:
        found = {spelt for name, value in variables.items() for one in _secrets(name, value) for spelt in _spelt(one)}
        return Mask(tuple(sorted((one for one in found if len(one) >= _SHORTEST), key=len, reverse=True)))

    @property
    def raw(self) -> tuple[bytes, ...]:
        return tuple(value.encode("utf-8", "surrogateescape") for value in self.values)

    def __call__(self, text: str) -> str:
        known = without(text, self.values, HIDDEN)
        whole = known.removesuffix(HIDDEN)
        cut = begun(whole, self.values)
        return f"{whole[:-cut]}{HIDDEN}" if cut >= _SHORTEST else known

    def flow(self) -> Flow[str]:
        """For what comes in pieces."""
        return Flow(self.values, HIDDEN)


def _secrets(name: str, value: str) -> Iterator[str]:
    if not name.endswith(_KEYS):
        return
    yield value.strip()
    if name.endswith(_HEADERS):  # `Name: value`, one a line; the value may say first of what scheme it is
        for line in value.splitlines():
            header = line.partition(":")[2].strip()
            yield header
            yield header.partition(" ")[2].strip()


def _spelt(value: str) -> set[str]:
    return {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
