"""Find the steps of a text that is not a PLAN.md: a design, an issue, notes.

    | the text has | it is |
    |---|---|
    | a heading `Step 2`, `Phase 1: …`, or any heading below `Tasks`, `Implementation plan`, … | a step, up to the next
      heading of its level |
    | if there is no such heading: a numbered or ticked list item, or a bullet below `Steps`, `Tasks`, … | a step,
      with the text indented below it |
    | text below `Acceptance criteria`, `Done when`, … | done criteria |
    | text below `Verification`, `Test plan`, …, or after `Verify:`, also at the end of an item | commands, by the
      rules of `<verify>` |
    | if there is none of these: a numbered heading, a paragraph `**Step 1** - …`, a row of a table of tasks | a step |
    | text below `Open questions`, `Unknowns` | markers, one per item |
    | a list below `Goals`, `Background`, `Risks`, … | ignored |

Criteria and commands that belong to no step belong to the whole plan. So do those on a separate line right after a
list, and the tests that its last item runs. Each line is read once. The size of a step is limited to what somebody
could carry out, so that no long text has to be searched for very many things.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from proofstone.plan_gate.rules.document import DocumentLine, LineKind, MarkdownDocument, OpenPoint, PlanStep
from proofstone.plans.fields import is_none_word, parse_criteria, parse_paths, shorten_text
from proofstone.plans.mentions import find_paths_in_code, find_paths_in_prose, is_check_command
from proofstone.plans.parser import MAX_FILES
from proofstone.plans.verify import VerifyParser


class SectionTopic(Enum):
    """The subject of a section."""

    NONE = ""
    STEPS = "steps"
    DONE = "done"
    VERIFY = "verify"
    QUESTIONS = "questions"
    ASIDE = "aside"


_TOPICS = (
    (
        SectionTopic.DONE,
        r"acceptance(?: criteria)?|definition of done|done(?: when| criteria)?|(?:success|exit) criteria"
        r"|(?:it )?must show|fertig(?: wenn)?",
    ),
    (
        SectionTopic.VERIFY,
        r"verify|verification|validation|test(?:ing)? (?:plan|strategy)|testing|tests?|how to (?:test|verify)|checks?"
        r"|prüfen|prüfung",
    ),
    (SectionTopic.QUESTIONS, r"open (?:questions?|points|issues)|unknowns|questions|unresolved(?: questions)?"),
    (
        SectionTopic.STEPS,
        r"(?:the )?(?:implementation |work |action )?(?:steps|tasks|plan|phases|milestones|todos?|to[- ]dos?)"
        r"|implementation|what to do|to build|(?:proposed )?changes",
    ),
    (
        SectionTopic.ASIDE,
        r"(?:non-?)?goals?|background|context|motivation|introduction|overview|summary|risks?|alternatives.{0,40}|scope"
        r"|out of scope|references|links|requirements|constraints|assumptions|glossary|steps to reproduce|reproduction"
        r"|environment|notes|appendix|terminology|definitions|abstract|conclusion",
    ),
)
_TOPIC = re.compile("|".join(f"(?P<{topic.name}>{words})" for topic, words in _TOPICS), re.IGNORECASE)
_NUMBER = re.compile(r"(?:\d{1,3}\.)*\d{1,3}[.):]?\s+")
_STEP_HEADING = re.compile(
    r"(?:step|task|phase|milestone|stage|work ?package|iteration|part)\s{0,3}#?\d", re.IGNORECASE
)
_IN_ORDER = re.compile(f"{_STEP_HEADING.pattern}|{_NUMBER.pattern}", re.IGNORECASE)
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?:(?P<number>\d{1,4}[.)])|[-*+•])[ \t]+(?P<box>\[[ xX]\][ \t]+)?(?P<said>\S.*)")
_LABEL = re.compile(
    r"[ \t]*(?:[-*+•][ \t]+)?[*_]{0,3}(?P<label>[A-Za-z][A-Za-zäöü -]{2,30}?)[*_]{0,3}:[*_]{0,3}(?P<rest>.*)"
)
_INLINE = re.compile(
    r"(?<=[.;!?)`])[ \t]{1,3}[*_]{0,3}(?P<label>[Vv]erify|[Vv]erification|[Cc]heck|Prüfen|Prüfung|[Dd]one(?: when)?"
    r"|[Aa]cceptance(?: criteria)?|Fertig(?: wenn)?)[*_]{0,3}:[*_]{0,3}(?=\s)"
)
"""A label after the end of a sentence."""
_PARAGRAPH = re.compile(
    r"[*_]{0,3}(?:step|task|phase|stage|part)\s{0,3}#?\d{1,3}[*_]{0,3}\s{0,3}[-–—:.)][*_]{0,3}\s", re.IGNORECASE
)
_RARE_FORM = re.compile(
    r"^[ \t]{0,3}(?:\||\#{2,6}[ \t]{1,9}\d|[*_]{0,3}(?:step|task|phase|stage|part)\s{0,3}\#?\d)",
    re.IGNORECASE | re.MULTILINE,
)
_TABLE_RULE = re.compile(r"[\s|:-]+")
_TASK_COLUMN = re.compile(r"tasks?|steps?|what|todo|action", re.IGNORECASE)
_BEGINS_WITH_RUN = re.compile(
    r"(?:finally,? )?(?:re-?)?(?:run|execute|verify|check|test|make sure|ensure|confirm)\b|`", re.IGNORECASE
)
_STEP_NUMBER = re.compile(r"[#\s*_]*(?:[a-z]{4,12}\s{0,3}#?)?(\d{1,4})\b", re.IGNORECASE)
_NAMES_PREDECESSORS = re.compile(
    r"\b(?:depends? on|blocked by|after|once|requires)\s{1,3}"
    r"((?:steps?|tasks?|phases?)\s{0,3}#?\d{1,4}(?:\s{0,3}(?:,|and|&)\s{0,3}(?:(?:step|task|phase)\s)?#?\d{1,4}){0,9})",
    re.IGNORECASE,
)
_CODE = re.compile(r"`([^`]+)`")
_DIGITS = re.compile(r"\d+")
_FILES = re.compile(r"files?(?: changed| modified| touched)?", re.IGNORECASE)
_NAMES_DEPENDENCY = re.compile(
    r"\b(?:depends? on|dependenc(?:y|ies)|blocked by|(?:after|once|requires) (?:step|task|phase))\b",
    re.IGNORECASE,
)
_MAX_LINE_LENGTH = 2000
"""Characters of a line that are examined for its form."""
MAX_COMMANDS = 100
MAX_CRITERIA = 200
_MAX_DONE_LINES = 500


@dataclass
class _Draft:
    """A step that is being read."""

    name: str
    line: int
    level: int = 0
    """The level of the heading with which it began; 0 for a list item."""
    indent: int = 0
    ordered: bool = False
    end: int = 0
    files: dict[str, None] = field(default_factory=dict)
    commands: dict[str, None] = field(default_factory=dict)
    verify: list[str] = field(default_factory=list)
    """Lines for the parser of `<verify>`."""
    done: list[str] = field(default_factory=list)
    trailing: list[tuple[SectionTopic, str]] = field(default_factory=list)
    """Labelled lines below an item that are not indented. They belong to the item or to the whole list."""
    waits_for: set[int] = field(default_factory=set)
    number: int = 0

    def take(self, topic: SectionTopic, text: str) -> None:
        """Add the text of a label with this topic."""
        if topic is SectionTopic.VERIFY:
            self.verify.append(text)
        else:
            self.finish_with(text)
            self.look_at(_CODE.findall(text))

    def look_at(self, codes: Iterable[str]) -> None:
        """Add the code fragments that are checks."""
        for code in codes:
            if len(self.commands) < MAX_COMMANDS and is_check_command(code):
                self.commands[code] = None

    def finish_with(self, text: str) -> None:
        """Add a line of done criteria."""
        if len(self.done) < _MAX_DONE_LINES:
            self.done.append(text[:_MAX_LINE_LENGTH])

    def step(self, document: MarkdownDocument) -> PlanStep:
        verify = VerifyParser("")
        if self.verify:
            verify.read("\n".join(self.verify), self.line)
        return PlanStep(
            name=self.name,
            line=self.line,
            files=tuple(self.files),
            verify=tuple(dict.fromkeys((*verify.commands, *self.commands))),
            done=parse_criteria("\n".join(self.done))[:MAX_CRITERIA],
            is_ordered=self.ordered,
            waits_for=tuple(sorted(self.waits_for)),
            number=self.number,
            end=self.end,
            text=document.text_between(self.line, self.end),
        )


@dataclass
class FreeformParser:
    """Reads a document in one pass."""

    document: MarkdownDocument
    questions: list[OpenPoint] = field(default_factory=list)
    accepts_rare_forms: bool = False
    """Whether to accept steps in forms that are rarely used."""
    _columns: tuple[str, ...] = ()
    """The columns of the table of tasks that is being read."""
    _steps: list[_Draft] = field(default_factory=list)
    _step: _Draft | None = None
    _topic: SectionTopic = SectionTopic.NONE
    _topic_level: int = 0
    """The level of the heading that set the topic; 7 for a line such as `Acceptance criteria:`."""
    _topic_indent: int = 0
    _openers: tuple[SectionTopic, ...] = (SectionTopic.NONE, SectionTopic.STEPS)
    """The topics under which a list item begins a step; none if headings do."""
    _blank: bool = True

    def read(self, title: str) -> tuple[tuple[PlanStep, ...], PlanStep]:
        """Return the steps, and the text outside of them."""
        lines = self.document.lines
        whole_draft = _Draft(title, 1, end=len(lines), ordered=True)
        headings = self._read_headings()
        if any(is_step for _, _, is_step in headings.values()):
            self._openers = ()
        elif any(level > 1 and find_topic(heading) is SectionTopic.STEPS for level, heading, _ in headings.values()):
            self._openers = (SectionTopic.STEPS,)
        for line in lines:
            if line.number in headings:
                self._read_heading(line, *headings[line.number], whole_draft)
            elif line.kind in (LineKind.PROSE, LineKind.MARK):
                self._read_prose(line)
            target = self._step or whole_draft
            if line.number not in headings:
                self._read_content(line, target)
            if self._step is not None and line.text.strip():
                self._step.end = line.number
            self._blank = not line.text.strip()
        self._share_trailing(whole_draft)
        return tuple(draft.step(self.document) for draft in self._steps), whole_draft.step(self.document)

    def _share_trailing(self, whole: _Draft) -> None:
        """Move what follows a list and applies to all of it to the whole plan."""
        trailing = [draft for draft in self._steps if draft.trailing]
        applies_to_all = len(self._steps) > 1 and trailing == self._steps[-1:]
        for draft in trailing:
            for topic, text in draft.trailing:
                (whole if applies_to_all else draft).take(topic, text)
        last = self._steps[-1] if len(self._steps) > 1 else None
        if last and not last.level and _BEGINS_WITH_RUN.match(last.name):
            whole.look_at(last.commands)

    def _read_headings(self) -> dict[int, tuple[int, str, bool]]:
        """Return level, text and whether it begins a step, for each heading by line."""
        headings: dict[int, tuple[int, str, bool]] = {}
        steps_level = 0
        for position, level, text in self.document.tags.find_headings():
            title = text[:_MAX_LINE_LENGTH].strip("*_ ")
            topic = find_topic(title)
            if steps_level and level <= steps_level:
                steps_level = 0
            is_below = 0 < steps_level < level
            is_step = bool(_STEP_HEADING.match(title)) or (
                is_below and topic in (SectionTopic.NONE, SectionTopic.STEPS)
            )
            if topic is SectionTopic.STEPS and not is_step and level > 1:
                steps_level = level
            headings[self.document.tags.line_number(position)] = (level, title, is_step and level > 1)
        return _mark_numbered(headings) if self.accepts_rare_forms else headings

    def _read_heading(self, line: DocumentLine, level: int, title: str, is_step: bool, whole: _Draft) -> None:
        is_inside = self._step is not None and 0 < self._step.level < level
        self._topic, self._topic_level, self._topic_indent = find_topic(title), level, 0
        if is_step:
            if is_inside:
                self._dissolve(whole)
            number = int(number_match[1]) if (number_match := _STEP_NUMBER.match(title)) else 0
            self._begin(
                _Draft(_clean_name(title), line.number, level, ordered=bool(_IN_ORDER.match(title)), number=number)
            )
            self._topic = SectionTopic.NONE
        elif not is_inside:
            self._step = None

    def _read_prose(self, line: DocumentLine) -> None:
        """Find what the line opens or closes."""
        item = _ITEM.match(line.text[:_MAX_LINE_LENGTH])
        if item is None:
            if self.accepts_rare_forms and self._topic in self._openers and _PARAGRAPH.match(line.text):
                self._begin(_Draft(_clean_name(line.text[:_MAX_LINE_LENGTH]), line.number, 7, ordered=True))
                return
            indented = line.text[:1] in (" ", "\t")
            if self._step and not self._step.level and self._blank and line.text.strip() and not indented:
                self._step = None
            self._read_label_line(line)
            return
        indent = len(item["indent"].expandtabs(4))
        if self._topic_level == 7 and indent < self._topic_indent:
            self._topic = SectionTopic.NONE
        if self._topic not in self._openers:
            return
        is_nested = self._step is not None and bool(self._step.level or indent > self._step.indent + 1)
        is_listed = bool(item["number"] or item["box"]) or self._topic is SectionTopic.STEPS
        if is_listed and not is_nested and _split_label(item["said"])[0] is SectionTopic.NONE:
            ordered = bool(item["number"]) or bool(_NAMES_DEPENDENCY.search(item["said"]))
            number = int(item["number"][:-1]) if item["number"] else 0
            self._begin(_Draft(_clean_name(item["said"]), line.number, indent=indent, ordered=ordered, number=number))

    def _read_label_line(self, line: DocumentLine) -> None:
        """Read `Acceptance criteria:` alone on its line, also in bold."""
        text = line.text[:_MAX_LINE_LENGTH].strip()
        bare = text.strip("*_").rstrip(":").strip("*_")
        if not (text.endswith((":", ":**", ":*")) or (text.startswith("**") and text.endswith("**"))):
            return
        topic = find_topic(bare)
        if topic is not SectionTopic.NONE:
            self._topic, self._topic_level = topic, 7
            self._topic_indent = len(line.text) - len(line.text.lstrip())

    def _read_content(self, line: DocumentLine, target: _Draft) -> None:
        """Add the content of the line to the step that it belongs to."""
        if self._topic is not SectionTopic.NONE and find_topic(line.text.strip()) is self._topic:
            return  # the label itself
        if self._topic is SectionTopic.VERIFY:
            target.verify.append(line.text)
        elif line.kind is LineKind.FENCE:
            target.look_at([line.text.strip().removeprefix("$ ")])
        elif line.kind is LineKind.PROSE and self._topic is SectionTopic.DONE:
            target.finish_with(line.text)
            target.look_at(line.inline_codes)
        elif line.kind is LineKind.PROSE and line.text.strip():
            item = _ITEM.match(line.text[:_MAX_LINE_LENGTH]) if self._topic is SectionTopic.QUESTIONS else None
            if item and not is_none_word(item["said"]):
                self.questions.append(OpenPoint(line.number, shorten_text(item["said"])))
            if not (self.accepts_rare_forms and self._read_row(line)):
                self._read_sentences(line, target)

    def _read_row(self, line: DocumentLine) -> bool:
        """Read a row of a table of tasks, and return whether it was one."""
        row = line.text[:_MAX_LINE_LENGTH].strip()
        if self._blank or row[:1] != "|":
            self._columns = ()
        if row[:1] != "|":
            return False
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if not self._columns:
            self._columns = tuple(cell.strip("*_ ").lower() for cell in cells)
            return False
        if not _is_task_table(self._columns) or self._topic not in self._openers:
            return False
        if not _TABLE_RULE.fullmatch(row):
            self._begin_row(line, dict(zip(self._columns, cells, strict=False)))
        return True

    def _begin_row(self, line: DocumentLine, cells: dict[str, str]) -> None:
        name = next(text for column, text in cells.items() if _TASK_COLUMN.fullmatch(column))
        number = next((int(text) for text in cells.values() if text.isdecimal() and len(text) < 5), 0)
        draft = _Draft(_clean_name(name) or _clean_name(line.text), line.number, ordered=bool(number), number=number)
        for column, text in cells.items():
            if _FILES.fullmatch(column):
                _add_files(draft.files, parse_paths(text))
            elif (topic := find_topic(column)) in (SectionTopic.VERIFY, SectionTopic.DONE) and text:
                draft.take(topic, text)
        self._begin(draft)

    def _read_sentences(self, line: DocumentLine, target: _Draft) -> None:
        """Read a line, and what is labelled after its first sentence."""
        labels = [*_INLINE.finditer(line.prose[:_MAX_LINE_LENGTH])]
        if not labels:
            self._read_sentence(line, target)
            return
        self._read_sentence(_cut_line(line, labels[0].start()), target)
        for label, following in zip(labels, [*labels[1:], None], strict=True):
            text = line.text[label.end() : following.start() if following else None].strip()
            target.take(find_topic(label["label"]), text[:_MAX_LINE_LENGTH])

    def _read_sentence(self, line: DocumentLine, target: _Draft) -> None:
        topic, text = _split_label(line.text[:_MAX_LINE_LENGTH])
        if topic in (SectionTopic.VERIFY, SectionTopic.DONE):
            if target is self._step and not target.level and line.text[:1].isalpha():
                target.trailing.append((topic, text))
            else:
                target.take(topic, text)
        elif (label_match := _LABEL.match(line.text[:_MAX_LINE_LENGTH])) and _FILES.fullmatch(
            label_match["label"].strip()
        ):
            _add_files(target.files, parse_paths(label_match["rest"]))
        else:
            target.ordered = target.ordered or bool(_NAMES_DEPENDENCY.search(line.prose[:_MAX_LINE_LENGTH]))
            for predecessor_match in _NAMES_PREDECESSORS.finditer(line.prose[:_MAX_LINE_LENGTH]):
                target.waits_for.update(map(int, _DIGITS.findall(predecessor_match[1])))
            target.look_at(line.inline_codes)
            for code in line.inline_codes:
                _add_files(target.files, find_paths_in_code(code))
            _add_files(target.files, find_paths_in_prose(line.prose))

    def _begin(self, draft: _Draft) -> None:
        draft.end = draft.line
        self._step = draft
        self._steps.append(draft)

    def _dissolve(self, whole: _Draft) -> None:
        """Remove a phase that is divided into steps. Its content applies to the whole plan."""
        outer = self._steps.pop()
        whole.verify += outer.verify
        for line in outer.done:
            whole.finish_with(line)
        whole.look_at(outer.commands)
        _add_files(whole.files, outer.files)


def has_rare_forms(text: str) -> bool:
    """Whether the text contains one of the rare forms of steps."""
    return bool(_RARE_FORM.search(text))


def find_topic(text: str) -> SectionTopic:
    """Return the topic of a heading or a label."""
    bare = _NUMBER.sub("", text[:200].strip("*_: "), count=1).strip("*_: ")
    match = _TOPIC.fullmatch(bare)
    return SectionTopic[match.lastgroup] if match and match.lastgroup else SectionTopic.NONE


def _split_label(text: str) -> tuple[SectionTopic, str]:
    """Split `Verify: pytest -q` into its topic and its text."""
    match = _LABEL.match(text)
    if match is None or not match["rest"].strip():
        return SectionTopic.NONE, text
    return find_topic(match["label"]), match["rest"].strip()


def _mark_numbered(headings: dict[int, tuple[int, str, bool]]) -> dict[int, tuple[int, str, bool]]:
    """Let `## 1. Extract it` begin a step, unless all sections of the text are numbered."""
    numbered_lines = [line for line, (level, title, _) in headings.items() if level > 1 and _NUMBER.match(title)]
    topics = {find_topic(headings[line][1]) for line in numbered_lines}
    if len(numbered_lines) < 2 or topics & {SectionTopic.ASIDE, SectionTopic.STEPS}:
        return headings
    steps = {line for line in numbered_lines if find_topic(headings[line][1]) is SectionTopic.NONE}
    return {line: (level, title, line in steps) for line, (level, title, _) in headings.items()}


def _is_task_table(columns: tuple[str, ...]) -> bool:
    """Whether one column says what to do, and another one gives details."""
    has_details = any(
        _FILES.fullmatch(column) or column in ("#", "no", "nr") or find_topic(column).value for column in columns
    )
    return has_details and any(map(_TASK_COLUMN.fullmatch, columns))


def _cut_line(line: DocumentLine, end: int) -> DocumentLine:
    """Return the beginning of a line, with the code in it."""
    codes, at = [], 0
    for code in line.inline_codes:
        at = line.text.find(code, at, end)
        if at < 0:
            break
        codes.append(code)
        at += len(code)
    return line._replace(text=line.text[:end], prose=line.prose[:end], inline_codes=tuple(codes))


def _clean_name(text: str) -> str:
    return shorten_text(text.replace("**", "").strip("*_# "), 120)


def _add_files(files: dict[str, None], paths_to_add: Iterable[str]) -> None:
    for path in paths_to_add:
        if len(files) < MAX_FILES:
            files[path] = None
