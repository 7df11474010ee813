"""Which evidence lets a commit through."""

from __future__ import annotations

from functools import partial

from proofstone.check.rules.commit_evidence import (
    AcceptedFinding,
    CommitEvidence,
    RecordedCheck,
    rule_on_commit,
)
from proofstone.common.models import AcceptanceMethod
from tests.rows import each_row


def seen(
    outcome: str | None = "passed",
    base: str = "parent",
    tree: str = "tree",
    run_id: str = "run",
    own: bool = False,
    accepted: tuple[AcceptanceMethod | None, ...] = (),
) -> RecordedCheck:
    given = tuple(AcceptedFinding("hard-exit", "why", "ada", method) for method in accepted)
    return RecordedCheck(run_id, tree, base, outcome, own_settings=own, accepted=given)


TERMINAL, APPROVER = AcceptanceMethod.INTERACTIVE, AcceptanceMethod.APPROVER


@each_row(
    ("checks", "standing", "accepted"),
    [
        ([], CommitEvidence.NONE, False),
        ([seen()], CommitEvidence.PASSED, True),
        ([seen("failed")], CommitEvidence.REFUSED, False),
        ([seen("unverifiable")], CommitEvidence.REFUSED, False),
        ([seen("interrupted")], CommitEvidence.UNFINISHED, False),
        ([seen(None)], CommitEvidence.UNFINISHED, False),
        ([seen(tree="another")], CommitEvidence.NONE, False),
        ([seen(base="elsewhere")], CommitEvidence.OTHER_BASE, False),
        ([seen(base="branch base")], CommitEvidence.PASSED, True),
        ([seen(base="ancestor")], CommitEvidence.OTHER_BASE, False),
        ([seen(base="merged")], CommitEvidence.OTHER_BASE, False),
        ([seen("failed"), seen()], CommitEvidence.REFUSED, False),
        ([seen(), seen("failed")], CommitEvidence.PASSED, True),
        ([seen(None), seen()], CommitEvidence.PASSED, True),
        ([seen("interrupted"), seen("failed")], CommitEvidence.REFUSED, False),
        ([seen("failed", base="elsewhere"), seen()], CommitEvidence.PASSED, True),
        ([seen(base="elsewhere"), seen("failed")], CommitEvidence.REFUSED, False),
        ([seen("failed", tree="another"), seen()], CommitEvidence.PASSED, True),
        ([seen(own=True)], CommitEvidence.OWN_SETTINGS, False),
        ([seen("failed", own=True)], CommitEvidence.OWN_SETTINGS, False),
        ([seen(None, own=True)], CommitEvidence.UNFINISHED, False),
        ([seen(own=True), seen()], CommitEvidence.PASSED, True),
        ([seen("failed", own=True), seen()], CommitEvidence.PASSED, True),
        ([seen(own=True), seen("failed")], CommitEvidence.REFUSED, False),
        ([seen(), seen(own=True)], CommitEvidence.PASSED, True),
        ([seen(own=True, base="elsewhere")], CommitEvidence.OTHER_BASE, False),
        ([seen(base="elsewhere"), seen(own=True)], CommitEvidence.OWN_SETTINGS, False),
        ([seen(base="branch base"), seen("failed")], CommitEvidence.REFUSED, False),
        ([seen(base="branch base"), seen("unverifiable")], CommitEvidence.REFUSED, False),
        ([seen(base="branch base"), seen("failed"), seen()], CommitEvidence.REFUSED, False),
        ([seen(base="branch base"), seen(), seen("failed")], CommitEvidence.PASSED, True),
        ([seen(), seen("failed", base="branch base")], CommitEvidence.PASSED, True),
        ([seen("failed", base="branch base"), seen()], CommitEvidence.REFUSED, False),
        ([seen(base="branch base"), seen(None), seen("failed")], CommitEvidence.REFUSED, False),
        ([seen(base="branch base"), seen("failed", own=True)], CommitEvidence.PASSED, True),
        ([seen(base="ancestor"), seen("failed", base="branch base")], CommitEvidence.REFUSED, False),
        ([seen(accepted=(TERMINAL,))], CommitEvidence.PASSED, True),
        ([seen(accepted=(APPROVER,))], CommitEvidence.ACCEPTANCE, False),
        ([seen(accepted=(TERMINAL, APPROVER))], CommitEvidence.ACCEPTANCE, False),
        ([seen(accepted=(None,))], CommitEvidence.ACCEPTANCE, False),
        ([seen(accepted=(APPROVER,)), seen()], CommitEvidence.PASSED, True),
        ([seen(accepted=(APPROVER,)), seen("failed")], CommitEvidence.REFUSED, False),
        ([seen("needs-decision")], CommitEvidence.REFUSED, False),
    ],
)
def test_the_newest_verdict_on_exactly_the_tree_by_a_base_and_settings_that_count_decides(
    checks: list[RecordedCheck], standing: CommitEvidence, accepted: bool
) -> None:
    ruling = rule_on_commit("tree", checks, parent="parent", parent_tree="old", counting={"branch base"})
    assert (ruling.evidence, ruling.is_accepted) == (standing, accepted)


rule = partial(rule_on_commit, "tree", parent="parent", parent_tree="old", counting=())


def test_the_settings_say_which_acceptances_count_and_a_dispute_stops_a_pass() -> None:
    assert rule([seen(accepted=(APPROVER,))], accepts=(APPROVER,)).evidence is CommitEvidence.PASSED
    disputed = rule([seen()], is_disputed=True)
    assert (disputed.evidence, disputed.is_accepted) == (CommitEvidence.DISPUTED, False)
    assert rule([seen("failed")], is_disputed=True).evidence is CommitEvidence.REFUSED


def test_a_failure_against_the_parent_is_named_with_the_pass_that_it_outranks() -> None:
    checks = [seen(base="branch base", run_id="second"), seen("failed", run_id="first")]
    ruling = rule(checks, counting={"branch base"})
    assert (ruling.check, ruling.outranked, ruling.is_against_parent) == (checks[1], checks[0], True)
    assert ruling.required_base == "parent"
    older = rule(checks[:1], counting={"branch base"})
    assert (older.check, older.is_against_parent, older.required_base) == (checks[0], False, "")


def test_what_decided_is_named() -> None:
    checks = [seen("interrupted", run_id="third"), seen("failed", run_id="second"), seen(run_id="first")]
    assert rule(checks).check == checks[1]


def test_the_tree_of_the_parent_needs_no_evidence_and_no_evidence_stops_it() -> None:
    ruling = rule([seen("failed")], parent_tree="tree")
    assert (ruling.evidence, ruling.is_accepted) == (CommitEvidence.UNCHANGED, True)


def test_the_first_commit_of_all_goes_in() -> None:
    ruling = rule([], parent="", parent_tree="", first=True)
    assert (ruling.evidence, ruling.is_accepted) == (CommitEvidence.FIRST, True)


def test_without_a_parent_only_the_named_bases_count() -> None:
    assert rule([seen(base="main")], parent="", parent_tree="", counting={"main"}).is_accepted
    assert not rule([seen(base="anything")], parent="", parent_tree="", counting={"main"}).is_accepted
    assert not rule([], parent="", parent_tree="").is_accepted
