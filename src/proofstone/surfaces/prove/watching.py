"""The trials while they run: on a terminal what is being tried, elsewhere a line at the end of each."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proofstone.surfaces.cli.text import printable
from proofstone.surfaces.prove.results import Trial
from proofstone.surfaces.prove.text import stopped_by

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status


@dataclass
class LiveTrials:
    """Implements `runner.Watcher` for one console."""

    console: Console
    total: int
    _ended: int = 0
    _running: list[str] = field(default_factory=list)
    _status: Status | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def started(self, trick: str) -> None:
        with self._lock:
            self._running.append(trick)
            self._show()

    def ended(self, trial: Trial) -> None:
        with self._lock:
            self._running.remove(trial.trick)
            self._ended += 1
            self._show()
            if self._status is None or not trial.well:
                honest = "" if trial.honest_passed or not trial.honest else f"; its honest twin {trial.honest.ending}"
                told = f"{self._ended} of {self.total}  {trial.trick}  {stopped_by(trial)}{honest}"
                self.console.print(printable(told), soft_wrap=True)

    def step(self, text: str) -> None:
        with self._lock:
            if self._status:
                self._status.update(f"{text} …")
            else:
                self.console.print(f"{text} …")

    @contextmanager
    def showing(self) -> Iterator[None]:
        """Keep what runs at the bottom of the terminal."""
        if not self.console.is_terminal:
            yield
            return
        with self.console.status("making the sample projects …") as self._status:
            yield
        self._status = None

    def _show(self) -> None:
        if self._status:
            self._status.update(f"{self._ended} of {self.total}  {', '.join(self._running)}")
