"""Replay the history of a repository: check each commit against its parent, and count what is refused.

`python -m benchmarks.history REPOSITORY [--last 30] [--state FOLDER] [--json FILE]`

The commits of a published package are honest work, so each refusal is either a fact that a person wants to know (an
edited expectation, a test that is gone) or a false alarm. REPOSITORY is a clone of your own with the environment that
its tests need (`.venv` in it): its work tree is checked out at each commit in turn, and left at the branch it was on.
Only commits that touch code or tests are replayed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import proofstone
from proofstone.common.models import Outcome, Severity

SUFFIXES = (".py", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".go", ".rs", ".java", ".rb")


@dataclass(frozen=True)
class ReplayedCommit:
    """What a check said about one commit."""

    commit: str
    subject: str
    outcome: str
    confidence: str
    reason: str
    findings: tuple[str, ...]
    """The findings that refuse the commit, as `rule: detail`."""
    reasons: tuple[str, ...]
    """Why the confidence is not high."""

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(sorted({finding.partition(":")[0] for finding in self.findings}))

    def __str__(self) -> str:
        rules = f"  {', '.join(self.rules)}" if self.rules else f"  {self.reason}" if self.reason else ""
        return f"{self.commit[:10]}  {self.outcome:<16} {self.confidence:<7} {self.subject[:60]}{rules}"


def list_commits(repository: Path, count: int) -> list[tuple[str, str]]:
    """Return the newest commits that touch code and have one parent, oldest first, as (commit, subject)."""
    globs = [f"*{suffix}" for suffix in SUFFIXES]
    log = _git(repository, "log", f"-{count}", "--no-merges", "--min-parents=1", "--format=%H %s", "--", *globs)
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in reversed(log.splitlines())]


def replay(repository: Path, commit: str, subject: str, home: Path) -> ReplayedCommit:
    """Check one commit against its parent."""
    _git(repository, "checkout", "--quiet", "--detach", "--force", commit)
    try:
        report = proofstone.check_change(repository, base=f"{commit}^", home=home)
    except proofstone.ProofstoneError as error:
        return ReplayedCommit(commit, subject, "error", "", str(error), (), ())
    serious = [finding for finding in report.findings if finding.severity is not Severity.MINOR]
    return ReplayedCommit(
        commit=commit,
        subject=subject,
        outcome=report.outcome.value,
        confidence=report.confidence.value if report.confidence else "",
        reason=report.reason,
        findings=tuple(f"{finding.rule}: {finding.path or ''} {finding.detail}" for finding in serious),
        reasons=tuple(reason.reason for reason in report.reasons),
    )


def main(args: list[str]) -> int:
    """Replay the commits, print a line for each and the counts, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description=__doc__)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--last", type=int, default=30, metavar="N", help="how many commits (default: 30)")
    parser.add_argument("--state", type=Path, metavar="FOLDER", help="Proofstone's state; a temporary one by default")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was found")
    options = parser.parse_args(args)
    repository: Path = options.repository.resolve()
    if _git(repository, "status", "--porcelain", "--untracked-files=no"):
        print(f"{repository}: the work tree has changes, which a checkout would lose", file=sys.stderr)
        return 2
    home = options.state or Path(tempfile.mkdtemp(prefix="proofstone-history-"))
    branch = _git(repository, "rev-parse", "--abbrev-ref", "HEAD")
    done: list[ReplayedCommit] = []
    try:
        for commit, subject in list_commits(repository, options.last):
            done.append(replay(repository, commit, subject, home))
            print(done[-1], flush=True)
    finally:
        _git(repository, "checkout", "--quiet", "--force", branch)
        if options.json:
            options.json.write_text(json.dumps([asdict(commit) for commit in done], indent=2) + "\n")
    outcomes = Counter(commit.outcome for commit in done)
    refused = [commit for commit in done if commit.outcome == Outcome.FAILED]
    print(f"{len(done)} commits: " + ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()))
    print("refused by rule: " + (_count_rules(refused) or "none"))
    return 0


def _count_rules(refused: list[ReplayedCommit]) -> str:
    rules = Counter(rule for commit in refused for rule in commit.rules)
    return ", ".join(f"{rule} {count}" for rule, count in rules.most_common())


def _git(repository: Path, *args: str) -> str:
    return subprocess.run(
        ["git", "-C", str(repository), *args], check=True, capture_output=True, text=True
    ).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
