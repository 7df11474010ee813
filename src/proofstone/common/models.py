"""The models that every feature shares: frozen, and strict about unknown fields.

They cover verdicts and severities, findings and diagnostics, changes between two trees, budgets and their usage, and
the lanes that decide how thoroughly a change is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StringConstraints


class FrozenModel(BaseModel):
    """The base of all models: an immutable value without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Verdict(StrEnum):
    """The verdict of one check. `unverifiable` never counts as a pass."""

    PASS = "pass"  # noqa: S105  the word, not a password
    FAIL = "fail"
    UNVERIFIABLE = "unverifiable"


class Outcome(StrEnum):
    """The outcome of a whole `proofstone check`."""

    PASSED = "passed"
    FAILED = "failed"
    UNVERIFIABLE = "unverifiable"
    NOTHING_TO_CHECK = "nothing-to-check"
    """The work tree equals its base. Nothing was proven, and there is no confidence."""
    NEEDS_DECISION = "needs-decision"
    """The author disputes a finding, a test or a requirement, and a person must decide."""


class Confidence(StrEnum):
    """The confidence in an outcome that passed or failed; the rule is `rate_confidence`."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @staticmethod
    def weakest(levels: Iterable[Confidence]) -> Confidence | None:
        """Return the lowest of several levels, or None if there are none."""
        strongest_first = (Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW)
        return max(levels, key=strongest_first.index, default=None)


class ConfidenceReason(FrozenModel):
    """One reason why a confidence is not high."""

    reason: str
    remedy: str = ""
    """What would remove the reason; empty if nothing that the reader can do would."""

    def __str__(self) -> str:
        """Return the reason and its remedy in one line."""
        return f"{self.reason}; to raise it: {self.remedy}" if self.remedy else self.reason


class ConfidenceRating(NamedTuple):
    """A confidence, and why it is not higher."""

    confidence: Confidence | None
    """None if there is nothing to be confident about: nothing was checked, or the run has not ended."""
    reasons: tuple[ConfidenceReason, ...] = ()


def rate_confidence(
    low: Iterable[str | ConfidenceReason] = (), medium: Iterable[str | ConfidenceReason] = ()
) -> ConfidenceRating:
    """Return the confidence that follows from what speaks against it.

    This is the one rule for checks, tasks and runs: any reason in `low` makes it low, else any reason in `medium` makes
    it medium, else it is high.
    """
    for confidence, reasons in ((Confidence.LOW, low), (Confidence.MEDIUM, medium)):
        if kept := tuple(dict.fromkeys(map(as_reason, reasons))):
            return ConfidenceRating(confidence, kept)
    return ConfidenceRating(Confidence.HIGH)


def as_reason(reason: str | ConfidenceReason) -> ConfidenceReason:
    """Return a reason without a remedy for a plain text."""
    return ConfidenceReason(reason=reason) if isinstance(reason, str) else reason


class AcceptanceMethod(StrEnum):
    """How a person accepted a finding."""

    INTERACTIVE = "interactive"
    """The person answered a question at a terminal that named the finding."""
    SETTING = "setting"
    """The settings of the base accept it."""
    APPROVER = "approver"
    """The caller passed the identity of an approver, as CI does."""


class Acceptance(FrozenModel):
    """A person's acceptance of the findings of one rule."""

    rule: str
    reason: str
    accepted_by: str
    """Who accepted it: a user name, an approver's identity, or the settings file and commit."""
    method: AcceptanceMethod
    subject: str = ""
    """The test or file to which it is limited; empty if it covers all findings of the rule."""


class VerdictDispute(FrozenModel):
    """An agent's claim that a test, a requirement or a finding is wrong. It changes no verdict; a person decides."""

    subject: str
    """What is disputed: a test id, a rule of a finding, or a requirement."""
    claim: str
    """Why it is wrong, in the words of the one who disputes it."""
    raised_by: str = ""
    id: str = ""
    """Names a dispute in the ledger, for the decision about it; empty for a dispute of an executor."""


class Severity(StrEnum):
    BLOCKER = "blocker"
    CRITICAL = "critical"
    MAJOR = "major"
    MINOR = "minor"

    @classmethod
    def _missing_(cls, value: object) -> Severity | None:
        """Accept the words of the plan gate too, and any word in upper or lower case."""
        word = value.lower() if isinstance(value, str) else ""
        severities = {
            "blocking": cls.BLOCKER,
            "significant": cls.MAJOR,
            **{severity.value: severity for severity in cls},
        }
        return severities.get(word)


class Assurance(StrEnum):
    """How well a check was isolated from the machine, strongest first."""

    BUBBLEWRAP = "bubblewrap"
    """Separate mount, pid, user and network namespaces; the frozen tree is mounted at the repository's path."""
    LANDLOCK = "landlock"
    """The kernel refuses writes outside the checkout and new sockets; paths and processes are shared."""
    PLAIN = "plain"
    """A subprocess with limits and a deadline. Its result is never signed."""


class Phase(StrEnum):
    BASELINE = "baseline"
    AFTER = "after"
    REVIEW = "review"


class ReviewVerdict(StrEnum):
    APPROVE = "approve"
    NEEDS_REVISION = "needs_revision"
    BLOCKER = "blocker"


class Finding(FrozenModel):
    """A problem that a person must know about, with its location and its fix."""

    layer: str
    """The source of the finding: a layer of evidence (`check.rules.outcome` lists them), `scope` or `cascade`."""
    rule: str
    severity: Severity
    detail: str
    """What was found, in one line. Further lines name the tests that it is about, or quote the error."""
    fix: str
    """What an honest author would do."""
    path: str | None = None
    line: int | None = None
    check: str | None = None
    artifact: str | None = None
    """The hash of the full output that shows the problem."""
    before: str | None = None
    after: str | None = None
    """The text before and after the change, where that explains the finding best."""
    tests: tuple[str, ...] = ()
    """Ids of the tests that the finding is about. One finding names all tests that fail for the same reason."""

    @property
    def headline(self) -> str:
        """The first line of the detail. Further lines name tests, or quote an error."""
        return self.detail.partition("\n")[0]


class Diagnostic(FrozenModel):
    """One message of a linter, type checker or parser."""

    path: str
    line: int | None = None
    code: str = ""
    message: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        """The diagnostic without its line, so that one which only moved stays the same."""
        return (self.path, self.code, self.message)


TreeId = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]


class ChangeKind(StrEnum):
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


class ChangedPath(FrozenModel):
    r"""One path that differs. `path` is for display: bytes that are not UTF-8 appear as `\\xNN`."""

    path: str
    kind: ChangeKind
    mode: str
    """Git's mode after the change (`100644`, `120000` a symlink, `160000` a submodule); `000000` if deleted."""


class Change(FrozenModel):
    """The difference between two trees."""

    base: TreeId
    tree: TreeId
    paths: tuple[ChangedPath, ...]

    @property
    def is_empty(self) -> bool:
        return self.base == self.tree


class Allowance(FrozenModel):
    """The limits of one run, role or task. None means that there is no limit of this kind."""

    tokens: int | None = Field(default=None, ge=1)
    usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    requests: int | None = Field(default=None, ge=1)
    """Calls of a model."""
    tool_calls: int | None = Field(default=None, ge=1)
    minutes: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """The working time of agents; the times of agents that work in parallel are added up."""


class Budget(FrozenModel):
    """The limits of a whole run, of each of its tasks, and of all dispatches of a role in it."""

    run: Allowance = Allowance()
    task: Allowance = Allowance()
    roles: Mapping[str, Allowance] = {}


class BudgetUsage(FrozenModel):
    """What one run, role or task has used so far."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    usd: float = 0.0
    """The cost, as far as prices are known."""
    unpriced: int = 0
    """Requests whose price is unknown. If there are any, the real cost is more than `usd`."""
    tool_calls: int = 0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @classmethod
    def from_turn(cls, usage: Usage, seconds: float) -> BudgetUsage:
        return cls(
            requests=usage.requests,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            usd=usage.usd or 0.0,
            unpriced=usage.requests if usage.usd is None else 0,
            seconds=seconds,
        )

    def __add__(self, other: BudgetUsage) -> BudgetUsage:
        return BudgetUsage.model_construct(
            **{name: getattr(self, name) + getattr(other, name) for name in BudgetUsage.model_fields}
        )


class Usage(FrozenModel):
    """What one or more turns of a model have used."""

    requests: int = 0
    input_tokens: int = 0
    """All input tokens, including those from a cache."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    usd: float | None = 0.0
    """None if the price of the model is unknown."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        is_priced = self.usd is not None and other.usd is not None
        return Usage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            usd=(self.usd or 0.0) + (other.usd or 0.0) if is_priced else None,
        )


class Lane(StrEnum):
    """How thoroughly a change is checked.

    The lane follows from the files that the request names. A plan or change that goes beyond its lane moves to another
    one.
    """

    DOCS = "docs"
    """Only documentation: plan, task, checks, commit."""
    FIX = "fix"
    """One task without 🔴 files: plan, task, checks, one reviewer, commit."""
    STANDARD = "standard"
    LARGE = "large"
    """At least one file is 🔴, so every file is checked up to the last tier."""


SHORT_LANES: Final = frozenset((Lane.DOCS, Lane.FIX))
"""The lanes that begin with the plan: the user's request replaces specification and design."""
