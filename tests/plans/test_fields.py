from __future__ import annotations

from proofstone.plans.fields import dedent_element, parse_criteria, parse_paths, parse_references
from tests.rows import each_row


@each_row(
    ("text", "found"),
    [
        ("src/a.py, src/b.py", ("src/a.py", "src/b.py")),
        ("\n  src/a.py\n  src/b.py\n", ("src/a.py", "src/b.py")),
        (
            "- `src/a.py` (new)\n- [x] src/b.py — the list\n* docs/old/ (MOVED, from docs)",
            ("src/a.py", "src/b.py", "docs/old/"),
        ),
        ("1. a.py\n2) b.py", ("a.py", "b.py")),
        ("a.py (new), b.py # why", ("a.py", "b.py")),
        ("src/app/[locale]/(shop)/page.tsx", ("src/app/[locale]/(shop)/page.tsx",)),
        ("src/{a,b}.{ts,tsx}", ("src/a.ts", "src/a.tsx", "src/b.ts", "src/b.tsx")),
        ("a.ts b.ts src/", ("a.ts", "b.ts", "src/")),
        ("docs/My File.md", ("docs/My File.md",)),
        ("NEW: src/x.ts\nModify src/y.ts:10-20", ("src/x.ts", "src/y.ts")),
        ("<file>a.py</file><file>b.py</file>", ("a.py", "b.py")),
        ("./a.py, a.py", ("a.py",)),
        ("[a](src/a.ts)", ("src/a.ts",)),
        ("Makefile, @types/x.d.ts", ("Makefile", "@types/x.d.ts")),
        ("src/**/*.py, tests/", ("src/**/*.py", "tests/")),
        ("**/*.py, src/*", ("**/*.py", "src/*")),
        ("**", ("**",)),
        ("**src/a.py**", ("src/a.py",)),
        ("src/数え.py、src/b.py", ("src/数え.py", "src/b.py")),
        ("N/A", ()),
        ("None", ()),
        ("", ()),
    ],
)
def test_paths_as_people_list_them(text: str, found: tuple[str, ...]) -> None:
    assert parse_paths(text) == found


@each_row(
    ("text", "found"),
    [
        ("A exists; B works", ("A exists", "B works")),
        ("- one\n- two;three\n\n* four", ("one", "two", "three", "four")),
        ("- one\n  goes on\n- two", ("one goes on", "two")),
        ("first\nsecond", ("first", "second")),
        ('`a; b` is kept; (c; d) too; "e; f" and 「g； h」', ("`a; b` is kept", "(c; d) too", '"e; f" and 「g； h」')),
        ("it's (open; here", ("it's (open", "here")),
        ("a。；b", ("a。", "b")),
        (" \n;;\n-\n.", ()),
    ],
)
def test_criteria_are_split_by_line_and_semicolon(text: str, found: tuple[str, ...]) -> None:
    assert parse_criteria(text) == found


def test_references_come_with_or_without_brackets() -> None:
    assert parse_references("[1, 'Task 2', \"x y\"]") == ("1", "Task 2", "x y")
    assert parse_references(" none ") == parse_references("[]") == parse_references("") == ()


def test_an_element_loses_its_own_indentation_only() -> None:
    assert dedent_element("a\n    b\n      c") == "a\nb\n  c"
    assert dedent_element("\n    b\n      c") == "\nb\n  c"
    assert dedent_element("  a\n  b") == "a\nb"


def test_a_criterion_wrapped_over_very_many_lines_is_one() -> None:
    """By construction: what copied it again for each line would take minutes here."""
    [one] = parse_criteria("- a\n" + "  b c\n" * 100_000)
    assert one == "a" + " b c" * 100_000
