"""Text that somebody else chose, on pages that Proofstone writes: it stays text, in YAML and in Markdown. Pure.

YAML is written as scalars in double quotes, one a line, so that no name can end a block, start a key or become a
number. Markdown is written so that no name becomes a heading, a link or a tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

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
