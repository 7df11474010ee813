"""The data of a replay: the commits of a history, what a check said about each, and the report on all of them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from proofstone.common.models import Confidence, FrozenModel, Outcome
from proofstone.ledger.models import RunConfig


class HistoryCommit(FrozenModel):
    """A commit of the history, and the parent that it is compared with."""

    commit: str
    parent: str
    """The first parent. For a merge it is the branch that the work was merged into."""
    tree: str
    subject: str
    is_merge: bool = False


class ReplayVerdict(StrEnum):
    """What the gate would have done with a commit."""

    PASSED = "passed"
    ASKED = "asked"
    """Nothing but findings that a person may accept refuses the commit: the gate would have asked."""
    REFUSED = "refused"
    UNVERIFIABLE = "unverifiable"
    UNCHANGED = "unchanged"
    """The commit has the tree of its parent."""


class ReplayFinding(FrozenModel):
    """A finding that refuses a commit."""

    rule: str
    detail: str
    path: str | None = None
    is_acceptable: bool
    """Whether a person may accept it."""


class ReplayCause(FrozenModel):
    """Why a commit could not be verified, and what would let it be."""

    reason: str
    remedy: str = ""


class ReplayedCommit(FrozenModel):
    """What a check said about one commit."""

    commit: HistoryCommit
    verdict: ReplayVerdict
    outcome: Outcome
    """The outcome of the check. It may say `failed` where the replay says `unverifiable`: what failed was the
    environment of today."""
    confidence: Confidence | None = None
    reason: str = ""
    """Why it did not pass, in one line."""
    findings: tuple[ReplayFinding, ...] = ()
    """The findings that refuse it."""
    causes: tuple[ReplayCause, ...] = ()
    """Why it could not be verified."""
    doubts: tuple[str, ...] = ()
    """Why the confidence is not high."""
    changed: int = 0
    """How many files it changes."""
    seconds: float = 0.0
    """How long the check took, by the clock."""
    report: str | None = None
    """The artifact that holds the whole report of the check."""

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(finding.rule for finding in self.findings))


class ReplayRunConfig(RunConfig):
    """What a replay was started with."""

    command: Literal["replay"] = "replay"
    commits: int

    @property
    def subject(self) -> str:
        return f"--last {self.commits}"


class ReplayReport(FrozenModel):
    """The result of `proofstone replay`, for people and programs."""

    run_id: str
    repository: str
    selection: str
    """Which commits were replayed, in words."""
    settings: str
    """Whose settings decided, in words."""
    sandbox: str
    jobs: int
    commits: tuple[ReplayedCommit, ...]
    """Oldest first."""
    known: int = 0
    """How many of them an earlier replay had checked already."""
    seconds: float = 0.0
    """How long this replay took, by the clock."""
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> Mapping[ReplayVerdict, int]:
        """The number of commits of each verdict, in the order of the verdicts."""
        verdicts = [replayed.verdict for replayed in self.commits]
        return {verdict: verdicts.count(verdict) for verdict in ReplayVerdict if verdict in verdicts}
