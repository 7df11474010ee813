"""The edited lines of a test, side by side."""

from __future__ import annotations

from proofstone.check.rules.compare import diff_test_lines

OLD = """
def test_one():
    assert f(1) == 1


@pytest.mark.parametrize("n", [1, 2])
def test_two(n):
    assert f(n) == 2
"""


def test_the_lines_of_that_test_are_shown_and_no_others() -> None:
    new = OLD.replace("== 1\n", "== 3\n").replace("f(n) == 2", "f(n)")
    assert diff_test_lines(OLD, new, "test_two") == ("assert f(n) == 2", "assert f(n)")


def test_parameters_belong_to_their_test() -> None:
    new = OLD.replace("[1, 2]", "[1]")
    assert diff_test_lines(OLD, new, "test_two") == (
        '@pytest.mark.parametrize("n", [1, 2])',
        '@pytest.mark.parametrize("n", [1])',
    )


def test_the_block_of_a_test_begins_with_its_decorators_and_ends_with_its_indentation() -> None:
    new = OLD.replace("== 1\n", "== 3\n").replace("[1, 2]", "[1]")
    assert diff_test_lines(OLD, new, "test_two") == (
        '@pytest.mark.parametrize("n", [1, 2])',
        '@pytest.mark.parametrize("n", [1])',
    )
    old = "def test_one():\n    assert f(1) == 1\nLIMIT = 1\n"
    assert diff_test_lines(old, old.replace("1\n", "2\n"), "test_one") == ("assert f(1) == 1", "assert f(1) == 2")


def test_what_was_edited_beside_the_test_is_shown_if_the_test_was_not() -> None:
    assert diff_test_lines("LIMIT = 1\n" + OLD, "LIMIT = 9\n" + OLD, "Class.test_one") == ("LIMIT = 1", "LIMIT = 9")


def test_titles_of_javascript_are_found() -> None:
    old = "test('adds', () => {\n  assert.equal(f(1), 2);\n});\n"
    assert diff_test_lines(old, old.replace("2", "3"), "group > adds") == (
        "assert.equal(f(1), 2);",
        "assert.equal(f(1), 3);",
    )
