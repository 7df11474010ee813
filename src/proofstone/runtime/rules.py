"""The time that processes were at work on a run. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta


def worked_ms(marks: Iterable[tuple[str, str]], now: datetime) -> int:
    """How long processes were at work on a run; the time between them does not count. `marks`: when something was
    recorded, and its type, in order. One that was killed was at work until the last thing that it recorded. Times in
    the future, and steps back in time, come from a clock that was wrong: they count for nothing."""
    total = timedelta()
    last: datetime | None = None  # the mark before, while somebody is at work
    for at, type in marks:
        when = min(datetime.fromisoformat(at), now)
        starts = type in ("run.started", "run.resumed")
        if last is not None and not starts:
            total += max(when - last, timedelta())
        last = when if (starts or last is not None) and type not in ("run.finished", "run.interrupted") else None
    total += max(now - last, timedelta()) if last is not None else timedelta()
    return round(total.total_seconds() * 1000)
