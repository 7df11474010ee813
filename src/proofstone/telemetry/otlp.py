"""Spans over OTLP, with OpenTelemetry's own exporter: headers, certificates and compression are as its variables in the
environment say. It is an extra that need not be installed, so it is imported where it is used.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from proofstone import __version__
from proofstone.telemetry.models import Span, SpanKind

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext


INSTALL: Final = "pip install 'proofstone[otel]'"
_EXPORTER: Final = "opentelemetry.exporter.otlp.proto.http"
_AT_ONCE: Final = 512
"""Spans in one request."""
_MOST: Final = 400
"""Characters of a complaint."""
_LEEWAY: Final = 1.0
"""Seconds beyond the limit until an exporter that does not keep it is left behind."""


def is_installed() -> bool:
    try:
        return find_spec(_EXPORTER) is not None
    except ModuleNotFoundError:  # not even what is above it
        return False


def send(spans: Sequence[Span], url: str, seconds: float) -> str:
    """Why they could not be sent; empty: they were. It takes no longer than that, whatever the other side does."""
    came: list[str] = []

    def attempt() -> None:
        try:
            came.append(_send(spans, url, seconds))
        except Exception as error:  # noqa: BLE001  somebody else's code: whatever it raises is why nothing was sent
            came.append(f"{type(error).__name__}: {error}")

    # A thread, because a collector that answers byte by byte keeps within every time-out of a socket.
    sending = threading.Thread(target=attempt, daemon=True)
    sending.start()
    sending.join(seconds + _LEEWAY)
    return came[0] if came else f"it was not sent within {seconds:g} s"


def _send(spans: Sequence[Span], url: str, seconds: float) -> str:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    until, resource = time.monotonic() + seconds, _resource()
    with _complaints() as heard, ExitStack() as stack:
        for start in range(0, len(spans), _AT_ONCE):
            left = until - time.monotonic()
            if left <= 0:
                return f"only {start} of {len(spans)} spans were taken in {seconds:g} s"
            exporter = OTLPSpanExporter(endpoint=url, timeout=left)
            stack.callback(exporter.shutdown)
            result = exporter.export([_readable(span, resource) for span in spans[start : start + _AT_ONCE]])
            if result is not SpanExportResult.SUCCESS:
                return _why(heard)
    return ""


def _why(heard: Sequence[str]) -> str:
    """The exporter's own words, which may name no reason: the first is about the trouble, the last about what came of
    it. A server may have had a hand in them."""
    said = "; ".join(dict.fromkeys((heard[0], heard[-1]))) if heard else "it does not say why"
    return f"it cannot be reached, or does not take them in time: {said}"[:_MOST]


def _resource() -> Resource:
    """What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say goes before ours."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    own = Resource({"service.name": "proofstone", "service.version": __version__})
    return own.merge(OTELResourceDetector().detect())


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """The exporter says why it fails to its log alone; nothing of that goes to the person's terminal."""
    heard: list[str] = []

    class Hearing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    logger, hearing = logging.getLogger(_EXPORTER), Hearing(logging.WARNING)
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(hearing)
    try:
        yield heard
    finally:
        logger.removeHandler(hearing)
        logger.propagate = propagated


def _readable(span: Span, resource: Resource) -> ReadableSpan:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanKind as Kind
    from opentelemetry.trace import Status, StatusCode

    attributes = {**span.attributes, **({"error.type": span.error} if span.error else {})}
    return ReadableSpan(
        name=span.name,
        context=_context(span.trace_id, span.span_id),
        parent=_context(span.trace_id, span.parent_id) if span.parent_id else None,
        resource=resource,
        attributes=attributes,
        kind=Kind.CLIENT if span.kind is SpanKind.CLIENT else Kind.INTERNAL,
        status=Status(StatusCode.ERROR) if span.error else Status(StatusCode.UNSET),
        start_time=span.start_ns,
        end_time=span.end_ns,
        instrumentation_scope=InstrumentationScope("proofstone", __version__),
    )


def _context(trace_id: str, span_id: str) -> SpanContext:
    from opentelemetry.trace import SpanContext, TraceFlags

    return SpanContext(
        trace_id=int(trace_id, 16),
        span_id=int(span_id, 16),
        is_remote=False,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
