"""Build the page about one check: the verdict, the findings beside the lines they are about, tests, checks, evidence.

The page is a `Document`; it is written as HTML or Markdown. Lists of tests are bounded, and say how many are left out.
A line of the diff that holds a secret is not shown, because the page may be passed on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from proofstone.check.models import CheckLine, CheckReport, TestStrength
from proofstone.check.rules.acceptance import describe_acceptance
from proofstone.check.rules.disputes import describe_dispute
from proofstone.check.rules.strength import SECRET_RULES, describe_strength
from proofstone.common.models import Confidence, Finding, Outcome, Severity, Verdict
from proofstone.common.text import pluralize
from proofstone.documents.diff import DiffHunk, DiffLineKind, FileDiff, ShownDiff
from proofstone.documents.model import (
    Block,
    Bullets,
    CodeBlock,
    DiffBlock,
    Document,
    Heading,
    Inline,
    Paragraph,
    Remark,
    Section,
    Tone,
    bullets,
    code,
    faint,
    inline,
    strong,
    table,
)

_MAX_TESTS: Final = 200
_MAX_FINDINGS: Final = 100
_HIDDEN_LINE: Final = "[not shown: this line may hold a secret]"
_OUTCOME_TONES: Final = {
    Outcome.PASSED: Tone.GOOD,
    Outcome.FAILED: Tone.BAD,
    Outcome.UNVERIFIABLE: Tone.UNSURE,
    Outcome.NEEDS_DECISION: Tone.UNSURE,
}
_CONFIDENCE_TONES: Final = {Confidence.HIGH: Tone.GOOD, Confidence.MEDIUM: Tone.UNSURE, Confidence.LOW: Tone.BAD}
_VERDICT_TONES: Final = {Verdict.PASS: Tone.GOOD, Verdict.FAIL: Tone.BAD, Verdict.UNVERIFIABLE: Tone.UNSURE}


@dataclass(frozen=True)
class CheckEvidence:
    """Where the evidence of a check is, and the diff that was checked."""

    diff: ShownDiff
    seq: int | None = None
    """The row of the ledger that holds the verdict."""
    hash: str = ""
    """The hash of that row, which is bound to all rows before it."""
    report: str = ""
    """The artifact that holds the report."""


def build_check_page(report: CheckReport, evidence: CheckEvidence) -> Document:
    """Return the page."""
    return Document(
        title=f"Check of {pluralize(len(report.changed), 'changed file')}",
        summary=tuple(_build_summary(report)),
        sections=(
            Section("Findings", tuple(_build_findings(report.findings))),
            Section("The change", tuple(_build_diff(report, evidence))),
            Section("Tests, before and after", tuple(_build_tests(report))),
            Section("Strength of the tests", tuple(_build_strength(report.strength))),
            Section("Checks", _build_checks(report.checks)),
            Section("Notes", bullets(inline(note) for note in report.notes)),
            Section("Where the evidence is", tuple(_build_evidence(report, evidence))),
        ),
    )


def find_page_tone(report: CheckReport) -> str:
    """Return the colour of the whole page."""
    return _OUTCOME_TONES.get(report.outcome, "")


def _build_summary(report: CheckReport) -> Iterator[Block]:
    verdict = strong(report.outcome.value.upper(), _OUTCOME_TONES.get(report.outcome))
    yield Paragraph(inline(verdict, f": {report.reason}" if report.reason else ""))
    why = f", {report.base_reason}" if report.base_reason else ""
    yield Paragraph(
        inline("Compared with ", code(report.base_commit[:12]), why, "; tree ", code(report.tree[:12]), ".")
    )
    if report.outcome is Outcome.PASSED and report.confidence is not None:
        level = strong(report.confidence.value, _CONFIDENCE_TONES[report.confidence])
        yield Paragraph(inline("Confidence: ", level, ", because:" if report.reasons else "."))
        yield from bullets(
            inline(reason.reason, faint(f" – to raise it: {reason.remedy}") if reason.remedy else "")
            for reason in report.reasons
        )
    if report.accepted:
        yield Paragraph(inline("Accepted by a person:"))
        yield from bullets(inline(describe_acceptance(acceptance)) for acceptance in report.accepted)
    if report.disputes:
        yield Paragraph(inline("Disputed by the author of the change, and not decided yet:"))
        yield from bullets(inline(describe_dispute(dispute)) for dispute in report.disputes)


def _sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    order = list(Severity)
    return sorted(findings, key=lambda finding: order.index(finding.severity))


def _build_findings(findings: Sequence[Finding]) -> Iterator[Block]:
    if not findings:
        yield Paragraph(inline("None."))
    for finding in _sort_findings(findings)[:_MAX_FINDINGS]:
        yield Heading(f"{finding.rule} ({finding.severity})")
        first, *quoted = finding.detail.split("\n")
        yield Paragraph(inline(first))
        if any(line.strip() for line in quoted):
            yield CodeBlock("\n".join(quoted))
        if finding.before or finding.after:
            yield CodeBlock("\n".join((*_mark("-", finding.before), *_mark("+", finding.after))), "diff")
        facts = []
        if finding.path:
            where = f"{finding.path}:{finding.line}" if finding.line else finding.path
            facts.append(inline("where: ", code(where)))
        facts.append(inline("what to do: ", finding.fix))
        if finding.artifact:
            facts.append(inline("evidence: ", code(f"proofstone ledger artifact {finding.artifact[:12]}")))
        yield Bullets(tuple(facts))
    if len(findings) > _MAX_FINDINGS:
        yield Paragraph(inline(f"{len(findings) - _MAX_FINDINGS} more findings are left out; --json has all."))


def _mark(sign: str, text: str | None) -> list[str]:
    return [f"{sign} {line}" for line in (text or "").splitlines()]


def _build_diff(report: CheckReport, evidence: CheckEvidence) -> Iterator[Block]:
    diff = evidence.diff
    if diff.problem:
        yield Paragraph(inline(f"The diff cannot be shown: {diff.problem}."))
        yield from bullets(inline(code(path)) for path in report.changed)
        return
    if not diff.files:
        yield Paragraph(inline("Nothing changed."))
        return
    secret = {(finding.path, finding.line) for finding in report.findings if finding.rule in SECRET_RULES}
    remarks = tuple(_build_remark(finding) for finding in _sort_findings(report.findings) if finding.path)
    yield DiffBlock(tuple(hide_lines(file, secret) for file in diff.files), remarks, diff.left_out)


def hide_lines(file: FileDiff, secret: Iterable[tuple[str | None, int | None]]) -> FileDiff:
    """Return the diff of a file without the text of the added lines that hold a secret."""
    hidden = {line for path, line in secret if path == file.path}
    return replace(
        file,
        hunks=tuple(
            DiffHunk(
                tuple(
                    replace(line, text=_HIDDEN_LINE) if line.kind is DiffLineKind.ADDED and line.new in hidden else line
                    for line in hunk.lines
                )
            )
            for hunk in file.hunks
        ),
    )


def _build_remark(finding: Finding) -> Remark:
    is_grave = finding.severity is not Severity.MINOR
    tone = Tone.BAD if is_grave else Tone.UNSURE
    text = inline(strong(f"{finding.rule} ({finding.severity})", tone), f": {finding.headline}")
    return Remark(finding.path or "", finding.line, text, (inline(faint(f"what to do: {finding.fix}")),), tone)


def _build_tests(report: CheckReport) -> Iterator[Block]:
    groups: tuple[tuple[str, Sequence[str], Tone | None], ...] = (
        ("failed before, pass now", report.fixed, Tone.GOOD),
        ("passed before, fail now", report.regressions, Tone.BAD),
        ("ran before, do not exist now", _find_lost(report, "test-vanished"), Tone.BAD),
        ("ran before, are skipped now", _find_lost(report, "test-skipped"), Tone.BAD),
        ("pass only because they were edited", report.edited, Tone.BAD),
        ("check less than before", _find_lost(report, "weakened-test"), Tone.BAD),
        ("flaky", report.flaky, Tone.UNSURE),
        ("fail without the change, so they depend on it", report.sensitive, Tone.GOOD),
        ("failed before and fail still, not held against the change", report.standing, None),
        ("cannot be verified in the sandbox", report.unverifiable_tests, Tone.UNSURE),
    )
    counts = [(line.name, line.tests) for line in report.checks if line.tests is not None]
    if counts:
        yield Paragraph(inline("; ".join(f"{name}: {pluralize(number, 'test')} ran" for name, number in counts) + "."))
    yield from table(
        ("what", "tests"),
        ((strong(title, tone), str(len(tests))) for title, tests, tone in groups if tests),
    )
    for title, tests, _ in groups:
        if tests:
            yield Heading(title[0].upper() + title[1:])
            yield Bullets(tuple(_list_tests(tests)))
    if not counts and not any(tests for _, tests, _ in groups):
        yield Paragraph(inline("No test results by name."))


def _build_strength(strength: TestStrength | None) -> Iterator[Block]:
    if strength is None:
        return
    yield Paragraph(inline(f"Mistakes were made in the changed lines, one at a time: {describe_strength(strength)}."))
    for survivor in strength.survivors:
        yield Paragraph(inline("Not noticed: ", code(f"{survivor.path}:{survivor.line}"), f", {survivor.operator}"))
        yield CodeBlock("\n".join((*_mark("-", survivor.before), *_mark("+", survivor.after))), "diff")


def _list_tests(tests: Sequence[str]) -> Iterator[Inline]:
    yield from (inline(code(test)) for test in tests[:_MAX_TESTS])
    if len(tests) > _MAX_TESTS:
        yield inline(f"{len(tests) - _MAX_TESTS} more are left out; --json has all")


def _find_lost(report: CheckReport, rule: str) -> tuple[str, ...]:
    """Return the tests that the findings of a rule are about."""
    names = (
        finding.tests or (finding.detail.partition(": ")[0],) for finding in report.findings if finding.rule == rule
    )
    return tuple(dict.fromkeys(test for tests in names for test in tests))


def _build_checks(checks: Sequence[CheckLine]) -> tuple[Block, ...]:
    return table(
        ("check", "on the base", "now", "tests", "time", "command", "remark"),
        (
            (
                line.name,
                _say_verdict(line.baseline),
                _say_verdict(line.verdict),
                "" if line.tests is None else str(line.tests),
                "known" if line.reused else f"{line.duration_ms / 1000:.1f} s" if line.duration_ms else "",
                inline(code(line.command)) if line.command else "",
                line.reason,
            )
            for line in checks
        ),
    )


def _say_verdict(verdict: Verdict | None) -> Inline:
    return inline(strong(verdict.value, _VERDICT_TONES[verdict])) if verdict is not None else ()


def _describe_isolation(report: CheckReport) -> str:
    """Return at which level the checks ran; nothing is claimed of a sandbox that no check needed."""
    if all(line.assurance is None for line in report.checks):
        return "no check started a program, so none needed a sandbox"
    return f"weakest isolation of a check: {report.assurance.value}"


def _build_evidence(report: CheckReport, evidence: CheckEvidence) -> Iterator[Block]:
    facts = [
        inline("run ", code(report.run_id), ", ledger ", code(report.ledger)),
        inline("tree ", code(report.tree), ", base ", code(report.base_commit)),
        inline(_describe_isolation(report)),
    ]
    if evidence.report:
        facts.append(inline("the report as JSON: ", code(f"proofstone ledger artifact {evidence.report[:12]}")))
    facts.append(inline(code(f"proofstone ledger show {report.run_id}"), " shows every row of the run"))
    facts.append(inline(code("proofstone ledger verify"), " shows that nobody has changed the record since"))
    yield Bullets(tuple(facts))
    if evidence.hash:
        yield Paragraph(inline(f"The verdict is row {evidence.seq} of the ledger, whose hash is:"))
        yield CodeBlock(evidence.hash)
