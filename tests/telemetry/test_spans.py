"""A run as spans: one tree, the words of the GenAI conventions, nothing of what was said, the same each time."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from proofstone.agents.models import DispatchKey, FaultKind
from proofstone.common.models import Usage
from proofstone.ledger.schema import LedgerRow
from proofstone.telemetry.models import Span, SpanKind
from proofstone.telemetry.spans import build_spans
from tests.telemetry.rows import GATE, OUTPUT, RUN, dispatch, event, fault, ledger_with, step, tool, turn

PAID = Usage(requests=1, input_tokens=900, output_tokens=100, cache_read_tokens=300, usd=0.02)
PLANNER = DispatchKey(run_id=RUN, role="planner", step="plan/i1p1")
EXECUTOR = DispatchKey(run_id=GATE, role="executor", step="task-01/a1", task="task-01")


def a_run() -> list[LedgerRow]:
    return [
        event(RUN, "run.started", command="run"),
        *dispatch(PLANNER, fault(PAID), turn(PAID), tool(), turn(PAID, model="anthropic:claude-x"), OUTPUT),
        event(RUN, "run.child", run_id=GATE, kind="gate", iteration=1),
        event(GATE, "run.started", command="gate"),
        *dispatch(EXECUTOR, turn(Usage(requests=1, usd=None)), fault(kind=FaultKind.TIMEOUT)),
        *step(GATE, "task-01/check", "engine", 9, 11),
        event(GATE, "run.finished", outcome="failed"),
        event(RUN, "run.finished", outcome="failed"),
    ]


def spans(path: Path, *rows: LedgerRow) -> list[Span]:
    with closing(ledger_with(path / "ledger.db", *rows)) as ledger:
        return build_spans(ledger, RUN)


def test_the_run_its_parts_dispatches_and_calls_are_one_tree(tmp_path: Path) -> None:
    found = spans(tmp_path, *a_run())
    name = {span.span_id: span.name for span in found}
    assert [(span.name, name.get(span.parent_id, "")) for span in found] == [
        ("invoke_workflow run", ""),
        ("invoke_agent planner", "invoke_workflow run"),
        ("chat", "invoke_agent planner"),
        ("chat gpt-5", "invoke_agent planner"),
        ("execute_tool read", "invoke_agent planner"),
        ("chat claude-x", "invoke_agent planner"),
        ("invoke_workflow gate", "invoke_workflow run"),
        ("invoke_agent executor", "invoke_workflow gate"),
        ("chat gpt-5", "invoke_agent executor"),
        ("chat gpt-5", "invoke_agent executor"),
        ("check task-01/a1", "invoke_workflow gate"),
    ]
    assert len(name) == len(found) and len({span.trace_id for span in found}) == 1
    by_id = {span.span_id: span for span in found}
    for span in found:
        above = by_id.get(span.parent_id, span)
        assert above.start_ns <= span.start_ns <= span.end_ns <= above.end_ns or span.name.startswith("check")


def test_calls_carry_what_the_conventions_ask_for(tmp_path: Path) -> None:
    _, planner, failed, chat, called, _, gate, executor, silent, cut, _ = spans(tmp_path, *a_run())
    assert (
        planner.attributes.items()
        >= {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "planner",
            "gen_ai.provider.name": "anthropic",
            "gen_ai.request.model": "claude-x",
            "gen_ai.usage.input_tokens": 2700,
            "gen_ai.usage.output_tokens": 300,
            "proofstone.usage.usd": 0.06,
            "proofstone.retries": 1,
            "proofstone.step": "plan/i1p1",
        }.items()
    )
    assert chat.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.response.model": "gpt-5",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 900,
        "gen_ai.usage.output_tokens": 100,
        "gen_ai.usage.cache_read.input_tokens": 300,
        "proofstone.usage.usd": 0.02,
    }
    assert called.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call-1",
    }
    assert (chat.kind, failed.kind, called.kind, planner.kind) == (
        SpanKind.CLIENT,
        SpanKind.CLIENT,
        SpanKind.INTERNAL,
        SpanKind.INTERNAL,
    )
    assert (failed.error, planner.error, cut.error, executor.error, gate.error) == (
        "unavailable",
        "",
        "timeout",
        "timeout",
        "failed",
    )
    assert not [name for name in silent.attributes if "usage" in name], "what nobody has told is not 0"
    assert not [name for name in executor.attributes if "usage" in name]


@pytest.mark.parametrize(
    ("called", "provider", "model"),
    [
        ("openai:gpt-5", "openai", "gpt-5"),
        ("google:gemini-3", "gcp.gemini", "gemini-3"),
        ("bedrock:anthropic.claude:1", "aws.bedrock", "anthropic.claude:1"),
        ("cli:claude", "claude", "claude"),
        ("cli:codex:gpt-5", "codex", "gpt-5"),
        ("script:/somewhere/secret.yaml", "script", "script"),
        ("cmd:./agent --key 1", "cmd", "cmd"),
        ("claude-sonnet", "_OTHER", "claude-sonnet"),
    ],
)
def test_who_was_called_is_told_in_the_words_of_the_conventions_and_without_a_path(
    tmp_path: Path, called: str, provider: str, model: str
) -> None:
    rows = [event(RUN, "run.started", command="run"), *dispatch(PLANNER, turn(PAID, model=called), OUTPUT)]
    said = spans(tmp_path, *rows)[2].attributes
    assert (said["gen_ai.provider.name"], said["gen_ai.request.model"]) == (provider, model)


def test_nothing_of_what_was_said_is_in_them(tmp_path: Path) -> None:
    text = " ".join(span.model_dump_json() for span in spans(tmp_path, *a_run()))
    assert "secret words" not in text


def test_the_same_run_gives_the_same_spans_also_after_it_was_exported(tmp_path: Path) -> None:
    once = spans(tmp_path, *a_run())
    more: Mapping[str, str] = {"collector": "localhost", "reason": "down"}
    with closing(ledger_with(tmp_path / "ledger.db", event(RUN, "telemetry.failed", **more))) as ledger:
        assert build_spans(ledger, RUN) == once
