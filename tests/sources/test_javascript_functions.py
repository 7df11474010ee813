"""Recorded calls of JavaScript: which functions are exported, how they are wrapped, and the test that repeats calls."""

from __future__ import annotations

import pytest

from proofstone.check.models import ReportFormat
from proofstone.check.variants.javascript_control import build_control_test
from proofstone.check.variants.javascript_functions import RecordedSource, record_functions

NAMES = {
    "export function f(a) { return a }": ("f",),
    "export const f = (a) => a;": ("f",),
    "export const f = function (a) { return a };": ("f",),
    "function f(a) { return a }\nexport { f as g };": ("g",),
    "export default function (a) { return a }": ("default",),
    "export default (a) => a;": ("default",),
    "export class C { m(a) { return a } static s() {} }": ("C.m", "C.s"),
    "class C { m(a) { return a } }\nexport default C;": ("default.m",),
    "const f = (a) => a;\nmodule.exports = { f, g: (b) => b, h(c) { return c } };": ("f", "g", "h"),
    "const f = (a) => a;\nmodule.exports = f;": ("default",),
    "exports.f = (a) => a;": ("f",),
    "module.exports.f = function (a) { return a };": ("f",),
}
LEFT_ALONE = [
    "function f(a) { return a }",
    "export function* f(a) { yield a }",
    "export function f(a) { var a = a || 1; return a }",
    "export function f(a) { return a(); function a() {} }",
    "export class C { constructor(a) { this.a = a } get b() { return 1 } #p() {} }",
    "export class C { #state = 1; m() { return this.#state } }",
    "import { B } from './b.js';\nexport class C extends B { m() { return 1 } }",
    "export { f } from './f.js';",
    "export const f = 3;",
    "export function f( {",
]


@pytest.mark.parametrize("text", NAMES)
def test_exported_functions_have_the_names_by_which_others_call_them(text: str) -> None:
    recorded = record_functions("a.js", text.encode(), range(1, 9))
    assert recorded is not None and recorded.names == NAMES[text]
    assert recorded.content.count(b"\n") == text.count("\n")


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_what_would_behave_otherwise_when_wrapped_is_left_alone(text: str) -> None:
    assert record_functions("a.js", text.encode(), range(1, 9)) is None


def test_only_changed_functions_are_recorded_unless_something_around_them_changed() -> None:
    text = b"const rate = 3;\nexport const f = (a) => a;\n\nexport const g = (a) => a * rate;\n"
    names = {line: recorded and recorded.names for line in range(1, 5) for recorded in [_record(text, line)]}
    assert names == {1: ("f", "g"), 2: ("f",), 3: None, 4: ("g",)}


def test_typed_sources_stay_typed() -> None:
    recorded = record_functions("a.ts", b"export const f = <T,>(a: T): T => a;", [1])
    assert recorded is not None
    assert recorded.content.startswith(
        b"export const f = (...given_8c41d7e2: any[]): any => ((globalThis as any).process"
    )
    assert record_functions("a.d.ts", b"export declare function f(a: number): number;", [1]) is None


def test_a_control_test_loads_the_module_as_its_neighbour_does() -> None:
    tests = {"test/shop.test.ts": b'import { total } from "../src/shop";\nimport x from "./x";\ntest("a", () => {});\n'}
    control = build_control_test(ReportFormat.JEST, tests, ["src/shop.ts", "src/other.ts"])
    assert control is not None and control.path == "test/control8c41.test.ts"
    text = control.content.decode()
    assert 'import * as module0 from "../src/shop";' in text and '{ "src/shop.ts": module0 }' in text
    assert build_control_test(ReportFormat.JEST, tests, ["src/other.ts"]) is None
    assert build_control_test(ReportFormat.TAP, tests, ["src/shop.ts"]) is None


def _record(text: bytes, line: int) -> RecordedSource | None:
    return record_functions("a.js", text, [line])
