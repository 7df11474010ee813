"""The small vocabularies that every other contract speaks."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


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
    """In a whole outcome; `core.confidence` has the rule."""

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
        own = {"blocking": cls.BLOCKER, "significant": cls.MAJOR, **{one.value: one for one in cls}}
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
