"""The model server, as the providers' own libraries see it."""

from __future__ import annotations

import http.client
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import anthropic
import httpx2
import openai
import pytest
from google.genai import errors as google_errors

from proofstone.testing.model_server.answers import (
    Answer,
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
from tests.testing.clients import CLIENTS, SYSTEM, Heard, StreamBrokeOffError, Told

CHAT, RESPONSES, CLAUDE, GEMINI = WireProtocol
every_protocol = pytest.mark.parametrize("protocol", WireProtocol)
streamed_or_not = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def ask(answer: Answer, protocol: WireProtocol, stream: bool, seconds: float = 10) -> Heard:
    with ModelServer([answer]) as server:
        return CLIENTS[protocol](server, stream, seconds=seconds)


@every_protocol
@streamed_or_not
def test_text_thoughts_calls_and_usage_come_through(protocol: WireProtocol, stream: bool) -> None:
    calls: tuple[tuple[str, dict[str, object]], ...]
    calls = (("read", {"path": "ä b"}), ("read", {"path": "c", "lines": [1, 2]}), ("stop", {}))
    reply = Reply("I look, twice.", calls, thoughts="where is it?", input_tokens=31, output_tokens=9, cached_tokens=20)
    heard = ask(reply, protocol, stream)
    assert (heard.text, heard.thoughts, heard.calls) == (reply.text, reply.thoughts, list(calls))
    assert heard.usage == ((11, 9, 20) if protocol is CLAUDE else (31, 9, 20))


@every_protocol
@streamed_or_not
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" * 1_000_000, id="a megabyte"),
        pytest.param("grüß 漢字 🧪 e\u0301 \u200f", id="unicode"),
        pytest.param("a\u2028b\u2029c\x85d\r\ne\n\nf\tg\x00h\x0bi\x0cj\x1ck", id="whatever ends a line"),
        pytest.param("data: [DONE]\n\nevent: error\n\n", id="words of the stream"),
        pytest.param("", id="nothing"),
    ],
)
def test_any_text_comes_through(text: str, protocol: WireProtocol, stream: bool) -> None:
    assert ask(Reply(text), protocol, stream).text == text


@every_protocol
def test_a_text_is_streamed_in_as_many_pieces_as_told(protocol: WireProtocol) -> None:
    assert ask(Reply("twelve chars", pieces=3, pause=0.001), protocol, stream=True).pieces == 3
    assert ask(Reply("one", pieces=1), protocol, stream=True).pieces == 1
    assert ask(Reply("few", pieces=50), protocol, stream=True).pieces == 3


FINISHES = {
    CHAT: ("stop", "tool_calls", "length", "content_filter"),
    RESPONSES: ("completed", "completed", "max_output_tokens", "content_filter"),
    CLAUDE: ("end_turn", "tool_use", "max_tokens", "refusal"),
    GEMINI: ("STOP", "STOP", "MAX_TOKENS", "SAFETY"),
}


@every_protocol
@streamed_or_not
def test_how_it_finished_is_said_in_the_providers_words(protocol: WireProtocol, stream: bool) -> None:
    replies = (
        Reply("x"),
        Reply(calls=(("read", {}),)),
        Reply("x", finish="length"),
        Reply("x", finish="content_filter"),
    )
    assert tuple(ask(reply, protocol, stream).finish for reply in replies) == FINISHES[protocol]


@every_protocol
@streamed_or_not
@pytest.mark.parametrize("raw", ['{"path": "a', "[1]"], ids=["broken", "a list"])
def test_arguments_come_as_the_model_wrote_them_or_are_reported(protocol: WireProtocol, stream: bool, raw: str) -> None:
    heard = ask(Reply(calls=(("read", {}),), raw_arguments=raw), protocol, stream)
    if protocol is GEMINI:
        assert (heard.calls, heard.finish) == ([], "MALFORMED_FUNCTION_CALL")
    else:
        assert heard.calls == [("read", [1] if raw == "[1]" else raw)]


@every_protocol
@streamed_or_not
def test_what_was_asked_reads_the_same_in_every_protocol(protocol: WireProtocol, stream: bool) -> None:
    with ModelServer([Reply("done")]) as server:
        CLIENTS[protocol](server, stream, Told(called=True, result="contents"))
    (asked,) = server.asked
    assert (asked.protocol, asked.model, asked.stream) == (protocol, "m", stream)
    assert (asked.system, asked.tools) == (SYSTEM, ("read",))
    assert asked.messages == (("user", "hi"), ("assistant", "I look"), ("tool", "contents"))
    assert "tools" in asked.body
    assert any("key" in value for value in asked.headers.values())


REFUSED = {
    CHAT: openai.BadRequestError,
    RESPONSES: openai.BadRequestError,
    CLAUDE: anthropic.BadRequestError,
    GEMINI: google_errors.ClientError,
}


@every_protocol
@pytest.mark.parametrize(
    ("told", "why"),
    [
        (Told(called=True), "tool calls without a result: c1"),
        (Told(result="contents"), "a tool result answers c1, which was not called"),
    ],
)
def test_a_conversation_that_does_not_hold_together_is_refused(protocol: WireProtocol, told: Told, why: str) -> None:
    with ModelServer([Reply("never said")]) as server, pytest.raises(REFUSED[protocol], match=why):
        CLIENTS[protocol](server, False, told)


def test_calls_of_different_answers_have_different_ids() -> None:
    seen = []
    with ModelServer([Reply(calls=(("a", {}), ("a", {})))] * 2) as server:
        url = server.base_url(CHAT)
        with openai.OpenAI(base_url=url, api_key="key", max_retries=0) as client:
            for _ in range(2):
                answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
                seen += [call.id for call in answer.choices[0].message.tool_calls or []]
    assert len(seen) == len(set(seen)) == 4


STATUS_ERRORS: list[tuple[int, dict[WireProtocol, type[Exception]]]] = [
    (400, {CHAT: openai.BadRequestError, CLAUDE: anthropic.BadRequestError, GEMINI: google_errors.ClientError}),
    (401, {CHAT: openai.AuthenticationError, CLAUDE: anthropic.AuthenticationError, GEMINI: google_errors.ClientError}),
    (404, {CHAT: openai.NotFoundError, CLAUDE: anthropic.NotFoundError, GEMINI: google_errors.ClientError}),
    (429, {CHAT: openai.RateLimitError, CLAUDE: anthropic.RateLimitError, GEMINI: google_errors.ClientError}),
    (
        503,
        {
            CHAT: openai.InternalServerError,
            CLAUDE: anthropic.ServiceUnavailableError,
            GEMINI: google_errors.ServerError,
        },
    ),
]


@every_protocol
@pytest.mark.parametrize(("status", "kinds"), STATUS_ERRORS, ids=[str(status) for status, _ in STATUS_ERRORS])
def test_an_http_error_arrives_as_the_librarys_own(
    protocol: WireProtocol, status: int, kinds: dict[WireProtocol, type[Exception]]
) -> None:
    with pytest.raises(kinds[CHAT if protocol is RESPONSES else protocol], match="not today"):
        ask(HttpError(status, "not today"), protocol, stream=status == 429)


@pytest.mark.parametrize(
    ("protocol", "error", "said"),
    [
        (CHAT, HttpError(429, code="insufficient_quota"), "insufficient_quota"),
        (RESPONSES, HttpError(400, code="context_length_exceeded"), "context_length_exceeded"),
        (CLAUDE, HttpError(400, code="billing_error"), "billing_error"),
        (GEMINI, HttpError(400, code="FAILED_PRECONDITION"), "FAILED_PRECONDITION"),
    ],
)
def test_the_providers_own_word_for_an_error_can_be_chosen(protocol: WireProtocol, error: HttpError, said: str) -> None:
    with pytest.raises((openai.APIError, anthropic.APIError, google_errors.APIError)) as raised:
        ask(error, protocol, stream=False)
    words = [getattr(raised.value, name, None) for name in ("code", "status", "type")]
    assert said in words


@every_protocol
def test_an_error_says_how_long_to_wait(protocol: WireProtocol) -> None:
    with pytest.raises((openai.RateLimitError, anthropic.RateLimitError, google_errors.ClientError)) as raised:
        ask(HttpError(429, retry_after=2.5), protocol, stream=False)
    error = raised.value
    assert isinstance(error, openai.RateLimitError | anthropic.RateLimitError | google_errors.ClientError)
    assert error.response.headers["retry-after"] == "2.5"
    if isinstance(error, google_errors.ClientError):
        assert error.details["error"]["details"][0]["retryDelay"] == "2.5s"


CONNECTION_ERRORS = (openai.APIConnectionError, anthropic.APIConnectionError, httpx2.RemoteProtocolError)


@every_protocol
@streamed_or_not
@pytest.mark.parametrize("after", [None, 0, 2])
def test_a_connection_that_ends_is_an_error_of_the_connection(
    protocol: WireProtocol, stream: bool, after: int | None
) -> None:
    with pytest.raises(CONNECTION_ERRORS):
        ask(Disconnect(after), protocol, stream)


@pytest.mark.parametrize("broken", [Disconnect(2), StreamError(2)], ids=["disconnected", "error"])
def test_the_pieces_before_the_end_are_heard(broken: Answer) -> None:
    heard = []
    with ModelServer([broken]) as server, openai.OpenAI(base_url=server.base_url(CHAT), api_key="key") as client:
        messages: list[openai.types.chat.ChatCompletionMessageParam] = [{"role": "user", "content": "hi"}]
        with pytest.raises(openai.APIError):
            for chunk in client.chat.completions.create(model="m", messages=messages, stream=True):
                heard.append(chunk.choices[0].delta.content)
    assert heard == ["", "word ", "word "]


@every_protocol
@pytest.mark.parametrize("after", [0, 1])
def test_an_error_in_mid_stream_is_told_in_the_stream(protocol: WireProtocol, after: int) -> None:
    kinds = (openai.APIError, StreamBrokeOffError, anthropic.APIStatusError, google_errors.ServerError)
    with pytest.raises(kinds, match="overloaded"):
        ask(StreamError(after), protocol, stream=True)


@every_protocol
def test_an_error_in_mid_stream_is_a_plain_error_where_nothing_is_streamed(protocol: WireProtocol) -> None:
    kinds = (openai.InternalServerError, anthropic.ServiceUnavailableError, google_errors.ServerError)
    with pytest.raises(kinds, match="overloaded"):
        ask(StreamError(), protocol, stream=False)


@every_protocol
@streamed_or_not
def test_a_server_that_says_nothing_times_out_and_closes_at_once(protocol: WireProtocol, stream: bool) -> None:
    with pytest.raises((openai.APITimeoutError, anthropic.APITimeoutError, httpx2.ReadTimeout)):
        ask(Hang(), protocol, stream, seconds=0.1)


@pytest.mark.parametrize("answer", [Hang(), Reply("a long time", pause=3600)], ids=["silent", "between pieces"])
def test_closing_ends_requests_that_are_under_way(answer: Answer) -> None:
    arrived = threading.Event()

    def hold(_: ReceivedRequest) -> Answer:
        arrived.set()
        return answer

    with ThreadPoolExecutor() as pool:
        with ModelServer(hold) as server:
            asking = pool.submit(CLIENTS[CHAT], server, True, seconds=3600)
            assert arrived.wait(10)
        with pytest.raises(openai.APIConnectionError):
            asking.result(10)


def test_closing_does_not_wait_for_a_client_that_stopped_reading() -> None:
    with ModelServer([Reply("x" * 50_000_000)]) as server:
        client = _post(server)
    client.close()


def test_garbage_comes_as_it_stands() -> None:
    with ModelServer([Garbage(), Garbage(b"\xff\x00", 502)]) as server:
        for status, body in ((200, b"<html>nope"), (502, b"\xff\x00")):
            client = _post(server)
            answer = client.getresponse()
            assert (answer.status, answer.read(), answer.headers["content-type"]) == (status, body, "text/html")
            client.close()


def _post(server: ModelServer) -> http.client.HTTPConnection:
    client = http.client.HTTPConnection(urlsplit(server.url).netloc)
    body = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
    client.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    return client


def test_a_script_at_its_end_says_so() -> None:
    with ModelServer([Reply("only this")]) as server:
        assert CLIENTS[CHAT](server, False).text == "only this"
        with pytest.raises(openai.InternalServerError, match="the script of the model server has no more answers"):
            CLIENTS[CHAT](server, False)


def test_a_script_is_used_up_once_however_many_ask() -> None:
    with ModelServer([Reply(str(number)) for number in range(24)]) as server, ThreadPoolExecutor(8) as pool:
        heard = list(pool.map(lambda _: CLIENTS[CHAT](server, False).text, range(24)))
    assert sorted(heard, key=int) == [str(number) for number in range(24)]
    assert len(server.asked) == 24


def test_an_answer_can_depend_on_what_was_asked() -> None:
    with ModelServer(lambda asked: Reply(f"{asked.messages[-1][1]}, {asked.model}")) as server:
        assert CLIENTS[CLAUDE](server, True).text == "hi, m"


def test_what_the_answering_function_raises_is_raised_at_the_close() -> None:
    def fail(_: ReceivedRequest) -> Answer:
        raise KeyError("no such scene")

    server = ModelServer(fail)
    with pytest.raises(openai.APIConnectionError):
        CLIENTS[CHAT](server, False)
    with pytest.raises(KeyError, match="no such scene"):
        server.close()


def test_a_path_that_no_protocol_has_is_not_found() -> None:
    with (
        ModelServer([]) as server,
        openai.OpenAI(base_url=server.url, api_key="key", max_retries=0) as client,
        pytest.raises(openai.NotFoundError, match="there is nothing at /chat/completions"),
    ):
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
    assert server.asked == []
