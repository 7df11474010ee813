"""When a budget is spent, in words. Pure.

Limits are looked at before each call, so that a run ends at most one call beyond them for each agent at work.

What follows when a dispatch meets with a fault. Pure.

| fault                                            | within the dispatch      | the engine asks again |
|--------------------------------------------------|--------------------------|-----------------------|
| unavailable                                      | 2 retries, with a pause  | once                  |
| crashed, malformed (after its repairs), drifted  | –                        | once                  |
| timeout, denied, rejected, filtered, failed, looping, budget, cancelled | – | –              |

A task's executor is not asked again by the engine: the gate counts its attempts. `unavailable` and `denied` then stop
the run, which can be resumed: they are no fault of the work. Only in the control loop `unavailable` is a failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from proofstone.agents.models import Completion, CompletionStatus, Fault, FaultKind
from proofstone.agents.rules.routes import AGENTS
from proofstone.common.models import Allowance, Budget, Spent
from proofstone.common.text import counted

_SHORT = 1000
_A_CENT = 0.01


def exhausted(budget: Budget, spent: dict[str, Spent], role: str, task: str | None) -> str:
    """Why an agent of that role, for that task, may not go on; empty if it may. `spent` is by scope: see `scopes`."""
    for scope, allowance in allowances(budget, role, task):
        if why := over(allowance, spent.get(scope, Spent()), scope):
            return why
    return ""


def allowances(budget: Budget, role: str, task: str | None) -> Iterator[tuple[str, Allowance]]:
    """The limits that hold for an agent, with the names of what they are limits of."""
    yield "run", budget.run
    if task is not None:
        yield task, budget.task
    if role in budget.roles:
        yield f"role {role}", budget.roles[role]


def scopes(role: str, task: str | None) -> tuple[str, ...]:
    """Everything that pays for a call of that role, for that task."""
    return ("run", f"role {role}", *((task,) if task is not None else ()))


def over(allowance: Allowance, spent: Spent, scope: str) -> str:
    whose = "the run's" if scope == "run" else f"{scope}'s" if not scope.startswith("role ") else f"the {scope}'s"
    if allowance.tokens is not None and spent.tokens >= allowance.tokens:
        return f"{whose} budget of {allowance.tokens:,} tokens is spent ({spent.tokens:,} used)"
    if allowance.usd is not None and spent.usd >= allowance.usd:
        return f"{whose} budget of ${allowance.usd:g} is spent ({money(spent)})"
    if allowance.requests is not None and spent.requests >= allowance.requests:
        return f"{whose} budget of {counted(allowance.requests, 'model call')} is spent"
    if allowance.tool_calls is not None and spent.tool_calls >= allowance.tool_calls:
        return f"{whose} budget of {counted(allowance.tool_calls, 'tool call')} is spent"
    if allowance.minutes is not None and spent.seconds >= 60 * allowance.minutes:
        return f"{whose} budget of {allowance.minutes:g} minutes of agents at work is spent"
    return ""


def left_of(allowance: Allowance, spent: Spent) -> Allowance:
    """What another may still spend of it. Something is left: see `over`."""
    used = {
        "tokens": spent.tokens,
        "usd": spent.usd,
        "requests": spent.requests,
        "tool_calls": spent.tool_calls,
        "minutes": spent.seconds / 60,
    }
    limits = {name: getattr(allowance, name) for name in used}
    return Allowance(**{name: limit - used[name] for name, limit in limits.items() if limit is not None})


def more_of_it(allowance: Allowance, spent: Spent) -> str:
    """What to add to `proofstone resume` so that it goes on: twice what was used of the run's limit, if it is one of
    those
    that is spent."""
    used: dict[str, float] = {
        "tokens": spent.tokens,
        "usd": spent.usd,
        "requests": spent.requests,
        "tool_calls": spent.tool_calls,
    }
    for kind, amount in used.items():
        limit = getattr(allowance, kind)
        if limit is not None and amount >= limit:
            return f" --budget {kind}={2 * amount:.10g}"
    return " --budget … (what to raise is said above)" if spent.requests else ""


def money(spent: Spent) -> str:
    """What it has cost, as far as that is known."""
    if not spent.unpriced:
        return dollars(spent.usd)
    if spent.unpriced == spent.requests:
        return "cost unknown"
    return f"{dollars(spent.usd)} and {counted(spent.unpriced, 'call')} of unknown price"


def dollars(usd: float) -> str:
    """In cents, or as many digits as it takes to show that it is not nothing."""
    return f"${usd:.2f}" if usd >= _A_CENT or not usd else f"${usd:.2g}"


def summary(spent: Spent, allowance: Allowance) -> str:
    """In one short line, for the live view: what is used, and of how much."""
    if not spent.requests:
        return ""
    tokens = (
        f"{_short(spent.tokens)} tokens"
        if allowance.tokens is None
        else (f"{_short(spent.tokens)} of {_short(allowance.tokens)} tokens")
    )
    limit = "" if allowance.usd is None or spent.unpriced else f" of ${allowance.usd:g}"
    return f"{counted(spent.requests, 'model call')}, {tokens}, {money(spent)}{limit}"


def cost(spent: Spent) -> dict[str, float]:
    """For programs. Nothing at all was spent: nothing is said."""
    if not spent.requests and not spent.tool_calls:
        return {}
    return {
        "requests": spent.requests,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "cache_read_tokens": spent.cache_read_tokens,
        "usd": round(spent.usd, 6),
        "unpriced_requests": spent.unpriced,
        "tool_calls": spent.tool_calls,
        "agent_seconds": round(spent.seconds, 1),
    }


def amended(budget: Budget, words: Iterable[str]) -> Budget:
    """The budget with what a person says instead: `usd=5`, `task.tokens=200000`, `roles.reviewer.requests=20`,
    `tokens=none`. ValueError says what is wrong with a word."""
    body = budget.model_dump()
    for word in words:
        key, equals, value = word.partition("=")
        *scope, kind = key.strip().split(".")
        if not equals or kind not in Allowance.model_fields:
            raise ValueError(f"{word}: is not KIND=VALUE; the kinds are {', '.join(Allowance.model_fields)}")
        _within(body, scope, word)[kind] = _amount(value, word)
    try:
        return Budget.model_validate(body)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg'].lower()}") from error


def _within(body: dict[str, Any], scope: list[str], word: str) -> dict[str, Any]:
    match scope:
        case [] | ["run"]:
            found: dict[str, Any] = body["run"]
        case ["task"]:
            found = body["task"]
        case ["roles", role] if role in AGENTS:
            found = body["roles"].setdefault(role, {})
        case ["roles", role]:
            raise ValueError(f"{word}: there is no role {role!r}; there are {', '.join(sorted(AGENTS))}")
        case _:
            raise ValueError(f"{word}: is a limit of nothing; it is of the run, of `task.` or of `roles.NAME.`")
    return found


def _amount(text: str, word: str) -> float | int | None:
    text = text.strip().replace("_", "").replace(",", "")
    if text.lower() in ("none", "unlimited"):
        return None
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise ValueError(f"{word}: {text!r} is not a number") from None


def _short(number: int) -> str:
    if number >= _SHORT * _SHORT:
        return f"{number / _SHORT / _SHORT:.1f}M"
    return f"{number / _SHORT:.1f}k" if number >= _SHORT else str(number)


_LONGEST_PAUSE: Final = 60.0


class Follows(NamedTuple):
    retries: int = 0
    """Of the turn, within the dispatch."""
    again: bool = False
    """A new dispatch may fare better."""


FOLLOWS: Final[Mapping[FaultKind, Follows]] = {
    FaultKind.UNAVAILABLE: Follows(retries=2, again=True),
    FaultKind.CRASHED: Follows(again=True),
    FaultKind.MALFORMED: Follows(again=True),
    FaultKind.DRIFTED: Follows(again=True),
    FaultKind.TIMEOUT: Follows(),
    FaultKind.DENIED: Follows(),
    FaultKind.REJECTED: Follows(),
    FaultKind.FILTERED: Follows(),
    FaultKind.FAILED: Follows(),
    FaultKind.LOOPING: Follows(),
    FaultKind.BUDGET: Follows(),
    FaultKind.CANCELLED: Follows(),
}


def may_ask_again(fault: Fault) -> bool:
    """Whether a new dispatch may fare better, and can begin at once."""
    return FOLLOWS[fault.kind].again and (fault.retry_after or 0.0) <= _LONGEST_PAUSE


def pause(fault: Fault, retry: int) -> float | None:
    """Seconds before the n-th retry: as long as the provider asks for, else longer each time. None: there is no point,
    because it asks for longer than anybody here waits."""
    if retry > FOLLOWS[fault.kind].retries:
        return None
    wanted = fault.retry_after if fault.retry_after is not None else 2.0 ** (retry - 1)
    return max(wanted, 0.0) if wanted <= _LONGEST_PAUSE else None


def completion_of(fault: Fault) -> Completion:
    """A dispatch that ended in a fault, in the words of the completion contract."""
    return Completion(status=CompletionStatus.ERROR, summary=f"{fault.kind}: {fault.why}"[:200])
