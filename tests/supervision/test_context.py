"""Versions of the context: what differs, who is told how much of it, and what an acknowledgement is worth."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofstone.supervision.models.context import (
    Ack,
    AckAction,
    AckOutcome,
    ContextItem,
    ContextReader,
    ContextSection,
    ContextVersion,
    DeltaLine,
    DeltaOperation,
)
from proofstone.supervision.rules.context import (
    acknowledge,
    amend_context,
    compute_delta,
    freeze_context,
    list_whole_context,
    prepare_update,
    thaw_context,
)
from tests.rows import each_row

LIMIT = ContextItem(key="new_requirement", text="Rate limiting on auth endpoints", files=("src/auth/**",))


def version(number: int, **sections: dict[str, str]) -> ContextVersion:
    return ContextVersion(
        number=number,
        sections=tuple(
            ContextSection(name=name, items=tuple(ContextItem(key=key, text=text) for key, text in items.items()))
            for name, items in sections.items()
        ),
    )


def reader(**known: object) -> ContextReader:
    return ContextReader.model_validate(
        {"agent": "implementer-1", "files": ("src/auth/handler.py",), "knows": 4, **known}
    )


FOUR = version(
    4, Scope={"goal": "users log in", "out": "no single sign-on", "clients": "web"}, Rules={"style": "plain"}
)


def said(lines: tuple[DeltaLine, ...]) -> list[tuple[str, str, str]]:
    return [(line.operation.value, line.section, line.key) for line in lines]


@each_row(
    ("after", "lines"),
    [
        (FOUR.model_copy(update={"number": 5}), []),
        (amend_context(FOUR, "Scope", LIMIT), [("ADDED", "Scope", "new_requirement")]),
        (amend_context(FOUR, "Later", LIMIT), [("ADDED", "Later", "new_requirement")]),
        (amend_context(FOUR, "Scope", ContextItem(key="out", text="all")), [("CHANGED", "Scope", "out")]),
        (
            amend_context(FOUR, "Scope", ContextItem(key="out", text="no single sign-on", files=("a.py",))),
            [("CHANGED", "Scope", "out")],
        ),
        (
            version(5, Scope={"goal": "users log in", "clients": "web"}, Rules={"style": "plain"}),
            [("REMOVED", "Scope", "out")],
        ),
        (
            version(5, Scope={"goal": "users log in", "out": "no single sign-on", "clients": "web"}),
            [("REMOVED", "Rules", "style")],
        ),
        (
            version(5, Scope={"a": "x", "b": "y"}, Rules={"style": "plain"}),
            [("REPLACED", "Scope", "a"), ("REPLACED", "Scope", "b")],
        ),
    ],
)
@pytest.mark.seed("continuity", "context-delta")
def test_a_delta_names_what_differs_with_its_section(after: ContextVersion, lines: list[tuple[str, str, str]]) -> None:
    assert said(compute_delta(FOUR, after)) == lines


def test_what_was_removed_is_told_as_it_was() -> None:
    after = version(5, Scope={"goal": "users log in", "out": "no single sign-on", "clients": "web"})
    (line,) = compute_delta(FOUR, after)
    assert line.text == "plain"


# Who is told how much.


@each_row(
    ("item", "told"),
    [
        (ContextItem(key="k", text="x"), True),
        (ContextItem(key="k", text="x", files=("src/auth/handler.py",)), True),
        (ContextItem(key="k", text="x", files=("src/**",)), True),
        (ContextItem(key="k", text="x", files=("src/auth",)), True),
        (ContextItem(key="k", text="x", files=("src/other.py",)), False),
        (ContextItem(key="k", text="x", criteria=("login works",)), True),
        (ContextItem(key="k", text="x", criteria=("another",)), False),
        (ContextItem(key="k", text="x", files=("src/other.py",), criteria=("login works",)), True),
    ],
)
@pytest.mark.seed("continuity", "t3-scope-change")
def test_only_those_are_told_whose_files_or_criteria_it_concerns(item: ContextItem, told: bool) -> None:
    _, sent = prepare_update(reader(criteria=("login works",)), FOUR, amend_context(FOUR, "Scope", item))
    assert (sent is not None) is told
    if sent is not None:
        assert sent.reverify


def test_whoever_is_concerned_no_longer_is_told_too() -> None:
    five = amend_context(FOUR, "Scope", LIMIT)
    six = amend_context(five, "Scope", LIMIT.model_copy(update={"files": ("src/other.py",)}))
    _, sent = prepare_update(reader(knows=5), five, six)
    assert sent is not None


LARGE = version(5, Scope={"goal": "1", "out": "2", "clients": "3"}, Rules={"style": "plain"})
HALF = version(5, Scope={"goal": "1", "out": "2", "clients": "web"}, Rules={"style": "plain"})


@each_row(
    ("changes", "known", "latest", "why", "before", "lines", "reverify"),
    [
        ({}, FOUR, amend_context(FOUR, "Scope", LIMIT), "", 4, 1, True),
        ({}, FOUR, HALF, "", 4, 2, True),
        ({}, FOUR, LARGE, "large", 4, 4, True),
        ({}, FOUR, amend_context(amend_context(FOUR, "Scope", LIMIT), "Rules", LIMIT), "gap", 4, 6, True),
        ({"again": True}, FOUR, FOUR, "request", 3, 4, False),
        ({"again": True}, FOUR, amend_context(FOUR, "Scope", LIMIT), "request", 4, 5, True),
        ({"knows": 0}, None, FOUR, "first", 0, 4, False),
    ],
)
@pytest.mark.seed("continuity", "context-delta")
def test_how_much_is_sent(
    changes: dict[str, object],
    known: ContextVersion | None,
    latest: ContextVersion,
    why: str,
    before: int,
    lines: int,
    reverify: bool,
) -> None:
    after, sent = prepare_update(reader(**changes), known, latest)
    assert sent is not None
    assert (sent.whole, sent.update.before, len(sent.update.lines), sent.reverify) == (why, before, lines, reverify)
    assert (after.knows, after.awaited, after.again, after.sent_whole) == (latest.number, lines, False, bool(why))
    assert prepare_update(after, latest, latest) == (after, None)


def test_a_gate_in_progress_freezes_the_version() -> None:
    five = amend_context(FOUR, "Scope", LIMIT)
    frozen = freeze_context(reader())
    assert prepare_update(frozen, FOUR, five) == (frozen, None)
    assert prepare_update(thaw_context(frozen), FOUR, five)[1] is not None


# Acknowledgements.


def ack(applied: int, total: int, action: AckAction, number: int = 5) -> Ack:
    return Ack(version=number, applied=applied, total=total, impact="some", action=action)


@each_row(
    ("awaited", "sent_whole", "said_so", "outcome", "acknowledged"),
    [
        (1, False, ack(1, 1, AckAction.CONTINUE), AckOutcome.TAKEN, 5),
        (1, False, ack(1, 1, AckAction.PAUSE), AckOutcome.PAUSED, 5),
        (1, False, ack(1, 1, AckAction.NEED_CLARIFICATION), AckOutcome.SEND_WHOLE, 4),
        (2, False, ack(1, 2, AckAction.CONTINUE), AckOutcome.SEND_WHOLE, 4),
        (2, False, ack(1, 1, AckAction.CONTINUE), AckOutcome.SEND_WHOLE, 4),
        (2, True, ack(1, 2, AckAction.CONTINUE), AckOutcome.PAUSED, 4),
        (2, True, ack(2, 2, AckAction.NEED_CLARIFICATION), AckOutcome.PAUSED, 4),
        (2, True, ack(2, 2, AckAction.CONTINUE), AckOutcome.TAKEN, 5),
        (1, False, ack(1, 1, AckAction.CONTINUE, number=4), AckOutcome.UNASKED, 4),
        (None, False, ack(1, 1, AckAction.CONTINUE), AckOutcome.UNASKED, 4),
    ],
)
@pytest.mark.seed("continuity", "ack")
def test_what_an_acknowledgement_is_worth(
    awaited: int | None, sent_whole: bool, said_so: Ack, outcome: AckOutcome, acknowledged: int
) -> None:
    before = reader(knows=5, acknowledged=4, awaited=awaited, sent_whole=sent_whole)
    after, is_worth = acknowledge(before, said_so)
    assert is_worth is outcome
    assert after.acknowledged == acknowledged
    assert after.again is (outcome is AckOutcome.SEND_WHOLE)
    assert (after == before) is (outcome is AckOutcome.UNASKED)


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(AckAction)), min_size=1, max_size=9))
@settings(max_examples=50)
def test_whoever_never_understands_is_sent_the_whole_only_once_more(answers: list[tuple[int, AckAction]]) -> None:
    """There is an end to it, whatever an agent says."""
    five = amend_context(FOUR, "Scope", LIMIT)
    at, sent = prepare_update(reader(), FOUR, five)
    wholes = 0
    for applied, action in answers:
        at, _ = acknowledge(at, ack(applied, 9, action))
        at, sent = prepare_update(at, five, five)
        wholes += sent is not None
    assert wholes <= 1


# What is sent is enough to know all of it.

texts = st.sampled_from(("one", "two"))
items = st.dictionaries(st.sampled_from("abc"), texts, min_size=1, max_size=3)
contexts = st.dictionaries(st.sampled_from(("S", "T", "U")), items, max_size=3)


def applied(known: dict[str, dict[str, str]], lines: tuple[DeltaLine, ...]) -> dict[str, dict[str, str]]:
    """As somebody would who knows nothing but the four words."""
    now = {name: dict(of) for name, of in known.items()}
    for name in {line.section for line in lines if line.operation is DeltaOperation.REPLACED}:
        now[name] = {}
    for line in lines:
        if line.operation is DeltaOperation.REMOVED:
            del now[line.section][line.key]
        else:
            now.setdefault(line.section, {})[line.key] = line.text
    return {name: of for name, of in now.items() if of}


@given(contexts, contexts)
@settings(max_examples=100)
def test_whoever_applies_the_lines_knows_the_new_version(
    before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]
) -> None:
    old, new = version(1, **before), version(2, **after)
    assert applied(before, compute_delta(old, new)) == after
    assert applied(before, list_whole_context(old, new)) == after
    assert applied({}, list_whole_context(None, new)) == after
