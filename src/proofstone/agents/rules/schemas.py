"""JSON Schemas for models: short, understood by every endpoint, and one line for each place in them. Pure.

`compact_schema` is what a model reads: no titles, no notes for developers, no definitions that nothing uses or that are
used once, no fields that the engine fills, no limits that no answer comes near, and no defaults, because a field that
may be left out is left out. `simplify_schema` is what a server turns into a grammar: limits of length and patterns make
such a grammar slow or are not supported, and the engine checks them anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

_MAX_DEPTH: Final = 12
_OMITTED: Final = frozenset({"title", "default"})
_LIMITS: Final = frozenset(
    {"minLength", "maxLength", "pattern", "format", "maxItems", "uniqueItems", "minimum", "maximum", "description"}
)
"""Keywords that a grammar does without."""
FILLED_MARK: Final = "Leave it out"
"""How the description of a field begins that the engine fills."""
_FAR_LIMITS: Final[Mapping[str, Callable[[int], bool]]] = {
    "maxLength": lambda length: length > 200,
    "minLength": lambda length: length <= 1,
    "maxItems": lambda items: items >= 10,
}
_TRIVIAL: Final[tuple[tuple[str, JsonValue], ...]] = (("additionalProperties", True), ("additionalProperties", False))
_MAPS: Final = frozenset({"properties", "$defs", "patternProperties"})
"""Keywords whose keys are names and no keywords."""
_TYPES: Final[Mapping[str, str]] = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
    "object": "object",
    "array": "list",
}

JsonSchema = Mapping[str, JsonValue]


def compact_schema(schema: JsonSchema) -> dict[str, JsonValue]:
    """Return the schema without what a model does not need to read."""
    bare = {key: value for key, value in schema.items() if key != "description"}
    definitions = bare.get("$defs")
    if isinstance(definitions, Mapping):
        bare["$defs"] = {
            name: {key: value for key, value in part.items() if key != "description"}
            for name, part in definitions.items()
            if isinstance(part, Mapping)
        }
    compacted = _inline(_drop(bare, _OMITTED))
    return _trim(compacted)


def _trim(schema: JsonSchema) -> dict[str, JsonValue]:
    """Drop fields that the engine fills, and limits that no answer comes near."""
    trimmed: dict[str, JsonValue] = {}
    for key, value in schema.items():
        limit = _FAR_LIMITS.get(key)
        if (limit is not None and isinstance(value, int) and limit(value)) or (key, value) in _TRIVIAL:
            continue
        if key == "properties" and isinstance(value, Mapping):
            trimmed[key] = {name: _trim_part(part) for name, part in value.items() if not _is_filled(part)}
        elif key in _MAPS and isinstance(value, Mapping):
            trimmed[key] = {name: _trim_part(part) for name, part in value.items()}
        else:
            trimmed[key] = _trim_part(value)
    return trimmed


def _trim_part(value: JsonValue) -> JsonValue:
    if isinstance(value, Mapping):
        return _trim(value)
    return [_trim_part(part) for part in value] if isinstance(value, list) else value


def _is_filled(field: JsonValue) -> bool:
    return isinstance(field, Mapping) and str(field.get("description", "")).startswith(FILLED_MARK)


def omit_descriptions(schema: JsonSchema) -> dict[str, JsonValue]:
    """Return the schema without descriptions, for a model whose prompt describes the fields."""
    return _drop(schema, frozenset({"description"}))


def omit_fields(schema: JsonSchema, place: str, names: Sequence[str]) -> dict[str, JsonValue]:
    """Return the schema without optional fields of the object at a place."""
    properties = schema.get("properties")
    part = properties.get(place) if isinstance(properties, Mapping) else None
    if not isinstance(properties, Mapping) or not isinstance(part, Mapping):
        return dict(schema)
    fields = part.get("properties")
    kept = {name: field for name, field in fields.items() if name not in names} if isinstance(fields, Mapping) else {}
    return {**schema, "properties": {**properties, place: {**part, "properties": kept}}}


def omit_top_fields(schema: JsonSchema, names: Sequence[str]) -> dict[str, JsonValue]:
    """Return the schema without optional fields at its top."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return dict(schema)
    return {**schema, "properties": {name: field for name, field in properties.items() if name not in names}}


def simplify_schema(schema: JsonSchema) -> dict[str, JsonValue]:
    """Return the schema without limits that servers are slow with or refuse. It accepts more answers."""
    return _inline(_drop(schema, _OMITTED | _LIMITS))


def _drop(schema: JsonSchema, words: frozenset[str]) -> dict[str, JsonValue]:
    return {
        key: {name: _drop_from(part, words) for name, part in value.items()}
        if key in _MAPS and isinstance(value, Mapping)
        else _drop_from(value, words)
        for key, value in schema.items()
        if key not in words
    }


def _drop_from(value: JsonValue, words: frozenset[str]) -> JsonValue:
    if isinstance(value, Mapping):
        return _drop(value, words)
    return [_drop_from(part, words) for part in value] if isinstance(value, list) else value


def _inline(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Put definitions that are used once in their place, and drop those that nothing uses."""
    definitions = schema.pop("$defs", None)
    if not isinstance(definitions, Mapping):
        return schema
    known = {name: part for name, part in definitions.items() if isinstance(part, Mapping)}
    uses = Counter(_iterate_references([schema, *known.values()]))
    recursive = {name for name in known if name in set(_reach(name, known))}
    kept = {name for name in known if uses[name] > 1 and not _is_short(known[name])} | recursive
    resolved = _resolve(schema, known, kept)
    parts = {name: _resolve(known[name], known, kept) for name in known if name in kept}
    used = set(_iterate_references([resolved, *parts.values()]))
    remaining: dict[str, JsonValue] = {name: part for name, part in parts.items() if name in used}
    return {**resolved, "$defs": remaining} if remaining else resolved


def _is_short(schema: JsonSchema) -> bool:
    return "properties" not in schema


def _reach(name: str, definitions: Mapping[str, JsonSchema]) -> Iterator[str]:
    """Yield the definitions that one definition refers to, also indirectly."""
    reached: set[str] = set()
    waiting = list(_iterate_references([definitions[name]]))
    while waiting:
        other = waiting.pop()
        if other not in reached and other in definitions:
            reached.add(other)
            yield other
            waiting += _iterate_references([definitions[other]])


def _resolve(value: JsonSchema, definitions: Mapping[str, JsonSchema], kept: set[str]) -> dict[str, JsonValue]:
    name = _find_reference(value)
    if name in definitions and name not in kept:
        rest = {key: part for key, part in value.items() if key != "$ref"}
        return {**_resolve(definitions[name], definitions, kept), **rest}
    return {key: _resolve_part(part, definitions, kept) for key, part in value.items()}


def _resolve_part(value: JsonValue, definitions: Mapping[str, JsonSchema], kept: set[str]) -> JsonValue:
    if isinstance(value, Mapping):
        return _resolve(value, definitions, kept)
    return [_resolve_part(part, definitions, kept) for part in value] if isinstance(value, list) else value


def _iterate_references(values: Sequence[JsonValue | JsonSchema]) -> Iterator[str]:
    for value in values:
        if isinstance(value, Mapping):
            if name := _find_reference(value):
                yield name
            yield from _iterate_references(list(value.values()))
        elif isinstance(value, list):
            yield from _iterate_references(value)


def _find_reference(value: JsonSchema) -> str:
    reference = value.get("$ref")
    return reference.rpartition("/")[2] if isinstance(reference, str) else ""


def describe_place(schema: JsonSchema, place: Sequence[str | int]) -> str:
    """Return the expected form of a place as one line: its type, its words, and what it means."""
    definitions = schema.get("$defs")
    known = definitions if isinstance(definitions, Mapping) else {}
    field: JsonSchema = schema
    for step in place[:_MAX_DEPTH]:
        inner = _step_into(_follow(field, known), step, known)
        if inner is None:
            return ""
        field = inner
    field = _follow(field, known)
    meaning = field.get("description")
    form = _describe_form(field, known)
    return f"{form} – {meaning}" if isinstance(meaning, str) else form


def _follow(field: JsonSchema, definitions: JsonSchema) -> JsonSchema:
    target = definitions.get(_find_reference(field))
    return (
        {**target, **{key: part for key, part in field.items() if key != "$ref"}}
        if isinstance(target, Mapping)
        else field
    )


def _step_into(field: JsonSchema, step: str | int, definitions: JsonSchema) -> JsonSchema | None:
    for candidate in _alternatives(field, definitions):
        inner = candidate.get("items") if isinstance(step, int) else None
        properties = candidate.get("properties")
        if isinstance(step, str) and isinstance(properties, Mapping):
            inner = properties.get(step)
        if isinstance(inner, Mapping):
            return inner
    return None


def _alternatives(field: JsonSchema, definitions: JsonSchema) -> list[JsonSchema]:
    alternatives = field.get("anyOf")
    if not isinstance(alternatives, list):
        return [field]
    return [_follow(part, definitions) for part in alternatives if isinstance(part, Mapping)]


def _describe_form(field: JsonSchema, definitions: JsonSchema) -> str:
    return " or ".join(dict.fromkeys(_describe_one(part, definitions) for part in _alternatives(field, definitions)))


def _describe_one(field: JsonSchema, definitions: JsonSchema) -> str:
    words = field.get("enum", [field["const"]] if "const" in field else None)
    if isinstance(words, list):
        return f"one of {', '.join(map(str, words))}"
    kind = str(field.get("type", "anything"))
    items = field.get("items")
    if kind == "array" and isinstance(items, Mapping):
        return f"a list, each: {_describe_form(_follow(items, definitions), definitions)}"
    properties = field.get("properties")
    if isinstance(properties, Mapping):
        required = field.get("required")
        names = required if isinstance(required, list) and required else list(properties)
        return f"an object with {', '.join(map(str, names))}"
    return _TYPES.get(kind, kind)
