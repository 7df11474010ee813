"""Everything that a run of the gate touches and was told, chosen in `app.py`."""

from __future__ import annotations

import threading
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from proofstone.adapters.architects import Architect
from proofstone.adapters.executors import Executor
from proofstone.config import GateSettings
from proofstone.config.backends import works_alone
from proofstone.contracts.budget import Budget
from proofstone.contracts.gate import FailureType
from proofstone.contracts.gate_record import TaskRecord
from proofstone.contracts.gate_setup import GateSetup
from proofstone.contracts.plan import Plan
from proofstone.engine.agents.casting import thinks
from proofstone.engine.agents.meter import Meter
from proofstone.engine.gate.journal import Journal
from proofstone.engine.gate.request import Watching
from proofstone.engine.world import World


@dataclass(frozen=True)
class GateWorld:
    world: World
    """Of the run's base, whose settings decide to the end: no task can loosen the checks of another. Each check gets a
    world of its own, see `at`."""
    setup: GateSetup
    plan_file: Path
    journal: Journal
    executor: Executor
    architect: Architect | None
    """Beside the rules, which always speak."""
    watching: Watching
    wait: bool
    """Wait for a person who executes a task."""
    minutes: float
    meter: Meter = field(default_factory=lambda: Meter(Budget()))
    """What agents have spent."""
    terminal: threading.Lock | None = None
    """Held by whoever speaks with the person at the terminal; None if there is none."""
    started: float = field(default_factory=time.monotonic)

    @property
    def plan(self) -> Plan:
        """As it is now: a task may have been given more since the run began."""
        return self.journal.plan

    @property
    def gate(self) -> GateSettings:
        return self.world.settings.gate

    def at(self, commit: str, task_id: str, attempt: int, scratch: Path) -> World:
        """The world for checks of one attempt of a task, onto that commit."""
        scratch.mkdir(mode=0o700, parents=True)
        world = self.world
        return replace(
            world,
            task_id=task_id,
            attempt=attempt,
            base_commit=commit,
            base_tree=world.store.git().tree_of(commit),
            notes=(),
            scratch=scratch,
            progress=self.watching.checks(task_id),
        )

    def executor_seconds(self, record: TaskRecord) -> float:
        usual = self.gate.agent_seconds if thinks(self.executor.spec) else self.gate.executor_seconds
        return max(usual, self.gate.executor_seconds_max) if _was_late(record) else usual

    def verify_seconds(self, record: TaskRecord) -> float:
        longest = max(self.gate.verify_seconds, self.gate.verify_seconds_max)
        return longest if _was_late(record) else self.gate.verify_seconds

    def architect_seconds(self, record: TaskRecord) -> float:
        alone = self.architect is not None and works_alone(self.architect.spec)
        usual = self.gate.agent_seconds if alone else self.gate.architect_seconds
        return max(usual, self.gate.architect_seconds_max) if _was_late(record) else usual

    def at_the_terminal(self, wanted: bool) -> AbstractContextManager[object]:
        """One question at a time: an answer must belong to the question above it."""
        return self.terminal if wanted and self.terminal is not None else nullcontext()

    @property
    def budget(self) -> str:
        """Why the budget is spent, if it is."""
        spent = (time.monotonic() - self.started) / 60
        return self.meter.stopped or (f"the run's {self.minutes:g} minutes are spent" if spent >= self.minutes else "")


def _was_late(record: TaskRecord) -> bool:
    """After a time-out the next attempt gets the longest deadline there is."""
    return bool(record.failures) and record.failures[-1].type is FailureType.TIMEOUT
