"""Read the history to replay: the commits that landed on a branch, each with its first parent."""

from __future__ import annotations

from dataclasses import dataclass

from proofstone.errors import InputError
from proofstone.git.repository import Repository
from proofstone.replay.models import HistoryCommit

_FIELDS = "%H%x00%T%x00%P%x00%s"


@dataclass(frozen=True)
class HistorySelection:
    """Which commits to replay."""

    last: int | None = None
    """How many of the newest; None for all of the range."""
    range: str = ""
    """`A..B`: what B has and A has not; empty for everything that HEAD has."""
    merges: bool = False
    """Only merges: each is a branch that was merged, as a whole."""

    def __str__(self) -> str:
        kind = "merges" if self.merges else "commits"
        where = f"of {self.range}" if self.range else "of the current branch"
        return f"the last {self.last} {kind} {where}" if self.last else f"all {kind} {where}"


def list_history(repository: Repository, selection: HistorySelection) -> tuple[HistoryCommit, ...]:
    """Return the commits on the first-parent line, oldest first. A commit without a parent has nothing to be compared
    with, and is left out."""
    limits = [f"--max-count={selection.last}"] if selection.last else []
    kinds = ["--min-parents=2"] if selection.merges else ["--min-parents=1"]
    options = ("--no-show-signature", "--first-parent", "--no-color", f"--format={_FIELDS}", *limits, *kinds)
    output = repository.git.run_output("log", *options, _resolve_range(repository, selection.range), "--")
    lines = output.decode("utf-8", "replace").split("\n")
    return tuple(_parse_line(line) for line in reversed(lines) if line)


def _resolve_range(repository: Repository, text: str) -> str:
    """Return the range by the ids of its commits. Refuse anything that is not `A..B`."""
    if not text:
        return repository.resolve_base("HEAD")[0]
    begin, dots, end = text.partition("..")
    if not begin or not dots or end.startswith("."):
        raise InputError(f"--range {text}: is not a range of commits", hint="name two revisions: --range v1.0..main")
    return "..".join(resolve_revision(repository, f"--range {text}", revision or "HEAD") for revision in (begin, end))


def resolve_revision(repository: Repository, option: str, revision: str) -> str:
    """Return the commit that a revision names; `option` is where the user named it."""
    found = None if revision.startswith("-") else repository.git.find_objects(f"{revision}^{{commit}}")
    if found is None:
        raise InputError(
            f"{option}: there is no revision {revision} in {repository.root}",
            hint="use branches, tags or commits; `git log --oneline` lists commits",
        )
    return found[0]


def _parse_line(line: str) -> HistoryCommit:
    commit, tree, parents, subject = line.split("\0", 3)
    first, *others = parents.split()
    return HistoryCommit(commit=commit, tree=tree, parent=first, subject=subject, is_merge=bool(others))
