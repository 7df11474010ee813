"""Signs of life within a turn: an agent that is silent for too long is spoken to, and stopped in the end.

A model cannot hear anything in the middle of its turn, and neither can most programs. So a ping is answered by whatever
the agent does next; and one that does nothing at all is stopped, and another begins.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from proofstone.adapters.executors.site import ShellJob, Site
from proofstone.adapters.sandbox.job import Execution
from proofstone.contracts.agent import Activity, ActivityKind, Fault
from proofstone.contracts.reverify.events import Event, TimePassed, TokensUsed, ToolUsed
from proofstone.engine.agents.attending import Listened

_TICK: Final = 0.1
"""Seconds between two looks at the clock, and at whether the run is stopped, if there is time for so many."""
_LOOKS: Final = 4
"""Looks at the clock before a silence is long."""

Tell = Callable[[Event], Fault | None]
"""What happened; why the turn is to be ended, if it is."""


@contextmanager
def listened_to(site: Site, silence: float, tell: Tell) -> Iterator[Listened]:
    """The site, as a backend has it whose silence counts. `tell` is called from several threads."""
    stop, over = threading.Event(), threading.Event()
    running: list[threading.Event] = []
    listened = Listened(_listening(site, stop, running, tell))
    tick = min(_TICK, silence / _LOOKS)

    def watch() -> None:
        try:
            while not (over.wait(tick) or site.cancel.is_set() or listened.stopped):
                listened.stopped = tell(TimePassed())
        finally:  # also if it cannot be told: a turn that nobody listens to would go on for ever
            if not over.is_set():
                stop.set()
                for enough in running:
                    enough.set()

    with ThreadPoolExecutor(1, "listening") as threads:
        watching = threads.submit(watch)
        try:
            yield listened
        finally:
            over.set()
        watching.result()  # what went wrong there is not swallowed


def _listening(site: Site, stop: threading.Event, running: list[threading.Event], tell: Tell) -> Site:
    def hear(text: str) -> None:
        if text.strip():
            tell(TokensUsed(tokens=0))
        site.hear(text)

    def noted(activity: Activity) -> None:
        tell(ToolUsed(name=activity.name) if activity.kind is ActivityKind.TOOL else TokensUsed(tokens=0))
        site.noted(activity)

    def run(job: ShellJob) -> Execution:
        enough = job.enough or threading.Event()
        running.append(enough)
        if stop.is_set():
            enough.set()
        return site.run(replace(job, enough=enough))

    return replace(site, cancel=stop, hear=hear, noted=noted, run=run)
