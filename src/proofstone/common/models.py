"""What every contract has in common: frozen, and strict about unknown fields of our own.

The small vocabularies that every other contract speaks.

A finding: something a person must know, with where it is and what would put it right.

One complaint of a linter, type checker or parser.

What changed: two trees and the paths that differ between them.

What agents may spend, and what they have.

How deep a change is looked into.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints


class Contract(BaseModel):
    """A value that is said once and never changed."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Verdict(StrEnum):
    """Of one check. `unverifiable` never counts as a pass."""

    PASS = "pass"  # noqa: S105  the word, not a password
    FAIL = "fail"
    UNVERIFIABLE = "unverifiable"


class Outcome(StrEnum):
    """Of a whole `proofstone check`."""

    PASSED = "passed"
    FAILED = "failed"
    UNVERIFIABLE = "unverifiable"


class Confidence(StrEnum):
    """In a whole outcome; `check.rules.outcome` has the rule."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @staticmethod
    def weakest(levels: Iterable[Confidence]) -> Confidence | None:
        """The lowest of several; None of none."""
        strongest_first = (Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW)
        return max(levels, key=strongest_first.index, default=None)


class Severity(StrEnum):
    BLOCKER = "blocker"
    CRITICAL = "critical"
    MAJOR = "major"
    MINOR = "minor"

    @classmethod
    def _missing_(cls, value: object) -> Severity | None:
        """The plan gate's words are read too, and any word in either case."""
        word = value.lower() if isinstance(value, str) else ""
        own = {"blocking": cls.BLOCKER, "significant": cls.MAJOR, **{item.value: item for item in cls}}
        return own.get(word)


class Assurance(StrEnum):
    """How far a check was kept from the machine, strongest first."""

    BUBBLEWRAP = "bubblewrap"
    """Own mount, pid, user and network namespaces; the frozen tree stands at the repository's path."""
    LANDLOCK = "landlock"
    """The kernel refuses writes outside the checkout and new sockets; paths and processes are shared."""
    PLAIN = "plain"
    """A subprocess with limits and a deadline. It never signs."""


class Phase(StrEnum):
    BASELINE = "baseline"
    AFTER = "after"
    REVIEW = "review"


class ReviewVerdict(StrEnum):
    APPROVE = "approve"
    NEEDS_REVISION = "needs_revision"
    BLOCKER = "blocker"


class Finding(Contract):
    layer: str
    """What saw it: a layer of evidence (`check.rules.outcome` names them), `scope` or `cascade`."""
    rule: str
    severity: Severity
    detail: str
    fix: str
    """What an honest author would do."""
    path: str | None = None
    line: int | None = None
    check: str | None = None
    artifact: str | None = None
    """Hash of the full output that shows it."""
    before: str | None = None
    after: str | None = None
    """What stood there before the change, and what stands there now, where that says it best."""


class Diagnostic(Contract):
    """One complaint of a linter, type checker or parser."""

    path: str
    line: int | None = None
    code: str = ""
    message: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        """Without the line, so that a complaint which merely moved is the same complaint."""
        return (self.path, self.code, self.message)


TreeId = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]


class ChangeKind(StrEnum):
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


class ChangedPath(Contract):
    """One path that differs. `path` is for reading; bytes that are not UTF-8 appear as `\\xNN`."""

    path: str
    kind: ChangeKind
    mode: str
    """Git's mode after the change (`100644`, `120000` a symlink, `160000` a submodule); `000000` if deleted."""


class Change(Contract):
    base: TreeId
    tree: TreeId
    paths: tuple[ChangedPath, ...]

    @property
    def empty(self) -> bool:
        return self.base == self.tree


class Allowance(Contract):
    """Limits of one run, role or task. None: no limit of this kind here."""

    tokens: int | None = Field(default=None, ge=1)
    usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    requests: int | None = Field(default=None, ge=1)
    """Calls of a model."""
    tool_calls: int | None = Field(default=None, ge=1)
    minutes: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """That agents are at work, one beside the other added up."""


class Budget(Contract):
    """Limits of a whole run, of each of its tasks, and of all dispatches of a role in it."""

    run: Allowance = Allowance()
    task: Allowance = Allowance()
    roles: Mapping[str, Allowance] = {}


class Spent(Contract):
    """What one run, role or task has used so far."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    usd: float = 0.0
    """As far as prices are known."""
    unpriced: int = 0
    """Requests whose price is not known: the cost is more than `usd` then."""
    tool_calls: int = 0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @classmethod
    def of_turn(cls, usage: Usage, seconds: float) -> Spent:
        return cls(
            requests=usage.requests,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            usd=usage.usd or 0.0,
            unpriced=usage.requests if usage.usd is None else 0,
            seconds=seconds,
        )

    def __add__(self, other: Spent) -> Spent:
        return Spent.model_construct(
            **{name: getattr(self, name) + getattr(other, name) for name in Spent.model_fields}
        )


class Usage(Contract):
    """What a turn, or several, have used."""

    requests: int = 0
    input_tokens: int = 0
    """All of them, those from a cache too."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    usd: float | None = 0.0
    """None: the price of the model is not known."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        known = self.usd is not None and other.usd is not None
        return Usage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            usd=(self.usd or 0.0) + (other.usd or 0.0) if known else None,
        )


class Lane(StrEnum):
    """How deep a change is looked into. It follows from the files that are named, and is left as soon as the plan or
    the change leaves it."""

    DOCS = "docs"
    """Documentation alone: plan, task, checks, commit."""
    FIX = "fix"
    """One task, nothing of it 🔴: plan, task, checks, one reviewer, commit."""
    STANDARD = "standard"
    LARGE = "large"
    """Something of it is 🔴: the whole of it is checked to the last tier, whichever of its files are."""


SHORT: Final = frozenset((Lane.DOCS, Lane.FIX))
"""Lanes that begin with the plan: the person's words stand for specification and design."""
