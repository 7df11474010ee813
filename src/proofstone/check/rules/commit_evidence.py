"""Decide whether a commit may be made, from the recorded checks of exactly its tree.

| first match                                                                      | standing     | may be made |
|----------------------------------------------------------------------------------|--------------|-------------|
| the repository has no commit yet: there is nothing to compare with               | first        | yes         |
| the tree is that of the parent: nothing new is committed                         | unchanged    | yes         |
| the newest verdict on the tree against the parent, by settings that count, is not `passed` | refused | no     |
| the newest verdict on the tree, by a base and settings that count, is `passed`   | passed       | yes         |
| that verdict is another                                                          | refused      | no          |
| that verdict is `passed`, and somebody disputes the tree since, undecided        | disputed     | no          |
| there are verdicts against bases that count, but only by settings that do not    | own settings | no          |
| there are such verdicts, but they pass only with acceptances that do not count   | acceptance   | no          |
| there are verdicts on the tree, but only against bases that do not count         | other base   | no          |
| a check of the tree began and reached no verdict                                 | unfinished   | no          |
| otherwise                                                                        | none         | no          |

A base counts if it is the parent of the new commit, or the branch's own base: the commit that a check without `--base`
compares with outside of a session. No other ancestor counts, because the author of the change could choose one at which
the tests already failed or did not exist. Of a merge, only the first parent counts: whatever is merged was chosen by
the author too. For a commit without parents, in a repository that has other commits, only the tips of the main
branches count. Git does not tell its hooks that a commit is amended, so the replaced commit is taken for the parent. A
check that found nothing to check compared the tree with itself: it is no evidence, neither for nor against the commit.

Settings count if they are the base's. A user who checks with the settings of the work tree (`--use-worktree-config`)
may have loosened them for this
very change, so such a verdict says nothing for or against the commit.

An acceptance counts if the settings (`hook.accepts`) name the way in which it was given; only what a person answered at
a terminal counts by default. It is shown with the commit. A verdict that passed with another acceptance says nothing.

The newest verdict decides, and not the best: a later failing check has more information. But only a pass against the
parent cancels a failure against the parent. Against an older base the change is larger and has more excuses
(tests that failed there do not count against it), so a pass says nothing about what the commit itself breaks.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from proofstone.common.models import AcceptanceMethod, Assurance, Outcome


@dataclass(frozen=True)
class AcceptedFinding:
    """Findings that a person accepted when a tree was checked."""

    rule: str
    reason: str
    accepted_by: str = ""
    method: AcceptanceMethod | None = None
    """None in a record of an older version, which does not say how it was accepted."""
    subject: str = ""
    """The test or file to which it is limited, if it is."""


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

    def is_accepted_by(self, methods: Collection[AcceptanceMethod]) -> bool:
        """Whether every acceptance was given in one of these ways."""
        return all(acceptance.method in methods for acceptance in self.accepted)

    @property
    def has_verdict(self) -> bool:
        return self.outcome in tuple(Outcome) and not self.is_empty

    @property
    def is_empty(self) -> bool:
        """Whether the tree was compared with itself, which is no evidence for or against it."""
        return self.outcome == Outcome.NOTHING_TO_CHECK


class CommitEvidence(StrEnum):
    """The evidence for a commit, as in the table above."""

    FIRST = "first"
    UNCHANGED = "unchanged"
    PASSED = "passed"
    REFUSED = "refused"
    DISPUTED = "disputed"
    OWN_SETTINGS = "own settings"
    ACCEPTANCE = "acceptance"
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
    """Whether that check compared with the parent of the commit and not with the base of its branch."""
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
    parent: str,
    parent_tree: str,
    counting: Collection[str],
    first: bool = False,
    is_disputed: bool = False,
    accepts: Collection[AcceptanceMethod] = (AcceptanceMethod.INTERACTIVE,),
) -> CommitRuling:
    """Decide about a commit. `seen` are the recorded checks of any tree, newest first. `parent` is the first parent of
    the commit, empty if there is none, and `counting` are the bases that count besides it. `first` means that the
    repository has no commit yet. `is_disputed` means that a dispute of the tree is undecided. `accepts` are the ways in
    which an acceptance may have been given."""
    if first:
        return CommitRuling(CommitEvidence.FIRST)
    if tree == parent_tree:
        return CommitRuling(CommitEvidence.UNCHANGED)
    same_tree = [check for check in seen if check.tree == tree and not check.is_empty]
    checks_with_verdict = [check for check in same_tree if check.has_verdict]
    counting_checks = [check for check in checks_with_verdict if check.base_commit in (parent, *counting)]
    by_base_settings = [check for check in counting_checks if not check.own_settings]
    by_accepted = [check for check in by_base_settings if not check.is_passed or check.is_accepted_by(accepts)]
    if by_accepted:
        ruling = _rule_by_newest(by_accepted, parent)
        is_stopped = is_disputed and ruling.evidence is CommitEvidence.PASSED
        return replace(ruling, evidence=CommitEvidence.DISPUTED) if is_stopped else ruling
    if by_base_settings:
        return CommitRuling(CommitEvidence.ACCEPTANCE, by_base_settings[0])
    if counting_checks:
        return CommitRuling(CommitEvidence.OWN_SETTINGS, counting_checks[0])
    if checks_with_verdict:
        return CommitRuling(CommitEvidence.OTHER_BASE, checks_with_verdict[0])
    return CommitRuling(CommitEvidence.UNFINISHED, same_tree[0]) if same_tree else CommitRuling(CommitEvidence.NONE)


def _rule_by_newest(checks: Sequence[RecordedCheck], parent: str) -> CommitRuling:
    """Decide by checks that count, newest first. The newest decides, unless the last one against the parent did not
    pass."""
    newest = checks[0]
    last_by_parent = next((check for check in checks if check.base_commit == parent), None)
    if last_by_parent is not None and not last_by_parent.is_passed:
        outranked = newest if newest.is_passed else None
        return CommitRuling(CommitEvidence.REFUSED, last_by_parent, is_against_parent=True, outranked=outranked)
    standing = CommitEvidence.PASSED if newest.is_passed else CommitEvidence.REFUSED
    return CommitRuling(standing, newest, is_against_parent=newest.base_commit == parent)
