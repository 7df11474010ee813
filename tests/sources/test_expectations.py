"""Changed expectations: which text becomes which, and what is left alone."""

from __future__ import annotations

import pytest

from proofstone.check.variants.expectations import mutate_expectations
from tests.rows import each_row

W = "zubrik"

PYTHON = [
    ("assert f() == 3", f'assert f() == ("{W}", (3))'),
    ("assert 3 == f()", f'assert ("{W}", (3)) == f()'),
    ("assert(f() == (3))", f'assert(f() == (("{W}", (3))))'),
    ("assert f() == expected, 'why'", f"assert f() == (\"{W}\", (expected)), 'why'"),
    ("assert expected == f()", f'assert ("{W}", (expected)) == f()'),
    ("assert a() == b() == 2", f'assert a() == b() == ("{W}", (2))'),
    ("assert f() == 1 and g() == 2", f'assert f() == ("{W}", (1)) and g() == ("{W}", (2))'),
    ("assert f() == 1 or g()", "assert  not (f() == 1 or g())"),
    ("assert f()", "assert  not (f())"),
    ("assert[f()]", "assert not ([f()])"),
    ("assert not f()", "assert  not (not f())"),
    ("assert f() != 1", "assert  not (f() != 1)"),
    ("assert f() is None", "assert  not (f() is None)"),
    ("assert 'é' in f()", f"assert (('é') + \"{W}\") in f()"),
    ("assert b'a' in f()", f"assert ((b'a') + b\"{W}\") in f()"),
    ("assert f() in (1, 2)", f'assert f() in [("{W}", ((1, 2)))]'),
    ("assert x in f()", f'assert ("{W}", (x)) in f()'),
    ("self.assertEqual(f(), 3)", f'self.assertEqual(f(), ("{W}", (3)))'),
    ("self.assertEqual(3, f())", f'self.assertEqual(("{W}", (3)), f())'),
    ("self.assertTrue(f() == 3)", f'self.assertTrue(f() == ("{W}", (3)))'),
    ("self.assertTrue(f())", "self.assertTrue( not (f()))"),
    ("self.assertFalse(f())", "self.assertTrue(f())"),
    ("self.assertIsNone(f())", "self.assertIsNotNone(f())"),
    ("self.assertIn('a', f())", f"self.assertIn((('a') + \"{W}\"), f())"),
    ("mock.assert_called_with(x)", f'mock.assert_called_with("{W}", x)'),
    ("for x in f():\n        assert x == 1", f'for x in f():\n        assert x == ("{W}", (1))'),
    ("with f() as x:\n        assert x", "with f() as x:\n        assert  not (x)"),
    ("def g():\n        assert x == 1\n    g()", f'def g():\n        assert x == ("{W}", (1))\n    g()'),
    (
        "if f():\n        assert x\n    else:\n        assert y",
        "if f():\n        assert  not (x)\n    else:\n        assert  not (y)",
    ),
]


@each_row(("before", "after"), PYTHON)
def test_an_expectation_of_a_python_test_is_changed(before: str, after: str) -> None:
    content = f"# ü\ndef test_it(self):\n    {before}\n"
    result = mutate_expectations("test_a.py", content.encode(), None, W)
    assert result.content.decode() == content.replace(before, after)
    assert result.tests == ("test_it",)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("assert True", id="a constant"),
        pytest.param("assert 1 == 1", id="constants"),
        pytest.param("self.assertEqual(1, 1)", id="constants in a call"),
        pytest.param("assert False, 'must not come here'", id="a place not to be reached"),
        pytest.param("with pytest.raises(ValueError):\n        assert f() == 3", id="an expected exception"),
        pytest.param("with self.assertRaises(E) as e:\n        f()", id="an expected exception of unittest"),
        pytest.param("try:\n        assert f()\n    except AssertionError:\n        pass", id="a caught assertion"),
        pytest.param("try:\n        assert f()\n    except:\n        pass", id="anything caught"),
        pytest.param("self.assertEqual(*f())", id="unpacked arguments"),
        pytest.param("self.assertTrue(x for x in y)", id="a lone generator expression"),
        pytest.param("helper(f())", id="a helper"),
    ],
)
def test_what_is_no_certain_expectation_is_left_alone(body: str) -> None:
    content = f"def test_it(self):\n    {body}\n".encode()
    result = mutate_expectations("test_a.py", content, None, W)
    assert (result.content, result.tests) == (content, ())


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("if f():\n        assert x", id="a branch"),
        pytest.param("def g(x):\n        assert x\n    run(g)", id="a function that is only handed over"),
        pytest.param("try:\n        f()\n    except ValueError as e:\n        assert e", id="a handler"),
    ],
)
def test_what_a_test_may_avoid_is_changed_but_does_not_count(body: str) -> None:
    content = f"def test_it():\n    {body}\n".encode()
    result = mutate_expectations("test_a.py", content, None, W)
    assert result.content != content
    assert result.tests == ()


NAMED = """\
def helper(x):
    assert x


def test_a():
    assert f() == 1


class TestB:
    async def test_a(self):
        assert f() == 1

    def test_c(self):
        assert f() == 1
"""


@each_row(
    ("names", "tests"),
    [
        (None, ("test_a", "TestB.test_a", "TestB.test_c")),
        (["TestB::test_c"], ("TestB.test_c",)),
        (["TestB.test_a[1-2]"], ("TestB.test_a",)),
        (["tests.test_x.TestB.test_c"], ("TestB.test_c",)),
        (["test_c"], ("TestB.test_c",)),
        (["test_nothing"], ()),
        ([], ()),
    ],
)
def test_only_the_named_tests_are_changed(names: list[str] | None, tests: tuple[str, ...]) -> None:
    result = mutate_expectations("test_a.py", NAMED.encode(), names, W)
    assert result.tests == tests
    assert result.content.count(W.encode()) == len(tests)
    assert b"assert x\n" in result.content


JAVASCRIPT = [
    ("assert.equal(f(), 3)", f'assert.equal(f(), ["{W}", (3)])'),
    ("assert.strictEqual(3, f())", f'assert.strictEqual(["{W}", (3)], f())'),
    ("assert.deepStrictEqual(f(), { a: 1 })", f'assert.deepStrictEqual(f(), ["{W}", ({{ a: 1 }})])'),
    ("deepEqual(f(), [1])", f'deepEqual(f(), ["{W}", ([1])])'),
    ("assert.notEqual(f(), 3)", "assert.equal(f(), 3)"),
    ("assert(f())", "assert(!(f()))"),
    ("assert.ok(f(), 'why')", "assert.ok(!(f()), 'why')"),
    ("t.is(f(), 3)", f't.is(f(), ["{W}", (3)])'),
    ("t.assert.ok(f())", "t.assert.ok(!(f()))"),
    ("expect(f()).toBe(3)", f'expect(f()).toBe(["{W}", (3)])'),
    ("expect(f()).to.deep.equal(3)", f'expect(f()).to.deep.equal(["{W}", (3)])'),
    ("await expect(f()).resolves.toEqual(3)", f'await expect(f()).resolves.toEqual(["{W}", (3)])'),
    ("expect(f()).not.toBe(3)", "expect(f()).toBe(3)"),
    ("expect(f()).toBeDefined()", "expect(f()).not.toBeDefined()"),
    ("expect(f()).to.be.true", "expect(f()).not.to.be.true"),
    ("for (const x of f()) { assert(x) }", "for (const x of f()) { assert(!(x)) }"),
    ("f().forEach(x => assert(x))", "f().forEach(x => assert(!(x)))"),
    ("f(x => { t.equal(x, 1) })", f'f(x => {{ t.equal(x, ["{W}", (1)]) }})'),
]


@each_row(("before", "after"), JAVASCRIPT)
def test_an_expectation_of_a_javascript_test_is_changed(before: str, after: str) -> None:
    content = f"describe('all', () => {{\n  it('does \\'it\\'', async (t) => {{\n    {before}\n  }})\n}})\n"
    result = mutate_expectations("a.test.js", content.encode(), None, W)
    assert result.content.decode() == content.replace(before, after)
    assert result.tests == ("does 'it'",)


def test_a_changed_expectation_has_no_type_that_could_be_wrong() -> None:
    content = b"test('a', () => { expect(f()).toBe(3) })\n"
    assert mutate_expectations("a.test.ts", content, None, W).content == content.replace(
        b"(3)", b'(["zubrik", (3)] as any)'
    )


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("assert.throws(() => { assert(f()) })", id="an expected exception"),
        pytest.param("expect(() => f()).toThrow('x')", id="an expected exception of jest"),
        pytest.param("await expect(f()).rejects.toEqual(1)", id="an expected rejection"),
        pytest.param("expect(f()).toMatchSnapshot()", id="a snapshot"),
        pytest.param("assert.equal(1, 1)", id="constants"),
        pytest.param("assert.equal(...f())", id="unpacked arguments"),
        pytest.param("try { assert(f()) } catch {}", id="a caught assertion"),
        pytest.param("/a/.test('a')", id="no test"),
    ],
)
def test_what_is_no_certain_expectation_of_javascript_is_left_alone(body: str) -> None:
    content = f"test('a', async () => {{ {body} }})\n".encode()
    result = mutate_expectations("a.test.js", content, None, W)
    assert (result.content, result.tests) == (content, ())


@pytest.mark.parametrize("body", ["f(x => assert(x))", "if (x) { assert(f()) }", "f().catch(e => { assert(e) })"])
def test_what_a_javascript_test_may_avoid_is_changed_but_does_not_count(body: str) -> None:
    content = f"test('a', () => {{ {body} }})\n".encode()
    result = mutate_expectations("a.test.js", content, None, W)
    assert result.content != content
    assert result.tests == ()


@each_row(
    ("names", "tests"),
    [(None, ("a", "b c")), (["b c"], ("b c",)), (["all b c"], ("b c",)), (["c"], ()), ([], ())],
)
def test_only_the_named_titles_are_changed(names: list[str] | None, tests: tuple[str, ...]) -> None:
    content = b"describe('all', () => {\n  it('a', () => assert(f()))\n  it.each([1])('b c', () => assert(g()))\n})\n"
    result = mutate_expectations("a.test.js", content, names, W)
    assert result.tests == tests
    assert result.content.count(b"!(") == len(tests)


@pytest.mark.parametrize("path", ["test_a.go", "test_a.py", "a.test.js"])
def test_what_cannot_be_read_comes_back_as_it_was(path: str) -> None:
    content = b"def test_a(:\n    assert f() == 1\n"
    result = mutate_expectations(path, content, None, W)
    assert (result.content, result.tests) == (content, ())
