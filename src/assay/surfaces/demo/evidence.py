"""What the demo's run of the gate left behind, looked up afterwards: the branch, the pages, the patch, the ledger."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from assay.contracts.gate_report import GateReport
from assay.surfaces.demo.stage import Stage


@dataclass(frozen=True)
class Exhibit:
    what: str
    """A command that was run, or a file."""
    says: str


@dataclass(frozen=True)
class Evidence:
    commits: frozenset[str]
    """Of the run's branch."""
    paths: frozenset[str]
    """What these commits touch."""
    exhibits: tuple[Exhibit, ...]
    verified: bool
    """Whether the ledger is whole, in the words of another process."""


def gather(stage: Stage, report: GateReport, refused: str) -> Evidence:
    """`refused`: the task whose work was not taken."""
    git, new = stage.git, f"main..{report.branch if report.commit else 'main'}"
    verify = ("ledger", "verify", "--home", str(stage.home), "--repo", str(stage.repository))
    verified = stage.assay(*verify)
    patch = stage.repository / ".assay" / report.run_id / f"{refused}.patch"
    return Evidence(
        commits=frozenset(git.line("rev-list", new).split()),
        paths=frozenset(git.line("log", "--format=", "--name-only", new).split()),
        exhibits=(
            Exhibit(f"git log --oneline {new}", git.line("log", "--oneline", new)),
            Exhibit(shlex.join(("assay", *verify)), (verified.stdout + verified.stderr).strip()),
            Exhibit(report.state, "\n".join(_progress(Path(report.state).read_text("utf-8")))),
            Exhibit(str(patch), git.line("apply", "--stat", patch) if patch.is_file() else "there is none"),
        ),
        verified=verified.returncode == 0,
    )


def _progress(page: str) -> Iterator[str]:
    """How far the last task came: the part of STATE.md with the bar."""
    block = page.partition("```\nGate Progress:")[2].partition("\n```")[0]
    return (line for line in f"Gate Progress:{block}".splitlines() if line)
