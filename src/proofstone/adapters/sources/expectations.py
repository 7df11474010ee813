"""Copies of tests whose expectations were changed: an honest test that passed must fail on them.

A value that claims to be equal to everything, or an assertion that was made to accept anything, passes all the same,
and that exposes it. Equality is changed by wrapping the expected value together with a word that nobody can know, so
that nothing honest can be equal to it; other conditions are turned round.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from proofstone.adapters.checks.syntax import LIMIT, language_of
from proofstone.adapters.sources.edits import applied, parsed, python_text, without_bom
from proofstone.adapters.sources.javascript_expectations import javascript_expectations
from proofstone.adapters.sources.python_expectations import python_expectations

_JAVASCRIPT = ("javascript", "typescript", "tsx")


@dataclass(frozen=True)
class Mutated:
    content: bytes
    tests: tuple[str, ...]
    """Those in which an expectation was changed that the test cannot avoid: `test_x`, `Class.test_x`, or the title."""


def mutated(path: str, content: bytes, names: Collection[str] | None, word: str) -> Mutated:
    """`names`: the tests to change, all of them if None. `word`: random letters."""
    language = language_of(path, content)
    unchanged = Mutated(content, ())
    if len(content) > LIMIT:
        return unchanged
    if language == "python":
        return _python(content, names, word) or unchanged
    return (_javascript(content, language, names, word) if language in _JAVASCRIPT else None) or unchanged


def _python(content: bytes, names: Collection[str] | None, word: str) -> Mutated | None:
    source = python_text(content)
    if source is None:
        return None
    edits, tests = python_expectations(source, _wanted(names), word)
    changed = source.encoded(applied(source.data, edits))
    return Mutated(changed, tests) if changed is not None else None


def _javascript(content: bytes, language: str, names: Collection[str] | None, word: str) -> Mutated | None:
    mark, text = without_bom(content)
    root = parsed(text, language)
    if root is None:
        return None
    edits, tests = javascript_expectations(root, names, word, typed=language != "javascript")
    changed = applied(text, edits)
    return Mutated(mark + changed, tests) if parsed(changed, language) else None


def _wanted(names: Collection[str] | None) -> Collection[str] | None:
    """Python names, without parameters."""
    return None if names is None else {name.partition("[")[0].replace("::", ".") for name in names}
