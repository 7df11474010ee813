"""Write Markdown and YAML in which foreign text stays text. Pure.

YAML is written as double-quoted scalars, one per line, so that no name can end a block, start a key or become a number.
Markdown is escaped so that no name becomes a heading, a link or a tag. Paragraphs are wrapped to one width, and code
spans and links are never broken.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

YamlValue = str | int | float | bool | None | Sequence["YamlValue"] | Mapping[str, "YamlValue"]

_SPECIAL = re.compile(r"[\\`*\[\]<>|&~$#]|(?<![^\W_])_|_(?![^\W_])")
_YAML_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def format_yaml(values: Mapping[str, YamlValue]) -> str:
    """Return the mapping as YAML 1.2 that reads back as the same values."""
    return "\n".join(_mapping_lines(values, ""))


def format_yaml_block(values: Mapping[str, YamlValue]) -> str:
    """Return the mapping as YAML in a fence that no line of it can close."""
    return f"```yaml\n{format_yaml(values)}\n```"


def escape_markdown(text: str) -> str:
    """Return the text on one line, escaped so that Markdown shows it unchanged."""
    return _SPECIAL.sub(lambda match: f"\\{match[0]}", make_visible(text))


def code_span(text: str) -> str:
    """Return the text as a code span, whatever backticks it contains."""
    shown = make_visible(text)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    padding = " " if shown.startswith("`") or shown.endswith("`") or not shown else ""
    return f"{fence}{padding}{shown}{padding}{fence}"


def make_visible(text: str) -> str:
    """Return the text on one line, with invisible characters written as escapes."""
    return "".join(char if char.isprintable() else _escape_char(char) for char in " ".join(text.split()))


def show_line(text: str) -> str:
    """Return a line with its spaces and tabs, and with invisible characters written as escapes."""
    return "".join(char if char.isprintable() or char == "\t" else _escape_char(char) for char in text)


def _mapping_lines(values: Mapping[str, YamlValue], indent: str) -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield f"{indent}{key}:"
            yield from _mapping_lines(value, indent + "  ")
        elif isinstance(value, Sequence) and not isinstance(value, str) and value:
            yield f"{indent}{key}:"
            yield from _sequence_lines(value, indent + "  ")
        else:
            yield f"{indent}{key}: {_format_scalar(value)}"


def _sequence_lines(values: Sequence[YamlValue], indent: str) -> Iterator[str]:
    for value in values:
        if isinstance(value, Mapping) and value:
            first, *others = _mapping_lines(value, indent + "  ")
            yield f"{indent}- {first.strip()}"
            yield from others
        else:
            yield f"{indent}- {_format_scalar(value)}"


def _format_scalar(value: YamlValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{_escape_yaml(value)}"'
        case int() | float():
            return str(value)
        case Mapping():
            return "{}"
        case _:
            return "[]"


def _escape_yaml(text: str) -> str:
    """Escape the text. Every second backtick of a sequence is escaped, so that readers that search for a fence find
    none.
    """
    escaped = "".join(_YAML_ESCAPES.get(char) or (char if char.isprintable() else _escape_char(char)) for char in text)
    return escaped.replace("``", "`\\x60")


def _escape_char(char: str) -> str:
    number = ord(char)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


_MARKER: Final = re.compile(r"^(?:[-+=:]|\d+(?=[.)]))")
"""What could begin a list, a rule or an underlined heading; `prose` escapes everything else."""


def block_quote(text: str) -> str:
    """Return the text as a block quote. No line of it starts another block, and none ends the quote."""
    lines = (escape_markdown(line) for line in text.strip().splitlines())
    return "\n".join(f"> {escape_line_start(line)}".rstrip() for line in lines) or ">"


def bullet_list(texts: Iterable[str]) -> str:
    return "\n".join(f"- {escape_line_start(escape_markdown(text))}" for text in texts)


def join_code_spans(names: Iterable[str], otherwise: str = "none") -> str:
    """Return the names of files, commands and the like as code spans, separated by commas."""
    return ", ".join(map(code_span, names)) or otherwise


def table_lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table whose cells are Markdown already. An empty cell becomes a dash; without rows there is
    no table.
    """
    filled = [f"| {' | '.join(cell or '–' for cell in row)} |" for row in rows]
    if filled:
        yield f"| {' | '.join(head)} |"
        yield f"|{'---|' * len(head)}"
        yield from filled


def shorten_line(text: str, limit: int) -> str:
    """Return the text on one line, cut to at most `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def format_ranges(numbers: Iterable[int]) -> str:
    """Return the numbers as ranges: `3, 7, 31–34`."""
    groups = groupby(enumerate(sorted(set(numbers))), key=lambda pair: pair[1] - pair[0])
    runs = ([number for _, number in group] for _, group in groups)
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)


def escape_line_start(line: str) -> str:
    """Return a line of Markdown that begins no list, rule or underlined heading."""
    match = _MARKER.match(line)
    if match is None:
        return line
    return f"\\{line}" if not match[0].isdigit() else f"{match[0]}\\{line[match.end() :]}"


_WIDTH: Final = 118
_UNBREAKABLE: Final = re.compile(r"\[[^\]]*\]\([^)]*\)|`[^`]*`")
_NO_BREAK: Final = "\x00"


def wrap_paragraph(text: str) -> str:
    return _wrap(text, "", "")


def wrap_list_item(mark: str, text: str) -> str:
    return _wrap(text, mark, " " * (2 if mark.startswith("-") else len(mark)))


def numbered_list(texts: Iterable[str]) -> str:
    return "\n".join(wrap_list_item(f"{number}. ", text) for number, text in enumerate(texts, 1))


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _wrap(text: str, first: str, rest: str) -> str:
    joined = _UNBREAKABLE.sub(lambda match: match[0].replace(" ", _NO_BREAK), text)
    filled = textwrap.fill(
        joined, _WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
    return filled.replace(_NO_BREAK, " ")
