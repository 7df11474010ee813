"""Rate the confidence in the outcome of a check. Every reason against high confidence has a row here.

High needs all of these; whatever is missing is a reason with its remedy, and makes the confidence medium:

| needed for high confidence                                | the function that finds what is missing |
|-----------------------------------------------------------|-----------------------------------------|
| the strongest sandbox                                     | `_find_weak_sandbox`                    |
| every check that the project has ran, on both trees       | `_list_unrun_checks`                    |
| no layer of evidence was left without an answer           | `_list_gaps`                            |
| no finding leaves something unproven                      | `_list_capping_findings`                |
| nobody accepted a finding                                 | `_list_accepted`                        |
| the scope was not amended                                 | `_list_amended`                         |
| a test fails without the change                           | `_list_uncovered`                       |
| the tests notice enough mistakes in the changed lines     | `_list_weak_tests`                      |

An outcome other than `passed` has low confidence, and a check without a change has none. A further condition is a
further function in `_CONDITIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.check.models import CheckKind, CheckLine, TestStrength
from proofstone.check.rules.acceptance import describe_acceptance
from proofstone.check.rules.call_answers import RULE as CALL_ANSWERS
from proofstone.check.rules.self_comparing import RULE as SELF_COMPARING
from proofstone.check.rules.strength import list_weak_reasons
from proofstone.common.models import (
    Acceptance,
    Assurance,
    ConfidenceRating,
    ConfidenceReason,
    Finding,
    Outcome,
    Verdict,
    rate_confidence,
)

CAPPING_RULES: Final = frozenset(
    (
        "flaky",
        "sandbox-failure",
        "check-dropped",
        "stack-reading",
        "submodule-dirty",
        "understanding-unverified",
        "special-casing",
        "shared-comparison",
        CALL_ANSWERS,
        SELF_COMPARING,
        "opaque-file",
        "disguised-name",
        "encoded-code",
        "loaded-code",
        "loosened-check",
    )
)
"""Rules of findings that leave something unproven although they refuse nothing."""
SETTLED_BY_HELD_OUT: Final = frozenset(("special-casing", "stack-reading", CALL_ANSWERS, SELF_COMPARING))
"""Suspicions that a held-out check which passed settles: it has inputs that the author of the change did not see."""


@dataclass(frozen=True)
class CheckGrounds:
    """What the confidence in a check is based on."""

    outcome: Outcome
    reason: str
    """Why the outcome is not `passed`."""
    checks: Sequence[CheckLine]
    findings: Sequence[Finding] = ()
    gaps: Sequence[ConfidenceReason] = ()
    """What the layers of evidence could not find out."""
    uncovered: Sequence[ConfidenceReason] = ()
    """Why no test of some check was seen to fail without the change."""
    failing_without: Sequence[str] = ()
    """Tests that were seen to fail without the change: they failed on the base, or with the source reverted."""
    accepted: Sequence[Acceptance] = ()
    amended: Sequence[str] = ()
    """Files that were added to the scope after the work had begun."""
    documentation_only: bool = False
    source_changed: bool = True
    """Whether the change touches anything but tests and the files that decide how they run."""
    strength: TestStrength | None = None
    strength_threshold: int = 0
    """The share of mistakes in the changed lines, in percent, that the tests must notice."""


def rate_check(grounds: CheckGrounds) -> ConfidenceRating:
    """Return the confidence in the outcome of a check, with the reasons against a higher one."""
    if grounds.outcome is Outcome.NOTHING_TO_CHECK:
        return ConfidenceRating(None)
    if grounds.outcome is not Outcome.PASSED:
        return rate_confidence(low=[ConfidenceReason(reason=grounds.reason, remedy=_find_remedy(grounds))])
    return rate_confidence(medium=[reason for condition in _CONDITIONS for reason in condition(grounds)])


def _find_remedy(grounds: CheckGrounds) -> str:
    """Return what would let the change pass."""
    if grounds.outcome is Outcome.NEEDS_DECISION:
        return "a person decides"
    if grounds.outcome is Outcome.FAILED:
        return "resolve the findings and the failing checks"
    remedies = [
        line.remedy for line in grounds.checks if line.required and line.verdict is Verdict.UNVERIFIABLE and line.remedy
    ]
    return "; ".join(dict.fromkeys(remedies)) or "let the checks run that could not be verified"


def _find_weak_sandbox(grounds: CheckGrounds) -> Iterator[ConfidenceReason]:
    levels = {line.assurance for line in grounds.checks if line.assurance is not None}
    if not levels:
        yield ConfidenceReason(
            reason="no check executed anything of the project",
            remedy="add tests that Proofstone can find, or name a command with --verify",
        )
    for level in sorted(levels - {Assurance.BUBBLEWRAP}):
        yield ConfidenceReason(
            reason=f"checks ran in a weaker sandbox ({level} instead of {Assurance.BUBBLEWRAP})",
            remedy="`proofstone doctor` says how to get the strongest one",
        )


def _list_unrun_checks(grounds: CheckGrounds) -> Iterator[ConfidenceReason]:
    for line in grounds.checks:
        is_unparsed_prose = line.kind is CheckKind.SYNTAX and grounds.documentation_only
        if line.verdict is Verdict.UNVERIFIABLE and not is_unparsed_prose:
            why = line.reason.removesuffix(f" ({line.remedy})")
            yield ConfidenceReason(reason=f"{line.name} could not run: {why}", remedy=line.remedy)
        elif line.verdict is Verdict.FAIL:
            yield ConfidenceReason(
                reason=f"{line.name} fails, and the settings let it not decide: {line.reason}",
                remedy=f"make {line.name} pass",
            )
        elif line.verdict is Verdict.PASS and line.baseline is Verdict.UNVERIFIABLE:
            yield ConfidenceReason(
                reason=f"{line.name} could not run on the base, so nothing shows what the change took away",
                remedy=f"check against a base on which {line.name} runs (--base)",
            )


def _list_gaps(grounds: CheckGrounds) -> Iterator[ConfidenceReason]:
    yield from grounds.gaps


def _list_capping_findings(grounds: CheckGrounds) -> Iterator[ConfidenceReason]:
    has_held_out = any(line.kind is CheckKind.HELD_OUT and line.verdict is Verdict.PASS for line in grounds.checks)
    for finding in grounds.findings:
        if finding.rule in CAPPING_RULES and not (has_held_out and finding.rule in SETTLED_BY_HELD_OUT):
            yield ConfidenceReason(reason=f"{finding.rule}: {finding.headline}", remedy=finding.fix)


def _list_accepted(grounds: CheckGrounds) -> Iterator[ConfidenceReason]:
    for acceptance in grounds.accepted:
        yield ConfidenceReason(
            reason=describe_acceptance(acceptance),
            remedy=f"resolve {acceptance.rule} instead of accepting it",
        )


def _list_amended(grounds: CheckGrounds) -> Iterator[ConfidenceReason]:
    for path in grounds.amended:
        yield describe_amended(path)


def describe_amended(path: str) -> ConfidenceReason:
    """Return the reason for a file that was added to the scope."""
    return ConfidenceReason(
        reason=f"{path} was added to the scope after the work had begun",
        remedy=f"plan the change of {path} before the work begins",
    )


def _list_uncovered(grounds: CheckGrounds) -> Iterator[ConfidenceReason]:
    if grounds.documentation_only:
        return
    if not grounds.source_changed:
        yield ConfidenceReason(reason="the change touches no source, so no test can fail without it")
    elif grounds.failing_without:
        return
    elif grounds.uncovered:
        yield from grounds.uncovered
    else:
        yield ConfidenceReason(
            reason="no test was seen to fail without the change", remedy="add a test that fails without the change"
        )


def _list_weak_tests(grounds: CheckGrounds) -> Iterator[ConfidenceReason]:
    yield from list_weak_reasons(grounds.strength, grounds.strength_threshold)


_CONDITIONS: Final[tuple[Callable[[CheckGrounds], Iterator[ConfidenceReason]], ...]] = (
    _find_weak_sandbox,
    _list_unrun_checks,
    _list_gaps,
    _list_capping_findings,
    _list_accepted,
    _list_amended,
    _list_uncovered,
    _list_weak_tests,
)


def list_failing_without(sensitive: Sequence[str], fixed: Sequence[str], checks: Sequence[CheckLine]) -> list[str]:
    """Return the tests that were seen to fail without the change. A check without test ids counts as one test."""
    flipped = [
        line.name
        for line in checks
        if line.kind.executes_change
        and line.tests is None
        and line.baseline is Verdict.FAIL
        and line.verdict is Verdict.PASS
    ]
    return sorted({*sensitive, *fixed, *flipped})
