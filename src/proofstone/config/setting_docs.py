"""Describe settings: the line of a key in a TOML text, and the values that a setting accepts.

The TOML parser does not report lines. A key is on the line where the statement begins that first makes it appear. That
is exact for tables, dotted keys, inline tables and multi-line values alike, without another TOML scanner. It parses the
text once for each line that could contain the key, but only for a configuration that is refused.

The descriptions of accepted values come from the models' own schema: errors and manual use the same words.
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

TomlPath = Sequence[str | int]


def find_line(text: str, path: TomlPath) -> int | None:
    """Return the line, counted from 1, of the deepest part of `path` that can be found; integers index into arrays."""
    lines = text.split("\n")
    keys = [str(part) for part in path if isinstance(part, str)]
    for depth in range(len(keys), 0, -1):
        statement = _find_statement(lines, keys[:depth])
        if statement is None:
            continue
        start, end = statement
        rest = path[depth:]
        if rest and isinstance(rest[0], int):
            return _find_element(lines, start, end, keys[:depth], rest[0])
        return start + 1
    return None


def _find_statement(lines: Sequence[str], keys: Sequence[str]) -> tuple[int, int] | None:
    """Return the index of the first line of the statement that makes `keys` appear, and of the line after its last."""
    key_pattern = re.compile(rf"(?<![\w-]){re.escape(keys[-1])}[\"']?\s*[.=\]]")
    for start, line in enumerate(lines):
        if not key_pattern.search(line):
            continue  # avoids parsing
        for end in range(start + 1, len(lines) + 1):
            document = _parse(lines[:end])
            if document is not None:
                if _find_value(document, keys) is not None:
                    return start, end
                break
    return None


def _find_element(lines: Sequence[str], start: int, end: int, keys: Sequence[str], index: int) -> int:
    """Return the line of one element of the array that the lines from `start` to `end` write."""
    for stop in range(start + 1, end):
        document = _parse([*lines[:stop], "]"])
        value = None if document is None else _find_value(document, keys)
        if isinstance(value, list) and len(value) > index:
            return stop
    return (start if end == start + 1 else end - 1) + 1


def _parse(lines: Sequence[str]) -> dict[str, object] | None:
    try:
        return tomllib.loads("\n".join(lines))
    except (
        ValueError,
        RecursionError,
    ):  # invalid TOML, numbers with thousands of digits, or brackets nested thousands deep
        return None


def _find_value(document: object, keys: Sequence[str]) -> object | None:
    """Return the value at `keys`; TOML has no null, so None means that it does not exist."""
    for key in keys:
        if not isinstance(document, dict) or key not in document:
            return None
        document = document[key]
    return document


SchemaNode = Mapping[str, object]
SettingPath = Sequence[str | int]


class SettingDoc(NamedTuple):
    """One key of one section, as the schema describes it."""

    section: str
    key: str
    accepts: str
    default: object
    description: str

    @property
    def name(self) -> str:
        return f"{self.section}.{self.key}"


class SectionDoc(NamedTuple):
    """A section of a settings file."""

    name: str
    description: str
    settings: tuple[SettingDoc, ...]
    """The settings of the section, or of each of its entries."""
    has_named_entries: bool = False
    """Whether it holds tables that the user names: `[providers.NAME]`."""


@cache
def list_sections(model: type[BaseModel] = Settings) -> tuple[SectionDoc, ...]:
    """Return every section with its settings, in the order of the models."""
    schema = _schema(model)
    result = []
    for name, field in _table(schema, "properties").items():
        entries = "additionalProperties" in field
        own = _resolve(schema, cast(SchemaNode, field["additionalProperties"]) if entries else field)
        result.append(SectionDoc(name, _text(own, "description"), _list_settings(schema, name, own), entries))
    return tuple(result)


def describe_accepted(path: SettingPath, model: type[BaseModel] = Settings) -> str:
    """Describe what the setting at `path` accepts: `a whole number from 0 to 10`."""
    schema = _schema(model)
    return _describe_field(schema, _find_schema(schema, path))


def list_keys(path: SettingPath, model: type[BaseModel] = Settings) -> tuple[str, ...]:
    """Return the keys that the table at `path` may have; nothing if the user names them."""
    schema = _schema(model)
    table = _resolve(schema, _find_schema(schema, path))
    if "propertyNames" in table:
        return tuple(cast(Sequence[str], cast(SchemaNode, table["propertyNames"]).get("enum", ())))
    return tuple(cast(Mapping[str, object], table.get("properties", {})))


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()


def _find_schema(schema: SchemaNode, path: SettingPath) -> SchemaNode:
    """Return the schema of the deepest part of `path` that has its own description."""
    field = schema
    for part in path:
        table = _resolve(schema, field)
        properties = cast(Mapping[object, SchemaNode], table.get("properties", {}))
        entry = table.get("additionalProperties")
        if part in properties:
            field = properties[part]
        elif isinstance(entry, Mapping) and "$ref" in entry:
            field = entry
        else:
            break
    return field


def _list_settings(schema: SchemaNode, section: str, section_schema: SchemaNode) -> tuple[SettingDoc, ...]:
    return tuple(
        SettingDoc(section, key, _describe_field(schema, field), field.get("default"), _text(field, "description"))
        for key, field in _table(section_schema, "properties").items()
    )


def _describe_field(schema: SchemaNode, field: SchemaNode) -> str:
    field = _resolve(schema, field)
    if "enum" in field:
        return "one of " + ", ".join(json.dumps(value) for value in cast(Sequence[object], field["enum"]))
    if "anyOf" in field:
        options = [option for option in cast(Sequence[SchemaNode], field["anyOf"]) if option.get("type") != "null"]
        return ", or ".join(_describe_field(schema, option) for option in options)
    match field["type"]:
        case "boolean":
            return "true or false"
        case "integer":
            return f"a whole number {_describe_range(field)}"
        case "number":
            return f"a number {_describe_range(field)}"
        case "array":
            return f"a list, each entry {_describe_field(schema, cast(SchemaNode, field['items']))}"
        case "object":
            return _describe_table(schema, field)
        case _:
            return _text(field, "title")


def _describe_table(schema: SchemaNode, field: SchemaNode) -> str:
    if "properties" in field:
        return f"a table with {', '.join(_table(field, 'properties'))}"
    entry = field.get("additionalProperties")
    if isinstance(entry, Mapping) and "$ref" in entry:
        return f"a table for each name, with {', '.join(_table(_resolve(schema, entry), 'properties'))}"
    return 'a table of names and texts, such as { TZ = "UTC" }'


def _describe_range(field: SchemaNode) -> str:
    low = field["minimum"] if "minimum" in field else field.get("exclusiveMinimum")
    above = "from" if "minimum" in field else "above"
    if "maximum" in field:
        return f"{above} {_format_number(low)} to {_format_number(field['maximum'])}"
    return f"{above} {_format_number(low)}" + (" up" if "minimum" in field else "")


def _format_number(value: object) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _resolve(schema: SchemaNode, field: SchemaNode) -> SchemaNode:
    if "$ref" not in field:
        return field
    name = _text(field, "$ref").removeprefix("#/$defs/")
    return _table(schema, "$defs")[name]


def _table(schema: SchemaNode, key: str) -> Mapping[str, SchemaNode]:
    return cast(Mapping[str, SchemaNode], schema[key])


def _text(schema: SchemaNode, key: str) -> str:
    return cast(str, schema[key])
