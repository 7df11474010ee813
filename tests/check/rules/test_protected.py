"""Which files decide what counts as proof, and which part of a mixed file does."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from proofstone.check.rules.protected import (
    MIXED_FILES,
    PROTECTED_NAMES,
    PROTECTED_ROOT_PATHS,
    ProtectedRole,
    find_changed_roles,
    find_roles,
)
from tests.rows import each_row

TESTS, RUNNER, LINT, BUILD, CI, GIT, SETTINGS = ProtectedRole

ROLES: list[tuple[str, set[ProtectedRole]]] = [
    ("tests/test_a.py", {TESTS}),
    ("tests/data/expected.json", {TESTS}),
    ("pkg/server_test.go", {TESTS}),
    ("pkg/testdata/golden.txt", {TESTS}),
    ("tests/api.rs", {TESTS}),
    ("src/test/java/org/demo/AppTest.java", {TESTS}),
    ("src/test/resources/data.xml", {TESTS}),
    ("src/button.test.tsx", {TESTS}),
    ("src/__tests__/button.ts", {TESTS}),
    ("src/__snapshots__/button.test.tsx.snap", {TESTS}),
    ("src/__mocks__/fs.js", {TESTS}),
    ("crates/a/src/snapshots/a__b.snap", {TESTS}),
    ("spec/models/user_spec.rb", {TESTS}),
    ("integration-tests/run.sh", {TESTS}),
    ("features/login.feature", {TESTS}),
    ("conftest.py", {TESTS, RUNNER}),
    ("tests/conftest.py", {TESTS, RUNNER}),
    ("pytest.ini", {RUNNER}),
    (".coveragerc", {RUNNER}),
    ("src/sitecustomize.py", {RUNNER}),
    ("jest.config.ts", {RUNNER}),
    ("packages/a/vitest.config.mts", {RUNNER}),
    ("vite.config.ts", {RUNNER, BUILD}),
    (".mocharc.json", {RUNNER}),
    (".nycrc", {RUNNER}),
    ("karma.conf.js", {RUNNER}),
    (".npmrc", {RUNNER, BUILD}),
    (".config/nextest.toml", {RUNNER}),
    (".cargo/config.toml", {RUNNER, BUILD}),
    ("phpunit.xml.dist", {RUNNER}),
    ("ruff.toml", {LINT}),
    (".flake8", {LINT}),
    ("mypy.ini", {LINT}),
    ("pyrightconfig.json", {LINT}),
    (".eslintrc", {LINT}),
    (".eslintrc.cjs", {LINT}),
    ("eslint.config.mjs", {LINT}),
    ("tsconfig.json", {LINT}),
    ("packages/a/tsconfig.build.json", {LINT}),
    ("biome.json", {LINT}),
    (".golangci.yml", {LINT}),
    ("clippy.toml", {LINT}),
    (".rubocop.yml", {LINT}),
    (".prettierrc.yaml", {LINT}),
    ("Makefile", {BUILD}),
    ("GNUmakefile", {BUILD}),
    ("justfile", {BUILD}),
    ("Taskfile.yml", {BUILD}),
    ("noxfile.py", {BUILD}),
    ("tasks.py", {BUILD}),
    ("build.rs", {BUILD}),
    ("Rakefile", {BUILD}),
    ("lib/CMakeLists.txt", {BUILD}),
    ("app/build.gradle.kts", {BUILD}),
    ("pom.xml", {BUILD}),
    (".github/workflows/ci.yml", {CI}),
    (".gitlab-ci.yml", {CI}),
    (".circleci/config.yml", {CI}),
    ("Jenkinsfile", {CI}),
    ("azure-pipelines.yml", {CI}),
    (".pre-commit-config.yaml", {CI}),
    (".husky/pre-commit", {CI}),
    ("docs/.gitattributes", {GIT}),
    (".gitignore", {GIT}),
    (".gitmodules", {GIT}),
    ("proofstone.toml", {SETTINGS}),
    ("pyproject.toml", {RUNNER, LINT, BUILD, CI, SETTINGS}),
    ("setup.cfg", {RUNNER, LINT, BUILD}),
    ("tox.ini", {RUNNER, LINT, BUILD}),
    ("web/package.json", {RUNNER, LINT, BUILD, CI}),
    ("Cargo.toml", {RUNNER, LINT, BUILD}),
]

FREE = [
    "src/app.py",
    "src/demo/testing/__init__.py",
    "src/demo/testing.py",
    "src/demo/latest.py",
    "src/contest.py",
    "src/attest/run.py",
    "worker/tasks.py",
    "src/commands/build.rs",
    "setup.py",
    "requirements.txt",
    "package-lock.json",
    "uv.lock",
    "go.mod",
    "Cargo.lock",
    "README.md",
    "docs/testing.md",
    "models/weights.pth",
    "examples/.github.md",
    "src/makefile.py.txt/readme",
    "src/github/workflows/run.py",
    "src/jest.ts",
    "src/eslint.ts",
    "src/package.ts",
]


@each_row(("path", "expected"), ROLES)
def test_a_file_has_these_roles(path: str, expected: set[ProtectedRole]) -> None:
    assert find_roles(path) == expected


@each_row("path", FREE)
def test_production_code_documents_and_dependencies_have_no_role(path: str) -> None:
    assert find_roles(path) == frozenset()
    assert find_changed_roles(path, b"a", b"b") == frozenset()


@each_row(("path", "expected"), [case for case in ROLES if case[0].rpartition("/")[2].lower() not in MIXED_FILES])
def test_any_edit_of_a_file_of_its_own_counts_and_so_do_adding_and_deleting(
    path: str, expected: set[ProtectedRole]
) -> None:
    assert find_changed_roles(path, b"a", b"b") == expected
    assert find_changed_roles(path, None, b"") == expected
    assert find_changed_roles(path, b"", None) == expected
    assert find_changed_roles(path, b"same", b"same") == frozenset()


def test_patterns_are_in_lower_case_as_they_are_matched_against_lower_case() -> None:
    for table in (PROTECTED_NAMES, PROTECTED_ROOT_PATHS):
        for patterns in table.values():
            assert [pattern for pattern in patterns if pattern != pattern.lower()] == []
    assert [name for name in MIXED_FILES if name != name.lower()] == []


PYPROJECT = """
[build-system]
requires = ["hatchling"]
[project]
name = "demo"
version = "1.0"
dependencies = ["a"]
[tool.pytest.ini_options]
addopts = "-ra"
[tool.mypy]
strict = true
[tool.hatch.envs.test]
dependencies = ["pytest"]
[tool.hatch.envs.test.scripts]
run = "pytest"
[tool.proofstone.check]
optional = []
"""
PYPROJECT_EDITS: list[tuple[str, str, set[ProtectedRole]]] = [
    ('version = "1.0"', 'version = "1.1"', set()),
    ('dependencies = ["a"]', 'dependencies = ["a", "b"]', set()),
    ('dependencies = ["pytest"]', 'dependencies = ["pytest", "b"]', set()),
    ("[tool.mypy]", "[tool.hatch.envs.docs]\ndependencies = ['mkdocs']\n[tool.mypy]", set()),
    ("[project]", "# a comment\n[project]", set()),
    ("[project]", "[tool.poetry.group.dev.dependencies]\npytest = '*'\n[project]", set()),
    ("[tool.mypy]", "[project.scripts]\ndemo = 'demo:main'\n[tool.mypy]", set()),
    ('addopts = "-ra"', 'addopts = "-k nothing"', {RUNNER}),
    ("[tool.mypy]", "[tool.coverage.run]\nomit = ['*']\n[tool.mypy]", {RUNNER}),
    ("[tool.mypy]", "[project.entry-points.pytest11]\ndemo = 'demo.plugin'\n[tool.mypy]", {RUNNER}),
    ("strict = true", "strict = false", {LINT}),
    ("strict = true", "strict = 1", {LINT}),
    ("[tool.mypy]\nstrict = true", "", {LINT}),
    ("[tool.mypy]", "[tool.ruff.lint]\nignore = ['F']\n[tool.mypy]", {LINT}),
    ('run = "pytest"', 'run = "true"', {BUILD}),
    ("[tool.mypy]", "[tool.poe.tasks]\ntest = 'true'\n[tool.mypy]", {BUILD}),
    ("[tool.mypy]", "[tool.tox.env_run_base]\ncommands = []\n[tool.mypy]", {BUILD}),
    ("[tool.mypy]", "[tool.pdm.scripts]\ntest = 'true'\n[tool.mypy]", {BUILD}),
    ("optional = []", "optional = ['tests']", {SETTINGS}),
]


@each_row(("text", "instead", "expected"), PYPROJECT_EDITS)
def test_of_pyproject_only_the_sections_of_a_role_count(text: str, instead: str, expected: set[ProtectedRole]) -> None:
    assert text in PYPROJECT
    edited = PYPROJECT.replace(text, instead, 1)
    assert find_changed_roles("pyproject.toml", PYPROJECT.encode(), edited.encode()) == expected


PACKAGE: dict[str, object] = {
    "name": "demo",
    "version": "1.0.0",
    "scripts": {"test": "jest"},
    "dependencies": {"a": "^1"},
    "jest": {"testMatch": ["**/*.test.js"]},
    "eslintConfig": {"rules": {"eqeqeq": "error"}},
}
PACKAGE_EDITS: list[tuple[dict[str, object], set[ProtectedRole]]] = [
    ({"version": "1.0.1"}, set()),
    ({"dependencies": {"a": "^1", "b": "^2"}}, set()),
    ({"devDependencies": {"jest": "^30"}}, set()),
    ({"scripts": {"test": "true"}}, {BUILD, RUNNER}),
    ({"jest": {"testMatch": []}}, {RUNNER}),
    ({"nyc": {"lines": 0}}, {RUNNER}),
    ({"eslintConfig": {}}, {LINT}),
    ({"prettier": {"semi": False}}, {LINT}),
    ({"lint-staged": {}}, {CI}),
]


@each_row(("edit", "expected"), PACKAGE_EDITS)
def test_of_package_json_only_the_sections_of_a_role_count(
    edit: dict[str, object], expected: set[ProtectedRole]
) -> None:
    old, new = json.dumps(PACKAGE, indent=2).encode(), json.dumps(PACKAGE | edit).encode()
    assert find_changed_roles("web/package.json", old, new) == expected


INI = """
[metadata]
version = 1
[flake8]
ignore = E1
[tool:pytest]
addopts = -ra
[testenv]
deps = a
commands = pytest
"""
INI_EDITS: list[tuple[str, str, set[ProtectedRole]]] = [
    ("version = 1", "version = 2", set()),
    ("deps = a", "deps =\n  a\n  b", set()),
    ("ignore = E1", "ignore = E,F", {LINT}),
    ("[flake8]", "[mypy-demo.*]\nignore_errors = true\n[flake8]", {LINT}),
    ("addopts = -ra", "addopts = -k none", {RUNNER}),
    ("[flake8]", "[coverage:run]\nomit = *\n[flake8]", {RUNNER}),
    ("[flake8]", "[options.entry_points]\npytest11 =\n  demo = demo.plugin\n[flake8]", {RUNNER}),
    ("[flake8]", "[options.entry_points]\nconsole_scripts =\n  demo = demo:main\n[flake8]", set()),
    ("commands = pytest", "commands = true", {BUILD}),
]


@each_row("path", ["setup.cfg", "tox.ini"])
@each_row(("text", "instead", "expected"), INI_EDITS)
def test_of_ini_files_only_the_sections_of_a_role_count(
    path: str, text: str, instead: str, expected: set[ProtectedRole]
) -> None:
    assert text in INI
    assert find_changed_roles(path, INI.encode(), INI.replace(text, instead, 1).encode()) == expected


CARGO_EDITS: list[tuple[str, set[ProtectedRole]]] = [
    ('[dependencies]\nserde = "1"\n', set()),
    ("[profile.release]\nlto = true\n", set()),
    ("[profile.test]\noverflow-checks = false\n", {RUNNER}),
    ("[lib]\ntest = false\n", {RUNNER}),
    ("[lints.clippy]\nall = 'allow'\n", {LINT}),
]


@each_row(("added", "expected"), CARGO_EDITS)
def test_of_cargo_toml_only_the_sections_of_a_role_count(added: str, expected: set[ProtectedRole]) -> None:
    old = '[package]\nname = "demo"\nversion = "0.1.0"\n'
    assert find_changed_roles("Cargo.toml", old.encode(), (old + added).encode()) == expected


def test_an_added_or_deleted_mixed_file_counts_with_the_roles_of_the_sections_it_has() -> None:
    assert find_changed_roles("pyproject.toml", None, PYPROJECT.encode()) == {RUNNER, LINT, BUILD, SETTINGS}
    assert find_changed_roles("pyproject.toml", PYPROJECT.encode(), None) == {RUNNER, LINT, BUILD, SETTINGS}
    assert find_changed_roles("package.json", None, b'{"name": "demo"}') == frozenset()


@each_row("path", ["pyproject.toml", "setup.cfg", "tox.ini", "package.json", "Cargo.toml"])
@each_row("broken", [b"][", b"\xff\xfe\x00", b"[" * 50_000, b'"text"'])
def test_a_mixed_file_that_cannot_be_read_counts_whole(path: str, broken: bytes) -> None:
    assert find_changed_roles(path, b"", broken) == find_roles(path)
    assert find_changed_roles(path, broken, b"") == find_roles(path)


def test_a_byte_order_mark_makes_no_difference() -> None:
    for path, text in (("pyproject.toml", PYPROJECT), ("package.json", json.dumps(PACKAGE)), ("setup.cfg", INI)):
        assert find_changed_roles(path, text.encode(), text.encode("utf-8-sig")) == frozenset()


def test_a_mixed_file_among_the_tests_is_a_test_whatever_part_of_it_changes() -> None:
    path = "tests/fixtures/demo/package.json"
    assert find_changed_roles(path, b'{"version": "1"}', b'{"version": "2"}') == {TESTS}
    assert find_changed_roles(path, b"{}", b'{"scripts": {}}') == {TESTS, BUILD, RUNNER}


@given(st.text(max_size=40), st.none() | st.binary(max_size=40), st.none() | st.binary(max_size=40))
def test_a_change_never_has_a_role_that_the_path_has_not(path: str, old: bytes | None, new: bytes | None) -> None:
    assert find_changed_roles(path, old, new) <= find_roles(path)


@given(st.sampled_from(sorted(MIXED_FILES)), st.none() | st.binary(max_size=60), st.none() | st.binary(max_size=60))
def test_any_bytes_in_a_mixed_file_are_judged(path: str, old: bytes | None, new: bytes | None) -> None:
    assert find_changed_roles(path, old, new) == find_changed_roles(path, new, old)
