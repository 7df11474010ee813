"""Three texts of a source: what is comment, what is string, and that columns and lines agree."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proofstone.check.rules.scan_rule import ScanLine
from proofstone.check.variants.views import plain_lines, split_views
from tests.rows import each_row


def read(path: str, source: str) -> tuple[ScanLine, ...]:
    found = split_views(path, source.encode())
    assert found is not None
    return found


SOURCES = [
    ("a.py", 'x = "said"  # noted\n'),
    ("a.py", 'x = f"said {shown}"  # noted\n'),
    ("a.py", "x = rb'said'  # noted\n"),
    ("a.js", 'x = "said"; // noted\n'),
    ("a.js", "x = `said ${shown}`; /* noted */\n"),
    ("a.js", "x = /said/; // noted\n"),
    ("a.jsx", "x = <b>said</b>; // noted\n"),
    ("a.ts", "const x: string = 'said'; // noted\n"),
    ("a.tsx", "const x = <b title='said'>said</b>; // noted\n"),
    ("a.go", 'package a\nvar x = "said" // noted\n'),
    ("a.go", "package a\nvar x = `said` // noted\n"),
    ("a.rs", 'fn f() { let x = "said"; } // noted\n'),
    ("a.rs", 'fn f() { let x = r#"said"#; } /* noted */\n'),
    ("A.java", 'class A { String x = "said"; } // noted\n'),
    ("a.rb", "x = 'said' # noted\n"),
    ("a.rb", "x = <<~T\n  said\nT\n# noted\n"),
]


@each_row(("path", "source"), SOURCES)
def test_strings_are_in_the_text_only_and_comments_in_their_own_text_only(path: str, source: str) -> None:
    lines = read(path, source)
    code, text, comment = ("\n".join(getattr(line, name) for line in lines) for name in ("code", "text", "comment"))
    assert "said" not in code
    assert "noted" not in code
    assert "said" in text
    assert "noted" not in text
    assert "noted" in comment
    assert "said" not in comment
    assert "x" in code
    if "shown" in source:
        assert "shown" in code


@each_row(("path", "source"), SOURCES)
def test_the_three_texts_of_a_line_have_its_length(path: str, source: str) -> None:
    for line, raw in zip(read(path, source), source.splitlines(), strict=True):
        assert {len(line.code), len(line.text), len(line.comment)} == {len(raw)}


def test_a_docstring_is_a_string() -> None:
    lines = read("a.py", 'def f():\n    """import pytest\n    os._exit(0)"""\n')
    assert "pytest" not in lines[1].code
    assert "_exit" not in lines[2].code
    assert "_exit" in lines[2].text
    assert [line.number for line in lines] == [1, 2, 3]


def test_code_after_a_lone_carriage_return_is_no_comment() -> None:
    lines = read("a.py", "# a remark\rimport os\n")
    assert lines[1].code == "import os"
    assert lines[1].number == 2


def test_code_after_a_line_separator_is_no_comment_in_javascript() -> None:
    assert read("a.js", "// a remark\u2028process.abort()\n")[1].code == "process.abort()"


def test_a_joining_backslash_is_no_code() -> None:
    assert "\\" not in read("a.py", "x = os.\\\n    _exit\n")[0].code


def test_characters_of_several_bytes_keep_columns() -> None:
    line = read("a.py", 'größe = "ÄÖÜ"  # naïve\n')[0]
    assert line.code == 'größe = "   "         '
    assert line.comment == " " * 15 + "# naïve"


def test_bytes_that_are_no_utf8_are_read() -> None:
    found = split_views("a.py", b'x = "\xff\xfe"  # \xff\nimport os\n')
    assert found is not None
    assert found[1].code == "import os"


@each_row("path", ["a.md", "a.c", "a.json", "a.d.ts", "Makefile"])
def test_other_languages_are_not_read(path: str) -> None:
    assert split_views(path, b"x = 1\n") is None


def test_in_a_plain_file_everything_counts() -> None:
    line = plain_lines(b"# pytest || true\n")[0]
    assert line.code == line.text == "# pytest || true"
    assert not line.comment.strip()


@given(st.sampled_from(["a.py", "a.js", "a.tsx", "a.go", "a.rs", "a.rb"]), st.text(max_size=60))
def test_any_text_gives_as_many_lines_as_it_has(path: str, source: str) -> None:
    content = source.encode("utf-8", "replace")
    found = split_views(path, content)
    assert found is not None
    assert len(found) == len(content.decode().splitlines())
