"""What passes between us and an agent is of the protocol's own schema, both ways."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from acp import schema
from pydantic import BaseModel

from tests.agents.backends.programs.scripted_agent import Stage
from tests.agents.backends.programs.test_acp import KEYED, MODE_OPTION, MODES, edit, write
from tests.agents.executors.bench import Bench

REQUESTS: Mapping[str, type[BaseModel]] = {
    "initialize": schema.InitializeRequest,
    "authenticate": schema.AuthenticateRequest,
    "session/new": schema.NewSessionRequest,
    "session/set_mode": schema.SetSessionModeRequest,
    "session/set_config_option": schema.SetSessionConfigOptionSelectRequest,
    "session/prompt": schema.PromptRequest,
    "session/cancel": schema.CancelNotification,
    "session/update": schema.SessionNotification,
    "session/request_permission": schema.RequestPermissionRequest,
    "fs/read_text_file": schema.ReadTextFileRequest,
    "fs/write_text_file": schema.WriteTextFileRequest,
}
ANSWERS: Mapping[str, type[BaseModel]] = {
    "initialize": schema.InitializeResponse,
    "authenticate": schema.AuthenticateResponse,
    "session/new": schema.NewSessionResponse,
    "session/set_mode": schema.SetSessionModeResponse,
    "session/prompt": schema.PromptResponse,
    "session/request_permission": schema.RequestPermissionResponse,
    "fs/read_text_file": schema.ReadTextFileResponse,
    "fs/write_text_file": schema.WriteTextFileResponse,
}


def conversed(stage: Stage, *steps: dict[str, Any], **script: Any) -> list[tuple[str, dict[str, Any]]]:  # noqa: ANN401
    stage.play(*steps, log="log.jsonl", **script)
    lines = (stage.bench.work_tree / "log.jsonl").read_text().splitlines()
    return [(way, message) for way, message in map(json.loads, lines)]


def held_against_the_schema(messages: list[tuple[str, dict[str, Any]]]) -> set[str]:
    """The methods that were spoken, each of its schema, with no field that the schema does not have."""
    asked: dict[tuple[str, object], str] = {}
    for way, message in messages:
        assert message["jsonrpc"] == "2.0"
        if "method" in message:
            kind, said = REQUESTS[message["method"]], message["params"]
            asked[way, message.get("id")] = message["method"]
        elif "result" in message:
            kind, said = ANSWERS[asked["sent" if way == "got" else "got", message["id"]]], message["result"]
        else:
            assert isinstance(message["error"]["code"], int) and isinstance(message["error"]["message"], str)
            continue
        assert kind.model_validate(said).model_dump(mode="json", by_alias=True, exclude_unset=True) == said
    return set(asked.values())


def test_every_message_of_a_session_is_of_the_schema(plain: Bench) -> None:
    stage = Stage(plain, variables={"TEST_API_KEY": "k"})
    messages = conversed(
        stage, {"think": "hm"}, edit("a.txt"), edit("src/b.txt"), {"shell": "ls"}, write("a.txt"), write("src/b.txt"),
        {"read": {"path": "a.txt", "line": 1, "limit": 2}}, {"read": {"path": "no.txt"}}, {"say": "Done."},
        key="TEST_API_KEY", begun={"authMethods": [KEYED]}, offer={"modes": MODES},
    )  # fmt: skip
    assert held_against_the_schema(messages) == set(REQUESTS) - {"session/cancel", "session/set_config_option"}


def test_so_are_a_mode_among_the_options_and_a_cancellation(plain: Bench) -> None:
    stage = Stage(plain, seconds=5)
    messages = conversed(stage, {"hang": True}, offer={"configOptions": [MODE_OPTION]})
    spoken = {message["method"] for _, message in messages if "method" in message}
    assert {"session/cancel", "session/set_config_option"} <= spoken
    held_against_the_schema([one for one in messages if "result" not in one[1] or one[1]["id"] != 3])


def test_a_message_that_is_not_of_the_schema_would_be_found() -> None:
    wrong = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": [], "dir": "/"}}
    with pytest.raises(AssertionError):
        held_against_the_schema([("got", wrong)])
