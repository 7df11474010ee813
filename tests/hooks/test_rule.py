"""Which evidence lets a commit through."""

from __future__ import annotations

import pytest

from proofstone.check.rules.commit_evidence import Seen, Standing, rule


def seen(
    outcome: str | None = "passed", base: str = "parent", tree: str = "tree", run_id: str = "run", own: bool = False
) -> Seen:
    return Seen(run_id=run_id, tree=tree, base_commit=base, outcome=outcome, own_settings=own)


@pytest.mark.parametrize(
    ("checks", "standing", "accepted"),
    [
        ([], Standing.NONE, False),
        ([seen()], Standing.PASSED, True),
        ([seen("failed")], Standing.REFUSED, False),
        ([seen("unverifiable")], Standing.REFUSED, False),
        ([seen("interrupted")], Standing.UNFINISHED, False),
        ([seen(None)], Standing.UNFINISHED, False),
        ([seen(tree="another")], Standing.NONE, False),
        ([seen(base="elsewhere")], Standing.OTHER_BASE, False),
        ([seen(base="ancestor")], Standing.PASSED, True),
        ([seen("failed"), seen()], Standing.REFUSED, False),
        ([seen(), seen("failed")], Standing.PASSED, True),
        ([seen(None), seen()], Standing.PASSED, True),
        ([seen("interrupted"), seen("failed")], Standing.REFUSED, False),
        ([seen("failed", base="elsewhere"), seen()], Standing.PASSED, True),
        ([seen(base="elsewhere"), seen("failed")], Standing.REFUSED, False),
        ([seen("failed", tree="another"), seen()], Standing.PASSED, True),
        ([seen(own=True)], Standing.OWN_SETTINGS, False),
        ([seen("failed", own=True)], Standing.OWN_SETTINGS, False),
        ([seen(None, own=True)], Standing.UNFINISHED, False),
        ([seen(own=True), seen()], Standing.PASSED, True),
        ([seen("failed", own=True), seen()], Standing.PASSED, True),
        ([seen(own=True), seen("failed")], Standing.REFUSED, False),
        ([seen(), seen(own=True)], Standing.PASSED, True),
        ([seen(own=True, base="elsewhere")], Standing.OTHER_BASE, False),
        ([seen(base="elsewhere"), seen(own=True)], Standing.OWN_SETTINGS, False),
        ([seen(base="ancestor"), seen("failed")], Standing.REFUSED, False),
        ([seen(base="ancestor"), seen("unverifiable")], Standing.REFUSED, False),
        ([seen(base="ancestor"), seen("failed"), seen()], Standing.REFUSED, False),
        ([seen(base="ancestor"), seen(), seen("failed")], Standing.PASSED, True),
        ([seen(), seen("failed", base="ancestor")], Standing.PASSED, True),
        ([seen("failed", base="ancestor"), seen()], Standing.REFUSED, False),
        ([seen(base="ancestor"), seen(None), seen("failed")], Standing.REFUSED, False),
        ([seen(base="ancestor"), seen("failed", own=True)], Standing.PASSED, True),
        ([seen(base="merged"), seen("failed")], Standing.REFUSED, False),
        ([seen(), seen("failed", base="merged")], Standing.REFUSED, False),
        ([seen(), seen(base="merged"), seen("failed", base="merged")], Standing.PASSED, True),
    ],
)
def test_the_newest_verdict_on_exactly_the_tree_by_a_base_and_settings_that_count_decides(
    checks: list[Seen], standing: Standing, accepted: bool
) -> None:
    counting = {"parent", "merged", "ancestor"}
    ruling = rule("tree", checks, parent_trees=["old"], counting=counting, parents=("parent", "merged"))
    assert (ruling.standing, ruling.accepted) == (standing, accepted)


def test_a_failure_against_the_parent_is_named_with_the_pass_that_it_outranks() -> None:
    checks = [seen(base="ancestor", run_id="second"), seen("failed", run_id="first")]
    ruling = rule("tree", checks, parent_trees=[], counting={"parent", "ancestor"}, parents=["parent"])
    assert (ruling.seen, ruling.outranked, ruling.is_against_parent) == (checks[1], checks[0], True)
    assert ruling.needed_base == "parent"
    older = rule("tree", checks[:1], parent_trees=[], counting={"parent", "ancestor"}, parents=["parent"])
    assert (older.seen, older.is_against_parent, older.needed_base) == (checks[0], False, "")


def test_what_decided_is_named() -> None:
    checks = [seen("interrupted", run_id="third"), seen("failed", run_id="second"), seen(run_id="first")]
    ruling = rule("tree", checks, parent_trees=[], counting={"parent"})
    assert ruling.seen == checks[1]


def test_a_tree_of_a_parent_needs_no_evidence_and_no_evidence_stops_it() -> None:
    ruling = rule("tree", [seen("failed")], parent_trees=["tree", "other"], counting={"parent"})
    assert (ruling.standing, ruling.accepted) == (Standing.UNCHANGED, True)


def test_the_first_commit_of_all_goes_in() -> None:
    ruling = rule("tree", [], parent_trees=[], counting=None, first=True)
    assert (ruling.standing, ruling.accepted) == (Standing.FIRST, True)


def test_without_parents_every_base_counts() -> None:
    assert rule("tree", [seen(base="anything")], parent_trees=[], counting=None).accepted
    assert not rule("tree", [], parent_trees=[], counting=None).accepted
