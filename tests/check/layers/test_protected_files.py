"""L2: what decides what counts as proof comes from the base, unless the task declares it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workshop import Workshop, assert_failed, assert_passed

WRONG = "def total(items):\n    return max(items)\n"
RIGHT = "def total(items):\n    return sum(items)\n"
TEST = """import unittest

from sums import total


class Sums(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2]), 3)
"""
WEAKER = TEST.replace("3)", "2)")
FOR_PYTEST = "from sums import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
VERSION = '[project]\nname = "sums"\nversion = "{}"\n\n[tool.pytest.ini_options]\naddopts = "{}"\n'


@pytest.fixture
def root(workshop: Workshop) -> Path:
    return workshop.repo({"tests/__init__.py": "", "sums.py": WRONG, "tests/test_sums.py": TEST})


@pytest.mark.parametrize(
    "path",
    ["tests/test_sums.py", *(pytest.param(one, marks=pytest.mark.sweep) for one in ("pytest.ini", ".github/x.yml"))],
)
def test_an_undeclared_protected_file_is_put_back_and_named(workshop: Workshop, root: Path, path: str) -> None:
    workshop.write(root, {"sums.py": RIGHT, path: "# edited\n"})
    run = workshop.check(root, "--files", "sums.py")
    assert_failed(run, "protected-file")
    assert run.json["changed"] == ["sums.py"]
    assert run.json["tree"] != run.json["frozen"]
    assert run.check("tests:unittest").verdict == "pass"  # with the base's version of the file


def test_what_is_checked_is_the_candidate_tree(workshop: Workshop, root: Path) -> None:
    workshop.write(root, {"sums.py": RIGHT, "tests/test_sums.py": "", "tests/conftest.py": ""})
    run = workshop.check(root, "--files", "sums.py")
    tree = workshop.tree(run.json["tree"])
    assert workshop.blob(tree["tests/test_sums.py"]) == TEST.encode()
    assert workshop.blob(tree["sums.py"]) == RIGHT.encode()
    assert "tests/conftest.py" not in tree


def test_a_declared_test_may_change_and_the_old_one_still_runs(workshop: Workshop, root: Path) -> None:
    more = TEST + "\n    def test_nothing(self):\n        self.assertEqual(total([]), 0)\n"
    workshop.write(root, {"sums.py": RIGHT, "tests/test_sums.py": more})
    run = workshop.check(root, "--files", "sums.py", "--files", "tests/**")
    assert_passed(run)
    assert run.json["tree"] == run.json["frozen"]


def test_an_edited_expectation_is_shown_with_its_old_and_new_value(workshop: Workshop, root: Path) -> None:
    workshop.write(root, {"tests/test_sums.py": WEAKER})
    run = workshop.check(root, "--files", "tests/**")
    assert_failed(run, "edited-expectation")
    (finding,) = (one for one in run.report.findings if one.rule == "edited-expectation")
    assert (finding.before, finding.after) == (
        "self.assertEqual(total([1, 2]), 3)",
        "self.assertEqual(total([1, 2]), 2)",
    )
    shown = workshop.proofstone(root, "check").stdout
    assert "- self.assertEqual(total([1, 2]), 3)" in shown
    assert "+ self.assertEqual(total([1, 2]), 2)" in shown


@pytest.mark.ci
def test_a_version_bump_beside_the_runners_configuration_is_no_edit_of_it(workshop: Workshop) -> None:
    files = {"sums.py": WRONG, "test_sums.py": FOR_PYTEST, "pyproject.toml": VERSION.format("1", "-q")}
    root = workshop.repo(files)
    workshop.write(root, {"sums.py": RIGHT, "pyproject.toml": VERSION.format("2", "-q")})
    assert_passed(workshop.check(root))


def test_an_edited_runners_configuration_is_tried_in_its_old_form(workshop: Workshop) -> None:
    liar = "def pytest_pyfunc_call(pyfuncitem):\n    return True\n"
    files = {"sums.py": WRONG, "test_sums.py": FOR_PYTEST, "pyproject.toml": VERSION.format("1", "-q")}
    root = workshop.repo({**files, "helpful.py": liar})
    workshop.write(root, {"sums.py": WRONG + "\n", "pyproject.toml": VERSION.format("1", "-q -p helpful")})
    assert_failed(workshop.check(root), "edited-expectation")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("config", "source", "rule"),
    [
        ('lint.ignore = ["F841"]\n', "def f():\n    unused = 1\n", "weakened-configuration"),
        ("", "def f():\n    unused = 1  # noqa\n", "blanket-suppression"),
        pytest.param("", "# ruff: noqa\ndef f():\n    unused = 1\n", "blanket-suppression", marks=pytest.mark.sweep),
        pytest.param("", "def f():\n    unused = 1  # noqa: F841\n", None, marks=pytest.mark.sweep),
        pytest.param('lint.ignore = ["E501"]\n', "def f():\n    return 1\n", None, marks=pytest.mark.sweep),
    ],
)
def test_what_was_quieted_is_heard_again(workshop: Workshop, config: str, source: str, rule: str | None) -> None:
    root = workshop.repo({"sums.py": RIGHT, "test_sums.py": TEST, "ruff.toml": "line-length = 100\n"})
    workshop.write(root, {"more.py": source, "ruff.toml": "line-length = 100\n" + config})
    run = workshop.check(root)
    assert_failed(run, rule) if rule else assert_passed(run)
    if rule:
        assert_passed(workshop.check(root, "--accept", f"{rule}=agreed with the team", "--accepted-by", "Ada"))


@pytest.mark.ci
def test_what_a_moved_file_always_did_is_not_held_against_the_move(workshop: Workshop) -> None:
    daemon = "import os\n\n\ndef leave(code):\n    os._exit(code)\n\n\n" + RIGHT
    root = workshop.repo({"tests/__init__.py": "", "sums.py": daemon, "tests/test_sums.py": TEST})
    workshop.git(root, "mv", "sums.py", "totals.py")
    workshop.write(root, {"sums.py": "from totals import total\n\n__all__ = ['total']\n"})
    run = workshop.check(root)
    assert "hard-exit" not in {one.rule for one in run.report.findings if one.severity != "minor"}
    assert_passed(run)


@pytest.mark.sweep
def test_a_word_that_was_given_once_does_not_stand_for_ever(workshop: Workshop, root: Path) -> None:
    workshop.write(root, {"tests/test_sums.py": WEAKER})
    assert_passed(workshop.check(root, "--accept-test-changes", "the rule was changed", "--accepted-by", "Ada"))
    assert_failed(workshop.check(root), "edited-expectation")


PADDING = "# " + "x" * 400 + "\n"
"""With it, a file of tests is the same file wherever it moves and whatever line of it is edited."""


@pytest.mark.ci
def test_an_expectation_that_is_edited_while_its_file_moves_is_seen(workshop: Workshop) -> None:
    root = workshop.repo({"conftest.py": "", "sums.py": WRONG, "tests/test_sums.py": FOR_PYTEST + PADDING})
    workshop.git(root, "mv", "tests/test_sums.py", "tests/test_totals.py")
    workshop.write(root, {"tests/test_totals.py": FOR_PYTEST.replace("== 3", "== 2") + PADDING})
    run = workshop.check(root)
    assert_failed(run, "edited-expectation")
    assert run.json["edited"] == ["tests/test_totals.py::test_total"]


@pytest.mark.ci
def test_a_folder_of_tests_that_only_moves_alarms_nobody(workshop: Workshop) -> None:
    files = {"tests/__init__.py": "", "tests/unit/__init__.py": "X = 1\n", "tests/unit/test_sums.py": TEST + PADDING}
    root = workshop.repo({"sums.py": RIGHT, **files})
    workshop.git(root, "mv", "tests/unit", "tests/fast")
    workshop.write(root, {"sums.py": RIGHT.replace("return sum(items)", "found = sum(items)\n    return found")})
    assert_passed(workshop.check(root))


def test_a_test_that_becomes_a_link_to_a_weaker_one_is_seen(workshop: Workshop, root: Path) -> None:
    workshop.write(root, {"checks/cases.py": WEAKER})
    (root / "tests/test_sums.py").unlink()
    (root / "tests/test_sums.py").symlink_to("../checks/cases.py")
    assert_failed(workshop.check(root), "edited-expectation")


def test_a_line_of_a_test_excuses_no_product(workshop: Workshop, root: Path) -> None:
    workshop.write(root, {"tests/test_sums.py": f"import pytest  # noqa: F401\n{TEST}"})
    workshop.commit(root)
    workshop.write(root, {"tests/test_sums.py": TEST, "sums.py": f"import pytest  # noqa: F401\n{RIGHT}"})
    assert_failed(workshop.check(root), "test-framework-import")
