"""Read the request for a role as a person wrote it, and write an example of one.

A request is YAML or JSON, or a plain sentence if the role needs only one text. Text that looks like a mapping, or that
comes from a YAML or JSON file, must be a valid mapping: otherwise a broken mapping would be sent to a paid model as if
it were a sentence. Errors name the line.

An example is made from the schema. Required fields have placeholders; optional fields are comments.
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
from proofstone.common.models import FrozenModel
from proofstone.common.parsing import MAX_VALUES, is_bounded, make_yaml_reader
from proofstone.errors import InputError

_MAPPINGS: Final = (".yaml", ".yml", ".json")
_MOST_ERRORS: Final = 5
_NEAR: Final = 0.85


def parse_request(role: Role, text: str, *, focus: str = "", source: str = "REQUEST") -> FrozenModel:
    """Parse `text` as a request for the role. `source` names its origin in messages; `focus` is the agent's focus."""
    if not text.strip():
        raise InputError(f"{source}: the request is empty", hint=_takes(role))
    fields = _parse_mapping(role, text, source)
    if fields is None:
        fields = {_require_plain_field(role, source): text.strip()}
    try:
        return role.input.model_validate(_add_focus(role, fields, focus))
    except ValidationError as error:
        errors = sorted(error.errors(), key=lambda detail: detail["type"] == "missing")
        reasons = "; ".join(_describe_error(detail) for detail in errors[:_MOST_ERRORS])
        raise InputError(
            f"{source}: this is not a request for the role {role.name}: {reasons}", hint=_takes(role)
        ) from error


def find_plain_field(role: Role) -> str | None:
    """Return the field that a plain sentence fills, if the role requires one text and nothing else."""
    needed = [name for name, field in role.input.model_fields.items() if field.is_required() and name != "focus"]
    return needed[0] if len(needed) == 1 and role.input.model_fields[needed[0]].annotation is str else None


def find_author(contract: str) -> str | None:
    """Return the name of the role whose answer has this contract."""
    return next((role.name for role in ROLES.values() if role.output.__name__ == contract), None)


def _require_plain_field(role: Role, source: str) -> str:
    if name := find_plain_field(role):
        return name
    raise InputError(
        f"{source}: the request for the role {role.name} must be a mapping, but this is plain text", hint=_takes(role)
    )


def _parse_mapping(role: Role, text: str, source: str) -> dict[str, object] | None:
    """Return the fields of the text, or None if it is a sentence."""
    fields = role.input.model_fields
    is_mapping_expected = text.lstrip().startswith(("{", "[")) or PurePath(source).suffix.lower() in _MAPPINGS
    try:
        document = _parse_document(text, source)
    except InputError:
        if is_mapping_expected or _has_field(text, fields):
            raise
        return None
    if isinstance(document, Mapping) and (is_mapping_expected or any(_is_near(key, fields) for key in document)):
        return {str(key): value for key, value in document.items()}
    if is_mapping_expected:
        raise InputError(f"{source}: this is not a mapping with the fields of a request", hint=_takes(role))
    return None


def _parse_document(text: str, source: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if PurePath(source).suffix.lower() == ".json" and isinstance(error, json.JSONDecodeError):
            raise InputError(f"{source}:{error.lineno}: not JSON: {error.msg}", hint=_QUOTE) from error
    try:
        document: object = make_yaml_reader().load(text)
    except (YAMLError, RecursionError, ValueError) as error:
        line, reason = _locate_error(text, error)
        raise InputError(f"{source}:{line}: neither YAML nor JSON: {reason}", hint=_QUOTE) from error
    if not is_bounded(document):
        raise InputError(f"{source}: its references expand to more than {MAX_VALUES:,} values", hint="write them out")
    return document


_QUOTE: Final = "put a text that contains a colon, a bracket or a quotation mark into quotation marks"


def _locate_error(text: str, error: Exception) -> tuple[int, str]:
    """Return the line of a parsing error and its reason."""
    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        return error.problem_mark.line + 1, str(error.problem).partition("\n")[0]
    if isinstance(error, ReaderError):
        return text.count("\n", 0, error.position) + 1, str(error.reason)
    return 1, "it is nested too deeply" if isinstance(error, RecursionError) else str(error).partition("\n")[0]


def _has_field(text: str, fields: Collection[str]) -> bool:
    """Return whether a line begins with a key that is, or nearly is, one of the fields."""
    return any(_is_near(key, fields) for key in re.findall(r"^[\"']?(\w+)[\"']?\s*:(?=\s|$)", text, re.MULTILINE))


def _is_near(key: object, fields: Collection[str]) -> bool:
    return isinstance(key, str) and bool(get_close_matches(key, fields, n=1, cutoff=_NEAR))


def _add_focus(role: Role, fields: Mapping[str, object], focus: str) -> Mapping[str, object]:
    """Add the focus, which the agent's name or the request may give, and refuse a contradiction."""
    if not role.foci:
        if focus:
            raise InputError(f"{role.name}:{focus}: a {role.name} has no focus", hint=f"ask for {role.name}")
        return fields
    hint = f"ask for {', '.join(role.agents)}"
    requested = fields.get("focus")
    if focus and focus not in role.foci:
        raise InputError(f"{role.name}:{focus}: there is no such focus", hint=hint)
    if focus and requested not in (None, focus):
        raise InputError(
            f"you ask {role.name}:{focus}, but the request says `focus: {requested}`",
            hint="use the same focus in both places, or leave it out of the request",
        )
    if not focus and requested is None:
        raise InputError(f"a {role.name} needs a focus, and you named none", hint=hint)
    return {**fields, "focus": focus or requested}


def _describe_error(error: ErrorDetails) -> str:
    location = ".".join(map(str, error["loc"]))
    match error["type"]:
        case "missing":
            reason = "is missing"
        case "extra_forbidden":
            reason = "there is no such field"
        case "model_type" | "model_attributes_type":
            author = find_author(str(error.get("ctx", {}).get("class_name")))
            reason = f"takes a mapping{f', which is what a {author} answers' if author else ''}; see --example"
        case _:
            message = error["msg"].removeprefix("Value error, ")
            reason = message[0].lower() + message[1:]
    return f"{location}: {reason}" if location else reason


def _takes(role: Role) -> str:
    fields = role.input.model_fields
    needed = [name for name, field in fields.items() if field.is_required()]
    optional = [name for name in fields if name not in needed]
    options = f"; it may have {', '.join(optional)}" if optional else ""
    return f"it needs {', '.join(needed)}{options}; `proofstone ask {role.name} --example` shows one"


_PLACEHOLDER: Final = "…"
_REFERENCES: Final[Mapping[str, str]] = {"selected": "alternatives"}
"""Fields that name an entry of a sibling list, by the name of that list. A schema cannot express this."""

_Schema = Mapping[str, Any]


def build_example(role: Role, focus: str = "") -> str:
    """Return an example request for the role as YAML. A focus given by the agent's name is left out."""
    schema = role.input.model_json_schema()
    agent = f"{role.name}:{focus}" if focus else role.name
    parts = [f"# A request for {agent}: proofstone ask {agent} @FILE.yaml"]
    if plain := find_plain_field(role):
        parts[0] += f"\n# `{plain}` alone can be given as plain text: proofstone ask {role.agents[0]} '{_PLACEHOLDER}'"
    for name, field in schema["properties"].items():
        if name == "focus" and focus:
            continue
        comment = "".join(f"# {line}\n" for line in _describe_field(schema, field))
        if name in schema["required"]:
            parts.append(comment + _dump_yaml({name: _minimal_value(schema, field, (name,))}))
        else:
            parts.append(f"{comment}# {name}: {json.dumps(field.get('default'), ensure_ascii=False)}")
    return "\n\n".join(parts) + "\n"


def build_role_schemas(role: Role) -> dict[str, object]:
    """Return the JSON Schemas of the role's request and answer."""
    return {"request": role.input.model_json_schema(), "answer": role.output.model_json_schema()}


def _describe_field(schema: _Schema, field: _Schema) -> list[str]:
    """Return comment lines for a field: its description, its allowed values, and which role can write it."""
    lines = [field["description"]] if "description" in field else []
    definition = _resolve_reference(schema, field)
    if "enum" in definition:
        lines.append(f"One of {', '.join(map(str, definition['enum']))}.")
    is_list = "items" in definition
    value = _resolve_reference(schema, definition["items"]) if is_list else definition
    if author := find_author(value.get("title", "")):
        subject = "Each is" if is_list else "It is"
        lines.append(f"{subject} what a {author} answers: proofstone ask {author} {_PLACEHOLDER} --json | jq .output")
    return lines


def _minimal_value(schema: _Schema, field: _Schema, place: tuple[str | int, ...]) -> object:
    """Return the smallest value that the schema accepts."""
    field = _resolve_reference(schema, field)
    if "enum" in field:
        return field["enum"][0]
    if "anyOf" in field:
        options = field["anyOf"]
        return None if {"type": "null"} in options else _minimal_value(schema, options[0], place)
    match field["type"]:
        case "array":
            return [_minimal_value(schema, field["items"], (*place, n)) for n in range(field.get("minItems", 0))]
        case "object":
            properties = field.get("properties", {})
            return {
                name: _minimal_value(schema, properties[name], (*place, name)) for name in field.get("required", ())
            }
        case "integer" | "number":
            return field.get("minimum", 1)
        case "boolean":
            return False
        case _:
            return _placeholder_text(place)


def _placeholder_text(place: tuple[str | int, ...]) -> str:
    """Return a placeholder. Ids get the position of their entry, so that they are unique."""
    match place:
        case (*_, str(entries), int(number), "id"):
            return f"{entries}-{number + 1}"
        case (*_, str(name)) if name in _REFERENCES:
            return f"{_REFERENCES[name]}-1"
        case _:
            return _PLACEHOLDER


def _resolve_reference(schema: _Schema, field: _Schema) -> _Schema:
    if "$ref" not in field:
        return field
    definition: _Schema = schema["$defs"][field["$ref"].removeprefix("#/$defs/")]
    return definition


def _dump_yaml(value: object) -> str:
    yaml = YAML(typ="rt", pure=True)
    yaml.indent(mapping=2, sequence=4, offset=2)
    text = StringIO()
    yaml.dump(value, text)
    return text.getvalue().rstrip()
