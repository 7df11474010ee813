"""The files that decide what counts as proof: tests, how they run, lint, build, CI, git and settings.

A change that loosens one of them can pass without doing its work, so a task has to declare it. A file counts by its
name, in any folder, or by its folder at the root. Some files also hold things that are unrelated to proof, such as a
version or dependencies: only the sections in `MIXED` count there, and a file that cannot be read counts as a whole.

Left out on purpose: code files that mostly describe a package (`setup.py`, `mix.exs`, `*.gemspec`), lock files and
lists of dependencies. They are read when an environment is set up, and that uses the base.
"""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase, translate
from typing import Final

from proofstone.common.parsing import parse_ini
from proofstone.common.risk import is_test_path


class ProtectedRole(StrEnum):
    """What a protected file decides."""

    TESTS = "tests"
    """Tests and what they compare with: fixtures, snapshots, test data."""
    RUNNER = "runner"
    """How tests are found, loaded, run and measured."""
    LINT = "lint"
    """What linters, formatters and type checkers examine."""
    BUILD = "build"
    """What a build or a named task does."""
    CI = "ci"
    """What runs before a change is accepted: pipelines and hooks."""
    GIT = "git"
    """Which files git tracks, and how."""
    SETTINGS = "settings"
    """How Proofstone itself works."""


PROTECTED_NAMES: Final[Mapping[ProtectedRole, tuple[str, ...]]] = {
    ProtectedRole.TESTS: (
        "*.snap", "*.ambr", "*.feature", "*.bats",
    ),
    ProtectedRole.RUNNER: (
        # Python
        "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.toml", ".coveragerc",
        ".coveragerc.toml", "unittest.cfg", "nose2.cfg", ".noserc", ".stestr.conf", ".testr.conf",
        "sitecustomize.py", "usercustomize.py",
        # JavaScript and TypeScript. A Babel or Vite configuration transforms tests before they run.
        "jest.config.*", "jest.*.config.*", "jest-*.json", "jest.setup.*", "jest-setup.*", "jest.preset.*",
        "setuptests.*", "vitest.config.*", "vitest.*.config.*", "vitest.workspace.*", "vitest.setup.*",
        "vitest-setup.*", "vite.config.*", "babel.config.*", ".babelrc*", ".mocharc*", "mocha.opts", ".nycrc*",
        "nyc.config.*", ".c8rc*", "karma.conf*.*", "ava.config.*", ".taprc", "jasmine.json", "cypress.config.*",
        "cypress.json", "playwright.config.*", "playwright-*.config.*", "wdio.conf*.*", "web-test-runner.config.*",
        "testem.*", "protractor.conf*.*", ".npmrc", "stryker.conf*.*", "stryker.config.*",
        # Others
        "nextest.toml", "phpunit.xml*", "phpunit.dist.xml", "codeception*.yml", ".rspec", ".simplecov", "cucumber.yml",
        "*.runsettings", "xunit.runner.json", "junit-platform.properties", "dart_test.yaml",
    ),
    ProtectedRole.LINT: (
        # Python
        "ruff.toml", ".ruff.toml", ".flake8", "mypy.ini", ".mypy.ini", "pyrightconfig.json", "pylintrc", ".pylintrc",
        "pylintrc.toml", ".pylintrc.toml", ".pydocstyle*", ".pycodestyle", ".isort.cfg", ".style.yapf", ".bandit",
        "bandit.y*ml", "ty.toml", "pyrefly.toml", ".pyre_configuration", "pytype.cfg", ".importlinter",
        # JavaScript and TypeScript
        ".eslintrc*", "eslint.config.*", ".eslintignore", "tsconfig*.json", "jsconfig*.json", "biome.json*",
        ".prettierrc*", "prettier.config.*", ".prettierignore", ".stylelintrc*", "stylelint.config.*",
        ".stylelintignore", ".jshintrc", ".jshintignore", ".xo-config*", ".oxlintrc.json", "tslint.json",
        ".flowconfig", "dprint.json*",
        # Others
        ".editorconfig", ".golangci.*", "staticcheck.conf", "revive.toml", "clippy.toml", ".clippy.toml",
        "rustfmt.toml", ".rustfmt.toml", "deny.toml", ".rubocop*.yml", "steepfile", ".clang-tidy", ".clang-format",
        ".cppcheck*", "checkstyle*.xml", "pmd*.xml", "spotbugs*.xml", "detekt*.yml", "stylecop.json", ".globalconfig",
        "phpstan*.neon*", "psalm*.xml*", "phpcs.xml*", ".phpcs.xml*", ".php-cs-fixer*", ".swiftlint.yml",
        "analysis_options.yaml", ".credo.exs", ".formatter.exs", ".scalafix.conf", ".scalafmt.conf", ".codespellrc",
        ".yamllint*", ".markdownlint*", ".hadolint.y*ml", ".shellcheckrc", ".sqlfluff",
    ),
    ProtectedRole.BUILD: (
        "makefile", "gnumakefile", "makefile.*", "*.mk", "justfile", ".justfile", "*.just", "taskfile*.y*ml",
        "noxfile.py", "dodo.py", "earthfile", "turbo.json", "nx.json", "lerna.json", ".npmrc", ".yarnrc*",
        ".pnpmfile.cjs", "vite.config.*", "rakefile", "*.rake", "build.gradle*", "settings.gradle*",
        "gradlew", "pom.xml", "mvnw", "build.xml", "build.sbt", "*.csproj", "*.fsproj",
        "*.vbproj", "directory.build.props", "directory.build.targets", "cmakelists.txt", "cmakepresets.json",
        "*.cmake", "meson.build", "meson.options", "meson_options.txt", "configure.ac", "sconstruct", "wscript",
        "build.bazel", "workspace.bazel", "module.bazel", ".bazelrc",
    ),
    ProtectedRole.CI: (
        ".gitlab-ci.yml", "jenkinsfile*", "azure-pipelines*.y*ml", ".travis.yml", "appveyor.yml", ".appveyor.yml",
        "bitbucket-pipelines.yml", ".drone.*", ".woodpecker.y*ml", ".cirrus.*", "cloudbuild.y*ml", "buildspec.y*ml",
        ".pre-commit-config.y*ml", ".pre-commit-hooks.y*ml", "lefthook.y*ml", ".lefthook.y*ml", ".lintstagedrc*",
        "lint-staged.config.*", "codecov.y*ml", ".codecov.y*ml", ".coveralls.yml", "sonar-project.properties",
    ),
    ProtectedRole.GIT: (".gitattributes", ".gitignore", ".gitmodules"),
    ProtectedRole.SETTINGS: ("proofstone.toml",),
}  # fmt: skip
"""Base names as patterns, in lower case."""

PROTECTED_ROOT_PATHS: Final[Mapping[ProtectedRole, tuple[str, ...]]] = {
    ProtectedRole.RUNNER: (".config/nextest.toml", ".cargo/config", ".cargo/config.toml"),
    # In other folders `tasks.py` and `build.rs` are usually production modules.
    ProtectedRole.BUILD: ("tasks.py", "build.rs", ".cargo/config", ".cargo/config.toml", ".mvn/*", ".yarn/releases/*",
                 ".yarn/plugins/*", "gradle/wrapper/*"),
    ProtectedRole.CI: (".github/*", ".gitlab/*", ".circleci/*", ".azure-pipelines/*", ".buildkite/*", ".woodpecker/*",
              ".semaphore/*", ".teamcity/*", ".forgejo/*", ".gitea/*", ".husky/*", ".githooks/*"),
}  # fmt: skip
"""Whole paths as patterns, in lower case; `*` also matches folders."""

TEST_FOLDERS: Final = re.compile(
    r"(?:^|/)(?:__snapshots__|__image_snapshots__|__mocks__|__fixtures__|e2e|cypress|test[-_]?data|test[-_]fixtures"
    r"|(?:unit|integration|functional|acceptance|e2e|ui)[-_]?tests?)/"
)
"""Test folders in addition to those that `is_test_path` knows, in lower case. A package called `testing` is production
code."""


@dataclass(frozen=True, slots=True)
class ProtectedSection:
    """A section of a mixed file that has roles."""

    keys: str
    """Patterns of the keys from the top, separated by `/`."""
    roles: frozenset[ProtectedRole]
    without: frozenset[str] = frozenset()
    """Keys below the section that do not count."""


def _build_parts(
    roles: Sequence[ProtectedRole], *keys: str, without: Sequence[str] = ()
) -> tuple[ProtectedSection, ...]:
    return tuple(ProtectedSection(key, frozenset(roles), frozenset(without)) for key in keys)


_LINTERS = (
    "autoflake", "autopep8", "bandit", "basedpyright", "black", "codespell", "darker", "deptry", "djlint", "doc8",
    "docformatter", "flake8*", "importlinter*", "interrogate", "isort", "mypy*", "pep8", "pycodestyle", "pydoclint",
    "pydocstyle", "pylint*", "pyre", "pyrefly", "pyright", "pytype", "refurb", "ruff", "semgrep", "slotscheck",
    "sqlfluff", "ty", "vulture", "yapf",
)  # fmt: skip
_DEPENDENCIES = ("dependencies", "extra-dependencies", "features", "deps", "extras")
_INI = (
    *_build_parts([ProtectedRole.RUNNER], "pytest", "tool:pytest", "coverage:*", "nosetests", "unittest", "hypothesis"),
    *_build_parts([ProtectedRole.RUNNER], "options.entry_points/pytest11"),
    *_build_parts([ProtectedRole.LINT], *_LINTERS, *(f"tool:{name}" for name in _LINTERS)),
    *_build_parts([ProtectedRole.BUILD], "tox", "tox:*", "testenv*", without=_DEPENDENCIES),
    *_build_parts([ProtectedRole.BUILD], "aliases"),
)
_DENO = (
    *_build_parts([ProtectedRole.BUILD, ProtectedRole.RUNNER], "tasks"),
    *_build_parts([ProtectedRole.RUNNER], "test", "bench"),
    *_build_parts([ProtectedRole.LINT], "lint", "fmt", "compilerOptions"),
)

MIXED_FILES: Final[Mapping[str, tuple[ProtectedSection, ...]]] = {
    "pyproject.toml": (
        *_build_parts([ProtectedRole.RUNNER], "tool/pytest*", "tool/coverage", "tool/nose2", "tool/hypothesis"),
        # A pytest plug-in that the project itself registers.
        *_build_parts([ProtectedRole.RUNNER], "project/entry-points/pytest11", "tool/poetry/plugins/pytest11"),
        *_build_parts([ProtectedRole.LINT], *(f"tool/{name}" for name in _LINTERS)),
        *_build_parts([ProtectedRole.BUILD], "tool/tox", "tool/nox", "tool/hatch/envs", without=_DEPENDENCIES),
        *_build_parts(
            [ProtectedRole.BUILD], "tool/poe", "tool/taskipy", "tool/pdm/scripts", "tool/rye/scripts", "tool/doit"
        ),
        *_build_parts([ProtectedRole.BUILD], "tool/pixi/tasks", "tool/pixi/feature/*/tasks"),
        *_build_parts([ProtectedRole.CI], "tool/cibuildwheel"),
        *_build_parts([ProtectedRole.SETTINGS], "tool/proofstone"),
    ),
    "setup.cfg": _INI,
    "tox.ini": _INI,
    "package.json": (
        *_build_parts([ProtectedRole.BUILD, ProtectedRole.RUNNER], "scripts"),
        *_build_parts([ProtectedRole.BUILD], "config", "wireit", "nx", "turbo"),
        *_build_parts(
            [ProtectedRole.RUNNER], "jest", "mocha", "ava", "nyc", "c8", "vitest", "tap", "babel", "cypress", "jasmine"
        ),
        *_build_parts([ProtectedRole.LINT], "eslintConfig", "eslintIgnore", "prettier", "stylelint", "xo", "standard"),
        *_build_parts([ProtectedRole.CI], "husky", "lint-staged", "pre-commit", "simple-git-hooks"),
    ),
    "composer.json": _build_parts([ProtectedRole.BUILD, ProtectedRole.RUNNER], "scripts"),
    "deno.json": _DENO,
    "deno.jsonc": _DENO,
    "bunfig.toml": _build_parts([ProtectedRole.RUNNER], "test", "preload"),
    "cargo.toml": (
        # Assertions and overflow checks of the tests depend on their profile.
        *_build_parts([ProtectedRole.RUNNER], "test", "profile/test", "profile/dev", "package/autotests"),
        *_build_parts([ProtectedRole.RUNNER], "lib/test", "lib/doctest", "lib/harness"),
        *_build_parts([ProtectedRole.LINT], "lints", "workspace/lints"),
        *_build_parts([ProtectedRole.BUILD], "package/build"),
    ),
}
"""Files of which only some sections count, by base name in lower case."""


def _compile_patterns(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(translate(pattern) for pattern in patterns))


_BY_NAME = {role: _compile_patterns(names) for role, names in PROTECTED_NAMES.items()}
_BY_PATH = {role: _compile_patterns(paths) for role, paths in PROTECTED_ROOT_PATHS.items()}


def find_roles(path: str) -> frozenset[ProtectedRole]:
    """Return what a file may decide, from its path in the repository."""
    sections = (part.roles for part in MIXED_FILES.get(_base_name(path), ()))
    return _find_whole_roles(path).union(*sections)


def find_changed_roles(path: str, old: bytes | None, new: bytes | None) -> frozenset[ProtectedRole]:
    """Return the roles whose part of the file differs. None stands for a file that does not exist."""
    if old == new:
        return frozenset()
    parts = MIXED_FILES.get(_base_name(path))
    if parts is None:
        return find_roles(path)
    try:
        before, after = (_read_sections(_base_name(path), content, parts) for content in (old, new))
    except (ValueError, RecursionError, configparser.Error):  # unreadable, so the whole file counts
        return find_roles(path)
    differing = (part.roles for part in parts if before.get(part) != after.get(part))
    return _find_whole_roles(path).union(*differing)


def _base_name(path: str) -> str:
    return path.rpartition("/")[2].lower()


def _find_whole_roles(path: str) -> frozenset[ProtectedRole]:
    """Return the roles that any edit of the file touches."""
    lower, name = path.lower(), _base_name(path)
    matched = {role for role, pattern in _BY_NAME.items() if pattern.match(name)}
    matched |= {role for role, pattern in _BY_PATH.items() if pattern.match(lower)}
    if is_test_path(path) or TEST_FOLDERS.search(lower):
        matched.add(ProtectedRole.TESTS)
    return frozenset(matched)


def _read_sections(name: str, content: bytes | None, parts: Sequence[ProtectedSection]) -> dict[ProtectedSection, str]:
    """Return each part that the file has, in a normalised form."""
    if content is None:
        return {}
    data = _READERS[name.rpartition(".")[2]](content.decode("utf-8-sig"))
    if not isinstance(data, dict):
        raise ValueError(f"{name} holds no sections")
    selected = {part: dict(_select_values(data, part.keys.split("/"), part.without)) for part in parts}
    # In Python True equals 1, but not for the tools that read these files. JSON keeps them apart.
    return {part: json.dumps(values, sort_keys=True, default=str) for part, values in selected.items() if values}


def _select_values(
    data: object, keys: Sequence[str], without: frozenset[str], key_path: str = ""
) -> Iterator[tuple[str, object]]:
    if not keys:
        value_here = _prune(data, without)
        if value_here != {} or not without:
            yield key_path, value_here
    elif isinstance(data, dict):
        for key, value in data.items():
            if fnmatchcase(key, keys[0]):
                yield from _select_values(value, keys[1:], without, f"{key_path}/{key}")


def _prune(data: object, without: frozenset[str]) -> object:
    if not without or not isinstance(data, dict):
        return data
    pruned = {key: _prune(value, without) for key, value in data.items() if key not in without}
    return {key: value for key, value in pruned.items() if value != {}}


_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "toml": tomllib.loads,
    "json": json.loads,
    "jsonc": json.loads,
    "ini": parse_ini,
    "cfg": parse_ini,
}
