"""What the demo left behind, looked up afterwards: the branch, the pages, the ledger; and what is not as it must be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from proofstone.contracts.gate_report import RunOutcome
from proofstone.contracts.pipeline.run import RunReport
from proofstone.surfaces.demo.moments import Moment
from proofstone.surfaces.demo.stage import Stage


@dataclass(frozen=True)
class Aftermath:
    commits: tuple[str, ...]
    """That the run's branch has and the person's has not."""
    tree: str
    """Of the last of them."""
    untouched: bool
    """The person's branch and files are as they were."""
    pages: tuple[Path, ...]
    """The evidence bundle, as Markdown and for a browser."""
    verified: bool
    """Whether the ledger is whole, in the words of another process."""
    verdict: str
    """These words."""


def look(stage: Stage, report: RunReport) -> Aftermath:
    git = stage.git
    tip = report.branch if report.commit else "main"
    verified = stage.proofstone(
        "ledger", "verify", "--full", "--home", str(stage.home), "--repo", str(stage.repository)
    )
    page = Path(report.bundle)
    return Aftermath(
        commits=tuple(git.line("rev-list", f"main..{tip}").split()),
        tree=git.tree_of(tip),
        untouched=git.line("rev-parse", "main") == report.base_commit and not git.line("status", "--porcelain"),
        pages=tuple(one for one in (page, page.with_suffix(".html")) if one.is_file()),
        verified=verified.returncode == 0,
        verdict=(verified.stdout + verified.stderr).strip(),
    )


def wrongs(report: RunReport, seen: Mapping[str, Moment | None], left: Aftermath) -> Iterator[str]:
    """In what the demo is not what it must be."""
    if report.outcome is not RunOutcome.PASSED:
        yield f"the run {report.outcome.value}: {report.reason}"
    yield from (f"the ledger does not show that {name}" for name, moment in seen.items() if moment is None)
    if report.commit is None or left.commits != (report.commit,):
        yield f"{report.branch} has {len(left.commits)} commits of the run, not just the one that it reports"
    if report.final is None or not report.final.passed or left.tree != report.final.tree:
        yield "what is committed is not the tree on which all checks passed"
    if not left.untouched:
        yield "main, or its files, were changed"
    if len(left.pages) != 2:
        yield "the evidence bundle was not written as Markdown and for a browser"
    if not left.verified:
        yield f"the ledger does not verify: {left.verdict}"
