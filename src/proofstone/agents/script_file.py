"""Read `script:FILE.yaml`: scripted roles for tests, demonstrations and reproductions. See `docs/scripts.md`.

    - role: executor
      match: {task: 2, attempt: 1}           # all must hold; text may be a glob; a list means any of them
      usage: {input_tokens: 900, usd: 0.01}  # for every turn
      steps:
        - tool: {read: {path: a.txt}}        # a tool call of the runtime, with its permissions; ends the turn
        - write: {path: a.txt, content: a}   # without the runtime; also append, edit, delete, run
        - say: nearly there
        - sleep: 0.5
        - error: {kind: unavailable, times: 1}
        - fail: the compiler is missing      # ends the dispatch
      output: {status: success}              # or raw: "text", read as if the role had written it

The first entry that matches is used; on a repair, entries with `repair` take precedence. Questions during the work
(`asked: impact`, `asked: RV-2`; the second time also `RV-2.2`) are answered only by entries with `asked`; a role
without such an entry is not asked. If no entry matches, the script is in error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Final

from pydantic import JsonValue
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from proofstone.agents.models import Conversation, DispatchKey, EngineMessage, FaultKind
from proofstone.agents.rules.routes import SERVED_ROLES
from proofstone.common.models import Usage
from proofstone.common.parsing import MAX_VALUES, is_bounded, make_yaml_reader
from proofstone.errors import InputError

MATCH_KEYS: Final = ("task", "attempt", "focus", "iteration", "round", "step", "run", "dispatch", "repair", "asked")
SCRIPT_FAULTS: Final = (
    FaultKind.UNAVAILABLE,
    FaultKind.DENIED,
    FaultKind.REJECTED,
    FaultKind.FILTERED,
    FaultKind.CRASHED,
    FaultKind.TIMEOUT,
)
"""Faults of a backend. Failures of the agent itself have their own steps or follow from its answers."""
ONE_REQUEST: Final = Usage(requests=1)
"""The default usage of a turn: one request without costs."""
_KEYS: Final = ("role", "match", "steps", "output", "raw", "usage")
_PARAMETERS: Final = {
    "write": ("path", "content"),
    "append": ("path", "content"),
    "edit": ("path", "old", "new"),
    "delete": ("path",),
    "run": ("command",),
}
"""Steps that act without the runtime, with their required parameters, all of which are texts."""
_EDITS: Final = ("write", "append", "edit", "delete")
_STEPS: Final = ("tool", "tools", *_PARAMETERS, "say", "sleep", "fail", "error")
_MOST_BYTES = 8 << 20

DispatchFacts = Mapping[str, tuple[str, ...]]
"""The facts of a dispatch: for each key of `match`, all values that it may have."""


@dataclass(frozen=True)
class ScriptCall:
    """A call of a tool of the runtime. The role need not have the tool."""

    name: str
    arguments: JsonValue = field(default_factory=dict)
    """A mapping, unless the script makes a malformed call on purpose."""


@dataclass(frozen=True)
class ScriptFault:
    """A fault of the backend."""

    kind: FaultKind
    why: str
    times: int | None = None
    """How often it happens within one dispatch and its repetition; None for always."""


@dataclass(frozen=True)
class ScriptStep:
    """One step of an entry."""

    name: str
    """The name in the script; a single `tool` is also called `tools`."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """The parameters of a step that acts without the runtime; `text` for `say` and `fail`."""
    seconds: float = 0
    """For `sleep`."""
    calls: tuple[ScriptCall, ...] = ()
    """For `tools`: all in one turn."""
    breakdown: ScriptFault | None = None
    """For `error`."""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class ScriptEntry:
    role: str
    match: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    steps: tuple[ScriptStep, ...] = ()
    output: JsonValue = None
    """The answer of the role; None if there is none, or if it is in `raw`."""
    raw: str | None = None
    """The answer as literal text, which need not match the schema."""
    usage: Usage = ONE_REQUEST
    """The usage of each turn."""
    line: int = field(default=0, compare=False)

    def matches(self, role: str, facts: DispatchFacts) -> bool:
        return role == self.role and all(
            _matches_any(facts.get(word, ()), wanted) for word, wanted in self.match.items()
        )

    def __str__(self) -> str:
        conditions = ", ".join(f"{word}: {' or '.join(values)}" for word, values in self.match.items())
        return f"line {self.line}: {self.role} with {conditions or 'anything'}"


@dataclass(frozen=True)
class AgentScript:
    path: Path
    entries: tuple[ScriptEntry, ...]

    def find_entry(self, role: str, facts: DispatchFacts) -> ScriptEntry:
        """Return the first entry that matches. Entries with `repair` take precedence."""
        is_question = "asked" in facts
        matching = [
            entry for entry in self.entries if entry.matches(role, facts) and ("asked" in entry.match) == is_question
        ]
        if matching:
            return next((entry for entry in matching if "repair" in entry.match), matching[0])
        known_facts = ", ".join(f"{word} {values[0]}" for word, values in facts.items() if values)
        entries = "; ".join(map(str, self.entries)) or "none"
        raise InputError(
            f"{self.path}: no entry for the role {role} with {known_facts}",
            hint=f"add one, or widen a `match`; the entries are: {entries}",
        )

    def can_answer(self, role: str, asked: str) -> bool:
        """Return whether the script answers a question during the work: one to the role itself (`asked: RV-2`), or one
        to an architect about another agent (`focus: understanding`)."""
        word = "focus" if role == "architect" else "asked"
        patterns = (entry.match.get(word, ()) for entry in self.entries if entry.role == role)
        return any(_matches_any((asked, f"{asked}.1"), wanted) for wanted in patterns)

    def build_error(self, line: int, message: str, hint: str | None = None) -> InputError:
        """Return the error for an invalid line of this script."""
        return InputError(f"{self.path}:{line}: {message}", hint=hint)


def build_task_facts(id: str, name: str, attempt: int) -> DispatchFacts:
    """Return the facts of a task, which can be matched by its id, its number (`2` or `02`) or its name."""
    digits = id.rpartition("-")[2]
    numbers = (str(int(digits)), digits) if digits.isdecimal() else ()
    return {"task": (id, *numbers, name), "attempt": (str(attempt),)}


def build_facts(conversation: Conversation) -> DispatchFacts:
    """Return the facts of a dispatch. A key that does not apply has no fact, such as `repair` before a repair."""
    facts = _occasion_facts(conversation.occasion, conversation.repairs)
    if not (asked := conversation.open_question):
        return facts
    times = sum(isinstance(entry, EngineMessage) and entry.asked == asked for entry in conversation.entries)
    return {**facts, "asked": (asked, f"{asked}.{times}")}


def _occasion_facts(occasion: DispatchKey, repairs: int) -> DispatchFacts:
    task = build_task_facts(occasion.task, occasion.task_name, occasion.attempt) if occasion.task else {}
    others = {
        "attempt": occasion.attempt,
        "focus": occasion.focus,
        "iteration": occasion.iteration,
        "round": occasion.round,
        "step": occasion.step or None,
        "run": occasion.run_id,
        "dispatch": occasion.dispatch,
        "repair": repairs or None,
    }
    return {**task, **{word: (str(value),) for word, value in others.items() if value is not None}}


def _matches_any(known: Sequence[str], wanted: Sequence[str]) -> bool:
    return any(value == pattern or fnmatchcase(value, pattern) for pattern in wanted for value in known)


def read_script(path: Path) -> AgentScript:
    """Read the script in the file and validate it without running it."""
    return _parse_script(path, _read_text(path))


@lru_cache(maxsize=4)
def _parse_script(path: Path, text: str) -> AgentScript:
    """Parse a script. The result is cached, because one file often serves all roles and parsing YAML is slow."""
    script = AgentScript(path, ())
    document = _parse_yaml(script, text)
    if not isinstance(document, CommentedSeq):
        raise script.build_error(1, "a script is a list of entries", "begin with `- role: executor`")
    entries = tuple(
        _Reader(script).read_entry(item, _line_of(document, number)) for number, item in enumerate(document)
    )
    return AgentScript(path, entries)


def _read_text(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path}: larger than {_MOST_BYTES >> 20} MiB, which is too large for a script")
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise InputError(
            f"{path}: the script cannot be read: {error.strerror}", hint="name a YAML file: script:FILE.yaml"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8") from error


def _parse_yaml(script: AgentScript, text: str) -> object:
    try:
        document: object = make_yaml_reader("rt").load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise script.build_error(mark.line + 1 if mark else 1, f"this is not YAML: {error.problem}") from error
    except (YAMLError, RecursionError, ValueError) as error:
        raise InputError(f"{script.path}: this YAML cannot be read: {error}") from error
    if not is_bounded(document):
        hint = "write the values out"
        raise InputError(f"{script.path}: its references expand to more than {MAX_VALUES:,} values", hint=hint)
    return document


def _line_of(container: CommentedMap | CommentedSeq, key: object) -> int:
    places: Mapping[object, Sequence[int]] = container.lc.data or {}
    return (places[key][0] if key in places else int(container.lc.line)) + 1


class _Reader:
    """Converts parsed YAML to entries. Every error names its line."""

    def __init__(self, script: AgentScript) -> None:
        self._script = script

    def read_entry(self, item: object, line: int) -> ScriptEntry:
        entry = self._read_mapping(item, line, "an entry", _KEYS)
        role = entry.get("role")
        if not isinstance(role, str) or role not in SERVED_ROLES:
            raise self._script.build_error(line, f"role: {role!r} is not a role", f"one of: {', '.join(SERVED_ROLES)}")
        if "output" in entry and "raw" in entry:
            raise self._script.build_error(_line_of(entry, "raw"), "an entry has `output` or `raw`, not both")
        steps = self._read_steps(entry)
        for step in steps:
            if role != "executor" and step.name in _EDITS:
                raise self._script.build_error(
                    step.line,
                    f"{step.name}: the role {role} changes no files",
                    f"`- tool: {{{step.name}: …}}` lets it try",
                )
        return ScriptEntry(
            role=str(role),
            match=self._read_match(entry),
            steps=steps,
            output=self._read_output(entry),
            raw=self._read_raw(entry),
            usage=self._read_usage(entry),
            line=line,
        )

    def _read_match(self, entry: CommentedMap) -> dict[str, tuple[str, ...]]:
        if entry.get("match") is None:
            return {}
        match = self._read_mapping(entry["match"], _line_of(entry, "match"), "match", MATCH_KEYS)
        return {str(word): self._read_patterns(value, _line_of(match, word), word) for word, value in match.items()}

    def _read_patterns(self, value: object, line: int, word: str) -> tuple[str, ...]:
        values = list(value) if isinstance(value, CommentedSeq) else [value]
        valid = [item for item in values if isinstance(item, (str, int)) and not isinstance(item, bool)]
        if not values or valid != values:
            raise self._script.build_error(line, f"match.{word} is a text, a number, or a list of them")
        return tuple(str(item) if isinstance(item, str) else str(int(item)) for item in valid)

    def _read_usage(self, entry: CommentedMap) -> Usage:
        if entry.get("usage") is None:
            return ONE_REQUEST
        fields = self._read_mapping(
            entry["usage"], _line_of(entry, "usage"), "usage", ("input_tokens", "output_tokens", "usd")
        )
        tokens = {
            str(word): self._read_integer(value, _line_of(fields, word), f"usage.{word}")
            for word, value in fields.items()
            if word != "usd"
        }
        usd = fields.get("usd", 0)  # null means unknown
        price = (
            None if usd is None else self._read_number(usd, _line_of(fields, "usd"), "usage.usd", "an amount of money")
        )
        return Usage(requests=1, **tokens, usd=price)

    def _read_steps(self, entry: CommentedMap) -> tuple[ScriptStep, ...]:
        steps = entry.get("steps")
        if steps is None:
            return ()
        if not isinstance(steps, CommentedSeq):
            raise self._script.build_error(
                _line_of(entry, "steps"), "steps is a list", "- write: {path: a.txt, content: a}"
            )
        return tuple(self._read_step(item, _line_of(steps, number)) for number, item in enumerate(steps))

    def _read_step(self, item: object, line: int) -> ScriptStep:
        step = self._read_mapping(item, line, "a step", _STEPS)
        if len(step) != 1:
            raise self._script.build_error(line, "a step does one thing", f"one of: {', '.join(_STEPS)}")
        name, value = next((str(name), value) for name, value in step.items())
        match name:
            case "tool":
                return ScriptStep("tools", calls=(self._read_call(value, line),), line=line)
            case "tools":
                return ScriptStep("tools", calls=self._read_calls(value, line), line=line)
            case "sleep":
                return ScriptStep(name, seconds=self._read_number(value, line, name, "a number of seconds"), line=line)
            case "error":
                return ScriptStep(name, breakdown=self._read_fault(value, line), line=line)
            case "say" | "fail":
                return ScriptStep(name, {"text": self._read_text(value, line, name)}, line=line)
        return self._read_direct_step(name, value, line)

    def _read_calls(self, value: object, line: int) -> tuple[ScriptCall, ...]:
        if not isinstance(value, CommentedSeq) or not value:
            raise self._script.build_error(line, "tools is a list of calls", "- tools: [{read: {path: a}}, {list: {}}]")
        return tuple(self._read_call(item, _line_of(value, number)) for number, item in enumerate(value))

    def _read_call(self, value: object, line: int) -> ScriptCall:
        """Read a call with any name and any arguments, because a script must be able to try what is refused."""
        if isinstance(value, str):
            return ScriptCall(str(value))
        if not isinstance(value, CommentedMap) or len(value) != 1:
            raise self._script.build_error(
                line, "tool names one tool, with its arguments", "- tool: {read: {path: a}}, or - tools: [{…}, {…}]"
            )
        name, arguments = next(iter(value.items()))
        return ScriptCall(str(name), {} if arguments is None else self._read_json(arguments, line, str(name)))

    def _read_number(self, value: object, line: int, what: str, wanted: str) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
            raise self._script.build_error(line, f"{what}: {value!r} is not {wanted}")
        return float(value)

    def _read_integer(self, value: object, line: int, what: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self._script.build_error(line, f"{what}: {value!r} is not a whole number")
        return int(value)

    def _read_fault(self, value: object, line: int) -> ScriptFault:
        short = CommentedMap(kind=value) if isinstance(value, str) else value
        fields = self._read_mapping(short, line, "error", ("kind", "why", "times"))
        kind, times = fields.get("kind"), fields.get("times")
        if kind not in SCRIPT_FAULTS:
            raise self._script.build_error(
                line, f"error: {kind!r} is not a kind", f"one of: {', '.join(SCRIPT_FAULTS)}"
            )
        why = self._read_text(fields.get("why", f"{kind}, says the script"), line, "error: why")
        return ScriptFault(
            FaultKind(kind), why, None if times is None else self._read_integer(times, line, "error: times")
        )

    def _read_text(self, value: object, line: int, what: str) -> str:
        if not isinstance(value, str):
            raise self._script.build_error(line, f"{what}: {value!r} is not a text")
        return str(value)

    def _read_direct_step(self, name: str, value: object, line: int) -> ScriptStep:
        needed = _PARAMETERS[name]
        if isinstance(value, str) and len(needed) == 1:
            return ScriptStep(name, {needed[0]: str(value)}, line=line)
        given = self._read_mapping(value, line, name, needed)
        missing = [word for word in needed if not isinstance(given.get(word), str)]
        if missing:
            raise self._script.build_error(line, f"{name} needs {' and '.join(missing)}, as text (quote what is not)")
        return ScriptStep(name, {word: str(given[word]) for word in needed}, line=line)

    def _read_raw(self, entry: CommentedMap) -> str | None:
        if "raw" not in entry:
            return None
        if not isinstance(entry["raw"], str):
            raise self._script.build_error(_line_of(entry, "raw"), "raw is a text (quote it)")
        return str(entry["raw"])

    def _read_output(self, entry: CommentedMap) -> JsonValue:
        if entry.get("output") is None:
            return None
        return self._read_json(entry["output"], _line_of(entry, "output"), "output")

    def _read_json(self, value: object, line: int, what: str) -> JsonValue:
        """Convert parsed YAML to JSON. A date becomes its text."""
        try:
            text = json.dumps(value, default=str, ensure_ascii=False, allow_nan=False)
            text.encode()
        except (TypeError, ValueError, RecursionError) as error:
            message = f"{what} cannot be written as JSON: {error}"
            raise self._script.build_error(line, message, "use `raw` for any other text") from error
        plain: JsonValue = json.loads(text)
        return plain

    def _read_mapping(self, value: object, line: int, what: str, allowed: tuple[str, ...]) -> CommentedMap:
        hint = f"allowed: {', '.join(allowed)}"
        if not isinstance(value, CommentedMap):
            raise self._script.build_error(line, f"{what} is a mapping", hint)
        for key in value:
            if key not in allowed:
                raise self._script.build_error(_line_of(value, key), f"{what}: {key!r} is not known here", hint)
        return value
