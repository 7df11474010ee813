"""Read test results by id from what a runner wrote.

`read_report` reads a report, `environment` sets the variables that make a runner write one, `sniff_formats` finds out
what a user's own command wrote, and `rerun` builds the command that runs single tests again.

The checked project controls every byte that is read here, so nothing of it may raise. What cannot be read is described
in the report's `problems`, and the report is then incomplete.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from proofstone.check.models import ReportFormat, TestReport
from proofstone.check.reports.compiled import read_cargo, read_go
from proofstone.check.reports.javascript import read_jest, read_mocha
from proofstone.check.reports.journal import read_journals
from proofstone.check.reports.junit import read_junit
from proofstone.check.reports.rerun import (
    PATH_LIKE,
    SPACE_SEPARATED,
    build_rerun_command,
    merge_variables,
    report_variables,
)
from proofstone.check.reports.sniff import sniff_formats
from proofstone.check.reports.source import ReportBuilder, ReportSource, UnreadableError
from proofstone.check.reports.tap import read_tap

__all__ = [
    "PATH_LIKE",
    "SPACE_SEPARATED",
    "build_rerun_command",
    "merge_variables",
    "read_report",
    "report_variables",
    "sniff_formats",
]


def read_report(
    format: ReportFormat,
    report_dir: Path,
    output: bytes,
    *,
    root: str,
    cwd: str,
    exit_code: int | None,
    one_runner: bool = False,
    mask: Callable[[bytes], bytes] = bytes,
) -> TestReport:
    """Read the results of one run. `root` is the repository as the check saw it, `cwd` the check's directory below it.
    `output` is standard output and standard error in order. `exit_code` is None if the run was killed. `one_runner`
    means that the engine started exactly one runner, so that a second report is forged. `mask` removes secrets from the
    report files; `output` is masked already."""
    source = ReportSource(report_dir, output, root, cwd, exit_code, mask)
    try:
        report = _read_format(format, source)
        journals = source.list_files(rf"{format.value}-[0-9-]+\.jsonl") if one_runner else ()
    except UnreadableError as error:
        tally = ReportBuilder(format.value)
        tally.add_defect(str(error))
        return tally.build_report(complete=False)
    if len(journals) < 2:
        return report
    return report.model_copy(
        update={"forged": f"there are {len(journals)} reports of {format.value}, which ran only once"}
    )


def _read_format(format: ReportFormat, source: ReportSource) -> TestReport:
    match format:
        case ReportFormat.PYTEST | ReportFormat.UNITTEST | ReportFormat.NODE:
            return read_journals(format.value, source)
        case ReportFormat.JEST | ReportFormat.VITEST:
            return read_jest(format.value, source)
        case ReportFormat.MOCHA:
            return read_mocha(source)
        case ReportFormat.GO:
            return read_go(source)
        case ReportFormat.CARGO:
            return read_cargo(source)
        case ReportFormat.JUNIT:
            return read_junit(source)
        case ReportFormat.TAP:
            return read_tap(source)
        case ReportFormat.EXIT_CODE:
            return ReportBuilder(format.value).build_report(complete=source.exit_code is not None)
