"""Parse the commands of a `<verify>` element.

Each plain line is a command. Lines that a shell understands only as a whole (a continued line, a loop, a heredoc, a
`cd` that the next line needs) become one script under `set -e`. Sentences are never run: commands quoted in them are
extracted with a warning. A sentence without a command is an error, because nothing could be run for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import unescape
from typing import NamedTuple

from proofstone.common.commands import proves_nothing
from proofstone.common.shell import ShellSyntaxError, has_blocks, is_complete, split_statements
from proofstone.plans.fields import (
    dedent_element,
    find_words,
    is_clearly_command,
    is_command,
    is_none_word,
    make_error,
    make_warning,
    shorten_text,
)
from proofstone.plans.models import PlanProblem
from proofstone.plans.tags import PlanTags, TextSpan

_SHELLS = frozenset(
    (
        *("bash", "sh", "shell", "zsh", "console", "terminal", "shell-session", "shellsession"),
        *("text", "txt", "cmd", "powershell", "ps1"),
    )
)
_COMMAND_TAGS = ("automated", "command", "cmd", "run")
_MANUAL_TAGS = ("manual", "human", "human-check", "human-verify")
_COMMENT = re.compile(r"^[ \t]*<!--", re.MULTILINE)
_TAG_LINE = re.compile(r"^[ \t]*</?[A-Za-z][\w-]*>[ \t]*$", re.MULTILINE)
_BULLET = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_PROMPT = re.compile(r"[ \t]*(?:\$|>>>|❯|➜)[ \t]+")
_WRAPPED = re.compile(r"(?<!`)(`{1,3})([^`\n]+)\1(?!`)")
_LEADING_OPERATOR = re.compile(r"[ \t]*(?:&&|\|\|?)")
_CHANGES_SHELL_STATE = re.compile(r"(?:cd|pushd|export|source|\.|set|trap|alias|[A-Za-z_]\w*=\S*$)(?:\s|$)", re.ASCII)
_RUN = re.compile(r"(?:then\s+)?(?:run|execute|use|führe|ejecutar|lancer|exécuter)s?:?\s+(.+)", re.IGNORECASE)
_LABELLED = re.compile(r"([^\s:`\"'$][^:`\"'$|&]*):\s+(\S.*)")
_EXPECTS_NOTHING = re.compile(
    r"\b(?:returns?|prints?|shows?|outputs?|finds?|yields?|gives?)\s+(?:nothing|empty)"
    r"|\bno\s+(?:matches|match|output|results|hits|lines|occurrences)\b|\bis\s+empty\b|\bfails\b|\bexits?\s+(?:1|non-?zero)\b",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|#39|#34);")
_MAX_WORDS = 25
"""Up to this many words around each quoted command are an explanation; more is an essay that quotes one."""
_MAX_LENGTH = 20_000
_MAX_LINES = 200
_MAX_COMMANDS = 100

_COMMAND_HINT = (
    "write the command that proves it, for instance `pytest -q tests/test_thing.py` or `grep -q 'text' src/file`"
)


class VerifyLine(NamedTuple):
    """A line of the plan with its number."""

    text: str
    number: int


@dataclass
class VerifyParser:
    """The commands of a task's verify elements, and the problems in how they are written."""

    task: str
    element: str = "verify"
    commands: list[str] = field(default_factory=list)
    problems: list[PlanProblem] = field(default_factory=list)

    def read(self, content: str, line: int) -> None:
        """Read an element that begins on `line`."""
        if len(content) > _MAX_LENGTH or content.count("\n") > _MAX_LINES:
            self._add_error(
                "verify-too-long", line, f"<{self.element}> is longer than {_MAX_LINES} lines", _SCRIPT_HINT
            )
            return
        if is_none_word(content):
            self._add_error("missing-verify", line, f"<{self.element}> contains no command", _COMMAND_HINT)
            return
        content = _blank_out(content, _find_spans(content, _COMMENT, "-->"))
        for tag in _MANUAL_TAGS:
            spans = [*_find_elements(content, tag)]
            for span in spans:
                at = line + content.count("\n", 0, span.start)
                self._add_warning("manual-verify", at, f"<{tag}> is for a person, so it is not run", _CHECKPOINT_HINT)
            content = _blank_out(content, spans)
        inner = sorted(_strip_tags(content, span) for tag in _COMMAND_TAGS for span in _find_elements(content, tag))
        blocks = [
            VerifyLine(content[span.start : span.end], line + content.count("\n", 0, span.start)) for span in inner
        ]
        commands_before, problems_before = len(self.commands), len(self.problems)
        for block in blocks or [VerifyLine(_TAG_LINE.sub("", content), line)]:
            self._read_block(self._decode_entities(block))
        if len(self.commands) > _MAX_COMMANDS:
            message = f"<{self.element}> holds {len(self.commands):,} commands"
            self._add_error("verify-too-long", line, message, _SCRIPT_HINT)
            del self.commands[_MAX_COMMANDS:]
        if len(self.commands) == commands_before and not any(
            problem.severity == "error" for problem in self.problems[problems_before:]
        ):
            self._report_prose([VerifyLine(content.strip(), line)])

    def select_conclusive(self) -> tuple[str, ...]:
        """Return the commands without those that cannot fail, as long as another one remains."""
        conclusive = [command for command in dict.fromkeys(self.commands) if not proves_nothing(command)]
        return tuple(conclusive or dict.fromkeys(self.commands))

    def _read_block(self, block: VerifyLine) -> None:
        block = VerifyLine(dedent_element(block.text), block.number)
        lines = [*_number_lines(block)]
        fences = PlanTags(block.text).fences
        if not fences:
            self._read_lines(lines)
            return
        fenced: set[int] = set()
        for fence in fences:
            fenced.update(range(fence.first_line, fence.last_line + 1))
            language = lines[fence.first_line].text.strip().lstrip("`~").strip().partition(" ")[0].lower()
            if language in _SHELLS or not language:
                inside = VerifyLine(
                    dedent_element("\n".join(line.text for line in lines[fence.first_line + 1 : fence.last_line])), 0
                )
                self._read_lines([*_number_lines(inside._replace(number=lines[fence.first_line].number + 1))])
        outside = [line for at, line in enumerate(lines) if at not in fenced and find_words(line.text)]
        if self.commands and outside:
            message = f"only the fenced code is run, not: {shorten_text(outside[0].text, 50)}"
            self._add_warning("prose-in-verify", outside[0].number, message, _DONE_HINT)

    def _read_lines(self, raw_lines: list[VerifyLine]) -> None:
        lines = [*_strip_comments(raw_lines)]
        if lines and _BULLET.match(lines[0].text):
            self._read_items([*_join_items(lines)])
        elif len(lines) < 2 or all(map(_is_standalone, lines, [*lines[1:], None])):
            plain = [_unwrap(line) for line in lines]
            if len(plain) > 1 and all(is_command(line.text) for line in plain):
                self._read_commands([line.text for line in plain])
            else:
                self._read_items([*_join_items(plain)] if any(_BULLET.match(line.text) for line in plain) else plain)
        else:
            self._read_script(raw_lines, lines)

    def _read_commands(self, commands: list[str]) -> None:
        """Read one command per line, unless a line changes the shell state for the lines after it."""
        if any(_CHANGES_SHELL_STATE.match(command) for command in commands[:-1]):
            self.commands.append(_build_script(commands))
        else:
            self.commands += commands

    def _read_script(self, raw_lines: list[VerifyLine], lines: list[VerifyLine]) -> None:
        """Read the lines as written, with comments and blank lines: a heredoc may contain them."""
        script = "\n".join(_PROMPT.sub("", line.text, count=1) for line in raw_lines).strip("\n")
        script = re.sub(r"\n[ \t]*(?=&&|\|)", " ", script)
        try:
            parts = split_statements(script)
        except ShellSyntaxError:
            self._read_items([_unwrap(line) for line in lines])
            return
        first_lines = [part.partition("\n")[0] for part in parts if not part.lstrip().startswith("#")]
        if all(is_command(line) for line in first_lines):
            self.commands.append(_build_script(list(parts)))
        else:
            self._read_items([_unwrap(line) for line in lines])

    def _read_items(self, items: list[VerifyLine]) -> None:
        """Read each item as a command, a sentence with commands in it, or a sentence."""
        prose: list[VerifyLine] = []
        for item in items:
            if (commands := self._extract_commands(item)) is None:
                prose.append(item)
            else:
                self.commands += commands
        if prose and self.commands:
            message = f"not run, because it is not a command: {shorten_text(prose[0].text, 60)}"
            self._add_warning("prose-in-verify", prose[0].number, message, _DONE_HINT)
        elif prose:
            self._report_prose(prose)

    def _extract_commands(self, item: VerifyLine) -> list[str] | None:
        """Return the commands of an item; None for a sentence, and an empty list if a problem was reported."""
        text = item.text.strip()
        if wrapped := _WRAPPED.fullmatch(text):
            return [wrapped[2].strip()]
        quoted = [rest for rest in _strip_label(text) if is_clearly_command(rest)]
        around = ""
        if not quoted and is_command(text):
            return [text]
        if not quoted:
            quoted = [code.strip() for _, code in _WRAPPED.findall(text) if is_clearly_command(code)]
            around = _WRAPPED.sub(" ", text)
        if not quoted or len(find_words(around)) > _MAX_WORDS * len(quoted):
            return None
        if _EXPECTS_NOTHING.search(around):
            message = f"`{shorten_text(quoted[0], 50)}` should find nothing, but a command passes only with exit code 0"
            self._add_error("inverted-verify", item.number, message, f"write `! {shorten_text(quoted[0], 60)}`")
            return []
        message = (
            "a sentence, of which only "
            f"{' and '.join(f'`{shorten_text(command, 40)}`' for command in quoted)} will be run"
        )
        self._add_warning("prose-in-verify", item.number, message, "write only the commands; put the rest into <done>")
        return quoted

    def _report_prose(self, prose: list[VerifyLine]) -> None:
        text = " ".join(line.text for line in prose)
        command = next((code for _, code in _WRAPPED.findall(text) if is_clearly_command(code)), None)
        command = command or _find_leading_command(text)
        hint = f"write only `{command}`; put what it shows into <done>" if command else _COMMAND_HINT
        message = f"<{self.element}> is not a command: {shorten_text(text, 60)}"
        self._add_error("prose-verify", prose[0].number, message, hint)

    def _decode_entities(self, block: VerifyLine) -> VerifyLine:
        """Decode `&amp;&amp;` outside quotes, where no shell uses it. Within quotes it may be meant literally."""
        if not _ENTITY.search(block.text):
            return block
        outside = re.sub(r"\"[^\"\n]*\"|'[^'\n]*'", "", block.text)
        if _ENTITY.search(outside):
            return VerifyLine(_ENTITY.sub(lambda match: unescape(match[0]), block.text), block.number)
        message = f"{_ENTITY.findall(block.text)[0]} is searched for literally"
        self._add_warning("entity-in-verify", block.number, message, "if you mean the character, write the character")
        return block

    def _add_error(self, rule: str, line: int, message: str, hint: str) -> None:
        self.problems.append(make_error(rule, line, message, hint, self.task))

    def _add_warning(self, rule: str, line: int, message: str, hint: str) -> None:
        self.problems.append(make_warning(rule, line, message, hint, self.task))


_SCRIPT_HINT = "put it into a script in the repository, and call the script"
_CHECKPOINT_HINT = 'make it a separate task: <task type="checkpoint:human-verify">'
_DONE_HINT = "put it into <done>, or write a command for it"


def _build_script(parts: list[str]) -> str:
    """Join the commands into one shell script.

    `set -e` ignores a failure before an `&&` or after a `!`, so such a line gets its own exit.
    """
    if len(parts) == 1 and "\n" not in parts[0]:
        return parts[0]
    lines = [
        f"{{\n{part}\n}} || exit 1" if at < len(parts) and _needs_own_exit(part) else part
        for at, part in enumerate(parts, start=1)
    ]
    return "\n".join(["set -e", *lines])


def _needs_own_exit(part: str) -> bool:
    return ("&&" in part or part.lstrip().startswith("!")) and not has_blocks(part)


def _number_lines(block: VerifyLine) -> Iterator[VerifyLine]:
    for offset, text in enumerate(block.text.split("\n")):
        yield VerifyLine(text.rstrip(), block.number + offset)


def _strip_comments(lines: list[VerifyLine]) -> Iterator[VerifyLine]:
    for line in lines:
        stripped = line.text.lstrip()
        if stripped and not (stripped[0] == "#" and not stripped.startswith("#!")):
            yield line


def _is_standalone(line: VerifyLine, following: VerifyLine | None) -> bool:
    """Whether the line is complete without its neighbours. A sentence with an apostrophe is complete."""
    text = _unwrap(line).text
    if following is not None and _LEADING_OPERATOR.match(following.text):
        return False
    if is_complete(text):
        return True
    return not text.endswith(("\\", "&&", "|")) and not is_command(text)


def _unwrap(line: VerifyLine) -> VerifyLine:
    """Remove a prompt before the line, or backticks around it."""
    text = _PROMPT.sub("", line.text, count=1).strip()
    whole = _WRAPPED.fullmatch(text)
    return VerifyLine(whole[2].strip() if whole else text, line.number)


def _join_items(lines: list[VerifyLine]) -> Iterator[VerifyLine]:
    """Join list items with the lines that they wrap onto."""
    item: VerifyLine | None = None
    for line in lines:
        bullet = _BULLET.match(line.text)
        if bullet or item is None:
            if item is not None:
                yield item
            item = _unwrap(VerifyLine(line.text[bullet.end() :] if bullet else line.text, line.number))
        else:
            item = VerifyLine(f"{item.text.removesuffix(chr(92)).rstrip()} {line.text.strip()}", item.number)
    if item is not None:
        yield item


def _strip_label(text: str) -> Iterator[str]:
    """Yield `Run pytest -q` and `All tables exist: psql -c …` without their first part."""
    if not text[:1].isupper() and not text.startswith("run "):
        return
    for pattern, group in ((_RUN, 1), (_LABELLED, 2)):
        if match := pattern.fullmatch(text):
            yield match[group].strip()


def _find_leading_command(text: str) -> str | None:
    """Return `npm run build` for "npm run build succeeds without errors"."""
    words = text.split()
    for count in range(min(len(words) - 1, 12), 1, -1):
        start = " ".join(words[:count])
        if is_clearly_command(start):
            return start
    return None


def _find_elements(text: str, tag: str) -> Iterator[TextSpan]:
    return _find_spans(text, re.compile(f"<{tag}>", re.IGNORECASE), f"</{tag}>")


def _strip_tags(text: str, span: TextSpan) -> TextSpan:
    """Return the span without its two tags."""
    return TextSpan(text.index(">", span.start) + 1, text.rindex("<", span.start, span.end))


def _find_spans(text: str, opening: re.Pattern[str], closing: str) -> Iterator[TextSpan]:
    """Yield the spans from each opening to its closing. The search ends at the first that is never closed."""
    lowered, position = text.lower(), 0
    while match := opening.search(text, position):
        end = lowered.find(closing, match.end())
        if end < 0:
            return
        position = end + len(closing)
        yield TextSpan(match.start(), position)


def _blank_out(text: str, spans: Iterable[TextSpan]) -> str:
    """Remove the spans but keep their line breaks, so that line numbers after them stay right."""
    pieces, position = [], 0
    for span in spans:
        pieces += [text[position : span.start], "\n" * text.count("\n", span.start, span.end)]
        position = span.end
    return "".join([*pieces, text[position:]])
