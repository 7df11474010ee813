"""A plan out of its text. Everything that is wrong is told at once, and what can be read is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from proofstone.plans.fields import criteria, dedented, error, is_none, paths, references, shortened, tests, warning
from proofstone.plans.frontmatter import read_frontmatter
from proofstone.plans.models import Plan, PlanProblem, PlanTask, TaskType
from proofstone.plans.order import Wanted, dependencies, waves
from proofstone.plans.tags import Part, Tags, TaskElement, has_too_many_tags
from proofstone.plans.verify import Verify

MOST_TASKS = 1000
MOST_FILES = 500

_WAVE = re.compile(r"(?:wave|welle|vague|onda|волна|波次?|ウェーブ)\s*#?([0-9]{1,6})(?![0-9.])", re.IGNORECASE)
_DEPENDS = ("depends_on", "depends-on", "dependson", "depends")
_NAME_LENGTH = 200
_MOST_REFERENCES = 100
_LONGEST_FILES = 20_000
_LABELS: Mapping[str, str] = {
    "action": "",
    "description": "",
    "instructions": "",
    "decision": "Decision",
    "context": "Context",
    "options": "Options",
    "what-built": "What was built",
    "how-to-verify": "How to verify",
    "resume-signal": "How to go on",
    "behavior": "Behaviour",
    "behaviour": "Behaviour",
    "implementation": "Implementation",
    "read_first": "Read first",
    "acceptance_criteria": "Acceptance criteria",
    "verify": "Verify",
    "verification": "Verify",
    "done": "Done when",
}
_OPTION = re.compile(r"\s*<option(?:\s+id=[\"']?([\w.-]+)[\"']?)?\s*>\s*", re.IGNORECASE)
_FOR_AND_AGAINST = re.compile(r"\s*<(pros?|cons?)>\s*", re.IGNORECASE)
_INNER_TAG = re.compile(r"</?(?:options?|name|pros?|cons?|description)>", re.IGNORECASE)
_TASK_EXAMPLE = '<task type="auto"> with <name>, <files>, <action>, <verify> and <done> in it, closed by </task>'
_NO_TASK = error("no-task", 1, "there is no task in this plan", f"write {_TASK_EXAMPLE}")


def read_plan(text: str, path: str) -> tuple[Plan | None, tuple[PlanProblem, ...]]:
    """The plan, and what is wrong with it; no plan where no task can be found."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if has_too_many_tags(text):
        hint = "split it: a plan is read, run and reviewed as a whole"
        return None, (error("too-large", 1, "this has more than 20,000 tags", hint),)
    tags = Tags(text)
    if "<task" not in text.lower():
        return None, (*read_frontmatter(tags.lines).problems, _NO_TASK)
    if not tags.tasks and tags.fences:
        tags = tags.with_fenced_plan()
    head = read_frontmatter(tags.lines, min(tags.shown, default=0))
    problems = [*head.problems, *_malformed(tags)]
    if not tags.tasks:
        problems.append(_NO_TASK)
    if len(tags.tasks) > MOST_TASKS:
        message = f"{len(tags.tasks):,} tasks are more than the {MOST_TASKS:,} that one plan may have"
        problems.append(error("too-large", 1, message, "split it into several plans"))
    if not tags.tasks or len(tags.tasks) > MOST_TASKS:
        return None, tuple(problems)
    tasks = _Tasks(tags)
    objective = tags.section("objective") or _under_heading(tags, "objective", head.end)
    plan = Plan(
        path=path,
        title=_title(tags, objective, path),
        phase=head.phase,
        plan=head.plan,
        type=head.type,
        wave=head.wave,
        depends_on=head.depends_on,
        files_modified=head.files_modified,
        autonomous=head.autonomous,
        must_haves=head.must_haves,
        objective=objective,
        context=tags.section("context") or _under_heading(tags, "context", head.end),
        tasks=tasks.read(),
    )
    return plan, (*problems, *tasks.problems)


def _malformed(tags: Tags) -> Iterator[PlanProblem]:
    for position in tags.broken_tasks:
        hint = 'close the quotes and the tag on one line: <task type="auto">; no `<` inside quotes'
        yield error("broken-tag", tags.line(position), "a <task that is no whole tag", hint)
    for tag in tags.strays:
        message = f"<{tag.name}> stands outside every task"
        yield error(
            "stray-tag",
            tags.line(tag.span.start),
            message,
            f"is a <task> misspelt or closed too early? write {_TASK_EXAMPLE}",
        )


def _title(tags: Tags, objective: str, path: str) -> str:
    first = tags.tasks[0].span.start
    headings = (text for position, level, text in tags.headings() if level == 1 and position < first)
    said = next(headings, "") or next((line for line in objective.split("\n") if line.strip()), "")
    return shortened(said.strip("#* "), 120) or PurePosixPath(path).name


def _under_heading(tags: Tags, name: str, first_line: int) -> str:
    """The text below `## Objective`, up to the next heading or task."""
    headings = [found for found in tags.headings() if tags.line(found[0]) > first_line]
    for at, (position, _, text) in enumerate(headings):
        if text.strip(":* ").lower() == name:
            ends = [tags.tasks[0].span.start, len(tags.text)]
            ends += [headings[at + 1][0]] if at + 1 < len(headings) else []
            end = min(end for end in ends if end > position)
            return tags.text[position:end].partition("\n")[2].strip()
    return ""


@dataclass
class _Tasks:
    """All task elements of a document, on their way to being tasks."""

    tags: Tags
    problems: list[PlanProblem] = field(default_factory=list)

    def read(self) -> tuple[PlanTask, ...]:
        outline = _Outline([*self.tags.headings()])
        read, wanted, files = [], [], 0
        for number, element in enumerate(self.tags.tasks, start=1):
            outline.advance(element.span.start)
            one = _Task(self.tags, element, f"task-{number:02d}", self.tags.line(element.span.start), self.problems)
            task = one.read(outline.name)
            files += len(task.files)
            read.append(task)
            wanted.append(
                Wanted(
                    id=task.id,
                    name=task.name,
                    line=task.line,
                    own_id=element.attributes.get("id", ""),
                    wave=one.own_wave() or outline.wave,
                    after=one.after(),
                )
            )
        if files > MOST_FILES:
            message = f"{files:,} declared files are more than the {MOST_FILES:,} that one plan may have"
            self.problems.append(error("too-large", 1, message, "name folders instead: `src/generated/`"))
        edges, impossible = dependencies(wanted)
        self.problems += impossible
        wave = waves(edges)
        return tuple(task.model_copy(update={"depends_on": edges[task.id], "wave": wave[task.id]}) for task in read)


@dataclass
class _Outline:
    """The headings of the document, walked from task to task."""

    headings: list[tuple[int, int, str]]
    at: int = 0
    name: str = ""
    """What the heading since the last task calls the next one."""
    _above: list[tuple[int, int | None]] = field(default_factory=list)

    def advance(self, position: int) -> None:
        self.name = ""
        while self.at < len(self.headings) and self.headings[self.at][0] < position:
            _, level, text = self.headings[self.at]
            self.at += 1
            wave = _WAVE.match(text.strip("*_ "))
            is_task = text.lower().startswith("task ")
            self.name = text if not wave and (level >= 3 or is_task) else ""
            if is_task:
                continue  # stands in its wave, whatever its level
            while self._above and self._above[-1][0] >= level:
                self._above.pop()
            self._above.append((level, int(wave[1]) if wave else None))

    @property
    def wave(self) -> int | None:
        """The wave whose section this is: a heading holds until the next of its level or above."""
        return next((wave for _, wave in reversed(self._above) if wave is not None), None)


@dataclass
class _Task:
    """One task element."""

    tags: Tags
    element: TaskElement
    id: str
    line: int
    problems: list[PlanProblem]

    def read(self, heading: str) -> PlanTask:
        kind = self._type()
        if not self.element.closed:
            self._error("unclosed-tag", self.line, "this <task> has no </task>", "write </task> after its last element")
        for part in self.element.parts:
            if not part.closed:
                message = f"<{part.name}> has no </{part.name}>"
                self._error("unclosed-tag", self._line(part), message, f"write </{part.name}> where it ends")
        name = self._name(heading, kind)
        if kind.is_checkpoint:
            return PlanTask(id=self.id, name=name, type=kind, line=self.line, prompt=self._said(without=("files",)))
        if len(names := self._parts("name")) > 1:
            hint = 'is a <task type="auto"> misspelt or missing before the second one?'
            self._error("two-names", self._line(names[1]), "this task has two <name>s", hint)
        verify = self._commands("verify", "verification")
        heldout = self._commands("heldout")
        if not self._parts("verify", "verification"):
            hint = "write the command that proves it: <verify>pytest -q tests/test_thing.py</verify>"
            self._error("missing-verify", self.line, f"{name!r} has no <verify>", hint)
        return PlanTask(
            id=self.id,
            name=name,
            type=kind,
            files=self._files(name),
            action=self._action(name),
            verify=verify,
            heldout=heldout,
            must_pass=tuple(dict.fromkeys(test for part in self._parts("must-pass") for test in tests(part.content))),
            done=self._done(name),
            flaky_allowed=self._flaky(),
            test_changes=" ".join(self.element.attributes.get("test-changes", "").split()),
            line=self.line,
        )

    def own_wave(self) -> int | None:
        said = self.element.attributes.get("wave", "")
        if re.fullmatch(r"[0-9]{1,6}", said):
            return int(said)
        if said:
            self.problems.append(warning("wave", self.line, f"wave={said!r} is no number", 'write wave="2"', self.id))
        return None

    def after(self) -> tuple[str, ...] | None:
        attributes = [self.element.attributes[key] for key in _DEPENDS if key in self.element.attributes]
        said = [*attributes, *(part.content for part in self._parts("depends_on", "dependencies"))]
        found = tuple(reference for text in said for reference in references(text))
        if len(found) > _MOST_REFERENCES:
            self._error("too-large", self.line, f"this task names {len(found):,} others", "use `### Wave N` headings")
        return found[:_MOST_REFERENCES] if said else None

    def _type(self) -> TaskType:
        said = self.element.attributes.get("type", "auto").strip().lower().replace("_", "-")
        if said in ("", "auto"):
            return TaskType.AUTO
        kind = next((kind for kind in TaskType if said in (kind, kind.removeprefix("checkpoint:"))), None)
        if kind is not None:
            return kind
        kind = TaskType.HUMAN_VERIFY if said.startswith(("checkpoint", "human", "manual")) else TaskType.AUTO
        if said not in ("checkpoint", "tdd", "execute"):
            hint = f"it is taken as {kind.value}; there are: {', '.join(TaskType)}"
            self.problems.append(warning("task-type", self.line, f"there is no task type {said!r}", hint, self.id))
        return kind

    def _name(self, heading: str, kind: TaskType) -> str:
        attributes = self.element.attributes
        written = [part.content for part in self._parts("name", "title")]
        said = [*written, attributes.get("name", ""), attributes.get("title", ""), heading]
        if kind.is_checkpoint:
            said += [part.content for part in self._parts("decision", "what-built", "action")]
        for text in said:
            if name := shortened(text.strip().strip("*#").strip(), _NAME_LENGTH):
                return name
        if kind.is_checkpoint:
            return kind.value
        self._error(
            "missing-name", self.line, "this task has no <name>", "write <name>what it does, in a few words</name>"
        )
        return self.id

    def _files(self, name: str) -> tuple[str, ...]:
        parts = self._parts("files")
        if any(len(part.content) > _LONGEST_FILES for part in parts):
            self._error(
                "too-large", self._line(parts[0]), "<files> is longer than a list of files", "name folders: `src/`"
            )
            return ()
        found = tuple(dict.fromkeys(path for part in parts for path in paths(part.content)))
        if not parts:
            hint = "name what it may change: <files>src/thing.py, tests/test_thing.py</files>, or <files>none</files>"
            self._error("missing-files", self.line, f"{name!r} has no <files>", hint)
        elif not found and not any(is_none(part.content) and part.content.strip() for part in parts):
            hint = "name what it may change, one path a line, or write <files>none</files>"
            self._error("missing-files", self._line(parts[0]), f"<files> of {name!r} is empty", hint)
        return found

    def _action(self, name: str) -> str:
        said = self._said(without=("files", "verify", "verification", "done", "heldout"))
        if not said:
            hint = "say what is to be done: <action>Add …</action>"
            self._error("missing-action", self.line, f"{name!r} has no <action>", hint)
        return said

    def _done(self, name: str) -> tuple[str, ...]:
        found = tuple(item for part in self._parts("done") for item in criteria(part.content))
        found = found or tuple(item for part in self._parts("acceptance_criteria") for item in criteria(part.content))
        if not found:
            hint = (
                "say by what one sees that it is finished: <done>`parse()` refuses an empty file; 4 tests pass</done>"
            )
            self._error("missing-done", self.line, f"{name!r} has no <done>", hint)
        return found

    def _commands(self, *names: str) -> tuple[str, ...]:
        verify = Verify(self.id, element=names[0])
        for part in self._parts(*names):
            verify.read(part.content, self._line_of_content(part))
        self.problems += verify.problems
        kept = verify.only_those_that_tell()
        for command in dict.fromkeys(verify.commands):
            if command not in kept:
                line = self._line(self._parts(*names)[0])
                message = f"`{shortened(command, 40)}` can only succeed; it is left out"
                self.problems.append(warning("idle-command", line, message, "leave it out", self.id))
        return kept

    def _flaky(self) -> bool:
        said = self.element.attributes.get("flaky", "").lower()
        if said not in ("", "allowed", "true", "yes", "no", "false"):
            message = f"flaky={said!r} is not known and is not allowed"
            self.problems.append(warning("flaky", self.line, message, 'write flaky="allowed" or leave it out', self.id))
        return said in ("allowed", "true", "yes")

    def _said(self, without: tuple[str, ...]) -> str:
        """What the elements say, in the plan's order, each under its label where it needs one."""
        said = []
        for part in self.element.parts:
            text = dedented(part.content).strip("\n").rstrip()
            if part.name not in _LABELS or part.name in without or not text.strip():
                continue
            text = _options(text) if part.name == "options" else text.lstrip()
            said.append(f"{_LABELS[part.name]}:\n{text}" if _LABELS[part.name] else text)
        return "\n\n".join(said)

    def _parts(self, *names: str) -> tuple[Part, ...]:
        return tuple(part for part in self.element.parts if part.name in names)

    def _line(self, part: Part) -> int:
        """The line of its opening tag."""
        return self.tags.line(max(part.start - 1, 0))

    def _line_of_content(self, part: Part) -> int:
        return self.tags.line(part.start)

    def _error(self, rule: str, line: int, message: str, hint: str) -> None:
        self.problems.append(error(rule, line, message, hint, self.id))


def _options(text: str) -> str:
    """`<option id="a"><name>…</name>…` as lines a person can read."""
    text = "\n".join(" ".join(line.split()) for line in text.split("\n") if line.strip())
    text = _OPTION.sub(lambda found: f"\n- {found[1]}: " if found[1] else "\n- ", text)
    text = _FOR_AND_AGAINST.sub(lambda found: f"\n  {'for' if found[1][0] in 'pP' else 'against'}: ", text)
    lines = (line.rstrip() for line in _INNER_TAG.sub("", text).split("\n"))
    return "\n".join(line for line in lines if line)
