"""A small project on disk, and its tests run as the engine runs them: with the probes, outside of any sandbox."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proofstone.check.models import ReportFormat, TestReport
from proofstone.check.observation import ObservationRequest, Observations
from proofstone.check.reports import read_report
from proofstone.check.reports.observed_lines import read_observations, write_observation_request
from proofstone.check.reports.rerun import merge_variables, report_variables
from proofstone.check.reports.source import ReportSource
from proofstone.sandbox.bubblewrap import PROBES_FOLDER

FIXTURES = Path(__file__).parents[2] / "fixtures" / "reports"

_KEPT = ("PATH", "HOME", "LANG", "RUSTUP_HOME", "CARGO_HOME", "GOPATH", "GOCACHE")


@dataclass
class Project:
    root: Path
    cwd: str = "."
    env: Mapping[str, str] = field(default_factory=dict)
    observe: ObservationRequest | None = None
    observations: Observations | None = None
    """What the last run observed."""
    runs: int = 0
    exit_code: int = 0
    output: str = ""

    def file(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    @property
    def report_dir(self) -> Path:
        return self.root.parent / f"report-{self.runs}"

    def run(self, format: ReportFormat, argv: Sequence[str] | str, *, probed: bool = True) -> TestReport:
        """Run, and read the report. A string is a command line for the shell, as a person would type it."""
        self.runs += 1
        self.report_dir.mkdir()
        if self.observe:
            write_observation_request(self.observe, self.report_dir, str(self.root))
        base = {name: os.environ[name] for name in _KEPT if name in os.environ} | dict(self.env)
        added = report_variables(format) if probed else {}
        wanted = {name: self.filled(value) for name, value in added.items()}
        done = subprocess.run(
            argv if isinstance(argv, str) else [self.filled(word) for word in argv],
            shell=isinstance(argv, str),
            cwd=self.root / self.cwd,
            env=merge_variables(base, wanted),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.exit_code, self.output = done.returncode, done.stdout.decode()
        source = ReportSource(self.report_dir, done.stdout, str(self.root), self.cwd, done.returncode)
        self.observations = read_observations(source, self.observe) if self.observe else None
        return read_report(
            format, self.report_dir, done.stdout, root=str(self.root), cwd=self.cwd, exit_code=done.returncode
        )

    def filled(self, text: str) -> str:
        return text.replace("{report}", str(self.report_dir)).replace("{probes}", str(PROBES_FOLDER))


def statuses(report: TestReport) -> dict[str, str]:
    return {result.id: result.status.value for result in report.results}


def read_fixture(format: ReportFormat, name: str, directory: Path, *, as_name: str | None = None) -> TestReport:
    """A stored report, read as if it had just been written for a repository at /repo."""
    data = (FIXTURES / name).read_bytes()
    (directory / (as_name or name)).write_bytes(data)
    return read_report(format, directory, data, root="/repo", cwd=".", exit_code=1)
