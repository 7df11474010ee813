"""Turn recorded conversations into script entries that replay them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from proofstone.agents.models import DispatchKey, EngineMessage, FaultKind, ToolCall, Turn
from proofstone.agents.script_file import ONE_REQUEST, ScriptCall, ScriptEntry, ScriptFault, ScriptStep
from proofstone.agents.spending import DispatchRecord
from proofstone.common.models import Usage

_BREAKDOWNS: Final = (
    FaultKind.UNAVAILABLE,
    FaultKind.DENIED,
    FaultKind.REJECTED,
    FaultKind.FILTERED,
    FaultKind.CRASHED,
    FaultKind.TIMEOUT,
)
"""Faults of the backend. The other faults follow from the conversation or come from outside."""
_EXTERNAL_FAULTS: Final = (FaultKind.BUDGET, FaultKind.CANCELLED)


def build_script_entries(recorded: Iterable[DispatchRecord]) -> list[ScriptEntry]:
    """Return the entries for each dispatch that ended: one for its start, and one for each repair. A script uses the
    first entry that matches, and an entry without a focus or a round matches any. So entries with a focus come first,
    and then those with a round."""
    ended = [
        (dispatch, dispatch.occasion) for dispatch in recorded if dispatch.occasion is not None and _has_ended(dispatch)
    ]
    counts = Counter(_identifying_facts(occasion) for _, occasion in ended)
    entries = [
        entry
        for dispatch, occasion in ended
        for entry in _build_entries(dispatch, occasion, is_unique=counts[_identifying_facts(occasion)] == 1)
    ]
    return sorted(entries, key=lambda entry: ("focus" not in entry.match, "round" not in entry.match))


def _identifying_facts(occasion: DispatchKey) -> tuple[str, frozenset[tuple[str, int | str]]]:
    """Return what distinguishes a dispatch from the others of its run. Several may still have the same facts."""
    return occasion.role, frozenset(_match_facts(occasion).items())


def _has_ended(dispatch: DispatchRecord) -> bool:
    """Return whether a dispatch ended by itself. One that was stopped from outside cannot be replayed."""
    return dispatch.has_answered or (dispatch.fault is not None and dispatch.fault.kind not in _EXTERNAL_FAULTS)


def _build_entries(dispatch: DispatchRecord, occasion: DispatchKey, *, is_unique: bool) -> list[ScriptEntry]:
    """Build the entries of a dispatch. `is_unique`: no other dispatch has the same facts."""
    facts = _match_facts(occasion) | ({} if is_unique else {"step": occasion.step})
    work, asides = _split_turns(dispatch)
    ending = _ending_steps(dispatch)
    last = len(work) - 1
    return [
        *(_build_entry(occasion.role, facts | {"asked": asked}, turns, ()) for asked, turns in asides if turns),
        *(
            _build_entry(
                occasion.role, facts | ({"repair": number} if number else {}), turns, ending if number == last else ()
            )
            for number, turns in enumerate(work)
        ),
    ]


def _split_turns(dispatch: DispatchRecord) -> tuple[list[list[Turn]], list[tuple[str, list[Turn]]]]:
    """Return the turns of the work, split at each repair, and the turns that answer interjections, by question."""
    work: list[list[Turn]] = [[]]
    asides: list[tuple[str, list[Turn]]] = []
    times: Counter[str] = Counter()
    current = work[-1]
    for entry in dispatch.entries:
        if isinstance(entry, int):
            work.append([])
            current = work[-1]
        elif isinstance(entry, EngineMessage):
            current = work[-1]
            if entry.asked:
                times[entry.asked] += 1
                current = []
                asides.append((f"{entry.asked}.{times[entry.asked]}", current))
        elif isinstance(entry, Turn):
            current.append(entry)
    return work, asides


def _ending_steps(dispatch: DispatchRecord) -> tuple[ScriptStep, ...]:
    fault = dispatch.fault
    if fault is None:
        return ()
    if fault.kind is FaultKind.FAILED:
        return (ScriptStep("fail", {"text": fault.why}),)
    if fault.kind in _BREAKDOWNS:
        return (ScriptStep("error", breakdown=ScriptFault(fault.kind, fault.why)),)
    return ()


def _build_entry(
    role: str, facts: Mapping[str, int | str], turns: list[Turn], ending: tuple[ScriptStep, ...]
) -> ScriptEntry:
    steps: list[ScriptStep] = []
    for turn in turns:
        if turn.calls:
            steps += [ScriptStep("say", {"text": turn.text})] if turn.text else []
            steps.append(ScriptStep("tools", calls=tuple(_build_call(call) for call in turn.calls)))
    answers = [turn for turn in turns if not turn.calls]
    answer = answers[-1] if answers and not ending else None
    structured_answer = answer.answer if answer else None
    if answer and structured_answer is not None and answer.text:
        steps.append(ScriptStep("say", {"text": answer.text}))
    return ScriptEntry(
        role=role,
        match={word: (str(value),) for word, value in facts.items()},
        steps=(*steps, *ending),
        output=dict(structured_answer) if structured_answer is not None else None,
        raw=answer.text if answer and structured_answer is None else None,
        usage=_average_usage(turns),
    )


def _build_call(call: ToolCall) -> ScriptCall:
    return ScriptCall(call.name, call.malformed if call.malformed else dict(call.arguments))


def _match_facts(occasion: DispatchKey) -> dict[str, int | str]:
    """Return the facts that an entry matches on. A task is reviewed in another round when the branch has moved, which
    may happen in the replay but not in the recording. So the entry for round 1 of a task matches every round that has
    no entry of its own."""
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


def _average_usage(turns: list[Turn]) -> Usage:
    """Return the average usage of the turns, because an entry has one figure for each turn."""
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
