"""The server: it receives requests, asks what to answer, and sends the answer, complete or piece by piece.

It closes at once, whatever it is doing: every wait also waits for closing, and open connections are cut.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from itertools import count
from socketserver import ThreadingTCPServer
from types import TracebackType
from urllib.parse import urlsplit

from proofstone.testing.model_server import anthropic, google, openai_chat, openai_responses
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
    script_answers,
)
from proofstone.testing.model_server.wire import (
    Exchange,
    Frame,
    Json,
    ParsedRequest,
    ProtocolModule,
    encode_json,
    find_incoherence,
)

_WIRES: Mapping[WireProtocol, ProtocolModule] = {
    WireProtocol.OPENAI_CHAT: openai_chat,
    WireProtocol.OPENAI_RESPONSES: openai_responses,
    WireProtocol.ANTHROPIC: anthropic,
    WireProtocol.GOOGLE: google,
}
_PATHS = {
    "/v1/chat/completions": WireProtocol.OPENAI_CHAT,
    "/v1/responses": WireProtocol.OPENAI_RESPONSES,
    "/v1/messages": WireProtocol.ANTHROPIC,
}
_GOOGLE_METHODS = (":generateContent", ":streamGenerateContent")


class ModelServer:
    """Serve from the moment of creation until it is closed. A context manager."""

    def __init__(self, answer: Callable[[ReceivedRequest], Answer] | Sequence[Answer]) -> None:
        """`answer` is called in the thread of the request, and closing waits for it. An exception in it ends the
        connection and is raised again when the server closes. A sequence is used up one by one."""
        self.asked: list[ReceivedRequest] = []
        """Every request that could be read, in the order of arrival."""
        self._listener = _Listener(answer if callable(answer) else script_answers(answer), self.asked)
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.01,), name="model server")
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.server_address[1]}"

    def base_url(self, protocol: WireProtocol) -> str:
        """Return the address to give to the provider's library."""
        is_openai = protocol in (WireProtocol.OPENAI_CHAT, WireProtocol.OPENAI_RESPONSES)
        return f"{self.url}/v1" if is_openai else self.url

    def close(self) -> None:
        self._listener.closing.set()
        self._listener.shutdown()
        self._listener.cut()
        self._listener.server_close()
        self._thread.join()
        if self._listener.failures:
            raise self._listener.failures[0]

    def __enter__(self) -> ModelServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Listener(ThreadingTCPServer):
    """Track the open connections, so that they can be cut, and wait for their threads to end."""

    request_queue_size = 128

    def __init__(self, answer: Callable[[ReceivedRequest], Answer], asked: list[ReceivedRequest]) -> None:
        self.answer = answer
        self.asked = asked
        self.numbers = count(1)
        self.closing = threading.Event()
        self.failures: list[BaseException] = []
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def get_request(self) -> tuple[socket.socket, object]:
        connection, address = super().get_request()
        with self._lock:
            self._connections.add(connection)
        return connection, address

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]  # TCP: never a datagram
        with self._lock:
            self._connections.discard(request)
            super().shutdown_request(request)

    def cut(self) -> None:
        with self._lock:
            for connection in self._connections:
                with suppress(OSError):  # the client has already disconnected
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, ConnectionError):  # clients may disconnect at any time
            self.failures.append(error)


class _Handler(BaseHTTPRequestHandler):
    """Handle one connection, which may carry several requests."""

    server: _Listener
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        body = self.rfile.read(length)
        path = urlsplit(self.path).path
        protocol = WireProtocol.GOOGLE if path.endswith(_GOOGLE_METHODS) else _PATHS.get(path)
        if len(body) < length:
            self.close_connection = True
        elif protocol is None:
            self._fail(openai_chat, HttpError(404, f"there is nothing at {path}"))
        else:
            self._handle(protocol, path, json.loads(body))

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: requests are kept in `ModelServer.asked`."""

    def _handle(self, protocol: WireProtocol, path: str, body: Json) -> None:
        wire = _WIRES[protocol]
        request = wire.read_request(path, body)
        request_seen = self._build_request(protocol, request, body)
        self.server.asked.append(request_seen)
        fault = find_incoherence(request.parts)
        answer = HttpError(400, fault) if fault else self.server.answer(request_seen)
        reply = answer if isinstance(answer, Reply) else _build_partial_reply(answer)
        self._answer(wire, answer, request.stream, Exchange(request.model, body, reply, next(self.server.numbers)))

    def _build_request(self, protocol: WireProtocol, request: ParsedRequest, body: Json) -> ReceivedRequest:
        return ReceivedRequest(
            protocol=protocol,
            model=request.model,
            stream=request.stream,
            system=request.system,
            messages=tuple((part.role, part.text) for part in request.parts),
            tools=request.tools,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=body,
        )

    def _answer(self, wire: ProtocolModule, answer: Answer, stream: bool, exchange: Exchange) -> None:
        match answer:
            case Reply() if stream:
                self._stream(wire.stream(exchange), answer.pause)
            case Reply():
                self._send(200, encode_json(wire.build_response(exchange)))
            case HttpError():
                self._fail(wire, answer)
            case StreamError() if stream:
                sent = list(_take_pieces(answer.after_pieces, wire.stream(exchange)))
                self._stream([*sent, Frame(wire.stream_error(answer.message, len(sent)))])
            case StreamError():
                self._fail(wire, HttpError(503, answer.message))
            case Garbage():
                self._send(answer.status, answer.body, {"content-type": "text/html"})
            case Hang():
                self.server.closing.wait(answer.seconds)
                self.close_connection = True
            case Disconnect(after_pieces=None):
                self.close_connection = True
            case Disconnect(after_pieces=int(pieces)) if stream:
                self._stream(_take_pieces(pieces, wire.stream(exchange)), is_complete=False)
            case Disconnect():
                self._send_half(encode_json(wire.build_response(exchange)))

    def _fail(self, wire: ProtocolModule, error: HttpError) -> None:
        headers = {} if error.retry_after is None else {"retry-after": f"{error.retry_after:g}"}
        self._send(error.status, encode_json(wire.error(error)), headers)

    def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self._begin(status, {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})})
        self.wfile.write(body)

    def _send_half(self, body: bytes) -> None:
        self._begin(200, {"content-type": "application/json", "content-length": str(len(body))})
        self.wfile.write(body[: len(body) // 2])
        self.close_connection = True

    def _stream(self, frames: Iterable[Frame], pause: float = 0.0, is_complete: bool = True) -> None:
        self._begin(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        for frame in frames:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(frame.data), frame.data))
            if frame.piece and pause and self.server.closing.wait(pause):
                is_complete = False
                break
        if is_complete:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True

    def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


def _build_partial_reply(answer: Answer) -> Reply:
    """Return the reply that is cut short: it has more pieces than are sent."""
    pieces = 1 + (answer.after_pieces or 0 if isinstance(answer, Disconnect | StreamError) else 0)
    return Reply(text="word " * pieces, pieces=pieces)


def _take_pieces(pieces: int, frames: Iterable[Frame]) -> Iterator[Frame]:
    """Yield the frames up to this number of pieces."""
    for frame in frames:
        pieces -= frame.piece
        if pieces < 0:
            return
        yield frame
