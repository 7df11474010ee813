"""Syntax: real errors are found in every language of the table, honest files are left alone."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from proofstone.sources.syntax import (
    LANGUAGE_BY_SUFFIX,
    MAX_SOURCE_BYTES,
    detect_language,
    find_new_syntax_errors,
    find_syntax_errors,
)
from tests.rows import each_row

SAMPLES: dict[str, tuple[str, str]] = {
    "a.py": ("def f():\n    return 1\n", "def f(:\n    return 1\n"),
    "a.js": ("const a = () => 1;\n", "const a = ( => 1;\n"),
    "a.jsx": ("const a = <b>{c}</b>;\n", "const a = <b>{c</b>;\n"),
    "a.ts": ("const a: number = 1;\n", "const a: = 1;\n"),
    "a.tsx": ("const a = <B c={1} />;\n", "const a = <B c={1 />;\n"),
    "a.go": ("package a\n\nfunc f() {}\n", "package a\n\nfunc f( {}\n"),
    "a.rs": ("fn f() -> u8 { 1 }\n", "fn f( -> u8 { 1 }\n"),
    "a.java": ("class A { void f() {} }\n", "class A { void f( {} }\n"),
    "a.rb": ("def f\n  1\nend\n", "def f(\n  1\n"),
    "a.php": ("<?php function f() { return 1; }\n", "<?php function f( { return 1; }\n"),
    "a.lua": ("local a = 1\n", "local = = 1\n"),
    "a.yaml": ("a:\n  - b\n", "a: [b\nc: d\n"),
    "a.json": ('{"a": 1}', '{"a": }'),
    "a.toml": ("[a]\nb = 1\n", "[a\nb = 1\n"),
}


def test_every_language_of_the_table_has_a_sample() -> None:
    assert {detect_language(path, b"") for path in SAMPLES} == set(LANGUAGE_BY_SUFFIX.values())


@each_row("path", SAMPLES)
def test_a_good_file_is_good_and_a_broken_one_is_broken(path: str) -> None:
    good, broken = (text.encode() for text in SAMPLES[path])
    assert find_new_syntax_errors(path, None, good) == ()
    found = find_new_syntax_errors(path, good, broken)
    assert found
    assert all(item.path == path and item.line and item.message for item in found)


@each_row("path", SAMPLES)
def test_an_error_that_was_there_before_is_not_new(path: str) -> None:
    broken = SAMPLES[path][1].encode()
    assert find_new_syntax_errors(path, broken, broken + b"\n") == ()


UNKNOWN: dict[str, bytes] = {
    "a.unknown": b"((((",
    "LICENSE": b"((((",
    "a.c": b"MACRO(((",
    "a.d.ts": b"export {",
    "big.py": b"(" * (MAX_SOURCE_BYTES + 1),
    "binary.py": b"\0\1",
}


@each_row("path", UNKNOWN)
def test_what_cannot_be_judged_is_none(path: str) -> None:
    assert find_syntax_errors(path, UNKNOWN[path]) is None


HONEST: dict[str, tuple[str, bytes]] = {
    "json with comments": ("tsconfig.json", b'{\n  // why\n  "a": [1,],\n}'),
    "one json document a line": ("log.json", b'{"a": 1}\n{"a": 2}\n'),
    "an empty json file": ("a.json", b""),
    "a byte order mark": ("a.json", b'\xef\xbb\xbf{"a": 1}'),
    "a new template": ("t/page.py", b"class {{ name }}(Base):\n    pass\n"),
    "a template of yaml": ("chart.yaml", b"a: {{ .Values.a }}\n{{- if x }}\nb: 1\n{{- end }}\n"),
    "an invalid escape": ("a.py", b"a = '\\d'\n"),
    "defaults of type parameters": ("a.py", b"def f[T = int](a: T) -> T: return a\n"),
    "a template string": ("a.py", b"a = 1\nb = t'{a}'\n"),
    "exceptions without parentheses": ("a.py", b"try:\n    f()\nexcept A, B:\n    g()\n"),
    "a nested f-string": ("a.py", b"x = f'{a['b']}'\n"),
}


@each_row(("path", "content"), HONEST.values())
def test_honest_files_do_not_alarm(path: str, content: bytes) -> None:
    assert find_new_syntax_errors(path, None, content) == ()


def test_wrong_indentation_is_an_error_though_no_grammar_says_so() -> None:
    found = find_syntax_errors("a.py", b"def f():\nreturn 1\n")
    assert found is not None
    assert [item.line for item in found] == [2]


def test_an_interpreter_line_names_the_language() -> None:
    assert detect_language("bin/tool", b"#!/usr/bin/env python3\n") == "python"
    assert detect_language("bin/tool", b"#!/usr/bin/env -S node --x\n") == "javascript"
    assert detect_language("bin/tool", b"#!/usr/bin/perl\n") is None


def test_the_standard_library_does_not_alarm() -> None:
    library = Path(sysconfig.get_path("stdlib"))
    files = sorted(library.glob("*.py")) + sorted(library.glob("asyncio/*.py"))
    assert len(files) > 100
    assert [path.name for path in files[::5] if find_syntax_errors(path.name, path.read_bytes())] == []


@given(st.sampled_from(sorted(SAMPLES)), st.binary(max_size=200))
def test_no_bytes_raise(path: str, content: bytes) -> None:
    find_syntax_errors(path, content)
