"""What different services answer to a search comes out in the same form."""

from __future__ import annotations

import json

import pytest

from assay.adapters.web.results import results_in

SEEN = "A title\nhttps://example.org/a\nSome words"


@pytest.mark.parametrize(
    "answer",
    [
        {"web": {"results": [{"title": "A title", "url": "https://example.org/a", "description": "Some words"}]}},
        {"results": [{"title": "A title", "url": "https://example.org/a", "content": "Some words", "score": 0.9}]},
        {"items": [{"title": "A title", "link": "https://example.org/a", "snippet": "Some words"}]},
        [{"name": "A title", "href": "https://example.org/a", "body": "Some words"}],
    ],
)
def test_a_result_is_its_title_address_and_excerpt(answer: object) -> None:
    assert results_in(json.dumps(answer)) == SEEN


@pytest.mark.parametrize("answer", ["plain words", '{"answer": 42}', "[]", "{", "[" * 100_000])
def test_an_answer_without_results_is_shown_as_it_is(answer: str) -> None:
    assert results_in(answer) == answer


def test_there_are_at_most_twenty_and_their_excerpts_are_short() -> None:
    many = [{"title": f"T{number}", "url": "https://e.org", "content": "x" * 5000} for number in range(50)]
    text = results_in(json.dumps(many))
    assert "T19" in text and "T20" not in text and "x" * 1001 not in text
