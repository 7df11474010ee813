"""Test results by id.

`read_report` reads what a runner wrote, `environment` makes it write, `sniff` finds out what a person's own
command wrote, `rerun` runs single tests again.

The checked project controls every byte that is read here. Nothing of it raises: what cannot be read is said in the
report's `problems`, and the report is then not complete.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from proofstone.check.models import ReportFormat, TestReport
from proofstone.check.reports.compiled import read_cargo, read_go
from proofstone.check.reports.javascript import read_jest, read_mocha
from proofstone.check.reports.journal import read_journals
from proofstone.check.reports.junit import read_junit
from proofstone.check.reports.rerun import PATH_LIKE, SPACE_SEPARATED, environment, merge, rerun
from proofstone.check.reports.sniff import sniff, sniff_all
from proofstone.check.reports.source import Source, Tally, UnreadableError
from proofstone.check.reports.tap import read_tap

__all__ = [
    "PATH_LIKE",
    "PROBES",
    "SPACE_SEPARATED",
    "environment",
    "merge",
    "read_report",
    "rerun",
    "sniff",
    "sniff_all",
]

PROBES = Path(__file__).resolve().parent.parent / "probes"
"""What `{probes}` stands for outside of a sandbox."""


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
    """The results of one run. `root` is the repository as the check saw it, `cwd` the check's directory below it;
    `output` is standard output and standard error in the order they came; `exit_code` is None if it was killed;
    `one_runner` says that the engine started exactly one, so that a second report is somebody else's; `mask` takes
    secrets out of the report files, `output` has none left."""
    source = Source(report_dir, output, root, cwd, exit_code, mask)
    try:
        report = _read(format, source)
        written = source.files(rf"{format.value}-[0-9-]+\.jsonl") if one_runner else ()
    except UnreadableError as error:
        tally = Tally(format.value)
        tally.broken(str(error))
        return tally.report(complete=False)
    if len(written) < 2:
        return report
    return report.model_copy(update={"forged": f"there are {len(written)} reports of {format.value}, which ran once"})


def _read(format: ReportFormat, source: Source) -> TestReport:
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
            return Tally(format.value).report(complete=source.exit_code is not None)
