"""What a linter or type checker would say if the change had not quieted it (L2 and L6).

It is asked again with the base's configuration where the change edits that, and without the suppressions that the
change adds. A suppression that names its rule is left to whoever reviews; one that names nothing and hides a complaint
needs a person's word, as an edited configuration does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proofstone.adapters.sources.views import views
from proofstone.contracts.check import CheckResult, CheckSpec
from proofstone.contracts.diagnostic import Diagnostic
from proofstone.contracts.examined import Examined, together
from proofstone.contracts.finding import Finding
from proofstone.contracts.verdict import Severity, Verdict
from proofstone.core.complaints import new_complaints
from proofstone.core.layers import Layer
from proofstone.core.protected import Role
from proofstone.core.scan_suppressions import Suppression, suppressions, without_suppressions
from proofstone.engine.beside import Beside
from proofstone.engine.inspection import ChangedFile

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
                one,
                Layer.PROTECTED_FILES,
                "weakened-configuration",
                f"with the base's configuration ({edited[0].path}) {run.tool} complains: {one.message}",
                "put it right, and leave the configuration as it is; if it was wrong, say so with "
                "--accept-test-changes",
            )
            for one in new_complaints((*known, *after.diagnostics), run.diagnostics)[:_SHOWN]
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
        if not any(one.blanket for found in added.values() for one in found):
            return Examined()  # whoever named what is wrong has said enough
        run = self.beside.run(spec, self.beside.with_contents(contents), "without-suppressions")
        hidden = new_complaints((*known, *after.diagnostics), run.diagnostics)
        findings = tuple(
            self._finding(
                spec,
                run,
                one,
                Layer.STATIC_SCAN,
                "blanket-suppression",
                f"a suppression that names no rule hides what {run.tool} says here: {one.message}",
                "put it right, or name the rule that is wrong here",
            )
            for one in hidden[:_SHOWN]
            if _hidden_by_blanket(one, added.get(one.path, ()))
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
