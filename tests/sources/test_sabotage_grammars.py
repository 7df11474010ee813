"""Sabotage of JavaScript, TypeScript, Go and Rust: one statement in front of the body, the rest stays."""

from __future__ import annotations

import pytest

from proofstone.check.variants.sabotage import sabotage_file
from tests.rows import each_row

JS = 'if (typeof 1 === "number") throw new Error("sabotaged by Proofstone\'s sensitivity check");'
GO = 'panic("sabotaged by Proofstone\'s sensitivity check");'
RUST = 'if true { panic!("sabotaged by Proofstone\'s sensitivity check"); }'

FUNCTIONS = [
    ("a.js", "function f() { return 1 }", f"function f() {{ {JS} return 1 }}"),
    ("a.js", "const f = (x) => x + 1", f"const f = (x) => {{ {JS} return x + 1 }}"),
    ("a.js", "const f = a => b => a", f"const f = a => {{ {JS} return b => a }}"),
    ("a.js", "export const f = () => ({ a: 1 })", f"export const f = () => {{ {JS} return ({{ a: 1 }}) }}"),
    ("a.js", "module.exports.f = function () { return 1 }", f"module.exports.f = function () {{ {JS} return 1 }}"),
    ("a.js", "export default async () => { x() }", f"export default async () => {{ {JS} x() }}"),
    (
        "a.js",
        "const o = {\n  get m() { return 1 },\n  n: 2\n}",
        f"const o = {{\n  get m() {{ {JS} return 1 }},\n  n: 2\n}}",
    ),
    ("a.js", "class A {\n  m() { return 1 }\n}", f"class A {{\n  m() {{ {JS} return 1 }}\n}}"),
    ("a.js", "class A {\n  m = () => 1\n}", f"class A {{\n  m = () => {{ {JS} return 1 }}\n}}"),
    (
        "a.ts",
        "class A {\n  @d() m(): number { return 1 }\n}",
        f"class A {{\n  @d() m(): number {{ {JS} return 1 }}\n}}",
    ),
    ("a.tsx", "export const f = () => <p>1</p>", f"export const f = () => {{ {JS} return <p>1</p> }}"),
    ("a.go", "package a\n\nfunc f() int { return 1 }", f"package a\n\nfunc f() int {{ {GO} return 1 }}"),
    (
        "a.go",
        "package a\n\nfunc (r *R) f() int {\n\treturn 1\n}",
        f"package a\n\nfunc (r *R) f() int {{ {GO}\n\treturn 1\n}}",
    ),
    ("a.go", "package a\n\nvar f = func() int { return 1 }", f"package a\n\nvar f = func() int {{ {GO} return 1 }}"),
    ("a.rs", "fn f() -> i32 { 1 }", f"fn f() -> i32 {{ {RUST} 1 }}"),
    ("a.rs", "impl A {\n    fn f(&self) -> i32 { 1 }\n}", f"impl A {{\n    fn f(&self) -> i32 {{ {RUST} 1 }}\n}}"),
    ("a.rs", "fn f() { #![allow(x)] g(1) }", f"fn f() {{ #![allow(x)] {RUST} g(1) }}"),
]


@each_row(("path", "new", "expected"), FUNCTIONS)
def test_the_changed_function_raises_first(path: str, new: str, expected: str) -> None:
    changing = next(
        line for line in new.splitlines() if any(mark in line for mark in ("1 }", "1)", "=>", "return 1", "x()"))
    )
    old = new.replace(changing, changing.replace("1", "2").replace("x()", "y()").replace("=> a", "=> b"))
    assert old != new
    result = sabotage_file(path, old.encode(), new.encode())
    assert result is not None
    assert (result.complete, result.loads) == (True, True)
    assert result.content.decode() == expected


@each_row(
    ("path", "old", "new"),
    [
        ("a.js", "f(1)\n", "f(1) // one\n"),
        ("a.js", "f(1)\n", "/* one */\nf(1)\n"),
        ("a.ts", "f(1)\n", "f(1)\nexport interface A { a: string }\ntype B = A\nimport type { C } from 'c'\n"),
        (
            "a.ts",
            "export function f(a: any) { g() }\n",
            "export function f(a: 1): 1;\nexport function f(a: any) { g() }\n",
        ),
        ("a.go", "package a\n", "// Package a.\npackage a\n"),
        ("a.rs", "fn f() {}\n", "/// Does f.\nfn f() {}\n"),
        ("a.rs", "fn f() {}\n", "fn f() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() { f() }\n}\n"),
        ("a.rs", "fn f() {}\n", "fn f() {}\n#[tokio::test]\nasync fn t() { f() }\n"),
        ("a.js", "function f() {}\n", "function f() {\n"),
        ("a.rb", "def f; 1; end\n", "def f; 2; end\n"),
    ],
)
def test_nothing_that_runs_has_changed(path: str, old: str, new: str) -> None:
    assert sabotage_file(path, old.encode(), new.encode()) is None


@each_row(
    ("old", "new", "expected"),
    [
        ("const a = 1\n", "const a = 2\n", f"{JS} const a = 2\n"),
        (
            "#!/usr/bin/env node\n'use strict'\nf(1)\n",
            "#!/usr/bin/env node\n'use strict'\nf(2)\n",
            f"#!/usr/bin/env node\n'use strict'\n{JS} f(2)\n",
        ),
        ("const a = f(1, () => 0)\n", "const a = f(2, () => 0)\n", f"{JS} const a = f(2, () => 0)\n"),
        ("import a from 'a'\na()\n", "import a from 'b'\na()\n", f"import a from 'b'\n{JS} a()\n"),
        ("const b = 1\nf(b)\n", "f(b)\n", f"{JS} f(b)\n"),
    ],
)
def test_a_change_outside_functions_makes_loading_throw(old: str, new: str, expected: str) -> None:
    result = sabotage_file("a.js", old.encode(), new.encode())
    assert result is not None
    assert (result.complete, result.loads) == (True, False)
    assert result.content.decode() == expected


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (
            "a.js",
            "const a = require('a')\nfunction f() { return 1 }\nmodule.exports = { f }\n",
            "const a = require('a')\nconst { b } = require('b')\n"
            "function f() { return 1 }\nfunction g() { return b() }\nmodule.exports = { f, g }\n",
        ),
        ("a.ts", "export function f() { return 1 }\n", "import { g } from 'g'\nexport function f() { return g() }\n"),
        ("a.go", "package a\nfunc f() {}\n", 'package a\nimport (\n\t"x/y/v2"\n)\nfunc f() { y.Do() }\n'),
        ("a.rs", "fn f() {}\n", "use a::{b::c, d as e};\nfn f() { c(); e() }\n"),
    ],
)
def test_imports_and_exports_of_changed_functions_belong_to_them(path: str, old: str, new: str) -> None:
    result = sabotage_file(path, old.encode(), new.encode())
    assert result is not None
    assert (result.complete, result.loads) == (True, True)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("a.go", "package a\nvar x = 1\nfunc f() {}\n", "package a\nvar x = 2\nfunc f() { g() }\n"),
        ("a.rs", "const X: i32 = 1;\nfn f() {}\n", "const X: i32 = 2;\nfn f() { g() }\n"),
        ("a.rs", "const fn c() -> i32 { 1 }\nfn f() {}\n", "const fn c() -> i32 { 2 }\nfn f() { g() }\n"),
        ("a.rs", "fn f() {}\n", "use a::*;\nfn f() { g() }\n"),
    ],
)
def test_what_cannot_be_sabotaged_leaves_it_incomplete(path: str, old: str, new: str) -> None:
    result = sabotage_file(path, old.encode(), new.encode())
    assert result is not None
    assert not result.complete


def test_a_callback_that_lost_a_line_throws() -> None:
    new = "app.get('/', (request) => {\n  log(request)\n})\napp.use(x => x)\n"
    old = new.replace("})", "  send(request)\n})")
    result = sabotage_file("a.js", old.encode(), new.encode())
    assert result is not None
    assert result.complete
    assert result.content.decode() == new.replace("=> {", f"=> {{ {JS}")


def test_mark_and_line_endings_survive() -> None:
    new = "\ufefffn f() {\r\n    g(1)\r\n}".encode()
    result = sabotage_file("a.rs", new.replace(b"1", b"2"), new)
    assert result is not None
    assert result.content.decode() == f"\ufefffn f() {{ {RUST}\r\n    g(1)\r\n}}"
