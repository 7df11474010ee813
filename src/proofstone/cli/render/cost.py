"""Print what a run has cost: in total, by step, and by agent and model. What nobody reported is `unknown`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from proofstone.agents.rules.budget import format_dollars
from proofstone.cli.render.tables import print_table
from proofstone.common.text import escape_control, pluralize
from proofstone.telemetry.models import AgentCost, Cost, PartCost, RunCost, StepCost, VerificationCost

if TYPE_CHECKING:
    from rich.console import Console


_UNKNOWN: Final = "unknown"
_PARTIAL_MARK: Final = "+?"
"""Follows a figure that is known only in part."""
_MINUTE_SECONDS: Final = 60
_FIGURES: Final = ("asked", "retries", "at work", "tokens in", "cached", "out", "cost")
_NO_AGENT: Final = ("", "", "", "", "", "", "")


def print_cost(console: Console, run: RunCost) -> None:
    """Print the summary and the tables."""
    for line in _summary_lines(run):
        _print_line(console, line)
    if run.total.dispatches or run.total.untold:
        print_table(
            console, "by agent and model", ("agent", "model", *_FIGURES), 2, [_agent_row(agent) for agent in run.agents]
        )
    if len(run.parts) > 1:
        print_table(
            console, "by part", ("part", "run", *_FIGURES, "checks"), 2, [_part_row(part) for part in run.parts]
        )
    print_table(
        console, "by step", ("part", "step", "agent", "took", *_FIGURES), 3, [_step_row(step) for step in run.steps]
    )


def _summary_lines(run: RunCost) -> Iterator[str]:
    state = run.outcome or ("under way" if run.running else "not finished")
    yield f"run {run.run_id} of `proofstone {run.command or '?'}`: {state}"
    yield from _dispatch_lines(run)
    time = [f"{_format_time(run.worked_seconds)} by the clock"]
    if run.total.requests or run.total.tool_calls:
        time.append(f"agents at work {_format_time(run.total.seconds)}")
    time.append(_describe_checks(run))
    yield f"time: {', '.join(time)}"
    if run.verification is not None:
        yield _describe_verification(run.verification)
    yield from _unknown_lines(run.total)


def _dispatch_lines(run: RunCost) -> Iterator[str]:
    total = run.total
    if not total.dispatches:
        exception = " except a program that reports no usage" if total.untold else ""
        yield f"no agent was asked{exception}"
        return
    at_plan_gate = f", and {run.plan_gate_dispatches:,} at the plan gate" if run.plan_gate_dispatches else ""
    yield f"{run.dispatches:,} dispatch{'' if run.dispatches == 1 else 'es'}{at_plan_gate}"
    tokens_in, cached, tokens_out, money = _format_usage(total)
    yield (
        f"cost: {money}; tokens in {tokens_in} (cached {cached}), out {tokens_out}; "
        f"{pluralize(total.requests, 'model call')}, {pluralize(total.tool_calls, 'tool call')}, retries "
        f"{total.retries:,}"
    )


def _describe_verification(verification: VerificationCost) -> str:
    """Describe the part of the cost that went into checking whether agents understand their task."""
    tokens_in, _, tokens_out, money = _format_usage(verification.cost)
    calls = f"{pluralize(verification.cost.requests, 'model call')}{_format_share(verification.share_of_calls)}"
    tokens = f"tokens in {tokens_in}, out {tokens_out}{_format_share(verification.share_of_tokens)}"
    questions = f"{pluralize(verification.questions, 'question')}, {pluralize(verification.judgements, 'judgement')}"
    return f"of that, on understanding: {questions}; {money}; {tokens}; {calls}"


def _format_share(share: float | None) -> str:
    return "" if share is None else f" ({share:.0%} of all)"


def _describe_checks(run: RunCost) -> str:
    checks = run.checks
    if checks.seconds is None:
        return f"checks {_UNKNOWN}"
    if not checks.runs and not checks.reused:
        return "no check was run"
    reused = f", {checks.reused:,} taken over" if checks.reused else ""
    return f"checks {_format_time(checks.seconds)} ({checks.runs:,} run{reused})"


def _unknown_lines(total: Cost) -> Iterator[str]:
    """Yield what the figures do not include."""
    if total.unpriced:
        yield f"not known: the price of {pluralize(total.unpriced, 'model call')}"
    if total.unmeasured:
        yield f"not known: how many tokens {pluralize(total.unmeasured, 'model call')} took"
    if total.untold:
        yield (
            f"not known: what {pluralize(total.untold, 'step')} of a program (`cmd:`) used, because it reports no usage"
        )


# The tables.


def _agent_row(agent: AgentCost) -> list[str]:
    return [agent.role, agent.model or _UNKNOWN, *_figures(agent.cost)]


def _part_row(part: PartCost) -> list[str]:
    checks = "" if part.checks.seconds is None or not part.checks.runs else _format_time(part.checks.seconds)
    return [part.part or part.command, part.run_id, *_figures(part.cost), checks]


def _step_row(step: StepCost) -> list[str]:
    agent = f"{step.agent}:{step.instance}" if step.instance else step.agent
    took = "" if step.wall_seconds is None else _format_time(step.wall_seconds)
    return [step.part, step.step, agent, took, *_figures(step.cost)]


def _figures(cost: Cost) -> Sequence[str]:
    if not cost.dispatches and not cost.untold:
        return _NO_AGENT
    tokens_in, cached, tokens_out, money = _format_usage(cost)
    return (
        f"{cost.dispatches:,}",
        f"{cost.retries:,}",
        _format_time(cost.seconds) if cost.dispatches else _UNKNOWN,
        tokens_in,
        cached,
        tokens_out,
        money,
    )


def _format_usage(cost: Cost) -> tuple[str, str, str, str]:
    """Return input tokens, cached input tokens, output tokens and money."""
    uncounted, unpriced = cost.unmeasured or cost.untold, cost.unpriced or cost.untold
    counts = (cost.input_tokens, cost.cache_read_tokens, cost.output_tokens)
    tokens_in, cached, tokens_out = (
        _format_figure(None if count is None else f"{count:,}", uncounted) for count in counts
    )
    return (
        tokens_in,
        cached,
        tokens_out,
        _format_figure(None if cost.usd is None else format_dollars(cost.usd), unpriced),
    )


def _format_figure(figure: str | None, missing: int) -> str:
    if figure is None:
        return _UNKNOWN
    return f"{figure}{_PARTIAL_MARK}" if missing else figure


def _format_time(seconds: float) -> str:
    if seconds < _MINUTE_SECONDS:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), _MINUTE_SECONDS)
    return f"{minutes:,} min {rest} s"


def _print_line(console: Console, text: str, style: str = "") -> None:
    console.print(escape_control(text), style=style, soft_wrap=True)
