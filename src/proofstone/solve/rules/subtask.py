"""One subtask: execute, verify each criterion, correct at most twice. Pure: a generator.

The engine alone verifies a verifiable criterion. The subtask matches only if every criterion passes, whatever a model
says about the whole. After a crash, an infrastructure error or a safety refusal there is no correction, because another
attempt would not help.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from pydantic import JsonValue

from proofstone.agents.roles.models.solve import CriterionJudgement, JudgementOutput
from proofstone.agents.roles.models.solve_messages import (
    AttemptGap,
    CorrectionSignal,
    Criterion,
    CriterionFailure,
    CriterionMode,
    CriterionVerdict,
    ExecutionResult,
    FailureClass,
    OutcomeStatus,
    SubTask,
    SubTaskOutcome,
    TaskSpec,
)
from proofstone.solve.rules.effects import (
    AskExecutor,
    AskValidator,
    CheckCriteria,
    CriteriaVerdicts,
    ExecutionRecord,
    PublishMessage,
    SolveAgentReply,
    SubtaskEffect,
    SubtaskEffectResult,
    SubtaskWorkflow,
)

_ENVIRONMENTAL_PATTERNS: Final = (
    # the network
    r"connection (?:refused|reset|aborted|timed out)|could not resolve|name or service not known|no such host",
    r"no route to host|network is unreachable|temporary failure in name resolution|\be(?:connrefused|timedout)\b",
    # external services
    r"too many requests|rate limit (?:exceeded|reached)|quota exceeded|\b401 unauthorized|\b403 forbidden",
    r"\bhttp(?:/[\d.]+)?(?: status| error)?:? (?:401|403|429|50[234])\b|bad gateway|service unavailable",
    r"certificate (?:verify failed|has expired|is not trusted)|certificate_verify_failed|unknown authority|\bssl error",
    # time
    r"timed out after \d|\b(?:it|command|process|request|operation|read|handshake) timed out|deadline exceeded",
    # the machine
    r"permission denied|operation not permitted|read-only file system|no space left|disk quota|out of memory",
    r"cannot allocate memory|resource busy|address already in use|too many open files",
    r"^\W*killed\W*$|process (?:was )?killed|killed by signal",
    # missing programs and modules
    r"command not found|\bsh: (?:\d+: )?\S+: not found|is not installed|cannot find module|no module named",
)
_COMPARISON_PATTERN: Final = r"\bassert|\bexpect(?:ed|s)?\b|did not raise| [!=]= "
ENVIRONMENTAL_EVIDENCE: Final = re.compile(
    rf"^(?!.*(?:{_COMPARISON_PATTERN})).*(?:{'|'.join(_ENVIRONMENTAL_PATTERNS)})", re.IGNORECASE | re.MULTILINE
)
"""Matches evidence of an environmental failure, which takes precedence over any stated class. A line that compares an
actual with an expected value comes from a test, which may well be about timeouts and refusals, so it does not match.
"""


def passed_verdict(criterion: Criterion, evidence: str) -> CriterionVerdict:
    return CriterionVerdict(criterion=criterion.criterion, mode=criterion.mode, verdict="pass", evidence=evidence)


def failed_verdict(criterion: Criterion, evidence: str, stated_class: FailureClass) -> CriterionVerdict:
    """Return a failed verdict; environmental evidence takes precedence over the stated class."""
    failure_class = FailureClass.ENVIRONMENTAL if ENVIRONMENTAL_EVIDENCE.search(evidence) else stated_class
    return CriterionVerdict(
        criterion=criterion.criterion,
        mode=criterion.mode,
        verdict="fail",
        failure_class=failure_class,
        evidence=evidence,
    )


def verdicts_from_model(
    criteria: Sequence[Criterion], verdicts: Sequence[CriterionJudgement]
) -> tuple[CriterionVerdict, ...]:
    """Turn a model's verdicts on criteria, numbered from 1, into verdicts. A criterion without a verdict, or passed
    without evidence, has failed. Of several verdicts on one criterion the first counts; if they contradict each other,
    the failing one.
    """
    by_number: dict[int, CriterionJudgement] = {}
    for stated in sorted(verdicts, key=lambda stated: stated.verdict == "pass"):
        by_number.setdefault(stated.number, stated)
    results = []
    for number, criterion in enumerate(criteria, start=1):
        judgement = by_number.get(number)
        if judgement is None:
            results.append(failed_verdict(criterion, "the model gave no verdict", FailureClass.ENVIRONMENTAL))
        elif judgement.verdict == "pass" and not judgement.evidence.strip():
            results.append(failed_verdict(criterion, "the model gave no evidence", FailureClass.ENVIRONMENTAL))
        elif judgement.verdict == "pass":
            results.append(passed_verdict(criterion, judgement.evidence))
        else:
            results.append(
                failed_verdict(
                    criterion, judgement.evidence, FailureClass(judgement.failure_class or FailureClass.LOGICAL)
                )
            )
    return tuple(results)


def verdicts_from_engine(
    criteria: Sequence[Criterion], verdicts: Sequence[CriterionVerdict]
) -> tuple[CriterionVerdict, ...]:
    """Return the engine's verdicts in the order of the criteria. A criterion without a verdict has failed."""
    return tuple(
        verdict
        if verdict and verdict.criterion == criterion.criterion
        else failed_verdict(criterion, "it was not checked", FailureClass.ENVIRONMENTAL)
        for criterion, verdict in zip_longest(criteria, verdicts[: len(criteria)])
    )


def unjudged_verdicts(criteria: Sequence[Criterion], reason: str) -> tuple[CriterionVerdict, ...]:
    """Return failed verdicts for criteria that could not be judged."""
    return tuple(failed_verdict(criterion, reason, FailureClass.ENVIRONMENTAL) for criterion in criteria)


def crash_verdicts(criteria: Sequence[Criterion], reason: str) -> tuple[CriterionVerdict, ...]:
    """Return a verifiable, environmental failure for every criterion: nothing is known about the result."""
    return tuple(
        CriterionVerdict(
            criterion=criterion.criterion,
            mode=CriterionMode.VERIFIABLE,
            verdict="fail",
            failure_class=FailureClass.ENVIRONMENTAL,
            evidence=reason,
        )
        for criterion in criteria
    )


def build_gap(attempt: int, verdicts: Sequence[CriterionVerdict]) -> AttemptGap:
    return AttemptGap(
        attempt=attempt,
        failed_criteria=tuple(
            CriterionFailure(criterion=verdict.criterion, failure_class=verdict.failure_class)
            for verdict in verdicts
            if verdict.failure_class is not None
        ),
    )


def build_outcome(
    subtask: SubTask,
    result: ExecutionResult,
    verdicts: Sequence[CriterionVerdict],
    gaps: Sequence[AttemptGap],
    *,
    tools: Sequence[str] = (),
    targets: Sequence[str] = (),
    obstacles: Sequence[str] = (),
) -> SubTaskOutcome:
    failures = [verdict for verdict in verdicts if verdict.is_failed]
    reason = "; ".join(f"{verdict.criterion}: {verdict.evidence}" for verdict in failures)
    return SubTaskOutcome(
        subtask_id=subtask.subtask_id,
        parent_task_id=subtask.parent_task_id,
        status=OutcomeStatus.FAILED if failures or not verdicts else OutcomeStatus.MATCHED,
        output=result.output,
        failure_reason=(result.crashed or reason or None) if failures or not verdicts else None,
        criteria_verdicts=tuple(verdicts),
        gap_trajectory=tuple(gaps),
        tools=tuple(dict.fromkeys(tools)),
        targets=tuple(dict.fromkeys(targets)),
        obstacles=tuple(dict.fromkeys(obstacles)),
    )


MAX_CORRECTIONS: Final = 2


def pursue_subtask(
    spec: TaskSpec,
    subtask: SubTask,
    before: tuple[SubTaskOutcome, ...] = (),
    blocked_tools: tuple[str, ...] = (),
    blocked_targets: tuple[str, ...] = (),
) -> SubtaskWorkflow:
    """Pursue the subtask to its outcome."""
    corrections: list[CorrectionSignal] = []
    gaps: list[AttemptGap] = []
    tools: list[str] = []
    targets: list[str] = []
    obstacles: list[str] = []
    for attempt in range(1, MAX_CORRECTIONS + 2):
        executed = yield AskExecutor(spec, subtask, attempt, before, tuple(corrections), blocked_tools, blocked_targets)
        if not isinstance(executed, ExecutionRecord):
            raise TypeError(f"expected a result, got {executed!r}")
        result = executed.result
        yield PublishMessage("executor", "agent_validator", result)
        tools += executed.tools
        targets += executed.targets
        obstacles += executed.obstacles
        verdicts, comments = yield from _verify(subtask, attempt, executed)
        gaps.append(build_gap(attempt, verdicts))
        failures = [verdict for verdict in verdicts if verdict.is_failed]
        if not failures or attempt > MAX_CORRECTIONS or result.crashed or not executed.may_correct:
            break
        signal = _build_correction(subtask, attempt, failures, comments)
        corrections.append(signal)
        yield PublishMessage("agent_validator", "executor", signal)
    result_outcome = build_outcome(subtask, result, verdicts, gaps, tools=tools, targets=targets, obstacles=obstacles)
    yield PublishMessage("agent_validator", "meta_validator", result_outcome)
    return result_outcome


@dataclass(frozen=True)
class _Comments:
    """The validator's comments on the failed criteria."""

    what_was_wrong: str = ""
    what_to_do: str = ""


def _verify(
    subtask: SubTask, attempt: int, executed: ExecutionRecord
) -> Generator[SubtaskEffect, SubtaskEffectResult, tuple[list[CriterionVerdict], _Comments]]:
    """Return a verdict on each criterion, in order, and the validator's comments."""
    criteria, result = subtask.success_criteria, executed.result
    comments = _Comments()
    if result.crashed:
        return list(crash_verdicts(criteria, result.crashed)), comments
    verifiable = tuple(criterion for criterion in criteria if criterion.mode is CriterionMode.VERIFIABLE)
    plausible = tuple(criterion for criterion in criteria if criterion.mode is CriterionMode.PLAUSIBLE)
    checked: tuple[CriterionVerdict, ...] = ()
    judgements: tuple[CriterionVerdict, ...] = ()
    if verifiable:
        result_of_check = yield CheckCriteria(subtask.subtask_id, attempt, verifiable, format_output(result.output))
        if not isinstance(result_of_check, CriteriaVerdicts):
            raise TypeError(f"expected verdicts, got {result_of_check!r}")
        checked = verdicts_from_engine(verifiable, result_of_check.verdicts)
    if plausible:
        answer = yield AskValidator(subtask, attempt, result, plausible)
        if isinstance(answer, SolveAgentReply) and isinstance(answer.output, JudgementOutput):
            judgements = verdicts_from_model(plausible, answer.output.verdicts)
            # Without a failed judgement the comments concern only the findings of the engine.
            if any(verdict.is_failed for verdict in judgements):
                comments = _Comments(answer.output.what_was_wrong.strip(), answer.output.what_to_do.strip())
        else:
            judgements = unjudged_verdicts(
                plausible, f"the criterion could not be judged: {getattr(answer, 'why', answer)}"
            )
    sources = iter(checked), iter(judgements)
    return [next(sources[criterion.mode is CriterionMode.PLAUSIBLE]) for criterion in criteria], comments


def _build_correction(
    subtask: SubTask, attempt: int, wrong: Sequence[CriterionVerdict], comments: _Comments
) -> CorrectionSignal:
    """Return the correction, with the evidence of all failures, because the validator does not know the engine's
    findings.
    """
    first = wrong[0]
    evidence = [f"{verdict.criterion}: {verdict.evidence}" for verdict in wrong]
    return CorrectionSignal(
        subtask_id=subtask.subtask_id,
        attempt_number=attempt,
        failed_criterion=first.criterion,
        failure_class=first.failure_class or FailureClass.LOGICAL,
        what_was_wrong="; ".join((*evidence, *filter(None, (comments.what_was_wrong,)))),
        what_to_do=comments.what_to_do or "fix each of these, and change nothing that already passes",
    )


def format_output(output: JsonValue) -> str:
    """Return the output as text: text as it is, anything else as JSON, and None as an empty string."""
    if isinstance(output, str):
        return output
    return "" if output is None else json.dumps(output, ensure_ascii=False)
