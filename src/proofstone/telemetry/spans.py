"""A run as spans, by the GenAI conventions of OpenTelemetry: one trace for the run and all its parts.

    invoke_workflow run                    the run, and below it each part of it
    ├── invoke_agent researcher:impact     a dispatch
    │   ├── chat gpt-5                     a call of a model
    │   └── execute_tool read              a call of a tool
    ├── invoke_workflow gate
    │   ├── invoke_agent executor
    │   └── check task-01/a1               what the engine checks itself
    …

Everything comes from the ledger: times as they were recorded, ids from the run's id and the rows' hashes, so that the
same run gives the same spans however often it is exported. Nothing of what was asked, said, read or written is in them,
no path, and no name that an agent has made up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from proofstone.common.models import Spent
from proofstone.ledger import Ledger
from proofstone.ledger.models import StepStatus, TelemetryRow
from proofstone.ledger.schema import R, Stored
from proofstone.telemetry.dispatches import GATE, Call, CallKind, Dispatch, Part, parts_of
from proofstone.telemetry.models import Span, SpanKind

Attributes = dict[str, str | int | float | bool | tuple[str, ...]]

_CONVENTIONAL: Final = {
    "google": "gcp.gemini",
    "vertex": "gcp.vertex_ai",
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""Providers that the conventions call otherwise than we do."""
_WITH_PLACES: Final = ("script", "cmd")
"""Kinds of agents whose names hold a path or a command of the person's machine."""
_PROGRAMS: Final = ("cli", "acp")
_UNKNOWN: Final = "_OTHER"
"""As the conventions call what they have no word for."""
ABOUT: Final = "telemetry."
"""Events about the export itself: they are no part of the run, or exporting it would make it longer."""
_CHECK: Final = "/check"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def spans_of(ledger: Ledger, run_id: str) -> list[Span]:
    """The run's own first; whatever is below another comes after it."""
    parts = parts_of(ledger, run_id)
    trace = _id(f"proofstone run {run_id}", 32)
    own, spans = _workflow(parts[0], trace), list[Span]()
    for part in parts:
        above = own if part is parts[0] else _workflow(part, trace, own.span_id)
        spans += [above, *(span for dispatch in part.dispatches for span in _dispatch(dispatch, above))]
        if part.command == GATE:
            spans += _checks(part, above)
    # Parts go on while the run itself writes nothing.
    last = max(spans, key=lambda span: span.end_ns)
    spans[0] = own.model_copy(update={"end_ns": last.end_ns, "seq": max(span.seq for span in spans)})
    return spans


def _workflow(part: Part, trace: str, parent: str = "") -> Span:
    events = [event for event in part.events if not event.row.type.startswith(ABOUT)]
    marks = [*_marks(events), *_marks(part.messages), *_marks(part.checks), *_marks(part.steps)]
    (_, begun, hash), (seq, _, _) = min(marks), max(marks)
    attributes: Attributes = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": part.command or "run",
        "proofstone.run.id": part.run_id,
    }
    if part.outcome:
        attributes["proofstone.run.outcome"] = part.outcome
    if part.name:
        attributes["proofstone.part"] = part.name
    return Span(
        trace_id=trace,
        span_id=_id(hash, 16),
        parent_id=parent,
        name=f"invoke_workflow {part.command or 'run'}",
        start_ns=_ns(_time(begun)),
        end_ns=_ns(max(_time(at) for _, at, _ in marks)),
        attributes=attributes,
        error=part.outcome if part.outcome in ("failed", "halted", "budget_exhausted") else "",
        seq=seq,
    )


def _marks(rows: Iterable[Stored[R]]) -> Iterator[tuple[int, str, str]]:
    return ((row.seq, row.ts, row.link.hash) for row in rows)


def _dispatch(one: Dispatch, above: Span) -> Iterator[Span]:
    said = one.occasion
    total = sum((call.spent for call in one.calls), Spent())
    measured = not any(call.unmeasured for call in one.calls)
    attributes: Attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": said.agent,
        "gen_ai.conversation.id": f"{said.run_id}/{one.id}",
        **_model(one.model),
        **(_tokens(total.input_tokens, total.output_tokens, total.cache_read_tokens) if measured else {}),
        "proofstone.step": said.step,
        "proofstone.dispatch": said.dispatch,
        "proofstone.attempt": said.attempt,
        "proofstone.retries": one.retries,
    }
    if said.task:
        attributes["proofstone.task"] = said.task
    if not total.unpriced:
        attributes["proofstone.usage.usd"] = round(total.usd, 6)
    span = Span(
        trace_id=above.trace_id,
        span_id=_id(one.begun.hash, 16),
        parent_id=above.span_id,
        name=f"invoke_agent {said.agent}",
        start_ns=_ns(one.begun.at),
        end_ns=_ns(one.last.at),
        attributes=attributes,
        error=one.fault,
        seq=one.last.seq,
    )
    yield span
    yield from (_call(call, span) for call in one.calls if call.is_made)


def _call(call: Call, above: Span) -> Span:
    is_tool = call.kind is CallKind.TOOL
    model = _model(call.model)
    called = call.tool if is_tool else str(model.get("gen_ai.request.model", ""))
    return Span(
        trace_id=above.trace_id,
        span_id=_id(call.written.hash, 16),
        parent_id=above.span_id,
        name=f"{'execute_tool' if is_tool else 'chat'} {called}".rstrip(),
        kind=SpanKind.INTERNAL if is_tool else SpanKind.CLIENT,
        # What was measured and what was written down are two clocks: no call begins before its dispatch.
        start_ns=max(above.start_ns, _ns(call.began)),
        end_ns=_ns(call.written.at),
        attributes=_of_tool(call) if is_tool else {**_of_chat(call), **model},
        error=call.error,
        seq=call.written.seq,
    )


def _of_tool(call: Call) -> Attributes:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.tool,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call.id,
    }


def _of_chat(call: Call) -> Attributes:
    usage = call.usage
    found: Attributes = {"gen_ai.operation.name": "chat"}
    if not call.unmeasured:
        found |= _tokens(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)
    if usage.usd is not None:
        found["proofstone.usage.usd"] = round(usage.usd, 6)
    if call.ended:
        found["gen_ai.response.finish_reasons"] = (call.ended,)
    return found


def _tokens(given: int, returned: int, cached: int) -> Attributes:
    return {
        "gen_ai.usage.input_tokens": given,
        "gen_ai.usage.output_tokens": returned,
        "gen_ai.usage.cache_read.input_tokens": cached,
    }


def _model(called: str) -> Attributes:
    """`openai:gpt-5` is a model of a provider, `cli:claude` a program; a model alone names no provider."""
    if not called:
        return {"gen_ai.provider.name": _UNKNOWN}
    provider, colon, model = called.partition(":")
    if provider in _PROGRAMS:
        provider, _, model = model.partition(":")
    elif provider in _WITH_PLACES:
        model = ""
    elif not colon:
        provider, model = _UNKNOWN, called
    model = model or provider
    return {
        "gen_ai.provider.name": _CONVENTIONAL.get(provider, provider),
        "gen_ai.request.model": model,
        "gen_ai.response.model": model,
    }


def _checks(part: Part, above: Span) -> Iterator[Span]:
    """The steps that the engine takes itself; they have two rows, and one that has not ended has one."""
    begun: dict[tuple[str, str], tuple[TelemetryRow, str]] = {}
    for stored in part.steps:
        row = stored.row
        key = (row.step, row.started_at)
        if not row.step.endswith(_CHECK):
            continue
        if row.completed_at is None:
            begun[key] = (row, stored.link.hash)
        elif key in begun:
            yield _check(row, begun[key][1], stored.seq, above)


def _check(row: TelemetryRow, hash: str, seq: int, above: Span) -> Span:
    task = row.step.removesuffix(_CHECK)
    return Span(
        trace_id=above.trace_id,
        span_id=_id(hash, 16),
        parent_id=above.span_id,
        name=f"check {task}/a{row.retry_count + 1}",
        start_ns=_ns(_time(row.started_at)),
        end_ns=_ns(_time(row.completed_at or row.started_at)),
        attributes={"proofstone.step": row.step, "proofstone.task": task, "proofstone.attempt": row.retry_count + 1},
        error="" if row.status is StepStatus.DONE else row.status.value.lower(),
        seq=seq,
    )


def _id(of: str, digits: int) -> str:
    return hashlib.sha256(of.encode()).hexdigest()[:digits]


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _ns(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1) * 1000
