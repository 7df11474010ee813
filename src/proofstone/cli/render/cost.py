"""What a run has cost, as a person reads it: in all, by step, by agent and model. What nobody knows is `unknown`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from proofstone.agents.rules.budget import dollars
from proofstone.cli.render.tables import print_table
from proofstone.common.text import counted, printable
from proofstone.telemetry.models import AgentCost, Cost, PartCost, RunCost, StepCost, VerificationCost

if TYPE_CHECKING:
    from rich.console import Console


_UNKNOWN: Final = "unknown"
_MORE: Final = "+?"
"""After what is known of a figure."""
_A_MINUTE: Final = 60
_FIGURES: Final = ("asked", "retries", "at work", "tokens in", "cached", "out", "cost")
_NO_AGENT: Final = ("", "", "", "", "", "", "")


def print_cost(console: Console, run: RunCost) -> None:
    for line in _head(run):
        _line(console, line)
    if run.total.dispatches or run.total.untold:
        print_table(
            console, "by agent and model", ("agent", "model", *_FIGURES), 2, [_agent(agent) for agent in run.agents]
        )
    if len(run.parts) > 1:
        print_table(console, "by part", ("part", "run", *_FIGURES, "checks"), 2, [_part(part) for part in run.parts])
    print_table(
        console, "by step", ("part", "step", "agent", "took", *_FIGURES), 3, [_step(step) for step in run.steps]
    )


def _head(run: RunCost) -> Iterator[str]:
    state = run.outcome or ("under way" if run.running else "not finished")
    yield f"run {run.run_id} of `proofstone {run.command or '?'}`: {state}"
    yield from _asked(run)
    time = [f"{_time(run.worked_seconds)} by the clock"]
    if run.total.requests or run.total.tool_calls:
        time.append(f"agents at work {_time(run.total.seconds)}")
    time.append(_checks(run))
    yield f"time: {', '.join(time)}"
    if run.verification is not None:
        yield _verification(run.verification)
    yield from _unknown(run.total)


def _asked(run: RunCost) -> Iterator[str]:
    total = run.total
    if not total.dispatches:
        untold = " but a program that tells nothing of itself" if total.untold else ""
        yield f"no agent was asked{untold}"
        return
    at_the_gate = f", and {run.plan_gate_dispatches:,} at the plan gate" if run.plan_gate_dispatches else ""
    yield f"{run.dispatches:,} dispatch{'' if run.dispatches == 1 else 'es'}{at_the_gate}"
    given, cached, returned, money = _usage(total)
    yield (
        f"cost: {money}; tokens in {given} (cached {cached}), out {returned}; "
        f"{counted(total.requests, 'model call')}, {counted(total.tool_calls, 'tool call')}, retries {total.retries:,}"
    )


def _verification(one: VerificationCost) -> str:
    """Of all that, what went into asking agents whether they know what they are doing."""
    given, _, returned, money = _usage(one.cost)
    calls = f"{counted(one.cost.requests, 'model call')}{_of_all(one.share_of_calls)}"
    tokens = f"tokens in {given}, out {returned}{_of_all(one.share_of_tokens)}"
    asked = f"{counted(one.questions, 'question')}, {counted(one.judgements, 'judgement')}"
    return f"of that, on understanding: {asked}; {money}; {tokens}; {calls}"


def _of_all(share: float | None) -> str:
    return "" if share is None else f" ({share:.0%} of all)"


def _checks(run: RunCost) -> str:
    checks = run.checks
    if checks.seconds is None:
        return f"checks {_UNKNOWN}"
    if not checks.runs and not checks.reused:
        return "no check was run"
    reused = f", {checks.reused:,} taken over" if checks.reused else ""
    return f"checks {_time(checks.seconds)} ({checks.runs:,} run{reused})"


def _unknown(total: Cost) -> Iterator[str]:
    """What the figures leave out."""
    if total.unpriced:
        yield f"not known: the price of {counted(total.unpriced, 'model call')}"
    if total.unmeasured:
        yield f"not known: how many tokens {counted(total.unmeasured, 'model call')} took"
    if total.untold:
        yield f"not known: what {counted(total.untold, 'step')} of a program (`cmd:`) used, which tells nothing of it"


# The tables.


def _agent(one: AgentCost) -> list[str]:
    return [one.role, one.model or _UNKNOWN, *_figures(one.cost)]


def _part(one: PartCost) -> list[str]:
    checks = "" if one.checks.seconds is None or not one.checks.runs else _time(one.checks.seconds)
    return [one.part or one.command, one.run_id, *_figures(one.cost), checks]


def _step(one: StepCost) -> list[str]:
    agent = f"{one.agent}:{one.instance}" if one.instance else one.agent
    took = "" if one.wall_seconds is None else _time(one.wall_seconds)
    return [one.part, one.step, agent, took, *_figures(one.cost)]


def _figures(cost: Cost) -> Sequence[str]:
    if not cost.dispatches and not cost.untold:
        return _NO_AGENT
    given, cached, returned, money = _usage(cost)
    return (
        f"{cost.dispatches:,}",
        f"{cost.retries:,}",
        _time(cost.seconds) if cost.dispatches else _UNKNOWN,
        given,
        cached,
        returned,
        money,
    )


def _usage(cost: Cost) -> tuple[str, str, str, str]:
    """Tokens in, those of them from a cache, tokens out, money."""
    uncounted, unpriced = cost.unmeasured or cost.untold, cost.unpriced or cost.untold
    counts = (cost.input_tokens, cost.cache_read_tokens, cost.output_tokens)
    given, cached, returned = (_known(None if count is None else f"{count:,}", uncounted) for count in counts)
    return given, cached, returned, _known(None if cost.usd is None else dollars(cost.usd), unpriced)


def _known(figure: str | None, missing: int) -> str:
    if figure is None:
        return _UNKNOWN
    return f"{figure}{_MORE}" if missing else figure


def _time(seconds: float) -> str:
    if seconds < _A_MINUTE:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), _A_MINUTE)
    return f"{minutes:,} min {rest} s"


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(printable(text), style=style, soft_wrap=True)
