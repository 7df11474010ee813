"""Send spans over OTLP, with OpenTelemetry's own exporter, which reads headers, certificates and compression from its
environment variables. It is an optional dependency, so it is imported where it is used.
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


INSTALL_COMMAND: Final = "pip install 'proofstone[otel]'"
_EXPORTER: Final = "opentelemetry.exporter.otlp.proto.http"
_BATCH_SIZE: Final = 512
"""The number of spans in one request."""
_MAX_MESSAGE: Final = 400
"""The maximum length of an error message, in characters."""
_GRACE_SECONDS: Final = 1.0
"""Seconds beyond the limit until an exporter that ignores its limit is abandoned."""


def is_installed() -> bool:
    try:
        return find_spec(_EXPORTER) is not None
    except ModuleNotFoundError:  # not even the parent package exists
        return False


def send_spans(spans: Sequence[Span], url: str, seconds: float) -> str:
    """Send the spans. Return the reason if that fails, otherwise an empty string. It never takes longer than
    `seconds`.
    """
    results: list[str] = []

    def attempt() -> None:
        try:
            results.append(_send_batches(spans, url, seconds))
        except Exception as error:  # noqa: BLE001  third-party code: any exception is the reason
            results.append(f"{type(error).__name__}: {error}")

    # Use a thread, because a collector that answers byte by byte stays within every socket timeout.
    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(seconds + _GRACE_SECONDS)
    return results[0] if results else f"the spans were not sent within {seconds:g} s"


def _send_batches(spans: Sequence[Span], url: str, seconds: float) -> str:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    deadline, resource = time.monotonic() + seconds, _build_resource()
    with _captured_log() as messages, ExitStack() as stack:
        for start in range(0, len(spans), _BATCH_SIZE):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return f"the collector accepted only {start} of {len(spans)} spans in {seconds:g} s"
            exporter = OTLPSpanExporter(endpoint=url, timeout=remaining)
            stack.callback(exporter.shutdown)
            result = exporter.export([_to_readable_span(span, resource) for span in spans[start : start + _BATCH_SIZE]])
            if result is not SpanExportResult.SUCCESS:
                return _explain_failure(messages)
    return ""


def _explain_failure(messages: Sequence[str]) -> str:
    """Return the exporter's own messages, which may name no reason: the first is about the cause, the last about the
    result. A server may have influenced them.
    """
    details = "; ".join(dict.fromkeys((messages[0], messages[-1]))) if messages else "no reason was given"
    return f"the collector cannot be reached, or is too slow: {details}"[:_MAX_MESSAGE]


def _build_resource() -> Resource:
    """Return the resource. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence over our values."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    own = Resource({"service.name": "proofstone", "service.version": __version__})
    return own.merge(OTELResourceDetector().detect())


@contextmanager
def _captured_log() -> Iterator[list[str]]:
    """Collect the log messages of the exporter, its only report of errors, and keep them off the user's terminal."""
    messages: list[str] = []

    class ListHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    logger, handler = logging.getLogger(_EXPORTER), ListHandler(logging.WARNING)
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield messages
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated


def _to_readable_span(span: Span, resource: Resource) -> ReadableSpan:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanKind as Kind
    from opentelemetry.trace import Status, StatusCode

    attributes = {**span.attributes, **({"error.type": span.error} if span.error else {})}
    return ReadableSpan(
        name=span.name,
        context=_span_context(span.trace_id, span.span_id),
        parent=_span_context(span.trace_id, span.parent_id) if span.parent_id else None,
        resource=resource,
        attributes=attributes,
        kind=Kind.CLIENT if span.kind is SpanKind.CLIENT else Kind.INTERNAL,
        status=Status(StatusCode.ERROR) if span.error else Status(StatusCode.UNSET),
        start_time=span.start_ns,
        end_time=span.end_ns,
        instrumentation_scope=InstrumentationScope("proofstone", __version__),
    )


def _span_context(trace_id: str, span_id: str) -> SpanContext:
    from opentelemetry.trace import SpanContext, TraceFlags

    return SpanContext(
        trace_id=int(trace_id, 16),
        span_id=int(span_id, 16),
        is_remote=False,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
