"""Where the run's branch is: what the next commit follows."""

from __future__ import annotations

from typing import NamedTuple

from proofstone.adapters.git.commit import position, ref_of
from proofstone.adapters.git.repository import Repository
from proofstone.contracts.gate_setup import GateSetup
from proofstone.engine.gate.journal import Journal
from proofstone.errors import RepositoryError


class Tip(NamedTuple):
    commit: str
    """What the next commit follows."""
    position: str | None
    """Where the branch is: not there yet, or an older one of the same name with nothing of its own, before the first
    commit of the run."""


def tip_of(repository: Repository, setup: GateSetup, journal: Journal) -> Tip:
    """The branch's last commit, also if a person added some; the run's base where nothing was committed yet."""
    found = position(repository, setup.branch)
    ours = _last_commit(journal) or setup.base_commit
    if found is not None and (found == ours or _is_ancestor(repository, ours, found)):
        return Tip(found, found)
    if ours == setup.base_commit and (found is None or _is_ancestor(repository, found, ours)):
        return Tip(ours, found)
    raise RepositoryError(
        f"the branch {setup.branch} does not hold {ours[:12]} any more, which this run has committed to it",
        hint=f"bring it back: git branch --force {setup.branch} {ours[:12]}",
    )


def added_by_others(repository: Repository, setup: GateSetup, journal: Journal) -> tuple[str, ...]:
    """Commits on the branch, since the run's base, that the run did not make and that stand for no task yet."""
    if position(repository, setup.branch) is None:
        return ()
    listed = repository.git.line("rev-list", ref_of(setup.branch), "--not", setup.base_commit).splitlines()
    known = {commit for record in journal.records.values() for commit in (record.commit, record.settled_by)}
    return tuple(commit for commit in listed if commit not in known)


def _last_commit(journal: Journal) -> str | None:
    committed = [(step.seq, id) for id, steps in journal.steps.items() for step in steps if step.kind == "committed"]
    return journal.records[max(committed)[1]].commit if committed else None


def _is_ancestor(repository: Repository, older: str, newer: str) -> bool:
    return repository.git.run("merge-base", "--is-ancestor", older, newer, accept=range(256)).returncode == 0
