"""How a model is asked for its answer: chosen as data, probed once, and never in the way of tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proofstone.agents.models import Conversation, EngineMessage, RefusalRule, ToolResult, ToolResults
from proofstone.config.probes import ProbeRecord, build_probe_key, format_probe_records, read_probe_records
from proofstone.config.providers import (
    BUILT_IN_PROVIDERS,
    AnswerMode,
    ModelSettings,
    ProviderProtocol,
    choose_answer_mode,
)
from proofstone.testing.model_server.answers import Reply
from tests.agents.backends.api_world import conversation, kept, served, site_in, the_turn

CHAT = ProviderProtocol.OPENAI_CHAT
GOOD = {"finding": "an a"}


def ask(
    tmp_path: Path, talk: Conversation, mode: AnswerMode, wire: ProviderProtocol = CHAT
) -> tuple[dict[str, Any], tuple[str, ...], str]:
    """Return the body of the request, the tools in it, and its instructions."""
    with served(wire, [Reply(text=json.dumps(GOOD))], ModelSettings(answer=mode)) as (model, server):
        the_turn(model.turn(talk, site_in(tmp_path), 60))
    return dict(server.asked[0].body), server.asked[0].tools, server.asked[0].system


def test_a_schema_is_never_sent_beside_tools(tmp_path: Path) -> None:
    body, tools, _ = ask(tmp_path, conversation("read"), "schema")
    assert "response_format" not in body and set(tools) == {"read", "answer"}


def after(*results: ToolResult | EngineMessage) -> Conversation:
    talk = conversation("read")
    with_results = tuple(result for result in results if isinstance(result, ToolResult))
    messages = tuple(result for result in results if isinstance(result, EngineMessage))
    entries = (*((ToolResults(results=with_results),) if with_results else ()), *messages)
    return talk.with_entries(*entries)


REFUSED = ToolResult(call_id="1", name="read", text="spent", ok=False, refused=RefusalRule.BUDGET)
ENDING = {
    "no tools": conversation(),
    "a repair": after(EngineMessage(text="`finding` is missing", repair=1)),
    "no calls left": after(REFUSED),
}


@pytest.mark.parametrize("talk", ENDING.values(), ids=ENDING)
def test_the_turn_that_ends_the_work_is_held_to_the_schema(talk: Conversation, tmp_path: Path) -> None:
    body, tools, system = ask(tmp_path, talk, "schema")
    schema = body["response_format"]["json_schema"]["schema"]
    assert tools == () and schema["required"] == ["finding"]
    assert "maxLength" not in json.dumps(schema)  # the engine checks lengths; a grammar would be slow
    assert '"finding"' in system  # the server may hold the model to a schema that the model does not see


def test_an_interjection_and_ordinary_results_leave_the_tools(tmp_path: Path) -> None:
    fine = ToolResult(call_id="1", name="read", text="a")
    for talk in (after(fine), after(EngineMessage(text="what now?", asked="RV-1")), after(fine, REFUSED)):
        assert set(ask(tmp_path, talk, "schema")[1]) == {"read", "answer"}


def test_a_provider_that_needs_its_tools_keeps_them(tmp_path: Path) -> None:
    _, tools, _ = ask(tmp_path, ENDING["a repair"], "schema", ProviderProtocol.ANTHROPIC)
    assert set(tools) == {"read", "answer"}


def test_as_text_the_schema_stands_in_the_instructions_and_the_tools_stay(tmp_path: Path) -> None:
    body, tools, system = ask(tmp_path, conversation("read"), "text")
    assert tools == ("read",) and "response_format" not in body
    assert system.startswith("Be brief.") and "one JSON object of this schema" in system


def test_settings_come_before_the_probe_and_the_probe_before_the_table() -> None:
    auto = ModelSettings()
    assert choose_answer_mode(ModelSettings(answer="text"), "ollama:qwen", "tool") == "text"
    assert choose_answer_mode(auto, "ollama:qwen", "tool") == "tool"
    assert choose_answer_mode(auto, "ollama:qwen", None) == "schema"
    assert choose_answer_mode(auto, "openai:gpt-5", None) == "tool"


def test_a_record_is_of_one_model_at_one_address_and_a_damaged_one_counts_as_none(tmp_path: Path) -> None:
    file = tmp_path / "probes.json"
    key = build_probe_key(BUILT_IN_PROVIDERS["ollama"], "qwen")
    assert key != build_probe_key(BUILT_IN_PROVIDERS["lmstudio"], "qwen")
    record = ProbeRecord(answer="schema", calls_tools=False, probed_at="2026-01-01")
    file.write_text(format_probe_records({key: record}))
    assert read_probe_records(file) == {key: record}
    for damaged in ("", "[]", '{"a": 1}', '{"a": {"answer": "song"}}'):
        file.write_text(damaged)
        assert read_probe_records(file) == {}
    assert read_probe_records(tmp_path / "none.json") == {}


def test_a_repaired_conversation_is_one_conversation_in_each_mode(tmp_path: Path) -> None:
    script = [Reply(text="I cannot"), Reply(text=json.dumps(GOOD))]
    with served(CHAT, script, ModelSettings(answer="schema")) as (model, server):
        talk = conversation("read")
        first = the_turn(model.turn(talk, site_in(tmp_path), 60))
        talk = talk.with_entries(kept(first), EngineMessage(text="it is not JSON", repair=1))
        the_turn(model.turn(talk, site_in(tmp_path), 60))
    one, two = server.asked
    assert two.messages[: len(one.messages)] == one.messages
