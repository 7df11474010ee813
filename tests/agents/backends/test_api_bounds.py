"""What a provider sends is never believed: not its counts, not its numbers, not its size."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from proofstone.agents.backends.api import api_backend
from proofstone.agents.backends.api.providers import (
    MAX_ANSWER_SIZE,
    MAX_CALLS,
    MAX_NAME_CHARS,
    MAX_STREAM_SIZE,
    MAX_TOKENS,
)
from proofstone.agents.models import Conversation, EngineMessage, Fault, FaultKind, Turn
from proofstone.config.providers import ModelSettings, Provider, ProviderProtocol
from proofstone.testing.model_server.answers import Garbage, Reply
from tests.agents.backends.api_world import (
    NAMES,
    WIRES,
    conversation,
    kept,
    results,
    served,
    site_in,
    the_fault,
    the_turn,
)

STREAMED = ModelSettings(stream=True, input_usd=1.0, output_usd=2.0)
WHOLE = ModelSettings(stream=False, max_output_tokens=4096, input_usd=1.0, output_usd=2.0)
both = pytest.mark.parametrize("settings", [STREAMED, WHOLE], ids=["streamed", "whole"])
every_wire = pytest.mark.parametrize("wire", WIRES)
pytestmark = pytest.mark.few(4)
"""Each of them with other wires, so that all together try every wire in both ways."""

ANSWER = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


def written(turn: Turn) -> bytes:
    """As the ledger writes it, which takes nothing that is not JSON in UTF-8."""
    return json.dumps(turn.model_dump(mode="json"), ensure_ascii=False, allow_nan=False).encode()


def changed(**fields: object) -> Garbage:
    return Garbage(json.dumps({**ANSWER, **fields}).encode())


# Counts


@pytest.mark.few(14)
@pytest.mark.filterwarnings("ignore:Failed to extract usage")  # pydantic-ai to its own users
@both
@every_wire
@pytest.mark.parametrize(
    "reply",
    [
        Reply(text="x", input_tokens=10**400),
        Reply(text="x", output_tokens=10**25),
        Reply(text="x", input_tokens=-(10**9), output_tokens=-(10**9)),
        Reply(text="x", output_tokens=-1),
        Reply(text="x", input_tokens=10, cached_tokens=10**9),
        Reply(text="x", input_tokens=10, cached_tokens=-(10**9)),
        Reply(text="x", input_tokens=0),
    ],
    ids=lambda reply: (
        f"{reply.input_tokens:.0e}-{reply.output_tokens}-{reply.cached_tokens}"[:30]
        if reply.input_tokens < 10**300
        else "endless"
    ),
)
def test_counts_that_cannot_be_make_the_cost_unknown(
    wire: ProviderProtocol, settings: ModelSettings, reply: Reply, tmp_path: Path
) -> None:
    with served(wire, [reply], settings) as (model, _):
        usage = the_turn(model.turn(conversation(), site_in(tmp_path), 60)).usage
    assert usage.usd is None
    assert usage.requests == 1
    for count in (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens):
        assert 0 <= count <= MAX_TOKENS


@pytest.mark.parametrize("cost", [{"prompt_tokens": 10**400}, {"completion_tokens_details": {"audio_tokens": 10**400}}])
def test_no_count_leads_to_a_cost_that_cannot_be_written(cost: dict[str, object], tmp_path: Path) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, **cost}
    for settings in (WHOLE, ModelSettings(stream=False)):
        with served(ProviderProtocol.OPENAI_CHAT, [changed(usage=usage, model="gpt-4o-audio-preview")], settings) as (
            model,
            _,
        ):
            written(the_turn(model.turn(conversation(), site_in(tmp_path), 60)))


# Numbers


@every_wire
@both
def test_a_number_without_end_is_no_argument_and_the_conversation_goes_on(
    wire: ProviderProtocol, settings: ModelSettings, tmp_path: Path
) -> None:
    as_text = wire in (ProviderProtocol.OPENAI_CHAT, ProviderProtocol.OPENAI_RESPONSES) or (
        wire is ProviderProtocol.ANTHROPIC and settings.stream
    )
    calls = (("read", {"path": float("-inf")}),)
    script = [Reply(calls=calls, raw_arguments='{"path": -1e999}' if as_text else None), Reply(text="ok")]
    with served(wire, script, settings) as (model, _):
        talk = conversation("read")
        first = the_turn(model.turn(talk, site_in(tmp_path), 60))
        (call,) = first.calls
        assert call.arguments == {}
        assert "not JSON" in call.malformed
        written(first)
        talk = talk.with_entries(kept(first), results(first, "refused"))
        assert the_turn(model.turn(talk, site_in(tmp_path), 60)).text == "ok"


@pytest.mark.parametrize("wire", [ProviderProtocol.OPENAI_CHAT, ProviderProtocol.OPENAI_RESPONSES])
def test_a_number_without_end_is_no_answer_but_a_text(wire: ProviderProtocol, tmp_path: Path) -> None:
    raw = '{"finding": "a", "risk": 1e999}'
    with served(wire, [Reply(calls=(("answer", {}),), raw_arguments=raw), Reply(text="ok")]) as (model, server):
        talk = conversation()
        turn = the_turn(model.turn(talk, site_in(tmp_path), 60))
        assert (turn.answer, turn.text) == (None, raw)
        written(turn)
        talk = talk.with_entries(kept(turn), EngineMessage(text="not of the schema", repair=1))
        assert the_turn(model.turn(talk, site_in(tmp_path), 60)).text == "ok"
    assert server.asked[1].messages[1] == ("assistant", raw)


def test_half_a_character_beside_the_answer_is_not_kept(tmp_path: Path) -> None:
    likely = {"content": [{"token": "\ud800", "logprob": -1.0, "bytes": None, "top_logprobs": []}]}
    message = {"role": "assistant", "content": "hello"}
    answer = changed(choices=[{"index": 0, "message": message, "finish_reason": "stop", "logprobs": likely}])
    with served(ProviderProtocol.OPENAI_CHAT, [answer], WHOLE) as (model, _):
        turn = the_turn(model.turn(conversation(), site_in(tmp_path), 60))
    assert turn.text == "hello"
    written(turn)


# Sizes


class Raw(ThreadingHTTPServer):
    """Sends what the model server would not: compressed bodies and streams without an end."""

    daemon_threads = True

    def __init__(self, send: Callable[[BaseHTTPRequestHandler], None]) -> None:
        self.send = send
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: Raw

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        try:
            self.server.send(self)
        except OSError:  # they do not want the rest
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None: ...


def sends(body: bytes, status: int = 200, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def send(to: BaseHTTPRequestHandler) -> None:
        to.send_response(status)
        given = {"content-type": "application/json", "content-length": str(len(body))}
        for name, value in (given | {name.replace("_", "-"): value for name, value in headers.items()}).items():
            to.send_header(name, value)
        to.end_headers()
        to.wfile.write(body)

    return send


def streams_for_ever(first: bytes, rest: bytes) -> Callable[[BaseHTTPRequestHandler], None]:
    def send(to: BaseHTTPRequestHandler) -> None:
        to.send_response(200)
        to.send_header("content-type", "text/event-stream")
        to.end_headers()
        to.wfile.write(first)
        while True:
            to.wfile.write(rest)

    return send


@contextmanager
def raw_server(send: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    with Raw(send) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def asked_raw(
    send: Callable[[BaseHTTPRequestHandler], None],
    stream: bool,
    folder: Path,
    wire: ProviderProtocol = ProviderProtocol.OPENAI_CHAT,
) -> Turn | Fault:
    with raw_server(send) as url:
        providers = {"p": Provider(wire=wire, url=url)}
        settings = {"p:*": ModelSettings(stream=stream, max_output_tokens=4096)}
        model = api_backend("api:p:m", providers, settings, {})
        try:
            return model.turn(conversation("read"), site_in(folder), 60)
        finally:
            model.close()


def assert_too_large(outcome: Turn | Fault, largest: int) -> None:
    fault = the_fault(outcome)
    assert fault.kind is FaultKind.REJECTED, fault.why
    assert f"its answer is larger than {largest // 2**20} MiB" in fault.why
    assert fault.usage.usd is None, "it may have to be paid all the same"


@both
@every_wire
def test_an_answer_that_is_too_large_is_not_taken(
    wire: ProviderProtocol, settings: ModelSettings, tmp_path: Path
) -> None:
    with served(wire, [Reply(text="x" * (MAX_ANSWER_SIZE + 1), pieces=8)], settings) as (model, _):
        outcome = model.turn(conversation(), site_in(tmp_path), 60)
    assert_too_large(outcome, MAX_ANSWER_SIZE)
    assert the_fault(outcome).why.startswith(NAMES[wire])


@pytest.mark.parametrize(
    "part", [Reply(thoughts="x" * (MAX_ANSWER_SIZE + 1)), Reply(calls=(("read", {"x": "x" * MAX_ANSWER_SIZE}),))]
)
def test_thoughts_and_arguments_count_too(part: Reply, tmp_path: Path) -> None:
    with served(ProviderProtocol.ANTHROPIC, [part], STREAMED) as (model, _):
        assert_too_large(model.turn(conversation("read"), site_in(tmp_path), 60), MAX_ANSWER_SIZE)


@every_wire
@pytest.mark.parametrize("status", [200, 500])
def test_a_small_body_that_becomes_a_large_one_is_not_taken(
    wire: ProviderProtocol, status: int, tmp_path: Path
) -> None:
    body = gzip.compress(b" " * (MAX_ANSWER_SIZE + 1), 1)
    assert len(body) < MAX_ANSWER_SIZE // 100
    assert_too_large(asked_raw(sends(body, status, content_encoding="gzip"), False, tmp_path, wire), MAX_ANSWER_SIZE)


@every_wire
def test_a_line_without_an_end_is_not_taken(wire: ProviderProtocol, tmp_path: Path) -> None:
    assert_too_large(asked_raw(streams_for_ever(b"data: ", b"x" * 2**20), True, tmp_path, wire), MAX_ANSWER_SIZE)


def test_a_stream_that_says_nothing_without_an_end_is_not_taken(tmp_path: Path) -> None:
    waiting = b": " + b"x" * 2**18 + b"\n\n"
    assert_too_large(asked_raw(streams_for_ever(b"", waiting), True, tmp_path), MAX_STREAM_SIZE)


def test_a_body_that_is_compressed_though_nobody_asked_is_read(tmp_path: Path) -> None:
    body = gzip.compress(json.dumps(ANSWER).encode())
    assert the_turn(asked_raw(sends(body, content_encoding="gzip"), False, tmp_path)).text == "hello"


@both
@every_wire
def test_nothing_compressed_is_asked_for(wire: ProviderProtocol, settings: ModelSettings, tmp_path: Path) -> None:
    with served(wire, [Reply(text="x")], settings) as (model, server):
        the_turn(model.turn(conversation(), site_in(tmp_path), 60))
    assert server.asked[0].headers["accept-encoding"] == "identity"


# Calls


@both
@every_wire
def test_calls_beyond_the_most_are_dropped_and_it_is_said(
    wire: ProviderProtocol, settings: ModelSettings, tmp_path: Path
) -> None:
    calls = tuple(("read", {"path": str(number)}) for number in range(MAX_CALLS + 36))
    with served(wire, [Reply(text="I look. ", calls=calls), Reply(text="ok")], settings) as (model, server):
        talk = conversation("read")
        first = the_turn(model.turn(talk, site_in(tmp_path), 60))
        assert [dict(call.arguments) for call in first.calls] == [arguments for _, arguments in calls[:MAX_CALLS]]
        assert first.text.startswith("I look.")
        assert f"[36 more calls of this turn were dropped: {MAX_CALLS} are the most]" in first.text
        talk = talk.with_entries(kept(first), results(first, *["of it"] * MAX_CALLS))
        assert the_turn(model.turn(talk, site_in(tmp_path), 60)).text == "ok"
    assert sum(role == "tool" for role, _ in server.asked[1].messages) == MAX_CALLS


@both
@every_wire
def test_the_name_of_a_tool_that_is_too_long_is_cut_and_cannot_be_called(
    wire: ProviderProtocol, settings: ModelSettings, tmp_path: Path
) -> None:
    calls = (("n" * 100_000, {"path": "a"}), ("m" * MAX_NAME_CHARS, {"path": "b"}))
    with served(wire, [Reply(calls=calls), Reply(text="ok")], settings) as (model, _):
        talk: Conversation = conversation("read")
        first = the_turn(model.turn(talk, site_in(tmp_path), 60))
        long, fits = first.calls
        assert (long.name, long.arguments) == ("n" * MAX_NAME_CHARS, {})
        assert f"longer than {MAX_NAME_CHARS} characters" in long.malformed
        assert (fits.name, fits.arguments, fits.malformed) == ("m" * MAX_NAME_CHARS, {"path": "b"}, "")
        assert len(written(first)) < 10_000
        talk = talk.with_entries(kept(first), results(first, "no", "no"))
        assert the_turn(model.turn(talk, site_in(tmp_path), 60)).text == "ok"


def test_ids_that_are_too_long_are_cut_and_stay_apart(tmp_path: Path) -> None:
    made = {"type": "function", "function": {"name": "read", "arguments": "{}"}}
    calls = [{"id": "i" * 5000 + str(number), **made} for number in range(3)]
    choice = {"index": 0, "message": {"role": "assistant", "tool_calls": calls}, "finish_reason": "tool_calls"}
    with served(
        ProviderProtocol.OPENAI_CHAT, [changed(choices=[choice], model="m" * 5000), Reply(text="ok")], WHOLE
    ) as (model, _):
        talk = conversation("read")
        first = the_turn(model.turn(talk, site_in(tmp_path), 60))
        assert len({call.id for call in first.calls}) == 3
        assert len(written(first)) < 5000
        talk = talk.with_entries(kept(first), results(first, "a", "b", "c"))
        assert the_turn(model.turn(talk, site_in(tmp_path), 60)).text == "ok"
