"""What may not be used again in a task, and for how long. Pure.

What the controller blocks stays blocked to the end of the task: else a plan could go back and forth between two
approaches that have both failed. Only where nothing would be left to work with, the oldest are lifted, round by round.

Which plans are not taken: code decides, and the planner is told why. Pure.

| a plan that | is not taken, because |
|---|---|
| uses a blocked tool, or a tool that there is not | the controller or memory forbids it |
| touches a blocked target | likewise |
| is nearly an earlier one, after break_symmetry | it would fail in the same way |
| has criteria that only echo the intent | nothing would be proven by them |
| has a command that succeeds anyway | likewise: `true`, `echo ok`, `pytest; true` |
| looks for words in the result that are in its task | likewise: who repeats the task would pass |
| skips a number in its sequence | what waits for nothing would never begin |
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
from proofstone.agents.tools.models import WRITING
from proofstone.common.commands import loses_exit_code, proves_nothing
from proofstone.common.globs import matches

_WORKS: Final = frozenset(item.value for item in WRITING)
_ALL: Final = "."
"""Of paths, the one that all others are below."""


def enough_left(tools: Collection[str], blocked: Iterable[str]) -> bool:
    """Whether the work can still be done: by a tool that can change something, if there is any."""
    left = set(tools).difference(blocked)
    return bool(left & _WORKS) if _WORKS.intersection(tools) else bool(left)


@dataclass(frozen=True)
class Blocks:
    """What is in force."""

    by_round: tuple[tuple[str, ...], ...] = ()
    """Tools, as they were blocked: the oldest first."""
    targets: tuple[str, ...] = ()

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(tool for tools in self.by_round for tool in tools))

    def and_tools(self, used: tuple[str, ...], there_are: Collection[str]) -> Blocks:
        """With the tools of what failed, unless they are all that there is to work with."""
        if not used or not enough_left(there_are, used):
            return self
        held = replace(self, by_round=(*self.by_round, used))
        while not enough_left(there_are, held.tools):
            held = replace(held, by_round=held.by_round[1:])
        return held

    def and_targets(self, used: Iterable[str]) -> Blocks:
        """With what it was tried on. Who blocks the whole tree blocks every plan."""
        return replace(
            self, targets=tuple(dict.fromkeys((*self.targets, *(item for item in used if normpath(item) != _ALL))))
        )


NEARLY_THE_SAME: Final = 0.8
_ECHO: Final = 0.8
_BY_CONTROLLER: Final = "the controller has blocked it"
_BY_MEMORY: Final = "memory forbids it (`proofstone memory list`, `--no-memory`)"
_WORD: Final = re.compile(r"\w+")
_EMPTY_WORDS: Final = frozenset(
    {
        "a", "an", "and", "are", "as", "be", "been", "by", "done", "for", "has", "have", "in", "is", "it", "its", "of",
        "on", "or", "so", "task", "that", "the", "this", "to", "was", "were", "will", "with", "works", "correctly",
        "properly", "successfully", "completed", "achieved", "fulfilled", "satisfied", "met", "goal",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Bounds:
    """What a plan is held against."""

    tools: Collection[str]
    """That an executor has."""
    directive: PlanDirective | None = None
    calibration: Calibration = field(default_factory=Calibration)
    earlier: Sequence[Sequence[SubTask]] = ()
    """All plans of the task that were taken."""
    in_force: Blocks = field(default_factory=Blocks)
    """What earlier directives have blocked, and nothing has lifted."""

    @property
    def blocked_tools(self) -> frozenset[str]:
        """What memory forbids is left aside where nothing would be left to work with."""
        both = self.tools_of_controller | frozenset(self.calibration.blocked_tools)
        return both if enough_left(self.tools, both) else self.tools_of_controller

    @property
    def blocked_targets(self) -> frozenset[str]:
        return self.targets_of_controller | frozenset(self.calibration.blocked_targets)

    @property
    def tools_of_controller(self) -> frozenset[str]:
        """Those that the controller itself has blocked."""
        return frozenset((*(self.directive.blocked_tools if self.directive else ()), *self.in_force.tools))

    @property
    def targets_of_controller(self) -> frozenset[str]:
        return frozenset((*(self.directive.blocked_targets if self.directive else ()), *self.in_force.targets))


def why_not(plan: SolvePlanOutput, bounds: Bounds, intent: str, raw_input: str = "") -> tuple[str, ...]:
    """Everything that keeps the plan from being taken; nothing if it is. The intent, and the person's own words."""
    wrong = (
        *_tools(plan, bounds),
        *_targets(plan, bounds),
        *_sequence(plan),
        *_echoes(plan, intent, raw_input),
        *_empty_commands(plan),
    )
    return tuple(dict.fromkeys(wrong)) or tuple(_same_again(plan, bounds))


def similarity(plan: Sequence[SubTaskDraft | SubTask], other: Sequence[SubTaskDraft | SubTask]) -> float:
    """Of intents, files and tools: 1 is the same plan. Where neither has files or tools, they say nothing."""
    parts = [
        (_words(item.intent for item in plan), _words(item.intent for item in other)),
        ({path for item in plan for path in item.files}, {path for item in other for path in item.files}),
        ({tool for item in plan for tool in item.tools}, {tool for item in other for tool in item.tools}),
    ]
    told = [_overlap(here, there) for here, there in parts if here or there]
    return round(sum(told) / len(told), 9) if told else 1.0


def _tools(plan: SolvePlanOutput, bounds: Bounds) -> Iterator[str]:
    free = [tool for tool in bounds.tools if tool not in bounds.blocked_tools]
    for number, subtask in enumerate(plan.subtasks, start=1):
        for tool in subtask.tools:
            if tool in bounds.blocked_tools:
                by = _BY_CONTROLLER if tool in bounds.tools_of_controller else _BY_MEMORY
                yield f"subtask {number} uses {tool}: {by}; there are {', '.join(free) or 'none left'}"
            elif tool not in bounds.tools:
                yield f"subtask {number} uses {tool}, which there is not; there are {', '.join(free)}"
    unsaid = [number for number, subtask in enumerate(plan.subtasks, start=1) if not subtask.tools]
    if unsaid and bounds.blocked_tools:
        yield f"subtask {unsaid[0]} does not say which tools it uses, and some are blocked"


def _targets(plan: SolvePlanOutput, bounds: Bounds) -> Iterator[str]:
    for number, subtask in enumerate(plan.subtasks, start=1):
        for path in subtask.files:
            if _is_among(path, bounds.blocked_targets):
                by = _BY_CONTROLLER if _is_among(path, bounds.targets_of_controller) else _BY_MEMORY
                yield f"subtask {number} rests on {path}: {by}"


def _is_among(path: str, blocked: Collection[str]) -> bool:
    return any(matches(item, normpath(path)) or item == path for item in blocked)


def _sequence(plan: SolvePlanOutput) -> Iterator[str]:
    numbers = sorted({subtask.sequence for subtask in plan.subtasks})
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"the sequence is {', '.join(map(str, numbers))}: it begins at 1 and leaves no number out"


def _echoes(plan: SolvePlanOutput, intent: str, raw_input: str) -> Iterator[str]:
    for criterion in plan.task_criteria:
        if is_echo(criterion, intent, raw_input):
            yield f"the criterion {criterion.criterion!r} only says the intent again: say what one could see"
    for number, subtask in enumerate(plan.subtasks, start=1):
        for criterion in subtask.success_criteria:
            if is_echo(criterion, subtask.intent, subtask.context, intent, raw_input):
                yield f"subtask {number}: the criterion {criterion.criterion!r} only says its intent again"


def is_echo(criterion: Criterion, intent: str, *told: str) -> bool:
    """Whether it adds nothing to the intent. What the engine looks at itself is no echo, unless it looks for words in
    the result that were `told` with the intent: whoever repeats them would pass."""
    predicate = criterion.predicate
    if predicate is not None and predicate.kind is PredicateKind.OUTPUT_CONTAINS:
        return any(predicate.text.strip().casefold() in text.casefold() for text in (intent, *told))
    if criterion.mode is CriterionMode.VERIFIABLE:
        return False
    said, meant = _words([criterion.criterion]), _words([intent])
    return not said or len(said & meant) / len(said) >= _ECHO


def _empty_commands(plan: SolvePlanOutput) -> Iterator[str]:
    """Its exit code is all that the engine goes by."""
    criteria = (*plan.task_criteria, *(item for subtask in plan.subtasks for item in subtask.success_criteria))
    for command in (item.command for item in criteria if item.command):
        if proves_nothing(command):
            yield f"the command {command!r} succeeds whatever was done: it must fail while the criterion does not hold"
        elif loses_exit_code(command):
            yield f"the exit code of {command!r} is that of the last program in its pipe, which only shows something"


def _same_again(plan: SolvePlanOutput, bounds: Bounds) -> Iterator[str]:
    if bounds.directive is None or bounds.directive.directive is not DirectiveName.BREAK_SYMMETRY:
        return
    near = max((similarity(plan.subtasks, item) for item in bounds.earlier), default=0.0)
    if near >= NEARLY_THE_SAME:
        yield f"it is nearly an earlier plan (similarity {near:.2f}); break_symmetry wants another approach"


def _words(texts: Iterator[str] | Sequence[str]) -> set[str]:
    found = {word.casefold() for text in texts for word in _WORD.findall(text)}
    return found - _EMPTY_WORDS


def _overlap(here: set[str], there: set[str]) -> float:
    return len(here & there) / len(here | there)
