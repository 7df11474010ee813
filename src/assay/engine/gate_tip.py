"""Where the run's branch is: what the next commit follows."""

from __future__ import annotations

from assay.adapters.git.repository import Repository
from assay.contracts.gate_setup import GateSetup
from assay.engine.gate_journal import Journal
from assay.errors import RepositoryError


def position(repository: Repository, branch: str) -> str | None:
    return repository.git.maybe("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")


def tip_of(repository: Repository, setup: GateSetup, journal: Journal) -> str:
    """The branch's last commit, also if a person added some; the run's base where nothing was committed yet."""
    found = position(repository, setup.branch)
    ours = _last_commit(journal) or setup.base_commit
    if found is None or found == ours:
        return ours if found or ours == setup.base_commit else _lost(setup.branch, ours)
    if _is_ancestor(repository, ours, found):
        return found
    if ours == setup.base_commit and _is_ancestor(repository, found, ours):
        return ours  # an older branch of the same name, with nothing of its own
    return _lost(setup.branch, ours)


def added_by_others(repository: Repository, setup: GateSetup, journal: Journal) -> tuple[str, ...]:
    """Commits on the branch, since the run's base, that the run did not make."""
    if position(repository, setup.branch) is None:
        return ()
    listed = repository.git.line("rev-list", f"refs/heads/{setup.branch}", "--not", setup.base_commit).splitlines()
    ours = {record.commit for record in journal.records.values()}
    return tuple(commit for commit in listed if commit not in ours)


def _last_commit(journal: Journal) -> str | None:
    committed = [(step.seq, id) for id, steps in journal.steps.items() for step in steps if step.kind == "committed"]
    return journal.records[max(committed)[1]].commit if committed else None


def _is_ancestor(repository: Repository, older: str, newer: str) -> bool:
    return repository.git.run("merge-base", "--is-ancestor", older, newer, accept=range(256)).returncode == 0


def _lost(branch: str, commit: str) -> str:
    raise RepositoryError(
        f"the branch {branch} does not hold {commit[:12]} any more, which this run has committed to it",
        hint=f"bring it back: git branch --force {branch} {commit[:12]}",
    )
