"""The result of an effect that has none, and the time that processes have worked on a run. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from proofstone.common.serialization import serializable


@serializable("runtime.done")
@dataclass(frozen=True)
class EffectDone:
    """The effect was performed; the workflow needs no more than that."""


PERSON_ASKED: Final = "person.asked"
PERSON_ANSWERED: Final = "person.answered"
_PAUSES: Final = ("run.finished", "run.interrupted", PERSON_ASKED)


def count_work_ms(marks: Iterable[tuple[str, str]], now: datetime) -> int:
    """Return the milliseconds that processes have worked on a run; the time between processes does not count. `marks`
    are the time and the type of each record, in order. A process that was killed counts until its last record. The time
    in which a person thinks about a question does not count. Times in the future and steps back in time come from a
    wrong clock and count for nothing.
    """
    total = timedelta()
    last: datetime | None = None  # the previous mark, while a process is at work
    for timestamp, type in marks:
        when = min(datetime.fromisoformat(timestamp), now)
        starts = type in ("run.started", "run.resumed", PERSON_ANSWERED)
        if last is not None and not starts:
            total += max(when - last, timedelta())
        last = when if (starts or last is not None) and type not in _PAUSES else None
    total += max(now - last, timedelta()) if last is not None else timedelta()
    return round(total.total_seconds() * 1000)
