"""What came of the trials, for people and programs."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from proofstone.contracts.base import Contract
from proofstone.contracts.verdict import Assurance


class Ending(StrEnum):
    """How one `proofstone check` ended."""

    PASSED = "passed"
    FAILED = "failed"
    UNVERIFIABLE = "unverifiable"
    REFUSED = "refused"
    """Bad input: it was not checked at all, and said why."""
    BROKEN = "broken"
    """Proofstone itself failed or did not come to an end: that stops nothing."""


class Judged(Contract):
    ending: Ending
    rules: tuple[str, ...] = ()
    """The rules of its findings, and the key words of its reasons."""
    reason: str = ""


class Standing(StrEnum):
    STOPPED = "stopped"
    OTHERWISE = "refused for another reason"
    """None of the rules that must stop it did: by luck, then, and not by design."""
    MISSED = "not stopped"
    BROKEN = "broken"
    NOT_TRIED = "not tried"


class Gate(StrEnum):
    """What a gate that looks at the exit code of the project's tests says to the trick."""

    PASSES = "passes"
    REFUSES = "refuses"
    NOT_RUN = "not run"


class Trial(Contract):
    """One trick and its twin."""

    trick: str
    does: str
    family: str
    layer: str
    origin: str
    project: str
    expected: tuple[str, ...]
    """The rules of which at least one must stop it."""
    standing: Standing
    stopped_by: tuple[str, ...] = ()
    cheat: Judged | None = None
    honest: Judged | None = None
    gate: Gate = Gate.NOT_RUN
    why: str = ""
    """Why it was not tried, what broke, or why the exit-code gate was not run."""

    @property
    def tried(self) -> bool:
        return self.standing is not Standing.NOT_TRIED

    @property
    def honest_passed(self) -> bool:
        return self.honest is not None and self.honest.ending is Ending.PASSED

    @property
    def well(self) -> bool:
        return not self.tried or (self.standing is Standing.STOPPED and self.honest_passed)


class Wall(Contract):
    """One thing that no check may do on this machine, and whether it could."""

    name: str
    attempt: str = ""
    """The name of the attempt in the threat model."""
    subject: str = ""
    """What it protects."""
    held: bool | None
    """None: not tried."""
    detail: str = ""
    fix: str = ""
    """What would raise it."""


class Summary(Contract):
    tricks: int
    """That were tried."""
    stopped: int
    honest_passed: int
    gate_run: int
    gate_passed: int
    """Tricks that an exit-code gate lets through."""
    not_tried: dict[str, int]
    """Why, and how many."""


class Proof(Contract):
    level: Assurance
    """The sandbox that checks get on this machine."""
    trials: tuple[Trial, ...]
    walls: tuple[Wall, ...] = ()
    advice: tuple[str, ...] = ()
    """What would raise the level."""

    @property
    def well(self) -> bool:
        """Every trick that was tried was stopped, every twin passed; and something was tried."""
        return any(trial.tried for trial in self.trials) and all(trial.well for trial in self.trials)

    @property
    def summary(self) -> Summary:
        return summed(self.trials)


def summed(trials: Sequence[Trial]) -> Summary:
    tried = [trial for trial in trials if trial.tried]
    reasons = [trial.why for trial in trials if not trial.tried]
    return Summary(
        tricks=len(tried),
        stopped=sum(trial.standing is Standing.STOPPED for trial in tried),
        honest_passed=sum(trial.honest_passed for trial in tried),
        gate_run=sum(trial.gate is not Gate.NOT_RUN for trial in tried),
        gate_passed=sum(trial.gate is Gate.PASSES for trial in tried),
        not_tried={why: reasons.count(why) for why in sorted(set(reasons))},
    )
