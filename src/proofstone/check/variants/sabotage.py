"""A version of a changed file in which nothing that the change touched works any more.

A test that depends on the change must fail on it. The rules:
- a function with a changed line raises as soon as it runs; so does one that lost a line;
- comments, docstrings, types and lists of exports are no change;
- an import belongs to the functions that use its name, if all of them are sabotaged;
- any other change outside of functions makes loading the file raise, where the language has such a thing;
- what can be neither is said: the result is then not complete, and a test that still passes proves nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from proofstone.sources.grammar_outline import LANGUAGES, grammar_outline
from proofstone.sources.outline import Function, Line, Outline, python_outline
from proofstone.sources.syntax import LIMIT, language_of
from proofstone.sources.text import applied, parsed, python_text, without_bom

_MANY_LINES = 4000
_NOTHING = Outline(b"", (), (), ())


@dataclass(frozen=True)
class Sabotage:
    content: bytes
    complete: bool
    """Whether everything that changed was sabotaged: only then does a test that still passes not depend on it."""
    loads: bool = True
    """False when loading the file raises: then every test that imports it fails, whatever it tests."""


def sabotaged(path: str, old: bytes | None, new: bytes) -> Sabotage | None:
    """None when the language is not supported, the file cannot be parsed, or nothing that runs has changed."""
    language = language_of(path, new)
    if language is None or path.endswith(".pyi") or len(new) > LIMIT:
        return None
    outlined = _outlined(new, language)
    if outlined is None:
        return None
    after, finish = outlined
    before = _outlined(old, language) if old is not None else (_NOTHING, finish)
    damage = _damage(before[0] if before else Outline(old or b"", (), (), ()), after)
    edits = [edit for function in sorted(damage.functions, key=lambda one: one.start) for edit in function.edits]
    if damage.load:
        edits += after.load
    if not edits:
        return None
    content = finish(applied(after.text, edits))
    complete = damage.complete and (not damage.load or bool(after.load)) and before is not None
    return Sabotage(content, complete, loads=not (damage.load and after.load)) if content is not None else None


def _outlined(content: bytes, language: str) -> tuple[Outline, Callable[[bytes], bytes | None]] | None:
    """The outline, and what turns its changed text into a file again (None if that is no longer a program)."""
    if language == "python":
        source = python_text(content)
        return (python_outline(source), source.encoded) if source else None
    if language not in LANGUAGES:
        return None
    mark, text = without_bom(content)
    outline = grammar_outline(text, language)
    return (outline, lambda data: mark + data if parsed(data, language) else None) if outline else None


@dataclass
class _Damage:
    """What is to be sabotaged."""

    functions: set[Function]
    load: bool = False
    complete: bool = True


def _damage(before: Outline, after: Outline) -> _Damage:
    damage = _Damage(set())
    added, lost = _difference(before.lines, after.lines)
    for line in added:
        _touch(damage, after.owner(line.start, line.end))
    for item in lost:
        _touch_what_is_left(damage, before, after, item)
    damage.complete &= all(function.edits for function in damage.functions)
    damage.load |= not all(_covered(after, name, damage) for _, name in after.imports - before.imports)
    names = {function.name[-1] for function in damage.functions}
    damage.load |= not after.exports - before.exports <= names
    return damage


def _touch(damage: _Damage, owner: Function | None) -> None:
    if owner is None:
        damage.load = True
    else:
        damage.functions.add(owner)


def _touch_what_is_left(damage: _Damage, before: Outline, after: Outline, lost: _Lost) -> None:
    """The function that lost a line. If there is no such function any more, a renamed one stands for it."""
    owner = before.owner(lost.line.start, lost.line.end)
    if owner is None:
        damage.load = True
    elif owner.named:
        left = [function for function in after.functions if function.name == owner.name]
        known = {function.name for function in before.functions}
        damage.functions.update(left)
        damage.complete &= bool(left) or any(function.name not in known for function in after.functions)
    elif not any(item and not item.named for item in (after.owner(new.start, new.end) for new in lost.instead)):
        _touch(damage, after.around_end(lost.previous) if lost.previous else None)


def _covered(after: Outline, name: str, damage: _Damage) -> bool:
    """Whether an import is there for sabotaged functions only."""
    places = after.uses.get(name, ())
    running = [at for at in places if not after.is_silent(at)]
    return bool(places) and all(
        any(function.start <= at < function.end for function in damage.functions) for at in running
    )


@dataclass(frozen=True)
class _Lost:
    line: Line
    previous: Line | None = None
    """What now stands before it."""
    instead: Sequence[Line] = ()
    """What now stands in its place."""


def _difference(before: Sequence[Line], after: Sequence[Line]) -> tuple[list[Line], list[_Lost]]:
    """The lines that were added, and those that were lost."""
    old, new = [line.text for line in before], [line.text for line in after]
    if len(old) + len(new) > _MANY_LINES:
        # Alignment would take hours on generated files.
        return [after[at] for at in _not_among(new, old)], [_Lost(before[at]) for at in _not_among(old, new)]
    added: list[Line] = []
    lost: list[_Lost] = []
    for tag, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            instead = after[start:end]
            added += instead
            lost += (_Lost(line, after[start - 1] if start else None, instead) for line in before[first:last])
    return added, lost


def _not_among(lines: Sequence[bytes], others: Sequence[bytes]) -> Iterator[int]:
    left = Counter(others)
    for at, line in enumerate(lines):
        left[line] -= 1
        if left[line] < 0:
            yield at
