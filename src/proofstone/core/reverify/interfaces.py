"""Definitions as they stand in files, and which interfaces a change has changed.

An interface has changed when its header is another one, or when it is gone. One that is added breaks nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from proofstone.contracts.worked import ChangedSignature
from proofstone.core.reverify.mentions import changes_of
from proofstone.core.reverify.signatures import same


@dataclass(frozen=True)
class Standing:
    """A definition."""

    symbol: str
    """With what it is defined in: `Store.get`."""
    header: str
    """As it stands there, up to its body."""
    function: bool = True
    public: bool = True
    """Others may use it; also where that cannot be told."""
    called: tuple[str, ...] = ()
    """What it may be called in a signature, beside the last part of its name: a constructor by its class."""

    @property
    def short(self) -> str:
        return self.symbol.rpartition(".")[2]


@dataclass(frozen=True)
class Outlined:
    """The definitions of one file."""

    language: str
    standing: tuple[Standing, ...] = ()


def changed_interfaces(
    path: str, before: Outlined, after: Outlined | None, impact: Iterable[str] = ()
) -> tuple[ChangedSignature, ...]:
    """`after` None: the file is gone. `impact`: what plans said about interfaces before the work."""
    said = tuple(impact)
    return tuple(
        ChangedSignature(
            path=path, symbol=one.symbol, public=one.public, planned=any(changes_of(text, one.symbol) for text in said)
        )
        for one in _lost(before, after)
    )


def _lost(before: Outlined, after: Outlined | None) -> Iterator[Standing]:
    """Those of before that nothing of the same name and header stands for now. Each name once, public ones first."""
    told: set[str] = set()
    for one in sorted(before.standing, key=lambda one: not one.public):
        if one.symbol not in told and not _stands(one, after.standing if after else (), before.language):
            told.add(one.symbol)
            yield one


def _stands(wanted: Standing, standing: Sequence[Standing], language: str) -> bool:
    return any(one.symbol == wanted.symbol and same(wanted.header, one.header, language) for one in standing)
