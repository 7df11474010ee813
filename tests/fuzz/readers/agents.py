"""Readers of what agents, models, their programs and the web say."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Literal, cast

from pydantic import JsonValue
from pydantic_ai.messages import ModelResponse, ModelResponsePart, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.usage import RequestUsage

from proofstone.agents.backends import human
from proofstone.agents.backends.api import messages
from proofstone.agents.backends.api.providers import AnswerTooLargeError
from proofstone.agents.backends.programs.acp.session import AcpClient, AgentError
from proofstone.agents.backends.programs.acp.session_settings import (
    choose_login,
    choose_mode,
    find_model,
    has_model,
    reports_model,
)
from proofstone.agents.backends.programs.acp.session_updates import SessionLog
from proofstone.agents.backends.programs.acp.wire import MessageReader
from proofstone.agents.backends.programs.activity import ActivityLog, KeyMask
from proofstone.agents.backends.programs.known import PRESETS
from proofstone.agents.backends.programs.known.scope_hook import refusal
from proofstone.agents.backends.programs.lines import LineSplitter, get_objects, get_value
from proofstone.agents.backends.programs.preset import Preset
from proofstone.agents.backends.transcript import build_tool_calls, parse_tool_calls
from proofstone.agents.executors.context import ExecutionContext, ShellCommand, parse_verdict
from proofstone.agents.models import Conversation
from proofstone.agents.roles.models.gate import ArchitectVerdict, ExecutorResult
from proofstone.agents.roles.registry import ROLES
from proofstone.agents.roles.requests import _minimal_value as least_value
from proofstone.agents.roles.requests import build_example, parse_request
from proofstone.agents.roles.role import Role
from proofstone.agents.rules.answer import MalformedAnswer, parse_answer
from proofstone.agents.rules.permission import PermissionLimits
from proofstone.agents.rules.tool_rules import ToolFailedError
from proofstone.agents.tools.models import Tool
from proofstone.agents.tools.tool_context import ToolContext
from proofstone.agents.tools.toolbox import Toolbox
from proofstone.agents.web import mcp
from proofstone.agents.web.pages import extract_page_text as page_text
from proofstone.agents.web.pages import format_results, is_text, parse_results
from proofstone.cli import hook
from proofstone.common.globs import matches
from proofstone.common.models import FrozenModel
from proofstone.errors import RepositoryError
from proofstone.git.repository import open_repository
from proofstone.hooks.agent_hooks import DIALECTS, add_hook, format_document, read_document, remove_hook
from proofstone.sandbox.gateway import ProxyError, _parse_request
from proofstone.sandbox.job import SandboxResult
from proofstone.supervision.rules import wire
from proofstone.supervision.rules.mentions import find_interface_changes
from proofstone.supervision.rules.mentions import find_mentioned_files as mentioned_files
from tests.fuzz.checking import Reader, folder, pick, text_of

_NOBODY = cast(Conversation, SimpleNamespace(entries=()))
"""A conversation in which nothing was said yet."""
STREAMS = Path(__file__).parents[2] / "agents" / "backends" / "programs" / "streams"
SEEDS = Path(__file__).parents[1] / "seeds"


def _lines_in(name: str) -> Sequence[bytes]:
    """Return a file of seeds as a whole, and each of its lines."""
    whole = (SEEDS / name).read_bytes()
    return [whole, *whole.splitlines(keepends=True)]


# Answers.


def _answer(contract: type[FrozenModel]) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        found = parse_answer(data, contract)
        if isinstance(found, MalformedAnswer):
            found.why.encode()
            assert found.why
        else:
            found.model_dump_json().encode()

    return read


def _answer_seeds(contract: type[FrozenModel]) -> Callable[[], Sequence[bytes]]:
    def seeds() -> Sequence[bytes]:
        schema = contract.model_json_schema()
        fields = {name: least_value(schema, field, (name,)) for name, field in schema["properties"].items()}
        needed = {name: fields[name] for name in schema.get("required", ())}
        whole, least = (json.dumps(one, ensure_ascii=False).encode() for one in (fields, needed))
        around = b"<think>{}</think>\nHere it is:\n```json\n" + whole + b"\n```\nDone."
        return [whole, least, around, b"</think>" + least + b"{}"]

    return seeds


def _verdict(data: bytes) -> None:
    found = parse_verdict(data, "cmd:architect")
    found.model_dump_json().encode()
    assert not isinstance(found, ArchitectVerdict) or found.by == "cmd:architect"


def _request_for_role(data: bytes) -> None:
    role = list(ROLES.values())[pick(data, len(ROLES))]
    source = ("REQUEST", "request.yaml", "request.json")[pick(data, 3)]
    parse_request(role, text_of(data), source=source).model_dump_json()


def _request_seeds() -> Sequence[bytes]:
    texts = [build_example(role).encode() for role in ROLES.values()]
    return [*texts, b"a: &a [x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: *c\n", b"Let customers count things"]


def _human(data: bytes) -> None:
    text = text_of(data)
    human._parse_yaml(text)
    human._parse_arguments(text, {"path": {"type": "string"}})


def _calls(data: bytes) -> None:
    wanted = parse_tool_calls(text_of(data))
    for call in build_tool_calls(_NOBODY, wanted):
        call.model_dump_json().encode()


def _wire(data: bytes) -> None:
    text = text_of(data)
    for message in wire.read_messages(text):
        repr(message).encode("utf-8", "strict")
    mentioned_files(text)
    find_interface_changes(text)


def _wire_seeds() -> Sequence[bytes]:
    from tests.supervision import test_wire

    texts = [value for value in vars(test_wire).values() if isinstance(value, str) and "[" in value]
    lines = [line for group in vars(test_wire).values() if isinstance(group, list | tuple) for line in _strings(group)]
    return [text.encode() for text in (*texts, *lines[:40])]


def _strings(value: object) -> Sequence[str]:
    if isinstance(value, str):
        return [value] if value.startswith("[") else []
    return [text for one in value for text in _strings(one)] if isinstance(value, list | tuple) else []


def _provider(data: bytes) -> None:
    """What a provider's SDK hands over: texts and calls of which nobody has checked anything."""
    text = data.decode("utf-8", "surrogatepass") if pick(data, 2) and _is_text(data) else text_of(data)
    first, _, rest = text.partition("\n")
    parts: list[ModelResponsePart] = [
        TextPart(first),
        ThinkingPart(rest),
        ToolCallPart(first[:80], rest, first),
        ToolCallPart("answer", rest),
    ]
    finishes: Sequence[Literal["stop", "length"] | None] = ("stop", "length", None)
    finish = finishes[pick(data, 3)]
    count = pick(data, 1 << 40) - 1000
    usage = RequestUsage(input_tokens=count)
    response = ModelResponse(parts[pick(data, 4) :], usage=usage, model_name=first, finish_reason=finish)
    turn = messages.build_turn(messages.sanitize_response(response), "openai:m", None)
    turn.model_dump_json().encode()


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


# Programs.


def _stream(preset: Preset) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        assert preset.stream is not None
        stream, lines = preset.stream(), LineSplitter()
        for line in (*lines.add(data), lines.take_rest()):
            for activity in stream.line(line.decode("utf-8", "replace")):
                activity.model_dump_json().encode()
        final = stream.is_final((0, 1, None)[pick(data, 3)])
        repr(final).encode()

    return read


def _stream_seeds(name: str) -> Callable[[], Sequence[bytes]]:
    short = name.split("-")[0]
    return lambda: [file.read_bytes()[:6000] for file in sorted(STREAMS.glob(f"{short}-*"))]


def _acp(data: bytes) -> None:
    site = ExecutionContext(work_tree=folder("acp"), scratch=folder("acp-scratch"), run=_no_run, scope=("a.py",))
    notes = ActivityLog(site, KeyMask(("secret-key-123",)))
    heard = SessionLog(site, str(site.work_tree), notes)
    client = AcpClient(site, heard, PermissionLimits(str(site.work_tree), ("a.py",), can_run=False))
    frames = MessageReader(notes.mask)
    for message in (*frames.add(data), *frames.add(b"\n")):
        method, parameters = message.get("method"), message.get("params")
        if isinstance(method, str):
            client.handle_notification(method, parameters)
            json.dumps(client.answer_request(method, parameters), ensure_ascii=False).encode()
        result = get_value(message, "result")
        if isinstance(result, Mapping):
            choose_mode(result, "ask")
            find_model(result, "m")
            has_model(result, "m")
            reports_model(result)
            choose_login(get_objects(result, "authMethods"), {"A_KEY"})
            heard.compute_usage(result).model_dump_json()
        if "error" in message:
            AgentError("session/new", message["error"], notes.mask).text.encode()
    heard.end()
    heard.text.encode()
    frames.render_noise()


def _no_run(_job: ShellCommand) -> SandboxResult:
    raise AssertionError("nothing is run here")


class _Served:
    """An MCP server that answers with the messages of an input, one after another."""

    def __init__(self, data: bytes) -> None:
        frames = MessageReader(KeyMask())
        self._messages = [*frames.add(data), *frames.add(b"\n")]

    def send(self, _message: object) -> None:
        pass

    def request(self, _method: str, _parameters: object, _until: object) -> JsonValue:
        if not self._messages:
            raise ToolFailedError("The MCP server has ended.")
        return self._messages.pop(0).get("result")


def _mcp(data: bytes) -> None:
    tools = mcp._initialize(_Served(data), _Served(b""))  # type: ignore[arg-type]
    for name, schema in tools.items():
        try:
            mcp._build_arguments(name, schema, ("query", "q"), "words")
        except ToolFailedError:
            continue


def _scope_hook(data: bytes) -> None:
    refused = refusal(json.loads(data), folder("scope"), ("a.py", "src/**"), matches)
    assert refused is None or refused


_TOOLS = (Tool.READ, Tool.LIST, Tool.GLOB, Tool.WRITE, Tool.EDIT, Tool.DELETE)


def _tool_call(data: bytes) -> None:
    place = folder("tools")
    (place / "a.py").write_bytes(b"x = 1\ny = 2\n")
    toolbox = Toolbox(ToolContext(files=place, scope=("a.py",)), _TOOLS)
    for call in build_tool_calls(_NOBODY, parse_tool_calls(text_of(data))):
        toolbox.call(call).model_dump_json().encode()
    assert {path.name for path in place.iterdir()} <= {"a.py"}, "a tool wrote where it may not"


_TOOL_CALLS = tuple(
    json.dumps({"tool_calls": [{"name": name, "arguments": arguments}]}).encode()
    for name, arguments in (
        ("read", {"path": "a.py", "offset": 1, "limit": 5}),
        ("list", {"path": "."}),
        ("glob", {"pattern": "**/*.py"}),
        ("write", {"path": "a.py", "content": "x = 2\n"}),
        ("edit", {"path": "a.py", "old": "x = 1", "new": "x = 3"}),
        ("delete", {"path": "a.py"}),
    )
)


# Hooks.


def _hook_payload(data: bytes) -> None:
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(data), "utf-8", "surrogateescape")
    try:
        stop = hook._parse_stop(DIALECTS["claude"], hook._read_event())
    finally:
        sys.stdin = before
    stop.conversation.encode("utf-8", "backslashreplace")
    with suppress(RepositoryError):
        open_repository(stop.directory)


def _hook_settings(data: bytes) -> None:
    document = read_document("settings.json", text_of(data))
    for dialect in DIALECTS.values():
        both = add_hook(dialect, document, "settings.json")
        format_document(remove_hook(dialect, both, "settings.json")).encode("utf-8", "surrogatepass")


# The web.


def _page(data: bytes) -> None:
    header, _, body = data.partition(b"\n")
    told = header.decode("latin-1")
    is_text(told, body)
    page_text(told, body).encode("utf-8", "surrogatepass")


def _results(data: bytes) -> None:
    shown = format_results(text_of(data))
    list(parse_results(shown))


def _gateway(data: bytes) -> None:
    request = _parse_request(data.partition(b"\r\n\r\n")[0])
    assert 0 < request.host.port < 65536
    assert b"\r\n\r\n" not in request.first_bytes[:-4]


def _answers() -> Sequence[Reader]:
    roles: Mapping[str, Role] = ROLES
    contracts: dict[str, type[FrozenModel]] = {role.output.__name__: role.output for role in roles.values()}
    contracts["ExecutorResult"] = ExecutorResult
    return [
        Reader(f"answer-{name}", _answer(contract), _answer_seeds(contract), ("proofstone.agents.rules.answer",))
        for name, contract in sorted(contracts.items())
    ]


_LINES = "proofstone.agents.backends.programs.lines"
READERS: tuple[Reader, ...] = (
    *_answers(),
    Reader("verdict", _verdict, _answer_seeds(ArchitectVerdict), ("proofstone.agents.rules.answer",)),
    Reader("request", _request_for_role, _request_seeds, ("proofstone.agents.roles.requests",)),
    Reader(
        "human-answer",
        _human,
        lambda: [b"path=src/a.py lines=3 'x=y z'", b'{"a": [1, null]}', b"a: &x [1, 2]\nb: {c: *x, d: 2020-01-01}\n"],
        ("proofstone.agents.backends.human",),
    ),
    Reader("tool-calls", _calls, lambda: _TOOL_CALLS, ("proofstone.agents.backends.transcript",)),
    Reader("tool-arguments", _tool_call, lambda: _TOOL_CALLS, ("proofstone.agents.backends.transcript",)),
    Reader("wire", _wire, _wire_seeds, ("proofstone.supervision.rules.wire",)),
    Reader(
        "provider-reply",
        _provider,
        lambda: [b'read\n{"path": "a.py", "lines": [1, 2]}', b'text\n{"a": 1e5, "b": "\\ud83d\\ude00"}', b"x\ny"],
        ("proofstone.agents.backends.api.messages",),
        refuses=(ValueError, AnswerTooLargeError),
    ),
    *(
        Reader(f"stream-{name}", _stream(preset), _stream_seeds(name), (_LINES,))
        for name, preset in PRESETS.items()
        if preset.stream is not None
    ),
    Reader(
        "acp",
        _acp,
        lambda: _lines_in("acp.jsonl"),
        (_LINES, "proofstone.agents.backends.programs.acp.wire"),
    ),
    Reader(
        "mcp",
        _mcp,
        lambda: _lines_in("mcp.jsonl"),
        (_LINES, "proofstone.agents.web.mcp"),
        refuses=(ToolFailedError,),
    ),
    Reader(
        "scope-hook",
        _scope_hook,
        lambda: [
            b'{"tool_name": "Edit", "tool_input": {"file_path": "a.py"}}',
            b'{"tool_name": "Bash", "tool_input": {"command": "*** Update File: src/a.py\\n*** Move to: ../b"}}',
        ],
        ("proofstone.agents.backends.programs.known.scope_hook",),
        refuses=(
            ValueError,
            OSError,
            AttributeError,
            RecursionError,
        ),  # the line that starts it denies if it breaks down
    ),
    Reader(
        "hook-payload",
        _hook_payload,
        lambda: [b'{"session_id": "s", "cwd": "/tmp", "stop_hook_active": false, "agent_id": "a"}', b""],
        ("proofstone.cli.hook",),
    ),
    Reader(
        "hook-settings",
        _hook_settings,
        lambda: [
            b'{"hooks": {"Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "proofstone hook run"}]}]}}',
            b'{"version": 1, "hooks": {}}\n',
        ],
        ("proofstone.hooks.agent_hooks",),
    ),
    Reader(
        "web-page",
        _page,
        lambda: [
            b"text/html; charset=utf-8\n<html><head><title>A</title><script>x()</script></head><body><p>B &amp; C<pre>"
            b"d\n</pre><table><tr><td>e</td></tr></table><br/></body></html>",
            b"text/plain; charset=latin-1\nabc",
            b"application/json\n{}",
        ],
        ("proofstone.agents.web.pages",),
    ),
    Reader(
        "web-results",
        _results,
        lambda: [b'{"web": {"results": [{"url": "https://a", "title": "A", "description": "B"}, {"link": "c"}]}}'],
        ("proofstone.agents.web.pages",),
    ),
    Reader(
        "proxy-request",
        _gateway,
        lambda: [
            b"CONNECT api.example.org:443 HTTP/1.1\r\nHost: api.example.org:443",
            b"GET http://example.org:80/a?b=c HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept: */*",
        ],
        (),
        refuses=(ProxyError,),
    ),
)
