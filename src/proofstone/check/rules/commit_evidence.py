"""Decide whether a commit may be made, from the recorded checks of exactly its tree.

| first match                                                                      | standing     | may be made |
|----------------------------------------------------------------------------------|--------------|-------------|
| the repository has no commit yet: there is nothing to compare with               | first        | yes         |
| the tree is that of a parent: nothing new is committed                           | unchanged    | yes         |
| the newest verdict on the tree against a parent, by settings that count, is not `passed` | refused | no       |
| the newest verdict on the tree, by a base and settings that count, is `passed`   | passed       | yes         |
| that verdict is another                                                          | refused      | no          |
| there are verdicts against bases that count, but only by settings that do not    | own settings | no          |
| there are verdicts on the tree, but only against bases that do not count         | other base   | no          |
| a check of the tree began and reached no verdict                                 | unfinished   | no          |
| otherwise                                                                        | none         | no          |

A base counts if it is a parent of the new commit or an ancestor of a parent. For a commit without parents, in a
repository that has other commits, every base counts. Git does not tell its hooks that a commit is amended, so the
replaced commit is taken for the parent. The real parent is an ancestor of it: evidence against either counts.

Settings count if they are the base's. A user who checks with the settings of the work tree (`--use-worktree-config`)
may have
loosened them for this very change, so such a verdict says nothing for or against the commit. Findings that a user
accepted are different: the acceptance is recorded with a reason. It counts, and is shown with the commit.

The newest verdict decides, and not the best: a later failing check has more information. But only a pass against the
same parent cancels a failure against that parent. Against an older base the change is larger and has more excuses
(tests that failed there do not count against it), so a pass says nothing about what the commit itself breaks.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from proofstone.common.models import Assurance, Outcome


@dataclass(frozen=True)
class AcceptedFinding:
    """Findings that a user accepted when a tree was checked."""

    rule: str
    """The rule of the accepted findings; empty for changes to tests."""
    reason: str


@dataclass(frozen=True)
class RecordedCheck:
    """A check that is recorded in the ledger."""

    run_id: str
    tree: str
    base_commit: str
    outcome: str | None
    """None while the check runs, or if it was interrupted."""
    reason: str = ""
    recorded_at: str = ""
    """The time, as recorded in the ledger."""
    assurance: Assurance | None = None
    own_settings: bool = False
    """Whether the check used the settings of the work tree and not those of the base."""
    accepted: tuple[AcceptedFinding, ...] = ()

    @property
    def is_passed(self) -> bool:
        return self.outcome == Outcome.PASSED

    @property
    def has_verdict(self) -> bool:
        return self.outcome in tuple(Outcome)


class CommitEvidence(StrEnum):
    """The evidence for a commit, as in the table above."""

    FIRST = "first"
    UNCHANGED = "unchanged"
    PASSED = "passed"
    REFUSED = "refused"
    OWN_SETTINGS = "own settings"
    OTHER_BASE = "other base"
    UNFINISHED = "unfinished"
    NONE = "none"


@dataclass(frozen=True)
class CommitRuling:
    """The decision about a commit."""

    evidence: CommitEvidence
    check: RecordedCheck | None = None
    """The check that decided, if one did."""
    is_against_parent: bool = False
    """Whether that check compared with a parent of the commit and not with an older commit."""
    outranked: RecordedCheck | None = None
    """A newer check that passed against another base and does not count for that reason."""

    @property
    def required_base(self) -> str:
        """The parent that a new check must compare with to cancel a failure; empty if any counting base will do."""
        is_failure = self.evidence is CommitEvidence.REFUSED and self.is_against_parent
        return self.check.base_commit if is_failure and self.check is not None else ""

    @property
    def is_accepted(self) -> bool:
        return self.evidence in (CommitEvidence.FIRST, CommitEvidence.UNCHANGED, CommitEvidence.PASSED)


def rule_on_commit(
    tree: str,
    seen: Sequence[RecordedCheck],
    *,
    parent_trees: Collection[str],
    counting: Collection[str] | None,
    parents: Collection[str] = (),
    first: bool = False,
) -> CommitRuling:
    """Decide about a commit. `seen` are the recorded checks of any tree, newest first. `counting` are those of their
    bases that count, or None if all do. `parents` are the parents of the commit. `first` means that the repository has
    no commit yet."""
    if first:
        return CommitRuling(CommitEvidence.FIRST)
    if tree in parent_trees:
        return CommitRuling(CommitEvidence.UNCHANGED)
    same_tree = [check for check in seen if check.tree == tree]
    checks_with_verdict = [check for check in same_tree if check.has_verdict]
    counting_checks = [check for check in checks_with_verdict if counting is None or check.base_commit in counting]
    by_base_settings = [check for check in counting_checks if not check.own_settings]
    if by_base_settings:
        return _rule_by_newest(by_base_settings, parents)
    if counting_checks:
        return CommitRuling(CommitEvidence.OWN_SETTINGS, counting_checks[0])
    if checks_with_verdict:
        return CommitRuling(CommitEvidence.OTHER_BASE, checks_with_verdict[0])
    return CommitRuling(CommitEvidence.UNFINISHED, same_tree[0]) if same_tree else CommitRuling(CommitEvidence.NONE)


def _rule_by_newest(checks: Sequence[RecordedCheck], parents: Collection[str]) -> CommitRuling:
    """Decide by checks that count, newest first. The newest decides, unless the last one against a parent did not
    pass."""
    newest = checks[0]
    last_by_parent = {check.base_commit: check for check in reversed(checks) if check.base_commit in parents}
    failed = [check for check in checks if check in last_by_parent.values() and not check.is_passed]
    if failed:
        outranked = newest if newest.is_passed else None
        return CommitRuling(CommitEvidence.REFUSED, failed[0], is_against_parent=True, outranked=outranked)
    standing = CommitEvidence.PASSED if newest.is_passed else CommitEvidence.REFUSED
    return CommitRuling(standing, newest, is_against_parent=newest.base_commit in parents)
