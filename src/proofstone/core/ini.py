"""INI files, as setup.cfg and tox.ini are, read as tables. Pure."""

from __future__ import annotations

import configparser


def parse_ini(text: str) -> dict[str, dict[str, str | None]]:
    """Return the sections with their values; a text that cannot be read raises `configparser.Error`."""
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except AttributeError as error:  # Python's own parser fails so on an indented line below a key without a value
        raise configparser.Error("an indented line continues a key that has no value") from error
    return {section: dict(parser.items(section)) for section in parser.sections()}
