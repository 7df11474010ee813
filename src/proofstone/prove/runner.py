"""Try the catalogue, or a part of it, with a few workers, and show their progress.

A worker prefers projects that it has already created, so that it can reuse what Proofstone knows about their base. On a
terminal the running tricks are shown; elsewhere one line is printed at the end of each trial.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from proofstone.common.text import escape_control
from proofstone.prove.catalogue import Catalogue, Trick
from proofstone.prove.processes import find_missing
from proofstone.prove.results import Trial, TrialStatus, describe_stop
from proofstone.prove.trial import TrialBench, TrialInterruptedError, build_trial, try_trick
from proofstone.sandbox.limits import create_control_group

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status


class TrialObserver(Protocol):
    def on_start(self, trick: str) -> None: ...

    def on_end(self, trial: Trial) -> None: ...


@dataclass(frozen=True)
class TrialPlan:
    """How the trials are to be run."""

    place: Path
    """A folder for the trials, outside every temporary folder if possible: sandboxes have their own."""
    search: str
    jobs: int
    gate: bool = True
    """Whether to run the exit-code gate as well."""
    require_sandbox: bool = False
    kept: Path | None = None

    def create_bench(self, name: str, stop: threading.Event) -> TrialBench:
        """Create the workspace of a worker. Its state is its own, but the slots are shared, so that all workers
        together load the machine only once.
        """
        slots, state = self.place / "slots", self.place / name / "state"
        for folder in (slots, state):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (state / "slots").is_symlink():
            (state / "slots").symlink_to(slots)
        return TrialBench(self.place / name, self.search, stop, self.require_sandbox, self.kept)


@dataclass
class _TrickQueue:
    """The tricks that no worker has taken yet."""

    tricks: list[Trick]
    _projects_by_worker: dict[int, set[str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, worker: int) -> Trick | None:
        """Return the next trick: preferably of a project that this worker has created, then of one that no worker
        has, then any.
        """
        with self._lock:
            if not self.tricks:
                return None
            own_projects = self._projects_by_worker.setdefault(worker, set())
            other_projects = {
                name for projects in self._projects_by_worker.values() for name in projects
            } - own_projects
            ranks = [(trick.project not in own_projects) + (trick.project in other_projects) for trick in self.tricks]
            trick = self.tricks.pop(ranks.index(min(ranks)))
            own_projects.add(trick.project)
            return trick


def try_all(catalogue: Catalogue, tricks: Sequence[Trick], plan: TrialPlan, watcher: TrialObserver) -> list[Trial]:
    """Try every trick and return the trials in the catalogue's order. After an interrupt, everything that runs is
    stopped first.
    """
    missing_needs = _find_missing_needs(catalogue, tricks, plan.search)
    trials = {trick.name: build_trial(trick, TrialStatus.NOT_TRIED, why=missing_needs[trick.name]) for trick in tricks}
    waiting = _TrickQueue([trick for trick in tricks if not missing_needs[trick.name]])

    def work(worker: int, stop: threading.Event) -> None:
        bench = plan.create_bench(f"worker-{worker}", stop)
        while not stop.is_set() and (trick := waiting.take(worker)):
            watcher.on_start(trick.name)
            trial = try_trick(trick, catalogue.projects[trick.project], bench, gate=plan.gate)
            trials[trick.name] = trial
            watcher.on_end(trial)

    run_workers(work, min(plan.jobs, len(waiting.tricks)))
    return [trials[trick.name] for trick in tricks]


def run_workers(work: Callable[[int, threading.Event], None], count: int) -> None:
    """Run `work` in that many threads. The first error, or an interrupt, stops all of them and is raised."""
    stop = threading.Event()
    try:
        with ThreadPoolExecutor(max(count, 1)) as pool:
            futures = [pool.submit(work, number, stop) for number in range(count)]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                stop.set()
    finally:
        if group := create_control_group(0, 0):
            group.close()  # creating a group removes the groups of checks that were stopped
    for future in futures:
        error = future.exception()
        if error is not None and not isinstance(error, TrialInterruptedError):
            raise error


def _find_missing_needs(catalogue: Catalogue, tricks: Sequence[Trick], search: str) -> Mapping[str, str]:
    """Return what this machine lacks for each trick, or an empty string."""
    needs = {trick.name: {*catalogue.projects[trick.project].needs, *trick.needs} for trick in tricks}
    absent = find_missing(sorted(set().union(*needs.values())), search)
    return {
        name: "; ".join(absent[need] for need in sorted(required) if need in absent) for name, required in needs.items()
    }


@dataclass
class LiveTrials:
    """Show the trials on one console. Implements `runner.Watcher`."""

    console: Console
    total: int
    _ended_count: int = 0
    _running: list[str] = field(default_factory=list)
    _status: Status | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def on_start(self, trick: str) -> None:
        with self._lock:
            self._running.append(trick)
            self._show()

    def on_end(self, trial: Trial) -> None:
        with self._lock:
            self._running.remove(trial.trick)
            self._ended_count += 1
            self._show()
            if self._status is None or not trial.is_ok:
                honest = "" if trial.honest_passed or not trial.honest else f"; its honest twin {trial.honest.ending}"
                line = f"{self._ended_count} of {self.total}  {trial.trick}  {describe_stop(trial)}{honest}"
                self.console.print(escape_control(line), soft_wrap=True)

    def show_step(self, text: str) -> None:
        with self._lock:
            if self._status:
                self._status.update(f"{text} …")
            else:
                self.console.print(f"{text} …")

    @contextmanager
    def show_status(self) -> Iterator[None]:
        """Show what is running at the bottom of the terminal."""
        if not self.console.is_terminal:
            yield
            return
        with self.console.status("creating the sample projects …") as self._status:
            yield
        self._status = None

    def _show(self) -> None:
        if self._status:
            self._status.update(f"{self._ended_count} of {self.total}  {', '.join(self._running)}")
