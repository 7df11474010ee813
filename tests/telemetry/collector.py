"""A collector on 127.0.0.1 that takes OTLP over HTTP as a real one does, and keeps what it was sent."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

Value = str | int | float | bool | tuple[str, ...]


@dataclass(frozen=True)
class Taken:
    """A span as it came over the wire."""

    wire: Span

    @property
    def name(self) -> str:
        return str(self.wire.name)

    @property
    def attributes(self) -> dict[str, Value]:
        return {one.key: _value(one.value) for one in self.wire.attributes}

    @property
    def failed(self) -> bool:
        return bool(self.wire.status.code == Status.STATUS_CODE_ERROR)


@dataclass
class Collector:
    url: str
    status: int = 200
    hangs: bool = False
    let_go: threading.Event = field(default_factory=threading.Event)
    requests: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    """Path and headers of each."""
    resources: list[Mapping[str, Value]] = field(default_factory=list)
    spans: list[Taken] = field(default_factory=list)

    def take(self, path: str, headers: Mapping[str, str], body: bytes) -> None:
        self.requests.append((path, headers))
        request = ExportTraceServiceRequest.FromString(
            gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
        )
        for resource in request.resource_spans:
            self.resources.append({one.key: _value(one.value) for one in resource.resource.attributes})
            self.spans += [Taken(span) for scope in resource.scope_spans for span in scope.spans]

    def tree(self) -> list[str]:
        """Each span below the one that it belongs to, in the order in which they came."""
        return list(self._below(b"", 0))

    def _below(self, parent: bytes, depth: int) -> Iterator[str]:
        for span in self.spans:
            if span.wire.parent_span_id == parent:
                yield f"{'  ' * depth}{span.name}"
                yield from self._below(span.wire.span_id, depth + 1)

    def named(self, start: str) -> list[Taken]:
        return [span for span in self.spans if span.name.startswith(start)]


def _value(value: AnyValue) -> Value:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return tuple(one.string_value for one in value.array_value.values)
    found: Value = getattr(value, str(kind))
    return found


@contextmanager
def collecting(status: int = 200, *, hangs: bool = False) -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if collector.hangs:
                collector.let_go.wait()
            elif collector.status < 400:
                headers = {name.lower(): value for name, value in self.headers.items()}
                collector.take(self.path, headers, body)
            self.send_response(collector.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector = Collector(f"http://127.0.0.1:{server.server_port}", status, hangs)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield collector
    finally:
        collector.let_go.set()
        server.shutdown()
        server.server_close()
        serving.join()
