"""Write what the code host shows: one comment of at most sixty lines, and annotations at the lines of the findings.

Text of the change is quoted as data: it can neither close a block nor name a person, and no control character passes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from proofstone.check.models import CheckReport
from proofstone.check.rules.acceptance import describe_acceptance, find_acceptable
from proofstone.ci.rules.approvals import LABEL
from proofstone.common.models import Finding, Outcome, Severity
from proofstone.common.text import escape_control, pluralize

MARKER: Final = "<!-- proofstone -->"
"""The first line of the comment, by which the next run finds it."""
MAX_LINES: Final = 60
_MAX_FINDINGS: Final = 10
_MAX_DIFF_LINES: Final = 4
_MAX_LENGTH: Final = 200
_SIGNS: Final = {
    Outcome.PASSED: "✅",
    Outcome.FAILED: "❌",
    Outcome.UNVERIFIABLE: "❔",
    Outcome.NEEDS_DECISION: "✋",
    Outcome.NOTHING_TO_CHECK: "➖",
}
_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]<>#|~])")
_MENTION: Final = re.compile(r"@(?=\w)")


def write_comment(report: CheckReport, run_url: str = "", ignored: Sequence[str] = ()) -> str:
    """Return the comment about a check. `ignored` says which approvals do not count, and why."""
    head = [*_write_head(report)]
    tail = [*_write_tail(report, run_url, ignored)]
    room = MAX_LINES - len(head) - len(tail) - 1
    body: list[str] = []
    findings = sorted(report.findings, key=lambda finding: list(Severity).index(finding.severity))
    shown = 0
    for finding in findings[:_MAX_FINDINGS]:
        lines = [*_write_finding(finding)]
        if len(body) + len(lines) > room:
            break
        body += lines
        shown += 1
    if shown < len(findings):
        body.append(f"{pluralize(len(findings) - shown, 'more finding')} in the report of the job.")
    return "\n".join((*head, *body, *tail)) + "\n"


def _write_head(report: CheckReport) -> Iterator[str]:
    title = report.outcome.value.replace("-", " ")
    confidence = f", confidence {report.confidence.value}" if report.confidence and _has_passed(report) else ""
    yield MARKER
    yield f"### {_SIGNS[report.outcome]} Proofstone: {title}{confidence}"
    yield ""
    if report.reason:
        yield _quote(report.reason)
    yield (
        f"{pluralize(len(report.changed), 'file')} changed against `{report.base_commit[:12]}`; tree "
        f"`{report.tree[:12]}`."
    )
    if _has_passed(report):
        yield from (f"- {_quote(str(reason))}" for reason in report.reasons[:8])
    yield ""


def _has_passed(report: CheckReport) -> bool:
    return report.outcome is Outcome.PASSED


def _write_finding(finding: Finding) -> Iterator[str]:
    where = f" in `{_code(finding.path)}{f':{finding.line}' if finding.line else ''}`" if finding.path else ""
    yield f"**{finding.rule}** ({finding.severity.value}){where}: {_quote(finding.headline)}"
    changed = [*_mark("-", finding.before), *_mark("+", finding.after)]
    if changed:
        yield "~~~~~~diff"
        yield from changed
        yield "~~~~~~"
    yield f"What to do: {_quote(finding.fix)}"
    yield ""


def _mark(sign: str, text: str | None) -> list[str]:
    lines = (text or "").splitlines()[:_MAX_DIFF_LINES]
    return [f"{sign} {escape_control(line).replace('~~~', '~ ~ ~')[:_MAX_LENGTH]}" for line in lines]


def _write_tail(report: CheckReport, run_url: str, ignored: Sequence[str]) -> Iterator[str]:
    rules = list(dict.fromkeys(finding.rule for finding in find_acceptable(report.findings)))
    if rules and not _has_passed(report):
        yield (
            f"If this is intended, a maintainer other than the author sets the label `{LABEL}{rules[0]}`, or reviews "
            f"with a line `proofstone accept {rules[0]}: why`. An author who thinks a test is wrong tells a reviewer."
        )
    yield from (f"Accepted: {_quote(describe_acceptance(acceptance))}" for acceptance in report.accepted[:5])
    yield from (f"Does not count: {_quote(text)}" for text in ignored[:5])
    link = f" [The job]({run_url}) has the whole report." if run_url else ""
    yield f"`proofstone explain RULE` explains a finding.{link}"


def _quote(text: str) -> str:
    """Return text of the change so that Markdown shows it as it is, on one line, and notifies nobody."""
    flat = " ".join(escape_control(text).split())[:400]
    return _MENTION.sub("@\u200b", _MARKDOWN.sub(r"\\\1", flat))


def _code(text: str) -> str:
    return escape_control(text).replace("`", "'")[:_MAX_LENGTH]


def list_annotations(findings: Sequence[Finding]) -> list[str]:
    """Return GitHub's workflow commands that show the findings at their lines."""
    return [_build_annotation(finding) for finding in findings[:50]]


def _build_annotation(finding: Finding) -> str:
    level = "notice" if finding.severity is Severity.MINOR else "error"
    fields = {"title": f"Proofstone {finding.rule}"}
    if finding.path:
        fields = {"file": finding.path, "line": str(finding.line or 1), **fields}
    values = ",".join(f"{name}={_escape(value, ',', ':')}" for name, value in fields.items())
    return f"::{level} {values}::{_escape(f'{finding.detail} – what to do: {finding.fix}')}"


def _escape(text: str, *further: str) -> str:
    """Return a value as workflow commands want it: no line break can begin a command of its own."""
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    for char in further:
        escaped = escaped.replace(char, f"%{ord(char):02X}")
    return escape_control(escaped)
