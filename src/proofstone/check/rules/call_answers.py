"""Compare the answers of calls in the tests with those of the same calls outside of any test.

While the tests run, calls of the changed functions are recorded. They are made again in two plain processes: one in the
same order, and one *disguised*: in the opposite order, each several times, in another folder, without the variables
that name a runner or CI, and with those of a person's session. An answer that differs is evidence only if nothing
honest explains it:

- Calls with the same arguments had the same answer in the tests.
- If both plain processes disagree with the tests, they agree with each other, and the same call below the runner, in a
  test that sets up nothing, has the answer of the tests. What a fixture, a patch, a file or the time decides differs
  there too.
- If only the disguised process disagrees, the call has arguments, because a function without any is there to give
  different answers, and the answer is not a file that is missing in the other folder.
- The base's own function does not differ in the same way.
"""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.check.observation import ObservedCall, RepeatedAnswer
from proofstone.check.rules.outcome import EvidenceLayer
from proofstone.check.rules.special_casing import TestExample, flatten, is_trivial, read_literal
from proofstone.common.models import Finding, Severity

RULE: Final = "answers-differ-outside-tests"
_MISSING_FILE: Final = frozenset(
    ("FileNotFoundError", "NotADirectoryError", "PermissionError", "ENOENT", "ENOTDIR", "EACCES")
)
_MAX_TEXT: Final = 120

Answers = Mapping[int, frozenset[str]]
"""The answers of each call, by its position."""


@dataclass(frozen=True)
class AnswerDifference:
    """A call whose answer outside of the tests is another."""

    number: int
    call: ObservedCall
    outside: str
    needs_runner: bool
    """Whether both plain processes disagree with the tests, so that the runner must explain it. Otherwise only the
    disguised one does."""


def group_answers(answers: Sequence[RepeatedAnswer]) -> Answers:
    """Return the different answers of each call."""
    grouped: dict[int, set[str]] = defaultdict(set)
    for answer in answers:
        grouped[answer.number].add(answer.answer)
    return {number: frozenset(texts) for number, texts in grouped.items()}


def find_differences(calls: Sequence[ObservedCall], plain: Answers, disguised: Answers) -> list[AnswerDifference]:
    """Return the calls whose answers outside agree with each other and not with the tests."""
    recorded: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for call in calls:
        recorded[call.module, call.name, call.arguments].add(call.answer)
    inconstant = {(module, name) for (module, name, _), answers in recorded.items() if len(answers) > 1}
    found = []
    for number, call in enumerate(calls):
        first, second = plain.get(number, frozenset()), disguised.get(number, frozenset())
        if (call.module, call.name) in inconstant or len(first) != 1 or not second:
            continue
        others = sorted(second - {call.answer})
        if call.answer not in first:
            if first == second:
                found.append(AnswerDifference(number, call, others[0], needs_runner=True))
        elif others and json.loads(call.arguments) and not {_error(other) for other in others} & _MISSING_FILE:
            found.append(AnswerDifference(number, call, others[0], needs_runner=False))
    return found


def confirm(differences: Sequence[AnswerDifference], control: Answers) -> list[AnswerDifference]:
    """Return the differences that the runner alone explains. `control` are the answers below the runner."""
    return [
        difference
        for difference in differences
        if not difference.needs_runner or control.get(difference.number) == frozenset((difference.call.answer,))
    ]


def drop_honest(
    differences: Sequence[AnswerDifference], plain: Answers, disguised: Answers, control: Answers
) -> list[AnswerDifference]:
    """Return the differences that the base does not show as well. All answers are those of the base's own function."""
    return [
        difference
        for difference in differences
        if not _differs_on_base(
            difference, *(answers.get(difference.number, frozenset()) for answers in (plain, disguised, control))
        )
    ]


def _differs_on_base(
    difference: AnswerDifference, plain: frozenset[str], disguised: frozenset[str], control: frozenset[str]
) -> bool:
    if difference.needs_runner:
        return bool(plain) and bool(control) and plain != control
    return bool(plain) and bool(disguised) and plain != disguised


def list_examples(calls: Sequence[ObservedCall]) -> list[TestExample]:
    """Return the recorded calls that pass several values, where arguments and answers are literals: the examples that
    special-cased code would answer."""
    examples = []
    for call in calls:
        match json.loads(call.answer):
            case ["value", value]:
                expected = read_value(value)
            case _:
                continue
        names = [name for group in call.parameters for name in group]
        shown = [
            read_value(value)
            for name, value in zip(names, json.loads(call.arguments), strict=True)
            if name not in ("self", "cls") and value not in (["tuple", []], ["dict", []])
        ]
        if expected is None or is_trivial(expected[0]) or any(value is None for value in shown):
            continue
        inputs = tuple(value[0] for value in shown if value)
        if len(list(flatten(inputs))) > 1:
            examples.append(TestExample(inputs, expected[0], call.path, 0))
    return examples


def read_value(value: object) -> tuple[object] | None:
    """Return a value of the probes as a literal, in a tuple of its own; None if it is none."""
    try:
        return read_literal(ast.parse(_show(value), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def build_findings(differences: Sequence[AnswerDifference], runner: str, check: str) -> list[Finding]:
    """Return one finding for each function, about its first call."""
    first: dict[tuple[str, str], AnswerDifference] = {}
    for difference in differences:
        first.setdefault((difference.call.path, difference.call.name), difference)
    return [_build_finding(difference, runner, check) for difference in first.values()]


def _build_finding(difference: AnswerDifference, runner: str, check: str) -> Finding:
    call = difference.call
    where = "outside" if difference.needs_runner else "in another folder, order or environment"
    return Finding(
        layer=EvidenceLayer.SENSITIVITY,
        rule=RULE,
        severity=Severity.MINOR,
        path=call.path,
        detail=f"{describe_call(call)} {describe_answer(call.answer)} under {runner} and "
        f"{_without_verb(call.answer, difference.outside)} {where}",
        fix="let the answer depend on the arguments alone, or on what the function documents",
        check=check,
    )


def _without_verb(recorded: str, outside: str) -> str:
    """Return the second answer, without the verb if it is the same as that of the first."""
    is_same_kind = (_error(recorded) is None) == (_error(outside) is None)
    text = describe_answer(outside)
    return text.partition(" ")[2] if is_same_kind else text


def describe_call(call: ObservedCall) -> str:
    """Return the call as a person would write it."""
    names = [name for group in call.parameters for name in group]
    values = [
        _show(value)
        for name, value in zip(names, json.loads(call.arguments), strict=True)
        if name not in ("self", "cls") and value not in (["tuple", []], ["dict", []])
    ]
    module = call.module.rpartition(".")[2]
    return _cut(f"{module}.{call.name}({', '.join(values)})")


def describe_answer(answer: str) -> str:
    """Return an answer with its verb: `answers 3500`, `raises ValueError`."""
    error = _error(answer)
    if error is not None:
        return f"raises {error}"
    match json.loads(answer):
        case [_, value]:
            return f"answers {_cut(_show(value))}"
        case _:
            return "answers something unreadable"


def _error(answer: str) -> str | None:
    match json.loads(answer):
        case ["error", str(name)]:
            return _cut(name)
        case _:
            return None


def _cut(text: str) -> str:
    """Return the text bounded, with half characters written out."""
    whole = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return whole if len(whole) <= _MAX_TEXT else f"{whole[: _MAX_TEXT - 1]}…"


_BRACKETS: Final = {"list": "[]", "tuple": "()", "set": "{}", "frozenset": "{}"}


def _show(value: object) -> str:
    """Return a value of the probes as Python would write it."""
    match value:
        case ["int" | "float", str(text)] | ["text", _, str(text)]:
            return text
        case ["bytes", str(text)]:
            return f"bytes.fromhex({text!r})"
        case ["ref", _, str(name)]:
            return name
        case ["enum", _, str(name), str(member)]:
            return f"{name}.{member}"
        case ["dict", list(pairs)]:
            return "{" + ", ".join(_show_pair(pair) for pair in pairs) + "}"
        case ["object", *parts] if len(parts) == 5 and isinstance(parts[4], list):
            inner = [] if parts[3] is None else [_show(parts[3])]
            inner += [f"{pair[0]}={_show(pair[1])}" for pair in parts[4] if isinstance(pair, list) and len(pair) == 2]
            return f"{parts[1]}({', '.join(inner)})"
        case [str(kind), list(items)] if kind in _BRACKETS:
            brackets = _BRACKETS[kind]
            return brackets[0] + ", ".join(map(_show, items)) + brackets[1]
        case _:
            return repr(value)


def _show_pair(pair: object) -> str:
    if isinstance(pair, list) and len(pair) == 2:
        return f"{_show(pair[0])}: {_show(pair[1])}"
    return "?"
