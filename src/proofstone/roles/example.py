"""A request that would do, made from the schema: what a person begins with who has never written one.

What is needed is there, with placeholders; what may be left out stands in comments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import StringIO
from typing import Any, Final

from ruamel.yaml import YAML

from proofstone.roles.requests import answered_by, plain_field
from proofstone.roles.role import Role

_PLACEHOLDER: Final = "…"
_REFERENCES: Final[Mapping[str, str]] = {"selected": "alternatives"}
"""Fields that name an entry of a list beside them, which no schema says."""

_Schema = Mapping[str, Any]


def example(role: Role, focus: str = "") -> str:
    """A request for the role as YAML. The focus that the agent's name says is left out of it."""
    schema = role.input.model_json_schema()
    agent = f"{role.name}:{focus}" if focus else role.name
    parts = [f"# A request for {agent}: proofstone ask {agent} @FILE.yaml"]
    if plain := plain_field(role):
        parts[0] += (
            f"\n# `{plain}` alone may be given as a plain text: proofstone ask {role.agents[0]} '{_PLACEHOLDER}'"
        )
    for name, field in schema["properties"].items():
        if name == "focus" and focus:
            continue
        about = "".join(f"# {line}\n" for line in _about(schema, field))
        if name in schema["required"]:
            parts.append(about + _yaml({name: _value(schema, field, (name,))}))
        else:
            parts.append(f"{about}# {name}: {json.dumps(field.get('default'), ensure_ascii=False)}")
    return "\n\n".join(parts) + "\n"


def schemas(role: Role) -> dict[str, object]:
    """What the role is given and what it answers, as JSON Schemas."""
    return {"request": role.input.model_json_schema(), "answer": role.output.model_json_schema()}


def _about(schema: _Schema, field: _Schema) -> list[str]:
    """What is to be said of a field: its description, what it may be, and who can write it."""
    said = [field["description"]] if "description" in field else []
    kind = _resolved(schema, field)
    if "enum" in kind:
        said.append(f"One of {', '.join(map(str, kind['enum']))}.")
    many = "items" in kind
    inside = _resolved(schema, kind["items"]) if many else kind
    if whose := answered_by(inside.get("title", "")):
        each = "Each is" if many else "It is"
        said.append(f"{each} what a {whose} answers: proofstone ask {whose} {_PLACEHOLDER} --json | jq .output")
    return said


def _value(schema: _Schema, field: _Schema, place: tuple[str | int, ...]) -> object:
    """The least that the schema takes."""
    field = _resolved(schema, field)
    if "enum" in field:
        return field["enum"][0]
    if "anyOf" in field:
        ways = field["anyOf"]
        return None if {"type": "null"} in ways else _value(schema, ways[0], place)
    match field["type"]:
        case "array":
            return [_value(schema, field["items"], (*place, n)) for n in range(field.get("minItems", 0))]
        case "object":
            inside = field.get("properties", {})
            return {name: _value(schema, inside[name], (*place, name)) for name in field.get("required", ())}
        case "integer" | "number":
            return field.get("minimum", 1)
        case "boolean":
            return False
        case _:
            return _text(place)


def _text(place: tuple[str | int, ...]) -> str:
    """Ids are told apart by where they stand."""
    match place:
        case (*_, str(entries), int(number), "id"):
            return f"{entries}-{number + 1}"
        case (*_, str(name)) if name in _REFERENCES:
            return f"{_REFERENCES[name]}-1"
        case _:
            return _PLACEHOLDER


def _resolved(schema: _Schema, field: _Schema) -> _Schema:
    if "$ref" not in field:
        return field
    found: _Schema = schema["$defs"][field["$ref"].removeprefix("#/$defs/")]
    return found


def _yaml(value: object) -> str:
    yaml = YAML(typ="rt", pure=True)
    yaml.indent(mapping=2, sequence=4, offset=2)
    text = StringIO()
    yaml.dump(value, text)
    return text.getvalue().rstrip()
