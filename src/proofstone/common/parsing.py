"""The one way in which YAML of others is read. Pure.

How much a value holds that was read from a text with references in it. Pure.

YAML can name a list once and use it many times, also inside of another: some lines then stand for more values than any
memory holds. Nothing is copied when it is read, but whoever walks through it walks for ever.

INI files, as setup.cfg and tox.ini are, read as tables. Pure.
"""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from typing import Final, Literal

from ruamel.yaml import YAML


def yaml_reader(kind: Literal["safe", "rt"] = "safe") -> YAML:
    """Return a reader that makes no objects but plain values, and says nothing on standard error.

    Without this, an anchor that is there twice, which YAML allows, is a warning of Python's.
    """
    reader = YAML(typ=kind, pure=True)
    reader.composer.warn_double_anchors = False
    return reader


MOST_VALUES: Final = 200_000


def is_bounded(value: object, most: int = MOST_VALUES) -> bool:
    """Return whether the value, with every reference written out, holds at most so many values."""
    waiting, seen = [value], 0
    while waiting:
        one = waiting.pop()
        seen += 1
        if isinstance(one, Mapping):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, list | tuple | set):
            waiting += one
        if seen + len(waiting) > most:
            return False
    return True


def parse_ini(text: str) -> dict[str, dict[str, str | None]]:
    """Return the sections with their values; a text that cannot be read raises `configparser.Error`."""
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except AttributeError as error:  # Python's own parser fails so on an indented line below a key without a value
        raise configparser.Error("an indented line continues a key that has no value") from error
    return {section: dict(parser.items(section)) for section in parser.sections()}
