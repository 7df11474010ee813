"""Rerun linters and type checkers without what the change suppressed (L6).

They run with the base's configuration if the change edits it, and without the suppressions that the change adds. A
suppression that names its rule is left to the reviewer. A blanket suppression that hides a complaint must be accepted
by a person, like an edited configuration.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proofstone.check.derived_runs import DerivedRuns
from proofstone.check.inspection import ChangedFile
from proofstone.check.models import CheckResult, CheckSpec, LayerResult, merge_layer_results
from proofstone.check.rules.compare import find_new_diagnostics
from proofstone.check.rules.outcome import EvidenceLayer
from proofstone.check.rules.protected import ProtectedRole
from proofstone.check.rules.scan_rules import Suppression, find_suppressions, remove_suppressions
from proofstone.check.variants.views import split_views
from proofstone.common.models import ConfidenceReason, Diagnostic, Finding, Severity, Verdict

_MAX_FINDINGS = 20


@dataclass(frozen=True)
class SuppressionCheck:
    """The layer that reruns linters without what the change suppressed."""

    derived_runs: DerivedRuns
    files: Sequence[ChangedFile]
    base_specs: Mapping[str, CheckSpec]
    """The checks as the base's own files name them."""

    def examine(self, spec: CheckSpec, before: CheckResult | None, after: CheckResult) -> LayerResult:
        """Return the complaints that the change hides by configuration or by comments."""
        base_diagnostics = before.diagnostics if before else ()
        return merge_layer_results(
            (
                self._examine_configuration(spec, base_diagnostics, after),
                self._examine_comments(spec, base_diagnostics, after),
            )
        )

    def _examine_configuration(
        self, spec: CheckSpec, base_diagnostics: Sequence[Diagnostic], after: CheckResult
    ) -> LayerResult:
        edited = [file for file in self.files if ProtectedRole.LINT in file.roles]
        if not edited:
            return LayerResult()
        tree = self.derived_runs.with_base_files({os.fsencode(file.path) for file in edited})
        run = self.derived_runs.run(self.base_specs.get(spec.name, spec), tree, "old-configuration")
        findings = tuple(
            self._build_finding(
                spec,
                run,
                complaint,
                EvidenceLayer.PROTECTED_FILES,
                "weakened-configuration",
                f"with the base's configuration ({edited[0].path}) {run.tool} complains: {complaint.message}",
                "fix the complaint and restore the configuration",
            )
            for complaint in find_new_diagnostics((*base_diagnostics, *after.diagnostics), run.diagnostics)[
                :_MAX_FINDINGS
            ]
        )
        return LayerResult(findings=findings, reasons=_describe_gap(spec, run))

    def _examine_comments(
        self, spec: CheckSpec, base_diagnostics: Sequence[Diagnostic], after: CheckResult
    ) -> LayerResult:
        contents: dict[str, bytes] = {}
        added: dict[str, Sequence[Suppression]] = {}
        for file in self.files:
            lines = split_views(file.path, file.new) if file.new is not None else None
            if file.new is None or lines is None:
                continue
            old = split_views(file.path, file.old) if file.old is not None else None
            if new_suppressions := find_suppressions(lines, {number for number, _ in file.added_lines}, old or ()):
                contents[file.path] = remove_suppressions(file.new, new_suppressions, lines)
                added[file.path] = new_suppressions
        if not any(suppression.blanket for new_suppressions in added.values() for suppression in new_suppressions):
            return LayerResult()  # a suppression that names its rule is left to the reviewer
        run = self.derived_runs.run(spec, self.derived_runs.with_contents(contents), "without-suppressions")
        hidden = find_new_diagnostics((*base_diagnostics, *after.diagnostics), run.diagnostics)
        findings = tuple(
            self._build_finding(
                spec,
                run,
                diagnostic,
                EvidenceLayer.STATIC_SCAN,
                "blanket-suppression",
                f"a suppression that names no rule hides what {run.tool} says here: {diagnostic.message}",
                "fix the complaint, or name the rule that does not apply here",
            )
            for diagnostic in hidden[:_MAX_FINDINGS]
            if _is_hidden_by_blanket(diagnostic, added.get(diagnostic.path, ()))
        )
        return LayerResult(findings=findings, reasons=_describe_gap(spec, run))

    def _build_finding(
        self,
        spec: CheckSpec,
        run: CheckResult,
        diagnostic: Diagnostic,
        layer: EvidenceLayer,
        rule: str,
        detail: str,
        fix: str,
    ) -> Finding:
        return Finding(
            layer=layer,
            rule=rule,
            severity=Severity.MAJOR,
            path=diagnostic.path,
            line=diagnostic.line,
            detail=detail,
            fix=fix,
            check=spec.name,
            artifact=run.artifact,
        )


def _describe_gap(spec: CheckSpec, run: CheckResult) -> tuple[ConfidenceReason, ...]:
    """Return what is unknown if the run gave no readable complaints."""
    if run.verdict is not Verdict.UNVERIFIABLE:
        return ()
    reason = f"{spec.name}: unknown what it reports without the suppressions of the change: {run.reason}"
    return (ConfidenceReason(reason=reason, remedy=f"let {spec.name} run on files without these suppressions"),)


def _is_hidden_by_blanket(diagnostic: Diagnostic, added: Sequence[Suppression]) -> bool:
    """Return whether only a blanket suppression hides the complaint. It does not if a suppression that names a rule is
    on its line, on the line before, or names its rule."""
    named = [suppression for suppression in added if not suppression.blanket]
    covered = any(
        suppression.line in (diagnostic.line, (diagnostic.line or 0) - 1)
        or (diagnostic.code and diagnostic.code in suppression.text)
        for suppression in named
    )
    return not covered and any(suppression.blanket for suppression in added)
