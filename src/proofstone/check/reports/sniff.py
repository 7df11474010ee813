"""Find out which report a user's own command wrote. Only unmistakable signs count."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from proofstone.check.models import ReportFormat
from proofstone.check.reports.source import ReportSource, UnreadableError

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


def sniff_formats(report_dir: Path, output: bytes) -> tuple[ReportFormat, ...]:
    """Return every report format that is found, because one command may start several runners. The output, where any
    program may print anything, is examined only if there are no files."""
    source = ReportSource(report_dir, output, "/", ".", None)
    try:
        formats = tuple(format for pattern, format in _FILES if source.list_files(pattern))
    except UnreadableError:  # too many files to be a report of ours
        return ()
    if formats:
        return formats
    printed = tuple(format for sign, format in _OUTPUT if sign.search(output))
    if not printed and _PLAN.search(output) and _POINT.search(output):
        return (ReportFormat.TAP,)
    return printed[:1]
