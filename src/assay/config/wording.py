"""What a setting takes, in words, from the models' own schema: the same words in errors and in the manual."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple, cast

from assay.config.settings import Settings

Schema = Mapping[str, object]


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


@cache
def sections() -> tuple[Section, ...]:
    """Every section with its settings, in the order of the models."""
    schema = Settings.model_json_schema()
    models = {name: _resolve(schema, field) for name, field in _table(schema, "properties").items()}
    return tuple(Section(name, _text(model, "description"), _settings(name, model)) for name, model in models.items())


def takes(section: str, key: str) -> str:
    """What this setting takes: `a whole number from 0 to 10`."""
    return next(
        setting.takes for part in sections() if part.name == section for setting in part.settings if setting.key == key
    )


def _settings(section: str, schema: Schema) -> tuple[Setting, ...]:
    return tuple(
        Setting(section, key, _takes(field), field.get("default"), _text(field, "description"))
        for key, field in _table(schema, "properties").items()
    )


def _takes(field: Schema) -> str:
    if "enum" in field:
        return "one of " + ", ".join(json.dumps(value) for value in cast(Sequence[object], field["enum"]))
    match field["type"]:
        case "boolean":
            return "true or false"
        case "integer":
            return f"a whole number from {field['minimum']} to {field['maximum']}"
        case "array":
            return f"a list, each entry {_text(cast(Schema, field['items']), 'title')}"
        case "object":
            return 'a table of names and texts, such as { TZ = "UTC" }'
        case _:
            return _text(field, "title")


def _resolve(schema: Schema, field: Schema) -> Schema:
    name = _text(field, "$ref").removeprefix("#/$defs/")
    return _table(schema, "$defs")[name]


def _table(schema: Schema, key: str) -> Mapping[str, Schema]:
    return cast(Mapping[str, Schema], schema[key])


def _text(schema: Schema, key: str) -> str:
    return cast(str, schema[key])
