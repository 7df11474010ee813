"""A recorded conversation as entries of a script, which say and do the same again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from proofstone.agents.models import FaultKind, Occasion, Told, ToolCall, Turn
from proofstone.agents.script_file import ONE_REQUEST, Breakdown, Call, Entry, Step
from proofstone.agents.spending import Recorded
from proofstone.common.models import Usage

_BREAKDOWNS: Final = (
    FaultKind.UNAVAILABLE,
    FaultKind.DENIED,
    FaultKind.REJECTED,
    FaultKind.FILTERED,
    FaultKind.CRASHED,
    FaultKind.TIMEOUT,
)
"""Faults of the backend. The others follow from what was said, or come from outside."""
_FROM_OUTSIDE: Final = (FaultKind.BUDGET, FaultKind.CANCELLED)


def conversations(recorded: Iterable[Recorded]) -> list[Entry]:
    """Entries for each dispatch that came to an end: one for its beginning, and one for each repair. The first that
    matches is taken, and one without a focus or a round matches any: so those with a focus come first, and then those
    with a round."""
    ended = [(item, item.occasion) for item in recorded if item.occasion is not None and _has_ended(item)]
    alike = Counter(_told_by(occasion) for _, occasion in ended)
    entries = [entry for one, it in ended for entry in _dispatch(one, it, alone=alike[_told_by(it)] == 1)]
    return sorted(entries, key=lambda entry: ("focus" not in entry.match, "round" not in entry.match))


def _told_by(occasion: Occasion) -> tuple[str, frozenset[tuple[str, int | str]]]:
    """What tells a dispatch from the others of its run, unless they have it in common."""
    return occasion.role, frozenset(_facts(occasion).items())


def _has_ended(one: Recorded) -> bool:
    """What was cut short from outside has said nothing that could be said again."""
    return one.finished or (one.fault is not None and one.fault.kind not in _FROM_OUTSIDE)


def _dispatch(one: Recorded, occasion: Occasion, *, alone: bool) -> list[Entry]:
    """`alone`: no other dispatch is told by the same facts."""
    facts = _facts(occasion) | ({} if alone else {"step": occasion.step})
    work, asides = _parts(one)
    ending = _ending(one)
    last = len(work) - 1
    return [
        *(_entry(occasion.role, facts | {"asked": asked}, turns, ()) for asked, turns in asides if turns),
        *(
            _entry(
                occasion.role, facts | ({"repair": number} if number else {}), turns, ending if number == last else ()
            )
            for number, turns in enumerate(work)
        ),
    ]


def _parts(one: Recorded) -> tuple[list[list[Turn]], list[tuple[str, list[Turn]]]]:
    """The turns of the work, up to each repair; and those that answer asides, by what they were asked."""
    work: list[list[Turn]] = [[]]
    asides: list[tuple[str, list[Turn]]] = []
    times: Counter[str] = Counter()
    now = work[-1]
    for said in one.entries:
        if isinstance(said, int):
            work.append([])
            now = work[-1]
        elif isinstance(said, Told):
            now = work[-1]
            if said.asked:
                times[said.asked] += 1
                now = []
                asides.append((f"{said.asked}.{times[said.asked]}", now))
        elif isinstance(said, Turn):
            now.append(said)
    return work, asides


def _ending(one: Recorded) -> tuple[Step, ...]:
    fault = one.fault
    if fault is None:
        return ()
    if fault.kind is FaultKind.FAILED:
        return (Step("fail", {"text": fault.why}),)
    if fault.kind in _BREAKDOWNS:
        return (Step("error", breakdown=Breakdown(fault.kind, fault.why)),)
    return ()


def _entry(role: str, facts: Mapping[str, int | str], turns: list[Turn], ending: tuple[Step, ...]) -> Entry:
    steps: list[Step] = []
    for turn in turns:
        if turn.calls:
            steps += [Step("say", {"text": turn.text})] if turn.text else []
            steps.append(Step("tools", calls=tuple(_call(call) for call in turn.calls)))
    answers = [turn for turn in turns if not turn.calls]
    answer = answers[-1] if answers and not ending else None
    given = answer.answer if answer else None
    if answer and given is not None and answer.text:
        steps.append(Step("say", {"text": answer.text}))
    return Entry(
        role=role,
        match={word: (str(value),) for word, value in facts.items()},
        steps=(*steps, *ending),
        output=dict(given) if given is not None else None,
        raw=answer.text if answer and given is None else None,
        usage=_each(turns),
    )


def _call(call: ToolCall) -> Call:
    return Call(call.name, call.malformed if call.malformed else dict(call.arguments))


def _facts(occasion: Occasion) -> dict[str, int | str]:
    """The words of its match. Of a task, another round is asked for when the branch has moved, which the next run may
    see and this one did not: the first stands for all that have no entry of their own."""
    task, round = occasion.task, occasion.round
    facts = {
        "task": task,
        "attempt": None if task is None and round is None else occasion.attempt,
        "focus": occasion.focus,
        "iteration": occasion.iteration,
        "round": None if task is not None and round == 1 else round,
        "dispatch": occasion.dispatch,
    }
    return {word: value for word, value in facts.items() if value is not None}


def _each(turns: list[Turn]) -> Usage:
    """Of each turn, with what they used in all spread over them: an entry has one figure."""
    count = len(turns)
    if not count:
        return ONE_REQUEST
    total = sum((turn.usage for turn in turns), Usage())
    return Usage(
        requests=1,
        input_tokens=-(-total.input_tokens // count),
        output_tokens=-(-total.output_tokens // count),
        usd=None if total.usd is None else total.usd / count,
    )
