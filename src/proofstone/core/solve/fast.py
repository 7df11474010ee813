"""One subtask: execute, verify each criterion, correct at most twice. Pure: a generator, driven by a shell.

A verifiable criterion is looked at by the engine and by nobody else. After a crash, an infrastructure error or a safety
refusal there is no correction: trying again would not help.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from proofstone.contracts.solve.answers import JudgementOutput
from proofstone.contracts.solve.messages import (
    CorrectionSignal,
    CriterionMode,
    CriterionVerdict,
    FailureClass,
    Gap,
    SubTask,
    SubTaskOutcome,
    TaskSpec,
)
from proofstone.core.solve.needs import (
    AskExecutor,
    AskValidator,
    Executed,
    FastLoop,
    FastNeed,
    FastSent,
    Heard,
    Look,
    Looked,
    Say,
)
from proofstone.core.solve.verdicts import crashed, gap, judged, looked_at, outcome, unjudged

CORRECTIONS: Final = 2


def pursue(
    spec: TaskSpec,
    subtask: SubTask,
    before: tuple[SubTaskOutcome, ...] = (),
    blocked_tools: tuple[str, ...] = (),
    blocked_targets: tuple[str, ...] = (),
) -> FastLoop:
    """The subtask, to its outcome."""
    corrections: list[CorrectionSignal] = []
    gaps: list[Gap] = []
    tools: list[str] = []
    targets: list[str] = []
    obstacles: list[str] = []
    for attempt in range(1, CORRECTIONS + 2):
        executed = yield AskExecutor(spec, subtask, attempt, before, tuple(corrections), blocked_tools, blocked_targets)
        if not isinstance(executed, Executed):
            raise TypeError(f"a result is wanted, not {executed!r}")
        result = executed.result
        yield Say("executor", "agent_validator", result)
        tools += executed.tools
        targets += executed.targets
        obstacles += executed.obstacles
        verdicts, words = yield from _verified(subtask, attempt, executed)
        gaps.append(gap(attempt, verdicts))
        wrong = [one for one in verdicts if one.failed]
        if not wrong or attempt > CORRECTIONS or result.crashed or not executed.may_correct:
            break
        signal = _signal(subtask, attempt, wrong, words)
        corrections.append(signal)
        yield Say("agent_validator", "executor", signal)
    came = outcome(subtask, result, verdicts, gaps, tools=tools, targets=targets, obstacles=obstacles)
    yield Say("agent_validator", "meta_validator", came)
    return came


@dataclass(frozen=True)
class _Words:
    """What a validator says of those that failed."""

    what_was_wrong: str = ""
    what_to_do: str = ""


def _verified(
    subtask: SubTask, attempt: int, executed: Executed
) -> Generator[FastNeed, FastSent, tuple[list[CriterionVerdict], _Words]]:
    """A verdict on each criterion, in their order, and the validator's words about them."""
    criteria, result = subtask.success_criteria, executed.result
    words = _Words()
    if result.crashed:
        return list(crashed(criteria, result.crashed)), words
    verifiable = tuple(one for one in criteria if one.mode is CriterionMode.VERIFIABLE)
    plausible = tuple(one for one in criteria if one.mode is CriterionMode.PLAUSIBLE)
    seen: tuple[CriterionVerdict, ...] = ()
    said: tuple[CriterionVerdict, ...] = ()
    if verifiable:
        looked = yield Look(subtask.subtask_id, attempt, verifiable, text_of(result.output))
        if not isinstance(looked, Looked):
            raise TypeError(f"verdicts are wanted, not {looked!r}")
        seen = looked_at(verifiable, looked.verdicts)
    if plausible:
        answer = yield AskValidator(subtask, attempt, result, plausible)
        if isinstance(answer, Heard) and isinstance(answer.output, JudgementOutput):
            said = judged(plausible, answer.output.verdicts)
            if any(one.failed for one in said):  # else the words are about what only the engine has seen
                words = _Words(answer.output.what_was_wrong.strip(), answer.output.what_to_do.strip())
        else:
            said = unjudged(plausible, f"it could not be judged: {getattr(answer, 'why', answer)}")
    both = iter(seen), iter(said)
    return [next(both[one.mode is CriterionMode.PLAUSIBLE]) for one in criteria], words


def _signal(subtask: SubTask, attempt: int, wrong: Sequence[CriterionVerdict], words: _Words) -> CorrectionSignal:
    """With the evidence of all that failed, for a validator's own words leave out what only the engine has seen."""
    first = wrong[0]
    evidence = [f"{one.criterion}: {one.evidence}" for one in wrong]
    return CorrectionSignal(
        subtask_id=subtask.subtask_id,
        attempt_number=attempt,
        failed_criterion=first.criterion,
        failure_class=first.failure_class or FailureClass.LOGICAL,
        what_was_wrong="; ".join((*evidence, *filter(None, (words.what_was_wrong,)))),
        what_to_do=words.what_to_do or "make each of these so, and change nothing that is so already",
    )


def text_of(output: JsonValue) -> str:
    """As somebody would look at it: a text as it is, anything else as JSON, and nothing as nothing."""
    if isinstance(output, str):
        return output
    return "" if output is None else json.dumps(output, ensure_ascii=False)
