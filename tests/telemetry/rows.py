"""Rows of runs, written by hand: dispatches with their calls, a second apart."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from pydantic import JsonValue

from proofstone.agents.models import DispatchKey, Fault, FaultKind, ToolResult, Turn
from proofstone.common.models import Phase, Usage, Verdict
from proofstone.ledger.models import CheckRow, EventRow, MessageRow, StepStatus, TelemetryRow
from proofstone.ledger.schema import LedgerRow
from proofstone.ledger.sqlite import SqliteLedger

RUN, PLAN, GATE = "20260131T120000Z-aaaaaa", "20260131T120000Z-aaaaaa-p1", "20260131T120000Z-aaaaaa-g1"
START = datetime(2026, 1, 31, 12, tzinfo=UTC)
Part = tuple[str, Mapping[str, JsonValue]]


def ledger_with(path: Path, *rows: LedgerRow) -> SqliteLedger:
    """Each a second after the one before."""
    seconds = count()
    ledger = SqliteLedger(path, clock=lambda: START + timedelta(seconds=next(seconds)))
    for row in rows:
        ledger.append(row)
    return ledger


def event(run_id: str, type: str, /, **payload: JsonValue) -> EventRow:
    return EventRow(run_id=run_id, type=type, payload=payload)


def turn(usage: Usage, seconds: float = 1.0, model: str = "openai:gpt-5") -> Part:
    return "Turn", {"turn": Turn(text="ok", model=model, usage=usage).model_dump(mode="json"), "seconds": seconds}


def fault(usage: Usage = Usage(), seconds: float = 1.0, kind: FaultKind = FaultKind.UNAVAILABLE) -> Part:  # noqa: B008
    return "Fault", {"fault": Fault(kind=kind, why="w", usage=usage).model_dump(mode="json"), "seconds": seconds}


def tool(name: str = "read", seconds: float = 0.5) -> Part:
    result = ToolResult(call_id="call-1", name=name, text="secret words")
    return "ToolResult", {"result": result.model_dump(mode="json"), "seconds": seconds}


REPAIR: Part = ("Repair", {})
OUTPUT: Part = ("Output", {})


def dispatch(occasion: DispatchKey, *parts: Part) -> list[LedgerRow]:
    begun: Part = ("Dispatch", {"occasion": occasion.model_dump(mode="json")})
    return [
        MessageRow(
            message_id=f"{occasion.run_id}/{occasion.id}#{number}",
            run_id=occasion.run_id,
            sender="engine",
            recipient=occasion.agent,
            type=type,
            payload={"dispatch": occasion.id, **payload},
        )
        for number, (type, payload) in enumerate((begun, *parts))
    ]


def step(run_id: str, name: str, agent: str, start: int, end: int | None = None, retry: int = 0) -> list[LedgerRow]:
    """So many seconds after the beginning; without an end it was cut off."""
    row = TelemetryRow(run_id=run_id, step=name, agent=agent, started_at=_at(start), retry_count=retry)
    if end is None:
        return [row]
    return [row, row.model_copy(update={"completed_at": _at(end), "status": StepStatus.DONE})]


def _at(seconds: int) -> str:
    return (START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


def check(run_id: str, name: str, duration_ms: int | None, reused_from: int | None = None) -> CheckRow:
    return CheckRow(
        run_id=run_id,
        task_id="task-01",
        phase=Phase.AFTER,
        check_name=name,
        tool="pytest",
        output_snippet="",
        state=Verdict.PASS,
        duration_ms=duration_ms,
        reused_from=reused_from,
    )


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
