"""Test results of two trees, compared by id.

A failure that stood in the baseline is not the change's; a test that is gone, or skipped where it used to run,
proves nothing any more and is named.

Which complaints of a linter or type checker a change brought in.

A complaint is told apart by file, code and message, not by line: one that merely moved is the same complaint.

Results of the base, told in the names of the change: a file that moved takes its tests and complaints along.

Tests that the person named: each must be there, executed, and pass.

The base's tests, run on the changed source: what an edited test hides.

A change may edit tests. The tests as they were still run beside the new ones, and where they disagree the
expectation was edited: the old one fails on the new source, the new one passes. That may be right, and then it needs
a person's word; it is never taken in silence. Neither is it when the old tests cannot be run at all.

What a test expected before, and what it expects now: the lines of the test that were edited, side by side.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from difflib import SequenceMatcher, get_close_matches

from proofstone.check.models import CheckResult, ReportFormat, TestReport, TestResult, TestStatus
from proofstone.check.rules.outcome import Layer
from proofstone.common.models import Contract, Diagnostic, Finding, Severity, Verdict


class Comparison(Contract):
    """Ids, sorted, each in one list only."""

    fixed: tuple[str, ...] = ()
    """Failed before, pass now."""
    regressions: tuple[str, ...] = ()
    """Did not fail before, fail now."""
    new_failures: tuple[str, ...] = ()
    """Were not there before, and fail."""
    standing: tuple[str, ...] = ()
    """Failed before, fail still."""
    vanished: tuple[str, ...] = ()
    """Ran before, are not there now."""
    newly_skipped: tuple[str, ...] = ()
    """Ran before; are skipped, never reached or declared to fail now."""
    added: tuple[str, ...] = ()
    """Were not there before, and pass."""

    @property
    def lost(self) -> tuple[str, ...]:
        return tuple(sorted((*self.vanished, *self.newly_skipped)))


def together(reports: Sequence[TestReport]) -> TestReport | None:
    """What several runners of one command reported, as one. Nobody can run single tests of a mixture again, so it
    bears no runner's name."""
    if len(reports) <= 1:
        return reports[0] if reports else None
    return TestReport(
        runner=ReportFormat.EXIT_CODE,
        results=tuple(result for report in reports for result in report.results),
        complete=all(report.complete for report in reports),
        began=any(report.began and not report.complete for report in reports)
        or all(report.began for report in reports),
        imported_from=tuple(path for report in reports for path in report.imported_from),
        problems=tuple(problem for report in reports for problem in report.problems),
        forged="; ".join(report.forged for report in reports if report.forged),
    )


def compare(before: TestReport, after: TestReport) -> Comparison:
    old, new = before.by_id, after.by_id
    lists: dict[str, list[str]] = {name: [] for name in Comparison.model_fields}
    for test, result in new.items():
        previous = old[test].status if test in old else None
        if name := _place(previous, result.status):
            lists[name].append(test)
    for test, result in old.items():
        gone = test not in new and result.status.executed
        if gone and not (result.status is TestStatus.ERROR and _is_container(test, new)):
            lists["vanished"].append(test)
    return Comparison(**{name: tuple(sorted(ids)) for name, ids in lists.items()})


def _place(before: TestStatus | None, after: TestStatus) -> str | None:
    """The list a test belongs to; None when nothing about it changed."""
    if after.bad:
        if before is None:
            return "new_failures"
        return "standing" if before.bad else "regressions"
    if before is None:
        return "added" if after.executed else None
    expected_to_fail = after is TestStatus.XFAILED and before is not TestStatus.XFAILED
    if before.executed and (not after.executed or expected_to_fail):
        return "newly_skipped"
    return "fixed" if before.bad else None


def _is_container(test: str, new: Mapping[str, TestResult]) -> bool:
    """A file that could not be collected before and now yields its tests: its error is gone, not its test."""
    return any(other.startswith((f"{test}::", f"{test} > ", f"{test}/")) for other in new)


def new_complaints(before: Sequence[Diagnostic], after: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """What `after` has more of than `before`, in the order of `after`."""
    left = Counter(map(_identity, before))
    known: defaultdict[tuple[str, str, str], set[int | None]] = defaultdict(set)
    for item in before:
        known[_identity(item)].add(item.line)
    # Of several equal complaints the ones that stayed on their line are the old ones.
    surplus: set[int] = set()
    for index, item in sorted(enumerate(after), key=lambda pair: pair[1].line not in known[_identity(pair[1])]):
        if left[_identity(item)] > 0:
            left[_identity(item)] -= 1
        else:
            surplus.add(index)
    return tuple(item for index, item in enumerate(after) if index in surplus)


def _identity(item: Diagnostic) -> tuple[str, str, str]:
    """With line numbers inside the message left out: `already defined on line 7` moves as well."""
    path, code, message = item.identity
    return (path, code, re.sub(r"\bline \d+", "line", message))


def in_new_names(result: CheckResult, renames: Mapping[str, str]) -> CheckResult:
    """`result` as if the files had their new names already (old path → new path)."""
    if not renames:
        return result
    diagnostics = tuple(_complaint(diagnostic, renames) for diagnostic in result.diagnostics)
    report = result.report
    if report is not None:
        report = report.model_copy(update={"results": tuple(_test(item, renames) for item in report.results)})
    return result.model_copy(update={"diagnostics": diagnostics, "report": report})


def _complaint(one: Diagnostic, renames: Mapping[str, str]) -> Diagnostic:
    return one.model_copy(update={"path": renames[one.path]}) if one.path in renames else one


def _test(one: TestResult, renames: Mapping[str, str]) -> TestResult:
    """Ids that begin with the file's path begin with its new path; others do not name a file."""
    if one.path is None or one.path not in renames:
        return one
    new = renames[one.path]
    rest = one.id.removeprefix(one.path)
    named = one.id == one.path or (rest != one.id and rest[:1] in (":", " ", "/"))
    return one.model_copy(update={"path": new, "id": new + rest if named else one.id})


def must_pass_findings(
    wanted: Sequence[str], reports: Sequence[TestReport], *, all_measured: bool = True
) -> list[Finding]:
    """What stands against the named tests. Unless `all_measured`, one that is in no report may have been executed."""
    results = {result.id: result for report in reports for result in report.results}
    findings: list[Finding] = []
    for name in wanted:
        found = matching(name, results.values())
        if not found and all_measured:
            hint = _nearest(name, list(results))
            findings.append(_finding(name, "was not executed", hint, None))
        bad = [item for item in found if item.status not in (TestStatus.PASSED, TestStatus.XPASSED)]
        findings += [_finding(item.id, f"must pass, and is {item.status}", "make it pass", item.path) for item in bad]
    return findings


def _nearest(name: str, ids: Sequence[str]) -> str:
    """What was probably meant: compared by the last part of the id, which is what people type."""
    ends = {id.rpartition("::")[2].rpartition(" > ")[2]: id for id in ids} | {id: id for id in ids}
    near = get_close_matches(name, ends, n=1)
    return f"the nearest test is {ends[near[0]]}" if near else "name a test id as the runner prints it"


def matching(name: str, results: Iterable[TestResult]) -> list[TestResult]:
    """The tests that `name` means: an id, the end of ids (`test_x`, `Class::test_x`), or all parameters of a test."""
    return [result for result in results if _means(name, result.id)]


def _means(name: str, id: str) -> bool:
    bare = id.partition("[")[0] if "[" not in name else id
    return name in (id, bare) or any(bare.endswith(f"{mark}{name}") for mark in ("::", "/", " > ", "."))


def _finding(test: str, detail: str, fix: str, path: str | None) -> Finding:
    return Finding(
        layer="L3", rule="must-pass", severity=Severity.CRITICAL, path=path, detail=f"{test}: {detail}", fix=fix
    )


_SAY_SO = "if it was wrong, say so with --accept-test-changes"


def edited_expectations(old_tests: TestReport, new_tests: TestReport, known: Set[str]) -> tuple[str, ...]:
    """Tests that fail as they stood on the base, and pass as the change left them. `known` are the base's: a new test
    may well need a new fixture, which the old tests are run without."""
    passing = {result.id for result in new_tests.results if result.status.executed and not result.status.bad}
    failing = {result.id for result in old_tests.results if result.status.bad}
    return tuple(sorted(failing & passing & known))


def unrunnable(old: CheckResult, before: TestReport, edited: Sequence[str]) -> str:
    """Why the base's tests say nothing about the change; empty if they were run."""
    broken_before = {result.id for result in before.results if result.status.bad}
    for result in old.report.results if old.report else ():
        if result.status is TestStatus.ERROR and result.id in edited and result.id not in broken_before:
            return result.told(f"{result.id} cannot be loaded any more")
    if old.report is None or not old.report.complete:
        return old.reason or "their run ended before it was finished"
    return ""


def expectation_findings(tests: Sequence[str], old: CheckResult, *, accepted: bool) -> list[Finding]:
    known = old.report.by_id if old.report else {}
    told = "passes only because the test was edited; as it stood on the base it fails"
    return [
        _old_tests_finding(
            old,
            "edited-expectation",
            known[test].told(f"{test}: {told}"),
            f"change the source, not the test; {_SAY_SO}",
            accepted=accepted,
            path=known[test].path,
        )
        for test in tests
    ]


def unrunnable_finding(old: CheckResult, why: str, *, accepted: bool) -> Finding:
    detail = f"the change edits tests, and as they stood on the base they cannot be run on it: {why}"
    return _old_tests_finding(old, "old-tests-unrunnable", detail, f"keep what they use; {_SAY_SO}", accepted=accepted)


def edited_check(old: CheckResult) -> bool:
    """Without ids: the check as it stood on the base fails on the changed source."""
    return old.verdict is Verdict.FAIL


def edited_check_finding(old: CheckResult, *, accepted: bool) -> Finding:
    detail = (
        f"the check passes only because its tests or its command were edited; as they stood on the base: {old.reason}"
    )
    return _old_tests_finding(
        old, "edited-check", detail, f"change the source, not the check; {_SAY_SO}", accepted=accepted
    )


def _old_tests_finding(
    old: CheckResult, rule: str, detail: str, fix: str, *, accepted: bool, path: str | None = None
) -> Finding:
    severity = Severity.MINOR if accepted else Severity.CRITICAL
    return Finding(
        layer=Layer.PROTECTED_FILES,
        rule=rule,
        severity=severity,
        path=path,
        detail=detail,
        fix=fix,
        check=old.name.removesuffix(":old-tests"),
        artifact=old.artifact,
    )


_MOST = 6
"""Lines of each side that are shown."""


def edited_lines(old: str, new: str, name: str) -> tuple[str, str]:
    """The lines that differ inside the test called `name` (its own name, without file and parameters); those of the
    whole file where the test itself is as it was, because something beside it was edited."""
    own = name.rpartition(".")[2].rpartition(" > ")[2]
    before, after = old.splitlines(), new.splitlines()
    found = _difference(_block(before, own), _block(after, own))
    return found if any(found) else _difference(before, after)


def _difference(before: Sequence[str], after: Sequence[str]) -> tuple[str, str]:
    gone: list[str] = []
    come: list[str] = []
    for tag, old_start, old_end, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            gone += before[old_start:old_end]
            come += after[start:end]
    return _shown(gone), _shown(come)


def _shown(lines: Sequence[str]) -> str:
    told = [line.strip() for line in lines if line.strip()]
    more = [f"… and {len(told) - _MOST} more lines"] if len(told) > _MOST else []
    return "\n".join((*told[:_MOST], *more))


def _block(lines: Sequence[str], name: str) -> list[str]:
    """From the line that names the test to the next one that is not indented further, as most languages write it."""
    start = next((at for at, line in enumerate(lines) if _defines(line, name)), None)
    if start is None:
        return []
    depth = _indent(lines[start])
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > depth):
        end += 1
    first = start
    while first and lines[first - 1].lstrip().startswith("@"):  # decorators: parameters stand there
        first -= 1
    return list(lines[first:end])


def _defines(line: str, name: str) -> bool:
    return name in line and any(word in line for word in ("def ", "test", "it(", "func ", "fn ", "Test"))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
