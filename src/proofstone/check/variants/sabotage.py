"""Sabotage a changed file, so that nothing that the change touched works any more.

A test that depends on the change must fail on the sabotaged file. The rules:
- A function with a changed line, or that lost a line, raises as soon as it runs.
- Comments, docstrings, types and lists of exports do not count as changes.
- An import belongs to the functions that use its name, if all of them are sabotaged.
- Any other change outside of functions makes loading the file raise, if the language allows that.
- If neither is possible, the result is marked as incomplete, and a test that still passes proves nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from proofstone.sources.grammar_outline import OUTLINE_LANGUAGES, outline_by_grammar
from proofstone.sources.outline import CodeLine, FunctionOutline, SourceOutline, outline_python
from proofstone.sources.syntax import MAX_SOURCE_BYTES, detect_language
from proofstone.sources.text import apply_edits, parse_python_text, parse_valid, split_bom

_MANY_LINES = 4000
_EMPTY_OUTLINE = SourceOutline(b"", (), (), ())


@dataclass(frozen=True)
class Sabotage:
    """A sabotaged file."""

    content: bytes
    complete: bool
    """Whether everything that changed was sabotaged. Only then does a passing test not depend on the change."""
    loads: bool = True
    """False if loading the file raises: then every test that imports it fails, whatever it tests."""


def sabotage_file(path: str, old: bytes | None, new: bytes) -> Sabotage | None:
    """Sabotage a file; return None if the language is not supported, the file cannot be parsed, or no executable code
    changed."""
    language = detect_language(path, new)
    if language is None or path.endswith(".pyi") or len(new) > MAX_SOURCE_BYTES:
        return None
    outline_result = _outline(new, language)
    if outline_result is None:
        return None
    after, finish = outline_result
    before = _outline(old, language) if old is not None else (_EMPTY_OUTLINE, finish)
    damage = _find_damage(before[0] if before else SourceOutline(old or b"", (), (), ()), after)
    edits = [
        edit for function in sorted(damage.functions, key=lambda function: function.start) for edit in function.edits
    ]
    if damage.load:
        edits += after.load_edits
    if not edits:
        return None
    content = finish(apply_edits(after.text, edits))
    complete = damage.complete and (not damage.load or bool(after.load_edits)) and before is not None
    return Sabotage(content, complete, loads=not (damage.load and after.load_edits)) if content is not None else None


def _outline(content: bytes, language: str) -> tuple[SourceOutline, Callable[[bytes], bytes | None]] | None:
    """Return the outline, and a function that turns its edited text into a file again, or into None if that no longer
    parses."""
    if language == "python":
        source = parse_python_text(content)
        return (outline_python(source), source.encode_edited) if source else None
    if language not in OUTLINE_LANGUAGES:
        return None
    mark, text = split_bom(content)
    outline = outline_by_grammar(text, language)
    return (outline, lambda data: mark + data if parse_valid(data, language) else None) if outline else None


@dataclass
class _Damage:
    """The functions to sabotage, and whether loading must fail."""

    functions: set[FunctionOutline]
    load: bool = False
    complete: bool = True


def _find_damage(before: SourceOutline, after: SourceOutline) -> _Damage:
    damage = _Damage(set())
    added, lost = _diff_lines(before.lines, after.lines)
    for line in added:
        _damage_owner(damage, after.find_owner(line.start, line.end))
    for lost_line in lost:
        _damage_remainder(damage, before, after, lost_line)
    damage.complete &= all(function.edits for function in damage.functions)
    damage.load |= not all(_is_import_covered(after, name, damage) for _, name in after.imports - before.imports)
    names = {function.name[-1] for function in damage.functions}
    damage.load |= not after.exports - before.exports <= names
    return damage


def _damage_owner(damage: _Damage, owner: FunctionOutline | None) -> None:
    if owner is None:
        damage.load = True
    else:
        damage.functions.add(owner)


def _damage_remainder(damage: _Damage, before: SourceOutline, after: SourceOutline, lost: _LineLoss) -> None:
    """Sabotage the function that lost a line. If that function is gone, a renamed one may have replaced it."""
    owner = before.find_owner(lost.line.start, lost.line.end)
    if owner is None:
        damage.load = True
    elif owner.has_name:
        remaining = [function for function in after.functions if function.name == owner.name]
        old_names = {function.name for function in before.functions}
        damage.functions.update(remaining)
        damage.complete &= bool(remaining) or any(function.name not in old_names for function in after.functions)
    elif not any(
        owner_now and not owner_now.has_name
        for owner_now in (after.find_owner(new.start, new.end) for new in lost.instead)
    ):
        _damage_owner(damage, after.find_owner_after(lost.previous) if lost.previous else None)


def _is_import_covered(after: SourceOutline, name: str, damage: _Damage) -> bool:
    """Return whether only sabotaged functions use an import."""
    uses = after.uses.get(name, ())
    executed = [offset for offset in uses if not after.is_silent(offset)]
    return bool(uses) and all(
        any(function.start <= offset < function.end for function in damage.functions) for offset in executed
    )


@dataclass(frozen=True)
class _LineLoss:
    """A line that the change removed."""

    line: CodeLine
    previous: CodeLine | None = None
    """The line that is now before its position."""
    instead: Sequence[CodeLine] = ()
    """The lines that are now in its place."""


def _diff_lines(before: Sequence[CodeLine], after: Sequence[CodeLine]) -> tuple[list[CodeLine], list[_LineLoss]]:
    """Return the added and the lost lines."""
    old, new = [line.text for line in before], [line.text for line in after]
    if len(old) + len(new) > _MANY_LINES:
        # Aligning generated files would take hours.
        return [after[index] for index in _find_surplus(new, old)], [
            _LineLoss(before[index]) for index in _find_surplus(old, new)
        ]
    added: list[CodeLine] = []
    lost: list[_LineLoss] = []
    for tag, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            instead = after[start:end]
            added += instead
            lost += (_LineLoss(line, after[start - 1] if start else None, instead) for line in before[first:last])
    return added, lost


def _find_surplus(lines: Sequence[bytes], others: Sequence[bytes]) -> Iterator[int]:
    remaining = Counter(others)
    for index, line in enumerate(lines):
        remaining[line] -= 1
        if remaining[line] < 0:
            yield index
