"""Write values as readable YAML 1.2 that reads back as the same values. Pure.

Text is always quoted or a block, and so are keys that are not plain words: nothing that an agent wrote becomes a
number, a key or the end of a block. There are so few forms that no library is used: a document is written for every
answer, and the library took longer for it than the whole engine for the dispatch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import JsonValue

_PLAIN_KEY: Final = re.compile(r"[a-z][a-z_]*")
_RESERVED_WORDS: Final = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))
"""Words that some YAML readers take for a value of another type."""
_LONGEST_KEY: Final = 128
"""A longer key is marked with `?`: a reader need not search more than 1,024 characters for its colon."""
_INDENT: Final = 2


def dump_yaml(values: Mapping[str, JsonValue]) -> str:
    return "".join(_mapping_lines(values, 0)) if values else "{}\n"


def _mapping_lines(values: Mapping[str, JsonValue], indent: int) -> Iterator[str]:
    pad = " " * indent
    for key, value in values.items():
        name = key if _PLAIN_KEY.fullmatch(key) and key not in _RESERVED_WORDS else _quote(key)
        start = f"{pad}{name}:" if len(name) <= _LONGEST_KEY else f"{pad}? {name}\n{pad}:"
        yield start + _format_value(value, indent)


def _sequence_lines(values: list[JsonValue], indent: int) -> Iterator[str]:
    pad = " " * indent
    for value in values:
        if isinstance(value, dict) and value:  # the first key follows the dash
            deeper = indent + _INDENT
            yield f"{pad}- {''.join(_mapping_lines(value, deeper))[deeper:]}"
        else:
            yield f"{pad}-{_format_value(value, indent)}"


def _format_value(value: JsonValue, indent: int) -> str:
    """Return what follows a key or a dash, up to the end of the last line."""
    match value:
        case str():
            return _format_text(value, indent + _INDENT)
        case dict() if value:
            return "\n" + "".join(_mapping_lines(value, indent + _INDENT))
        case list() if value:
            return "\n" + "".join(_sequence_lines(value, indent + _INDENT))
        case float():
            return f" {_format_number(value)}\n"
    return f" {json.dumps(value)}\n"


def _format_number(value: float) -> str:
    """Always write a decimal point: some readers take `1e+16` for text."""
    mantissa, exponent, power = json.dumps(value).partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}{exponent}{power}"


def _format_text(text: str, indent: int) -> str:
    if "\n" not in text or not _fits_a_block(text):
        return f" {_quote(text)}\n"
    pad = " " * indent
    lines = (f"{pad}{line}\n" if line else "\n" for line in text.removesuffix("\n").split("\n"))
    return f" {'|' if text.endswith(chr(10)) else '|-'}\n{''.join(lines)}"


def _quote(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted if quoted.isprintable() else "".join(map(_escape_char, quoted))


def _escape_char(char: str) -> str:
    return char if char.isprintable() else f"\\U{ord(char):08x}"


def _fits_a_block(text: str) -> bool:
    """Return whether a block shows the text exactly, including its beginning and its end."""
    lines = text.removesuffix("\n").split("\n")
    visible = all(line.isprintable() for line in lines)
    return visible and not lines[0][:1].isspace() and all(line.strip() for line in (lines[0], lines[-1]))
