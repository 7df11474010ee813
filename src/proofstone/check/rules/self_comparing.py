"""Tests that pass only because an answer compares itself.

The tests ran once more with plain copies in place of answers whose class overrides a comparison. A test that passed and
fails with them relies on that comparison, and not on the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from proofstone.check.models import TestReport
from proofstone.check.observation import ComparingAnswer
from proofstone.check.rules.outcome import EvidenceLayer
from proofstone.common.models import Finding, Severity
from proofstone.common.text import pluralize

RULE: Final = "self-comparing-answer"


def find_self_comparing(
    tests: Sequence[str],
    report: TestReport,
    plain: TestReport | None,
    comparing: Sequence[ComparingAnswer],
    *,
    check: str,
) -> list[Finding]:
    """Return one finding about the tests that pass in the report and fail with plain answers; none if there are none,
    or if the second run gave no report."""
    passed, reduced = report.by_id, plain.by_id if plain is not None else {}
    relying = [
        test
        for test in tests
        if test in passed and not passed[test].status.is_failure and test in reduced and reduced[test].status.is_failure
    ]
    if not relying or not comparing:
        return []
    first = comparing[0]
    more = f" and {pluralize(len(relying) - 1, 'other test')}" if len(relying) > 1 else ""
    passes = "pass" if more else "passes"
    return [
        Finding(
            layer=EvidenceLayer.SENSITIVITY,
            rule=RULE,
            severity=Severity.MINOR,
            detail=f"{relying[0]}{more} {passes} only because {first.kind}, with which {first.name} answers, compares "
            f"itself: with the plain {first.base} in its place it fails",
            fix=f"return a plain {first.base}, or show with a held-out check (--heldout) that the value is right",
            check=check,
            tests=tuple(relying),
        )
    ]
