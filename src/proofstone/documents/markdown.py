"""Text that somebody else chose, on pages that Proofstone writes: it stays text, in YAML and in Markdown. Pure.

YAML is written as scalars in double quotes, one a line, so that no name can end a block, start a key or become a
number. Markdown is written so that no name becomes a heading, a link or a tag.

Words of the pages of a run, in Markdown: whatever an agent or a person wrote stays text there. Pure.

Markdown as the pages have it: lines of one width, in which code and links stay whole.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

Value = str | int | float | bool | None | Sequence["Value"] | Mapping[str, "Value"]

_SPECIAL = re.compile(r"[\\`*\[\]<>|&~$#]|(?<![^\W_])_|_(?![^\W_])")
_NAMED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def yaml(values: Mapping[str, Value]) -> str:
    """The mapping as YAML 1.2, which reads back as the same values."""
    return "\n".join(_mapping(values, ""))


def yaml_block(values: Mapping[str, Value]) -> str:
    """The same in a fence. No line of it can close the fence."""
    return f"```yaml\n{yaml(values)}\n```"


def prose(text: str) -> str:
    """The text as it stands, in one line of Markdown."""
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", visible(text))


def code(text: str) -> str:
    """The text as a code span, whatever backticks it holds."""
    shown = visible(text)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    padding = " " if shown.startswith("`") or shown.endswith("`") or not shown else ""
    return f"{fence}{padding}{shown}{padding}{fence}"


def visible(text: str) -> str:
    """In one line, with whatever cannot be seen written out."""
    return "".join(char if char.isprintable() else _escaped(char) for char in " ".join(text.split()))


def _mapping(values: Mapping[str, Value], indent: str) -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield f"{indent}{key}:"
            yield from _mapping(value, indent + "  ")
        elif isinstance(value, Sequence) and not isinstance(value, str) and value:
            yield f"{indent}{key}:"
            yield from _sequence(value, indent + "  ")
        else:
            yield f"{indent}{key}: {_scalar(value)}"


def _sequence(values: Sequence[Value], indent: str) -> Iterator[str]:
    for value in values:
        if isinstance(value, Mapping) and value:
            first, *others = _mapping(value, indent + "  ")
            yield f"{indent}- {first.strip()}"
            yield from others
        else:
            yield f"{indent}- {_scalar(value)}"


def _scalar(value: Value) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{_quoted(value)}"'
        case int() | float():
            return str(value)
        case Mapping():
            return "{}"
        case _:
            return "[]"


def _quoted(text: str) -> str:
    """Every second backtick of a row is written out: readers that look for a fence anywhere find none."""
    escaped = "".join(_NAMED.get(char) or (char if char.isprintable() else _escaped(char)) for char in text)
    return escaped.replace("``", "`\\x60")


def _escaped(char: str) -> str:
    number = ord(char)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


_MARKER: Final = re.compile(r"^(?:[-+=:]|\d+(?=[.)]))")
"""What could begin a list, a rule or an underlined heading; the rest, `prose` has seen to."""


def quoted(text: str) -> str:
    """The text line by line as a block quote. No line of it begins anything, and none ends the quote."""
    lines = (prose(line) for line in text.strip().splitlines())
    return "\n".join(f"> {_begins_nothing(line)}".rstrip() for line in lines) or ">"


def listed(texts: Iterable[str]) -> str:
    return "\n".join(f"- {_begins_nothing(prose(text))}" for text in texts)


def named(names: Iterable[str], otherwise: str = "none") -> str:
    """Names of files, commands and the like, in a line."""
    return ", ".join(map(code, names)) or otherwise


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Of cells that are Markdown already. An empty one is a dash, and nothing at all no table."""
    filled = [f"| {' | '.join(cell or '–' for cell in row)} |" for row in rows]
    if filled:
        yield f"| {' | '.join(head)} |"
        yield f"|{'---|' * len(head)}"
        yield from filled


def shortened(text: str, most: int) -> str:
    """In one line, and no longer than that."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def ranges(numbers: Iterable[int]) -> str:
    """`3, 7, 31–34`."""
    apart = groupby(enumerate(sorted(set(numbers))), key=lambda one: one[1] - one[0])
    runs = ([number for _, number in group] for _, group in apart)
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)


def _begins_nothing(line: str) -> str:
    found = _MARKER.match(line)
    if found is None:
        return line
    return f"\\{line}" if not found[0].isdigit() else f"{found[0]}\\{line[found.end() :]}"


_WIDTH: Final = 118
_WHOLE: Final = re.compile(r"\[[^\]]*\]\([^)]*\)|`[^`]*`")
_NO_BREAK: Final = "\x00"


def paragraph(text: str) -> str:
    return _wrapped(text, "", "")


def item(mark: str, text: str) -> str:
    return _wrapped(text, mark, " " * (2 if mark.startswith("-") else len(mark)))


def numbered(texts: Iterable[str]) -> str:
    return "\n".join(item(f"{number}. ", text) for number, text in enumerate(texts, 1))


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _wrapped(text: str, first: str, rest: str) -> str:
    held = _WHOLE.sub(lambda found: found[0].replace(" ", _NO_BREAK), text)
    filled = textwrap.fill(
        held, _WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
    return filled.replace(_NO_BREAK, " ")
