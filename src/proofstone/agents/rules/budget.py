"""Budgets of agents, and what follows from the fault of a dispatch. Pure.

Limits are checked before each call, so each working agent exceeds them by at most one call.

| fault                                            | within the dispatch      | the engine asks again |
|--------------------------------------------------|--------------------------|-----------------------|
| unavailable                                      | 2 retries, with a pause  | once                  |
| crashed, malformed (after its repairs), drifted  | –                        | once                  |
| timeout, denied, rejected, filtered, failed, looping, budget, cancelled | – | –              |

The engine does not ask a task's executor again, because the gate counts its attempts. `unavailable` and `denied` then
stop the run, which can be resumed: the work is not at fault. Only in the control loop is `unavailable` a failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from proofstone.agents.models import Completion, CompletionStatus, Fault, FaultKind
from proofstone.agents.rules.routes import AGENT_ROLES
from proofstone.common.models import Allowance, Budget, BudgetUsage
from proofstone.common.text import pluralize

_SHORT = 1000
_A_CENT = 0.01


def explain_spent_budget(budget: Budget, spent: dict[str, BudgetUsage], role: str, task: str | None) -> str:
    """Return why an agent of the role may not continue with the task; empty if it may. `spent` is by `list_scopes`."""
    for scope, allowance in list_allowances(budget, role, task):
        if why := explain_spent_limit(allowance, spent.get(scope, BudgetUsage()), scope):
            return why
    return ""


def list_allowances(budget: Budget, role: str, task: str | None) -> Iterator[tuple[str, Allowance]]:
    """Yield the limits that apply to an agent, with the names of their scopes."""
    yield "run", budget.run
    if task is not None:
        yield task, budget.task
    if role in budget.roles:
        yield f"role {role}", budget.roles[role]


def list_scopes(role: str, task: str | None) -> tuple[str, ...]:
    """Return the scopes that are charged for a call of the role for the task."""
    return ("run", f"role {role}", *((task,) if task is not None else ()))


def explain_spent_limit(allowance: Allowance, spent: BudgetUsage, scope: str) -> str:
    owner = "the run's" if scope == "run" else f"{scope}'s" if not scope.startswith("role ") else f"the {scope}'s"
    if allowance.tokens is not None and spent.tokens >= allowance.tokens:
        return f"{owner} budget of {allowance.tokens:,} tokens is spent ({spent.tokens:,} used)"
    if allowance.usd is not None and spent.usd >= allowance.usd:
        return f"{owner} budget of ${allowance.usd:g} is spent ({format_spending(spent)})"
    if allowance.requests is not None and spent.requests >= allowance.requests:
        return f"{owner} budget of {pluralize(allowance.requests, 'model call')} is spent"
    if allowance.tool_calls is not None and spent.tool_calls >= allowance.tool_calls:
        return f"{owner} budget of {pluralize(allowance.tool_calls, 'tool call')} is spent"
    if allowance.minutes is not None and spent.seconds >= 60 * allowance.minutes:
        return f"{owner} budget of {allowance.minutes:g} minutes of agents at work is spent"
    return ""


def compute_remaining(allowance: Allowance, spent: BudgetUsage) -> Allowance:
    """Return what may still be spent. It must not be used up already: see `over`."""
    used = {
        "tokens": spent.tokens,
        "usd": spent.usd,
        "requests": spent.requests,
        "tool_calls": spent.tool_calls,
        "minutes": spent.seconds / 60,
    }
    limits = {name: getattr(allowance, name) for name in used}
    return Allowance(**{name: limit - used[name] for name, limit in limits.items() if limit is not None})


def suggest_raise(allowance: Allowance, spent: BudgetUsage) -> str:
    """Return the option for `proofstone resume` that raises a spent limit of the run to twice what was used."""
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
    return " --budget … (see above for what to raise)" if spent.requests else ""


def format_spending(spent: BudgetUsage) -> str:
    """Return the cost in words, as far as it is known."""
    if not spent.unpriced:
        return format_dollars(spent.usd)
    if spent.unpriced == spent.requests:
        return "cost unknown"
    return f"{format_dollars(spent.usd)} and {pluralize(spent.unpriced, 'call')} of unknown price"


def format_dollars(usd: float) -> str:
    """Format an amount with cents, or with as many digits as a smaller amount needs."""
    return f"${usd:.2f}" if usd >= _A_CENT or not usd else f"${usd:.2g}"


def summarize_spending(spent: BudgetUsage, allowance: Allowance) -> str:
    """Return one short line for the live view: what is used, and of how much."""
    if not spent.requests:
        return ""
    tokens = (
        f"{_abbreviate(spent.tokens)} tokens"
        if allowance.tokens is None
        else (f"{_abbreviate(spent.tokens)} of {_abbreviate(allowance.tokens)} tokens")
    )
    limit = "" if allowance.usd is None or spent.unpriced else f" of ${allowance.usd:g}"
    return f"{pluralize(spent.requests, 'model call')}, {tokens}, {format_spending(spent)}{limit}"


def build_cost_fields(spent: BudgetUsage) -> dict[str, float]:
    """Return the costs for programs; empty if nothing was spent."""
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


def amend_budget(budget: Budget, words: Iterable[str]) -> Budget:
    """Return the budget with the changes of the person: `usd=5`, `task.tokens=200000`, `roles.reviewer.requests=20`,
    `tokens=none`. Raise ValueError for an invalid change."""
    body = budget.model_dump()
    for word in words:
        key, equals, value = word.partition("=")
        *scope, kind = key.strip().split(".")
        if not equals or kind not in Allowance.model_fields:
            raise ValueError(f"{word}: this is not KIND=VALUE; the kinds are {', '.join(Allowance.model_fields)}")
        _find_limits(body, scope, word)[kind] = _parse_amount(value, word)
    try:
        return Budget.model_validate(body)
    except ValidationError as error:
        detail = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, detail['loc']))}: {detail['msg'].lower()}") from error


def _find_limits(body: dict[str, Any], scope: list[str], word: str) -> dict[str, Any]:
    match scope:
        case [] | ["run"]:
            limits: dict[str, Any] = body["run"]
        case ["task"]:
            limits = body["task"]
        case ["roles", role] if role in AGENT_ROLES:
            limits = body["roles"].setdefault(role, {})
        case ["roles", role]:
            raise ValueError(f"{word}: there is no role {role!r}; the roles are {', '.join(sorted(AGENT_ROLES))}")
        case _:
            raise ValueError(f"{word}: this limits nothing; limit the run, `task.` or `roles.NAME.`")
    return limits


def _parse_amount(text: str, word: str) -> float | int | None:
    text = text.strip().replace("_", "").replace(",", "")
    if text.lower() in ("none", "unlimited"):
        return None
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise ValueError(f"{word}: {text!r} is not a number") from None


def _abbreviate(number: int) -> str:
    if number >= _SHORT * _SHORT:
        return f"{number / _SHORT / _SHORT:.1f}M"
    return f"{number / _SHORT:.1f}k" if number >= _SHORT else str(number)


_LONGEST_PAUSE: Final = 60.0


class FaultPolicy(NamedTuple):
    retries: int = 0
    """How often the turn is retried within the dispatch."""
    can_repeat: bool = False
    """Whether a new dispatch may succeed."""


FAULT_POLICIES: Final[Mapping[FaultKind, FaultPolicy]] = {
    FaultKind.UNAVAILABLE: FaultPolicy(retries=2, can_repeat=True),
    FaultKind.CRASHED: FaultPolicy(can_repeat=True),
    FaultKind.MALFORMED: FaultPolicy(can_repeat=True),
    FaultKind.DRIFTED: FaultPolicy(can_repeat=True),
    FaultKind.TIMEOUT: FaultPolicy(),
    FaultKind.DENIED: FaultPolicy(),
    FaultKind.REJECTED: FaultPolicy(),
    FaultKind.FILTERED: FaultPolicy(),
    FaultKind.FAILED: FaultPolicy(),
    FaultKind.LOOPING: FaultPolicy(),
    FaultKind.BUDGET: FaultPolicy(),
    FaultKind.CANCELLED: FaultPolicy(),
}


def can_repeat_dispatch(fault: Fault) -> bool:
    """Return whether a new dispatch may succeed and can start at once."""
    return FAULT_POLICIES[fault.kind].can_repeat and (fault.retry_after or 0.0) <= _LONGEST_PAUSE


def compute_pause(fault: Fault, retry: int) -> float | None:
    """Return the seconds to wait before the n-th retry: as long as the provider asks, else longer each time. Return
    None if there is no further retry, or if the provider asks for too long a pause."""
    if retry > FAULT_POLICIES[fault.kind].retries:
        return None
    seconds = fault.retry_after if fault.retry_after is not None else 2.0 ** (retry - 1)
    return max(seconds, 0.0) if seconds <= _LONGEST_PAUSE else None


def build_fault_completion(fault: Fault) -> Completion:
    """Return the completion of a dispatch that ended in a fault."""
    return Completion(status=CompletionStatus.ERROR, summary=f"{fault.kind}: {fault.why}"[:200])
