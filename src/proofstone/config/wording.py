"""On which line of a TOML text a key stands.

The parser does not say, so we ask it differently: a key stands where the statement begins that first makes it
appear. That is exact for tables, dotted keys, inline tables and multi-line values alike, without a TOML scanner of
our own. It parses the text for each line that could spell the key out, which only a refused configuration pays.

What a setting takes, in words, from the models' own schema: the same words in errors and in the manual.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

from pydantic import BaseModel

from proofstone.config.settings import Settings

Path = Sequence[str | int]


def line_of(text: str, path: Path) -> int | None:
    """The line, counted from 1, of the deepest part of `path` that can be found; integers index into arrays."""
    lines = text.split("\n")
    keys = [str(part) for part in path if isinstance(part, str)]
    for depth in range(len(keys), 0, -1):
        found = _statement(lines, keys[:depth])
        if found is None:
            continue
        start, end = found
        rest = path[depth:]
        if rest and isinstance(rest[0], int):
            return _element(lines, start, end, keys[:depth], rest[0])
        return start + 1
    return None


def _statement(lines: Sequence[str], keys: Sequence[str]) -> tuple[int, int] | None:
    """Index of the first line of the statement that makes `keys` appear, and of the line after its last."""
    spelt_out = re.compile(rf"(?<![\w-]){re.escape(keys[-1])}[\"']?\s*[.=\]]")
    for start, line in enumerate(lines):
        if not spelt_out.search(line):
            continue  # saves the parsing
        for end in range(start + 1, len(lines) + 1):
            after = _parse(lines[:end])
            if after is not None:
                if _get(after, keys) is not None:
                    return start, end
                break
    return None


def _element(lines: Sequence[str], start: int, end: int, keys: Sequence[str], index: int) -> int:
    """The line of one element of the array that the lines from `start` to `end` write."""
    for stop in range(start + 1, end):
        cut = _parse([*lines[:stop], "]"])
        value = None if cut is None else _get(cut, keys)
        if isinstance(value, list) and len(value) > index:
            return stop
    return (start if end == start + 1 else end - 1) + 1


def _parse(lines: Sequence[str]) -> dict[str, object] | None:
    try:
        return tomllib.loads("\n".join(lines))
    except (ValueError, RecursionError):  # no TOML, numbers of thousands of digits, brackets thousands deep
        return None


def _get(document: object, keys: Sequence[str]) -> object | None:
    """The value at `keys`; TOML has no null, so None says that it is not there."""
    for key in keys:
        if not isinstance(document, dict) or key not in document:
            return None
        document = document[key]
    return document


Schema = Mapping[str, object]
WordingPath = Sequence[str | int]


class Setting(NamedTuple):
    """One key of one section, as the schema describes it."""

    section: str
    key: str
    takes: str
    default: object
    description: str

    @property
    def name(self) -> str:
        return f"{self.section}.{self.key}"


class Section(NamedTuple):
    name: str
    description: str
    settings: tuple[Setting, ...]
    """Of the section, or of each of its entries."""
    entries: bool = False
    """It holds tables of the person's own naming: `[providers.NAME]`."""


@cache
def sections(model: type[BaseModel] = Settings) -> tuple[Section, ...]:
    """Every section with its settings, in the order of the models."""
    schema = _schema(model)
    found = []
    for name, field in _table(schema, "properties").items():
        entries = "additionalProperties" in field
        own = _resolve(schema, cast(Schema, field["additionalProperties"]) if entries else field)
        found.append(Section(name, _text(own, "description"), _settings(schema, name, own), entries))
    return tuple(found)


def takes(path: WordingPath, model: type[BaseModel] = Settings) -> str:
    """What the setting at `path` takes: `a whole number from 0 to 10`."""
    schema = _schema(model)
    return _takes(schema, _at(schema, path))


def keys(path: WordingPath, model: type[BaseModel] = Settings) -> tuple[str, ...]:
    """The keys that the table at `path` may have; empty where a person names them."""
    schema = _schema(model)
    table = _resolve(schema, _at(schema, path))
    if "propertyNames" in table:
        return tuple(cast(Sequence[str], cast(Schema, table["propertyNames"]).get("enum", ())))
    return tuple(cast(Mapping[str, object], table.get("properties", {})))


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()


def _at(schema: Schema, path: WordingPath) -> Schema:
    """The deepest part of `path` that is described in words of its own."""
    field = schema
    for part in path:
        table = _resolve(schema, field)
        named = cast(Mapping[object, Schema], table.get("properties", {}))
        entry = table.get("additionalProperties")
        if part in named:
            field = named[part]
        elif isinstance(entry, Mapping) and "$ref" in entry:
            field = entry
        else:
            break
    return field


def _settings(schema: Schema, section: str, own: Schema) -> tuple[Setting, ...]:
    return tuple(
        Setting(section, key, _takes(schema, field), field.get("default"), _text(field, "description"))
        for key, field in _table(own, "properties").items()
    )


def _takes(schema: Schema, field: Schema) -> str:
    field = _resolve(schema, field)
    if "enum" in field:
        return "one of " + ", ".join(json.dumps(value) for value in cast(Sequence[object], field["enum"]))
    if "anyOf" in field:
        ways = [way for way in cast(Sequence[Schema], field["anyOf"]) if way.get("type") != "null"]
        return ", or ".join(_takes(schema, way) for way in ways)
    match field["type"]:
        case "boolean":
            return "true or false"
        case "integer":
            return f"a whole number {_range(field)}"
        case "number":
            return f"a number {_range(field)}"
        case "array":
            return f"a list, each entry {_takes(schema, cast(Schema, field['items']))}"
        case "object":
            return _takes_table(schema, field)
        case _:
            return _text(field, "title")


def _takes_table(schema: Schema, field: Schema) -> str:
    if "properties" in field:
        return f"a table with {', '.join(_table(field, 'properties'))}"
    entry = field.get("additionalProperties")
    if isinstance(entry, Mapping) and "$ref" in entry:
        return f"a table for each name, with {', '.join(_table(_resolve(schema, entry), 'properties'))}"
    return 'a table of names and texts, such as { TZ = "UTC" }'


def _range(field: Schema) -> str:
    low = field["minimum"] if "minimum" in field else field.get("exclusiveMinimum")
    above = "from" if "minimum" in field else "above"
    if "maximum" in field:
        return f"{above} {_number(low)} to {_number(field['maximum'])}"
    return f"{above} {_number(low)}" + (" up" if "minimum" in field else "")


def _number(value: object) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _resolve(schema: Schema, field: Schema) -> Schema:
    if "$ref" not in field:
        return field
    name = _text(field, "$ref").removeprefix("#/$defs/")
    return _table(schema, "$defs")[name]


def _table(schema: Schema, key: str) -> Mapping[str, Schema]:
    return cast(Mapping[str, Schema], schema[key])


def _text(schema: Schema, key: str) -> str:
    return cast(str, schema[key])
