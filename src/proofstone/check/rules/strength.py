"""Decide what the mutants of the changed lines say about the tests: how many are tried, and what the result means.

A mutant is a small mistake in a changed line (`check.variants.mutants`). It is *killed* if a test fails because of it,
and it *survives* if all tests that reach it pass. The strength of the tests is the share of killed mutants. Below the
threshold of the settings the confidence is at most medium; so it is if no mistake in a new function is noticed, for
then its tests assert nothing.

The cost is bounded by counting, and not by the clock: the number of mutants, and the number of single test runs. Two
checks of the same change therefore decide the same mutants, however busy the machine is. For a suite that takes ten
seconds or longer, the number of test runs is that of the suite itself; for a shorter one it grows with the powers of
two, up to what ten seconds would hold.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Final

from proofstone.check.models import (
    CheckResult,
    MutantResult,
    MutantStatus,
    ReportFormat,
    StrengthLevel,
    TestReport,
    TestStatus,
    TestStrength,
)
from proofstone.common.models import ConfidenceReason, Finding
from proofstone.common.text import pluralize

SECRET_RULES: Final = frozenset(("added-secret", "possible-secret"))
"""Rules of findings about lines that may hold a secret."""


@dataclass(frozen=True)
class StrengthBounds:
    """How much the measurement of one check may cost."""

    mutants: int
    test_runs: int
    """Runs of single tests, for all mutants together."""
    fresh: int
    """Mutants of what runs on import, each of which needs a new process."""
    seconds: float
    """A limit for tests that take much longer than the others. What it cuts off is reported as not tried."""


_MINIMUM_SECONDS: Final = 10
_MAX_GROWTH: Final = 64
_MIN_TEST_RUNS: Final = 100
_LEVELS: Final = {StrengthLevel.QUICK: (50, 1, 4), StrengthLevel.FULL: (1000, 20, 200)}
"""The number of mutants, the number of suites that the test runs make up, and the number of new processes."""


def bound_cost(level: StrengthLevel, tests: int, duration_ms: int) -> StrengthBounds:
    """Return the bounds for a suite with so many tests that took so long."""
    mutants, suites, fresh = _LEVELS[level]
    seconds = max(duration_ms, 1) / 1000
    growth = min(_MAX_GROWTH, 2 ** max(0, round(math.log2(_MINIMUM_SECONDS / seconds))))
    return StrengthBounds(
        mutants=mutants,
        test_runs=max(_MIN_TEST_RUNS, tests * growth) * suites,
        fresh=fresh,
        seconds=suites * 6 * max(seconds, _MINIMUM_SECONDS),
    )


def bound_runs(level: StrengthLevel, duration_ms: int) -> int:
    """Return how many mutants are tried if each needs a run of its own."""
    runs = _MINIMUM_SECONDS * 1000 // max(duration_ms, 500)
    return max(4, min(12, runs)) * (1 if level is StrengthLevel.QUICK else 10)


MUTATED_LANGUAGES: Final = {
    **dict.fromkeys((ReportFormat.PYTEST, ReportFormat.UNITTEST), frozenset({"python"})),
    **dict.fromkeys(
        (ReportFormat.NODE, ReportFormat.JEST, ReportFormat.VITEST, ReportFormat.MOCHA),
        frozenset({"javascript", "typescript", "tsx"}),
    ),
    ReportFormat.GO: frozenset({"go"}),
    ReportFormat.CARGO: frozenset({"rust"}),
    ReportFormat.JUNIT: frozenset({"java"}),
}
"""The languages whose code the tests of a runner run in."""


def read_probe_results(report: TestReport, mutants: Sequence[MutantResult]) -> list[MutantResult]:
    """Return the mutants that the probe decided, with what it found."""
    by_id = {f"mutant {number}": mutant for number, mutant in enumerate(mutants)}
    decided: list[MutantResult] = []
    for result in report.results:
        mutant, facts = by_id.get(result.id), _read_facts(result.message)
        status = str(facts.get("status"))
        if mutant is not None and status in _PROBE_STATUSES:
            update = {"status": MutantStatus(status), "killed_by": str(facts.get("by", ""))}
            decided.append(mutant.model_copy(update=update))
    return decided


_PROBE_STATUSES: Final = frozenset(status.value for status in MutantStatus)


def _read_facts(message: str) -> dict[str, object]:
    try:
        facts = json.loads(message)
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def decide_by_run(mutant: MutantResult, after: TestReport, run: CheckResult) -> MutantResult | None:
    """Decide a mutant by a run of the tests. Return None if the tests did not begin, as if it does not compile: no test
    has noticed anything then."""
    if run.report is None or run.death is not None:
        return mutant.model_copy(update={"status": MutantStatus.UNDECIDED})
    passed = {result.id for result in after.results if result.status is TestStatus.PASSED}
    failing = [result.id for result in run.report.results if result.status.is_failure and result.id in passed]
    if failing:
        return mutant.model_copy(update={"status": MutantStatus.KILLED, "killed_by": failing[0]})
    if not any(result.id in passed and result.status.is_executed for result in run.report.results):
        return None
    is_whole = run.report.complete and not any(result.status.is_failure for result in run.report.results)
    return mutant.model_copy(update={"status": MutantStatus.SURVIVED if is_whole else MutantStatus.UNDECIDED})


def measure_strength(results: Iterable[MutantResult], untried: int) -> TestStrength | None:
    """Return the strength of all tests together: a mutant that one check notices is noticed. None if there is no
    mutant."""
    best: dict[MutantResult, MutantResult] = {}
    order = list(MutantStatus)
    for result in results:
        key = result.model_copy(update={"status": MutantStatus.UNDECIDED, "killed_by": "", "check": ""})
        known = best.get(key)
        if known is None or order.index(result.status) < order.index(known.status):
            best[key] = result
    mutants = sorted(best.values(), key=lambda mutant: (mutant.path, mutant.line, mutant.operator, mutant.after))
    return TestStrength(mutants=tuple(mutants), untried=untried) if mutants or untried else None


_HIDDEN: Final = "[not shown: this line may hold a secret]"


def hide_secrets(strength: TestStrength | None, findings: Iterable[Finding]) -> TestStrength | None:
    """Return the strength without the texts of lines that may hold a secret, because reports are passed on."""
    lines = {(finding.path, finding.line) for finding in findings if finding.rule in SECRET_RULES}
    if strength is None or not lines:
        return strength
    hidden = {"before": _HIDDEN, "after": _HIDDEN}
    mutants = (
        mutant.model_copy(update=hidden) if (mutant.path, mutant.line) in lines else mutant
        for mutant in strength.mutants
    )
    return strength.model_copy(update={"mutants": tuple(mutants)})


def list_weak_reasons(strength: TestStrength | None, threshold: int) -> Iterator[ConfidenceReason]:
    """Yield why the tests are too weak for high confidence."""
    if strength is None or strength.score is None:
        return
    if strength.score < threshold:
        noticed = f"{len(strength.killed)} of {pluralize(strength.decided, 'mistake')}"
        yield ConfidenceReason(
            reason=f"the tests notice {noticed} in the changed lines ({strength.score} %, and {threshold} % are "
            f"needed): {_list_survivors(strength.survivors)}",
            remedy="add assertions that fail with the mistakes that are listed as not noticed",
        )
    for name, mutants in _list_unasserted(strength):
        yield ConfidenceReason(
            reason=f"no test notices a mistake in {name}, which is new ({mutants[0].path}:{mutants[0].line})",
            remedy=f"add a test that asserts what {name} returns or does",
        )


def _list_unasserted(strength: TestStrength) -> Iterator[tuple[str, list[MutantResult]]]:
    """Yield the new functions in which no mistake was noticed."""
    by_function: dict[tuple[str, str], list[MutantResult]] = {}
    for mutant in (*strength.killed, *strength.survivors):
        if mutant.is_new_function and mutant.function:
            by_function.setdefault((mutant.path, mutant.function), []).append(mutant)
    for (_, name), mutants in by_function.items():
        if all(mutant.status is not MutantStatus.KILLED for mutant in mutants):
            yield name, mutants


_MAX_LISTED: Final = 3
_MAX_WORDS: Final = 60


def _list_survivors(survivors: Sequence[MutantResult]) -> str:
    listed = [describe_mutant(survivor) for survivor in survivors[:_MAX_LISTED]]
    more = [f"and {len(survivors) - _MAX_LISTED} more"] if len(survivors) > _MAX_LISTED else []
    return "; ".join((*listed, *more))


def describe_mutant(mutant: MutantResult) -> str:
    """Return a mutant in one line: where it is, and the words of the line that differ."""
    reach = ", which no test runs" if mutant.status is MutantStatus.UNREACHED else ""
    before, after = _cut_common_words(mutant.before.split(), mutant.after.split())
    return f"{mutant.path}:{mutant.line} `{before}` → `{after}`{reach}"


def _cut_common_words(before: list[str], after: list[str]) -> tuple[str, str]:
    """Return the two lines without the words that they begin and end with."""
    while before and after and before[0] == after[0]:
        before, after = before[1:], after[1:]
    while before and after and before[-1] == after[-1]:
        before, after = before[:-1], after[:-1]
    left, right = (shorten(" ".join(words), _MAX_WORDS, placeholder=" …") for words in (before, after))
    return left or "(nothing)", right or "(nothing)"


def describe_survivor(mutant: MutantResult) -> str:
    """Return where a mistake is that no test notices, and of which kind it is."""
    reach = ", in a line that no test runs" if mutant.status is MutantStatus.UNREACHED else ""
    function = f" in {mutant.function}" if mutant.function else ""
    return f"{mutant.path}:{mutant.line}{function}: {mutant.operator}{reach}"


def describe_strength(strength: TestStrength) -> str:
    """Return the result in one line."""
    parts = [
        f"the tests notice {len(strength.killed)} of {pluralize(strength.decided, 'mistake')} in the changed lines"
    ]
    if strength.score is not None:
        parts[0] += f" ({strength.score} %)"
    if strength.undecided:
        parts.append(f"{len(strength.undecided)} undecided")
    if strength.untried:
        parts.append(f"{strength.untried} not tried")
    return ", ".join(parts)
