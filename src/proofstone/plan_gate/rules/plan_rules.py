"""How good a plan is by rule, how complex, and whether it is trivial.

| quality | when |
|---|---|
| RICH | every step has files, a verification that is not vacuous, a done criterion, and its place in the order |
| ADEQUATE | most steps have a verification, their own or one of the whole text |
| THIN | otherwise |

A checkpoint is for a person and needs none of this.

What code alone has against a plan, as challenges: each with its line, and with what would be right.

What the reader of plans and its linter say is said once, by them; here it becomes a challenge. Further rules look at
the repository, at what the plan leaves open, and at texts that have no form of their own.

| what is found | is told |
|---|---|
| what refuses the plan | each |
| of one rule, BLOCKING or SIGNIFICANT | the first five, and those beyond as one |
| MINOR, up to three in all | each |
| MINOR, more than three | each rule as one; of more than three rules the first two, and the others as one |
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePosixPath

from proofstone.agents.roles.models.plan_gate import ChallengeDraft
from proofstone.agents.roles.models.plan_gate_records import ChallengeConfidence, PlanQuality, PlanSeverity
from proofstone.check.rules.protected import roles
from proofstone.common.commands import loses_exit_code
from proofstone.common.models import ChangeKind
from proofstone.common.risk import PathChange, Risk, risk_of
from proofstone.plan_gate.models import Complexity
from proofstone.plan_gate.rules.document import Step
from proofstone.plan_gate.rules.objections import RULES
from proofstone.plan_gate.rules.outline import Outline
from proofstone.plan_gate.rules.tree import Expected, Tree, is_pattern, uncovered
from proofstone.plans.fields import shortened
from proofstone.plans.lint import is_vague
from proofstone.plans.mentions import has_ending
from proofstone.plans.models import PlanProblem, ProblemSeverity
from proofstone.plans.order import Wanted, dependencies
from proofstone.plans.reading import MOST_FILES

MANY_FILES = 10


def quality(outline: Outline) -> tuple[PlanQuality, str]:
    """And why, in one line."""
    steps = [step for step in outline.steps if not step.checkpoint]
    if not steps:
        return PlanQuality.THIN, "no step that somebody could carry out was found"
    lacking = next(((step, what) for step in steps for what in _lacks(step)), None)
    if lacking is None:
        return PlanQuality.RICH, f"{_all(steps)} files, a verification, a done criterion and a place in the order"
    first = f"line {lacking[0].line} has {lacking[1]}"
    if is_verified(outline.whole):
        return PlanQuality.ADEQUATE, f"there is a verification of the whole; {first}"
    verified = sum(map(is_verified, steps))
    count = f"{verified} of {len(steps)} steps have a verification"
    if 2 * verified > len(steps):
        return PlanQuality.ADEQUATE, f"{count}; {first}"
    return PlanQuality.THIN, f"only {count}; {first}" if verified else f"no step has a verification; {first}"


def is_verified(step: Step) -> bool:
    """Whether something is run for it that can fail."""
    return any(not loses_exit_code(command) for command in step.verify)


def complexity(outline: Outline) -> Complexity:
    return Complexity(
        steps=min(len(outline.steps), 3),
        domains=min(len(outline.domains), 3),
        integrations=min(2 * len(outline.integrations), 4),
        compliance=2 if outline.compliance else 0,
        unknowns=min(len(outline.markers), 3),
        files=1 if len(outline.files) >= MANY_FILES else 0,
    )


def is_trivial(outline: Outline, tree: Collection[str]) -> bool:
    """At most two steps, one file, no integration, no unknown marker. What names no step or no file is not small but
    unknown, and some files are never a trifle. `tree` is every file of the base commit."""
    return (
        1 <= len(outline.steps) <= 2
        and len(outline.files) == 1
        and _is_one_file(outline.files[0], tree)
        and _is_ordinary(outline.files[0])
        and not outline.integrations
        and not outline.markers
    )


def _is_one_file(path: str, tree: Collection[str]) -> bool:
    """Neither a pattern nor a folder, whether it is written with its slash or without."""
    if is_pattern(path) or "{" in path or not has_ending(path):
        return False
    below = f"{PurePosixPath(path)}/"
    return not any(item.startswith(below) for item in tree)


def _is_ordinary(path: str) -> bool:
    """Not of the highest risk, and it decides nothing about what counts as proof."""
    plain = str(PurePosixPath(path))
    return risk_of(PathChange(path=plain, kind=ChangeKind.MODIFIED)).risk is not Risk.RED and not roles(plain)


def _lacks(step: Step) -> list[str]:
    missing = []
    if not step.files:
        missing.append("no files")
    if not is_verified(step):
        missing.append("no verification that could fail" if step.verify else "no verification")
    if not step.done:
        missing.append("no done criterion")
    if not step.ordered:
        missing.append("no place in the order")
    return missing


def _all(steps: list[Step]) -> str:
    return "the one step has" if len(steps) == 1 else f"all {len(steps)} steps have"


_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,4}[.)])\s+(?:\[[ xX]\]\s+)?")
MOST_OF_A_KIND = 5
MOST_MINOR = 3
"""Of all rules together: small things take no place from what is grave."""
_MOST_NAMED = 20
"""So many lines and hints are named where several are told as one."""
_LONGEST_CLAIM = 300
_LONGEST_MITIGATION = 2000


@dataclass(frozen=True)
class RuleFinding:
    rule: str
    line: int
    draft: ChallengeDraft
    final: bool
    """`proofstone gate` would refuse the plan: only editing it helps, no argument does."""


@dataclass(frozen=True)
class _Found:
    """A rule that does not hold somewhere, before it is put into words."""

    rule: str
    line: int
    what: str
    hint: str
    final: bool = False
    guessed: bool = False


def rule_findings(outline: Outline, tree: Collection[str]) -> tuple[RuleFinding, ...]:
    """The gravest first; `tree` is every file of the base commit."""
    found = [
        *map(_of_problem, outline.problems),
        *_of_the_repository(outline, tree),
        *_of_files_modified(outline),
        *_of_markers(outline),
        *(() if outline.is_plan else _of_free_form(outline)),
    ]
    findings = map(_finding, _grouped(dict.fromkeys(found)))
    return tuple(sorted(findings, key=lambda one: (one.draft.severity.rank, one.line, one.rule)))


def _of_problem(problem: PlanProblem) -> _Found:
    final = problem.severity is ProblemSeverity.ERROR
    return _Found(problem.rule, problem.line, problem.message, problem.hint, final=final)


def _of_the_repository(outline: Outline, tree: Collection[str]) -> Iterator[_Found]:
    for item in Expected(outline, Tree(tree)).missing():
        yield _Found(item.rule, item.line, item.what, item.hint, guessed=item.guessed)


def _of_files_modified(outline: Outline) -> Iterator[_Found]:
    said = outline.plan.files_modified if outline.plan else ()
    listed = [path for step in outline.steps for path in step.files]
    differ = (*uncovered(listed, said), *uncovered(said, listed)) if said else ()
    if differ:
        what = f"files_modified and the tasks differ: {', '.join(differ)}"
        yield _Found("files-modified", _line_with(outline, "files_modified"), what, "name the same files in both")


def _of_markers(outline: Outline) -> Iterator[_Found]:
    lines = outline.text.split("\n")
    in_steps = {line for step in outline.steps for line in range(step.line, step.end + 1)}
    for marker in outline.markers:
        rule = "unknown-in-step" if marker.line in in_steps else "unknown"
        said = lines[marker.line - 1]
        around = "" if _is_all_of(marker.text, said) else f": {shortened(said, 120)}"
        what = f"{marker.text!r} is left open{around}"
        yield _Found(rule, marker.line, what, "decide it here, or ask for it in a checkpoint of its own")


def _is_all_of(marker: str, line: str) -> bool:
    """Whether the line, without what makes it an item, says no more."""
    said = _ITEM.sub("", line[:_LONGEST_CLAIM], count=1).strip()
    return said == marker or (marker.endswith("…") and said.startswith(marker[:-1]))


def _of_free_form(outline: Outline) -> Iterator[_Found]:
    if not outline.steps:
        yield _Found("no-steps", 1, "no steps were found", "write a numbered list of steps, each with its verification")
    for step in (*outline.steps, outline.whole):
        yield from _of_step(step)
    yield from _of_order(outline.steps[:MOST_FILES])
    bare = [step for step in outline.steps if not step.verify]
    if bare and not is_verified(outline.whole):
        lines = ", ".join(str(step.line) for step in bare[:10]) + (", …" if len(bare) > 10 else "")
        what = f"nothing verifies {'this step' if len(bare) == 1 else f'{len(bare)} steps (lines {lines})'}"
        yield _Found("no-verification", bare[0].line, what, "add to each: `Verify: pytest -q tests/test_thing.py`")


def _of_order(steps: Sequence[Step]) -> Iterator[_Found]:
    """Steps without an order that share a file, and steps that wait for one another."""
    first: dict[str, Step] = {}
    for step in steps:
        shared = [path for path in step.files if not step.ordered and first.setdefault(path, step) is not step]
        if shared:
            names = f"{shortened(first[shared[0]].name, 60)!r} and {shortened(step.name, 60)!r}"
            hint = "number the steps, or say which one comes first"
            yield _Found("overlapping-files", step.line, f"{names} both change {shortened(shared[0], 80)}", hint)
    known = {step.number for step in steps}
    wanted = [
        Wanted(
            f"step {at}",
            step.name,
            step.line,
            str(step.number),
            after=tuple(str(item) for item in step.waits_for if item in known),
        )
        for at, step in enumerate(steps, start=1)
    ]
    is_clear = len(known) == len(steps) and 0 not in known
    for problem in dependencies(wanted)[1] if is_clear else ():
        hint = "let one of them wait for no other, so that it can begin"
        yield _Found(problem.rule, problem.line, problem.message.replace("tasks", "steps", 1), hint)


def _of_step(step: Step) -> Iterator[_Found]:
    for criterion in filter(is_vague, step.done):
        hint = "say what one can see or count: `parse()` refuses an empty file; the page answers within 200 ms"
        what = f"nobody can check {shortened(criterion, 80)!r}"
        yield _Found("vague-done", step.line_of(criterion), what, hint)
    for command in filter(loses_exit_code, step.verify):
        what = f"`{shortened(command, 80)}` passes whatever was changed"
        hint = "let it fail when the step is not done: `pytest -q tests/test_thing.py`"
        yield _Found("vacuous-verify", step.line_of(command), what, hint)


def _grouped(found: Iterable[_Found]) -> Iterator[_Found]:
    """As many as somebody reads."""
    by_rule: dict[tuple[str, bool], list[_Found]] = {}
    for item in found:
        by_rule.setdefault((item.rule, item.final), []).append(item)
    minor = []
    for (rule, final), same in by_rule.items():
        if final:
            yield from same
        elif RULES[rule][0] is PlanSeverity.MINOR:
            minor.append(same)
        else:
            yield from same[:MOST_OF_A_KIND]
            if rest := same[MOST_OF_A_KIND:]:
                yield _as_one(rest)
    yield from _few(minor)


def _few(kinds: list[list[_Found]]) -> Iterable[_Found]:
    if sum(map(len, kinds)) <= MOST_MINOR:
        return chain.from_iterable(kinds)
    told = [_as_one(same) for same in kinds]
    if len(told) <= MOST_MINOR:
        return told
    return [*told[: MOST_MINOR - 1], _several(told[MOST_MINOR - 1 :])]


def _as_one(same: list[_Found]) -> _Found:
    """Those of one rule."""
    first = same[0]
    if len(same) == 1:
        return first
    lines = [*dict.fromkeys(str(item.line) for item in same[1:_MOST_NAMED])]
    where = f"line{'s' if len(lines) > 1 else ''} {', '.join(lines)}"
    what = f"{first.what} (and {len(same) - 1} more of the kind, on {where})"
    hints = "; ".join(dict.fromkeys(item.hint for item in same[:_MOST_NAMED]))
    return _Found(first.rule, first.line, what, hints, guessed=first.guessed)


def _several(kinds: list[_Found]) -> _Found:
    """Those of several rules, each with its line and its hint."""
    first, *others = sorted(kinds, key=lambda one: one.line)
    what = "; ".join(
        (shortened(first.what, 60), *(f"line {other.line}: {shortened(other.what, 60)}" for other in others))
    )
    hints = "; ".join(f"line {other.line}: {other.hint}" for other in (first, *others))
    return _Found("several", first.line, what, hints, guessed=any(kind.guessed for kind in kinds))


def _finding(found: _Found) -> RuleFinding:
    severity, objection = RULES[found.rule]
    draft = ChallengeDraft(
        claim=shortened(f"line {found.line}: {found.what}", _LONGEST_CLAIM),
        concern=objection.concern,
        failure_scenario=objection.failure_scenario,
        alternative=objection.alternative,
        severity=PlanSeverity.BLOCKING if found.final else severity,
        confidence=ChallengeConfidence.MED if found.guessed else ChallengeConfidence.HIGH,
        mitigation=shortened(found.hint, _LONGEST_MITIGATION),
    )
    return RuleFinding(found.rule, found.line, draft, found.final)


def _line_with(outline: Outline, words: str) -> int:
    lines = outline.text.split("\n")
    return next((number for number, line in enumerate(lines, start=1) if words in line), 1)
