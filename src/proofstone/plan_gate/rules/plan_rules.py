"""Rate the quality and complexity of a plan, and find what code alone has against it.

    | quality | if |
    |---|---|
    | RICH | every step has files, a verification that can fail, a done criterion, and a place in the order |
    | ADEQUATE | most steps have a verification, their own or one of the whole text |
    | THIN | otherwise |

A checkpoint is for a person and needs none of this.

Every finding becomes a challenge with its line and a hint. The problems of the parser and the linter are included once.
Further rules check the repository, open points, and texts without a fixed form:

    | finding | is reported |
    |---|---|
    | it refuses the plan | each |
    | of one rule, BLOCKING or SIGNIFICANT | the first five, and the rest as one |
    | MINOR, up to three in total | each |
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
from proofstone.check.rules.protected import find_roles
from proofstone.common.commands import loses_exit_code
from proofstone.common.models import ChangeKind
from proofstone.common.risk import PathChange, Risk, assess_risk
from proofstone.plan_gate.models import Complexity
from proofstone.plan_gate.rules.document import PlanStep
from proofstone.plan_gate.rules.objections import RULES
from proofstone.plan_gate.rules.outline import PlanOutline
from proofstone.plan_gate.rules.tree import BaseTree, ExpectedFiles, find_uncovered, is_path_pattern
from proofstone.plans.fields import shorten_text
from proofstone.plans.lint import is_vague
from proofstone.plans.mentions import looks_like_file
from proofstone.plans.models import PlanProblem, ProblemSeverity
from proofstone.plans.order import TaskOrdering, resolve_dependencies
from proofstone.plans.parser import MAX_FILES

MANY_FILES = 10


def rate_quality(outline: PlanOutline) -> tuple[PlanQuality, str]:
    """Return the quality, and the reason in one line."""
    steps = [step for step in outline.steps if not step.is_checkpoint]
    if not steps:
        return PlanQuality.THIN, "no step that somebody could carry out was found"
    first_missing = next(((step, what) for step in steps for what in _list_missing_parts(step)), None)
    if first_missing is None:
        return (
            PlanQuality.RICH,
            f"{_describe_all(steps)} files, a verification, a done criterion and a place in the order",
        )
    first = f"line {first_missing[0].line} has {first_missing[1]}"
    if has_verification(outline.whole):
        return PlanQuality.ADEQUATE, f"there is a verification of the whole; {first}"
    verified = sum(map(has_verification, steps))
    count = f"{verified} of {len(steps)} steps have a verification"
    if 2 * verified > len(steps):
        return PlanQuality.ADEQUATE, f"{count}; {first}"
    return PlanQuality.THIN, f"only {count}; {first}" if verified else f"no step has a verification; {first}"


def has_verification(step: PlanStep) -> bool:
    """Whether a command is run for the step that can fail."""
    return any(not loses_exit_code(command) for command in step.verify)


def rate_complexity(outline: PlanOutline) -> Complexity:
    """Rate the complexity of a plan."""
    return Complexity(
        steps=min(len(outline.steps), 3),
        domains=min(len(outline.domains), 3),
        integrations=min(2 * len(outline.integrations), 4),
        compliance=2 if outline.compliance else 0,
        unknowns=min(len(outline.markers), 3),
        files=1 if len(outline.files) >= MANY_FILES else 0,
    )


def is_trivial_plan(outline: PlanOutline, tree: Collection[str]) -> bool:
    """Whether the plan has at most two steps, one file, no integration and no open point.

    A plan without a step or a file is not small but unknown, and some files are never trivial. `tree` is every file of
    the base commit.
    """
    return (
        1 <= len(outline.steps) <= 2
        and len(outline.files) == 1
        and _is_one_file(outline.files[0], tree)
        and _is_ordinary(outline.files[0])
        and not outline.integrations
        and not outline.markers
    )


def _is_one_file(path: str, tree: Collection[str]) -> bool:
    """Whether the path is neither a pattern nor a folder, with or without its slash."""
    if is_path_pattern(path) or "{" in path or not looks_like_file(path):
        return False
    below = f"{PurePosixPath(path)}/"
    return not any(file.startswith(below) for file in tree)


def _is_ordinary(path: str) -> bool:
    """Whether the file is not of the highest risk and does not decide what counts as proof."""
    plain = str(PurePosixPath(path))
    return assess_risk(PathChange(path=plain, kind=ChangeKind.MODIFIED)).risk is not Risk.RED and not find_roles(plain)


def _list_missing_parts(step: PlanStep) -> list[str]:
    missing = []
    if not step.files:
        missing.append("no files")
    if not has_verification(step):
        missing.append("no verification that could fail" if step.verify else "no verification")
    if not step.done:
        missing.append("no done criterion")
    if not step.is_ordered:
        missing.append("no place in the order")
    return missing


def _describe_all(steps: list[PlanStep]) -> str:
    return "the only step has" if len(steps) == 1 else f"all {len(steps)} steps have"


_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,4}[.)])\s+(?:\[[ xX]\]\s+)?")
MAX_PER_RULE = 5
MAX_MINOR = 3
"""For all rules together: small problems must not hide serious ones."""
_MAX_NAMED = 20
"""At most this many lines and hints are named if several violations are reported as one."""
_MAX_CLAIM = 300
_MAX_MITIGATION = 2000


@dataclass(frozen=True)
class RuleFinding:
    """A finding of a rule, as a challenge."""

    rule: str
    line: int
    draft: ChallengeDraft
    is_final: bool
    """`proofstone gate` would refuse the plan: only an edit helps, no argument does."""


@dataclass(frozen=True)
class _Violation:
    """A place where a rule does not hold, before it becomes a challenge."""

    rule: str
    line: int
    what: str
    hint: str
    is_final: bool = False
    guessed: bool = False


def find_rule_findings(outline: PlanOutline, tree: Collection[str]) -> tuple[RuleFinding, ...]:
    """Return the findings of all rules, most severe first. `tree` is every file of the base commit."""
    violations = [
        *map(_convert_problem, outline.problems),
        *_check_repository(outline, tree),
        *_check_files_modified(outline),
        *_check_markers(outline),
        *(() if outline.is_plan else _check_freeform(outline)),
    ]
    findings = map(_make_finding, _limit_violations(dict.fromkeys(violations)))
    return tuple(sorted(findings, key=lambda finding: (finding.draft.severity.rank, finding.line, finding.rule)))


def _convert_problem(problem: PlanProblem) -> _Violation:
    final = problem.severity is ProblemSeverity.ERROR
    return _Violation(problem.rule, problem.line, problem.message, problem.hint, is_final=final)


def _check_repository(outline: PlanOutline, tree: Collection[str]) -> Iterator[_Violation]:
    for missing in ExpectedFiles(outline, BaseTree(tree)).find_missing():
        yield _Violation(missing.rule, missing.line, missing.message, missing.hint, guessed=missing.is_guess)


def _check_files_modified(outline: PlanOutline) -> Iterator[_Violation]:
    declared = outline.plan.files_modified if outline.plan else ()
    listed = [path for step in outline.steps for path in step.files]
    differ = (*find_uncovered(listed, declared), *find_uncovered(declared, listed)) if declared else ()
    if differ:
        what = f"files_modified and the tasks differ: {', '.join(differ)}"
        yield _Violation("files-modified", _find_line(outline, "files_modified"), what, "name the same files in both")


def _check_markers(outline: PlanOutline) -> Iterator[_Violation]:
    lines = outline.text.split("\n")
    in_steps = {line for step in outline.steps for line in range(step.line, step.end + 1)}
    for marker in outline.markers:
        rule = "unknown-in-step" if marker.line in in_steps else "unknown"
        line_text = lines[marker.line - 1]
        context = "" if _is_whole_line(marker.text, line_text) else f": {shorten_text(line_text, 120)}"
        what = f"{marker.text!r} is left open{context}"
        yield _Violation(rule, marker.line, what, "decide it here, or ask for it in a checkpoint of its own")


def _is_whole_line(marker: str, line: str) -> bool:
    """Whether the line, without its bullet, contains only the marker."""
    text = _ITEM.sub("", line[:_MAX_CLAIM], count=1).strip()
    return text == marker or (marker.endswith("…") and text.startswith(marker[:-1]))


def _check_freeform(outline: PlanOutline) -> Iterator[_Violation]:
    if not outline.steps:
        yield _Violation(
            "no-steps", 1, "no steps were found", "write a numbered list of steps, each with its verification"
        )
    for step in (*outline.steps, outline.whole):
        yield from _check_step(step)
    yield from _check_order(outline.steps[:MAX_FILES])
    bare = [step for step in outline.steps if not step.verify]
    if bare and not has_verification(outline.whole):
        lines = ", ".join(str(step.line) for step in bare[:10]) + (", …" if len(bare) > 10 else "")
        what = f"nothing verifies {'this step' if len(bare) == 1 else f'{len(bare)} steps (lines {lines})'}"
        yield _Violation("no-verification", bare[0].line, what, "add to each: `Verify: pytest -q tests/test_thing.py`")


def _check_order(steps: Sequence[PlanStep]) -> Iterator[_Violation]:
    """Find steps without an order that share a file, and steps that wait for one another."""
    first_steps: dict[str, PlanStep] = {}
    for step in steps:
        shared = [path for path in step.files if not step.is_ordered and first_steps.setdefault(path, step) is not step]
        if shared:
            names = f"{shorten_text(first_steps[shared[0]].name, 60)!r} and {shorten_text(step.name, 60)!r}"
            hint = "number the steps, or say which one comes first"
            yield _Violation("overlapping-files", step.line, f"{names} both change {shorten_text(shared[0], 80)}", hint)
    known = {step.number for step in steps}
    orderings = [
        TaskOrdering(
            f"step {index}",
            step.name,
            step.line,
            str(step.number),
            depends_on=tuple(str(number) for number in step.waits_for if number in known),
        )
        for index, step in enumerate(steps, start=1)
    ]
    is_clear = len(known) == len(steps) and 0 not in known
    for problem in resolve_dependencies(orderings)[1] if is_clear else ():
        hint = "let one of them wait for no other, so that it can begin"
        yield _Violation(problem.rule, problem.line, problem.message.replace("tasks", "steps", 1), hint)


def _check_step(step: PlanStep) -> Iterator[_Violation]:
    for criterion in filter(is_vague, step.done):
        hint = "say what one can see or count: `parse()` refuses an empty file; the page answers within 200 ms"
        what = f"nobody can check {shorten_text(criterion, 80)!r}"
        yield _Violation("vague-done", step.find_line(criterion), what, hint)
    for command in filter(loses_exit_code, step.verify):
        what = f"`{shorten_text(command, 80)}` passes whatever was changed"
        hint = "let it fail when the step is not done: `pytest -q tests/test_thing.py`"
        yield _Violation("vacuous-verify", step.find_line(command), what, hint)


def _limit_violations(violations: Iterable[_Violation]) -> Iterator[_Violation]:
    """Limit the violations to a number that people read."""
    by_rule: dict[tuple[str, bool], list[_Violation]] = {}
    for violation in violations:
        by_rule.setdefault((violation.rule, violation.is_final), []).append(violation)
    minor = []
    for (rule, final), same in by_rule.items():
        if final:
            yield from same
        elif RULES[rule][0] is PlanSeverity.MINOR:
            minor.append(same)
        else:
            yield from same[:MAX_PER_RULE]
            if rest := same[MAX_PER_RULE:]:
                yield _merge_same_rule(rest)
    yield from _limit_minor(minor)


def _limit_minor(kinds: list[list[_Violation]]) -> Iterable[_Violation]:
    if sum(map(len, kinds)) <= MAX_MINOR:
        return chain.from_iterable(kinds)
    merged = [_merge_same_rule(same) for same in kinds]
    if len(merged) <= MAX_MINOR:
        return merged
    return [*merged[: MAX_MINOR - 1], _merge_rules(merged[MAX_MINOR - 1 :])]


def _merge_same_rule(same: list[_Violation]) -> _Violation:
    """Merge violations of one rule."""
    first = same[0]
    if len(same) == 1:
        return first
    lines = [*dict.fromkeys(str(violation.line) for violation in same[1:_MAX_NAMED])]
    where = f"line{'s' if len(lines) > 1 else ''} {', '.join(lines)}"
    what = f"{first.what} (and {len(same) - 1} more of the kind, on {where})"
    hints = "; ".join(dict.fromkeys(violation.hint for violation in same[:_MAX_NAMED]))
    return _Violation(first.rule, first.line, what, hints, guessed=first.guessed)


def _merge_rules(kinds: list[_Violation]) -> _Violation:
    """Merge violations of several rules, each with its line and its hint."""
    first, *others = sorted(kinds, key=lambda violation: violation.line)
    what = "; ".join(
        (shorten_text(first.what, 60), *(f"line {other.line}: {shorten_text(other.what, 60)}" for other in others))
    )
    hints = "; ".join(f"line {other.line}: {other.hint}" for other in (first, *others))
    return _Violation("several", first.line, what, hints, guessed=any(kind.guessed for kind in kinds))


def _make_finding(violation: _Violation) -> RuleFinding:
    severity, objection = RULES[violation.rule]
    draft = ChallengeDraft(
        claim=shorten_text(f"line {violation.line}: {violation.what}", _MAX_CLAIM),
        concern=objection.concern,
        failure_scenario=objection.failure_scenario,
        alternative=objection.alternative,
        severity=PlanSeverity.BLOCKING if violation.is_final else severity,
        confidence=ChallengeConfidence.MED if violation.guessed else ChallengeConfidence.HIGH,
        mitigation=shorten_text(violation.hint, _MAX_MITIGATION),
    )
    return RuleFinding(violation.rule, violation.line, draft, violation.is_final)


def _find_line(outline: PlanOutline, words: str) -> int:
    lines = outline.text.split("\n")
    return next((number for number, line in enumerate(lines, start=1) if words in line), 1)
