"""The challenges on the board: who comes in, who is put off, and what may become of each."""

from __future__ import annotations

import pytest

from proofstone.agents.roles.models.plan_gate import ChallengeRuling, Withdrawal
from proofstone.agents.roles.models.plan_gate_records import (
    ChallengeConfidence,
    ChallengeOrigin,
    ChallengeStatus,
    PlanSeverity,
    RepositoryClaim,
)
from proofstone.plan_gate.models import PlanEventKind
from proofstone.plan_gate.rules.board import (
    MAX_ACTIVE,
    PERSON_EVIDENCE,
    ChallengeBoard,
    Exhibit,
    NewChallenge,
    find_unknown_ids,
    is_too_weak,
)
from tests.plan_gate.talk import (
    BEYOND,
    BLOCKING,
    GONE,
    HERE,
    HIGH,
    LOW,
    MED,
    MINOR,
    SIGNIFICANT,
    draft,
    entering,
    ruling,
)
from tests.rows import each_row

OPEN, RESOLVED, UNRESOLVED = ChallengeStatus.OPEN, ChallengeStatus.RESOLVED, ChallengeStatus.UNRESOLVED
DEFERRED, WITHDRAWN = ChallengeStatus.DEFERRED, ChallengeStatus.WITHDRAWN
PUT_OFF = ChallengeStatus.DEFERRED_SURFACED
SHOWN = {"U1": Exhibit("U1"), "U2": Exhibit("U2", is_verified=True)}
"""U1 is an agent's word; the engine has seen U2 itself."""


def board_of(*brought: NewChallenge | PlanSeverity, most: int = 99) -> ChallengeBoard:
    board = ChallengeBoard()
    board.admit([one if isinstance(one, NewChallenge) else entering(one) for one in brought], most)
    return board


def with_status(board: ChallengeBoard, status: ChallengeStatus) -> list[str]:
    return [one.id for one in board.all if one.status is status]


def told(board: ChallengeBoard, kind: PlanEventKind) -> list[str]:
    return [one.text for one in board.events if one.kind is kind]


# Coming in.


@pytest.mark.seed("plan-gate", "challenge-ids")
def test_ids_are_given_in_the_order_in_which_challenges_came_whatever_becomes_of_them() -> None:
    board = board_of(entering(MINOR), entering(BLOCKING, GONE), entering(BLOCKING), most=1)
    assert board.admit([entering(SIGNIFICANT)], 1) == ["C4"]
    assert [(one.id, one.severity) for one in board.all] == [
        ("C1", MINOR),
        ("C2", BLOCKING),
        ("C3", BLOCKING),
        ("C4", SIGNIFICANT),
    ]


def test_what_was_brought_is_kept_to_the_letter() -> None:
    board = ChallengeBoard()
    board.begin(2)
    brought = entering(
        SIGNIFICANT, HERE, origin=ChallengeOrigin.PROBED, confidence=MED, mitigation="Keep two stores.", line=7
    )
    board.admit([brought], 1)
    (one,) = board.all
    for field in ("claim", "concern", "failure_scenario", "alternative", "severity", "confidence", "mitigation"):
        assert getattr(one, field) == getattr(brought.draft, field)
    assert (one.origin, one.status, one.iteration_introduced) == (ChallengeOrigin.PROBED, OPEN, 2)
    assert (board.lines, board.evidence) == ({"C1": 7}, {"C1": "here/a.py: True"})


RANKED: list[tuple[list[tuple[PlanSeverity, ChallengeConfidence]], int, list[str]]] = [
    ([(MINOR, HIGH), (SIGNIFICANT, LOW), (BLOCKING, LOW)], 2, ["C2", "C3"]),
    ([(SIGNIFICANT, LOW), (SIGNIFICANT, HIGH), (SIGNIFICANT, MED)], 2, ["C2", "C3"]),
    ([(SIGNIFICANT, MED), (SIGNIFICANT, MED), (SIGNIFICANT, MED)], 2, ["C1", "C2"]),
    ([(MINOR, HIGH), (SIGNIFICANT, LOW)], 1, ["C2"]),
    ([(MINOR, HIGH), (MINOR, HIGH)], 2, ["C1", "C2"]),
    ([(BLOCKING, HIGH)], 0, []),
]


@each_row(("brought", "most", "taken"), RANKED)
@pytest.mark.seed("plan-gate", "excess-tagged")
def test_beyond_a_cap_the_gravest_then_the_surest_then_the_first_are_taken(
    brought: list[tuple[PlanSeverity, ChallengeConfidence]], most: int, taken: list[str]
) -> None:
    board = board_of(*(entering(severity, confidence=confidence) for severity, confidence in brought), most=most)
    assert with_status(board, OPEN) == taken
    left = with_status(board, PUT_OFF)
    assert len(left) == len(brought) - len(taken) == len(told(board, PlanEventKind.OVERFLOW))
    assert all(board.challenges[id].resolution == f"put off: no more than {most} could be taken" for id in left)
    assert board.created_count == len(taken)


@each_row("there", PlanSeverity)
@each_row("newcomer", PlanSeverity)
@pytest.mark.seed("plan-gate", "cap-eight")
def test_when_eight_are_active_only_a_graver_one_comes_in(there: PlanSeverity, newcomer: PlanSeverity) -> None:
    board = board_of(*[there] * 8)
    board.admit([entering(newcomer)], 5)
    assert len(board.active) == MAX_ACTIVE == 8
    if newcomer.rank < there.rank:
        assert with_status(board, PUT_OFF) == ["C8"]
        assert told(board, PlanEventKind.DISPLACED) == [
            f"C8 ({there}) was put off: C9, which is {newcomer}, took its place"
        ]
    else:
        assert with_status(board, PUT_OFF) == ["C9"]
        assert told(board, PlanEventKind.OVERFLOW) == [f"C9 ({newcomer}) was put off: 8 are active already"]


def test_a_surer_one_is_not_a_graver_one() -> None:
    board = board_of(*[entering(SIGNIFICANT, confidence=LOW)] * 8)
    board.admit([entering(SIGNIFICANT, confidence=HIGH)], 1)
    assert with_status(board, PUT_OFF) == ["C9"]


DISPLACED: list[tuple[list[NewChallenge], str]] = [
    ([*[entering(SIGNIFICANT)] * 7, entering(MINOR)], "C8"),
    ([entering(MINOR), *[entering(SIGNIFICANT)] * 7], "C1"),
    ([entering(SIGNIFICANT), entering(SIGNIFICANT, confidence=LOW), *[entering(SIGNIFICANT)] * 6], "C2"),
    ([entering(BLOCKING), *[entering(SIGNIFICANT)] * 7], "C8"),
    ([*[entering(BLOCKING)] * 7, entering(SIGNIFICANT)], "C8"),
]


@each_row(("there", "weakest"), DISPLACED)
def test_a_blocking_one_takes_the_place_of_the_weakest(there: list[NewChallenge], weakest: str) -> None:
    board = board_of(*there)
    board.admit([entering(BLOCKING, confidence=LOW)], 1)
    assert (with_status(board, PUT_OFF), len(board.active)) == ([weakest], 8)
    assert board.challenges["C9"].status is OPEN
    assert board.challenges[weakest].resolution == "put off: C9, which is BLOCKING, took its place"
    assert len(told(board, PlanEventKind.DISPLACED)) == 1 and not told(board, PlanEventKind.OVERFLOW)


def test_what_is_unresolved_is_active_and_what_is_settled_is_not() -> None:
    board = board_of(*[MINOR] * 8)
    for id, status in (("C1", UNRESOLVED), ("C2", RESOLVED), ("C3", WITHDRAWN), ("C4", DEFERRED)):
        board.rule(ruling(id, status), SHOWN)
    assert [one.id for one in board.active] == ["C1", "C5", "C6", "C7", "C8"]
    board.admit([entering(MINOR) for _ in range(4)], 4)
    assert with_status(board, PUT_OFF) == ["C12"]


def test_a_blocking_one_that_was_put_off_comes_in_when_there_is_room() -> None:
    board = board_of(*[BLOCKING] * 9)
    board.readmit()
    assert with_status(board, PUT_OFF) == ["C9"]
    assert len(told(board, PlanEventKind.OVERFLOW)) == 1, "it is told once"
    board.rule(ruling("C1", mitigation="Keep another store."), SHOWN)
    board.begin(2)
    board.readmit()
    assert board.challenges["C9"].status is OPEN
    assert board.challenges["C9"].resolution == "", "it is not put off any more"
    assert board.created_count == 0, "it is not new"


def test_a_blocking_one_that_was_put_off_comes_in_for_a_weaker_one() -> None:
    board = board_of(*[BLOCKING] * 2, most=1)
    board.admit([entering(SIGNIFICANT) for _ in range(7)], 7)
    board.readmit()
    assert with_status(board, PUT_OFF) == ["C9"]


@pytest.mark.parametrize("severity", [SIGNIFICANT, MINOR])
def test_nothing_less_comes_in_later(severity: PlanSeverity) -> None:
    board = board_of(*[severity] * 2, most=1)
    board.readmit()
    assert with_status(board, PUT_OFF) == ["C2"]


REFUTED = [
    (SIGNIFICANT, (GONE,), WITHDRAWN),
    (MINOR, (GONE,), WITHDRAWN),
    (MINOR, (GONE, BEYOND), WITHDRAWN),
    (SIGNIFICANT, (HERE, GONE), OPEN),
    (SIGNIFICANT, (BEYOND,), OPEN),
    (SIGNIFICANT, (HERE,), OPEN),
    (SIGNIFICANT, (), OPEN),
    (BLOCKING, (GONE,), OPEN),
]


@each_row(("severity", "evidence", "status"), REFUTED)
def test_a_challenge_that_rests_on_nothing_true_is_withdrawn_at_once_unless_it_blocks(
    severity: PlanSeverity, evidence: tuple[RepositoryClaim, ...], status: ChallengeStatus
) -> None:
    board = board_of(entering(severity, *evidence), MINOR, most=1)
    withdrawn = status is WITHDRAWN
    assert [one.status for one in board.all] == ([WITHDRAWN, OPEN] if withdrawn else [OPEN, PUT_OFF])
    if withdrawn:
        assert board.challenges["C1"].resolution == "what it rests on is not true: gone/a.py: False"
    assert ("C1" in board.evidence) == (bool(evidence) and GONE not in evidence)
    assert (board.created_count, board.settled_count) == (1, 0), "what is refuted takes no place"


@pytest.mark.parametrize(
    ("evidence", "status", "allowed"),
    [((GONE,), WITHDRAWN, True), ((GONE,), RESOLVED, False), ((HERE, GONE), WITHDRAWN, False), ((), WITHDRAWN, False)],
)
def test_one_that_blocks_and_rests_on_nothing_true_may_be_withdrawn_by_a_ruling(
    evidence: tuple[RepositoryClaim, ...], status: ChallengeStatus, allowed: bool
) -> None:
    board = board_of(entering(BLOCKING, *evidence))
    board.rule(ruling("C1", status), SHOWN)
    assert board.challenges["C1"].status is (status if allowed else OPEN)


@each_row("severity", PlanSeverity)
@each_row("confidence", ChallengeConfidence)
def test_a_devils_advocate_never_brings_what_is_minor_or_unsure(
    severity: PlanSeverity, confidence: ChallengeConfidence
) -> None:
    expected = severity is MINOR or confidence is LOW
    assert is_too_weak(draft(severity, confidence=confidence)) == expected


# What becomes of them.

SETTLING: list[tuple[str, PlanSeverity, ChallengeRuling, bool]] = [
    ("a MINOR one by words", MINOR, ruling("C1"), True),
    ("but there must be some", MINOR, ruling("C1", resolution=" "), False),
    ("also for a withdrawal", MINOR, ruling("C1", WITHDRAWN, resolution=""), False),
    ("a MINOR one is withdrawn by words", MINOR, ruling("C1", WITHDRAWN), True),
    ("a MINOR one is deferred", MINOR, ruling("C1", DEFERRED), True),
    ("a SIGNIFICANT one is not deferred", SIGNIFICANT, ruling("C1", DEFERRED, "U2", mitigation="x"), False),
    ("nor a BLOCKING one", BLOCKING, ruling("C1", DEFERRED, "U2", mitigation="x"), False),
    ("a SIGNIFICANT one not by words alone", SIGNIFICANT, ruling("C1"), False),
    ("nor withdrawn by words alone", SIGNIFICANT, ruling("C1", WITHDRAWN), False),
    ("a SIGNIFICANT one by an agent's word", SIGNIFICANT, ruling("C1", RESOLVED, "U1"), True),
    ("or withdrawn by it", SIGNIFICANT, ruling("C1", WITHDRAWN, "U1"), True),
    ("not by what there is not", SIGNIFICANT, ruling("C1", RESOLVED, "U9"), False),
    ("a SIGNIFICANT one by a mitigation", SIGNIFICANT, ruling("C1", mitigation="Keep two stores."), True),
    ("not by one that says nothing", SIGNIFICANT, ruling("C1", mitigation="Fix it."), False),
    ("not by an empty one", SIGNIFICANT, ruling("C1", mitigation=" \n"), False),
    ("a mitigation withdraws nothing", SIGNIFICANT, ruling("C1", WITHDRAWN, mitigation="Keep two stores."), False),
    ("with evidence there must be words too", SIGNIFICANT, ruling("C1", RESOLVED, "U1", resolution=""), False),
    ("a BLOCKING one not by an agent's word", BLOCKING, ruling("C1", RESOLVED, "U1"), False),
    ("nor withdrawn by it", BLOCKING, ruling("C1", WITHDRAWN, "U1"), False),
    ("a BLOCKING one by what the engine saw", BLOCKING, ruling("C1", RESOLVED, "U1", "U2"), True),
    ("or withdrawn by it", BLOCKING, ruling("C1", WITHDRAWN, "U2"), True),
    ("a BLOCKING one by a mitigation", BLOCKING, ruling("C1", mitigation="Keep two stores."), True),
    ("not by a person who has said nothing", BLOCKING, ruling("C1", RESOLVED, PERSON_EVIDENCE), False),
    ("nor a SIGNIFICANT one", SIGNIFICANT, ruling("C1", RESOLVED, PERSON_EVIDENCE), False),
    ("anything may be UNRESOLVED without words", BLOCKING, ruling("C1", UNRESOLVED, resolution=""), True),
    ("or stay OPEN", SIGNIFICANT, ruling("C1", OPEN, resolution=""), True),
]


@each_row(("severity", "said", "allowed"), [row[1:] for row in SETTLING])
def test_what_a_ruling_may_do(severity: PlanSeverity, said: ChallengeRuling, allowed: bool) -> None:
    board = board_of(severity)
    before = board.challenges["C1"]
    board.rule(said, SHOWN)
    after = board.challenges["C1"]
    refused = told(board, PlanEventKind.REFUSED)
    if allowed:
        assert (after.status, after.resolution, refused) == (said.status, said.resolution.strip(), [])
        assert board.evidence.get("C1", "") == ", ".join(said.evidence)
        assert board.settled_count == (after.status in (RESOLVED, WITHDRAWN))
    else:
        assert (after, board.evidence, board.settled_count) == (before, {}, 0)
        assert len(refused) == 1 and refused[0].startswith(f"C1 → {said.status} was not allowed: ")


@each_row(
    ("exhibit", "severity", "settles"),
    [
        (Exhibit("U1"), SIGNIFICANT, True),
        (Exhibit("U1"), BLOCKING, False),
        (Exhibit("U1", is_verified=True), BLOCKING, True),
        (Exhibit("U1", about="C1", is_verified=True), BLOCKING, True),
        (Exhibit("U1", about="C2", is_verified=True), BLOCKING, False),
        (Exhibit("U1", about="C2"), SIGNIFICANT, False),
        (Exhibit("S1", against="C1", is_verified=True), BLOCKING, False),
        (Exhibit("S1", against="C1"), SIGNIFICANT, False),
        (Exhibit("S1", against="C2"), SIGNIFICANT, True),
    ],
)
def test_an_exhibit_settles_what_it_is_about_and_never_what_came_of_it(
    exhibit: Exhibit, severity: PlanSeverity, settles: bool
) -> None:
    board = board_of(severity)
    board.rule(ruling("C1", RESOLVED, exhibit.id), {exhibit.id: exhibit})
    assert board.challenges["C1"].status is (RESOLVED if settles else OPEN)


@each_row(
    ("said", "allowed"),
    [
        (ruling("C1", mitigation="Keep two stores."), False),
        (ruling("C1", RESOLVED, "U1"), False),
        (ruling("C1", RESOLVED, "U2"), True),
        (ruling("C1", WITHDRAWN, "U2"), True),
        (ruling("C1", RESOLVED, PERSON_EVIDENCE), True),
    ],
)
@each_row("severity", [BLOCKING, SIGNIFICANT])
def test_what_the_rules_found_in_the_text_is_not_settled_by_words_that_are_not_in_it(
    said: ChallengeRuling, allowed: bool, severity: PlanSeverity
) -> None:
    board = board_of(entering(severity, origin=ChallengeOrigin.RULES))
    board.record_answer("C1", "It is empty.")
    board.rule(said, SHOWN)
    assert (board.challenges["C1"].status is OPEN) != allowed
    assert bool(told(board, PlanEventKind.REFUSED)) != allowed


def test_a_mitigation_that_came_with_the_challenge_is_not_a_ruling_and_is_kept() -> None:
    board = board_of(entering(SIGNIFICANT, mitigation="Keep two stores."))
    board.rule(ruling("C1"), SHOWN)
    assert board.challenges["C1"].status is OPEN
    board.rule(ruling("C1", UNRESOLVED), SHOWN)
    assert board.challenges["C1"].mitigation == "Keep two stores."
    board.rule(ruling("C1", mitigation="Keep one store."), SHOWN)
    assert board.challenges["C1"].mitigation == "Keep one store."


def test_the_persons_answer_settles_the_challenge_that_it_is_about_and_no_other() -> None:
    board = board_of(BLOCKING, BLOCKING)
    for id in ("C1", "C2"):
        board.rule(ruling(id, UNRESOLVED), SHOWN)
    board.record_answer("C1", "The store is emptied by hand.")
    assert board.challenges["C1"].resolution == "the person says: The store is emptied by hand."
    assert [one.status for one in board.all] == [OPEN, UNRESOLVED]
    for id in ("C1", "C2"):
        board.rule(ruling(id, RESOLVED, PERSON_EVIDENCE), SHOWN)
    assert [one.status for one in board.all] == [RESOLVED, UNRESOLVED]


@each_row("status", [RESOLVED, WITHDRAWN, DEFERRED])
@each_row("later", [OPEN, RESOLVED, UNRESOLVED, DEFERRED, WITHDRAWN])
def test_what_is_settled_stays_settled_to_the_letter(status: ChallengeStatus, later: ChallengeStatus) -> None:
    board = board_of(MINOR)
    board.rule(ruling("C1", status, "U2", resolution="at first"), SHOWN)
    before = board.challenges["C1"]
    board.rule(ruling("C1", later, "U1", resolution="otherwise", mitigation="no"), SHOWN)
    assert (board.challenges["C1"], board.evidence) == (before, {"C1": "U2"})
    assert board.settled_count == (status is not DEFERRED)
    assert len(told(board, PlanEventKind.REFUSED)) == (later is not status), "to say it again is no offence"


def test_what_was_put_off_or_refuted_is_not_ruled_on() -> None:
    board = board_of(entering(SIGNIFICANT), entering(SIGNIFICANT), entering(SIGNIFICANT, GONE), most=1)
    for id in ("C2", "C3", "C4"):
        board.rule(ruling(id, mitigation="Keep two stores."), SHOWN)
    assert [one.status for one in board.all] == [OPEN, PUT_OFF, WITHDRAWN]
    assert len(told(board, PlanEventKind.REFUSED)) == 3
    assert "there is no such challenge" in told(board, PlanEventKind.REFUSED)[2]


@each_row("status", [OPEN, RESOLVED, UNRESOLVED, DEFERRED, WITHDRAWN])
def test_what_stands_in_the_plans_text_is_settled_by_an_edit_only(status: ChallengeStatus) -> None:
    board = board_of(entering(MINOR, final=True, origin=ChallengeOrigin.RULES), MINOR)
    board.rule(ruling("C1", status, "U2", mitigation="x"), SHOWN)
    assert board.challenges["C1"].status is OPEN
    assert "only an edit settles it" in told(board, PlanEventKind.REFUSED)[0]
    assert [one.id for one in board.open_to_discussion] == ["C2"]


def test_a_challenge_that_was_unresolved_may_be_settled_later() -> None:
    board = board_of(SIGNIFICANT)
    board.rule(ruling("C1", UNRESOLVED), SHOWN)
    assert board.settled_count == 0
    board.rule(ruling("C1", RESOLVED, "U1"), SHOWN)
    assert (board.challenges["C1"].status, board.settled_count) == (RESOLVED, 1)


WITHDRAWALS = [
    ("C1", ChallengeOrigin.CHALLENGER, True),
    ("C1", ChallengeOrigin.DEVILS_ADVOCATE, False),
    ("C2", ChallengeOrigin.DEVILS_ADVOCATE, True),
    ("C3", ChallengeOrigin.CHALLENGER, False),
    ("C4", ChallengeOrigin.CHALLENGER, False),
    ("C5", ChallengeOrigin.CHALLENGER, False),
]


@each_row(("id", "by", "allowed"), WITHDRAWALS)
def test_whoever_brought_an_open_challenge_can_take_it_back(id: str, by: ChallengeOrigin, allowed: bool) -> None:
    board = board_of(
        entering(BLOCKING), entering(BLOCKING, origin=ChallengeOrigin.DEVILS_ADVOCATE), MINOR, MINOR, most=3
    )
    board.rule(ruling("C3"), SHOWN)
    board.settled_count = 0
    withdrawal = Withdrawal(challenge=id, why="it was a misreading", evidence=("U2",))
    board.withdraw(withdrawal, by, SHOWN)
    if allowed:
        one = board.challenges[id]
        assert (one.status, one.resolution, board.settled_count) == (WITHDRAWN, "it was a misreading", 1)
    else:
        refused = [f"{by} cannot withdraw {id}: it is not an open challenge of its own"]
        assert (told(board, PlanEventKind.REFUSED), board.settled_count) == (refused, 0)
        assert with_status(board, WITHDRAWN) == []


@each_row("severity", PlanSeverity)
@each_row("status", [OPEN, UNRESOLVED])
def test_what_is_minor_and_open_at_the_end_is_deferred(severity: PlanSeverity, status: ChallengeStatus) -> None:
    board = board_of(severity)
    board.rule(ruling("C1", status, resolution=""), SHOWN)
    board.close()
    one = board.challenges["C1"]
    assert (one.status, one.resolution) == ((DEFERRED, "still open at the end") if severity is MINOR else (status, ""))


def test_at_the_end_what_was_said_of_a_minor_one_is_kept() -> None:
    board = board_of(MINOR, MINOR)
    board.rule(ruling("C1", UNRESOLVED, resolution="nobody knows"), SHOWN)
    board.rule(ruling("C2", RESOLVED), SHOWN)
    board.close()
    assert [(one.status, one.resolution) for one in board.all] == [
        (DEFERRED, "nobody knows"),
        (RESOLVED, "it was looked into"),
    ]


def test_where_nobody_else_is_asked_the_persons_word_settles_a_challenge() -> None:
    board = board_of(BLOCKING)
    board.settle_by_answer("C1", "The store is emptied by hand.")
    one = board.challenges["C1"]
    assert (one.status, one.resolution) == (RESOLVED, "the person says: The store is emptied by hand.")
    assert (board.evidence, board.settled_count) == ({"C1": PERSON_EVIDENCE}, 1)


@each_row(
    ("id", "why"),
    [
        ("C1", ""),
        ("C2", "C2 is in the plan's text: edit the plan"),
        ("C3", "C3 is RESOLVED"),
        ("C4", "C4 is DEFERRED_SURFACED"),
        ("C5", "there is no challenge C5"),
    ],
)
def test_what_a_person_can_answer(id: str, why: str) -> None:
    board = board_of(BLOCKING, entering(BLOCKING, final=True), BLOCKING, MINOR, most=3)
    board.rule(ruling("C3", mitigation="Keep two stores."), SHOWN)
    assert board.explain_unanswerable(id) == why


def test_an_iteration_begins_with_nothing_created_and_nothing_settled() -> None:
    board = board_of(MINOR, MINOR)
    board.rule(ruling("C1"), SHOWN)
    assert (board.created_count, board.settled_count) == (2, 1)
    board.begin(2)
    assert (board.created_count, board.settled_count) == (0, 0)
    board.rule(ruling("C9"), SHOWN)
    assert [one.iteration for one in board.events] == [2]


def test_references_that_lead_nowhere_are_named_once() -> None:
    assert find_unknown_ids(["C1", "C9", "U1", "C9"], {"C1", "U1"}) == ["C9"]
