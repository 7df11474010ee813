"""Which report a person's own command left behind. Only what cannot be mistaken counts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from proofstone.check.models import ReportFormat
from proofstone.check.reports.source import Source, UnreadableError

_FILES: Final = (
    (r"pytest-[0-9-]+\.jsonl", ReportFormat.PYTEST),
    (r"unittest-[0-9-]+\.jsonl", ReportFormat.UNITTEST),
    (r"node-[0-9-]+\.jsonl", ReportFormat.NODE),
    (r"jest\.json", ReportFormat.JEST),
    (r"vitest\.json", ReportFormat.VITEST),
    (r"mocha\.json", ReportFormat.MOCHA),
    (r"[^/]+\.xml", ReportFormat.JUNIT),
    (r"[^/]+\.tap", ReportFormat.TAP),
)

_OUTPUT: Final = (
    (re.compile(rb'^\{"(?:Time|Action|ImportPath)":.*"Action":|^\{"Action":', re.MULTILINE), ReportFormat.GO),
    (re.compile(rb"^test result: (?:ok|FAILED)\. \d+ passed; ", re.MULTILINE), ReportFormat.CARGO),
    (re.compile(rb"^TAP version 1[2-4]\r?$", re.MULTILINE), ReportFormat.TAP),
)
_PLAN = re.compile(rb"^1\.\.\d+", re.MULTILINE)
_POINT = re.compile(rb"^(?:not )?ok \d+", re.MULTILINE)


def sniff(report_dir: Path, output: bytes) -> ReportFormat | None:
    """The first that is there: report files before the output, where any program may print anything."""
    return next(iter(sniff_all(report_dir, output)), None)


def sniff_all(report_dir: Path, output: bytes) -> tuple[ReportFormat, ...]:
    """Every report that is there: one command may start several runners. The output is asked only without files."""
    source = Source(report_dir, output, "/", ".", None)
    try:
        found = tuple(format for pattern, format in _FILES if source.files(pattern))
    except UnreadableError:  # too many files to be any report of ours
        return ()
    if found:
        return found
    printed = tuple(format for sign, format in _OUTPUT if sign.search(output))
    if not printed and _PLAN.search(output) and _POINT.search(output):
        return (ReportFormat.TAP,)
    return printed[:1]
