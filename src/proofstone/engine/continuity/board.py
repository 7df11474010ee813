"""What a person adds to a run while it is under way, and what all agents of the run are told, in numbered versions.

A word is an event of the whole run, in the order in which it was said; whoever is at work in a part of the run hears it
there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.adapters.ledger import Ledger
from proofstone.contracts.base import Contract
from proofstone.contracts.reverify.context import ContextItem, ContextSection, ContextVersion
from proofstone.contracts.reverify.text import brief
from proofstone.contracts.rows import EventRow
from proofstone.core.reverify.context import amended

ADDED: Final = "context.added"
_SCOPE: Final = "Scope"


class Added(Contract):
    """A requirement that was added."""

    number: int
    """In the run, from 1."""
    text: str
    files: tuple[str, ...] = ()
    """Whom it concerns: whoever may change one of these; none: everybody."""
    by: str = "person"

    @property
    def key(self) -> str:
        return f"requirement-{self.number}"


def say(ledger: Ledger, run_id: str, text: str, files: Sequence[str], by: str) -> Added:
    """On record, for whoever drives the run to hear."""
    ledger.append(
        EventRow(run_id=run_id, type=ADDED, payload={"text": text, "files": list(files), "by": by}),
    )
    return added_to(ledger, run_id)[-1]


def added_to(ledger: Ledger, run_id: str) -> tuple[Added, ...]:
    """What was added to the run so far."""
    rows = ledger.read(EventRow, run_id=run_id, type=ADDED)
    return tuple(
        Added.model_validate({"number": number, **stored.row.payload}) for number, stored in enumerate(rows, 1)
    )


@dataclass(frozen=True)
class Board:
    """What the agents of a run are told; version 1 is what the run began with."""

    ledger: Ledger
    run_id: str
    """Of the whole run: a part has no board of its own."""
    wanted: str
    """What the run is for, in a sentence."""

    def added(self) -> tuple[Added, ...]:
        return added_to(self.ledger, self.run_id)

    def versions(self) -> tuple[ContextVersion, ...]:
        request = ContextItem(key="request", text=brief(self.wanted))
        found = [ContextVersion(number=1, sections=(ContextSection(name=_SCOPE, items=(request,)),))]
        for one in self.added():
            found.append(amended(found[-1], _SCOPE, ContextItem(key=one.key, text=one.text, files=one.files)))
        return tuple(found)
