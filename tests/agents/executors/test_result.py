"""The reader of results: what may stand around the one object, and that nothing at all breaks it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.agents.executors.output import OutputTail
from proofstone.agents.roles.models.gate import (
    ArchitectDecision,
    ArchitectVerdict,
    ExecutorResult,
    ExecutorStatus,
    Recommendation,
)
from proofstone.agents.rules.answer import MalformedAnswer, parse_answer
from proofstone.common.models import Confidence
from tests.rows import each_row

OBJECT = '{"status": "failure", "error": "e {x}"}'
AROUND = {
    "alone": OBJECT,
    "byte order mark": f"\ufeff{OBJECT}\n",
    "fence": f"```json\n{OBJECT}\n```\n",
    "prose": f"Here is my result:\n\n{OBJECT}\n\nI hope that helps {{smile}}.",
    "thought": f'<think>perhaps {{"status": "success"}}?</think>{OBJECT}',
    "second object": f'{OBJECT}\n{{"status": "success"}}',
    "braces before": f"for {{each}} of {{}} and {{1}}: {OBJECT}",
    "CRLF": OBJECT.replace(", ", ",\r\n"),
}


@each_row("text", AROUND.values())
def test_the_one_object_is_found(text: str) -> None:
    found = parse_answer(text.encode(), ExecutorResult)
    assert found == ExecutorResult(status=ExecutorStatus.FAILURE, error="e {x}")


BROKEN = {
    "a thought without an end": ('<think>{"status": "suc', "not JSON"),
    "an integer without an end": ('{"status": "success", "x": ' + "9" * 5000 + "}", "JSON cannot be read"),
    "a text that is none": ('{"status": "failure", "error": "\\ud800"}', '"\\ud800" is half of a character'),
    "a number without end": ('{"status": "success", "x": 1e999}', "a number in it is not one that JSON has"),
    "many wrong files": ('{"status": "success", "files_modified": [1,2,3,4,5,6,7]}', "and 2 more"),
    "a long value": ('{"status": "' + "x" * 500 + '"}', "…"),
}


@each_row("text,words", BROKEN.values())
def test_what_is_wrong_is_said_in_few_words(text: str, words: str) -> None:
    found = parse_answer(text.encode(), ExecutorResult)
    assert isinstance(found, MalformedAnswer) and words in found.why and len(found.why) < 600, found


@given(st.binary(max_size=300) | st.text("{}[]\"':,<think>/ \nstatus").map(lambda text: text.encode()))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    assert isinstance(parse_answer(data, ExecutorResult), (ExecutorResult, MalformedAnswer))


@each_row("unit", ["{", '{"a":', "<think>", "[", '"', "{}"])
def test_a_file_of_the_largest_size_is_read_whatever_it_repeats(unit: str) -> None:
    """Were it more than linear, this would not come to an end."""
    found = parse_answer((unit * (1 << 20))[: 1 << 20].encode(), ExecutorResult)
    assert isinstance(found, MalformedAnswer)


# A verdict as architects write it → how it is read.
VERDICTS = {
    '{"verdict": "APPROVED", "confidence": "HIGH"}': ("APPROVED", Confidence.HIGH, Recommendation.COMMIT),
    '{"verdict": "APPROVED"}': ("APPROVED", Confidence.MEDIUM, Recommendation.COMMIT),
    '{"verdict": "REJECTED", "confidence": "low"}': ("REJECTED", Confidence.LOW, Recommendation.RETRY),
    '{"verdict": "REJECTED", "recommendation": "manual_review"}': (
        "REJECTED",
        Confidence.MEDIUM,
        Recommendation.MANUAL_REVIEW,
    ),
}


@pytest.mark.parametrize("text,expected", VERDICTS.items())
def test_a_verdict_is_read_as_written_and_a_rejection_asks_for_another_attempt(
    text: str, expected: tuple[str, Confidence, Recommendation]
) -> None:
    found = parse_answer(text.encode(), ArchitectVerdict)
    assert isinstance(found, ArchitectVerdict)
    assert (found.verdict, found.confidence, found.recommendation) == (ArchitectDecision(expected[0]), *expected[1:])


def test_a_tail_keeps_the_end_whatever_the_pieces() -> None:
    tail = OutputTail(10)
    for piece in (b"0123456789\n", b"ab", b"c\n\xff", b""):
        tail.add(piece)
    assert tail.lines(2) == "abc\n\ufffd"


def test_what_was_meant_as_yaml_and_is_none_says_where() -> None:
    found = parse_answer(b"status: success\nerror: foo: bar\n", ExecutorResult)
    assert isinstance(found, MalformedAnswer)
    assert found.why.endswith("and no YAML (line 2, column 11: mapping values are not allowed here)")
    bomb = "a: &a [x, x]\nb: &b [*a, *a]\n" + "".join(
        f"{chr(99 + n)}: &{chr(99 + n)} [{', '.join([f'*{chr(98 + n)}'] * 9)}]\n" for n in range(8)
    )
    refused = parse_answer(f"status: success\n{bomb}".encode(), ExecutorResult)
    assert isinstance(refused, MalformedAnswer) and "stand for too much" in refused.why
