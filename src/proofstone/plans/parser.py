"""Parse the text of a plan. All problems are reported at once, and every part that can be read is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from proofstone.plans.fields import (
    dedent_element,
    is_none_word,
    make_error,
    make_warning,
    parse_criteria,
    parse_paths,
    parse_references,
    parse_test_ids,
    shorten_text,
)
from proofstone.plans.frontmatter import read_frontmatter
from proofstone.plans.models import Plan, PlanProblem, PlanTask, TaskType
from proofstone.plans.order import TaskOrdering, compute_task_waves, resolve_dependencies
from proofstone.plans.tags import PlanTags, TaskElement, TaskPart, has_too_many_tags
from proofstone.plans.verify import VerifyParser

MAX_TASKS = 1000
MAX_FILES = 500

_WAVE = re.compile(r"(?:wave|welle|vague|onda|волна|波次?|ウェーブ)\s*#?([0-9]{1,6})(?![0-9.])", re.IGNORECASE)
_DEPENDS = ("depends_on", "depends-on", "dependson", "depends")
_MAX_NAME_LENGTH = 200
_MAX_REFERENCES = 100
_MAX_FILES_LENGTH = 20_000
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
_PROS_AND_CONS = re.compile(r"\s*<(pros?|cons?)>\s*", re.IGNORECASE)
_INNER_TAG = re.compile(r"</?(?:options?|name|pros?|cons?|description)>", re.IGNORECASE)
_TASK_EXAMPLE = '<task type="auto"> with <name>, <files>, <action>, <verify> and <done> in it, closed by </task>'
_NO_TASK = make_error("no-task", 1, "this plan has no task", f"write {_TASK_EXAMPLE}")


def read_plan(text: str, path: str) -> tuple[Plan | None, tuple[PlanProblem, ...]]:
    """Return the plan and its problems. The plan is None if no task can be found."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if has_too_many_tags(text):
        hint = "split the plan: it is read, run and reviewed as a whole"
        return None, (make_error("too-large", 1, "this text has more than 20,000 tags", hint),)
    tags = PlanTags(text)
    if "<task" not in text.lower():
        return None, (*read_frontmatter(tags.lines).problems, _NO_TASK)
    if not tags.tasks and tags.fences:
        tags = tags.unfence_plan()
    head = read_frontmatter(tags.lines, min(tags.ignored_fence_lines, default=0))
    problems = [*head.problems, *_find_malformed_tags(tags)]
    if not tags.tasks:
        problems.append(_NO_TASK)
    if len(tags.tasks) > MAX_TASKS:
        message = f"{len(tags.tasks):,} tasks are more than the limit of {MAX_TASKS:,} per plan"
        problems.append(make_error("too-large", 1, message, "split it into several plans"))
    if not tags.tasks or len(tags.tasks) > MAX_TASKS:
        return None, tuple(problems)
    tasks = _TaskListParser(tags)
    objective = tags.read_section("objective") or _read_section(tags, "objective", head.end)
    plan = Plan(
        path=path,
        title=_find_title(tags, objective, path),
        phase=head.phase,
        plan=head.plan,
        type=head.type,
        wave=head.wave,
        depends_on=head.depends_on,
        files_modified=head.files_modified,
        autonomous=head.autonomous,
        must_haves=head.must_haves,
        objective=objective,
        context=tags.read_section("context") or _read_section(tags, "context", head.end),
        tasks=tasks.read(),
    )
    return plan, (*problems, *tasks.problems)


def _find_malformed_tags(tags: PlanTags) -> Iterator[PlanProblem]:
    for position in tags.broken_tasks:
        hint = 'close the quotes and the tag on one line: <task type="auto">; no `<` inside quotes'
        yield make_error("broken-tag", tags.line_number(position), "this <task is not a complete tag", hint)
    for tag in tags.stray_tags:
        message = f"<{tag.name}> is outside of every task"
        yield make_error(
            "stray-tag",
            tags.line_number(tag.span.start),
            message,
            f"is a <task> misspelled or closed too early? write {_TASK_EXAMPLE}",
        )


def _find_title(tags: PlanTags, objective: str, path: str) -> str:
    first_task = tags.tasks[0].span.start
    headings = (text for position, level, text in tags.find_headings() if level == 1 and position < first_task)
    title = next(headings, "") or next((line for line in objective.split("\n") if line.strip()), "")
    return shorten_text(title.strip("#* "), 120) or PurePosixPath(path).name


def _read_section(tags: PlanTags, name: str, first_line: int) -> str:
    """Return the text below `## Objective`, up to the next heading or task."""
    headings = [heading for heading in tags.find_headings() if tags.line_number(heading[0]) > first_line]
    for index, (position, _, text) in enumerate(headings):
        if text.strip(":* ").lower() == name:
            ends = [tags.tasks[0].span.start, len(tags.text)]
            ends += [headings[index + 1][0]] if index + 1 < len(headings) else []
            end = min(end for end in ends if end > position)
            return tags.text[position:end].partition("\n")[2].strip()
    return ""


@dataclass
class _TaskListParser:
    """Parses all task elements of a document."""

    tags: PlanTags
    problems: list[PlanProblem] = field(default_factory=list)

    def read(self) -> tuple[PlanTask, ...]:
        outline = _Outline([*self.tags.find_headings()])
        tasks, orderings, file_count = [], [], 0
        for number, element in enumerate(self.tags.tasks, start=1):
            outline.advance(element.span.start)
            parser = _TaskParser(
                self.tags, element, f"task-{number:02d}", self.tags.line_number(element.span.start), self.problems
            )
            task = parser.read(outline.name)
            file_count += len(task.files)
            tasks.append(task)
            orderings.append(
                TaskOrdering(
                    id=task.id,
                    name=task.name,
                    line=task.line,
                    own_id=element.attributes.get("id", ""),
                    wave=parser.read_wave() or outline.wave,
                    depends_on=parser.read_dependencies(),
                )
            )
        if file_count > MAX_FILES:
            message = f"{file_count:,} declared files are more than the limit of {MAX_FILES:,} per plan"
            self.problems.append(make_error("too-large", 1, message, "name folders instead: `src/generated/`"))
        edges, impossible = resolve_dependencies(orderings)
        self.problems += impossible
        wave = compute_task_waves(edges)
        return tuple(task.model_copy(update={"depends_on": edges[task.id], "wave": wave[task.id]}) for task in tasks)


@dataclass
class _Outline:
    """The headings of the document, consumed from task to task."""

    headings: list[tuple[int, int, str]]
    at: int = 0
    name: str = ""
    """The name that the latest heading gives to the next task."""
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
                continue  # a task heading belongs to its wave, whatever its level
            while self._above and self._above[-1][0] >= level:
                self._above.pop()
            self._above.append((level, int(wave[1]) if wave else None))

    @property
    def wave(self) -> int | None:
        """The number of the wave section at this position. A heading holds until the next one of its level or above."""
        return next((wave for _, wave in reversed(self._above) if wave is not None), None)


@dataclass
class _TaskParser:
    """Parses one task element."""

    tags: PlanTags
    element: TaskElement
    id: str
    line: int
    problems: list[PlanProblem]

    def read(self, heading: str) -> PlanTask:
        kind = self._read_type()
        if not self.element.is_closed:
            self._add_error(
                "unclosed-tag", self.line, "this <task> has no </task>", "write </task> after its last element"
            )
        for part in self.element.parts:
            if not part.is_closed:
                message = f"<{part.name}> has no </{part.name}>"
                self._add_error(
                    "unclosed-tag", self._opening_line(part), message, f"write </{part.name}> where it ends"
                )
        name = self._read_name(heading, kind)
        if kind.is_checkpoint:
            return PlanTask(
                id=self.id, name=name, type=kind, line=self.line, prompt=self._compose_text(without=("files",))
            )
        if len(names := self._find_parts("name")) > 1:
            hint = 'is a <task type="auto"> misspelled or missing before the second one?'
            self._add_error("two-names", self._opening_line(names[1]), "this task has two <name>s", hint)
        verify = self._read_commands("verify", "verification")
        heldout = self._read_commands("heldout")
        if not self._find_parts("verify", "verification"):
            hint = "write the command that proves it: <verify>pytest -q tests/test_thing.py</verify>"
            self._add_error("missing-verify", self.line, f"{name!r} has no <verify>", hint)
        return PlanTask(
            id=self.id,
            name=name,
            type=kind,
            files=self._read_files(name),
            action=self._read_action(name),
            verify=verify,
            heldout=heldout,
            must_pass=tuple(
                dict.fromkeys(test for part in self._find_parts("must-pass") for test in parse_test_ids(part.content))
            ),
            done=self._read_criteria(name),
            flaky_allowed=self._read_flaky(),
            test_changes=" ".join(self.element.attributes.get("test-changes", "").split()),
            line=self.line,
        )

    def read_wave(self) -> int | None:
        value = self.element.attributes.get("wave", "")
        if re.fullmatch(r"[0-9]{1,6}", value):
            return int(value)
        if value:
            self.problems.append(
                make_warning("wave", self.line, f"wave={value!r} is not a number", 'write wave="2"', self.id)
            )
        return None

    def read_dependencies(self) -> tuple[str, ...] | None:
        attributes = [self.element.attributes[key] for key in _DEPENDS if key in self.element.attributes]
        texts = [*attributes, *(part.content for part in self._find_parts("depends_on", "dependencies"))]
        names = tuple(reference for text in texts for reference in parse_references(text))
        if len(names) > _MAX_REFERENCES:
            self._add_error(
                "too-large", self.line, f"this task names {len(names):,} others", "use `### Wave N` headings"
            )
        return names[:_MAX_REFERENCES] if texts else None

    def _read_type(self) -> TaskType:
        value = self.element.attributes.get("type", "auto").strip().lower().replace("_", "-")
        if value in ("", "auto"):
            return TaskType.AUTO
        kind = next((kind for kind in TaskType if value in (kind, kind.removeprefix("checkpoint:"))), None)
        if kind is not None:
            return kind
        kind = TaskType.HUMAN_VERIFY if value.startswith(("checkpoint", "human", "manual")) else TaskType.AUTO
        if value not in ("checkpoint", "tdd", "execute"):
            hint = f"it is treated as {kind.value}; the types are: {', '.join(TaskType)}"
            self.problems.append(
                make_warning("task-type", self.line, f"there is no task type {value!r}", hint, self.id)
            )
        return kind

    def _read_name(self, heading: str, kind: TaskType) -> str:
        attributes = self.element.attributes
        element_names = [part.content for part in self._find_parts("name", "title")]
        candidates = [*element_names, attributes.get("name", ""), attributes.get("title", ""), heading]
        if kind.is_checkpoint:
            candidates += [part.content for part in self._find_parts("decision", "what-built", "action")]
        for text in candidates:
            if name := shorten_text(text.strip().strip("*#").strip(), _MAX_NAME_LENGTH):
                return name
        if kind.is_checkpoint:
            return kind.value
        self._add_error(
            "missing-name", self.line, "this task has no <name>", "write <name>what it does, in a few words</name>"
        )
        return self.id

    def _read_files(self, name: str) -> tuple[str, ...]:
        parts = self._find_parts("files")
        if any(len(part.content) > _MAX_FILES_LENGTH for part in parts):
            self._add_error(
                "too-large",
                self._opening_line(parts[0]),
                "<files> is too long for a list of files",
                "name folders: `src/`",
            )
            return ()
        files = tuple(dict.fromkeys(path for part in parts for path in parse_paths(part.content)))
        if not parts:
            hint = "name what it may change: <files>src/thing.py, tests/test_thing.py</files>, or <files>none</files>"
            self._add_error("missing-files", self.line, f"{name!r} has no <files>", hint)
        elif not files and not any(is_none_word(part.content) and part.content.strip() for part in parts):
            hint = "name what it may change, one path per line, or write <files>none</files>"
            self._add_error("missing-files", self._opening_line(parts[0]), f"<files> of {name!r} is empty", hint)
        return files

    def _read_action(self, name: str) -> str:
        action = self._compose_text(without=("files", "verify", "verification", "done", "heldout"))
        if not action:
            hint = "say what is to be done: <action>Add …</action>"
            self._add_error("missing-action", self.line, f"{name!r} has no <action>", hint)
        return action

    def _read_criteria(self, name: str) -> tuple[str, ...]:
        found_criteria = tuple(
            criterion for part in self._find_parts("done") for criterion in parse_criteria(part.content)
        )
        found_criteria = found_criteria or tuple(
            criterion for part in self._find_parts("acceptance_criteria") for criterion in parse_criteria(part.content)
        )
        if not found_criteria:
            hint = (
                "say how you can tell that it is finished: <done>`parse()` refuses an empty file; 4 tests pass</done>"
            )
            self._add_error("missing-done", self.line, f"{name!r} has no <done>", hint)
        return found_criteria

    def _read_commands(self, *names: str) -> tuple[str, ...]:
        verify = VerifyParser(self.id, element=names[0])
        for part in self._find_parts(*names):
            verify.read(part.content, self._content_line(part))
        self.problems += verify.problems
        commands = verify.select_conclusive()
        for command in dict.fromkeys(verify.commands):
            if command not in commands:
                line = self._opening_line(self._find_parts(*names)[0])
                message = f"`{shorten_text(command, 40)}` cannot fail, so it is not run"
                self.problems.append(make_warning("idle-command", line, message, "remove it", self.id))
        return commands

    def _read_flaky(self) -> bool:
        value = self.element.attributes.get("flaky", "").lower()
        if value not in ("", "allowed", "true", "yes", "no", "false"):
            message = f"flaky={value!r} is not a known value, so flaky tests are not allowed"
            self.problems.append(
                make_warning("flaky", self.line, message, 'write flaky="allowed", or remove it', self.id)
            )
        return value in ("allowed", "true", "yes")

    def _compose_text(self, without: tuple[str, ...]) -> str:
        """Return the text of the elements in the order of the plan, each under its label if it has one."""
        sections = []
        for part in self.element.parts:
            text = dedent_element(part.content).strip("\n").rstrip()
            if part.name not in _LABELS or part.name in without or not text.strip():
                continue
            text = _format_options(text) if part.name == "options" else text.lstrip()
            sections.append(f"{_LABELS[part.name]}:\n{text}" if _LABELS[part.name] else text)
        return "\n\n".join(sections)

    def _find_parts(self, *names: str) -> tuple[TaskPart, ...]:
        return tuple(part for part in self.element.parts if part.name in names)

    def _opening_line(self, part: TaskPart) -> int:
        """Return the line of the opening tag."""
        return self.tags.line_number(max(part.start - 1, 0))

    def _content_line(self, part: TaskPart) -> int:
        return self.tags.line_number(part.start)

    def _add_error(self, rule: str, line: int, message: str, hint: str) -> None:
        self.problems.append(make_error(rule, line, message, hint, self.id))


def _format_options(text: str) -> str:
    """Format `<option id="a"><name>…</name>…` as lines for a person."""
    text = "\n".join(" ".join(line.split()) for line in text.split("\n") if line.strip())
    text = _OPTION.sub(lambda match: f"\n- {match[1]}: " if match[1] else "\n- ", text)
    text = _PROS_AND_CONS.sub(lambda match: f"\n  {'for' if match[1][0] in 'pP' else 'against'}: ", text)
    lines = (line.rstrip() for line in _INNER_TAG.sub("", text).split("\n"))
    return "\n".join(line for line in lines if line)
