"""The `api:` backend against a server that speaks each provider's protocol, streaming and not."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from proofstone.agents.backends.api import api_backend
from proofstone.agents.models import Conversation, EngineMessage, FaultKind, Turn
from proofstone.config.providers import ModelSettings, Provider, ProviderProtocol
from proofstone.testing.model_server.answers import (
    Disconnect,
    Garbage,
    Hang,
    HttpError,
    ReceivedRequest,
    Reply,
    StreamError,
    WireProtocol,
)
from proofstone.testing.model_server.server import ModelServer
from tests.agents.backends.api_world import (
    KEY,
    MODELS,
    NAMES,
    WIRES,
    backend,
    conversation,
    kept,
    provider,
    results,
    served,
    site_in,
    the_fault,
    the_turn,
)

STREAMED = ModelSettings(stream=True)
WHOLE = ModelSettings(stream=False, max_output_tokens=4096)  # more, and Anthropic wants it streamed
both = pytest.mark.parametrize("settings", [STREAMED, WHOLE], ids=["streamed", "whole"])
every_wire = pytest.mark.parametrize("wire", WIRES)
pytestmark = pytest.mark.few(4)
"""Each of them with other wires, so that all together try every wire in both ways."""

GOOD = {"finding": "an a", "pairs": [["x", 1]], "level": None}


@both
@every_wire
def test_an_answer_is_given_by_a_call_of_the_answer_tool(
    wire: ProviderProtocol, settings: ModelSettings, tmp_path: Path
) -> None:
    with served(wire, [Reply(calls=(("answer", GOOD),))], settings) as (model, server):
        turn = the_turn(model.turn(conversation("read"), site_in(tmp_path), 60))
    assert turn.answer == GOOD
    assert turn.calls == ()
    assert turn.model == f"{NAMES[wire]}:{MODELS[wire]}"
    (asked,) = server.asked
    assert asked.stream is settings.stream
    assert asked.system == "Be brief."
    assert asked.messages == (("user", "What is there?"),)
    assert set(asked.tools) == {"read", "answer"}
    assert KEY in " ".join(asked.headers.values())


@both
@every_wire
def test_text_is_an_answer_too_and_is_heard(wire: ProviderProtocol, settings: ModelSettings, tmp_path: Path) -> None:
    heard: list[str] = []
    with served(wire, [Reply(text="Grüße, 世界 🎉")], settings) as (model, _):
        turn = the_turn(model.turn(conversation(), site_in(tmp_path, heard), 60))
    assert (turn.text, turn.answer, turn.calls) == ("Grüße, 世界 🎉", None, ())
    assert "".join(heard) == "Grüße, 世界 🎉"
    assert (len(heard) > 1) is settings.stream


@both
@every_wire
def test_two_calls_and_their_results_and_a_repair_go_on_in_one_conversation(
    wire: ProviderProtocol, settings: ModelSettings, tmp_path: Path
) -> None:
    asked_for = (("read", {"path": "a"}), ("list", {"path": "ü"}))
    bad = {"finding": 1}
    script = [Reply(text="I look.", calls=asked_for), Reply(calls=(("answer", bad),)), Reply(calls=(("answer", GOOD),))]
    with served(wire, script, settings) as (model, server):
        site = site_in(tmp_path)
        talk = conversation("read", "list")
        first = the_turn(model.turn(talk, site, 60))
        assert [(call.name, dict(call.arguments)) for call in first.calls] == list(asked_for)
        assert len({call.id for call in first.calls}) == 2
        talk = talk.with_entries(kept(first), results(first, "of a", "of b"))
        second = the_turn(model.turn(talk, site, 60))
        assert second.answer == bad
        talk = talk.with_entries(kept(second), EngineMessage(text="`finding` is no text", repair=1))
        assert the_turn(model.turn(talk, site, 60)).answer == GOOD
    one, two, three = server.asked
    assert [role for role, _ in two.messages] == ["user", "assistant", "tool", "tool"]
    assert [text for role, text in two.messages if role == "tool"] == ["of a", "of b"]
    assert ("user", "`finding` is no text") in three.messages
    assert one.messages == two.messages[: len(one.messages)]
    assert two.messages == three.messages[: len(two.messages)]


@every_wire
def test_every_request_begins_with_the_one_before(wire: ProviderProtocol, tmp_path: Path) -> None:
    script = [Reply(calls=(("read", {"path": "a"}),), thoughts="hm"), Reply(calls=(("answer", GOOD),))]
    with served(wire, script) as (model, server):
        talk = conversation("read")
        first = the_turn(model.turn(talk, site_in(tmp_path), 60))
        the_turn(model.turn(talk.with_entries(kept(first), results(first, "of a")), site_in(tmp_path), 60))
    one, two = (dict(asked.body) for asked in server.asked)
    grows = next(key for key in ("messages", "input", "contents") if key in one)
    before, after = one.pop(grows), two.pop(grows)
    assert isinstance(before, list) and isinstance(after, list)
    assert after[: len(before)] == before
    assert one == two, "instructions, tools and settings never change"
    if wire is ProviderProtocol.ANTHROPIC:
        assert "cache_control" in str(one["system"]) and "cache_control" in str(one["tools"])
    elif wire is not ProviderProtocol.GOOGLE:
        assert one["prompt_cache_key"] == "proofstone-researcher"


@both
@every_wire
def test_an_answer_beside_other_calls_is_not_taken(
    wire: ProviderProtocol, settings: ModelSettings, tmp_path: Path
) -> None:
    script = [Reply(calls=(("read", {"path": "a"}), ("answer", GOOD))), Reply(calls=(("answer", GOOD),))]
    with served(wire, script, settings) as (model, server):
        talk = conversation("read")
        first = the_turn(model.turn(talk, site_in(tmp_path), 60))
        assert first.answer is None
        assert [call.name for call in first.calls] == ["read"]
        talk = talk.with_entries(kept(first), results(first, "of a"))
        assert the_turn(model.turn(talk, site_in(tmp_path), 60)).answer == GOOD
    returned = [text for role, text in server.asked[1].messages if role == "tool"]
    assert returned[0] == "of a"
    assert returned[1].startswith("Not taken: you had not seen")


@both
@pytest.mark.parametrize(
    "wire", [ProviderProtocol.OPENAI_RESPONSES, ProviderProtocol.ANTHROPIC, ProviderProtocol.GOOGLE]
)
def test_thoughts_are_kept_apart_and_given_back_to_their_author_alone(
    wire: ProviderProtocol, settings: ModelSettings, tmp_path: Path
) -> None:
    thinks = Reply(calls=(("read", {"path": "a"}),), thoughts="Let me see about that.")
    with served(wire, [thinks, Reply(text="done")], settings) as (model, server):
        talk = conversation("read")
        first = the_turn(model.turn(talk, site_in(tmp_path), 60))
        assert first.thoughts == "Let me see about that."
        assert first.text == ""
        talk = talk.with_entries(kept(first), results(first, "of a"))
        the_turn(model.turn(talk, site_in(tmp_path), 60))
    assert "about that" in str(server.asked[1].body)
    for other in WIRES:
        if other is not wire:
            with served(other, [Reply(text="done")], settings) as (model, server):
                the_turn(model.turn(talk, site_in(tmp_path), 60))
                assert "about that" not in str(server.asked[0].body)
                assert ("tool", "of a") in server.asked[0].messages


@both
@every_wire
def test_what_was_used_is_counted_and_priced(wire: ProviderProtocol, settings: ModelSettings, tmp_path: Path) -> None:
    reply = Reply(text="x", input_tokens=1000, output_tokens=100, cached_tokens=400)
    own = settings.model_copy(update={"input_usd": 10.0, "output_usd": 20.0, "cache_read_usd": 1.0})
    with served(wire, [reply], settings) as (model, _):
        usage = the_turn(model.turn(conversation(), site_in(tmp_path), 60)).usage
    assert (usage.requests, usage.input_tokens, usage.output_tokens) == (1, 1000, 100)
    assert usage.cache_read_tokens == 400
    assert usage.usd is not None and usage.usd > 0
    with served(wire, [reply], own) as (model, _):
        usage = the_turn(model.turn(conversation(), site_in(tmp_path), 60)).usage
    assert usage.usd == pytest.approx((600 * 10 + 400 * 1 + 100 * 20) / 1e6)


def test_the_price_of_an_unknown_model_is_not_known(tmp_path: Path) -> None:
    with ModelServer([Reply(text="x")]) as server:
        model = api_backend(
            "api:openai:no-such", provider(server, ProviderProtocol.OPENAI_RESPONSES), {}, {"MODEL_KEY": KEY}
        )
        assert the_turn(model.turn(conversation(), site_in(tmp_path), 60)).usage.usd is None
        model.close()


FAULTS = [
    (HttpError(401, f"bad key {KEY}"), FaultKind.DENIED),
    (HttpError(403, "not for you"), FaultKind.DENIED),
    (HttpError(404, "no such model"), FaultKind.DENIED),
    (HttpError(400, "no such field"), FaultKind.REJECTED),
    (HttpError(429, "slower", retry_after=7), FaultKind.UNAVAILABLE),
    (HttpError(500, "oh"), FaultKind.UNAVAILABLE),
    (HttpError(503, "overloaded"), FaultKind.UNAVAILABLE),
    (Disconnect(), FaultKind.UNAVAILABLE),
    (Disconnect(after_pieces=2), FaultKind.UNAVAILABLE),
    (Garbage(), FaultKind.UNAVAILABLE),
    (Garbage(b"{}"), FaultKind.UNAVAILABLE),
    (Garbage(b"\xff\xfe", status=502), FaultKind.UNAVAILABLE),
    (StreamError(), FaultKind.UNAVAILABLE),
    (Reply(text="no", finish="content_filter"), FaultKind.FILTERED),
]


def each_fault() -> Iterator[object]:
    """In every run with one wire in one way, by turns; in the sweep with all of them."""
    ways = list(product(WIRES, (STREAMED, WHOLE)))
    for number, (answer, kind) in enumerate(FAULTS):
        for at, (wire, settings) in enumerate(ways):
            name = f"{wire}-{'streamed' if settings is STREAMED else 'whole'}-{answer!s:.40}"
            marks = [] if at == number * 3 % len(ways) else [pytest.mark.sweep]
            yield pytest.param(wire, settings, answer, kind, id=name, marks=marks)


@pytest.mark.few(len(FAULTS))
@pytest.mark.parametrize(("wire", "settings", "answer", "kind"), list(each_fault()))
def test_whatever_the_provider_does_the_fault_has_a_name(
    wire: ProviderProtocol, settings: ModelSettings, answer: Reply, kind: FaultKind, tmp_path: Path
) -> None:
    with served(wire, [answer], settings) as (model, server):
        fault = the_fault(model.turn(conversation("read"), site_in(tmp_path), 60))
    assert fault.kind is kind, fault.why
    assert fault.why.startswith(f"{NAMES[wire]}:{MODELS[wire]} ")
    assert KEY not in fault.why
    assert len(fault.why) < 800
    assert len(server.asked) == 1, "retries are the engine's"
    if isinstance(answer, HttpError):
        assert str(answer.status) in fault.why
        assert answer.retry_after == fault.retry_after


MISSHAPEN = {
    ProviderProtocol.OPENAI_CHAT: ({"choices": []}, {"choices": [{"message": {"role": "assistant", "content": 5}}]}),
    ProviderProtocol.OPENAI_RESPONSES: (
        {"output": 5},
        {"status": "completed", "output": [{"type": "message", "content": None}]},
    ),
    ProviderProtocol.ANTHROPIC: (
        {"role": "assistant", "model": True, "content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn"},
        {"role": "assistant", "model": "m", "content": [{"type": "text", "text": True}], "stop_reason": "end_turn"},
    ),
    ProviderProtocol.GOOGLE: (
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": 5}}]}, "finishReason": "STOP"}]},
        {"candidates": [{"content": {"parts": [{"functionCall": None}]}, "finishReason": "STOP"}]},
    ),
}


@both
@every_wire
def test_an_answer_of_the_wrong_shape_is_a_fault_of_the_provider(
    wire: ProviderProtocol, settings: ModelSettings, tmp_path: Path
) -> None:
    bodies = [json.dumps(shape).encode() for shape in MISSHAPEN[wire]]
    script = [Garbage(b"data: " + body + b"\n\n" if settings.stream else body) for body in bodies]
    with served(wire, script, settings) as (model, _):
        for _body in bodies:
            fault = the_fault(model.turn(conversation("read"), site_in(tmp_path), 60))
            assert fault.kind is FaultKind.UNAVAILABLE, fault.why


def test_a_provider_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    gone = {"local": Provider(wire=ProviderProtocol.OPENAI_CHAT, url="http://127.0.0.1:9/v1")}
    model = api_backend("api:local:m", gone, {}, {})
    fault = the_fault(model.turn(conversation(), site_in(tmp_path), 60))
    model.close()
    assert fault.kind is FaultKind.UNAVAILABLE
    assert "cannot be reached" in fault.why


@pytest.mark.parametrize(
    ("wire", "settings"),
    [  # on the others, arguments are objects and not text
        (ProviderProtocol.OPENAI_CHAT, STREAMED),
        (ProviderProtocol.OPENAI_CHAT, WHOLE),
        (ProviderProtocol.OPENAI_RESPONSES, STREAMED),
        (ProviderProtocol.OPENAI_RESPONSES, WHOLE),
        (ProviderProtocol.ANTHROPIC, STREAMED),
    ],
)
def test_arguments_that_are_no_json_are_handed_on_as_such(
    wire: ProviderProtocol, settings: ModelSettings, tmp_path: Path
) -> None:
    script = [Reply(calls=(("read", {}),), raw_arguments='{"path": '), Reply(text="ok")]
    with served(wire, script, settings) as (model, _):
        talk = conversation("read")
        first = the_turn(model.turn(talk, site_in(tmp_path), 60))
        (call,) = first.calls
        assert call.arguments == {}
        assert "not JSON" in call.malformed
        the_turn(model.turn(talk.with_entries(kept(first), results(first, "what?")), site_in(tmp_path), 60))


@pytest.mark.parametrize("wire", [ProviderProtocol.OPENAI_CHAT, ProviderProtocol.OPENAI_RESPONSES])
def test_an_answer_that_cannot_be_read_is_text_and_can_be_repaired(wire: ProviderProtocol, tmp_path: Path) -> None:
    script = [Reply(calls=(("answer", {}),), raw_arguments='{"finding": "a'), Reply(calls=(("answer", GOOD),))]
    with served(wire, script) as (model, server):
        talk = conversation()
        first = the_turn(model.turn(talk, site_in(tmp_path), 60))
        assert (first.text, first.answer) == ('{"finding": "a', None)
        talk = talk.with_entries(kept(first), EngineMessage(text="not JSON", repair=1))
        assert the_turn(model.turn(talk, site_in(tmp_path), 60)).answer == GOOD
    assert server.asked[1].messages[1:] == (("assistant", '{"finding": "a'), ("user", "not JSON"))


@both
@every_wire
def test_an_answer_that_was_cut_says_so(wire: ProviderProtocol, settings: ModelSettings, tmp_path: Path) -> None:
    with served(wire, [Reply(text='{"finding": "a', finish="length")], settings) as (model, _):
        turn = the_turn(model.turn(conversation(), site_in(tmp_path), 60))
    assert turn.text.startswith('{"finding": "a\n[the limit of output tokens')
    assert turn.provider_state is None


@both
@every_wire
def test_an_empty_turn_does_not_break_the_conversation(
    wire: ProviderProtocol, settings: ModelSettings, tmp_path: Path
) -> None:
    with served(wire, [Reply(), Reply(text="ok")], settings) as (model, server):
        talk = conversation()
        empty = the_turn(model.turn(talk, site_in(tmp_path), 60))
        assert (empty.text, empty.answer, empty.calls) == ("", None, ())
        talk = talk.with_entries(kept(empty), EngineMessage(text="say something", repair=1))
        assert the_turn(model.turn(talk, site_in(tmp_path), 60)).text == "ok"
    assert [role for role, _ in server.asked[1].messages] == ["user", "assistant", "user"]


@both
@every_wire
def test_half_a_character_is_replaced(wire: ProviderProtocol, settings: ModelSettings, tmp_path: Path) -> None:
    broken = "a\ud800b"
    script = [Reply(text=broken, pieces=1), Reply(calls=(("read", {"path": broken}),), pieces=1), Reply(text="ok")]
    with served(wire, script, settings) as (model, _):
        assert the_turn(model.turn(conversation(), site_in(tmp_path), 60)).text == "a�b"
        talk = conversation("read")
        turn = the_turn(model.turn(talk, site_in(tmp_path), 60))
        assert turn.calls[0].arguments == {"path": "a�b"} or turn.calls[0].malformed
        the_turn(model.turn(talk.with_entries(kept(turn), results(turn, "x")), site_in(tmp_path), 60))


@both
@every_wire
def test_a_megabyte_goes_both_ways(wire: ProviderProtocol, settings: ModelSettings, tmp_path: Path) -> None:
    big = "0123456789abcdeü\n" * 62_000
    with served(wire, [Reply(calls=(("answer", {"finding": big}),), pieces=50)], settings) as (model, server):
        turn = the_turn(model.turn(conversation(ask=big), site_in(tmp_path), 60))
    assert turn.answer == {"finding": big}
    assert server.asked[0].messages == (("user", big),)


@both
@every_wire
def test_a_turn_ends_when_it_is_cancelled(wire: ProviderProtocol, settings: ModelSettings, tmp_path: Path) -> None:
    site = site_in(tmp_path)

    def answer(_: ReceivedRequest) -> Hang:
        site.cancel.set()
        return Hang()

    with served(wire, answer, settings) as (model, _):
        assert the_fault(model.turn(conversation(), site, None)).kind is FaultKind.CANCELLED
        assert the_fault(model.turn(conversation(), site, None)).kind is FaultKind.CANCELLED


@every_wire
def test_a_turn_ends_in_the_middle_of_a_stream_when_it_is_cancelled(wire: ProviderProtocol, tmp_path: Path) -> None:
    site = site_in(tmp_path)
    heard: list[str] = []

    def hear(text: str) -> None:
        heard.append(text)
        site.cancel.set()

    listening = type(site)(site.work_tree, site.scratch, site.run, on_text=hear, cancel=site.cancel)
    with served(wire, [Reply(text="a long story" * 10, pieces=100, pause=0.3)]) as (model, _):
        assert the_fault(model.turn(conversation(), listening, 60)).kind is FaultKind.CANCELLED
    assert heard


@both
@every_wire
def test_a_turn_ends_at_its_deadline(wire: ProviderProtocol, settings: ModelSettings, tmp_path: Path) -> None:
    with served(wire, [Hang()], settings) as (model, _):
        fault = the_fault(model.turn(conversation(), site_in(tmp_path), 0.3))
    assert fault.kind is FaultKind.TIMEOUT
    assert "0.3 s" in fault.why


def test_several_threads_may_ask_the_same_backend(tmp_path: Path) -> None:
    def echo(asked: ReceivedRequest) -> Reply:
        return Reply(text=asked.messages[-1][1])

    said: dict[int, str] = {}
    with served(ProviderProtocol.OPENAI_CHAT, echo) as (model, _):

        def ask(number: int) -> None:
            talk = conversation(ask=f"I am {number}")
            said[number] = the_turn(model.turn(talk, site_in(tmp_path), 60)).text

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert said == {number: f"I am {number}" for number in range(8)}


def test_the_last_backend_that_closes_ends_the_thread(tmp_path: Path) -> None:
    def models_thread() -> bool:
        return any(thread.name == "proofstone-models" for thread in threading.enumerate())

    with ModelServer([Reply(text="x"), Reply(text="y")]) as server:
        one, two = (backend(server, wire) for wire in (ProviderProtocol.OPENAI_CHAT, ProviderProtocol.ANTHROPIC))
        assert not models_thread()
        for model in (one, two):
            the_turn(model.turn(conversation(), site_in(tmp_path), 60))
        one.close()
        one.close()
        assert models_thread()
        two.close()
        assert not models_thread()


@every_wire
def test_the_environment_does_not_send_the_key_elsewhere(
    wire: ProviderProtocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "sk-of-somebody-else")
    with served(wire, [Reply(text="here")]) as (model, server):
        assert the_turn(model.turn(conversation(), site_in(tmp_path), 60)).text == "here"
    headers = " ".join(server.asked[0].headers.values())
    assert KEY in headers
    assert "somebody" not in headers


def test_a_provider_that_is_not_openai_hears_nothing_of_the_account_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-somebody-else")
    with ModelServer([Reply(text="x")]) as server:
        providers = {"local": Provider(wire=ProviderProtocol.OPENAI_CHAT, url=f"{server.url}/v1")}
        model = api_backend("api:local:m", providers, {}, {})
        the_turn(model.turn(conversation(), site_in(tmp_path), 60))
        model.close()
    (asked,) = server.asked
    assert "somebody" not in str(asked.headers)
    assert "prompt_cache_key" not in asked.body


@every_wire
def test_headers_of_the_environment_are_not_for_everybody_who_speaks_a_protocol(
    wire: ProviderProtocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, "X-Team: somebody\nAuthorization: Bearer somebody\nX-Api-Key: somebody")
    with ModelServer([Reply(text="x")]) as server:
        url = server.base_url(WireProtocol(wire))
        providers = {"local": Provider(wire=wire, url=url, key_variable="MODEL_KEY")}
        model = api_backend("api:local:m", providers, {}, {"MODEL_KEY": KEY})
        the_turn(model.turn(conversation(), site_in(tmp_path), 60))
        model.close()
    headers = server.asked[0].headers
    assert "somebody" not in str(headers)
    assert KEY in " ".join(headers.values())


def test_settings_of_the_model_are_sent(tmp_path: Path) -> None:
    wanted = ModelSettings(max_output_tokens=77, temperature=0.5)
    with served(ProviderProtocol.GOOGLE, [Reply(text="x")], wanted) as (model, server):
        the_turn(model.turn(conversation(), site_in(tmp_path), 60))
    sent = server.asked[0].body["generationConfig"]
    assert isinstance(sent, dict)
    assert (sent["maxOutputTokens"], sent["temperature"]) == (77, 0.5)


def test_nothing_of_a_provider_is_imported_before_a_turn() -> None:
    program = (
        "import sys, proofstone.agents.backends, proofstone.agents.backends.api as api\n"
        "api.api_backend('api:openai:gpt-5', environ={'OPENAI_API_KEY': 'x'}).close()\n"
        "print([name for name in ('pydantic_ai', 'openai', 'anthropic', 'google.genai') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_a_conversation_can_go_on_with_another_provider(tmp_path: Path) -> None:
    """Ids that one provider gave mean nothing to the next, and every call still has its result."""
    calls = (("read", {"path": "a"}), ("answer", GOOD))
    with served(ProviderProtocol.OPENAI_RESPONSES, [Reply(text="I look.", calls=calls)]) as (model, _):
        talk = conversation("read")
        first = the_turn(model.turn(talk, site_in(tmp_path), 60))
    talk = talk.with_entries(
        kept(first), results(first, "of a"), Turn(answer=GOOD), EngineMessage(text="wrong", repair=1)
    )
    seen: list[tuple[tuple[str, str], ...]] = []
    for wire in (ProviderProtocol.OPENAI_CHAT, ProviderProtocol.ANTHROPIC, ProviderProtocol.GOOGLE):
        with served(wire, [Reply(text="ok")]) as (model, server):
            the_turn(model.turn(talk, site_in(tmp_path), 60))
            seen.append(server.asked[0].messages)
    for messages in seen:
        assert ("tool", "of a") in messages
        assert ("tool", "Not taken.") in messages
        assert messages[-1] == ("user", "wrong")


def test_the_conversation_is_not_changed_by_asking(tmp_path: Path) -> None:
    talk: Conversation = conversation("read")
    before = talk.model_dump_json()
    with served(ProviderProtocol.ANTHROPIC, [Reply(text="x")]) as (model, _):
        the_turn(model.turn(talk, site_in(tmp_path), 60))
    assert talk.model_dump_json() == before
