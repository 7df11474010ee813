"""The estimate of tokens: what counts as how many."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.agents.rules.token_count import estimate_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("plan", 1),
        ("the plan", 2),
        ("representation", 2),
        ("2026", 4),
        ('{"a": 1}', 5),
        ("snake_case", 3),
        ("🔴🟡", 2),
        ("a\n\n\nb", 3),
    ],
)
def test_what_is_one_token(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text(max_size=60), st.text(max_size=60))
def test_two_texts_with_a_line_end_between_them_have_the_tokens_of_both(one: str, other: str) -> None:
    joined = estimate_tokens(f"{one} \n {other}")
    assert joined <= estimate_tokens(one) + estimate_tokens(other) + 2
