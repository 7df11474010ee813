"""A run as spans, by the GenAI conventions of OpenTelemetry: one trace for the run and all its parts.

    invoke_workflow run                    the run, and below it each of its parts
    ├── invoke_agent researcher:impact     a dispatch
    │   ├── chat gpt-5                     a call of a model
    │   └── execute_tool read              a call of a tool
    ├── invoke_workflow gate
    │   ├── invoke_agent executor
    │   └── check task-01/a1               a check by the engine itself
    …

Everything comes from the ledger: the recorded times, and ids made from the run's id and the hashes of rows, so that
every export of a run gives the same spans. They contain no prompts, answers, file contents or paths, and no name that
an agent made up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from proofstone.common.models import BudgetUsage
from proofstone.ledger import Ledger
from proofstone.ledger.models import StepStatus, TelemetryRow
from proofstone.ledger.schema import RowT, StoredRow
from proofstone.telemetry.dispatches import GATE_COMMAND, CallKind, ModelCall, RecordedDispatch, RunPart, read_run_parts
from proofstone.telemetry.models import Span, SpanKind

SpanAttributes = dict[str, str | int | float | bool | tuple[str, ...]]

_PROVIDER_NAMES: Final = {
    "google": "gcp.gemini",
    "vertex": "gcp.vertex_ai",
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""The providers whose names in the conventions differ from ours."""
_LOCAL_KINDS: Final = ("script", "cmd")
"""The kinds of agents whose names contain a path or a command of the user's machine."""
_PROGRAM_KINDS: Final = ("cli", "acp")
_OTHER_PROVIDER: Final = "_OTHER"
"""The name in the conventions for everything unnamed."""
EXPORT_EVENT_PREFIX: Final = "telemetry."
"""The prefix of events about the export itself. They are not part of the run, or each export would make it longer."""
_CHECK_SUFFIX: Final = "/check"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def build_spans(ledger: Ledger, run_id: str) -> list[Span]:
    """Return the span of the run first; every span comes after its parent."""
    parts = read_run_parts(ledger, run_id)
    trace = _make_id(f"proofstone run {run_id}", 32)
    root, spans = _workflow_span(parts[0], trace), list[Span]()
    for part in parts:
        workflow = root if part is parts[0] else _workflow_span(part, trace, root.span_id)
        spans += [workflow, *(span for dispatch in part.dispatches for span in _dispatch_spans(dispatch, workflow))]
        if part.command == GATE_COMMAND:
            spans += _check_spans(part, workflow)
    # Parts may continue while the run itself writes nothing.
    last = max(spans, key=lambda span: span.end_ns)
    spans[0] = root.model_copy(update={"end_ns": last.end_ns, "seq": max(span.seq for span in spans)})
    return spans


def _workflow_span(part: RunPart, trace: str, parent: str = "") -> Span:
    events = [event for event in part.events if not event.row.type.startswith(EXPORT_EVENT_PREFIX)]
    marks = [*_row_marks(events), *_row_marks(part.messages), *_row_marks(part.checks), *_row_marks(part.steps)]
    (_, start, hash), (seq, _, _) = min(marks), max(marks)
    attributes: SpanAttributes = {
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
        span_id=_make_id(hash, 16),
        parent_id=parent,
        name=f"invoke_workflow {part.command or 'run'}",
        start_ns=_to_ns(_parse_time(start)),
        end_ns=_to_ns(max(_parse_time(at) for _, at, _ in marks)),
        attributes=attributes,
        error=part.outcome if part.outcome in ("failed", "halted", "budget_exhausted") else "",
        seq=seq,
    )


def _row_marks(rows: Iterable[StoredRow[RowT]]) -> Iterator[tuple[int, str, str]]:
    return ((row.seq, row.ts, row.link.hash) for row in rows)


def _dispatch_spans(dispatch: RecordedDispatch, parent: Span) -> Iterator[Span]:
    occasion = dispatch.occasion
    total = sum((call.spent for call in dispatch.calls), BudgetUsage())
    is_measured = not any(call.unmeasured_requests for call in dispatch.calls)
    attributes: SpanAttributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": occasion.agent,
        "gen_ai.conversation.id": f"{occasion.run_id}/{dispatch.id}",
        **_model_attributes(dispatch.model),
        **(_token_attributes(total.input_tokens, total.output_tokens, total.cache_read_tokens) if is_measured else {}),
        "proofstone.step": occasion.step,
        "proofstone.dispatch": occasion.dispatch,
        "proofstone.attempt": occasion.attempt,
        "proofstone.retries": dispatch.retries,
    }
    if occasion.task:
        attributes["proofstone.task"] = occasion.task
    if not total.unpriced:
        attributes["proofstone.usage.usd"] = round(total.usd, 6)
    span = Span(
        trace_id=parent.trace_id,
        span_id=_make_id(dispatch.first.hash, 16),
        parent_id=parent.span_id,
        name=f"invoke_agent {occasion.agent}",
        start_ns=_to_ns(dispatch.first.at),
        end_ns=_to_ns(dispatch.last.at),
        attributes=attributes,
        error=dispatch.fault,
        seq=dispatch.last.seq,
    )
    yield span
    yield from (_call_span(call, span) for call in dispatch.calls if call.was_made)


def _call_span(call: ModelCall, parent: Span) -> Span:
    is_tool = call.kind is CallKind.TOOL
    model = _model_attributes(call.model)
    target = call.tool if is_tool else str(model.get("gen_ai.request.model", ""))
    return Span(
        trace_id=parent.trace_id,
        span_id=_make_id(call.row_mark.hash, 16),
        parent_id=parent.span_id,
        name=f"{'execute_tool' if is_tool else 'chat'} {target}".rstrip(),
        kind=SpanKind.INTERNAL if is_tool else SpanKind.CLIENT,
        # The measured and the recorded time come from two clocks: no call may start before its dispatch.
        start_ns=max(parent.start_ns, _to_ns(call.started_at)),
        end_ns=_to_ns(call.row_mark.at),
        attributes=_tool_attributes(call) if is_tool else {**_chat_attributes(call), **model},
        error=call.error,
        seq=call.row_mark.seq,
    )


def _tool_attributes(call: ModelCall) -> SpanAttributes:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.tool,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call.id,
    }


def _chat_attributes(call: ModelCall) -> SpanAttributes:
    usage = call.usage
    attributes: SpanAttributes = {"gen_ai.operation.name": "chat"}
    if not call.unmeasured_requests:
        attributes |= _token_attributes(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)
    if usage.usd is not None:
        attributes["proofstone.usage.usd"] = round(usage.usd, 6)
    if call.finish_reason:
        attributes["gen_ai.response.finish_reasons"] = (call.finish_reason,)
    return attributes


def _token_attributes(sent: int, returned: int, cached: int) -> SpanAttributes:
    return {
        "gen_ai.usage.input_tokens": sent,
        "gen_ai.usage.output_tokens": returned,
        "gen_ai.usage.cache_read.input_tokens": cached,
    }


def _model_attributes(name: str) -> SpanAttributes:
    """Return the attributes of a model. `openai:gpt-5` is a model of a provider, `cli:claude` a program; a bare model
    names no provider.
    """
    if not name:
        return {"gen_ai.provider.name": _OTHER_PROVIDER}
    provider, colon, model = name.partition(":")
    if provider in _PROGRAM_KINDS:
        provider, _, model = model.partition(":")
    elif provider in _LOCAL_KINDS:
        model = ""
    elif not colon:
        provider, model = _OTHER_PROVIDER, name
    model = model or provider
    return {
        "gen_ai.provider.name": _PROVIDER_NAMES.get(provider, provider),
        "gen_ai.request.model": model,
        "gen_ai.response.model": model,
    }


def _check_spans(part: RunPart, parent: Span) -> Iterator[Span]:
    """Yield the spans of the engine's own checks. A step has two rows; a step that has not ended has one and no
    span.
    """
    started: dict[tuple[str, str], tuple[TelemetryRow, str]] = {}
    for stored in part.steps:
        row = stored.row
        key = (row.step, row.started_at)
        if not row.step.endswith(_CHECK_SUFFIX):
            continue
        if row.completed_at is None:
            started[key] = (row, stored.link.hash)
        elif key in started:
            yield _check_span(row, started[key][1], stored.seq, parent)


def _check_span(row: TelemetryRow, hash: str, seq: int, parent: Span) -> Span:
    task = row.step.removesuffix(_CHECK_SUFFIX)
    return Span(
        trace_id=parent.trace_id,
        span_id=_make_id(hash, 16),
        parent_id=parent.span_id,
        name=f"check {task}/a{row.retry_count + 1}",
        start_ns=_to_ns(_parse_time(row.started_at)),
        end_ns=_to_ns(_parse_time(row.completed_at or row.started_at)),
        attributes={"proofstone.step": row.step, "proofstone.task": task, "proofstone.attempt": row.retry_count + 1},
        error="" if row.status is StepStatus.DONE else row.status.value.lower(),
        seq=seq,
    )


def _make_id(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def _parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _to_ns(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(microseconds=1) * 1000
