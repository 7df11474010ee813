"""Choose the commit that a change is compared with, and say why.

| first match                                                                     | base                              |
|---------------------------------------------------------------------------------|-----------------------------------|
| the user names a revision                                                       | that revision                     |
| the settings name one, `check.base`                                             | that revision                     |
| the check runs in a coding agent's session, and the start of it is recorded     | that commit                       |
| it runs in such a session, and a commit of the branch has evidence              | the last such commit              |
| HEAD has left its upstream, the remote's default branch, or local main or master | the merge base with the first one |
| otherwise                                                                       | HEAD                              |

Commits between the base and HEAD are part of the change, so a commit hides nothing. A merge base that is HEAD itself
says only that HEAD has not left that branch; then the next branch is tried.

If HEAD does not descend from the commit at which the session began (the agent has amended it, or has switched to
another branch), the merge base of the two is used: what the agent replaced is then part of the change.

A commit has evidence if its tree passed a check against its parent or against the merge base. A parent between the
merge base and HEAD must have evidence itself: a check against an unchecked commit says nothing about that commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proofstone.check.rules.commit_evidence import CommitEvidence, RecordedCheck, rule_on_commit


@dataclass(frozen=True)
class NamedRevision:
    """A revision that somebody named, and the commit that it means."""

    name: str
    commit: str
    settings_commit: str = ""
    """The commit whose settings name the revision; empty if the user named it."""


@dataclass(frozen=True)
class BranchPoint:
    """A branch that HEAD may have left, and the merge base with it."""

    branch: str
    """`origin/main`."""
    relation: str
    """What the branch is: `its upstream`, `the remote's default branch`, `a local branch`."""
    merge_base: str
    """Empty if there is none, as in a shallow clone."""


@dataclass(frozen=True)
class SessionFacts:
    """What is known about the coding agent's session in which a check runs."""

    agent: str
    """The name of the agent's program: `Claude Code`."""
    start: str = ""
    """The commit at which the session began; empty if that is not recorded."""
    merge_base: str = ""
    """The merge base of that commit and HEAD: the commit itself, unless HEAD does not descend from it."""
    is_start: bool = True
    """Whether the session began at `start`. Otherwise `start` is the base of the session's first check."""
    last_evidence: str = ""
    """The last commit of the branch that has evidence; empty if there is none."""


@dataclass(frozen=True)
class BaseFacts:
    """Everything that the choice depends on."""

    head: str
    requested: NamedRevision | None = None
    configured: NamedRevision | None = None
    session: SessionFacts | None = None
    branches: Sequence[BranchPoint] = ()
    """In the order in which they are tried."""


@dataclass(frozen=True)
class BaseChoice:
    """The chosen base."""

    commit: str
    reason: str


@dataclass(frozen=True)
class BranchCommit:
    """A commit between the base and HEAD."""

    commit: str
    tree: str
    parent: str
    """The first parent; empty if there is none."""
    parent_tree: str = ""
    """Empty if the parent is not between the base and HEAD."""


def choose_base(facts: BaseFacts) -> BaseChoice:
    """Return the base of a check by the table above."""
    if facts.requested is not None:
        return BaseChoice(facts.requested.commit, f"--base {facts.requested.name}")
    if facts.configured is not None:
        named = facts.configured
        return BaseChoice(named.commit, f"check.base is {named.name} in the settings at {named.settings_commit[:12]}")
    if facts.session is not None and (choice := _choose_by_session(facts.session)):
        return choice
    left = find_left_branch(facts.head, facts.branches)
    if left is not None:
        return BaseChoice(left.merge_base, f"the merge base with {left.branch}, {left.relation}")
    return BaseChoice(facts.head, "HEAD, because it is not ahead of another branch")


def find_left_branch(head: str, branches: Sequence[BranchPoint]) -> BranchPoint | None:
    """Return the first branch that HEAD has left: the merge base exists and is not HEAD itself."""
    return next((branch for branch in branches if branch.merge_base not in ("", head)), None)


def _choose_by_session(session: SessionFacts) -> BaseChoice | None:
    began = f"this session of {session.agent} began"
    what = f"the commit at which {began}"
    if not session.is_start:
        what = f"the base of the first check of this session of {session.agent}"
    if session.start and session.start == session.merge_base:
        return BaseChoice(session.start, what)
    if session.merge_base:
        return BaseChoice(session.merge_base, f"the last commit that HEAD shares with {session.start[:12]}, {what}")
    if session.last_evidence:
        reason = f"the last commit with evidence; it is not recorded at which commit {began}"
        return BaseChoice(session.last_evidence, reason)
    return None


def find_last_evidence(commits: Sequence[BranchCommit], checks: Sequence[RecordedCheck], floor: str) -> str:
    """Return the newest of these commits that has evidence, or an empty string.

    `commits` are the commits of the branch, HEAD first; `checks` are recorded checks of any tree, newest first. `floor`
    is the merge base, at which the commits end and down to which evidence must reach; empty if there is none.
    """
    evidenced: set[str] = set()
    positions = {commit.commit: index for index, commit in enumerate(commits)}
    for commit in reversed(commits):
        ruling = rule_on_commit(
            commit.tree, checks, parent=commit.parent, parent_tree=commit.parent_tree, counting={floor} - {""}
        )
        base = ruling.check.base_commit if ruling.check is not None else ""
        is_passed = ruling.evidence is CommitEvidence.PASSED and (not floor or base == floor or base in evidenced)
        is_unchanged = ruling.evidence is CommitEvidence.UNCHANGED and commit.parent in evidenced
        if is_passed or is_unchanged:
            evidenced.add(commit.commit)
    return min(evidenced, key=positions.__getitem__, default="")
