"""The commands of a `<verify>`, out of whatever people put there.

Plain lines are a command each. What a shell would only understand as a whole (a continued line, a loop, a heredoc, a
`cd` whose effect the next line needs) is one script under `set -e`. Sentences are never run: commands quoted in them
are taken, with a warning, and a sentence without a command is an error, because nothing could be run for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import unescape
from typing import NamedTuple

from proofstone.common.commands import proves_nothing
from proofstone.common.shell import UnreadableError, has_blocks, is_complete, statements
from proofstone.plans.fields import (
    dedented,
    error,
    is_command,
    is_none,
    is_plainly_command,
    shortened,
    warning,
    words_of,
)
from proofstone.plans.models import PlanProblem
from proofstone.plans.tags import Span, Tags

_SHELLS = frozenset(
    (
        *("bash", "sh", "shell", "zsh", "console", "terminal", "shell-session", "shellsession"),
        *("text", "txt", "cmd", "powershell", "ps1"),
    )
)
_COMMAND_TAGS = ("automated", "command", "cmd", "run")
_MANUAL_TAGS = ("manual", "human", "human-check", "human-verify")
_COMMENT = re.compile(r"^[ \t]*<!--", re.MULTILINE)
_TAG_OF_ITS_OWN = re.compile(r"^[ \t]*</?[A-Za-z][\w-]*>[ \t]*$", re.MULTILINE)
_BULLET = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_PROMPT = re.compile(r"[ \t]*(?:\$|>>>|❯|➜)[ \t]+")
_WRAPPED = re.compile(r"(?<!`)(`{1,3})([^`\n]+)\1(?!`)")
_LEADING_OPERATOR = re.compile(r"[ \t]*(?:&&|\|\|?)")
_SETS_THE_SCENE = re.compile(r"(?:cd|pushd|export|source|\.|set|trap|alias|[A-Za-z_]\w*=\S*$)(?:\s|$)", re.ASCII)
_RUN = re.compile(r"(?:then\s+)?(?:run|execute|use|führe|ejecutar|lancer|exécuter)s?:?\s+(.+)", re.IGNORECASE)
_LABELLED = re.compile(r"([^\s:`\"'$][^:`\"'$|&]*):\s+(\S.*)")
_EMPTY_HANDED = re.compile(
    r"\b(?:returns?|prints?|shows?|outputs?|finds?|yields?|gives?)\s+(?:nothing|empty)"
    r"|\bno\s+(?:matches|match|output|results|hits|lines|occurrences)\b|\bis\s+empty\b|\bfails\b|\bexits?\s+(?:1|non-?zero)\b",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|#39|#34);")
_MOST_WORDS = 25
"""So many words around each quoted command are an explanation; more is an essay that happens to quote one."""
_LONGEST = 20_000
_MOST_LINES = 200
_MOST_COMMANDS = 100

_WRITE = "write the command that proves it, for instance `pytest -q tests/test_thing.py` or `grep -q 'text' src/file`"


class Line(NamedTuple):
    text: str
    number: int


@dataclass
class Verify:
    """The commands found, and what is wrong with how they were written."""

    task: str
    element: str = "verify"
    commands: list[str] = field(default_factory=list)
    problems: list[PlanProblem] = field(default_factory=list)

    def read(self, content: str, line: int) -> None:
        """One element that begins on `line`."""
        if len(content) > _LONGEST or content.count("\n") > _MOST_LINES:
            self._error("verify-too-long", line, f"<{self.element}> is longer than {_MOST_LINES} lines", _SCRIPT_HINT)
            return
        if is_none(content):
            self._error("missing-verify", line, f"<{self.element}> holds nothing to run", _WRITE)
            return
        content = _blanked(content, _spans(content, _COMMENT, "-->"))
        for tag in _MANUAL_TAGS:
            spans = [*_elements(content, tag)]
            for span in spans:
                at = line + content.count("\n", 0, span.start)
                self._warn("manual-verify", at, f"<{tag}> is for a person and is not run", _CHECKPOINT_HINT)
            content = _blanked(content, spans)
        inner = sorted(_inside(content, span) for tag in _COMMAND_TAGS for span in _elements(content, tag))
        blocks = [Line(content[span.start : span.end], line + content.count("\n", 0, span.start)) for span in inner]
        before, told = len(self.commands), len(self.problems)
        for block in blocks or [Line(_TAG_OF_ITS_OWN.sub("", content), line)]:
            self._block(self._decoded(block))
        if len(self.commands) > _MOST_COMMANDS:
            message = f"<{self.element}> holds {len(self.commands):,} commands"
            self._error("verify-too-long", line, message, _SCRIPT_HINT)
            del self.commands[_MOST_COMMANDS:]
        if len(self.commands) == before and not any(problem.severity == "error" for problem in self.problems[told:]):
            self._prose([Line(content.strip(), line)])

    def only_those_that_tell(self) -> tuple[str, ...]:
        """Without commands that only show something, as long as another one remains."""
        telling = [command for command in dict.fromkeys(self.commands) if not proves_nothing(command)]
        return tuple(telling or dict.fromkeys(self.commands))

    def _block(self, block: Line) -> None:
        block = Line(dedented(block.text), block.number)
        lines = [*_numbered(block)]
        fences = Tags(block.text).fences
        if not fences:
            self._lines(lines)
            return
        fenced: set[int] = set()
        for fence in fences:
            fenced.update(range(fence.first, fence.last + 1))
            language = lines[fence.first].text.strip().lstrip("`~").strip().partition(" ")[0].lower()
            if language in _SHELLS or not language:
                inside = Line(dedented("\n".join(item.text for item in lines[fence.first + 1 : fence.last])), 0)
                self._lines([*_numbered(inside._replace(number=lines[fence.first].number + 1))])
        outside = [line for at, line in enumerate(lines) if at not in fenced and words_of(line.text)]
        if self.commands and outside:
            message = f"only what is fenced is run, not: {shortened(outside[0].text, 50)}"
            self._warn("prose-in-verify", outside[0].number, message, _DONE_HINT)

    def _lines(self, written: list[Line]) -> None:
        lines = [*_without_comments(written)]
        if lines and _BULLET.match(lines[0].text):
            self._items([*_joined_items(lines)])
        elif len(lines) < 2 or all(map(_stands_alone, lines, [*lines[1:], None])):
            plain = [_unwrapped(line) for line in lines]
            if len(plain) > 1 and all(is_command(line.text) for line in plain):
                self._several([line.text for line in plain])
            else:
                self._items([*_joined_items(plain)] if any(_BULLET.match(item.text) for item in plain) else plain)
        else:
            self._script(written, lines)

    def _several(self, commands: list[str]) -> None:
        """One command a line, unless a line sets something for those after it."""
        if any(_SETS_THE_SCENE.match(command) for command in commands[:-1]):
            self.commands.append(_as_script(commands))
        else:
            self.commands += commands

    def _script(self, written: list[Line], lines: list[Line]) -> None:
        """As it was written, comments and blank lines too: a heredoc may hold them."""
        whole = "\n".join(_PROMPT.sub("", line.text, count=1) for line in written).strip("\n")
        whole = re.sub(r"\n[ \t]*(?=&&|\|)", " ", whole)
        try:
            parts = statements(whole)
        except UnreadableError:
            self._items([_unwrapped(line) for line in lines])
            return
        first_lines = [part.partition("\n")[0] for part in parts if not part.lstrip().startswith("#")]
        if all(is_command(line) for line in first_lines):
            self.commands.append(_as_script(list(parts)))
        else:
            self._items([_unwrapped(line) for line in lines])

    def _items(self, items: list[Line]) -> None:
        """Each on its own: a command, a sentence with commands in it, or a sentence."""
        prose: list[Line] = []
        for item in items:
            if (found := self._commands_of(item)) is None:
                prose.append(item)
            else:
                self.commands += found
        if prose and self.commands:
            message = f"not run, as it is no command: {shortened(prose[0].text, 60)}"
            self._warn("prose-in-verify", prose[0].number, message, _DONE_HINT)
        elif prose:
            self._prose(prose)

    def _commands_of(self, item: Line) -> list[str] | None:
        """None for a sentence; an empty list where a problem has been told."""
        text = item.text.strip()
        if whole := _WRAPPED.fullmatch(text):
            return [whole[2].strip()]
        quoted = [rest for rest in _after_a_label(text) if is_plainly_command(rest)]
        around = ""
        if not quoted and is_command(text):
            return [text]
        if not quoted:
            quoted = [code.strip() for _, code in _WRAPPED.findall(text) if is_plainly_command(code)]
            around = _WRAPPED.sub(" ", text)
        if not quoted or len(words_of(around)) > _MOST_WORDS * len(quoted):
            return None
        if _EMPTY_HANDED.search(around):
            message = f"`{shortened(quoted[0], 50)}` is meant to find nothing, but a command passes by exit code 0"
            self._error("inverted-verify", item.number, message, f"write `! {shortened(quoted[0], 60)}`")
            return []
        message = (
            f"a sentence, of which only {' and '.join(f'`{shortened(entry, 40)}`' for entry in quoted)} will be run"
        )
        self._warn("prose-in-verify", item.number, message, "write the commands alone; the rest belongs in <done>")
        return quoted

    def _prose(self, prose: list[Line]) -> None:
        said = " ".join(line.text for line in prose)
        meant = next((code for _, code in _WRAPPED.findall(said) if is_plainly_command(code)), None)
        meant = meant or _up_to_the_outcome(said)
        hint = f"write only `{meant}`; what it shows belongs in <done>" if meant else _WRITE
        message = f"<{self.element}> is no command: {shortened(said, 60)}"
        self._error("prose-verify", prose[0].number, message, hint)

    def _decoded(self, block: Line) -> Line:
        """`&amp;&amp;` outside quotes is an entity, as no shell means it; within them it may be what is looked for."""
        if not _ENTITY.search(block.text):
            return block
        outside = re.sub(r"\"[^\"\n]*\"|'[^'\n]*'", "", block.text)
        if _ENTITY.search(outside):
            return Line(_ENTITY.sub(lambda found: unescape(found[0]), block.text), block.number)
        message = f"{_ENTITY.findall(block.text)[0]} is looked for as it is written"
        self._warn("entity-in-verify", block.number, message, "if you mean the character, write the character")
        return block

    def _error(self, rule: str, line: int, message: str, hint: str) -> None:
        self.problems.append(error(rule, line, message, hint, self.task))

    def _warn(self, rule: str, line: int, message: str, hint: str) -> None:
        self.problems.append(warning(rule, line, message, hint, self.task))


_SCRIPT_HINT = "put it into a script in the repository and call that"
_CHECKPOINT_HINT = 'make it a task of its own: <task type="checkpoint:human-verify">'
_DONE_HINT = "say it in <done>, or write a command for it"


def _as_script(parts: list[str]) -> str:
    """One text for the shell. `set -e` overlooks what fails before an `&&` or behind a `!`, so such a line gets its own
    exit."""
    if len(parts) == 1 and "\n" not in parts[0]:
        return parts[0]
    lines = [
        f"{{\n{part}\n}} || exit 1" if at < len(parts) and _is_overlooked(part) else part
        for at, part in enumerate(parts, start=1)
    ]
    return "\n".join(["set -e", *lines])


def _is_overlooked(part: str) -> bool:
    return ("&&" in part or part.lstrip().startswith("!")) and not has_blocks(part)


def _numbered(block: Line) -> Iterator[Line]:
    for offset, text in enumerate(block.text.split("\n")):
        yield Line(text.rstrip(), block.number + offset)


def _without_comments(lines: list[Line]) -> Iterator[Line]:
    for line in lines:
        stripped = line.text.lstrip()
        if stripped and not (stripped[0] == "#" and not stripped.startswith("#!")):
            yield line


def _stands_alone(line: Line, following: Line | None) -> bool:
    """Whether the line is whole without its neighbours; a sentence with an apostrophe is."""
    text = _unwrapped(line).text
    if following is not None and _LEADING_OPERATOR.match(following.text):
        return False
    if is_complete(text):
        return True
    return not text.endswith(("\\", "&&", "|")) and not is_command(text)


def _unwrapped(line: Line) -> Line:
    """Without a prompt before it or backticks around it."""
    text = _PROMPT.sub("", line.text, count=1).strip()
    whole = _WRAPPED.fullmatch(text)
    return Line(whole[2].strip() if whole else text, line.number)


def _joined_items(lines: list[Line]) -> Iterator[Line]:
    """List items with the lines that they wrap onto."""
    item: Line | None = None
    for line in lines:
        bullet = _BULLET.match(line.text)
        if bullet or item is None:
            if item is not None:
                yield item
            item = _unwrapped(Line(line.text[bullet.end() :] if bullet else line.text, line.number))
        else:
            item = Line(f"{item.text.removesuffix(chr(92)).rstrip()} {line.text.strip()}", item.number)
    if item is not None:
        yield item


def _after_a_label(text: str) -> Iterator[str]:
    """`Run pytest -q` and `All tables exist: psql -c …`, each without its first part."""
    if not text[:1].isupper() and not text.startswith("run "):
        return
    for pattern, group in ((_RUN, 1), (_LABELLED, 2)):
        if match := pattern.fullmatch(text):
            yield match[group].strip()


def _up_to_the_outcome(said: str) -> str | None:
    """`npm run build` of "npm run build succeeds without errors"."""
    words = said.split()
    for count in range(min(len(words) - 1, 12), 1, -1):
        start = " ".join(words[:count])
        if is_plainly_command(start):
            return start
    return None


def _elements(text: str, tag: str) -> Iterator[Span]:
    return _spans(text, re.compile(f"<{tag}>", re.IGNORECASE), f"</{tag}>")


def _inside(text: str, span: Span) -> Span:
    """Without the two tags."""
    return Span(text.index(">", span.start) + 1, text.rindex("<", span.start, span.end))


def _spans(text: str, opening: re.Pattern[str], closing: str) -> Iterator[Span]:
    """From each opening through its closing; the search ends with the first that is never closed."""
    lowered, position = text.lower(), 0
    while match := opening.search(text, position):
        end = lowered.find(closing, match.end())
        if end < 0:
            return
        position = end + len(closing)
        yield Span(match.start(), position)


def _blanked(text: str, spans: Iterable[Span]) -> str:
    """Without what the spans hold, but with its line breaks, so that what follows keeps its line."""
    kept, position = [], 0
    for span in spans:
        kept += [text[position : span.start], "\n" * text.count("\n", span.start, span.end)]
        position = span.end
    return "".join([*kept, text[position:]])
