"""Read YAML and INI files that other people wrote. Pure.

YAML can define a list once and reference it many times, also inside another list, so a few lines can stand for more
values than fit in memory. Reading copies nothing, but walking through such a value never ends; `is_bounded` detects it.
"""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from typing import Final, Literal

from ruamel.yaml import YAML


def make_yaml_reader(kind: Literal["safe", "rt"] = "safe") -> YAML:
    """Return a reader that creates only plain values and writes nothing to standard error.

    YAML allows the same anchor twice; by default ruamel.yaml emits a Python warning about it.
    """
    reader = YAML(typ=kind, pure=True)
    reader.composer.warn_double_anchors = False
    return reader


MAX_VALUES: Final = 200_000


def is_bounded(value: object, most: int = MAX_VALUES) -> bool:
    """Return whether the value, with every reference expanded, holds at most `most` values."""
    pending, count = [value], 0
    while pending:
        current = pending.pop()
        count += 1
        if isinstance(current, Mapping):
            pending += current.keys()
            pending += current.values()
        elif isinstance(current, list | tuple | set):
            pending += current
        if count + len(pending) > most:
            return False
    return True


def parse_ini(text: str) -> dict[str, dict[str, str | None]]:
    """Return the sections with their values. Raise `configparser.Error` if the text cannot be read."""
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except (
        AttributeError
    ) as error:  # configparser itself fails like this on an indented line below a key without a value
        raise configparser.Error("an indented line continues a key that has no value") from error
    return {section: dict(parser.items(section)) for section in parser.sections()}
