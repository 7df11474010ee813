"""Outlines, and where names are defined, in the languages that people write."""

from __future__ import annotations

import pytest

from tests.agents.tools.desk import Desk

OUTLINES = [
    ("a.py", "@d\nclass A(B):\n    async def m(self):\n        x = 1\n\nX = 1\nX.y = 2\n", ["2-4 A", "3-4 A.m", "6 X"]),
    ("a.ts", "export class A {\n  m(): any {\n    return 1\n  }\n}\nconst f = () => 1\n", ["1-5 A", "2-4 A.m", "6 f"]),
    ("a.d.ts", "export interface I { q(): void }\n", ["1 interface I", "1 I.q"]),
    ("a.tsx", "export function P() {\n  return <p/>\n}\n", ["1-3 function P"]),
    ("a.go", "package a\n\ntype S struct{}\n\nfunc (s *S) M() {\n}\n", ["3 type S", "5-6 function M"]),
    ("a.rs", "impl S {\n    fn f() {}\n}\n", ["1-3 impl S", "2 S.f"]),
    ("A.java", "class A {\n  int m() { return 1; }\n}\n", ["1-3 class A", "2 A.m"]),
    ("a.rb", "module M\n  def m\n  end\nend\n", ["1-4 module M", "2-3 M.m"]),
    ("a.c", "static int *f(int x) {\n  return 0;\n}\nstruct s *g;\n", ["1-3 function f"]),
    ("a.cpp", "int N::A::q() { return 2; }\n", ["1 N.A.q"]),
    ("a.sh", "f() {\n  echo\n}\n", ["1-3 function f"]),
    ("script", "#!/usr/bin/env python3\ndef main(): ...\n", ["2 function main"]),
    ("half.py", "def before():\n    return 1\n\ndef broken(:\n", ["1-2 function before"]),
]  # fmt: skip


@pytest.mark.parametrize(("path", "source", "expected"), OUTLINES, ids=[row[0] for row in OUTLINES])
def test_a_file_is_outlined_with_lines(desk: Desk, path: str, source: str, expected: list[str]) -> None:
    desk.put(path, source)
    lines = desk.ok("symbols", path=path).splitlines()
    for line, wanted in zip(lines, expected, strict=path != "half.py"):
        place, _, what = line.partition("\t")
        assert place == wanted.split()[0] and what.strip().split()[-1] == wanted.split()[-1].rpartition(".")[2]


def test_members_are_indented(desk: Desk) -> None:
    desk.put("a.py", "class A:\n    def m(self):\n        pass\n")
    assert desk.ok("symbols", path="a.py") == "1-3\tclass A\n2-3\t  function m"


def test_a_name_is_found_where_it_is_defined(desk: Desk) -> None:
    desk.put("src/a.py", "class Parser:\n    def parse(self): ...\n\ndef parse(): ...\n")
    desk.put("src/b.go", "package b\n\nfunc parse() {}\n")
    desk.put("tests/t.py", "from a import parse\nparse()\n")
    assert desk.ok("symbols", name="parse").splitlines() == [
        "src/a.py:2: function Parser.parse",
        "src/a.py:4: function parse",
        "src/b.go:3: function parse",
    ]
    assert desk.ok("symbols", name="Parser.parse") == "src/a.py:2: function Parser.parse"
    assert desk.ok("symbols", name="parse", path="src/b.go") == "src/b.go:3: function parse"
    assert desk.ok("symbols", name="parse", path="tests") == "Nothing called parse is defined."


def test_methods_are_found_by_the_type_that_they_belong_to(desk: Desk) -> None:
    desk.put("a.go", "package a\n\ntype S struct{}\n\nfunc (s *S) M() {}\n\nfunc (t T[K]) M() {}\n")
    desk.put("a.rs", "impl<'a> Store<'a> {\n    fn get() {}\n}\n")
    assert desk.ok("symbols", name="S.M") == "a.go:5: function M"
    assert desk.ok("symbols", name="T.M") == "a.go:7: function M"
    assert desk.ok("symbols", name="Store::get") == "a.rs:2: function Store.get"


def test_what_has_no_outline_is_said(desk: Desk) -> None:
    desk.put("a.json", "{}")
    desk.put("a.py", "")
    desk.put("big.py", "x = 1\n" * 100_000)
    (desk.files / "src").mkdir()
    assert "cannot be outlined" in desk.failed("symbols", path="a.json")
    assert "is a folder" in desk.failed("symbols", path="src")
    assert desk.ok("symbols", path="a.py") == "It defines nothing."
    assert "too large" in desk.failed("symbols", path="big.py")
    assert "[too large to be searched: big.py]" in desk.ok("symbols", name="x")


def test_deep_nesting_and_many_names_are_bounded(desk: Desk) -> None:
    desk.put("deep.js", "[" * 20_000 + "]" * 20_000)
    desk.put("many.py", "".join(f"def f{number}(): ...\n" for number in range(1500)))
    desk.put("same.py", "def same(): ...\n" * 300)
    assert desk.ok("symbols", path="deep.js") == "It defines nothing."
    assert desk.ok("symbols", path="many.py").endswith("\n[not shown: 500 further definitions]")
    assert len(desk.ok("symbols", name="same").splitlines()) == 201
