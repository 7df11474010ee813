"""Whatever a program prints, its stream reads on, what it tells can be kept, and it remembers no more than it needs."""

from __future__ import annotations

import json
import math
import pickle
import random
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from pydantic import JsonValue

from proofstone.agents.backends.programs.known import PRESETS
from proofstone.agents.backends.programs.preset import OutputReader, ProgramResult
from proofstone.agents.models import Activity
from tests.rows import each_row

RECORDED = Path(__file__).parent / "streams"
HOSTILE = (
    "1e400", "NaN", "-1", "1e308", "9" * 4000, "9" * 5000, "true", "null", "{}", '"x"', r'"\ud800 bad"', r'"\uDC00"',
    r'"\u0000"', f'"{"x" * 10_000}"', "[" * 2000 + "]" * 2000, "[" * 940 + "]" * 940, '[{"text": 5}, null]',
)  # fmt: skip
"""As they stand in a line, in the place of a value."""
NUMBERS = ("1e400", "9" * 400, "9" * 5000, "1.2.3", ".", "-1", "NaN", "٣", "9" * 400 + "k")
LONGEST = 2500
"""Characters of anything that is told of or noted: what is shown, and a few words around it."""

Way = tuple[str | int, ...]


def made(name: str) -> OutputReader:
    stream = PRESETS[name].stream
    assert stream is not None
    return stream()


def recordings(name: str, ending: str) -> list[list[str]]:
    files = sorted(RECORDED.glob(f"{name.partition('-')[0]}-*.{ending}"))
    return [[line for line in file.read_text("utf-8").split("\n") if line.strip()] for file in files]


def check(stream: OutputReader, line: str) -> None:
    for activity in stream.line(line):
        check_activity(activity)
    for exit_code in (0, 1, None):
        check_final(stream.is_final(exit_code))


def check_activity(told: Activity) -> None:
    told.model_dump_json().encode("utf-8")
    "".join((told.name, told.text, *told.paths)).encode("utf-8")
    assert max(map(len, (told.name, told.text, *told.paths))) <= LONGEST


def check_final(final: ProgramResult) -> None:
    f"{final.text}{final.model}".encode()
    used = final.usage
    counts = (used.requests, used.input_tokens, used.output_tokens, used.cache_read_tokens, used.cache_write_tokens)
    assert all(0 <= count <= 10**17 for count in counts)
    assert used.usd is None or (math.isfinite(used.usd) and used.usd >= 0)
    json.dumps(used.model_dump(mode="json"), allow_nan=False)
    if final.fault is not None:
        final.fault.model_dump_json().encode("utf-8")
        assert len(final.fault.why) <= LONGEST


def ways(value: JsonValue, way: Way = ()) -> Iterator[Way]:
    """To every value in it."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*way, key)
            yield from ways(item, (*way, key))


def changed(event: JsonValue, changes: Mapping[Way, str | None], way: Way = ()) -> str:
    """The JSON of it, with some values replaced by what is spelt there, or left out."""
    if (spelt := changes.get(way)) is not None:
        return spelt
    if isinstance(event, dict):
        kept = [key for key in event if changes.get((*way, key), "") is not None]
        return f"{{{', '.join(f'{json.dumps(key)}: {changed(event[key], changes, (*way, key))}' for key in kept)}}}"
    if isinstance(event, list):
        return f"[{', '.join(changed(item, changes, (*way, number)) for number, item in enumerate(event))}]"
    return json.dumps(event)


def shapes(name: str) -> list[JsonValue]:
    """An event of each kind that was recorded."""
    found: dict[tuple[object, ...], JsonValue] = {}
    for line in (line for lines in recordings(name, "jsonl") for line in lines if line.startswith("{")):
        event = json.loads(line)
        found.setdefault((event.get("type"), event.get("subtype"), *ways(event)), event)
    return list(found.values())


PRINTING_JSON = sorted(name for name in PRESETS if recordings(name, "jsonl"))
PRINTING_TEXT = sorted(name for name in PRESETS if recordings(name, "txt"))


def test_every_program_was_recorded() -> None:
    assert {*PRINTING_JSON, *PRINTING_TEXT} == set(PRESETS)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", PRINTING_JSON)
def test_no_value_anywhere_in_an_event_ends_the_reading(name: str) -> None:
    tried: set[tuple[object, ...]] = set()
    for event in shapes(name):
        assert isinstance(event, dict)
        for way in ways(event):
            kind = (event.get("type"), event.get("subtype"), *(key for key in way if isinstance(key, str)))
            if kind not in tried:
                tried.add(kind)
                for value in (*HOSTILE, None):
                    check(made(name), changed(event, {way: value}))


@each_row("name", PRINTING_JSON)
def test_no_stream_of_such_events_ends_the_reading(name: str) -> None:
    chance = random.Random(name)  # the same at every run
    for lines in recordings(name, "jsonl"):
        stream = made(name)
        for line in lines * 2:
            event = json.loads(line) if line.startswith("{") else {}
            changes = {way: chance.choice((*HOSTILE, None)) for way in ways(event) if chance.random() < 0.1}
            check(stream, changed(event, changes))


@pytest.mark.parametrize("name", PRINTING_TEXT)
def test_no_number_in_a_text_ends_the_reading(name: str) -> None:
    for lines in recordings(name, "txt"):
        for number in NUMBERS:
            stream = made(name)
            for line in lines:
                check(stream, re.sub(r"\d+(?:\.\d+)?k?", number, line))


@each_row(
    ("name", "line"),
    [
        ("aider", f"Tokens: {'9' * 400} sent, 7 received."),
        ("aider", f"Tokens: 1 sent, 7 received. Cost: $0.1 message, ${'9' * 400} session."),
        ("aider", "Tokens: 1 sent, 7 received. Cost: $0.1 message, $1.2.3 session."),
        ("mini-swe-agent", f"mini-swe-agent (step {'9' * 5000}, $0.10):"),
        ("mini-swe-agent", f"mini-swe-agent (step 1, ${'9' * 400}):"),
        ("codex", r'{"type": "turn.failed", "error": {"message": "\ud800 bad"}}'),
        ("codex", r'{"type": "turn.failed", "error": {"message": "{\"error\": {\"message\": \"\\ud800\"}}"}}'),
        ("claude", r'{"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "\ud803"}]}}'),
        ("claude", '{"type": "result", "structured_output": ' + "[" * 940 + "]" * 940 + "}"),
        ("opencode", '{"type": "step_finish", "part": {"cost": 1e400, "tokens": {"input": 1e300}}}'),
    ],
)
def test_lines_that_once_ended_a_whole_run(name: str, line: str) -> None:
    check(made(name), line)


def test_half_a_character_is_a_question_mark_and_a_whole_one_stays() -> None:
    stream = made("codex")
    stream.line(r'{"type": "turn.failed", "error": {"message": "\ud83d \ud83d\ude00"}}')
    fault = stream.is_final(1).fault
    assert fault is not None
    assert fault.why == "? 😀"


LONG = "x" * 10_000
MANY = 1500
MOST_KEPT = 6 << 20
"""Bytes; it was told more than twice as much."""

Event = dict[str, JsonValue]


def _anthropic(id: str) -> tuple[Event, Event]:
    use: Event = {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": LONG, "path": "a.py"}}
    result: Event = {"type": "tool_result", "tool_use_id": id}
    call: Event = {"type": "assistant", "message": {"id": id + LONG, "content": [use]}}
    return call, {"type": "user", "message": {"content": [result]}}


def _gemini(id: str) -> tuple[Event, Event]:
    wanted: Event = {"command": LONG, "file_path": "a.py"}
    call: Event = {"type": "tool_use", "tool_id": id, "tool_name": "Bash", "parameters": wanted}
    return call, {"type": "tool_result", "tool_id": id}


def _goose(id: str) -> tuple[Event, Event]:
    wanted: Event = {"command": LONG, "path": "a.py"}
    use: Event = {"type": "toolRequest", "id": id, "toolCall": {"value": {"name": "Bash", "arguments": wanted}}}
    asked: Event = {"inference": {"requestedModel": "m"}}
    call: Event = {"id": id + LONG, "role": "assistant", "metadata": asked, "content": [use]}
    result: Event = {"id": "r", "role": "user", "content": [{"type": "toolResponse", "id": id}]}
    return {"type": "message", "message": call}, {"type": "message", "message": result}


def _copilot(id: str) -> tuple[Event, Event]:
    wanted: Event = {"command": LONG, "path": "a.py"}
    call: Event = {"toolCallId": id, "toolName": "Bash", "arguments": wanted}
    return {"type": "tool.execution_start", "data": call}, {
        "type": "tool.execution_complete",
        "data": {"toolCallId": id},
    }


CALLS: Mapping[str, Callable[[str], tuple[Event, Event]]] = {
    "claude": _anthropic,
    "qwen": _anthropic,
    "gemini": _gemini,
    "goose": _goose,
    "copilot": _copilot,
}


def kept(stream: OutputReader) -> int:
    return len(pickle.dumps(stream))


@each_row("name", CALLS)
def test_the_last_calls_are_remembered_and_no_more_of_them_than_is_needed(name: str) -> None:
    stream = made(name)
    for number in range(MANY):
        list(stream.line(json.dumps(CALLS[name](f"call {number}")[0])))
    assert kept(stream) < MOST_KEPT
    last, first = (list(stream.line(json.dumps(CALLS[name](f"call {at}")[1]))) for at in (MANY - 1, 0))
    assert [(one.name, one.paths) for one in last] == [("Bash", ("a.py",))]
    assert [(one.name, one.paths) for one in first] == [("", ())]


@pytest.mark.parametrize("name", ["claude", "goose"])
def test_requests_are_counted_though_they_are_not_remembered(name: str) -> None:
    stream = made(name)
    for number in (1, 1, 2, 3, 3):
        list(stream.line(json.dumps(CALLS[name](f"call {number}")[0])))
    list(stream.line('{"type": "result"}'))
    assert stream.is_final(0).usage.requests == 3


WORDS: Mapping[str, str] = {
    "gemini": json.dumps({"type": "message", "role": "assistant", "content": LONG}),
    "goose": json.dumps({
        "type": "message",
        "message": {
            "id": "1",
            "metadata": {"inference": {"requestedModel": "m"}},
            "content": [{"type": "text", "text": LONG}],
        },
    }),
    "aider": LONG,
    "mini-swe-agent": LONG,
}  # fmt: skip


@pytest.mark.parametrize("name", WORDS)
def test_of_words_without_end_the_last_are_kept(name: str) -> None:
    stream = made(name)
    for number in range(MANY):
        list(stream.line(WORDS[name].replace("xxx", f"{number} ", 1)))
    assert kept(stream) < MOST_KEPT
    text = stream.is_final(0).text
    assert name == "mini-swe-agent" or f"{MANY - 1} x" in text


@pytest.mark.parametrize("name", ["aider", "mini-swe-agent"])
def test_empty_lines_without_end_take_no_memory(name: str) -> None:
    stream = made(name)
    for _ in range(100_000):
        stream.line("")
    assert kept(stream) < 1 << 20
