"""What code alone has against a plan, as challenges: each with its line, and with what would be right.

What the reader of plans and its linter say is said once, by them; here it becomes a challenge. Further rules look at
the repository, at what the plan leaves open, and at texts that have no form of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from assay.contracts.plan import PlanProblem, ProblemSeverity
from assay.contracts.plan_gate.answers import ChallengeDraft
from assay.contracts.plan_gate.record import ChallengeConfidence, PlanSeverity
from assay.core.commands import loses_exit_code
from assay.core.plan.lint import is_vague
from assay.core.plan.problems import shortened
from assay.core.plan_gate.missing import Expected
from assay.core.plan_gate.objections import RULES
from assay.core.plan_gate.outline import Outline
from assay.core.plan_gate.quality import is_verified
from assay.core.plan_gate.step import Step
from assay.core.plan_gate.tree import Tree, uncovered

MOST_OF_A_KIND = 5
"""So many challenges of one rule that does not refuse the plan; those beyond are told as one."""
_LONGEST_CLAIM = 300
_LONGEST_MITIGATION = 2000


@dataclass(frozen=True)
class RuleFinding:
    rule: str
    line: int
    draft: ChallengeDraft
    final: bool
    """`assay gate` would refuse the plan: only editing it helps, no argument does."""


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
    for one in Expected(outline, Tree(tree)).missing():
        yield _Found(one.rule, one.line, one.what, one.hint, guessed=one.guessed)


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
        what = f"{marker.text!r} is left open: {shortened(lines[marker.line - 1], 120)}"
        yield _Found(rule, marker.line, what, "decide it here, or ask for it in a checkpoint of its own")


def _of_free_form(outline: Outline) -> Iterator[_Found]:
    if not outline.steps:
        yield _Found("no-steps", 1, "no steps were found", "write a numbered list of steps, each with its verification")
    for step in (*outline.steps, outline.whole):
        yield from _of_step(step)
    bare = [step for step in outline.steps if not step.verify]
    if bare and not is_verified(outline.whole):
        lines = ", ".join(str(step.line) for step in bare[:10]) + (", …" if len(bare) > 10 else "")
        what = f"nothing verifies {'this step' if len(bare) == 1 else f'{len(bare)} steps (lines {lines})'}"
        yield _Found("no-verification", bare[0].line, what, "add to each: `Verify: pytest -q tests/test_thing.py`")


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
    """With all beyond the first few of a rule told as one."""
    by_rule: dict[tuple[str, bool], list[_Found]] = {}
    for one in found:
        by_rule.setdefault((one.rule, one.final), []).append(one)
    for (_, final), same in by_rule.items():
        kept = same if final else same[:MOST_OF_A_KIND]
        yield from kept
        if rest := same[len(kept) :]:
            lines = ", ".join(dict.fromkeys(str(one.line) for one in rest[:20]))
            what = (
                f"{rest[0].what} (and {len(rest) - 1} more of the kind, on lines {lines})" if rest[1:] else rest[0].what
            )
            yield _Found(rest[0].rule, rest[0].line, what, rest[0].hint, guessed=rest[0].guessed)


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
