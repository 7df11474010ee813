"""Values as YAML 1.2 that people can read and that reads back as the same values. Pure.

Text is always quoted or a block, keys are when they are no plain words: nothing that an agent wrote becomes a number,
a key or the end of anything. It is written here and not by a library because there are so few forms: a document is made
for every answer, and the library took longer for it than the whole engine for the dispatch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import JsonValue

_PLAIN_KEY: Final = re.compile(r"[a-z][a-z_]*")
_MEANS_MORE: Final = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))
"""To a reader of some YAML or other."""
_LONGEST_KEY: Final = 128
"""Beyond this a key is marked as one: a reader need not look further than 1,024 characters for its colon."""
_DEEPER: Final = 2


def yaml_text(values: Mapping[str, JsonValue]) -> str:
    return "".join(_entries(values, 0)) if values else "{}\n"


def _entries(values: Mapping[str, JsonValue], indent: int) -> Iterator[str]:
    pad = " " * indent
    for key, value in values.items():
        name = key if _PLAIN_KEY.fullmatch(key) and key not in _MEANS_MORE else _quoted(key)
        start = f"{pad}{name}:" if len(name) <= _LONGEST_KEY else f"{pad}? {name}\n{pad}:"
        yield start + _value(value, indent)


def _items(values: list[JsonValue], indent: int) -> Iterator[str]:
    pad = " " * indent
    for value in values:
        if isinstance(value, dict) and value:  # its first key stands behind the dash
            deeper = indent + _DEEPER
            yield f"{pad}- {''.join(_entries(value, deeper))[deeper:]}"
        else:
            yield f"{pad}-{_value(value, indent)}"


def _value(value: JsonValue, indent: int) -> str:
    """What stands behind a key or a dash, to the end of its last line."""
    match value:
        case str():
            return _text(value, indent + _DEEPER)
        case dict() if value:
            return "\n" + "".join(_entries(value, indent + _DEEPER))
        case list() if value:
            return "\n" + "".join(_items(value, indent + _DEEPER))
        case float():
            return f" {_number(value)}\n"
    return f" {json.dumps(value)}\n"


def _number(value: float) -> str:
    """With a point in any case: to some readers `1e+16` is text."""
    mantissa, exponent, power = json.dumps(value).partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}{exponent}{power}"


def _text(text: str, indent: int) -> str:
    if "\n" not in text or not _fits_a_block(text):
        return f" {_quoted(text)}\n"
    pad = " " * indent
    lines = (f"{pad}{line}\n" if line else "\n" for line in text.removesuffix("\n").split("\n"))
    return f" {'|' if text.endswith(chr(10)) else '|-'}\n{''.join(lines)}"


def _quoted(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted if quoted.isprintable() else "".join(map(_seen, quoted))


def _seen(char: str) -> str:
    return char if char.isprintable() else f"\\U{ord(char):08x}"


def _fits_a_block(text: str) -> bool:
    """Its lines are seen as they are, and where it begins and ends too."""
    lines = text.removesuffix("\n").split("\n")
    visible = all(line.isprintable() for line in lines)
    return visible and not lines[0][:1].isspace() and all(line.strip() for line in (lines[0], lines[-1]))
