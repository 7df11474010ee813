from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from proofstone.common.globs import find_undeclared, matches
from tests.rows import each_row


@each_row(
    ("pattern", "path", "covered"),
    [
        ("src/a.py", "src/a.py", True),
        ("src/a.py", "src/a.pyc", False),
        ("./src/a.py", "src/a.py", True),
        ("src", "src/deep/a.py", True),
        ("src/", "src/deep/a.py", True),
        ("src", "source/a.py", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("**/test_*.py", "test_a.py", True),
        ("**/test_*.py", "x/test_a.py", True),
        ("**", "anything/at/all", True),
        (".", "anything/at/all", True),
        ("?.py", "a.py", True),
        ("?.py", "ab.py", False),
        ("[ab].py", "a.py", False),
        ("[ab].py", "[ab].py", True),
        ("app/[user-id]/page.tsx", "app/[user-id]/page.tsx", True),
        ("a+b (1).txt", "a+b (1).txt", True),
        ("*.py", "a\nb.py", True),
        ("app/[id]/page.tsx", "app/[id]/page.tsx", True),
        ("app/[id]", "app/[id]/page.tsx", True),
        ("app/[id]/page.tsx", "app/i/page.tsx", False),
        ("app/[id]/page.tsx", "app/x/page.tsx", False),
    ],
)
def test_patterns(pattern: str, path: str, covered: bool) -> None:
    assert matches(pattern, path) is covered


def test_undeclared_paths_are_those_that_nothing_covers() -> None:
    assert find_undeclared(["src/a.py", "README.md", "setup.cfg"], ["src", "*.md"]) == ("setup.cfg",)


def by_regular_expression(pattern: str, path: str) -> bool:
    """The meaning, said in the way that can take for ever."""
    pattern = pattern.removeprefix("./").rstrip("/")
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.findall(r"\*\*/|\*\*|\*|\?|[^*?]", pattern)
    told = ".*" if pattern in ("", ".") else "".join(words.get(piece, re.escape(piece)) for piece in pieces)
    return bool(re.fullmatch(told + "(?:/.*)?", path, re.DOTALL))


@given(
    pattern=st.text(alphabet="ab*?/.[", max_size=10),
    path=st.lists(st.text(alphabet="ab.[", min_size=1, max_size=4), min_size=1, max_size=4).map("/".join),
)
@settings(max_examples=1000, deadline=None)
def test_patterns_mean_what_they_say(pattern: str, path: str) -> None:
    assert matches(pattern, path) is by_regular_expression(pattern, path)


def test_no_pattern_takes_for_ever() -> None:
    assert not matches("*a" * 250, "a" * 249 + "/" + "a" * 3000)
    assert not matches("**/" * 160 + "b", "a/" * 1500 + "a")
