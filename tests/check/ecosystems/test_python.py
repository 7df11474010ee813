"""Python projects: which runner, which type checker, which linter, by which file."""

from __future__ import annotations

from tests.check.ecosystems.trees import Files, discovery_of, names_of, spec_of
from tests.rows import each_row

TEST = {"tests/test_a.py": "def test_a(): pass\n"}
UNITTEST = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n"

PYTEST_EVIDENCE: dict[str, tuple[Files, str]] = {
    "pytest.ini": ({"pytest.ini": "[pytest]\n"}, "pytest.ini"),
    "pyproject table": ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, "pyproject.toml [tool.pytest]"),
    "setup.cfg": ({"setup.cfg": "[tool:pytest]\n"}, "setup.cfg [tool:pytest]"),
    "tox.ini section": ({"tox.ini": "[pytest]\naddopts=-q\n"}, "tox.ini [pytest]"),
    "conftest": ({**TEST, "tests/conftest.py": ""}, "tests/conftest.py"),
    "extra": (
        {**TEST, "pyproject.toml": "[project.optional-dependencies]\ntest=['pytest>=8']\n"},
        "pyproject.toml [project.optional-dependencies.test]",
    ),
    "dependency group": (
        {**TEST, "pyproject.toml": "[dependency-groups]\ndev=['ruff', {include-group='x'}, 'pytest-cov']\n"},
        "pyproject.toml [dependency-groups.dev]",
    ),
    "poetry group": (
        {**TEST, "pyproject.toml": "[tool.poetry.group.dev.dependencies]\npytest = '^8'\n"},
        "pyproject.toml [tool.poetry.group.dev.dependencies]",
    ),
    "pipfile": ({**TEST, "Pipfile": "[dev-packages]\npytest = '*'\n"}, "Pipfile [dev-packages]"),
    "requirements": ({**TEST, "requirements-dev.txt": "# x\npytest==8.0\n"}, "requirements-dev.txt names pytest"),
    "requirements folder": (
        {**TEST, "setup.py": "", "requirements/test.txt": "pytest\n"},
        "requirements/test.txt names pytest",
    ),
    "tox deps": ({**TEST, "tox.ini": "[testenv]\ndeps =\n    pytest\n"}, "tox.ini names pytest"),
    "noxfile": ({**TEST, "noxfile.py": "session.install('pytest')"}, "noxfile.py names pytest"),
    "setup.py": ({**TEST, "setup.py": "setup(extras_require={'t': ['pytest']})"}, "setup.py names pytest"),
    "import": ({"tests/test_a.py": "import pytest\n"}, "tests/test_a.py imports pytest"),
    "bare asserts": (
        {"tests/test_calc.py": "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n", "calc.py": ""},
        "tests/test_calc.py: test_add is a test function with bare asserts",
    ),
    "bare asserts on one line": (
        {"test_calc.py": "def test_add(): assert True\n"},
        "test_calc.py: test_add is a test function with bare asserts",
    ),
    "bare asserts in a class": (
        {"calc_test.py": "class TestAdd:\n    x = 1\n\n    def test_two(self):\n        assert self.x\n"},
        "calc_test.py: test_two is a test function with bare asserts",
    ),
    "bare asserts beside unittest": (
        {"test_a.py": UNITTEST, "test_b.py": "async def test_b():\n    assert True\n"},
        "test_b.py: test_b is a test function with bare asserts",
    ),
}


@each_row(("files", "evidence"), PYTEST_EVIDENCE.values())
def test_pytest_is_found_by_its_evidence(files: Files, evidence: str) -> None:
    spec = spec_of(files, "tests:pytest")
    assert spec.evidence == evidence
    assert spec.argv == ("{python}", "-m", "pytest")
    assert spec.required


NO_TESTS: dict[str, Files] = {
    "a project without tests": {"pyproject.toml": "[project]\nname='a'\n", "a.py": ""},
    "a dependency on pytest but no test file": {
        "pyproject.toml": "[project]\ndependencies=['pytest']\n",
        "a.py": "",
    },
    "a package whose name only starts alike": {**TEST, "requirements.txt": "pytestify\n"},
    "a manifest in a fixture": {"tests/fixtures/p/pyproject.toml": "[tool.pytest.ini_options]\n"},
    "a vendored project": {"vendor/p/pytest.ini": "[pytest]\n"},
    "a hidden folder": {".cache/p/pytest.ini": "[pytest]\n"},
    "a function without an assert": {"test_a.py": "def test_connection(host):\n    return connect(host)\n"},
    "an assert without a test function": {"test_a.py": "def check():\n    assert True\n"},
    "a file that pytest does not collect": {"testing.py": "def test_a():\n    assert True\n"},
}


@each_row("files", NO_TESTS.values())
def test_pytest_is_never_guessed(files: Files) -> None:
    found = discovery_of(files)
    assert not [spec for spec in found.specs if spec.name.startswith("tests:")]
    assert any("no tests were found" in note for note in found.notes)


def test_what_was_concluded_and_from_what_is_in_the_notes() -> None:
    found = discovery_of({"tests/test_calc.py": "def test_add(): assert True\n"})
    assert found.notes == (
        "tests:pytest is concluded from tests/test_calc.py: test_add is a test function with bare asserts; no "
        "configuration names a test runner",
    )
    suite = UNITTEST + "def test_suite():\n    assert True\n"
    assert names_of({"test_a.py": suite}) == {"tests:unittest"}


UNITTEST_RUNS: dict[str, tuple[Files, list[str]]] = {
    "tests is a package": ({"tests/__init__.py": "", "tests/test_a.py": UNITTEST}, ["-s", "tests", "-t", "."]),
    "tests is a folder": ({"tests/test_a.py": UNITTEST}, ["-s", "tests", "-t", "tests"]),
    "tests beside the code": ({"test_a.py": UNITTEST, "a.py": ""}, ["-s", ".", "-t", "."]),
    "tests inside the package": (
        {"a/__init__.py": "", "a/tests/__init__.py": "", "a/tests/test_a.py": UNITTEST},
        ["-s", "a/tests", "-t", "."],
    ),
    "named the other way": ({"a_test.py": UNITTEST}, ["-s", ".", "-t", ".", "-p", "*_test.py"]),
}


@each_row(("files", "arguments"), UNITTEST_RUNS.values())
def test_unittest_starts_where_discovery_can_import(files: Files, arguments: list[str]) -> None:
    spec = spec_of(files, "tests:unittest")
    assert spec.argv == ("{python}", "{probes}/proofstone_unittest.py", "discover", *arguments)


def test_two_top_levels_are_two_runs_with_names_of_their_own() -> None:
    files = {"a/test_a.py": UNITTEST, "b/test_b.py": UNITTEST}
    assert names_of(files) == {"tests:unittest:a/test*.py", "tests:unittest:b/test*.py"}


def test_django_tests_run_by_manage_py() -> None:
    files = {"manage.py": "", "app/tests.py": "from django.test import TestCase\n"}
    assert spec_of(files, "tests:django").argv == ("{python}", "manage.py", "test")


CHECKERS: dict[str, tuple[Files, str, tuple[str, ...]]] = {
    "mypy with files": ({"pyproject.toml": "[tool.mypy]\nfiles=['src']\n"}, "types:mypy", ()),
    "mypy of a src layout": ({"mypy.ini": "[mypy]\n", "src/a/__init__.py": ""}, "types:mypy", ("src",)),
    "mypy of a flat layout": (
        {"setup.cfg": "[mypy]\n", "a/__init__.py": "", "tests/__init__.py": ""},
        "types:mypy",
        ("a",),
    ),
    "pyright": ({"pyrightconfig.json": "{}", "setup.py": ""}, "types:pyright", ("pyright",)),
    "ruff.toml": ({"ruff.toml": ""}, "lint:ruff", ("{changed}",)),
    "ruff table": ({"pyproject.toml": "[tool.ruff]\n"}, "lint:ruff", ("{changed}",)),
    "flake8 file": ({".flake8": "[flake8]\n"}, "lint:flake8", ("{changed}",)),
    "flake8 in tox.ini": ({"tox.ini": "[flake8]\n"}, "lint:flake8", ("{changed}",)),
}


@each_row(("files", "name", "tail"), CHECKERS.values())
def test_types_and_lint_are_optional_and_follow_the_configuration(
    files: Files, name: str, tail: tuple[str, ...]
) -> None:
    spec = spec_of(files, name)
    assert not spec.required
    assert spec.argv[len(spec.argv) - len(tail) :] == tail
    assert ("{changed}" in spec.argv) == bool(spec.suffixes)


def test_a_configured_root_collects_packages_without_a_configuration() -> None:
    package = {
        "packages/a/pyproject.toml": "[project]\nname='a'\n",
        "packages/a/tests/test_a.py": "import pytest\n",
    }
    assert names_of({**package, "pytest.ini": "[pytest]\n"}) == {"tests:pytest"}
    assert names_of({**package, "pyproject.toml": "[tool.pytest.ini_options]\ntestpaths=['tests']\n"}) == {
        "tests:pytest",
        "tests:pytest@packages/a",
    }


def test_a_package_below_a_root_of_another_language_runs_in_its_directory() -> None:
    files = {"README.md": "", "backend/requirements.txt": "pytest\n", "backend/tests/test_a.py": ""}
    spec = spec_of(files, "tests:pytest@backend")
    assert spec.cwd == "backend"
    assert spec.evidence == "backend/requirements.txt names pytest"


def test_ruff_at_the_root_looks_at_packages_below_as_well() -> None:
    files = {"ruff.toml": "", "p/pyproject.toml": "[tool.ruff]\n[tool.mypy]\n", "p/p/__init__.py": ""}
    assert names_of(files) == {"lint:ruff", "types:mypy@p"}
