"""`script:FILE.yaml`: what scripted roles do, for tests, demonstrations and reproductions. `docs/scripts.md` tells it.

    - role: executor
      match: {task: 2, attempt: 1}           # all must hold; text may be a glob; a list means any of them
      usage: {input_tokens: 900, usd: 0.01}  # of every turn
      steps:
        - tool: {read: {path: a.txt}}        # a call of the runtime's, with its permissions; ends the turn
        - write: {path: a.txt, content: a}   # behind the runtime's back; also append, edit, delete, run
        - say: nearly there
        - sleep: 0.5
        - error: {kind: unavailable, times: 1}
        - fail: the compiler is missing      # ends it
      output: {status: success}              # or raw: "text", read as if the role had written it

The first entry that matches is taken; on a repair, one that says `repair` goes before those that do not. What is asked
in the middle of the work (`asked: impact`, `asked: RV-2`; the second time also `RV-2.2`) is answered by entries that
say so and by no other; a role without any such entry is not asked. No entry at all is an error of the script.
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

from proofstone.agents.models import Conversation, FaultKind, Occasion, Told
from proofstone.agents.rules.routes import SERVED
from proofstone.common.models import Usage
from proofstone.common.parsing import MOST_VALUES, is_bounded, yaml_reader
from proofstone.errors import InputError

MATCHES: Final = ("task", "attempt", "focus", "iteration", "round", "step", "run", "dispatch", "repair", "asked")
FAULTS: Final = (
    FaultKind.UNAVAILABLE,
    FaultKind.DENIED,
    FaultKind.REJECTED,
    FaultKind.FILTERED,
    FaultKind.CRASHED,
    FaultKind.TIMEOUT,
)
"""What can be wrong with a backend. How an agent itself ends badly has steps of its own, or shows."""
ONE_REQUEST: Final = Usage(requests=1)
"""What a turn uses if the script says nothing: a call, and nothing that costs."""
_KEYS: Final = ("role", "match", "steps", "output", "raw", "usage")
_PARAMETERS: Final = {
    "write": ("path", "content"),
    "append": ("path", "content"),
    "edit": ("path", "old", "new"),
    "delete": ("path",),
    "run": ("command",),
}
"""What can be done behind the runtime's back, with what each must be given; all of it is text."""
_EDITS: Final = ("write", "append", "edit", "delete")
_STEPS: Final = ("tool", "tools", *_PARAMETERS, "say", "sleep", "fail", "error")
_MOST_BYTES = 8 << 20

Facts = Mapping[str, tuple[str, ...]]
"""What is known of a dispatch: for each word of `match`, every way to say it."""


@dataclass(frozen=True)
class Call:
    """A tool of the runtime's that the role calls, whether it has it or not."""

    name: str
    arguments: JsonValue = field(default_factory=dict)
    """A mapping, unless the script is to get them wrong."""


@dataclass(frozen=True)
class Breakdown:
    """A fault of the backend."""

    kind: FaultKind
    why: str
    times: int | None = None
    """How often, for one dispatch and what is asked again in its place; None: always."""


@dataclass(frozen=True)
class Step:
    """One thing to do."""

    name: str
    """As in the script; `tools` also for one tool."""
    given: Mapping[str, str] = field(default_factory=dict)
    """The parameters of what is done behind the runtime's back; `text` for `say` and `fail`."""
    seconds: float = 0
    """For `sleep`."""
    calls: tuple[Call, ...] = ()
    """For `tools`: all in one turn."""
    breakdown: Breakdown | None = None
    """For `error`."""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Entry:
    role: str
    match: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    output: JsonValue = None
    """What the role answers in the end; None: nothing, or `raw`."""
    raw: str | None = None
    """The answer as it stands, of the schema or not."""
    usage: Usage = ONE_REQUEST
    """Of each turn."""
    line: int = field(default=0, compare=False)

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
        """The first that matches, of those that speak of the repair if there are any."""
        aside = "asked" in facts
        fitting = [entry for entry in self.entries if entry.matches(role, facts) and ("asked" in entry.match) == aside]
        if fitting:
            return next((entry for entry in fitting if "repair" in entry.match), fitting[0])
        asked = ", ".join(f"{word} {values[0]}" for word, values in facts.items() if values)
        there = "; ".join(map(str, self.entries)) or "none"
        raise InputError(
            f"{self.path}: no entry for the role {role} with {asked}",
            hint=f"add one, or widen a `match`; the entries are: {there}",
        )

    def answers(self, role: str, asked: str) -> bool:
        """Whether it speaks of what the role may be asked in the middle of the work: its own (`asked: RV-2`), or, of an
        architect, another's (`focus: understanding`)."""
        word = "focus" if role == "architect" else "asked"
        said = (entry.match.get(word, ()) for entry in self.entries if entry.role == role)
        return any(_any_of((asked, f"{asked}.1"), wanted) for wanted in said)

    def wrong(self, line: int, message: str, hint: str | None = None) -> InputError:
        """The error for something that this script should not say."""
        return InputError(f"{self.path}:{line}: {message}", hint=hint)


def task_facts(id: str, name: str, attempt: int) -> Facts:
    """A task is known by its id, its number (`2` or `02`) and its name."""
    digits = id.rpartition("-")[2]
    numbers = (str(int(digits)), digits) if digits.isdecimal() else ()
    return {"task": (id, *numbers, name), "attempt": (str(attempt),)}


def facts_of(conversation: Conversation) -> Facts:
    """All that is known of a dispatch. What it is not about has no fact: `repair`, before there is one."""
    facts = _occasion_facts(conversation.occasion, conversation.repairs)
    if not (asked := conversation.asked):
        return facts
    times = sum(isinstance(entry, Told) and entry.asked == asked for entry in conversation.entries)
    return {**facts, "asked": (asked, f"{asked}.{times}")}


def _occasion_facts(occasion: Occasion, repairs: int) -> Facts:
    task = task_facts(occasion.task, occasion.task_name, occasion.attempt) if occasion.task else {}
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


def _any_of(known: Sequence[str], wanted: Sequence[str]) -> bool:
    return any(item == pattern or fnmatchcase(item, pattern) for pattern in wanted for item in known)


def read_script(path: Path) -> Script:
    """The script in the file, checked as far as it can be without running it."""
    return _read(path, _text(path))


@lru_cache(maxsize=4)
def _read(path: Path, text: str) -> Script:
    """One file often serves a whole team, and reading YAML takes longer than much of what it is read for."""
    reading = Script(path, ())
    document = _document(reading, text)
    if not isinstance(document, CommentedSeq):
        raise reading.wrong(1, "a script is a list of entries", "begin with `- role: executor`")
    entries = tuple(_Reader(reading).entry(item, _line_of(document, number)) for number, item in enumerate(document))
    return Script(path, entries)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path}: larger than {_MOST_BYTES >> 20} MiB, which no script is")
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise InputError(
            f"{path}: the script cannot be read: {error.strerror}", hint="name a YAML file: script:FILE.yaml"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8") from error


def _document(reading: Script, text: str) -> object:
    try:
        document: object = yaml_reader("rt").load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise reading.wrong(mark.line + 1 if mark else 1, f"this is not YAML: {error.problem}") from error
    except (YAMLError, RecursionError, ValueError) as error:
        raise InputError(f"{reading.path}: this is not YAML that can be read: {error}") from error
    if not is_bounded(document):
        hint = "write out what is meant"
        raise InputError(f"{reading.path}: its references stand for more than {MOST_VALUES:,} values", hint=hint)
    return document


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
        if not isinstance(role, str) or role not in SERVED:
            raise self._script.wrong(line, f"role: {role!r} is not a role", f"one of: {', '.join(SERVED)}")
        if "output" in entry and "raw" in entry:
            raise self._script.wrong(_line_of(entry, "raw"), "an entry has `output` or `raw`, not both")
        steps = self._steps(entry)
        for step in steps:
            if role != "executor" and step.name in _EDITS:
                raise self._script.wrong(
                    step.line,
                    f"{step.name}: the role {role} changes no files",
                    f"`- tool: {{{step.name}: …}}` lets it try",
                )
        return Entry(
            role=str(role),
            match=self._match(entry),
            steps=steps,
            output=self._output(entry),
            raw=self._raw(entry),
            usage=self._usage(entry),
            line=line,
        )

    def _match(self, entry: CommentedMap) -> dict[str, tuple[str, ...]]:
        if entry.get("match") is None:
            return {}
        match = self._mapping(entry["match"], _line_of(entry, "match"), "match", MATCHES)
        return {str(word): self._values(value, _line_of(match, word), word) for word, value in match.items()}

    def _values(self, value: object, line: int, word: str) -> tuple[str, ...]:
        listed = list(value) if isinstance(value, CommentedSeq) else [value]
        known = [item for item in listed if isinstance(item, (str, int)) and not isinstance(item, bool)]
        if not listed or known != listed:
            raise self._script.wrong(line, f"match.{word} is a text, a number, or a list of them")
        return tuple(str(item) if isinstance(item, str) else str(int(item)) for item in known)

    def _usage(self, entry: CommentedMap) -> Usage:
        if entry.get("usage") is None:
            return ONE_REQUEST
        said = self._mapping(
            entry["usage"], _line_of(entry, "usage"), "usage", ("input_tokens", "output_tokens", "usd")
        )
        tokens = {
            str(word): self._whole(value, _line_of(said, word), f"usage.{word}")
            for word, value in said.items()
            if word != "usd"
        }
        usd = said.get("usd", 0)  # null: nobody knows
        price = None if usd is None else self._number(usd, _line_of(said, "usd"), "usage.usd", "an amount of money")
        return Usage(requests=1, **tokens, usd=price)

    def _steps(self, entry: CommentedMap) -> tuple[Step, ...]:
        steps = entry.get("steps")
        if steps is None:
            return ()
        if not isinstance(steps, CommentedSeq):
            raise self._script.wrong(_line_of(entry, "steps"), "steps is a list", "- write: {path: a.txt, content: a}")
        return tuple(self._step(item, _line_of(steps, number)) for number, item in enumerate(steps))

    def _step(self, item: object, line: int) -> Step:
        step = self._mapping(item, line, "a step", _STEPS)
        if len(step) != 1:
            raise self._script.wrong(line, "a step does one thing", f"one of: {', '.join(_STEPS)}")
        name, value = next((str(name), value) for name, value in step.items())
        match name:
            case "tool":
                return Step("tools", calls=(self._call(value, line),), line=line)
            case "tools":
                return Step("tools", calls=self._calls(value, line), line=line)
            case "sleep":
                return Step(name, seconds=self._number(value, line, name, "a number of seconds"), line=line)
            case "error":
                return Step(name, breakdown=self._breakdown(value, line), line=line)
            case "say" | "fail":
                return Step(name, {"text": self._text(value, line, name)}, line=line)
        return self.direct(name, value, line)

    def _calls(self, value: object, line: int) -> tuple[Call, ...]:
        if not isinstance(value, CommentedSeq) or not value:
            raise self._script.wrong(line, "tools is a list of calls", "- tools: [{read: {path: a}}, {list: {}}]")
        return tuple(self._call(item, _line_of(value, number)) for number, item in enumerate(value))

    def _call(self, value: object, line: int) -> Call:
        """Any name and any arguments: what is refused must be possible to try."""
        if isinstance(value, str):
            return Call(str(value))
        if not isinstance(value, CommentedMap) or len(value) != 1:
            raise self._script.wrong(
                line, "tool names one tool, with its arguments", "- tool: {read: {path: a}}, or - tools: [{…}, {…}]"
            )
        name, arguments = next(iter(value.items()))
        return Call(str(name), {} if arguments is None else self._json(arguments, line, str(name)))

    def _number(self, value: object, line: int, what: str, wanted: str) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
            raise self._script.wrong(line, f"{what}: {value!r} is not {wanted}")
        return float(value)

    def _whole(self, value: object, line: int, what: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self._script.wrong(line, f"{what}: {value!r} is not a whole number")
        return int(value)

    def _breakdown(self, value: object, line: int) -> Breakdown:
        short = CommentedMap(kind=value) if isinstance(value, str) else value
        said = self._mapping(short, line, "error", ("kind", "why", "times"))
        kind, times = said.get("kind"), said.get("times")
        if kind not in FAULTS:
            raise self._script.wrong(line, f"error: {kind!r} is not a kind", f"one of: {', '.join(FAULTS)}")
        why = self._text(said.get("why", f"{kind}, says the script"), line, "error: why")
        return Breakdown(FaultKind(kind), why, None if times is None else self._whole(times, line, "error: times"))

    def _text(self, value: object, line: int, what: str) -> str:
        if not isinstance(value, str):
            raise self._script.wrong(line, f"{what}: {value!r} is not a text")
        return str(value)

    def direct(self, name: str, value: object, line: int) -> Step:
        needed = _PARAMETERS[name]
        if isinstance(value, str) and len(needed) == 1:
            return Step(name, {needed[0]: str(value)}, line=line)
        given = self._mapping(value, line, name, needed)
        missing = [word for word in needed if not isinstance(given.get(word), str)]
        if missing:
            raise self._script.wrong(line, f"{name} needs {' and '.join(missing)}, as text (quote what is not)")
        return Step(name, {word: str(given[word]) for word in needed}, line=line)

    def _raw(self, entry: CommentedMap) -> str | None:
        if "raw" not in entry:
            return None
        if not isinstance(entry["raw"], str):
            raise self._script.wrong(_line_of(entry, "raw"), "raw is a text (quote it)")
        return str(entry["raw"])

    def _output(self, entry: CommentedMap) -> JsonValue:
        if entry.get("output") is None:
            return None
        return self._json(entry["output"], _line_of(entry, "output"), "output")

    def _json(self, value: object, line: int, what: str) -> JsonValue:
        """What YAML gave as plain JSON; a date becomes its text."""
        try:
            text = json.dumps(value, default=str, ensure_ascii=False, allow_nan=False)
            text.encode()
        except (TypeError, ValueError, RecursionError) as error:
            said = f"{what} cannot be said in JSON: {error}"
            raise self._script.wrong(line, said, "`raw` can say anything") from error
        plain: JsonValue = json.loads(text)
        return plain

    def _mapping(self, value: object, line: int, what: str, allowed: tuple[str, ...]) -> CommentedMap:
        hint = f"allowed: {', '.join(allowed)}"
        if not isinstance(value, CommentedMap):
            raise self._script.wrong(line, f"{what} is a mapping", hint)
        for key in value:
            if key not in allowed:
                raise self._script.wrong(_line_of(value, key), f"{what}: {key!r} is not known here", hint)
        return value
