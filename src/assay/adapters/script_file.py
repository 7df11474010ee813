"""`script:FILE.yaml`: what scripted roles do, for tests and demonstrations.

    - role: executor
      match: {task: 2, attempt: 1}          # all must hold; text may be a glob; a list means any of them
      steps:
        - tool: {write: {path: a.txt, content: "hello\\n"}}
        - tool: {run: {command: make}}       # `- run: {command: make}` is the same
        - say: nearly there
        - sleep: 0.5
        - fail: the compiler is missing      # ends it
      output: {status: success}              # or raw: "text", read as if the role had written it

The first entry that matches is taken. No entry at all is an error of the script.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from assay.errors import InputError

ROLES: Final = ("executor", "architect")
MATCHES: Final = ("task", "attempt", "focus", "iteration")
_KEYS: Final = ("role", "match", "steps", "output", "raw")
_PARAMETERS: Final = {
    "write": ("path", "content"),
    "append": ("path", "content"),
    "edit": ("path", "old", "new"),
    "delete": ("path",),
    "run": ("command",),
}
"""The tools, with what each must be given; all of it is text."""
_OTHER_STEPS: Final = ("say", "sleep", "fail")
_EDITS: Final = ("write", "append", "edit", "delete")
_MOST_BYTES = 8 << 20

Facts = Mapping[str, tuple[str, ...]]
"""What is known of a dispatch: for each word of `match`, every way to say it."""


@dataclass(frozen=True)
class Step:
    """One thing to do."""

    name: str
    line: int
    given: Mapping[str, str] = field(default_factory=dict)
    """A tool's parameters; `text` for `say` and `fail`."""
    seconds: float = 0
    """For `sleep`."""


@dataclass(frozen=True)
class Entry:
    role: str
    match: Mapping[str, tuple[str, ...]]
    steps: tuple[Step, ...]
    said: bytes | None
    """What the role writes in the end: `raw` as it stands, or `output` as JSON."""
    line: int

    def matches(self, role: str, facts: Facts) -> bool:
        return role == self.role and all(_any_of(facts.get(word, ()), wanted) for word, wanted in self.match.items())

    def __str__(self) -> str:
        wanted = ", ".join(f"{word}: {' or '.join(values)}" for word, values in self.match.items())
        return f"line {self.line}: {self.role} with {wanted or 'anything'}"


@dataclass(frozen=True)
class Script:
    path: Path
    entries: tuple[Entry, ...]

    def entry(self, role: str, facts: Facts) -> Entry:
        """The first that matches."""
        for entry in self.entries:
            if entry.matches(role, facts):
                return entry
        asked = ", ".join(f"{word} {values[0]}" for word, values in facts.items() if values)
        there = "; ".join(map(str, self.entries)) or "none"
        raise InputError(
            f"{self.path}: no entry for the role {role} with {asked}",
            hint=f"add one, or widen a `match`; the entries are: {there}",
        )

    def wrong(self, line: int, message: str, hint: str | None = None) -> InputError:
        """The error for something that this script should not say."""
        return InputError(f"{self.path}:{line}: {message}", hint=hint)


def task_facts(id: str, name: str, attempt: int) -> Facts:
    """A task is known by its id, its number (`2` or `02`) and its name."""
    digits = id.rpartition("-")[2]
    numbers = (str(int(digits)), digits) if digits.isdecimal() else ()
    return {"task": (id, *numbers, name), "attempt": (str(attempt),)}


def _any_of(known: Sequence[str], wanted: Sequence[str]) -> bool:
    return any(one == pattern or fnmatchcase(one, pattern) for pattern in wanted for one in known)


def read_script(path: Path) -> Script:
    """The script in the file, checked as far as it can be without running it."""
    reading = Script(path, ())
    document = _document(reading)
    if not isinstance(document, CommentedSeq):
        raise reading.wrong(1, "a script is a list of entries", "begin with `- role: executor`")
    entries = tuple(_Reader(reading).entry(item, _line_of(document, number)) for number, item in enumerate(document))
    return Script(path, entries)


def _document(reading: Script) -> object:
    path = reading.path
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path}: larger than {_MOST_BYTES >> 20} MiB, which no script is")
        return YAML(typ="rt", pure=True).load(path.read_text("utf-8-sig"))
    except OSError as error:
        raise InputError(
            f"{path}: the script cannot be read: {error.strerror}", hint="name a YAML file: script:FILE.yaml"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8") from error
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise reading.wrong(mark.line + 1 if mark else 1, f"this is not YAML: {error.problem}") from error
    except (YAMLError, RecursionError, ValueError) as error:
        raise InputError(f"{path}: this is not YAML that can be read: {error}") from error


def _line_of(container: CommentedMap | CommentedSeq, key: object) -> int:
    places: Mapping[object, Sequence[int]] = container.lc.data or {}
    return (places[key][0] if key in places else int(container.lc.line)) + 1


class _Reader:
    """Turns what YAML gave into entries, with the place in every complaint."""

    def __init__(self, script: Script) -> None:
        self._script = script

    def entry(self, item: object, line: int) -> Entry:
        entry = self._mapping(item, line, "an entry", _KEYS)
        role = entry.get("role")
        if role not in ROLES:
            raise self._script.wrong(line, f"role: {role!r} is not a role", f"one of: {', '.join(ROLES)}")
        if "output" in entry and "raw" in entry:
            raise self._script.wrong(_line_of(entry, "raw"), "an entry has `output` or `raw`, not both")
        steps = self._steps(entry)
        for step in steps:
            if role != "executor" and step.name in _EDITS:
                raise self._script.wrong(step.line, f"{step.name}: the role {role} changes no files")
        return Entry(role, self._match(entry), steps, self._said(entry), line)

    def _match(self, entry: CommentedMap) -> dict[str, tuple[str, ...]]:
        if entry.get("match") is None:
            return {}
        match = self._mapping(entry["match"], _line_of(entry, "match"), "match", MATCHES)
        return {word: self._values(value, _line_of(match, word), word) for word, value in match.items()}

    def _values(self, value: object, line: int, word: str) -> tuple[str, ...]:
        listed = list(value) if isinstance(value, CommentedSeq) else [value]
        known = [one for one in listed if isinstance(one, (str, int)) and not isinstance(one, bool)]
        if not listed or known != listed:
            raise self._script.wrong(line, f"match.{word} is a text, a number, or a list of them")
        return tuple(str(one) if isinstance(one, str) else str(int(one)) for one in known)

    def _steps(self, entry: CommentedMap) -> tuple[Step, ...]:
        steps = entry.get("steps")
        if steps is None:
            return ()
        if not isinstance(steps, CommentedSeq):
            raise self._script.wrong(_line_of(entry, "steps"), "steps is a list", "- write: {path: a.txt, content: a}")
        return tuple(self._step(item, _line_of(steps, number)) for number, item in enumerate(steps))

    def _step(self, item: object, line: int) -> Step:
        name, value = self._only(item, line, ("tool", *_PARAMETERS, *_OTHER_STEPS))
        if name == "tool":
            name, value = self._only(value, line, tuple(_PARAMETERS))
        if name in _PARAMETERS:
            return Step(name, line, self._parameters(name, value, line))
        if name == "sleep":
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
                raise self._script.wrong(line, f"sleep: {value!r} is not a number of seconds")
            return Step(name, line, seconds=float(value))
        if not isinstance(value, str):
            raise self._script.wrong(line, f"{name}: {value!r} is not a text")
        return Step(name, line, {"text": str(value)})

    def _only(self, item: object, line: int, allowed: tuple[str, ...]) -> tuple[str, object]:
        step = self._mapping(item, line, "a step", allowed)
        if len(step) != 1:
            raise self._script.wrong(line, "a step does one thing", f"one of: {', '.join(allowed)}")
        return next((str(name), value) for name, value in step.items())

    def _parameters(self, name: str, value: object, line: int) -> dict[str, str]:
        needed = _PARAMETERS[name]
        if isinstance(value, str) and len(needed) == 1:
            return {needed[0]: str(value)}
        given = self._mapping(value, line, name, needed)
        missing = [word for word in needed if not isinstance(given.get(word), str)]
        if missing:
            raise self._script.wrong(line, f"{name} needs {' and '.join(missing)}, as text (quote what is not)")
        return {word: str(given[word]) for word in needed}

    def _said(self, entry: CommentedMap) -> bytes | None:
        if "raw" in entry:
            if not isinstance(entry["raw"], str):
                raise self._script.wrong(_line_of(entry, "raw"), "raw is a text (quote it)")
            return str(entry["raw"]).encode("utf-8", "surrogatepass")
        return json.dumps(entry["output"], default=str).encode() if entry.get("output") is not None else None

    def _mapping(self, value: object, line: int, what: str, allowed: tuple[str, ...]) -> CommentedMap:
        hint = f"allowed: {', '.join(allowed)}"
        if not isinstance(value, CommentedMap):
            raise self._script.wrong(line, f"{what} is a mapping", hint)
        for key in value:
            if key not in allowed:
                raise self._script.wrong(_line_of(value, key), f"{what}: {key!r} is not known here", hint)
        return value
