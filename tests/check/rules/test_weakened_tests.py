"""Which edits of a test check less than before, and which do not: as tables, for Python and JavaScript."""

from __future__ import annotations

import textwrap

from proofstone.check.inspection import ChangedFile
from proofstone.check.weakening import find_weakened_tests
from proofstone.common.models import ChangeKind
from tests.rows import each_row

WEAKER = {
    "one of several": ("assert add(2, 3) == 5", "assert add(2, 3) in (5, 9)", "be one of several"),
    "or": ("assert add(2, 3) == 5", "assert add(2, 3) == 5 or add(2, 3) == 9", "be one of several"),
    "or, with a variable": (
        "r = add(2, 3)\nassert r == 5",
        "x = add(2, 3)\nassert x == 5 or x == 9",
        "be one of several",
    ),
    "or something else": ("assert add(2, 3) == 5", "assert add(2, 3) == 5 or True", "some element"),
    "not equal": ("assert add(2, 3) == 5", "assert add(2, 3) != 6", "differ"),
    "not None": ("assert add(2, 3) == 5", "assert add(2, 3) is not None", "other than None"),
    "truth": ("assert add(2, 3) == 5", "assert add(2, 3)", "be true"),
    "a type": ("assert add(2, 3) == 5", "assert isinstance(add(2, 3), int)", "have a type"),
    "a bound": ("assert add(2, 3) == 5", "assert add(2, 3) >= 1", "or below a bound"),
    "a part": ("assert text() == 'a b c'", "assert 'b' in text()", "match a part"),
    "a start": ("assert text() == 'a b c'", "assert text().startswith('a')", "match a part"),
    "a shorter part": ("assert 'not found' in text()", "assert 'found' in text()", "shorter"),
    "the length": ("assert rows() == [1, 2]", "assert len(rows()) == 2", "len()"),
    "the length, with a variable": ("r = rows()\nassert r == [1, 2]", "r = rows()\nassert len(r) == 2", "len()"),
    "the order": ("assert rows() == [1, 2]", "assert sorted(rows()) == [1, 2]", "sorted()"),
    "itself": ("assert add(2, 3) == 5", "assert add(2, 3) == add(2, 3)", "equal itself"),
    "itself, by a variable": ("assert add(2, 3) == 5", "want = add(2, 3)\nassert add(2, 3) == want", "equal itself"),
    "a wildcard": ("assert row() == {'id': 1}", "assert row() == {'id': ANY}", "anything"),
    "anything": ("assert row() == {'id': 1}", "assert row() == mock.ANY", "other than None"),
    "a wide tolerance": ("assert half(1) == 0.5", "assert half(1) == approx(0.5, abs=0.3)", "off by 0.3"),
    "a wider tolerance": (
        "assert half(1) == approx(0.5, abs=0.01)",
        "assert half(1) == approx(0.5, abs=0.2)",
        "instead of 0.01",
    ),
    "fewer places": (
        "self.assertAlmostEqual(half(1), 0.5, places=5)",
        "self.assertAlmostEqual(half(1), 0.5, places=1)",
        "off by 0.1",
    ),
    "a wider bound": ("assert size() < 5", "assert size() < 50", "wider"),
    "a bound that is included": ("assert size() < 5", "assert size() <= 5", "wider"),
    "more values": ("assert size() in (1, 2)", "assert size() in (1, 2, 3)", "more values"),
    "more types": ("assert isinstance(f(), int)", "assert isinstance(f(), (int, str))", "more values"),
    "any instead of all": ("assert all(ok(x) for x in y)", "assert any(ok(x) for x in y)", "some element"),
    "unittest": ("self.assertEqual(f(), 5)", "self.assertIn(f(), [5, 9])", "be one of several"),
    "unittest, truth": ("self.assertEqual(f(), 5)", "self.assertTrue(f())", "be true"),
    "unittest, present": ("self.assertEqual(f(), 5)", "self.assertIsNotNone(f())", "other than None"),
    "a mock's arguments": ("m.assert_called_once_with(5)", "m.assert_called_once()", "only has to be called"),
    "a removed assertion": ("assert a() == 1\nassert b() == 2", "assert a() == 1", "gone"),
    "all assertions": ("assert a() == 1", "a()", "gone"),
    "a constant": ("assert a() == 1", "assert True", "gone"),
    "a helper that asserts nothing": ("assert a() == 1", "print(a())\nlook(a())", None),
    "a condition": ("assert a() == 1", "if fast():\n    assert a() == 1", "if fast()"),
    "an early return": ("assert a() == 1", "if fast():\n    return\nassert a() == 1", "unless fast()"),
    "a return": ("assert a() == 1", "a()\nreturn\nassert a() == 1", "gone"),
    "a handler": (
        "assert a() == 1",
        "try:\n    assert a() == 1\nexcept AssertionError:\n    pass",
        "no handler swallows it",
    ),
    "suppress": ("assert a() == 1", "with suppress(Exception):\n    assert a() == 1", "no handler swallows it"),
    "any exception": (
        "with pytest.raises(ValueError):\n    a()",
        "with pytest.raises(Exception):\n    a()",
        "any Exception",
    ),
    "more exceptions": (
        "with pytest.raises(ValueError):\n    a()",
        "with pytest.raises((ValueError, KeyError)):\n    a()",
        "more types",
    ),
    "no message": (
        "with pytest.raises(ValueError, match='empty'):\n    a()",
        "with pytest.raises(ValueError):\n    a()",
        "message",
    ),
    "fewer cases": (
        "for x in (1, 2, 3):\n    assert a(x) == x",
        "for x in (1, 2):\n    assert a(x) == x",
        "no longer runs for 3",
    ),
}
"""The old and the new body of a test, and a part of the reason; None where the rules cannot tell."""

AS_STRICT = {
    "nothing": ("assert a() == 1", "assert a() == 1"),
    "a renamed variable": ("r = a()\nassert r == 1", "result = a()\nassert result == 1"),
    "an extracted expression": ("assert a(b(1)) == 1", "value = b(1)\nresult = a(value)\nassert result == 1"),
    "sides exchanged": ("assert 1 == a()", "assert a() == 1"),
    "unittest to pytest": ("self.assertEqual(a(), 1)", "assert a() == 1"),
    "unittest's truth": ("self.assertTrue(a() == 1)", "self.assertEqual(a(), 1)"),
    "a linter's advice": ("assert a() == True", "assert a()"),
    "joined by and": ("assert a() == 1\nassert b() == 2", "assert a() == 1 and b() == 2"),
    "stricter": ("assert a() is not None", "assert a() == 1"),
    "stricter, by a range": ("assert a() < 50", "assert a() < 5"),
    "more assertions": ("assert a() == 1", "assert a() == 1\nassert b() == 2"),
    "a rounding error": ("assert half(1) == 0.5", "assert half(1) == pytest.approx(0.5)"),
    "another value": ("assert a() == 1", "assert a() == 2"),
    "other values": ("assert a() == 1", "assert a() in (2, 3)"),
    "a loop": ("assert a(1) == 1\nassert a(2) == 4", "for x, y in ((1, 1), (2, 4), (3, 9)):\n    assert a(x) == y"),
    "a helper": ("assert a(1) == 1\nassert a(2) == 4", "verify(1, 1)\nverify(2, 4)"),
    "both branches": ("assert a() == 1", "if new():\n    assert a() == 1\nelse:\n    assert a() == 2"),
    "a message instead": (
        "with pytest.raises(ValueError) as e:\n    a()\nassert str(e.value) == 'x'",
        "with pytest.raises(ValueError, match='x'):\n    a()",
    ),
    "a message in an assertion of its own": (
        "with pytest.raises(ValueError, match='x'):\n    a()",
        "with pytest.raises(ValueError) as e:\n    a()\nassert str(e.value) == 'x y'",
    ),
    "another loop": (
        "for t in waits(2):\n    assert t <= 2",
        "for t in waits(20):\n    assert t <= 20",
    ),
    "a text made otherwise": ("assert 'not {}'.format('x') in a()", "assert 'not' in a()"),
    "an exception raised by the test": ("assert a() == 1", "if a() != 1:\n    raise ValueError"),
    "what is implied": ("assert 'x' not in row()\nassert row() == {}", "assert row() == {}"),
    "a snapshot split up": ("assert row() == (1, 2)", "assert row()[0] == 1\nassert row()[1] == 2"),
    "a redundant comparison": ("assert a() == 1\nx = 1\nassert x == x", "assert a() == 1\nx = 1"),
    "a handler that fails": (
        "assert a() == 1",
        "try:\n    assert a() == 1\nexcept AssertionError:\n    raise",
    ),
    "awaited": ("assert await a() == 1", "result = await a()\nassert result == 1"),
}


def python_file(body: str, more: str = "") -> bytes:
    return f"async def test_it():\n{textwrap.indent(body, '    ')}\n{more}".encode()


def reasons(old: bytes, new: bytes, path: str = "tests/test_it.py") -> list[str]:
    files = [ChangedFile(path, ChangeKind.MODIFIED, old, new)]
    return [weakening.reason for test in find_weakened_tests(files, {}) for weakening in test.weakenings]


@each_row(("old", "new", "reason"), WEAKER.values())
def test_a_weaker_python_test_is_found(old: str, new: str, reason: str | None) -> None:
    found = reasons(python_file(old), python_file(new))
    assert any(reason in text for text in found) if reason else not found, found


@each_row(("old", "new"), AS_STRICT.values())
def test_an_honest_python_edit_is_not(old: str, new: str) -> None:
    assert reasons(python_file(old), python_file(new)) == []


JAVASCRIPT = {
    "toBeTruthy": ("expect(add(2, 3)).toBe(5)", "expect(add(2, 3)).toBeTruthy()", "be true"),
    "toBeDefined": ("expect(add(2, 3)).toEqual(5)", "expect(add(2, 3)).toBeDefined()", "other than None"),
    "one of": ("expect(add(2, 3)).toBe(5)", "expect([5, 9]).toContain(add(2, 3))", "be one of several"),
    "includes": ("t.is(add(2, 3), 5)", "t.true([5, 9].includes(add(2, 3)))", "be one of several"),
    "includes, expected to be true": (
        "expect(add(2, 3)).toBe(5)",
        "expect([5, 9].includes(add(2, 3))).toBe(true)",
        "be one of several",
    ),
    "or": ("t.is(add(2, 3), 5)", "t.true(add(2, 3) === 5 || add(2, 3) === 9)", "be one of several"),
    "chai's one of": ("expect(add(2, 3)).to.equal(5)", "expect(add(2, 3)).to.be.oneOf([5, 9])", "be one of several"),
    "a part": ("expect(row()).toEqual({a: 1})", "expect(row()).toMatchObject({a: 1})", "match a part"),
    "anything": ("expect(row()).toEqual({a: 1})", "expect(row()).toEqual({a: expect.anything()})", "anything"),
    "not": ("expect(add(2, 3)).toBe(5)", "expect(add(2, 3)).not.toBe(6)", "differ"),
    "node's ok": ("assert.strictEqual(add(2, 3), 5)", "assert.ok(add(2, 3))", "be true"),
    "AVA": ("t.is(add(2, 3), 5)", "t.truthy(add(2, 3))", "be true"),
    "a constant": ("const r = add(2, 3);\nt.is(r, 5)", "const sum = add(2, 3);\nt.truthy(sum)", "be true"),
    "a wide tolerance": ("expect(half(1)).toBe(0.5)", "expect(half(1)).toBeCloseTo(0.5, 0)", "off by 0.5"),
    "no message": ("expect(() => a()).toThrow('x')", "expect(() => a()).toThrow()", "message"),
    "a condition": ("expect(a()).toBe(1)", "if (fast()) { expect(a()).toBe(1); }", "if (fast())"),
    "a handler": ("expect(a()).toBe(1)", "try { expect(a()).toBe(1); } catch {}", "no handler swallows it"),
    "a removed assertion": ("expect(a()).toBe(1);\nexpect(b()).toBe(2)", "expect(a()).toBe(1)", "gone"),
    "fewer cases": (
        "for (const x of [1, 2, 3]) { expect(a(x)).toBe(x); }",
        "for (const x of [1, 2]) { expect(a(x)).toBe(x); }",
        "no longer runs for 3",
    ),
    "a message in an assertion of its own": (
        "await t.throwsAsync(a(), {message: 'x'})",
        "const {message} = await t.throwsAsync(a());\nt.is(message, 'x')",
        None,
    ),
    "another way to name the exception": (
        "t.throwsAsync(a(), RangeError, 'x')",
        "t.throwsAsync(a(), {instanceOf: errors.RangeError, message: 'x'})",
        None,
    ),
    "a type of exception added": (
        "t.throws(a, {message: 'x'})",
        "t.throws(a, {instanceOf: RangeError, message: 'x'})",
        None,
    ),
    "any type of exception": ("t.throws(a, {instanceOf: RangeError})", "t.throws(a)", "any exception"),
    "a counter": ("let n = 0;\na(() => n++);\nt.is(n, 1)", "let n = 0;\na(() => n++);\nt.is(n, 0)", None),
    "an exception thrown by the test": ("t.is(a(), 1)", "if (a() !== 1) { throw new Error('x'); }", None),
    "quotes": ("expect(a('x')).toBe('y')", 'expect(a("x")).toBe("y")', None),
    "another runner": ("expect(a()).toBe(1)", "assert.strictEqual(a(), 1)", None),
    "a comparison": ("t.is(a(), 'x')", "t.assert(a() === 'x')", None),
    "stricter": ("expect(a()).toBeTruthy()", "expect(a()).toBe(1)", None),
    "awaited": ("expect(await a()).toBe(1)", "const r = await a();\nexpect(r).toBe(1)", None),
    "the same pattern": ("expect(a()).toMatch(new RegExp(/x/))", "expect(a()).toMatch(/x/)", None),
}


@each_row("suffix", ["js", "ts"])
@each_row(("old", "new", "reason"), JAVASCRIPT.values())
def test_javascript_tests_are_compared_too(old: str, new: str, reason: str | None, suffix: str) -> None:
    before, after = (f"test('it', async t => {{\n{body};\n}});\n".encode() for body in (old, new))
    found = reasons(before, after, f"test/it.test.{suffix}")
    assert any(reason in text for text in found) if reason else not found, found


def test_an_assertion_that_moved_to_another_test_or_file_was_not_removed() -> None:
    old = python_file("assert a(1) == 1\nassert b(2) == 2")
    moved = "\ndef test_b():\n    number = b(2)\n    assert number == 2\n"
    assert reasons(old, python_file("assert a(1) == 1", moved)) == []
    files = [
        ChangedFile("tests/test_it.py", ChangeKind.MODIFIED, old, python_file("assert a(1) == 1")),
        ChangedFile("tests/test_b.py", ChangeKind.ADDED, None, moved.encode()),
    ]
    assert find_weakened_tests(files, {}) == []


def test_a_renamed_file_is_compared_with_its_old_version() -> None:
    old, new = python_file("assert a() == 1"), python_file("assert a()")
    files = [
        ChangedFile("tests/test_old.py", ChangeKind.DELETED, old, None),
        ChangedFile("tests/test_new.py", ChangeKind.ADDED, None, new),
    ]
    (weakened,) = find_weakened_tests(files, {"tests/test_old.py": "tests/test_new.py"})
    assert (weakened.old_path, weakened.path, weakened.name) == ("tests/test_old.py", "tests/test_new.py", "test_it")


def test_dropped_parameters_are_found_unless_they_moved() -> None:
    old = b"@pytest.mark.parametrize('x', [1, 2, pytest.param(3, id='three')])\ndef test_it(x):\n    assert a(x) == x\n"
    assert reasons(old, old.replace(b", pytest.param(3, id='three')", b"")) == ["it no longer runs for 3"]
    assert reasons(old, old.replace(b"pytest.param(3, id='three')", b"3, 4")) == []
    moved = b"\n@pytest.mark.parametrize('x', [3])\ndef test_three(x):\n    assert a(x) == 3\n"
    assert reasons(old, old.replace(b", pytest.param(3, id='three')", b"") + moved) == []


def test_only_files_of_tests_are_compared_and_broken_ones_are_left_alone() -> None:
    old, new = python_file("assert a() == 1"), python_file("assert a()")
    assert reasons(old, new, "src/checks.py") == []
    assert reasons(old, b"def test_it(:\n") == []
    deep = python_file(f"assert a() == {'(' * 90}1{')' * 90}")
    assert reasons(deep, deep.replace(b"==", b"!=")) != []
    nested = python_file(f"assert {'-' * 5000}a() == 1")
    assert reasons(nested, nested.replace(b"== 1", b"")) == []


@each_row("length", [99, 100, 101, 300])
def test_a_case_is_shown_whole_up_to_a_hundred_characters(length: int) -> None:
    case = "a" * (length - 2)
    old = f"@pytest.mark.parametrize('x', ['b', '{case}'])\ndef test_it(x):\n    assert a(x) == x\n".encode()
    shown = f"'{case}'" if length <= 100 else f"'{case}"[:99] + "…"
    assert reasons(old, old.replace(f", '{case}'".encode(), b"")) == [f"it no longer runs for {shown}"]
