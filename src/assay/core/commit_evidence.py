"""Whether a commit may be made: what is on record of exactly its tree. Pure, and in one place.

| first match                                                                      | standing     | may be made |
|----------------------------------------------------------------------------------|--------------|-------------|
| the repository has no commit yet: there is nothing to compare with               | first        | yes         |
| the tree is that of a parent: nothing new is committed                           | unchanged    | yes         |
| the newest verdict on the tree, by a base and settings that count, is `passed`   | passed       | yes         |
| that verdict is another                                                          | refused      | no          |
| there are verdicts against bases that count, but only by settings that do not    | own settings | no          |
| there are verdicts on the tree, but only against bases that do not count         | other base   | no          |
| a check of the tree was begun and came to no verdict                             | unfinished   | no          |
| otherwise                                                                        | none         | no          |

A base counts if it is a parent of the new commit or an ancestor of one; for a commit without parents, in a repository
that has others, every base does. Git does not tell its hooks that a commit is amended. So the commit that it replaces
is taken for the parent, and the real parent is an ancestor of it: evidence against either counts.

Settings count if they are the base's. Who checks by those of the work tree (`--own-settings`) may have loosened them
for this very change, so such a verdict says nothing, neither for the commit nor against it. What a person has accepted
is another matter: it is their word, with a reason, on record. It counts, and is said with the commit.

The newest verdict decides, and not the best: who checks again, and fails, knows more than before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from assay.contracts.verdict import Assurance, Outcome


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

    @property
    def accepted(self) -> bool:
        return self.standing in (Standing.FIRST, Standing.UNCHANGED, Standing.PASSED)


def rule(
    tree: str,
    seen: Sequence[Seen],
    *,
    parent_trees: Collection[str],
    counting: Collection[str] | None,
    first: bool = False,
) -> Ruling:
    """`seen`: the checks on record, of whatever tree, newest first. `counting`: those of their bases that count; None:
    all of them do. `first`: the repository has no commit yet."""
    if first:
        return Ruling(Standing.FIRST)
    if tree in parent_trees:
        return Ruling(Standing.UNCHANGED)
    own = [one for one in seen if one.tree == tree]
    judged = [one for one in own if one.judged]
    against = [one for one in judged if counting is None or one.base_commit in counting]
    for one in against:
        if not one.own_settings:
            return Ruling(Standing.PASSED if one.passed else Standing.REFUSED, one)
    if against:
        return Ruling(Standing.OWN_SETTINGS, against[0])
    if judged:
        return Ruling(Standing.OTHER_BASE, judged[0])
    return Ruling(Standing.UNFINISHED, own[0]) if own else Ruling(Standing.NONE)
