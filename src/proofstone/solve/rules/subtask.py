"""From what the engine saw and a model judged to verdicts and an outcome. The verdict of the whole is the AND of its
parts, whatever anybody says of the whole.

One subtask: execute, verify each criterion, correct at most twice. Pure: a generator, driven by a shell.

A verifiable criterion is looked at by the engine and by nobody else. After a crash, an infrastructure error or a safety
refusal there is no correction: trying again would not help.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from pydantic import JsonValue

from proofstone.agents.roles.models.solve import JudgedCriterion, JudgementOutput
from proofstone.agents.roles.models.solve_messages import (
    CorrectionSignal,
    Criterion,
    CriterionMode,
    CriterionVerdict,
    ExecutionResult,
    FailedCriterion,
    FailureClass,
    Gap,
    OutcomeStatus,
    SubTask,
    SubTaskOutcome,
    TaskSpec,
)
from proofstone.solve.rules.effects import (
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

_IN_THE_WAY: Final = (
    # the network
    r"connection (?:refused|reset|aborted|timed out)|could not resolve|name or service not known|no such host",
    r"no route to host|network is unreachable|temporary failure in name resolution|\be(?:connrefused|timedout)\b",
    # somebody else's service
    r"too many requests|rate limit (?:exceeded|reached)|quota exceeded|\b401 unauthorized|\b403 forbidden",
    r"\bhttp(?:/[\d.]+)?(?: status| error)?:? (?:401|403|429|50[234])\b|bad gateway|service unavailable",
    r"certificate (?:verify failed|has expired|is not trusted)|certificate_verify_failed|unknown authority|\bssl error",
    # time
    r"timed out after \d|\b(?:it|command|process|request|operation|read|handshake) timed out|deadline exceeded",
    # the machine
    r"permission denied|operation not permitted|read-only file system|no space left|disk quota|out of memory",
    r"cannot allocate memory|resource busy|address already in use|too many open files",
    r"^\W*killed\W*$|process (?:was )?killed|killed by signal",
    # something that is not there
    r"command not found|\bsh: (?:\d+: )?\S+: not found|is not installed|cannot find module|no module named",
)
_COMPARES: Final = r"\bassert|\bexpect(?:ed|s)?\b|did not raise| [!=]= "
ENVIRONMENTAL: Final = re.compile(rf"^(?!.*(?:{_COMPARES})).*(?:{'|'.join(_IN_THE_WAY)})", re.IGNORECASE | re.MULTILINE)
"""What a line of the evidence says when something was in the way: it goes before what anybody says of the class. A line
that compares what there is with what there should be is a test's own, and may well be about timeouts and refusals."""


def passed(criterion: Criterion, evidence: str) -> CriterionVerdict:
    return CriterionVerdict(criterion=criterion.criterion, mode=criterion.mode, verdict="pass", evidence=evidence)


def failed(criterion: Criterion, evidence: str, said: FailureClass) -> CriterionVerdict:
    """A failure; what its evidence shows of the environment counts more than what was said."""
    of = FailureClass.ENVIRONMENTAL if ENVIRONMENTAL.search(evidence) else said
    return CriterionVerdict(
        criterion=criterion.criterion, mode=criterion.mode, verdict="fail", failure_class=of, evidence=evidence
    )


def judged(criteria: Sequence[Criterion], verdicts: Sequence[JudgedCriterion]) -> tuple[CriterionVerdict, ...]:
    """What a model says about criteria that were numbered from 1. What it leaves out, or passes without any evidence,
    has not passed. Of several words about one the first counts; if they contradict each other, the failing one."""
    said: dict[int, JudgedCriterion] = {}
    for word in sorted(verdicts, key=lambda word: word.verdict == "pass"):
        said.setdefault(word.number, word)
    found = []
    for number, criterion in enumerate(criteria, start=1):
        one = said.get(number)
        if one is None:
            found.append(failed(criterion, "nothing was said about it", FailureClass.ENVIRONMENTAL))
        elif one.verdict == "pass" and not one.evidence.strip():
            found.append(failed(criterion, "nothing was said to show it", FailureClass.ENVIRONMENTAL))
        elif one.verdict == "pass":
            found.append(passed(criterion, one.evidence))
        else:
            found.append(failed(criterion, one.evidence, FailureClass(one.failure_class or FailureClass.LOGICAL)))
    return tuple(found)


def looked_at(criteria: Sequence[Criterion], verdicts: Sequence[CriterionVerdict]) -> tuple[CriterionVerdict, ...]:
    """What the engine saw of them, in their order. What it did not look at has not passed."""
    return tuple(
        one
        if one and one.criterion == criterion.criterion
        else failed(criterion, "nobody looked at it", FailureClass.ENVIRONMENTAL)
        for criterion, one in zip_longest(criteria, verdicts[: len(criteria)])
    )


def unjudged(criteria: Sequence[Criterion], why: str) -> tuple[CriterionVerdict, ...]:
    """Nobody could say: that is no pass."""
    return tuple(failed(criterion, why, FailureClass.ENVIRONMENTAL) for criterion in criteria)


def crashed(criteria: Sequence[Criterion], why: str) -> tuple[CriterionVerdict, ...]:
    """All of them, as verifiable failures of the environment: nothing is known to be there."""
    return tuple(
        CriterionVerdict(
            criterion=item.criterion,
            mode=CriterionMode.VERIFIABLE,
            verdict="fail",
            failure_class=FailureClass.ENVIRONMENTAL,
            evidence=why,
        )
        for item in criteria
    )


def gap(attempt: int, verdicts: Sequence[CriterionVerdict]) -> Gap:
    return Gap(
        attempt=attempt,
        failed_criteria=tuple(
            FailedCriterion(criterion=verdict.criterion, failure_class=verdict.failure_class)
            for verdict in verdicts
            if verdict.failure_class is not None
        ),
    )


def outcome(
    subtask: SubTask,
    result: ExecutionResult,
    verdicts: Sequence[CriterionVerdict],
    gaps: Sequence[Gap],
    *,
    tools: Sequence[str] = (),
    targets: Sequence[str] = (),
    obstacles: Sequence[str] = (),
) -> SubTaskOutcome:
    wrong = [verdict for verdict in verdicts if verdict.failed]
    reason = "; ".join(f"{item.criterion}: {item.evidence}" for item in wrong)
    return SubTaskOutcome(
        subtask_id=subtask.subtask_id,
        parent_task_id=subtask.parent_task_id,
        status=OutcomeStatus.FAILED if wrong or not verdicts else OutcomeStatus.MATCHED,
        output=result.output,
        failure_reason=(result.crashed or reason or None) if wrong or not verdicts else None,
        criteria_verdicts=tuple(verdicts),
        gap_trajectory=tuple(gaps),
        tools=tuple(dict.fromkeys(tools)),
        targets=tuple(dict.fromkeys(targets)),
        obstacles=tuple(dict.fromkeys(obstacles)),
    )


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
        wrong = [verdict for verdict in verdicts if verdict.failed]
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
    verifiable = tuple(item for item in criteria if item.mode is CriterionMode.VERIFIABLE)
    plausible = tuple(item for item in criteria if item.mode is CriterionMode.PLAUSIBLE)
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
            if any(item.failed for item in said):  # else the words are about what only the engine has seen
                words = _Words(answer.output.what_was_wrong.strip(), answer.output.what_to_do.strip())
        else:
            said = unjudged(plausible, f"it could not be judged: {getattr(answer, 'why', answer)}")
    both = iter(seen), iter(said)
    return [next(both[item.mode is CriterionMode.PLAUSIBLE]) for item in criteria], words


def _signal(subtask: SubTask, attempt: int, wrong: Sequence[CriterionVerdict], words: _Words) -> CorrectionSignal:
    """With the evidence of all that failed, for a validator's own words leave out what only the engine has seen."""
    first = wrong[0]
    evidence = [f"{item.criterion}: {item.evidence}" for item in wrong]
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
