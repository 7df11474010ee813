"""Values as YAML 1.2 that people can read and that reads back as the same values. Pure.

Text is always quoted or a block, keys are when they are no plain words: nothing that an agent wrote becomes a number,
a key or the end of anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from io import StringIO
from typing import Final

from pydantic import JsonValue
from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

_FOR_EVER: Final = 1 << 30
"""Columns: no line is folded."""
_PLAIN_KEY: Final = re.compile(r"[a-z][a-z_]*")
_MEANS_MORE: Final = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))
"""To a reader of some YAML or other."""


def yaml_text(values: Mapping[str, JsonValue]) -> str:
    yaml = YAML(typ="rt", pure=True)
    yaml.width = _FOR_EVER
    yaml.indent(mapping=2, sequence=4, offset=2)
    into = StringIO()
    yaml.dump(_value(dict(values)), into)
    return into.getvalue()


def _value(value: JsonValue) -> object:
    match value:
        case str():
            return _text(value)
        case list():
            return [_value(one) for one in value]
        case dict():
            return {_key(key): _value(one) for key, one in value.items()}
    return value


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) and key not in _MEANS_MORE else _quoted(key)


def _text(text: str) -> str:
    if "\n" not in text or not _fits_a_block(text):
        return _quoted(text)
    block: str = LiteralScalarString(text)
    return block


def _quoted(text: str) -> str:
    quoted: str = DoubleQuotedScalarString(text)
    return quoted


def _fits_a_block(text: str) -> bool:
    """Its lines are seen as they are, and where it begins and ends too."""
    lines = text.removesuffix("\n").split("\n")
    visible = all(line.isprintable() for line in lines)
    return visible and not lines[0][:1].isspace() and all(line.strip() for line in (lines[0], lines[-1]))
