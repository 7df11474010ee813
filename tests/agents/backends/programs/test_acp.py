"""`acp:`: an agent that asks is answered by the task's scope; one that breaks down has a name; nothing is left over."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from proofstone.agents.backends import Backend
from proofstone.agents.backends.programs.acp.backend import AcpBackend
from proofstone.agents.backends.programs.preset import EditLimit, Invocation, Preset
from proofstone.agents.executors.context import ShellCommand
from proofstone.agents.models import ActivityKind, Fault, FaultKind, ToolSpec, Turn
from proofstone.common.models import Usage
from proofstone.sandbox.job import SandboxResult
from tests.agents.backends.conversations import talk
from tests.agents.backends.programs.scripted_agent import COMPILED, Stage, Step, program
from tests.agents.executors.bench import Bench
from tests.check.hazards.processes import running
from tests.check.hazards.test_processes import odd_number

RUN = ToolSpec(name="run", description="Runs a command.", parameters={"type": "object", "properties": {}})


@pytest.fixture(autouse=True)
def _nothing_is_left_over() -> Iterator[None]:
    """No thread and no pipe, whatever happens."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    yield
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("acp-")] == []
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


@pytest.fixture
def stage(bench: Bench) -> Stage:
    return Stage(bench)


@pytest.fixture
def simple(plain: Bench) -> Stage:
    """For what has nothing to do with the sandbox."""
    return Stage(plain)


def edit(path: str, *, ask: bool = True) -> Step:
    return {"edit": {"path": path, "content": "new\n", "ask": ask}}


def write(path: str, content: str = "new\n") -> Step:
    return {"write": {"path": path, "content": content}}


def test_an_edit_in_scope_is_allowed_and_its_last_words_are_the_claim(stage: Stage) -> None:
    turn = stage.turn({"say": "I begin. "}, edit("a.txt"), {"spell": "All is done."})
    assert stage.file("a.txt") == "new\n"
    assert turn.acted and turn.answer == {"status": "success", "evidence": "All is done."}
    assert "".join(stage.heard) == "I begin. \nAll is done.\n"
    said = [(one.kind, one.name, one.text, one.paths, one.ok) for one in stage.noted]
    assert said == [
        (ActivityKind.SAID, "", "I begin.", (), None),
        (ActivityKind.TOOL, "edit", "Edit a.txt", ("a.txt",), None),
        (ActivityKind.RESULT, "edit", "", (), True),
        (ActivityKind.SAID, "", "All is done.", (), None),
    ]


def test_an_edit_out_of_scope_is_refused_while_it_happens(stage: Stage) -> None:
    stage.turn(edit("src/b.txt"), {"say": "Done."})
    assert stage.file("src/b.txt") == "b\n"
    (refused,) = stage.seen(ActivityKind.REFUSED)
    assert refused.name == "edit" and refused.paths == ("src/b.txt",) and "You may change: a.txt." in refused.text
    assert any(line.startswith("✗ edit: src/b.txt is not yours to change") for line in stage.doing)
    assert [one.ok for one in stage.seen(ActivityKind.RESULT)] == [False]


def test_one_that_does_not_ask_is_left_to_the_diff(stage: Stage) -> None:
    stage.turn(edit("src/b.txt", ask=False), {"say": "Done."})
    assert stage.file("src/b.txt") == "new\n"
    assert stage.seen(ActivityKind.REFUSED) == []


def test_files_are_read_and_written_for_it_within_the_scope(stage: Stage) -> None:
    turn = stage.turn({"read": {"path": "src/b.txt"}}, write("a.txt", "Grüße\r\n"), {"read": {"path": "a.txt"}})
    read, wrote, again = map(json.loads, said_lines(turn))
    assert (read, wrote, again) == (
        {"result": {"content": "b\n"}},
        {"result": {}},
        {"result": {"content": "Grüße\r\n"}},
    )
    assert (stage.bench.work_tree / "a.txt").read_bytes() == "Grüße\r\n".encode()


# What is asked → words of the error, and the code.
NOT_SERVED: list[tuple[Step, str, int]] = [
    (write("src/b.txt"), "src/b.txt is not yours to change. You may change: a.txt", -32602),
    (write("/etc/passwd"), "it is not in the project", -32602),
    (write("../a.txt"), "`..` is not followed", -32602),
    (write(".git/config"), "`.git` is not part of the project's files", -32602),
    (write("link.txt"), "leads through a symbolic link", -32602),
    (write("a.txt", "x" * (2 << 20)), "are allowed", -32602),
    ({"read": {"path": ".env"}}, "may hold secrets", -32602),
    ({"read": {"path": "/etc/passwd"}}, "it is not in the project", -32602),
    ({"read": {"path": "out.txt"}}, "leads out of the project", -32602),
    ({"read": {"path": "bytes"}}, "is not UTF-8", -32602),
    ({"read": {"path": "src"}}, "is a folder", -32602),
    ({"read": {"path": "new.txt"}}, "Resource not found: ", -32002),
    ({"request": {"method": "terminal/create", "params": {"command": "ls"}}}, "is not served here", -32601),
    ({"request": {"method": "fs/write_text_file", "params": {"path": "a.txt"}}}, "The request has no content", -32602),
    ({"request": {"method": "fs/write_text_file", "params": 3}}, "The request has no content", -32602),
    ({"request": {"method": "session/request_permission"}}, "The request has no tool call", -32602),
]


@pytest.mark.few(6)
@pytest.mark.parametrize("step,words,code", NOT_SERVED, ids=[words for _, words, _ in NOT_SERVED])
def test_what_is_not_served_is_an_error_that_says_why(simple: Stage, step: Step, words: str, code: int) -> None:
    tree = simple.bench.work_tree
    (tree / ".env").write_text("KEY=1\n")
    (tree / "bytes").write_bytes(b"\xff\xfe")
    (tree / "link.txt").symlink_to("src/b.txt")
    (tree / "out.txt").symlink_to("/etc/passwd")
    error = json.loads(said_lines(simple.turn(step))[0])["error"]
    assert error["code"] == code and words in error["message"]
    assert (simple.file("a.txt"), simple.file("src/b.txt")) == ("a\n", "b\n")


PARTS = {(0, 0): "1\n2\n3\n4", (2, 0): "2\n3\n4", (2, 2): "2\n3\n", (0, 1): "1\n", (9, 3): ""}


def test_a_part_of_a_file_can_be_read(simple: Stage) -> None:
    (simple.bench.work_tree / "lines").write_text("1\n2\n3\n4")
    steps = [{"read": {"path": "lines", "line": line, "limit": limit}} for line, limit in PARTS]
    assert [json.loads(line)["result"]["content"] for line in said_lines(simple.turn(*steps))] == list(PARTS.values())


def outcome(stage: Stage, call: Step, *kinds: str) -> Step:
    options = [{"optionId": f"id-{kind}", "name": kind, "kind": kind} for kind in kinds]
    turn = stage.turn({"ask": {"call": call, "options": options}})
    answer: Step = json.loads(said_lines(turn)[0])["result"]["outcome"]
    return answer


IN_SCOPE = {"kind": "edit", "locations": [{"path": "ROOT/a.txt"}]}
OUT_OF_SCOPE = {"kind": "edit", "content": [{"type": "diff", "path": "ROOT/src/b.txt", "newText": ""}]}
CANCELLED = {"outcome": "cancelled"}


def test_what_is_allowed_is_allowed_once_and_never_for_always(simple: Stage) -> None:
    assert outcome(simple, IN_SCOPE, "allow_always", "allow_once", "reject_once")["optionId"] == "id-allow_once"
    assert outcome(simple, IN_SCOPE, "allow_always", "reject_once") == CANCELLED
    assert outcome(simple, OUT_OF_SCOPE, "allow_once", "reject_always", "reject_once")["optionId"] == "id-reject_once"
    assert outcome(simple, OUT_OF_SCOPE, "allow_once", "reject_always") == CANCELLED


def test_a_command_is_allowed_where_the_role_may_run_some(stage: Stage) -> None:
    stage.turn({"shell": "echo ran > a.txt"})
    assert stage.file("a.txt") == "a\n" and stage.seen(ActivityKind.REFUSED)[0].text.startswith("You may not run")
    able = stage.conversation.model_copy(update={"tools": (RUN,)})
    replace(stage, conversation=able).turn({"shell": "echo ran > a.txt"})
    assert stage.file("a.txt") == "ran\n"


def test_the_name_of_a_tool_is_known_from_what_was_told_of_the_call_before(simple: Stage) -> None:
    """A permission that is asked for says no more than `other`."""
    meta = {"goose": {"toolCall": {"toolName": "read"}}}
    told = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "read", "_meta": meta}
    call = {"toolCallId": "c", "kind": "other", "rawInput": {"path": "ROOT/src/b.txt"}}
    turn = simple.turn({"tell": told}, {"ask": {"call": call}})
    assert json.loads(said_lines(turn)[0])["result"]["outcome"]["optionId"] == "yes"
    assert [(one.name, one.paths) for one in simple.seen(ActivityKind.TOOL)] == [("read", ("src/b.txt",))]


def test_a_kind_that_was_told_before_is_not_forgotten(simple: Stage) -> None:
    told = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "x", "kind": "read"}
    call = {"toolCallId": "c", "kind": "other", "rawInput": {"path": "ROOT/src/b.txt"}}
    turn = simple.turn({"tell": told}, {"ask": {"call": call}})
    assert json.loads(said_lines(turn)[0])["result"]["outcome"]["optionId"] == "yes"


def test_each_call_is_noted_once_as_soon_as_there_is_something_to_say(simple: Stage) -> None:
    call = {"toolCallId": "c", "_meta": {"claudeCode": {"toolName": "Write"}}}
    simple.turn(
        {"tell": {"sessionUpdate": "tool_call", **call, "title": "Write", "rawInput": {}, "status": "pending"}},
        {"tell": {"sessionUpdate": "tool_call_update", **call, "rawInput": {"file_path": "a.txt"}}},
        {"tell": {"sessionUpdate": "tool_call_update", **call, "status": "in_progress"}},
        {"tell": {"sessionUpdate": "tool_call_update", **call, "status": "failed", "rawOutput": "no"}},
        {"tell": {"sessionUpdate": "tool_call_update", **call, "status": "failed", "rawOutput": "no"}},
        {"tell": {"sessionUpdate": "tool_call", "toolCallId": "d", "title": "Never ended", "status": "pending"}},
    )
    assert [(one.kind, one.name, one.text, one.paths, one.ok) for one in simple.noted] == [
        (ActivityKind.TOOL, "Write", "Write", ("a.txt",), None),
        (ActivityKind.RESULT, "Write", "no", (), False),
        (ActivityKind.TOOL, "tool", "Never ended", (), None),
    ]


def test_without_words_behind_the_last_call_all_of_them_count(simple: Stage) -> None:
    assert simple.reading.turn({"say": "First. "}, edit("a.txt")).text == "First. "


def test_thoughts_are_noted_and_are_no_words(simple: Stage) -> None:
    turn = simple.reading.turn({"think": "Hm. "}, {"think": "Yes."}, {"say": "So."})
    assert turn.text == "So."
    assert [one.text for one in simple.seen(ActivityKind.THOUGHT)] == ["Hm. Yes."]


# How it stops → what that is.
STOPS = {"refusal": FaultKind.FILTERED, "cancelled": FaultKind.FAILED, "max_turn_requests": FaultKind.FAILED}


@pytest.mark.parametrize("reason,kind", STOPS.items())
def test_why_it_stops_has_a_name(simple: Stage, reason: str, kind: FaultKind) -> None:
    fault = simple.fault(kind, {"say": "I stop."}, {"stop": {"stopReason": reason}})
    assert "I stop." in fault.why


def test_one_that_ends_its_turn_when_it_is_refused_says_what_was_refused(simple: Stage) -> None:
    """And it is no interruption by the person."""
    fault = simple.fault(FaultKind.FAILED, edit("src/b.txt"), {"stop": {"stopReason": "cancelled"}})
    assert "it was refused: src/b.txt is not yours to change" in fault.why


# What is said where no model has answered → what that is; None: it is an answer.
SAID = {
    "Ran into this error: Rate limit exceeded: slow down.": FaultKind.UNAVAILABLE,
    "Info: Retrying...Error: Authentication failed with provider (HTTP 401).": FaultKind.DENIED,
    "Error: 500 is the number of the beast": None,
}


@pytest.mark.parametrize("words,kind", SAID.items())
def test_a_provider_that_fails_it_is_known_from_its_words(simple: Stage, words: str, kind: FaultKind | None) -> None:
    came = simple.play({"say": words})
    assert (came.kind if isinstance(came, Fault) else None) == kind
    used = {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}}
    assert isinstance(simple.play({"say": words}, {"stop": used}), Turn)


def test_an_answer_that_was_cut_is_said_to_be(simple: Stage) -> None:
    assert simple.reading.turn({"say": "{"}, {"stop": {"stopReason": "max_tokens"}}).cut
    assert not simple.reading.turn({"say": "{}"}).cut


@pytest.mark.parametrize("words", ["I have changed", '{"status": "success"}'])
def test_an_executor_that_was_cut_off_has_not_succeeded(simple: Stage, words: str) -> None:
    turn = simple.turn({"say": words}, {"stop": {"stopReason": "max_tokens"}})
    error = "its model was cut off at the limit of output tokens, before it was done"
    assert turn.cut and turn.answer == {"status": "failure", "error": error, "evidence": words}


def test_a_fault_tells_whether_an_executor_may_have_changed_something(simple: Stage) -> None:
    breaks = {"exit": 3}
    assert simple.fault(FaultKind.CRASHED, edit("a.txt"), breaks).acted
    assert not simple.reading.fault(FaultKind.CRASHED, breaks).acted
    unstarted = SandboxResult(None, 1, setup_error="no room")
    came = simple.backend().turn(simple.conversation, replace(simple.site(), run=lambda _: unstarted), 60)
    assert isinstance(came, Fault) and "no room" in came.why and not came.acted


def test_what_the_person_calls_secret_is_not_changed(simple: Stage) -> None:
    site = replace(simple.site(), secret=("a.*",))
    simple.backend(edit("a.txt"), {"say": "Done."}).turn(simple.conversation, site, 60)
    assert simple.file("a.txt") == "a\n"
    assert "may hold secrets" in simple.seen(ActivityKind.REFUSED)[0].text


PIECE = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": ""}}
COST = {"sessionUpdate": "usage_update", "used": 5, "size": 9, "cost": {"amount": 0.25, "currency": "USD"}}
# What it tells of what it has used, as real agents do → what that is.
USED: dict[str, tuple[list[Step], Usage]] = {
    "nothing": ([], Usage(requests=1, usd=None)),
    "with the answer": (
        [{"stop": {"usage": {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18}}}],
        Usage(requests=1, input_tokens=11, output_tokens=7, usd=None),
    ),
    "with a cache and a price": (
        [
            {"tell": COST},
            {"stop": {"usage": {"inputTokens": 1, "outputTokens": 2, "cachedReadTokens": 4, "totalTokens": 7}}},
        ],
        Usage(requests=1, input_tokens=5, output_tokens=2, cache_read_tokens=4, usd=0.25),
    ),
    "with each request": (
        [{"tell": {**PIECE, "_meta": {"usage": {"inputTokens": 3, "outputTokens": 1, "totalTokens": 4}}}}] * 2,
        Usage(requests=2, input_tokens=6, output_tokens=2, usd=None),
    ),
    "as a quota": (
        [{"stop": {"_meta": {"quota": {"token_count": {"input_tokens": 22, "output_tokens": 14}}}}}],
        Usage(requests=1, input_tokens=22, output_tokens=14, usd=None),
    ),
    "nonsense": ([{"stop": {"usage": {"inputTokens": "many"}}}], Usage(requests=1, usd=None)),
}


@pytest.mark.parametrize("name", USED)
def test_what_it_has_used_is_known_where_it_tells(simple: Stage, name: str) -> None:
    steps, usage = USED[name]
    assert simple.turn({"say": "x"}, *steps).usage == usage


def set_by(stage: Stage, offer: Step) -> list[str]:
    """What it was told to set, as it complains itself before it breaks down."""
    fault = stage.fault(FaultKind.CRASHED, {"exit": 3}, offer=offer)
    return [line for line in fault.why.splitlines() if line.startswith("session/set")]


MODES: Step = {
    "currentModeId": "auto",
    "availableModes": [{"id": id, "name": id} for id in ("auto", "approve", "chat")],
}
MODE_OPTION: Step = {
    "id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": "yolo",
    "options": [{"value": "yolo", "name": "YOLO"}, {"value": "default", "name": "Default"}],
}  # fmt: skip
MODEL_OPTION: Step = {
    "id": "llm", "name": "Model", "category": "model", "type": "select", "currentValue": "m1",
    "options": [{"group": "g", "name": "G", "options": [{"value": "m2", "name": "Two"}]}],
}  # fmt: skip


PRESET = Preset(
    name="test",
    program="test",
    install="",
    minimum="1.0",
    invoke=None,
    stream=None,
    limit=EditLimit.PATHS,
    limit_description="",
    hosts=(),
    keys=("TEST_API_KEY", "TEST_MODEL"),
    acp=lambda _: Invocation(()),
    acp_mode="chat",
)


def test_the_mode_is_set_to_one_in_which_it_asks(simple: Stage) -> None:
    session = '"sessionId": "session-1"'
    assert set_by(simple, {"modes": MODES}) == [f'session/set_mode {{{session}, "modeId": "approve"}}']
    option = f'session/set_config_option {{{session}, "configId": "mode", "value": "default"}}'
    assert set_by(simple, {"configOptions": [MODE_OPTION]}) == [option]
    assert set_by(simple, {}) == []
    simple.preset = PRESET
    assert set_by(simple, {"modes": MODES}) == [f'session/set_mode {{{session}, "modeId": "chat"}}']


def test_a_mode_that_cannot_be_had_is_noted(simple: Stage) -> None:
    simple.turn({"say": "x"}, offer={"modes": MODES}, set={"error": {"code": -32603, "message": "not now"}})
    bold: Step = {"currentModeId": "yolo", "availableModes": [{"id": "yolo", "name": "YOLO"}]}
    simple.turn({"say": "x"}, offer={"modes": bold})
    first, second = [one.text for one in simple.seen(ActivityKind.NOTE)]
    assert first == "the mode approve was not set: not now" and "no mode in which it is known to ask" in second


def test_the_model_is_set_where_it_is_offered_and_noted_where_not(simple: Stage) -> None:
    simple.model = "m2"
    assert '"configId": "llm", "value": "m2"' in set_by(simple, {"configOptions": [MODEL_OPTION]})[0]
    models = {"currentModelId": "m1", "availableModels": [{"modelId": "m2", "name": "Two"}]}
    assert set_by(simple, {"models": models})[0].startswith("session/set_model")
    assert simple.seen(ActivityKind.NOTE) == []
    assert set_by(simple, {"models": {"currentModelId": "m2", "availableModels": []}}) == []
    assert simple.seen(ActivityKind.NOTE) == []
    assert set_by(simple, {"models": {"currentModelId": "given/m2", "availableModels": []}}) == []
    assert simple.seen(ActivityKind.NOTE) == []
    assert set_by(simple, {}) == []
    assert [one.text for one in simple.seen(ActivityKind.NOTE)] == [
        "the model m2 was not set: the agent does not offer it"
    ]


def test_a_preset_sets_the_model_itself_but_is_not_believed_where_the_session_tells(simple: Stage) -> None:
    simple.model, simple.preset = "m2", PRESET
    simple.turn({"say": "x"})
    assert simple.seen(ActivityKind.NOTE) == []
    simple.turn({"say": "x"}, offer={"models": {"currentModelId": "other", "availableModels": []}})
    assert [one.text for one in simple.seen(ActivityKind.NOTE)] == [
        "the model m2 was not set: the agent does not offer it"
    ]


KEYED: Step = {"id": "api-key", "name": "Key", "type": "env_var", "vars": [{"name": "TEST_API_KEY"}]}
BROWSER: Step = {"id": "browser", "name": "Log in with a browser"}


def test_it_logs_in_by_itself_where_the_key_is_there(simple: Stage) -> None:
    simple.variables = {"TEST_API_KEY": "k"}
    turn = simple.reading.turn({"say": "in"}, key="TEST_API_KEY", begun={"authMethods": [BROWSER, KEYED]})
    assert turn.text == "in"


def test_without_a_key_it_is_denied_and_says_how_to_log_in(simple: Stage) -> None:
    simple.preset = PRESET
    fault = simple.fault(FaultKind.DENIED, key="TEST_API_KEY", begun={"authMethods": [BROWSER, KEYED]})
    assert "Authentication required" in fault.why
    assert f"start {COMPILED[0]} once by yourself and log in, or set its key (TEST_API_KEY)" in fault.why


# What it answers the prompt with → what that is.
ERRORS = {
    "Internal error: 401 Unauthorized": FaultKind.DENIED,
    "Request failed with status 429": FaultKind.UNAVAILABLE,
    "the server is overloaded": FaultKind.UNAVAILABLE,
    "500 Internal Server Error": FaultKind.UNAVAILABLE,
    "something else": FaultKind.FAILED,
    "logging in the background": FaultKind.FAILED,
}


@pytest.mark.parametrize("words,kind", ERRORS.items())
def test_an_error_for_an_answer_has_a_name_and_its_last_lines(simple: Stage, words: str, kind: FaultKind) -> None:
    error = {"code": -32603, "message": "Internal error", "data": {"details": words}}
    fault = simple.fault(kind, {"complain": "trouble here"}, {"fail": error})
    assert "session/prompt" in fault.why and words in fault.why and fault.why.endswith("trouble here")


def test_another_version_of_the_protocol_is_not_spoken(simple: Stage) -> None:
    assert "version 2 of the protocol" in simple.fault(FaultKind.FAILED, begun={"protocolVersion": 2}).why


# How it breaks down → words of the fault.
BREAKDOWNS: dict[str, tuple[Step, tuple[str, ...]]] = {
    "before anything": (
        {"first": [{"complain": "no key"}, {"exit": 4}]},
        ("exit code 4, without an answer to initialize", "no key"),
    ),
    "with a word that is no message": (
        {"first": [{"print": "usage: agent [--acp]"}, {"exit": 2}]},
        ("exit code 2", "usage: agent [--acp]"),
    ),
    "in the middle": (
        {"runs": [{"steps": [{"say": "half"}, {"complain": "lost"}, {"exit": 1}]}]},
        ("exit code 1, without an answer to session/prompt", "lost"),
    ),
    "by a signal": ({"runs": [{"steps": [{"die": 1}]}]}, ("SIGKILL",)),
    "with a good exit code": ({"runs": [{"steps": [{"exit": 0}]}]}, ("exit code 0, without an answer",)),
}


@pytest.mark.parametrize("name", BREAKDOWNS)
def test_a_breakdown_is_a_crash_that_says_where_and_its_last_lines(stage: Stage, name: str) -> None:
    script, words = BREAKDOWNS[name]
    fault = stage.fault(FaultKind.CRASHED, **script)
    assert all(word in fault.why for word in words), fault.why


def test_a_program_that_is_no_agent_is_not_waited_for_until_its_deadline(simple: Stage) -> None:
    simple.patience = 0.5
    came = simple.command("/bin/sleep", "1000").turn(talk(), simple.site(), 600)
    assert isinstance(came, Fault) and came.kind is FaultKind.CRASHED
    assert "without an answer to initialize for 0.5 s: does it speak the Agent Client Protocol?" in came.why


def test_a_program_that_repeats_what_it_is_told_is_no_agent(simple: Stage) -> None:
    came = simple.command("/bin/cat").turn(talk(), simple.site(), 60)
    assert isinstance(came, Fault) and "initialize is not served here" in came.why


GARBAGE = [
    b"not json\n",
    b"\xff\xfe\x00\n",
    b"[1, 2]\n3\nnull\n\"x\"\n{}\n",
    b'{"id": 4}\n{"id": [], "result": {}}\n{"id": {}, "method": 3}\n',
    b'{"jsonrpc": "2.0", "method": "session/update"}\n{"method": "session/update", "params": {"update": []}}\n',
    b'{"method": "session/update", "params": {"update": {"sessionUpdate": "tool_call", "locations": 3}}}\n',
    b'{"method": "session/update", "params": {"update": {"sessionUpdate": "dance"}}}\n',
    b'{"method": "no/such/notification"}\n{"id": "x", "error": "text"}\n',
    b"[" * 5000 + b"\n",
]  # fmt: skip


@pytest.mark.parametrize("garbage", GARBAGE)
def test_what_is_no_message_changes_nothing(simple: Stage, garbage: bytes) -> None:
    coded = base64.b64encode(garbage).decode()
    turn = simple.reading.turn({"say": "Still "}, {"print_bytes": coded}, {"say": "here."})
    assert turn.text == "Still here."


def test_half_a_character_is_no_trouble(simple: Stage) -> None:
    text = '{"method": "session/update", "params": {"update": {"sessionUpdate": "agent_message_chunk", "content": '
    coded = base64.b64encode((text + '{"type": "text", "text": "a\\ud800b"}}}}\n').encode()).decode()
    assert simple.reading.turn({"print_bytes": coded}).text == "a?b"


def test_a_flood_of_updates_ends(simple: Stage) -> None:
    turn = simple.reading.turn({"flood": 20_000}, {"say": "through"})
    assert turn.text == "through"
    assert len(simple.noted) == 2


def test_a_message_of_a_megabyte_goes_both_ways(stage: Stage) -> None:
    long = "0123456789abcde\n" * (1 << 16)
    (stage.bench.work_tree / "long").write_text(long)
    turn = replace(stage, conversation=talk(instructions=long)).turn({"read": {"path": "long"}})
    assert json.loads(turn.text)["result"]["content"] == long


def test_a_deadline_ends_it_and_what_it_has_started(stage: Stage) -> None:
    nap = odd_number()
    replace(stage, seconds=2).fault(FaultKind.TIMEOUT, {"leave_child": nap}, {"sleep": True})
    assert running("sleep", nap) == []


def test_before_its_deadline_it_is_told_to_stop(simple: Stage) -> None:
    fault = replace(simple, seconds=5).fault(FaultKind.TIMEOUT, {"hang": True})
    assert fault.why == "told to stop shortly before its deadline"


def test_what_it_calls_its_end_then_is_none(simple: Stage) -> None:
    late = [{"hang": True}]
    fault = replace(simple, seconds=5).fault(FaultKind.TIMEOUT, *late, calls_it="end_turn")
    assert fault.why == "told to stop shortly before its deadline"


def test_one_that_does_not_end_with_its_input_is_ended_with_what_it_has_started(stage: Stage) -> None:
    nap, executions = odd_number(), list[SandboxResult]()
    backend, site = stage.backend({"leave_child": nap}, {"say": "done"}, lingers=True), stage.site()

    def run(job: ShellCommand) -> SandboxResult:
        executions.append(site.run(job))
        return executions[-1]

    came = backend.turn(talk(), replace(site, run=run), 60)
    assert isinstance(came, Turn) and came.text == "done"
    assert executions[0].was_stopped
    assert running("sleep", nap) == []


@pytest.mark.parametrize("deaf", ["hang", "sleep"])
def test_an_interruption_ends_it_and_what_it_has_started(stage: Stage, deaf: str) -> None:
    nap = odd_number()
    ends: list[Turn | Fault] = []
    backend = stage.backend({"leave_child": nap}, {"say": "here"}, {deaf: True})
    site = stage.site()
    work = threading.Thread(target=lambda: ends.append(backend.turn(talk(), site, None)))
    work.start()
    while not stage.heard:
        assert work.is_alive(), ends
        time.sleep(0.01)
    site.cancel.set()
    work.join(30)
    assert isinstance(ends[0], Fault) and ends[0].kind is FaultKind.CANCELLED
    assert running("sleep", nap) == []


def test_a_listener_that_raises_is_heard_and_nothing_is_left_over(simple: Stage) -> None:
    def burst(_: str) -> None:
        raise LookupError("burst")

    backend = simple.backend({"say": "x"}, {"sleep": True})
    with pytest.raises(LookupError, match="burst"):
        backend.turn(talk(), replace(simple.site(), on_text=burst), 60)


def test_it_is_told_of_by_the_word_that_the_person_wrote() -> None:
    backend: Backend = AcpBackend(program("/bin/true", model="m"))
    assert (backend.identity.spec, backend.identity.vendor, backend.identity.model) == ("acp:test", None, "m")


def said_lines(turn: Turn) -> list[str]:
    """What it said, line by line: an executor's own words are its evidence."""
    text = turn.text or str((turn.answer or {}).get("evidence"))
    return [line for line in text.splitlines() if line]


def test_one_that_asks_for_more_than_it_reads_is_given_up(simple: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proofstone.agents.backends.programs.acp.wire.MAX_UNREAD_BYTES", 1 << 20)
    (simple.bench.work_tree / "much").write_text("\x01" * (1 << 19))
    asks = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "fs/read_text_file", "params": {"path": "much"}}) + "\n"
    coded = base64.b64encode(asks.encode() * 8).decode()
    simple.fault(FaultKind.FAILED, {"print_bytes": coded}, {"sleep": True})
