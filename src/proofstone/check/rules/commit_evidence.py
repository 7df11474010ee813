"""Whether a commit may be made: what is on record of exactly its tree. Pure, and in one place.

| first match                                                                      | standing     | may be made |
|----------------------------------------------------------------------------------|--------------|-------------|
| the repository has no commit yet: there is nothing to compare with               | first        | yes         |
| the tree is that of a parent: nothing new is committed                           | unchanged    | yes         |
| the newest verdict on the tree against a parent, by settings that count, is not `passed` | refused | no       |
| the newest verdict on the tree, by a base and settings that count, is `passed`   | passed       | yes         |
| that verdict is another                                                          | refused      | no          |
| there are verdicts against bases that count, but only by settings that do not    | own settings | no          |
| there are verdicts on the tree, but only against bases that do not count         | other base   | no          |
| a check of the tree was begun and came to no verdict                             | unfinished   | no          |
| otherwise                                                                        | none         | no          |

A base counts if it is a parent of the new commit or an ancestor of one; for a commit without parents, in a repository
that has others, every base does. Git does not tell its hooks that a commit is amended. So the commit that it replaces
is taken for the parent, and the real parent is an ancestor of it: evidence against either counts.

Settings count if they are the base's. Who checks by those of the work tree (`--use-worktree-config`) may have loosened
them for this very change, so such a verdict says nothing, neither for the commit nor against it. What a person has
accepted is another matter: it is their word, with a reason, on record. It counts, and is said with the commit.

The newest verdict decides, and not the best: who checks again, and fails, knows more than before. But a failure against
a parent is taken back only by a pass against that parent. An older base is more change and more excuses (what failed
there is not held against the change), so a pass against it says nothing about what the commit itself breaks.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from proofstone.common.models import Assurance, Outcome


@dataclass(frozen=True)
class Accepted:
    """What a person took upon themselves when they had a tree checked."""

    what: str
    """The rule whose findings are meant; empty: what was done to tests."""
    reason: str


@dataclass(frozen=True)
class Seen:
    """A check that the ledger knows of."""

    run_id: str
    tree: str
    base_commit: str
    outcome: str | None
    """None while it runs, or if it was interrupted."""
    reason: str = ""
    at: str = ""
    """When, as the ledger wrote it."""
    assurance: Assurance | None = None
    own_settings: bool = False
    """Checked by the settings of the work tree, and not by those of the base."""
    accepted: tuple[Accepted, ...] = ()

    @property
    def passed(self) -> bool:
        return self.outcome == Outcome.PASSED

    @property
    def judged(self) -> bool:
        return self.outcome in tuple(Outcome)


class Standing(StrEnum):
    FIRST = "first"
    UNCHANGED = "unchanged"
    PASSED = "passed"
    REFUSED = "refused"
    OWN_SETTINGS = "own settings"
    OTHER_BASE = "other base"
    UNFINISHED = "unfinished"
    NONE = "none"


@dataclass(frozen=True)
class Ruling:
    standing: Standing
    seen: Seen | None = None
    """The check that decided it, if one did."""
    is_against_parent: bool = False
    """Whether that check compared with a parent of the commit, and not with an older one."""
    outranked: Seen | None = None
    """A newer check that passed against another base, and does not count for that."""

    @property
    def needed_base(self) -> str:
        """The parent that a new check must compare with to take a failure back; empty if any base that counts does."""
        is_failure = self.standing is Standing.REFUSED and self.is_against_parent
        return self.seen.base_commit if is_failure and self.seen is not None else ""

    @property
    def accepted(self) -> bool:
        return self.standing in (Standing.FIRST, Standing.UNCHANGED, Standing.PASSED)


def rule(
    tree: str,
    seen: Sequence[Seen],
    *,
    parent_trees: Collection[str],
    counting: Collection[str] | None,
    parents: Collection[str] = (),
    first: bool = False,
) -> Ruling:
    """`seen`: the checks on record, of whatever tree, newest first. `counting`: those of their bases that count; None:
    all of them do. `parents`: the parents of the commit. `first`: the repository has no commit yet."""
    if first:
        return Ruling(Standing.FIRST)
    if tree in parent_trees:
        return Ruling(Standing.UNCHANGED)
    own = [item for item in seen if item.tree == tree]
    judged = [item for item in own if item.judged]
    against = [item for item in judged if counting is None or item.base_commit in counting]
    by_base_settings = [check for check in against if not check.own_settings]
    if by_base_settings:
        return _rule_by_newest(by_base_settings, parents)
    if against:
        return Ruling(Standing.OWN_SETTINGS, against[0])
    if judged:
        return Ruling(Standing.OTHER_BASE, judged[0])
    return Ruling(Standing.UNFINISHED, own[0]) if own else Ruling(Standing.NONE)


def _rule_by_newest(checks: Sequence[Seen], parents: Collection[str]) -> Ruling:
    """By checks that count, newest first: the newest decides, unless the last one against a parent did not pass."""
    newest = checks[0]
    last_by_parent = {check.base_commit: check for check in reversed(checks) if check.base_commit in parents}
    failed = [check for check in checks if check in last_by_parent.values() and not check.passed]
    if failed:
        outranked = newest if newest.passed else None
        return Ruling(Standing.REFUSED, failed[0], is_against_parent=True, outranked=outranked)
    standing = Standing.PASSED if newest.passed else Standing.REFUSED
    return Ruling(standing, newest, is_against_parent=newest.base_commit in parents)
