"""Mend the form of an answer where no meaning is lost, and say what was mended. Pure.

Models that understand a task well still get its form wrong: another case in an enumeration, one text instead of a list
of one, a number as an id, a missing completion. Each mending below loses and invents nothing that a decision depends
on, and leaves a note for the record:

| in the answer                                           | becomes                                       |
|---------------------------------------------------------|-----------------------------------------------|
| the answer inside `answer`, `arguments`, `output` …     | the answer itself                             |
| a word of an enumeration in other case or spelling      | the word of the enumeration                   |
| one value where a list is expected                      | a list with that value                        |
| a number where a text is expected                       | the number as text                            |
| null or an empty word for a field that may be left out  | the field is left out                         |
| a text where an object with one text is expected        | that object                                   |
| a missing id                                            | the next free id of its kind                  |
| what `agents.rules.mended_answers` lists for one answer | see there                                     |

What could be a lie or hide a risk is never mended: a verdict, a claim, evidence, the command that verifies a task. The
conversation validates what was mended like any other answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from pydantic import BaseModel

_MAX_SHOWN: Final = 40
_MAX_DEPTH: Final = 12
"""Levels of a value that are walked; a recursive schema has no end."""
_WRAPPERS: Final = ("answer", "arguments", "parameters", "output", "result", "response")
"""Names under which models put the answer when they write down a call of a tool."""
_EMPTY_WORDS: Final = frozenset({"", "null", "none", "n/a", "-"})
_RISK_WORDS: Final[Mapping[str, str]] = {
    "green": "🟢",
    "low": "🟢",
    "yellow": "🟡",
    "medium": "🟡",
    "red": "🔴",
    "high": "🔴",
}
_ID_PREFIXES: Final[Mapping[str, str]] = {
    "findings": "F",
    "requirements": "R",
    "acceptance_criteria": "AC",
    "decisions": "D",
    "alternatives": "A",
    "tasks": "T",
}
"""How the engine names entries that have no id, by the list that they are in."""

JsonSchema = Mapping[str, Any]


@dataclass
class MendingNotes:
    """What was mended so far."""

    lines: list[str] = field(default_factory=list)

    def add(self, place: str, what: str) -> None:
        self.lines.append(f"{place}: {what}" if place else what)


def mend_form(found: Mapping[str, object], contract: type[BaseModel], notes: MendingNotes) -> dict[str, object]:
    """Return the answer with its form mended by the schema of the contract."""
    schema = read_schema(contract)
    answer = _unwrap(found, schema, notes)
    mended = _Walk(schema.get("$defs", {}), notes).mend(answer, schema, "", 0)
    return dict(mended) if isinstance(mended, Mapping) else dict(answer)


@cache
def read_schema(contract: type[BaseModel]) -> JsonSchema:
    """Return the schema of a contract, from a cache."""
    return contract.model_json_schema()


def _unwrap(found: Mapping[str, object], schema: JsonSchema, notes: MendingNotes) -> Mapping[str, object]:
    """Return the answer itself, if the object has nothing of the contract but the answer inside it has."""
    fields = set(schema.get("properties", {}))
    for name in _WRAPPERS:
        inner = found.get(name)
        if not isinstance(inner, Mapping) or not fields & set(inner) or fields & (set(found) - {name}):
            continue
        if name not in fields or set(schema.get("required", ())) & set(inner):
            notes.add("", f"the answer was inside `{name}`")
            return inner
    return found


@dataclass(frozen=True)
class _Walk:
    definitions: Mapping[str, JsonSchema]
    notes: MendingNotes

    def mend(self, value: object, schema: JsonSchema, place: str, depth: int) -> object:
        schema = self._choose_branch(value, self._resolve(schema))
        if depth > _MAX_DEPTH:
            return value
        if (allowed := _list_words(schema)) and isinstance(value, str):
            return self._mend_word(value, allowed, place)
        match schema.get("type"):
            case "object" if isinstance(value, Mapping):
                return self._mend_object(value, schema, place, depth)
            case "object" if isinstance(value, str) and (name := _find_only_text(schema)):
                self.notes.add(place, f"the text was read as `{name}`")
                return {name: value}
            case "array" if isinstance(value, str | Mapping | int | float) and not isinstance(value, bool):
                if value == "" or (isinstance(value, Mapping) and not value):
                    return []
                self.notes.add(place, "one value was read as a list")
                return self._mend_list([value], schema, place, depth)
            case "array" if isinstance(value, Sequence) and not isinstance(value, str):
                return self._mend_list(value, schema, place, depth)
            case "string" if isinstance(value, int | float) and not isinstance(value, bool):
                return str(value)
        return value

    def _mend_object(self, value: Mapping[str, object], schema: JsonSchema, place: str, depth: int) -> object:
        fields = schema.get("properties", {})
        required = schema.get("required", ())
        mended: dict[str, object] = {}
        for name, part in value.items():
            where = f"{place}.{name}" if place else name
            if name not in fields:
                mended[name] = part
                continue
            accepts_null = _accepts_null(self._resolve(fields[name]))
            if part is None and name not in required and not accepts_null:
                self.notes.add(where, "null was read as left out")
                continue
            if accepts_null and isinstance(part, str) and part.strip().lower() in _EMPTY_WORDS:
                mended[name] = None
                continue
            mended[name] = self.mend(part, fields[name], where, depth + 1)
        return mended

    def _mend_list(self, values: Sequence[object], schema: JsonSchema, place: str, depth: int) -> list[object]:
        items = self._resolve(schema.get("items", {}))
        mended = [self.mend(value, items, f"{place}.{number}", depth + 1) for number, value in enumerate(values)]
        if "id" in items.get("required", ()):
            mended = self._fill_ids(mended, place)
        return mended

    def _fill_ids(self, entries: list[object], place: str) -> list[object]:
        prefix = _ID_PREFIXES.get(place.rpartition(".")[2], "E")
        taken = {str(entry["id"]) for entry in entries if isinstance(entry, Mapping) and entry.get("id")}
        free = (id for number in range(1, len(entries) + len(taken) + 1) if (id := f"{prefix}{number}") not in taken)
        filled: list[object] = []
        for number, entry in enumerate(entries):
            if isinstance(entry, Mapping) and not entry.get("id"):
                id = next(free)
                self.notes.add(f"{place}.{number}.id", f"it was missing; the engine set {id}")
                entry = {**entry, "id": id}
            filled.append(entry)
        return filled

    def _mend_word(self, value: str, allowed: Sequence[str], place: str) -> str:
        if value in allowed:
            return value
        matches = [word for word in allowed if _fold(word) == _fold(value)]
        mark = _RISK_WORDS.get(value.strip().lower(), "")
        if not matches and mark in allowed:
            matches = [mark]
        if len(matches) != 1:
            return value
        self.notes.add(place, f"{_shorten(value)} was read as {matches[0]}")
        return matches[0]

    def _choose_branch(self, value: object, schema: JsonSchema) -> JsonSchema:
        """Return the alternative that the value most likely is meant for."""
        branches = [self._resolve(branch) for branch in schema.get("anyOf", ())]
        others = [branch for branch in branches if branch.get("type") != "null"]
        if not branches or value is None or not others:
            return schema
        fitting = (branch for branch in others if _is_of(value, branch))
        return next(fitting, others[0] if len(others) == 1 else schema)

    def _resolve(self, schema: JsonSchema) -> JsonSchema:
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        return {**self.definitions[name], **schema} if name in self.definitions else schema


def _list_words(schema: JsonSchema) -> tuple[str, ...]:
    words = schema.get("enum", (schema["const"],) if "const" in schema else ())
    return tuple(word for word in words if isinstance(word, str))


def _find_only_text(schema: JsonSchema) -> str | None:
    """Return the field that a plain text must be meant for: the only one that is required besides the id."""
    required = [name for name in schema.get("required", ()) if name != "id"]
    fields = schema.get("properties", {})
    return required[0] if len(required) == 1 and fields.get(required[0], {}).get("type") == "string" else None


def _accepts_null(schema: JsonSchema) -> bool:
    return any(branch.get("type") == "null" for branch in schema.get("anyOf", ()))


def _is_of(value: object, schema: JsonSchema) -> bool:
    kinds: dict[str, type | tuple[type, ...]] = {"object": Mapping, "array": list, "string": str}
    kind = kinds.get(str(schema.get("type")))
    return kind is not None and isinstance(value, kind)


def _fold(word: str) -> str:
    """Return the word without case, spaces and punctuation between its letters."""
    return re.sub(r"[\s_\-.]+", "", word.strip(" `'\"*").casefold())


def _shorten(value: str) -> str:
    flat = " ".join(value.split())
    return repr(flat if len(flat) <= _MAX_SHOWN else f"{flat[:_MAX_SHOWN]}…")


def find_entries(answer: Mapping[str, object], name: str) -> Iterator[dict[str, object]]:
    """Yield the objects of a list in the answer. Whatever else is in the list is left to the validation."""
    entries = answer.get(name)
    yield from (entry for entry in entries if isinstance(entry, dict)) if isinstance(entries, list) else ()
