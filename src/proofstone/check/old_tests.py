"""Runs the base's tests on the changed source, where the change edited tests or what decides how they run (L2).

What a linter or type checker would say if the change had not quieted it (L2 and L6).

It is asked again with the base's configuration where the change edits that, and without the suppressions that the
change adds. A suppression that names its rule is left to whoever reviews; one that names nothing and hides a complaint
needs a person's word, as an edited configuration does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proofstone.check.derived_runs import Beside
from proofstone.check.inspection import ChangedFile
from proofstone.check.models import (
    CheckKind,
    CheckResult,
    CheckSpec,
    Examined,
    TestReport,
    TestResult,
    TestStatus,
    together,
)
from proofstone.check.rules.compare import (
    edited_check,
    edited_check_finding,
    edited_expectations,
    edited_lines,
    expectation_findings,
    in_new_names,
    new_complaints,
    unrunnable,
    unrunnable_finding,
)
from proofstone.check.rules.must_fail import own_name
from proofstone.check.rules.outcome import Layer
from proofstone.check.rules.protected import Role, roles
from proofstone.check.rules.scan_rules import Suppression, suppressions, without_suppressions
from proofstone.check.variants.views import views
from proofstone.common.models import ChangeKind, Diagnostic, Finding, Severity, Verdict
from proofstone.git.objects import GITLINK, SYMLINK
from proofstone.git.program import readable

_NAME = "old-tests"


@dataclass(frozen=True)
class OldTests:
    beside: Beside
    files: Sequence[ChangedFile]
    renames: Mapping[str, str]
    """Files that moved, old path → new path."""
    base_specs: Mapping[str, CheckSpec]
    """The checks as the base's own files name them."""
    reruns: int
    accepted: bool

    def examine(self, spec: CheckSpec, before: CheckResult | None, after: CheckResult) -> Examined:
        """Tests that pass only because they were edited; none where the change left them alone."""
        if before is None:
            return Examined()
        old_spec = self.base_specs.get(spec.name, spec)
        if before.report is not None and after.report is not None:
            return self._by_id(old_spec, before, before.report, after.report)
        if after.report is None and after.kind is CheckKind.TESTS:
            return self._by_exit_code(old_spec, before)
        return Examined()

    def _by_id(self, spec: CheckSpec, before: CheckResult, known: TestReport, now: TestReport) -> Examined:
        seen = {r.path for r in known.results if r.path is not None and not _in_source(r)}
        edited = self._edited(seen)
        if not edited:
            return Examined()
        # What moved is taken away under its new name: two copies of a test would be in each other's way.
        back = edited | {self.renames[path] for path in edited if path in self.renames}
        tree = self.beside.with_base_files({os.fsencode(path) for path in back})
        tests = [r.id for r in known.results if r.path in edited]
        # A file without tests of its own (data, conftest) may decide any test: then all of them are run.
        selection = self.beside.selection(spec, known, tests) if edited <= seen else None
        old = self.beside.run(spec, tree, _NAME, argv=selection)
        if why := unrunnable(old, known, sorted(edited)):
            return Examined(findings=(unrunnable_finding(old, why, accepted=self.accepted),))
        found = self._edited_expectations(spec, known, now, old, tree)
        told = expectation_findings(found, in_new_names(old, self.renames), accepted=self.accepted)
        by_test = zip(found, told, strict=True)
        return Examined(edited=found, findings=tuple(self._side_by_side(test, one) for test, one in by_test))

    def _edited(self, seen: set[str]) -> set[str]:
        """Files of the old tests, or of what decides them, that are not as they were. A link or a submodule in such a
        place counts as it stands; a file that only moved does not."""
        content = {file.path: (file.old, file.new) for file in self.files}
        moved = {
            old
            for old, new in self.renames.items()
            if old in content and content.get(new, (None, None))[1] == content[old][0]
        }
        found = {file.path for file in self.files if file.path not in moved and _decides_tests(file, seen)}
        special = [entry for entry in self.beside.snapshot.entries if {entry.mode, entry.old_mode} & {GITLINK, SYMLINK}]
        paths = {readable(entry.path) for entry in special}
        return found | {path for path in paths if path in seen or roles(path) & {Role.TESTS, Role.RUNNER}}

    def _edited_expectations(
        self, spec: CheckSpec, known: TestReport, now: TestReport, old: CheckResult, tree: str
    ) -> tuple[str, ...]:
        """In the names of the change; told in the base's while they are run, for those are there."""
        if old.report is None:
            return ()
        renamed = in_new_names(old, self.renames).report
        new_names = dict(
            zip([r.id for r in old.report.results], [r.id for r in (renamed or old.report).results], strict=True)
        )
        base = {new_names.get(r.id, r.id) for r in known.results}
        accused = set(edited_expectations(renamed or old.report, now, base))
        left = self._still_failing(spec, known, tree, tuple(id for id, new in new_names.items() if new in accused))
        return tuple(sorted(new_names[id] for id in left))

    def _side_by_side(self, test: str, finding: Finding) -> Finding:
        """The finding with what the test expected and what it expects now."""
        file = next((item for item in self.files if item.path == finding.path and item.old and item.new), None)
        if file is None or file.old is None or file.new is None:
            return finding
        old, new = file.old.decode("utf-8", "replace"), file.new.decode("utf-8", "replace")
        before, after = edited_lines(old, new, own_name(test, file.path))
        return finding.model_copy(update={"before": before, "after": after})

    def _by_exit_code(self, spec: CheckSpec, before: CheckResult) -> Examined:
        edited = self._edited(set()) | {file.path for file in self.files if _names_command(file, spec.cwd)}
        if not edited:
            return Examined()
        tree = self.beside.with_base_files({os.fsencode(path) for path in edited})
        old = self.beside.run(spec, tree, _NAME)
        found = (edited_check_finding(old, accepted=self.accepted),) if edited_check(old) else ()
        return Examined(findings=found)

    def _still_failing(
        self, spec: CheckSpec, known: TestReport, tree: str, accused: tuple[str, ...]
    ) -> tuple[str, ...]:
        """A test that flakes is not accused: it must never pass in its old form."""
        for _ in range(self.reruns):
            selection = self.beside.selection(spec, known, accused) if accused else None
            if selection is None:
                return accused
            again = self.beside.run(spec, tree, f"{_NAME}-rerun", argv=selection)
            passed = {r.id for r in again.report.results if r.status is TestStatus.PASSED} if again.report else set()
            accused = tuple(test for test in accused if test not in passed)
        return accused


def _decides_tests(file: ChangedFile, seen: set[str]) -> bool:
    """A file of the tests that the change edited or took away, or one that decides how tests run.

    A new test file is no old test; a new conftest is taken away for the old ones.
    """
    if file.kind is ChangeKind.ADDED:
        return Role.RUNNER in file.roles
    return file.path in seen or bool(file.roles & {Role.TESTS, Role.RUNNER})


def _names_command(file: ChangedFile, cwd: str) -> bool:
    """Whether it names the command of tests that have no ids; a new one may be read instead of the old."""
    folder = file.path.rpartition("/")[0] or "."
    return folder == cwd and Role.BUILD in file.roles


def _in_source(test: TestResult) -> bool:
    """Whether it is a doctest of a module: its file is the source, and putting that back would undo the change."""
    name = test.id.partition("::")[2].partition("[")[0]
    return "." in name and (test.path or "").endswith(".py")


_SHOWN = 20


@dataclass(frozen=True)
class Quieted:
    beside: Beside
    files: Sequence[ChangedFile]
    base_specs: Mapping[str, CheckSpec]
    """The checks as the base's own files name them."""
    accepted: bool

    def examine(self, spec: CheckSpec, before: CheckResult | None, after: CheckResult) -> Examined:
        known = before.diagnostics if before else ()
        return together((self._by_configuration(spec, known, after), self._by_comment(spec, known, after)))

    def _by_configuration(self, spec: CheckSpec, known: Sequence[Diagnostic], after: CheckResult) -> Examined:
        edited = [file for file in self.files if Role.LINT in file.roles]
        if not edited:
            return Examined()
        tree = self.beside.with_base_files({os.fsencode(file.path) for file in edited})
        run = self.beside.run(self.base_specs.get(spec.name, spec), tree, "old-configuration")
        findings = tuple(
            self._finding(
                spec,
                run,
                complaint,
                Layer.PROTECTED_FILES,
                "weakened-configuration",
                f"with the base's configuration ({edited[0].path}) {run.tool} complains: {complaint.message}",
                "put it right, and leave the configuration as it is; if it was wrong, say so with "
                "--accept-test-changes",
            )
            for complaint in new_complaints((*known, *after.diagnostics), run.diagnostics)[:_SHOWN]
        )
        return Examined(findings=findings, caps=_unanswered(spec, run))

    def _by_comment(self, spec: CheckSpec, known: Sequence[Diagnostic], after: CheckResult) -> Examined:
        contents: dict[str, bytes] = {}
        added: dict[str, Sequence[Suppression]] = {}
        for file in self.files:
            lines = views(file.path, file.new) if file.new is not None else None
            if file.new is None or lines is None:
                continue
            old = views(file.path, file.old) if file.old is not None else None
            if found := suppressions(lines, {number for number, _ in file.added}, old or ()):
                contents[file.path] = without_suppressions(file.new, found, lines)
                added[file.path] = found
        if not any(item.blanket for found in added.values() for item in found):
            return Examined()  # whoever named what is wrong has said enough
        run = self.beside.run(spec, self.beside.with_contents(contents), "without-suppressions")
        hidden = new_complaints((*known, *after.diagnostics), run.diagnostics)
        findings = tuple(
            self._finding(
                spec,
                run,
                item,
                Layer.STATIC_SCAN,
                "blanket-suppression",
                f"a suppression that names no rule hides what {run.tool} says here: {item.message}",
                "put it right, or name the rule that is wrong here",
            )
            for item in hidden[:_SHOWN]
            if _hidden_by_blanket(item, added.get(item.path, ()))
        )
        return Examined(findings=findings, caps=_unanswered(spec, run))

    def _finding(
        self, spec: CheckSpec, run: CheckResult, one: Diagnostic, layer: Layer, rule: str, detail: str, fix: str
    ) -> Finding:
        return Finding(
            layer=layer,
            rule=rule,
            severity=Severity.MINOR if self.accepted else Severity.MAJOR,
            path=one.path,
            line=one.line,
            detail=detail,
            fix=fix,
            check=spec.name,
            artifact=run.artifact,
        )


def _unanswered(spec: CheckSpec, run: CheckResult) -> tuple[str, ...]:
    """What keeps the confidence down if the run gave no complaints that could be read."""
    if run.verdict is not Verdict.UNVERIFIABLE:
        return ()
    return (f"{spec.name}: what it would say if the change had not quieted it is not known: {run.reason}",)


def _hidden_by_blanket(one: Diagnostic, added: Sequence[Suppression]) -> bool:
    """Whether no suppression that names its rule covers the complaint: one on its line or before, or of that rule."""
    named = [each for each in added if not each.blanket]
    covered = any(
        each.line in (one.line, (one.line or 0) - 1) or (one.code and one.code in each.text) for each in named
    )
    return not covered and any(each.blanket for each in added)
