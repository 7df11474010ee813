"""From what a person wrote to the request of a role: YAML or JSON, or a sentence where the role needs no more.

Nobody pays for a mapping that was taken for a sentence: what begins like one, or comes from a file of that kind, must
be one, and what is wrong with it is said with its line.

A request that would do, made from the schema: what a person begins with who has never written one.

What is needed is there, with placeholders; what may be left out stands in comments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from io import StringIO
from pathlib import PurePath
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError

from proofstone.agents.roles.registry import ROLES
from proofstone.agents.roles.role import Role
from proofstone.common.models import Contract
from proofstone.common.parsing import MOST_VALUES, is_bounded, yaml_reader
from proofstone.errors import InputError

_MAPPINGS: Final = (".yaml", ".yml", ".json")
_MOST_ERRORS: Final = 5
_NEAR: Final = 0.85


def request_in(role: Role, text: str, *, focus: str = "", source: str = "REQUEST") -> Contract:
    """The request that the text is. `source` names where it stands, for whoever wrote it; `focus` is of the agent."""
    if not text.strip():
        raise InputError(f"{source}: the request is empty", hint=_takes(role))
    said = _mapping(role, text, source)
    if said is None:
        said = {_plain_field(role, source): text.strip()}
    try:
        return role.input.model_validate(_with_focus(role, said, focus))
    except ValidationError as error:
        wrong = sorted(error.errors(), key=lambda one: one["type"] == "missing")
        told = "; ".join(_in_words(item) for item in wrong[:_MOST_ERRORS])
        raise InputError(f"{source}: this is no request for the role {role.name}: {told}", hint=_takes(role)) from error


def plain_field(role: Role) -> str | None:
    """The field that a sentence would be, if the role needs that text and nothing else."""
    needed = [name for name, field in role.input.model_fields.items() if field.is_required() and name != "focus"]
    return needed[0] if len(needed) == 1 and role.input.model_fields[needed[0]].annotation is str else None


def answered_by(contract: str) -> str | None:
    """The role whose answer is of that contract."""
    return next((role.name for role in ROLES.values() if role.output.__name__ == contract), None)


def _plain_field(role: Role, source: str) -> str:
    if name := plain_field(role):
        return name
    raise InputError(
        f"{source}: the request for the role {role.name} is a mapping, and this is none", hint=_takes(role)
    )


def _mapping(role: Role, text: str, source: str) -> dict[str, object] | None:
    """What the text says, field by field; None: it is a sentence."""
    fields = role.input.model_fields
    must = text.lstrip().startswith(("{", "[")) or PurePath(source).suffix.lower() in _MAPPINGS
    try:
        found = _parsed(text, source)
    except InputError:
        if must or _has_a_field(text, fields):
            raise
        return None
    if isinstance(found, Mapping) and (must or any(_is_near(key, fields) for key in found)):
        return {str(key): value for key, value in found.items()}
    if must:
        raise InputError(f"{source}: this is no mapping with the fields of a request", hint=_takes(role))
    return None


def _parsed(text: str, source: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if PurePath(source).suffix.lower() == ".json" and isinstance(error, json.JSONDecodeError):
            raise InputError(f"{source}:{error.lineno}: not JSON: {error.msg}", hint=_QUOTE) from error
    try:
        found: object = yaml_reader().load(text)
    except (YAMLError, RecursionError, ValueError) as error:
        line, why = _trouble(text, error)
        raise InputError(f"{source}:{line}: neither YAML nor JSON: {why}", hint=_QUOTE) from error
    if not is_bounded(found):
        raise InputError(f"{source}: its references stand for more than {MOST_VALUES:,} values", hint="write them out")
    return found


_QUOTE: Final = "a text with a colon, a bracket or a quotation mark in it stands in quotation marks"


def _trouble(text: str, error: Exception) -> tuple[int, str]:
    """The line, and what is wrong there."""
    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        return error.problem_mark.line + 1, str(error.problem).partition("\n")[0]
    if isinstance(error, ReaderError):
        return text.count("\n", 0, error.position) + 1, str(error.reason)
    return 1, "it is nested too deeply" if isinstance(error, RecursionError) else str(error).partition("\n")[0]


def _has_a_field(text: str, fields: Collection[str]) -> bool:
    """Whether a line of it begins as a mapping with such fields would."""
    return any(_is_near(key, fields) for key in re.findall(r"^[\"']?(\w+)[\"']?\s*:(?=\s|$)", text, re.MULTILINE))


def _is_near(key: object, fields: Collection[str]) -> bool:
    return isinstance(key, str) and bool(get_close_matches(key, fields, n=1, cutoff=_NEAR))


def _with_focus(role: Role, said: Mapping[str, object], focus: str) -> Mapping[str, object]:
    """One focus, whether the agent's name says it or the request."""
    if not role.foci:
        if focus:
            raise InputError(f"{role.name}:{focus}: a {role.name} has no focus", hint=f"ask for {role.name}")
        return said
    there = f"ask for {', '.join(role.agents)}"
    named = said.get("focus")
    if focus and focus not in role.foci:
        raise InputError(f"{role.name}:{focus}: there is no such focus", hint=there)
    if focus and named not in (None, focus):
        raise InputError(
            f"{role.name}:{focus} is asked, and the request says `focus: {named}`",
            hint="say one of them, or leave it out",
        )
    if not focus and named is None:
        raise InputError(f"a {role.name} has a focus, and none is named", hint=there)
    return {**said, "focus": focus or named}


def _in_words(error: ErrorDetails) -> str:
    place = ".".join(map(str, error["loc"]))
    match error["type"]:
        case "missing":
            said = "is missing"
        case "extra_forbidden":
            said = "there is no such field"
        case "model_type" | "model_attributes_type":
            whose = answered_by(str(error.get("ctx", {}).get("class_name")))
            said = f"takes a mapping{f', which is what a {whose} answers' if whose else ''}; see --example"
        case _:
            words = error["msg"].removeprefix("Value error, ")
            said = words[0].lower() + words[1:]
    return f"{place}: {said}" if place else said


def _takes(role: Role) -> str:
    fields = role.input.model_fields
    needed = [name for name, field in fields.items() if field.is_required()]
    optional = [name for name in fields if name not in needed]
    may = f"; it may have {', '.join(optional)}" if optional else ""
    return f"it needs {', '.join(needed)}{may}; `proofstone ask {role.name} --example` shows one"


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
