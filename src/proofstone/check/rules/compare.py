"""Compare the results of a check on the base and on the change.

Test results are compared by id. A failure that the base has too is not caused by the change. A test that is gone, or is
now skipped, no longer proves anything and is reported.

Complaints of linters and type checkers are compared by file, code and message, and not by line: a complaint that only
moved is the same. If a file was renamed, the base's results are compared under its new name.

Tests that the user named must exist, be executed and pass.

A change may edit tests. The old versions still run beside the new ones. If the old version fails on the new source and
the new version passes, the expectation was edited. That may be right, but a person must accept it. The same applies if
the old tests cannot run at all.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from difflib import SequenceMatcher, get_close_matches
from typing import Final

from proofstone.check.models import CheckResult, ReportFormat, TestReport, TestResult, TestStatus
from proofstone.check.rules.outcome import EvidenceLayer
from proofstone.common.models import Diagnostic, Finding, FrozenModel, Severity, Verdict

_FIXTURE: Final = re.compile(r"^(?:setUp|tearDown)(?:Class|Module) \((?P<owner>.+)\)$")


class ResultComparison(FrozenModel):
    """Test ids, sorted, each in one list only."""

    fixed: tuple[str, ...] = ()
    """Tests that failed before and pass now."""
    regressions: tuple[str, ...] = ()
    """Tests that did not fail before and fail now."""
    new_failures: tuple[str, ...] = ()
    """New tests that fail."""
    standing: tuple[str, ...] = ()
    """Tests that failed before and still fail."""
    vanished: tuple[str, ...] = ()
    """Tests that ran before and do not exist now."""
    newly_skipped: tuple[str, ...] = ()
    """Tests that ran before and are now skipped, not reached, or declared to fail."""
    added: tuple[str, ...] = ()
    """New tests that pass."""

    @property
    def lost_tests(self) -> tuple[str, ...]:
        return tuple(sorted((*self.vanished, *self.newly_skipped)))


def merge_test_reports(reports: Sequence[TestReport]) -> TestReport | None:
    """Merge the reports of several runners of one command. Single tests of a mixed report cannot be rerun, so it has no
    runner's name."""
    if len(reports) <= 1:
        return reports[0] if reports else None
    return TestReport(
        runner=ReportFormat.EXIT_CODE,
        results=tuple(result for report in reports for result in report.results),
        complete=all(report.complete for report in reports),
        began=any(report.began and not report.complete for report in reports)
        or all(report.began for report in reports),
        imported_from=tuple(path for report in reports for path in report.imported_from),
        loaded={name: file for report in reports for name, file in report.loaded.items()},
        replaced=tuple(function for report in reports for function in report.replaced),
        problems=tuple(problem for report in reports for problem in report.problems),
        forged="; ".join(report.forged for report in reports if report.forged),
    )


def compare_reports(before: TestReport, after: TestReport) -> ResultComparison:
    """Compare two test reports by id."""
    old, new = before.by_id, after.by_id
    lists: dict[str, list[str]] = {name: [] for name in ResultComparison.model_fields}
    for test, result in new.items():
        previous = old[test].status if test in old else None
        if name := _classify(previous, result.status):
            lists[name].append(test)
    for test, result in old.items():
        has_vanished = test not in new and result.status.is_executed
        if has_vanished and not (result.status is TestStatus.ERROR and _is_container(test, new)):
            lists["vanished"].append(test)
    for gone, test in _pair_renumbered(lists["vanished"], lists["added"]):
        lists["vanished"].remove(gone)
        lists["added"].remove(test)
        if old[gone].status.is_failure:
            lists["fixed"].append(test)
    return ResultComparison(**{name: tuple(sorted(ids)) for name, ids in lists.items()})


_POSITION: Final = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z_]\w*?)\d+(?=[-\]])")
"""What pytest writes into an id for a value that has no short text: the name of the parameter and the position of the
case. A case that is put in front of others changes their ids."""


def _pair_renumbered(vanished: Sequence[str], added: Sequence[str]) -> list[tuple[str, str]]:
    """Return the cases of parametrised tests that only have another position than before, as old and new id."""
    waiting: defaultdict[str, list[str]] = defaultdict(list)
    for test in added:
        if "[" in test:
            waiting[_POSITION.sub(r"\1#", test)].append(test)
    pairs = []
    for gone in vanished:
        matching = waiting.get(_POSITION.sub(r"\1#", gone)) if "[" in gone else None
        if matching:
            pairs.append((gone, matching.pop(0)))
    return pairs


def _classify(before: TestStatus | None, after: TestStatus) -> str | None:
    """Return the list that a test belongs to; None if nothing about it changed."""
    if after.is_failure:
        if before is None:
            return "new_failures"
        return "standing" if before.is_failure else "regressions"
    if before is None:
        return "added" if after.is_executed else None
    expected_to_fail = after is TestStatus.XFAILED and before is not TestStatus.XFAILED
    if before.is_executed and (not after.is_executed or expected_to_fail):
        return "newly_skipped"
    return "fixed" if before.is_failure else None


def _is_container(test: str, new: Mapping[str, TestResult]) -> bool:
    """Return whether a file, module or class that could not be loaded or set up before now yields its tests. Then its
    error is gone, and no test."""
    return any(is_within(other, test) for other in new)


def is_within(test: str, container: str) -> bool:
    """Return whether a test belongs to the file, module or class that reported under this id."""
    owner = find_fixture_owner(container) or container
    return test.startswith((f"{owner}::", f"{owner} > ", f"{owner}/", f"{owner}."))


def find_fixture_owner(test: str) -> str:
    """Return the class or module whose set-up or tear-down reported under this id; empty for any other id."""
    match = _FIXTURE.match(test)
    return match["owner"] if match else ""


def order_as_run(report: TestReport, selection: Iterable[str]) -> list[str]:
    """Return the selected tests, functions and files in the order in which the report has them. What the report does
    not have comes last."""
    positions: dict[str, int] = {}
    for number, result in enumerate(report.results):
        function = result.id.partition("[")[0]
        for name in (result.id, function, result.path or ""):
            positions.setdefault(name, number)
    return sorted(dict.fromkeys(selection), key=lambda name: positions.get(name, len(report.results)))


def find_new_diagnostics(before: Sequence[Diagnostic], after: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the complaints that `after` has more often than `before`, in the order of `after`."""
    remaining = Counter(map(_identity, before))
    known_lines: defaultdict[tuple[str, str, str], set[int | None]] = defaultdict(set)
    for diagnostic in before:
        known_lines[_identity(diagnostic)].add(diagnostic.line)
    # Among equal complaints, those that stayed on their line are the old ones.
    surplus: set[int] = set()
    for index, diagnostic in sorted(
        enumerate(after), key=lambda pair: pair[1].line not in known_lines[_identity(pair[1])]
    ):
        if remaining[_identity(diagnostic)] > 0:
            remaining[_identity(diagnostic)] -= 1
        else:
            surplus.add(index)
    return tuple(diagnostic for index, diagnostic in enumerate(after) if index in surplus)


def _identity(diagnostic: Diagnostic) -> tuple[str, str, str]:
    """Return the identity of a complaint without line numbers in its message, because `already defined on line 7` moves
    as well."""
    path, code, message = diagnostic.identity
    return (path, code, re.sub(r"\bline \d+", "line", message))


def apply_renames(result: CheckResult, renames: Mapping[str, str]) -> CheckResult:
    """Return `result` as if the files had their new names already (old path → new path)."""
    if not renames:
        return result
    diagnostics = tuple(_rename_diagnostic(diagnostic, renames) for diagnostic in result.diagnostics)
    report = result.report
    if report is not None:
        report = report.model_copy(
            update={"results": tuple(rename_test(test_result, renames) for test_result in report.results)}
        )
    return result.model_copy(update={"diagnostics": diagnostics, "report": report})


def _rename_diagnostic(diagnostic: Diagnostic, renames: Mapping[str, str]) -> Diagnostic:
    return (
        diagnostic.model_copy(update={"path": renames[diagnostic.path]}) if diagnostic.path in renames else diagnostic
    )


def rename_test(result: TestResult, renames: Mapping[str, str]) -> TestResult:
    """Rename the path in an id that begins with the file's path. Other ids do not name a file."""
    if result.path is None or result.path not in renames:
        return result
    new = renames[result.path]
    rest = result.id.removeprefix(result.path)
    is_path_prefix = result.id == result.path or (rest != result.id and rest[:1] in (":", " ", "/"))
    return result.model_copy(update={"path": new, "id": new + rest if is_path_prefix else result.id})


def check_must_pass(names: Sequence[str], reports: Sequence[TestReport], *, all_measured: bool = True) -> list[Finding]:
    """Return a finding for each named test that was not executed or does not pass. Unless `all_measured`, a test that
    is in no report may have been executed."""
    results = {result.id: result for report in reports for result in report.results}
    findings: list[Finding] = []
    for name in names:
        matches = find_matching_tests(name, results.values())
        if not matches and all_measured:
            hint = _suggest_nearest(name, list(results))
            findings.append(_build_must_pass_finding(name, "was not executed", hint, None))
        failing = [result for result in matches if result.status not in (TestStatus.PASSED, TestStatus.XPASSED)]
        findings += [
            _build_must_pass_finding(result.id, f"must pass, but is {result.status}", "make it pass", result.path)
            for result in failing
        ]
    return findings


def _suggest_nearest(name: str, ids: Sequence[str]) -> str:
    """Suggest the test that was probably meant. Compare with the last part of the id, which users usually type."""
    ends = {id.rpartition("::")[2].rpartition(" > ")[2]: id for id in ids} | {id: id for id in ids}
    near = get_close_matches(name, ends, n=1)
    return f"the nearest test is {ends[near[0]]}" if near else "name a test id as the runner prints it"


def find_matching_tests(name: str, results: Iterable[TestResult]) -> list[TestResult]:
    """Return the tests that `name` means: an id, the end of ids (`test_x`, `Class::test_x`), or all parameters of a
    test."""
    return [result for result in results if _is_meant(name, result.id)]


def _is_meant(name: str, id: str) -> bool:
    bare = id.partition("[")[0] if "[" not in name else id
    return name in (id, bare) or any(bare.endswith(f"{mark}{name}") for mark in ("::", "/", " > ", "."))


def _build_must_pass_finding(test: str, detail: str, fix: str, path: str | None) -> Finding:
    return Finding(
        layer="L3", rule="must-pass", severity=Severity.CRITICAL, path=path, detail=f"{test}: {detail}", fix=fix
    )


_DISPUTE_HINT = "if the old test is wrong, dispute it"


def find_edited_expectations(old_tests: TestReport, new_tests: TestReport, known: Set[str]) -> tuple[str, ...]:
    """Return tests whose old version fails and whose new version passes. `known` are the base's tests: a new test may
    need a new fixture that is missing when the old tests run."""
    passing = {result.id for result in new_tests.results if result.status.is_executed and not result.status.is_failure}
    failing = {result.id for result in old_tests.results if result.status.is_failure}
    return tuple(sorted(failing & passing & known))


def explain_unrunnable(old: CheckResult, before: TestReport, after: TestReport, edited: Sequence[str]) -> str:
    """Return why the base's tests say nothing about the change; empty if they were run. A file that could not be loaded
    on the base counts by its text: if its new version can be loaded, so must the old one be."""
    broken_before = {result.id for result in before.results if result.status.is_failure}
    for result in old.report.results if old.report else ():
        if result.status is not TestStatus.ERROR or not _is_container_of_file(result.id, edited):
            continue
        if result.id not in broken_before:
            return result.describe_failure(f"{result.id} can no longer be loaded")
        if any(other.status is TestStatus.PASSED and is_within(other.id, result.id) for other in after.results):
            return result.describe_failure(f"{result.id} as it stood on the base still cannot be loaded")
    if old.report is None or not old.report.complete:
        return old.reason or "their run ended early"
    return ""


class ExpectationCause(FrozenModel):
    """What the change edited so that a test passes."""

    path: str
    reason: str = ""
    """Why the file decides what the test expects; empty if it holds the test."""
    is_added: bool = False
    was_skipped: bool = False
    """Whether the test did not run on the base, so that it ran with its marks taken off."""

    def describe(self) -> str:
        if self.is_added:
            return f"passes only because {self.path} was added; without it the test fails"
        if self.reason:
            return f"passes only because {self.path} was edited ({self.reason}); with the base's version the test fails"
        unmarked = ", which was marked to be skipped or to fail, runs and" if self.was_skipped else ""
        return f"passes only because the test was edited; the base's version of the test{unmarked} fails"


def build_expectation_finding(test: str, old: CheckResult, cause: ExpectationCause) -> Finding:
    """Return the finding about a test whose expectation was edited."""
    failure = old.report.by_id[test].describe_failure(f"{test}: {cause.describe()}") if old.report else test
    return _build_old_tests_finding(
        old, "edited-expectation", failure, f"change the source, not the test; {_DISPUTE_HINT}", path=cause.path
    )


def _is_container_of_file(test: str, paths: Iterable[str]) -> bool:
    """Return whether an id means a whole file: by its path, or by the dotted name that unittest gives it."""
    module = test.replace(".", "/") + ".py"
    return any(path in (test, module) or path.endswith(f"/{module}") for path in paths)


def build_unrunnable_finding(old: CheckResult, why: str) -> Finding:
    detail = f"the change edits tests, and the base's versions of them cannot run on the changed source: {why}"
    return _build_old_tests_finding(
        old, "old-tests-unrunnable", detail, f"keep what the old tests use; {_DISPUTE_HINT}"
    )


def is_edited_check(old: CheckResult) -> bool:
    """Return whether the base's version of a check without ids fails on the changed source."""
    return old.verdict is Verdict.FAIL


def build_edited_check_finding(old: CheckResult, edited: Sequence[str]) -> Finding:
    """Return the finding about a check that passes only with these files edited."""
    detail = (
        "the check passes only because its tests or its command were edited "
        f"({', '.join(edited[:3])}); the base's version gives: {old.reason}"
    )
    fix = f"change the source, not the check; {_DISPUTE_HINT}"
    return _build_old_tests_finding(old, "edited-check", detail, fix, path=edited[0] if edited else None)


def _build_old_tests_finding(old: CheckResult, rule: str, detail: str, fix: str, *, path: str | None = None) -> Finding:
    return Finding(
        layer=EvidenceLayer.PROTECTED_FILES,
        rule=rule,
        severity=Severity.CRITICAL,
        path=path,
        detail=detail,
        fix=fix,
        check=old.name.removesuffix(":old-tests"),
        artifact=old.artifact,
    )


_MAX_LINES = 6
"""Maximum number of lines to show of each side."""


def diff_test_lines(old: str, new: str, name: str) -> tuple[str, str]:
    """Return the lines that differ inside the test called `name` (its own name, without file and parameters). If the
    test itself is unchanged, something next to it was edited: then return those of the whole file."""
    own_name = name.rpartition(".")[2].rpartition(" > ")[2]
    before, after = old.splitlines(), new.splitlines()
    difference = _diff_lines(_find_test_block(before, own_name), _find_test_block(after, own_name))
    return difference if any(difference) else _diff_lines(before, after)


def _diff_lines(before: Sequence[str], after: Sequence[str]) -> tuple[str, str]:
    removed: list[str] = []
    added: list[str] = []
    for tag, old_start, old_end, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            removed += before[old_start:old_end]
            added += after[start:end]
    return _format_lines(removed), _format_lines(added)


def _format_lines(lines: Sequence[str]) -> str:
    shown = [line.strip() for line in lines if line.strip()]
    more = [f"… and {len(shown) - _MAX_LINES} more lines"] if len(shown) > _MAX_LINES else []
    return "\n".join((*shown[:_MAX_LINES], *more))


def _find_test_block(lines: Sequence[str], name: str) -> list[str]:
    """Return the lines from the one that names the test to the next that is not indented further, as in most
    languages."""
    start = next((index for index, line in enumerate(lines) if _defines(line, name)), None)
    if start is None:
        return []
    depth = _indent(lines[start])
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > depth):
        end += 1
    first = start
    while first and lines[first - 1].lstrip().startswith("@"):  # include decorators, because they may hold parameters
        first -= 1
    return list(lines[first:end])


def _defines(line: str, name: str) -> bool:
    return name in line and any(word in line for word in ("def ", "test", "it(", "func ", "fn ", "Test"))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
