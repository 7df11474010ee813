"""The time in which a person thinks about a question is not charged to the run: neither its clock nor its deadline."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from proofstone.ledger import Ledger
from proofstone.ledger.models import EventRow
from proofstone.runtime.context import Deadline
from proofstone.runtime.rules import PERSON_ANSWERED, PERSON_ASKED


@contextmanager
def pause_for_person(ledger: Ledger, run_id: str, deadline: Deadline) -> Iterator[None]:
    """Ask a person within this context. A process that is killed meanwhile counts until the question."""
    ledger.append(EventRow(run_id=run_id, type=PERSON_ASKED, payload={}))
    started = time.monotonic()
    try:
        yield
    finally:
        deadline.extend(time.monotonic() - started)
        ledger.append(EventRow(run_id=run_id, type=PERSON_ANSWERED, payload={}))
