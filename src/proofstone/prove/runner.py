"""The whole catalogue, or a part of it, tried by a few workers.

A worker keeps to the projects that it has made already: what Proofstone knows about a project's base is known there.

The trials while they run: on a terminal what is being tried, elsewhere a line at the end of each.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from proofstone.common.text import printable
from proofstone.prove.catalogue import Catalogue, Trick
from proofstone.prove.processes import missing
from proofstone.prove.results import Standing, Trial, stopped_by
from proofstone.prove.trial import Bench, LeftError, told, try_trick
from proofstone.sandbox.limits import make_group

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status


class Watcher(Protocol):
    def started(self, trick: str) -> None: ...

    def ended(self, trial: Trial) -> None: ...


@dataclass(frozen=True)
class Plan:
    """How it is to be done."""

    place: Path
    """A folder for it, outside every temporary folder if possible: sandboxes have their own."""
    search: str
    jobs: int
    gate: bool = True
    """Also ask the exit-code gate."""
    require_sandbox: bool = False
    kept: Path | None = None

    def bench(self, name: str, stop: threading.Event) -> Bench:
        """A worker's place. Its state is its own but for the slots: all workers together load the machine once."""
        slots, state = self.place / "slots", self.place / name / "state"
        for folder in (slots, state):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (state / "slots").is_symlink():
            (state / "slots").symlink_to(slots)
        return Bench(self.place / name, self.search, stop, self.require_sandbox, self.kept)


@dataclass
class _Waiting:
    """The tricks that nobody has taken yet."""

    tricks: list[Trick]
    _made: dict[int, set[str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, worker: int) -> Trick | None:
        """The next one: of a project that the worker has made, else of one that nobody has, else any."""
        with self._lock:
            if not self.tricks:
                return None
            mine = self._made.setdefault(worker, set())
            others = {name for made in self._made.values() for name in made} - mine
            order = [(trick.project not in mine) + (trick.project in others) for trick in self.tricks]
            trick = self.tricks.pop(order.index(min(order)))
            mine.add(trick.project)
            return trick


def try_all(catalogue: Catalogue, tricks: Sequence[Trick], plan: Plan, watcher: Watcher) -> list[Trial]:
    """Every trick, in the catalogue's order. When the person leaves, everything that runs is ended first."""
    lacking = _lacking(catalogue, tricks, plan.search)
    trials = {trick.name: told(trick, Standing.NOT_TRIED, why=lacking[trick.name]) for trick in tricks}
    waiting = _Waiting([trick for trick in tricks if not lacking[trick.name]])

    def work(worker: int, stop: threading.Event) -> None:
        bench = plan.bench(f"worker-{worker}", stop)
        while not stop.is_set() and (trick := waiting.take(worker)):
            watcher.started(trick.name)
            trial = try_trick(trick, catalogue.projects[trick.project], bench, gate=plan.gate)
            trials[trick.name] = trial
            watcher.ended(trial)

    run_workers(work, min(plan.jobs, len(waiting.tricks)))
    return [trials[trick.name] for trick in tricks]


def run_workers(work: Callable[[int, threading.Event], None], count: int) -> None:
    """`work` in that many threads. The first error, or an interrupt, stops all of them and is raised."""
    stop = threading.Event()
    try:
        with ThreadPoolExecutor(max(count, 1)) as pool:
            futures = [pool.submit(work, number, stop) for number in range(count)]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                stop.set()
    finally:
        if group := make_group(0, 0):
            group.close()  # making one takes away those of checks that were ended
    for future in futures:
        error = future.exception()
        if error is not None and not isinstance(error, LeftError):
            raise error


def _lacking(catalogue: Catalogue, tricks: Sequence[Trick], search: str) -> Mapping[str, str]:
    """For each trick what this machine lacks, empty if nothing."""
    needs = {trick.name: {*catalogue.projects[trick.project].needs, *trick.needs} for trick in tricks}
    gone = missing(sorted(set().union(*needs.values())), search)
    return {name: "; ".join(gone[need] for need in sorted(wanted) if need in gone) for name, wanted in needs.items()}


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
