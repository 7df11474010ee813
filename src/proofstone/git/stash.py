"""Put a person's uncommitted changes into git's stash before a run, so that it starts from a clean work tree."""

from __future__ import annotations

from proofstone.errors import RepositoryError
from proofstone.git.program import GitCommandError
from proofstone.git.repository import Repository


def stash_changes(repository: Repository, message: str) -> str:
    """Stash the changes of tracked files, and return the commit that holds them. Untracked files stay where they are:
    they are in the way of nothing.
    """
    try:
        repository.git.run_output("stash", "push", "--quiet", "--message", message)
        return repository.git.run_line("rev-parse", "--verify", "refs/stash")
    except GitCommandError as error:
        raise RepositoryError(
            f"{repository.root}: the changes could not be stashed: {error.stderr.strip()}",
            hint="commit them, or finish what git is in the middle of; `git status` shows it",
        ) from error
