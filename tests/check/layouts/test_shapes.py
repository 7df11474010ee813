"""Repositories of other shapes: several packages, none that is tested, tests that cannot be loaded."""

from __future__ import annotations

import pytest

from proofstone.common.models import Outcome, Verdict
from tests.check.layouts.projects import GOOD, IGNORED, WRONG, project
from tests.needs import needs
from tests.workshop import Workshop

pytestmark = needs("git", "bwrap")


@pytest.fixture
def monorepo(workshop: Workshop) -> dict[str, str]:
    """Two packages, each with its own manifest and tests, and nothing at the root."""
    return {
        ".gitignore": IGNORED,
        **project("setuptools", ".", name="sums", below="packages/sums/"),
        **project("hatch", ".", name="products", below="packages/products/"),
    }


@pytest.mark.ci
def test_each_package_of_a_monorepo_is_tested_on_its_own(workshop: Workshop, monorepo: dict[str, str]) -> None:
    root = workshop.repo(monorepo)
    workshop.write(root, {"packages/products/products/numbers.py": WRONG})
    done = workshop.check(root)
    assert done.report.outcome is Outcome.FAILED
    assert done.report.regressions == ("packages/products/tests/test_products.py::test_double",)
    tested = {line.name: line.verdict for line in done.report.checks if line.kind == "tests"}
    assert sorted(tested.values()) == [Verdict.FAIL, Verdict.PASS], tested


def test_a_repair_in_one_package_of_a_monorepo_passes(workshop: Workshop, monorepo: dict[str, str]) -> None:
    root = workshop.repo({**monorepo, "packages/sums/sums/numbers.py": WRONG})
    workshop.write(root, {"packages/sums/sums/numbers.py": GOOD})
    done = workshop.check(root)
    assert done.report.outcome is Outcome.PASSED, done.report.reason
    assert done.report.fixed == ("packages/sums/tests/test_sums.py::test_double",)


def test_without_any_test_a_change_is_unverifiable(workshop: Workshop) -> None:
    files = project("setuptools", ".")
    del files["tests/test_sums.py"]
    files["pyproject.toml"] = files["pyproject.toml"].partition("[tool.pytest")[0]
    root = workshop.repo(files)
    workshop.write(root, {"sums/numbers.py": WRONG})
    done = workshop.check(root)
    assert (done.exit, done.report.outcome) == (1, Outcome.UNVERIFIABLE)
    assert "nothing exercised the change" in done.report.reason


def test_where_nothing_can_even_be_loaded_the_row_says_so(workshop: Workshop) -> None:
    root = workshop.repo({"page.tmpl": "a\n"})
    workshop.write(root, {"page.tmpl": "b\n"})
    done = workshop.check(root)
    assert done.report.outcome is Outcome.UNVERIFIABLE
    assert done.check("tier3-infeasible").verdict == "unverifiable"


def test_every_changed_script_is_loaded_not_only_the_first(workshop: Workshop) -> None:
    root = workshop.repo({"a.js": "let a = 1\n", "b.cjs": "let b = 1\n"})
    workshop.write(root, {"a.js": "let a = 2\n", "b.cjs": "let b = 2; return = 3\n"})
    assert workshop.check(root).check("load:node").verdict == "fail"


@pytest.mark.ci
def test_tests_that_cannot_be_loaded_on_either_tree_prove_nothing(workshop: Workshop) -> None:
    """The same failure on both trees is no regression, but where no test passes nothing speaks for the change."""
    files = project("setuptools", ".") | {
        ".gitignore": f"{IGNORED}_version.py\n",
        "sums/numbers.py": f"from sums._version import version\n\n{GOOD}",
    }
    root = workshop.repo(files)
    workshop.write(root, {"sums/_version.py": 'version = "1"\n'})
    workshop.write(root, {"sums/numbers.py": f"from sums._version import version\n\n{WRONG}"})
    done = workshop.check(root)
    assert done.report.outcome is Outcome.UNVERIFIABLE
    assert "no test passes, neither here nor on the base" in done.report.reason
    assert "No module named 'sums._version'" in done.report.reason
    assert any('include = ["sums/_version.py"]' in note for note in done.report.notes)


def test_a_generated_file_that_is_ignored_can_be_included(workshop: Workshop) -> None:
    files = project("setuptools", ".") | {
        ".gitignore": f"{IGNORED}_version.py\n",
        "proofstone.toml": '[environment]\ninclude = ["sums/_version.py"]\n',
        "sums/numbers.py": f"from sums._version import version\n\n{WRONG}",
    }
    workshop.trust_everything()
    root = workshop.repo(files)
    workshop.write(root, {"sums/_version.py": 'version = "1"\n'})
    workshop.write(root, {"sums/numbers.py": f"from sums._version import version\n\n{GOOD}"})
    done = workshop.check(root)
    assert done.report.outcome is Outcome.PASSED, done.report.reason
    assert done.report.fixed == ("tests/test_sums.py::test_double",)


def test_a_repair_in_a_module_with_doctests_is_no_edited_test(workshop: Workshop) -> None:
    """The doctest stands in the file that the change repairs: the old file is the bug, not an older test."""
    documented = '"""Numbers.\n\n>>> double(4)\n8\n"""\n\n\n'
    files = project("setuptools", ".", f"{documented}{WRONG}")
    files["pyproject.toml"] += 'addopts = ["--doctest-modules"]\n'
    files["pyproject.toml"] = files["pyproject.toml"].replace('["tests"]', '["tests", "sums"]')
    root = workshop.repo(files)
    workshop.write(root, {"sums/numbers.py": f"{documented}{GOOD}"})
    done = workshop.check(root)
    assert done.report.outcome is Outcome.PASSED, done.report.reason
    assert done.report.fixed == ("sums/numbers.py::sums.numbers", "tests/test_sums.py::test_double")


def test_a_type_checker_that_is_not_installed_is_named(workshop: Workshop) -> None:
    files = project("setuptools", ".") | {"mypy.ini": "[mypy]\n"}
    root = workshop.repo(files)
    made = workshop.run(root, "python3", "-m", "venv", "--without-pip", ".venv")
    assert made.returncode == 0, made.stderr
    workshop.write(root, {"sums/numbers.py": f"{GOOD}\n"})
    assert "mypy is not installed" in workshop.check(root).check("types:mypy").reason
