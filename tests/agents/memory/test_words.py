"""Words of one stem are one word, and a request is known again in any spelling."""

from __future__ import annotations

import pytest

from proofstone.agents.memory.models import MemoryEntry, MemoryType
from proofstone.agents.memory.rules.calibration import calibrate
from proofstone.agents.memory.rules.words import extract_subject, is_same_request, stem_word

ONE_STEM = (
    ("count", "counts", "counted", "counting", "counter"),
    ("parse", "parses", "parsed", "parsing", "parser", "parsers"),
    ("validate", "validated", "validation", "validator"),
    ("stop", "stops", "stopped", "stopping"),
    ("query", "queries"),
    ("test", "tests", "testing"),
    ("price", "prices"),
)


@pytest.mark.parametrize("words", ONE_STEM)
def test_the_forms_of_a_word_have_one_stem(words: tuple[str, ...]) -> None:
    assert len(set(map(stem_word, words))) == 1


@pytest.mark.parametrize("word", ["css", "bus", "is", "go", "io", "äpfel", "v2", "x", "class", "analysis"])
def test_what_is_no_form_of_another_word_is_kept(word: str) -> None:
    assert stem_word(word) == word


def test_a_subject_is_of_stems_without_stop_words() -> None:
    assert extract_subject(("Please count the parsers of it",)) == {stem_word("counting"), stem_word("parse")}


@pytest.mark.parametrize(
    ("other", "same"),
    [("count them", True), ("Count  THEM!", True), ("count them all", False), ("", False), ("them count", False)],
)
def test_a_request_is_the_same_in_any_spelling(other: str, same: bool) -> None:
    assert is_same_request("count them", other) is same


def test_the_same_request_is_found_although_it_has_no_subject_and_shares_no_word() -> None:
    entry = MemoryEntry(
        entry_id="a",
        task_id="a",
        type=MemoryType.PROCEDURAL,
        content="the deployment was red",
        criteria_met=False,
        timestamp="2026-01-01T00:00:00Z",
        request="Do it again, please",
    )
    assert calibrate([entry], ("do it again please",)).must_not == ("the deployment was red",)
    assert calibrate([entry], ("do it, please",)).must_not == ()
