"""Which tools and targets are blocked, and which plans are rejected. Pure.

What the controller blocks stays blocked until the end of the task: otherwise a plan could alternate between two
approaches that have both failed. Only when nothing would be left to work with are the oldest blocks lifted, round by
round.

Code rejects plans, and the planner receives the reason.

| a plan is rejected if it | because |
|---|---|
| uses a blocked or unknown tool | the controller or memory forbids it |
| touches a blocked target | the controller or memory forbids it |
| is almost an earlier plan, after break_symmetry | it would fail in the same way |
| has criteria that only repeat the intent | they would prove nothing |
| has a command that always succeeds | it would prove nothing: `true`, `echo ok`, `pytest; true` |
| searches the result for words of its own task | repeating the task would pass |
| skips a number in its sequence | a subtask would wait for nothing and never start |
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from posixpath import normpath
from typing import Final

from proofstone.agents.memory.rules.calibration import Calibration
from proofstone.agents.roles.models.solve import SolvePlanOutput, SubTaskDraft
from proofstone.agents.roles.models.solve_messages import (
    Criterion,
    CriterionMode,
    DirectiveName,
    PlanDirective,
    PredicateKind,
    SubTask,
)
from proofstone.agents.tools.models import WRITING_TOOLS
from proofstone.common.commands import loses_exit_code, proves_nothing
from proofstone.common.globs import matches

_WRITING_TOOLS: Final = frozenset(item.value for item in WRITING_TOOLS)
_WHOLE_TREE: Final = "."
"""The path that contains all others."""


def has_working_tools(tools: Collection[str], blocked: Iterable[str]) -> bool:
    """Return whether work is still possible: with a tool that can change something, if there are any."""
    remaining = set(tools).difference(blocked)
    return bool(remaining & _WRITING_TOOLS) if _WRITING_TOOLS.intersection(tools) else bool(remaining)


@dataclass(frozen=True)
class Blocks:
    """The blocks of a task."""

    by_round: tuple[tuple[str, ...], ...] = ()
    """The blocked tools by round, the oldest first."""
    targets: tuple[str, ...] = ()

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(tool for tools in self.by_round for tool in tools))

    def block_tools(self, used: tuple[str, ...], there_are: Collection[str]) -> Blocks:
        """Block the tools of a failure, unless no other tools are left to work with."""
        if not used or not has_working_tools(there_are, used):
            return self
        blocks = replace(self, by_round=(*self.by_round, used))
        while not has_working_tools(there_are, blocks.tools):
            blocks = replace(blocks, by_round=blocks.by_round[1:])
        return blocks

    def block_targets(self, used: Iterable[str]) -> Blocks:
        """Block the targets of a failure, except the whole tree, which would block every plan."""
        return replace(
            self,
            targets=tuple(dict.fromkeys((*self.targets, *(path for path in used if normpath(path) != _WHOLE_TREE)))),
        )


SIMILARITY_LIMIT: Final = 0.8
_ECHO_THRESHOLD: Final = 0.8
_BY_CONTROLLER: Final = "the controller blocked it"
_BY_MEMORY: Final = "memory forbids it (`proofstone memory list`, `--no-memory`)"
_WORD: Final = re.compile(r"\w+")
_STOP_WORDS: Final = frozenset(
    {
        "a", "an", "and", "are", "as", "be", "been", "by", "done", "for", "has", "have", "in", "is", "it", "its", "of",
        "on", "or", "so", "task", "that", "the", "this", "to", "was", "were", "will", "with", "works", "correctly",
        "properly", "successfully", "completed", "achieved", "fulfilled", "satisfied", "met", "goal",
    }
)  # fmt: skip


@dataclass(frozen=True)
class PlanConstraints:
    """The constraints that a plan is checked against."""

    tools: Collection[str]
    """The tools of an executor."""
    directive: PlanDirective | None = None
    calibration: Calibration = field(default_factory=Calibration)
    earlier_plans: Sequence[Sequence[SubTask]] = ()
    """All accepted plans of the task."""
    blocks: Blocks = field(default_factory=Blocks)
    """The blocks of earlier directives."""

    @property
    def blocked_tools(self) -> frozenset[str]:
        """The blocked tools. What memory forbids is ignored if nothing would be left to work with."""
        all_blocked = self.controller_blocked_tools | frozenset(self.calibration.blocked_tools)
        return all_blocked if has_working_tools(self.tools, all_blocked) else self.controller_blocked_tools

    @property
    def blocked_targets(self) -> frozenset[str]:
        return self.controller_blocked_targets | frozenset(self.calibration.blocked_targets)

    @property
    def controller_blocked_tools(self) -> frozenset[str]:
        """The tools that the controller has blocked."""
        return frozenset((*(self.directive.blocked_tools if self.directive else ()), *self.blocks.tools))

    @property
    def controller_blocked_targets(self) -> frozenset[str]:
        return frozenset((*(self.directive.blocked_targets if self.directive else ()), *self.blocks.targets))


def find_solve_plan_problems(
    plan: SolvePlanOutput, bounds: PlanConstraints, intent: str, raw_input: str = ""
) -> tuple[str, ...]:
    """Return all reasons to reject the plan; empty if there are none. `intent` and `raw_input` are the task."""
    problems = (
        *_tool_problems(plan, bounds),
        *_target_problems(plan, bounds),
        *_sequence_problems(plan),
        *_echo_problems(plan, intent, raw_input),
        *_command_problems(plan),
    )
    return tuple(dict.fromkeys(problems)) or tuple(_similarity_problems(plan, bounds))


def plan_similarity(plan: Sequence[SubTaskDraft | SubTask], other: Sequence[SubTaskDraft | SubTask]) -> float:
    """Return the similarity of intents, files and tools; 1 is the same plan. Files or tools that neither names are
    ignored.
    """
    parts = [
        (_collect_words(subtask.intent for subtask in plan), _collect_words(subtask.intent for subtask in other)),
        ({path for subtask in plan for path in subtask.files}, {path for subtask in other for path in subtask.files}),
        ({tool for subtask in plan for tool in subtask.tools}, {tool for subtask in other for tool in subtask.tools}),
    ]
    overlaps = [_overlap(left, right) for left, right in parts if left or right]
    return round(sum(overlaps) / len(overlaps), 9) if overlaps else 1.0


def _tool_problems(plan: SolvePlanOutput, bounds: PlanConstraints) -> Iterator[str]:
    available = [tool for tool in bounds.tools if tool not in bounds.blocked_tools]
    for number, subtask in enumerate(plan.subtasks, start=1):
        for tool in subtask.tools:
            if tool in bounds.blocked_tools:
                reason = _BY_CONTROLLER if tool in bounds.controller_blocked_tools else _BY_MEMORY
                yield f"subtask {number} uses {tool}: {reason}; available: {', '.join(available) or 'none'}"
            elif tool not in bounds.tools:
                yield f"subtask {number} uses {tool}, which does not exist; available: {', '.join(available)}"
    unnamed = [number for number, subtask in enumerate(plan.subtasks, start=1) if not subtask.tools]
    if unnamed and bounds.blocked_tools:
        yield f"subtask {unnamed[0]} does not name its tools, and some tools are blocked"


def _target_problems(plan: SolvePlanOutput, bounds: PlanConstraints) -> Iterator[str]:
    for number, subtask in enumerate(plan.subtasks, start=1):
        for path in subtask.files:
            if _matches_any(path, bounds.blocked_targets):
                reason = _BY_CONTROLLER if _matches_any(path, bounds.controller_blocked_targets) else _BY_MEMORY
                yield f"subtask {number} uses {path}: {reason}"


def _matches_any(path: str, blocked: Collection[str]) -> bool:
    return any(matches(pattern, normpath(path)) or pattern == path for pattern in blocked)


def _sequence_problems(plan: SolvePlanOutput) -> Iterator[str]:
    numbers = sorted({subtask.sequence for subtask in plan.subtasks})
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"the sequence is {', '.join(map(str, numbers))}: it must start at 1 and skip no number"


def _echo_problems(plan: SolvePlanOutput, intent: str, raw_input: str) -> Iterator[str]:
    for criterion in plan.task_criteria:
        if is_echo(criterion, intent, raw_input):
            yield f"the criterion {criterion.criterion!r} only repeats the intent: name something that can be observed"
    for number, subtask in enumerate(plan.subtasks, start=1):
        for criterion in subtask.success_criteria:
            if is_echo(criterion, subtask.intent, subtask.context, intent, raw_input):
                yield f"subtask {number}: the criterion {criterion.criterion!r} only repeats its intent"


def is_echo(criterion: Criterion, intent: str, *told: str) -> bool:
    """Return whether the criterion adds nothing to the intent. A criterion that the engine checks is no echo, unless it
    searches the result for words that were `told` with the intent: repeating them would pass.
    """
    predicate = criterion.predicate
    if predicate is not None and predicate.kind is PredicateKind.OUTPUT_CONTAINS:
        return any(predicate.text.strip().casefold() in text.casefold() for text in (intent, *told))
    if criterion.mode is CriterionMode.VERIFIABLE:
        return False
    words, intent_words = _collect_words([criterion.criterion]), _collect_words([intent])
    return not words or len(words & intent_words) / len(words) >= _ECHO_THRESHOLD


def _command_problems(plan: SolvePlanOutput) -> Iterator[str]:
    """Yield commands that prove nothing: the engine relies on their exit code alone."""
    criteria = (
        *plan.task_criteria,
        *(criterion for subtask in plan.subtasks for criterion in subtask.success_criteria),
    )
    for command in (criterion.command for criterion in criteria if criterion.command):
        if proves_nothing(command):
            yield f"the command {command!r} always succeeds: it must fail while the criterion is not met"
        elif loses_exit_code(command):
            yield f"the exit code of {command!r} is that of the last program in its pipe, which only filters output"


def _similarity_problems(plan: SolvePlanOutput, bounds: PlanConstraints) -> Iterator[str]:
    if bounds.directive is None or bounds.directive.directive is not DirectiveName.BREAK_SYMMETRY:
        return
    highest = max((plan_similarity(plan.subtasks, earlier) for earlier in bounds.earlier_plans), default=0.0)
    if highest >= SIMILARITY_LIMIT:
        yield f"the plan is almost an earlier one (similarity {highest:.2f}); break_symmetry demands another approach"


def _collect_words(texts: Iterator[str] | Sequence[str]) -> set[str]:
    words = {word.casefold() for text in texts for word in _WORD.findall(text)}
    return words - _STOP_WORDS


def _overlap(left: set[str], right: set[str]) -> float:
    return len(left & right) / len(left | right)
