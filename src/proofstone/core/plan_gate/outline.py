"""A plan in any form: its steps, files, commands, and what it leaves open.

A PLAN.md is read by its own reader and held to its own rules; any other text is searched for what a plan has. Code, a
quotation and a comment leave nothing open: a TODO in an example is no unknown of the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from proofstone.contracts.plan import Plan, PlanProblem
from proofstone.core.plan.lint import lint
from proofstone.core.plan.problems import shortened
from proofstone.core.plan.reading import read_plan
from proofstone.core.plan.tags import Span, has_too_many_tags
from proofstone.core.plan_gate.document import Document, Kind, blanked
from proofstone.core.plan_gate.freeform import Freeform, may_be_read_loosely
from proofstone.core.plan_gate.step import Marker, Step
from proofstone.core.plan_gate.words import COMPLIANCE, DOMAINS, INTEGRATIONS, found, marker

__all__ = ["Marker", "Outline", "Step", "outline"]

_SAYS_NOTHING_OF_TASKS = frozenset(("no-task", "frontmatter", "key-link"))
_OUT_OF_ORDER = frozenset(("cycle", "unknown-dependency", "self-dependency"))
_COMMANDS_AND_PATHS = frozenset(("verify", "verification", "heldout", "files", "must-pass"))


@dataclass(frozen=True)
class Outline:
    title: str
    text: str
    """With plain line ends."""
    plan: Plan | None
    problems: tuple[PlanProblem, ...]
    """Of a PLAN.md: what its reader and its linter say."""
    steps: tuple[Step, ...]
    whole: Step
    """What is said outside of every step, and holds for all of them."""
    markers: tuple[Marker, ...]
    """At most one a line."""
    domains: tuple[str, ...]
    integrations: tuple[str, ...]
    compliance: tuple[str, ...]

    @property
    def is_plan(self) -> bool:
        """Whether it has the form of a PLAN.md, sound or not."""
        return self.plan is not None or bool(self.problems)

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path for step in (*self.steps, self.whole) for path in step.files))


def outline(text: str, path: str, root: str | None = None) -> Outline:
    """What a plan consists of; `root` is where its repository lies, if that is known."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    plan, problems = read_plan(text, path)
    document = Document.of("" if has_too_many_tags(text) else text)
    if plan is None and all(problem.rule in _SAYS_NOTHING_OF_TASKS for problem in problems):
        problems = ()
    if plan is not None:
        problems += lint(plan, text, root)
    title = plan.title if plan else _title(document, path)
    nothing = Step(title, 1, (), (), (), ordered=True, end=len(document.lines))
    questions: list[Marker] = []
    steps, whole = (tuple(_tasks(plan, problems, document)) if plan else ()), nothing
    if plan is None and not problems:
        steps, whole = Freeform(document, questions).read(title)
        if not steps and may_be_read_loosely(text):
            questions.clear()
            steps, whole = Freeform(document, questions, loosely=True).read(title)
    return Outline(
        title=title,
        text=text,
        plan=plan,
        problems=problems,
        steps=steps,
        whole=whole,
        markers=_markers(document, questions),
        domains=found(DOMAINS, text),
        integrations=found(INTEGRATIONS, text),
        compliance=found(COMPLIANCE, text),
    )


def _title(document: Document, path: str) -> str:
    headings = (text for _, _, text in document.tags.headings())
    said = next(headings, "") or next((line.text for line in document.lines if line.text.strip(" -")), "")
    return shortened(said[:1000].strip("#* "), 120) or PurePosixPath(path).name


def _tasks(plan: Plan, problems: tuple[PlanProblem, ...], document: Document) -> Iterator[Step]:
    lost = {problem.task for problem in problems if problem.rule in _OUT_OF_ORDER}
    for task, element in zip(plan.tasks, document.tags.tasks, strict=True):
        end = document.tags.line(max(element.span.end - 1, element.span.start))
        yield Step(
            name=task.name,
            line=task.line,
            files=task.files,
            verify=task.verify,
            done=task.done,
            ordered=task.id not in lost,
            checkpoint=task.type.is_checkpoint,
            end=end,
            text=document.between(task.line, end),
            action=task.action,
            wave=task.wave,
        )


def _markers(document: Document, questions: list[Marker]) -> tuple[Marker, ...]:
    silent = _commands_and_paths(document)
    by_line = {one.line: one for one in questions}
    for line in document.lines:
        spans = silent.get(line.number)
        heard = line._replace(plain=blanked(line.plain, spans)) if spans else line
        if line.kind is Kind.PROSE and line.plain and (said := marker(heard.unquoted)):
            by_line[line.number] = Marker(line.number, said)
    return tuple(by_line[number] for number in sorted(by_line))


def _commands_and_paths(document: Document) -> dict[int, list[Span]]:
    """By line: what of a PLAN.md holds commands. `! grep -r TODO src` looks for markers and is none."""
    silent: dict[int, list[Span]] = {}
    for element in document.tags.tasks:
        for part in element.parts:
            if part.name in _COMMANDS_AND_PATHS:
                for number, span in document.on_lines(Span(part.start, part.start + len(part.content))):
                    silent.setdefault(number, []).append(span)
    return silent
