"""Build the findings about single tests: one finding for each cause, the cause first.

| what happened to a test                                       | rule               | one finding for            |
|---------------------------------------------------------------|--------------------|----------------------------|
| its file, module or package cannot be loaded                  | `unloadable-tests` | all with the same error    |
| it did not fail on the base and fails now                     | `regression`       | all with the same error    |
| it is new and fails                                           | `new-failure`      | all with the same error    |
| it ran on the base and is gone                                | `test-vanished`    | all of one file            |
| it ran on the base and is skipped now                         | `test-skipped`     | all of one file            |
| it failed and then passed on the same tree                    | `flaky`            | all of one kind            |
| it fails in the sandbox on both trees for want of a service   | `sandbox-failure`  | all                        |

A test that did not run because something else failed before it is no finding of its own: it is counted below the
finding that names the cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from proofstone.check.models import NEVER_RUN, CheckResult, TestReport, TestResult, TestStatus
from proofstone.check.rules.compare import ResultComparison, find_fixture_owner
from proofstone.check.rules.failure_text import BARE_CAUSES
from proofstone.check.rules.outcome import EvidenceLayer
from proofstone.common.models import Finding, FrozenModel, Severity
from proofstone.common.text import pluralize

_MAX_NAMED: Final = 10
"""Tests that a finding names; `Finding.tests` has all."""
_MAX_FINDINGS: Final = 20
"""Findings of one rule; what is beyond is one more."""
_SEPARATOR: Final = re.compile(r"::| > |/|\.")

FIXES: Final[Mapping[str, str]] = {
    "unloadable-tests": "fix the error that is named here",
    "regression": "make it pass again; if the test is wrong, dispute it",
    "new-failure": "make it pass",
    "test-vanished": "restore it; if the test is wrong, dispute it",
    "test-skipped": "let it run; if the test is wrong, dispute it",
    "flaky": "make it deterministic, or list it in tests.allow_flaky",
    "sandbox-failure": "declare the service: environment.sockets or environment.network",
}


class RerunFindings(FrozenModel):
    """What reruns of single tests showed."""

    flaky: tuple[str, ...] = ()
    """Tests that failed and then passed on the same tree."""
    flaky_before: tuple[str, ...] = ()
    """Tests that are flaky on the base too, so the change did not cause it."""
    allowed_flaky: tuple[str, ...] = ()
    sandbox_only: tuple[str, ...] = ()
    """Tests that fail in the sandbox on the base too, but pass outside it or are declared to need a service."""
    blocking: tuple[str, ...] = ()
    """Those of `sandbox_only` that are related to the changed files."""
    mended: tuple[str, ...] = ()
    """Tests that failed on the base in the first run and passed there in a rerun. They excuse nothing any more."""
    not_measured: tuple[str, ...] = ()
    """Reruns that died. What they would have shown is unknown, so nothing passes."""
    losses_accepted: bool = False
    """Whether the user accepted that tests are gone or skipped."""


@dataclass(frozen=True)
class ComparedTests:
    """The tests of one check on both trees."""

    after: CheckResult
    report: TestReport
    base_report: TestReport
    comparison: ResultComparison
    excuses: RerunFindings
    blocked: tuple[str, ...] = ()
    """Tests that ran on the base and did not run now, because of what `comparison` names as failing."""

    @property
    def failing(self) -> tuple[str, ...]:
        return (*self.comparison.regressions, *self.comparison.new_failures)

    @property
    def unloadable(self) -> tuple[str, ...]:
        """The files, modules and packages whose tests could not be loaded or set up."""
        results = self.report.by_id
        return tuple(test for test in self.failing if test in results and _is_container(results[test]))


def separate_blocked(tests: ComparedTests) -> ComparedTests:
    """Return the comparison without the tests that did not run because something else failed before them."""
    comparison, results = tests.comparison, tests.report.by_id
    has_cause = bool(tests.failing) or not tests.report.complete
    owners = {_find_owner(results[test]) for test in tests.failing if test in results}
    never_run = [test for test in comparison.newly_skipped if results[test].message == NEVER_RUN]
    blocked = {
        *(never_run if has_cause else ()),
        *(test for test in comparison.vanished if not tests.report.complete or owners & _list_owners(test)),
    }
    remaining = {
        "vanished": tuple(test for test in comparison.vanished if test not in blocked),
        "newly_skipped": tuple(test for test in comparison.newly_skipped if test not in blocked),
    }
    return replace(tests, comparison=comparison.model_copy(update=remaining), blocked=tuple(sorted(blocked)))


def _is_container(result: TestResult) -> bool:
    return result.status is TestStatus.ERROR and (
        result.path in (None, result.id) or find_fixture_owner(result.id) != ""
    )


def _find_owner(result: TestResult) -> str:
    """Return the name that the ids of the tests begin with which a failed file, module, class or package holds."""
    return find_fixture_owner(result.id) or result.id


def _list_owners(test: str) -> set[str]:
    """Return the names of everything that a test may lie in: its class, file, module or package."""
    return {test[: mark.start()] for mark in _SEPARATOR.finditer(test)}


def describe_failures(tests: ComparedTests) -> str:
    """Return in one line what fails that did not fail before."""
    results = tests.report.by_id
    unloadable = set(tests.unloadable)
    parts: list[str] = []
    if unloadable:
        causes = list(dict.fromkeys(results[test].cause for test in tests.unloadable))
        cause = f": {causes[0]}" if causes[0] else ""
        parts.append(
            f"{_name_unloadable(tests.unloadable)}{cause}" + (" (and other errors)" if len(causes) > 1 else "")
        )
    for phrase, ids in _group_by_state(tests, [test for test in tests.failing if test not in unloadable]).items():
        parts.append(f"1 test {phrase[0]}" if len(ids) == 1 else f"{len(ids)} tests {phrase[1]}")
    return "; ".join(parts)


_NEW: Final = ("is new and fails", "are new and fail")
_STATES: Final[Mapping[TestStatus, tuple[str, str]]] = {
    TestStatus.SKIPPED: ("now fails that was skipped before", "now fail that were skipped before"),
    TestStatus.XFAILED: ("now fails that was expected to fail before", "now fail that were expected to fail before"),
}
_PASSED: Final = ("now fails that passed before", "now fail that passed before")


def _group_by_state(tests: ComparedTests, ids: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    """Group failing tests by what they did on the base."""
    groups: dict[tuple[str, str], list[str]] = {}
    for test in ids:
        groups.setdefault(_describe_state(tests, test), []).append(test)
    return groups


def _describe_state(tests: ComparedTests, test: str) -> tuple[str, str]:
    if test in tests.comparison.new_failures:
        return _NEW
    before = tests.base_report.by_id.get(test)
    return _STATES.get(before.status, _PASSED) if before else _PASSED


def _name_unloadable(ids: Sequence[str]) -> str:
    return f"{ids[0]} cannot be loaded" if len(ids) == 1 else f"{len(ids)} test files cannot be loaded"


def build_test_findings(tests: ComparedTests) -> list[Finding]:
    """Return the findings about single tests, those that name a cause first."""
    groups = [*_group_unloadable(tests), *_group_failing(tests)]
    if groups and tests.blocked:
        count = pluralize(len(tests.blocked), "test")
        detail = f"{groups[0].detail}\n{count} that ran on the base did not run because of it"
        groups[0] = replace(groups[0], detail=detail, ids=(*groups[0].ids, *tests.blocked))
    groups += [*_group_lost(tests), *_group_unsteady(tests)]
    return [_build_finding(tests, group) for group in groups]


@dataclass(frozen=True)
class _RelatedTests:
    """The tests of one finding."""

    rule: str
    severity: Severity
    detail: str
    ids: tuple[str, ...]


def _group_unloadable(tests: ComparedTests) -> Iterator[_RelatedTests]:
    results = tests.report.by_id
    for cause, ids in _group_by_cause(results, tests.unloadable).items():
        detail = f"{_name_unloadable(ids)}" + (f": {cause[1]}" if cause[1] else "")
        yield _RelatedTests("unloadable-tests", Severity.CRITICAL, _name_tests(detail, ids), tuple(ids))


def _group_failing(tests: ComparedTests) -> Iterator[_RelatedTests]:
    results = tests.report.by_id
    alone = _drop_containers(results, [test for test in tests.failing if test not in set(tests.unloadable)])
    for phrase, ids in _group_by_state(tests, alone).items():
        rule = "new-failure" if phrase is _NEW else "regression"
        groups = [_describe_failing(rule, phrase, results, same) for same in _join_related(results, ids)]
        yield from groups[:_MAX_FINDINGS]
        if rest := tuple(test for group in groups[_MAX_FINDINGS:] for test in group.ids):
            detail = f"{pluralize(len(rest), 'more test')} {phrase[0] if len(rest) == 1 else phrase[1]}"
            yield _RelatedTests(rule, Severity.CRITICAL, _name_tests(detail, rest), rest)


def _join_related(results: Mapping[str, TestResult], ids: Sequence[str]) -> list[list[str]]:
    """Group tests that fail with the same error, or that are cases of one test function."""
    groups: dict[int, list[str]] = {}
    group_of: dict[tuple[str, str], int] = {}
    for number, test in enumerate(ids):
        cause = results[test].cause if test in results else ""
        keys = [("function", test.partition("[")[0])]
        keys += [("cause", cause)] if cause not in BARE_CAUSES else []
        known = sorted({group_of[key] for key in keys if key in group_of})
        target = known[0] if known else number
        merged = [other for group in known for other in groups.pop(group)]
        groups[target] = [*merged, test]
        group_of = (
            {key: target if group in known else group for key, group in group_of.items()} if known[1:] else group_of
        )
        group_of.update(dict.fromkeys(keys, target))
    return list(groups.values())


def _describe_failing(
    rule: str, phrase: tuple[str, str], results: Mapping[str, TestResult], ids: Sequence[str]
) -> _RelatedTests:
    causes = list(dict.fromkeys(results[test].cause for test in ids if test in results))
    cause = next((cause for cause in causes if cause not in BARE_CAUSES), causes[0] if causes else "")
    if len(ids) == 1:
        words = phrase[0].replace("now fails that ", "").removesuffix(" before")
        state = words if phrase is _NEW else f"{words} on the base, fails now"
        detail = f"{ids[0]}: {state}" + (f": {cause}" if cause else "")
        return _RelatedTests(rule, Severity.CRITICAL, detail, tuple(ids))
    if len(causes) == 1:
        same = f", all with the same error: {cause}" if cause else ""
        return _RelatedTests(
            rule, Severity.CRITICAL, _name_tests(f"{len(ids)} tests {phrase[1]}{same}", ids), tuple(ids)
        )
    detail = f"{len(ids)} tests {phrase[1]}, for instance: {cause}"
    described = {test: f"{test}: {results[test].cause}" if test in results else test for test in ids}
    return _RelatedTests(rule, Severity.CRITICAL, _name_tests(detail, [described[test] for test in ids]), tuple(ids))


def _drop_containers(results: Mapping[str, TestResult], ids: Sequence[str]) -> list[str]:
    """Return the ids without those that fail only because a subtest of theirs does."""
    owners = {owner for test in ids for owner in _list_owners(test)}
    return [test for test in ids if test not in owners or test not in results or results[test].cause not in BARE_CAUSES]


def _group_by_cause(results: Mapping[str, TestResult], ids: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    """Group tests by the text of their error. An error that says nothing groups nothing."""
    groups: dict[tuple[str, str], list[str]] = {}
    for test in ids:
        cause = results[test].cause if test in results else ""
        groups.setdefault((test if cause in BARE_CAUSES else "", cause), []).append(test)
    return groups


def _group_lost(tests: ComparedTests) -> Iterator[_RelatedTests]:
    severity = Severity.MINOR if tests.excuses.losses_accepted else Severity.CRITICAL
    for rule, ids, singular, plural in (
        ("test-vanished", tests.comparison.vanished, "ran on the base and no longer exists", "no longer exist"),
        ("test-skipped", tests.comparison.newly_skipped, "ran on the base and is skipped now", "are skipped now"),
    ):
        groups: dict[str, list[str]] = {}
        for test in ids:
            groups.setdefault(_find_path(tests, test) or "", []).append(test)
        parts = list(groups.items()) if len(groups) <= _MAX_FINDINGS else [("", list(ids))]
        for path, same in parts:
            where = f" of {path}" if path else ""
            detail = (
                f"{same[0]}: {singular}"
                if len(same) == 1
                else f"{len(same)} tests{where} that ran on the base {plural}"
            )
            yield _RelatedTests(rule, severity, detail if len(same) == 1 else _name_tests(detail, same), tuple(same))


def _group_unsteady(tests: ComparedTests) -> Iterator[_RelatedTests]:
    excuses = tests.excuses
    kinds: dict[tuple[Severity, str], list[str]] = {}
    for test in excuses.flaky:
        is_tolerated = test in (*excuses.flaky_before, *excuses.allowed_flaky)
        also = " (on the base too)" if test in excuses.flaky_before else ""
        severity = Severity.MINOR if is_tolerated else Severity.MAJOR
        kinds.setdefault((severity, f"failed, then passed on the same tree{also}"), []).append(test)
    for (severity, phrase), ids in kinds.items():
        yield _RelatedTests("flaky", severity, _name_group(ids, phrase), tuple(ids))
    if excuses.sandbox_only:
        phrase = "in the sandbox on both trees because a service is missing"
        detail = _name_group(excuses.sandbox_only, f"{'fails' if len(excuses.sandbox_only) == 1 else 'fail'} {phrase}")
        yield _RelatedTests("sandbox-failure", Severity.MINOR, detail, excuses.sandbox_only)


def _name_group(ids: Sequence[str], phrase: str) -> str:
    return f"{ids[0]}: {phrase}" if len(ids) == 1 else _name_tests(f"{len(ids)} tests {phrase}", ids)


def _name_tests(detail: str, ids: Sequence[str]) -> str:
    """Add a line for each test, up to a limit. A single test is named by the detail already."""
    if len(ids) == 1:
        return detail
    more = [f"  … and {len(ids) - _MAX_NAMED} more"] if len(ids) > _MAX_NAMED else []
    return "\n".join((detail, *(f"  {test}" for test in ids[:_MAX_NAMED]), *more))


def _find_path(tests: ComparedTests, test: str) -> str | None:
    result = tests.report.by_id.get(test) or tests.base_report.by_id.get(test)
    return result.path if result else None


def _build_finding(tests: ComparedTests, group: _RelatedTests) -> Finding:
    paths = {_find_path(tests, test) for test in group.ids if test not in tests.blocked}
    return Finding(
        layer=EvidenceLayer.TEST_IDENTITY,
        rule=group.rule,
        severity=group.severity,
        path=paths.pop() if len(paths) == 1 else None,
        detail=group.detail,
        fix=FIXES[group.rule],
        check=tests.after.name,
        artifact=tests.after.artifact,
        tests=group.ids,
    )


_BECAUSE: Final = "did not run because of it"
_SYNTAX_ERRORS: Final = ("SyntaxError", "IndentationError", "TabError")


def merge_syntax_errors(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings with broken syntax and the tests that it stopped as one finding."""
    merged = list(findings)
    for syntax in [finding for finding in findings if finding.rule == "syntax" and finding.path]:
        stopped = [
            finding
            for finding in merged
            if finding.rule in ("unloadable-tests", "unfinished-run")
            and syntax.path is not None
            and syntax.path in finding.detail
            and any(error in finding.detail for error in _SYNTAX_ERRORS)
        ]
        if not stopped:
            continue
        tests = tuple(dict.fromkeys(test for finding in stopped for test in finding.tests))
        counts = [line for finding in stopped for line in finding.detail.splitlines() if line.endswith(_BECAUSE)]
        detail = "\n".join((syntax.detail, *(counts or [f"{pluralize(len(tests), 'test file')} {_BECAUSE}"])))
        update = {"severity": Severity.CRITICAL, "tests": tests, "artifact": stopped[0].artifact, "detail": detail}
        merged = [
            finding.model_copy(update=update) if finding is syntax else finding
            for finding in merged
            if finding not in stopped
        ]
    return merged
