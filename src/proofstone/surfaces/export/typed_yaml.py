"""A contract as YAML that an agent can write by: its fields in order, what each takes, and which must be there.

It is YAML itself, so that it can be parsed: a value names a type (`text`, `integer`), lists what is allowed (`a | b`),
or names another schema. What a contract says of a field stands above it, its limits beside it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from proofstone.contracts.base import Contract
from proofstone.errors import InternalError

_WIDTH: Final = 110
_TYPES: Final[Mapping[str, str]] = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "true | false",
}
_STEP: Final = "  "

_Schema = Mapping[str, Any]


def typed_yaml(contract: type[Contract], named: Mapping[str, str], omit: Collection[str] = ()) -> str:
    """`named` are contracts that have a schema of their own, by the contract's name; `omit` are fields left out."""
    schema = contract.model_json_schema()
    return "\n".join(_Writer(schema, named).fields(schema, omit)) + "\n"


class _Writer:
    def __init__(self, root: _Schema, named: Mapping[str, str]) -> None:
        self._parts: _Schema = root.get("$defs", {})
        self._named = named

    def fields(self, schema: _Schema, omit: Collection[str] = ()) -> list[str]:
        lines: list[str] = []
        for name, field in schema["properties"].items():
            if name not in omit:
                lines += self._field(name, field, name in schema.get("required", ()))
        return lines

    def _field(self, name: str, field: _Schema, required: bool) -> list[str]:
        kind = self._resolved(field)
        about = textwrap.wrap(field.get("description", ""), _WIDTH)
        may_be_null = ("or null",) if {"type": "null"} in kind.get("anyOf", ()) else ()
        facts = ", ".join(("required" if required else "optional", *self._limits(kind), *may_be_null))
        lines = [f"# {line}" for line in about]
        inside = self._object(kind)
        if inside is not None:
            return [*lines, f"{name}:  # {facts}", *_indented(self.fields(inside))]
        items = self._object(self._resolved(kind["items"])) if "items" in kind else None
        if items is not None:
            return [*lines, f"{name}:  # {facts}", *_as_item(self.fields(items))]
        return [*lines, f"{name}: {self._type(field)}  # {facts}"]

    def _type(self, field: _Schema) -> str:
        kind = self._resolved(field)
        if (name := _reference(field)) in self._named:
            return self._named[name]
        if "enum" in kind or "const" in kind:
            return " | ".join(map(str, kind.get("enum", [kind.get("const")])))
        if "anyOf" in kind:
            return " | ".join(self._type(way) for way in kind["anyOf"] if way != {"type": "null"})
        match kind.get("type"):
            case "array":
                return f"[{self._type(kind['items'])}]"
            case "object":
                return f"{{text: {self._type(kind['additionalProperties'])}}}"
            case str(type):
                return _TYPES[type]
            case None if not set(kind) - {"title", "description", "default"}:
                return "anything"
        raise InternalError(f"a contract has a field that cannot be written as typed YAML: {dict(kind)}")

    def _object(self, kind: _Schema) -> _Schema | None:
        """The object that is to be written out in place, alone or in its stead null."""
        ways = [way for way in kind.get("anyOf", [kind]) if way.get("type") != "null"]
        if len(ways) != 1 or _reference(ways[0]) in self._named or kind.get("title") in self._named:
            return None
        only = self._resolved(ways[0])
        return only if "properties" in only else None

    def _limits(self, kind: _Schema) -> list[str]:
        each = [f"each {limit}" for limit in self._limits(self._resolved(kind["items"]))] if "items" in kind else []
        return [
            *_span(kind, "minLength", "maxLength", " characters"),
            *_span(kind, "minItems", "maxItems", ""),
            *_span(kind, "minimum", "maximum", ""),
            *each,
        ]

    def _resolved(self, field: _Schema) -> _Schema:
        found: _Schema = self._parts[name] if (name := _reference(field)) else field
        return found


def _reference(field: _Schema) -> str:
    return str(field.get("$ref", "")).removeprefix("#/$defs/")


def _span(kind: _Schema, least: str, most: str, unit: str) -> list[str]:
    match kind.get(least), kind.get(most):
        case None, None:
            return []
        case None, top:
            return [f"at most {top}{unit}"]
        case 1, None if unit:
            return ["not empty"]
        case bottom, None:
            return [f"at least {bottom}{unit}"]
        case bottom, top:
            return [f"{bottom} to {top}{unit}"]
    return []


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"{_STEP}{line}" for line in lines]


def _as_item(lines: Sequence[str]) -> list[str]:
    """As the one item of a list: the dash stands before its first field."""
    first = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    return [f"{_STEP}{'- ' if number == first else _STEP}{line}" for number, line in enumerate(lines)]
