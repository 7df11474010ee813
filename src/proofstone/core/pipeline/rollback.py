"""The command that takes back what a run has committed, by the commits that are on record. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from proofstone.contracts.pipeline.bundle import CommitMade


def rollback(commits: Sequence[CommitMade]) -> str:
    """For commits in the order in which they were made. A range is named only where nobody else's commit lies in it;
    otherwise each is named, the last first. Empty, if there is none."""
    if not commits:
        return ""
    if len(commits) == 1:
        return f"git revert --no-edit {commits[0].commit}"
    if all(after.parent == before.commit for before, after in pairwise(commits)):
        return f"git revert --no-edit {commits[0].parent}..{commits[-1].commit}"
    return f"git revert --no-edit {' '.join(one.commit for one in reversed(commits))}"
