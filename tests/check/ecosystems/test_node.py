"""package.json: simple scripts become the runner with a report, anything else runs as it stands."""

from __future__ import annotations

import json

import pytest

from proofstone.check.models import CheckKind, ReportFormat
from tests.check.ecosystems.trees import Files, discovery_of, names_of, spec_of
from tests.rows import each_row

VITEST = ("--reporter=default", "--reporter=json", "--outputFile.json={report}/vitest.json")
JEST = ("--json", "--outputFile={report}/jest.json")
MOCHA = ("--reporter", "json", "--reporter-option", "output={report}/mocha.json")


def package(test: object, **more: object) -> Files:
    return {"package.json": json.dumps({"scripts": {"test": test, **more}})}


SCRIPTS: dict[str, tuple[str, tuple[str, ...], ReportFormat]] = {
    "jest": ("jest", ("jest", *JEST), ReportFormat.JEST),
    "jest --watch --ci": ("jest", ("jest", "--ci", *JEST), ReportFormat.JEST),
    "npx jest src": ("jest", ("jest", "src", *JEST), ReportFormat.JEST),
    "./node_modules/.bin/jest": ("jest", ("jest", *JEST), ReportFormat.JEST),
    "react-scripts test": (
        "react-scripts",
        ("react-scripts", "test", "--watchAll=false", *JEST),
        ReportFormat.JEST,
    ),
    "vitest": ("vitest", ("vitest", "run", *VITEST), ReportFormat.VITEST),
    "vitest run --reporter dot": ("vitest", ("vitest", "run", *VITEST), ReportFormat.VITEST),
    "vitest --run --coverage": ("vitest", ("vitest", "run", "--coverage", *VITEST), ReportFormat.VITEST),
    "mocha -R dot 'test/**/*.js'": ("mocha", ("mocha", "test/**/*.js", *MOCHA), ReportFormat.MOCHA),
    "nyc --silent mocha": ("mocha", ("mocha", *MOCHA), ReportFormat.MOCHA),
    "ava": ("ava", ("ava", "--tap"), ReportFormat.TAP),
    "tape test/*.js | tap-spec": ("tape", ("tape", "test/*.js"), ReportFormat.TAP),
    "node --test": ("node", ("node", "--test"), ReportFormat.NODE),
    "npm run lint && jest": ("jest", ("jest", *JEST), ReportFormat.JEST),
    "eslint . && yarn jest --ci": ("jest", ("jest", "--ci", *JEST), ReportFormat.JEST),
    "jest -w 2": ("jest", ("jest", "-w", "2", *JEST), ReportFormat.JEST),
    "mocha unit && mocha e2e": ("npm", ("npm", "test"), ReportFormat.EXIT_CODE),
    "jest; echo done": ("npm", ("npm", "test"), ReportFormat.EXIT_CODE),
    "node test.js": ("npm", ("npm", "test"), ReportFormat.EXIT_CODE),
    "jest $FILES": ("npm", ("npm", "test"), ReportFormat.EXIT_CODE),
    "jest | tee log": ("npm", ("npm", "test"), ReportFormat.EXIT_CODE),
    "jest 'unclosed": ("npm", ("npm", "test"), ReportFormat.EXIT_CODE),
    "npm run test": ("npm", ("npm", "test"), ReportFormat.EXIT_CODE),
    "npm test --workspaces": ("npm", ("npm", "test"), ReportFormat.EXIT_CODE),
    "turbo run test": ("npm", ("npm", "test"), ReportFormat.EXIT_CODE),
}


@each_row("script", SCRIPTS)
def test_a_test_script_gives_this_command(script: str) -> None:
    name, argv, report = SCRIPTS[script]
    spec = spec_of(package(script), f"tests:{name}")
    assert (spec.argv, spec.report) == (argv, report)
    assert spec.tool == (name if name in ("npm", "node") else f"node:{name}")
    assert spec.evidence.startswith("package.json [scripts.test]")


def test_variables_before_the_command_become_its_environment() -> None:
    spec = spec_of(package("CI=1 cross-env NODE_ENV=test jest"), "tests:jest")
    assert spec.env == {"CI": "1", "NODE_ENV": "test"}
    assert spec.argv[0] == "jest"


def test_a_pattern_for_node_is_left_to_a_shell() -> None:
    spec = spec_of(package("node --test test/*.js"), "tests:node")
    assert spec.argv[:2] == ("sh", "-c")
    assert spec.argv[2].endswith("; node --test test/*.js")


def test_a_script_that_calls_a_script_is_followed() -> None:
    assert spec_of(package("npm run unit", unit="npm run lint && vitest", lint="eslint ."), "tests:vitest")


def test_tests_that_need_a_build_build_and_say_so() -> None:
    files = package("npm run build && mocha", build="tsc")
    spec = spec_of(files, "tests:mocha")
    assert spec.needs == ("build:npm",)
    assert "tsc && mocha" in spec.argv[2]
    assert spec_of(files, "build:npm").required


def test_a_step_before_the_tests_is_kept_though_it_is_no_build() -> None:
    files = package("rm -rf out/* && jest")
    assert "; rm -rf out/* && jest --json" in spec_of(files, "tests:jest").argv[2]
    assert names_of(files) == {"tests:jest"}


def test_a_build_in_pretest_counts() -> None:
    spec = spec_of(package("jest", pretest="npm run build", build="tsc"), "tests:jest")
    assert "npm run --silent pretest && jest" in spec.argv[2]
    assert "'--outputFile={report}/jest.json'" in spec.argv[2]


SLOPPY: dict[str, str | bytes] = {
    "placeholder": json.dumps({"scripts": {"test": 'echo "Error: no test specified" && exit 1'}}),
    "no scripts": "{}",
    "scripts is a list": '{"scripts": ["test"]}',
    "test is a number": '{"scripts": {"test": 3}}',
    "test is empty": '{"scripts": {"test": "  "}}',
    "a list": "[]",
    "dependencies is null": '{"dependencies": null, "workspaces": 7}',
}


@each_row("content", SLOPPY.values())
def test_a_sloppy_manifest_gives_no_tests_and_no_error(content: str | bytes) -> None:
    assert names_of({"package.json": content, "tsconfig.json": "[]"}) == set()


def test_typescript_needs_its_configuration_and_the_dependency() -> None:
    files = {"package.json": '{"devDependencies": {"typescript": "5"}}', "tsconfig.json": "{ // comment\n}"}
    assert spec_of(files, "types:tsc").argv == ("tsc", "--noEmit", "-p", ".")
    assert names_of({"package.json": "{}", "tsconfig.json": "{}"}) == set()


def test_a_configuration_of_references_is_built() -> None:
    files = {
        "package.json": '{"devDependencies": {"typescript": "5"}}',
        "tsconfig.json": '{"files": [], "references": [{"path": "./a"},]}',
    }
    assert spec_of(files, "types:tsc").argv == ("tsc", "-b")


def test_eslint_looks_at_typescript_only_with_a_parser_for_it() -> None:
    plain = spec_of({"package.json": "{}", "eslint.config.js": ""}, "lint:eslint")
    assert ".ts" not in plain.suffixes
    manifest = '{"eslintConfig": {}, "devDependencies": {"@typescript-eslint/parser": "8"}}'
    assert ".ts" in spec_of({"package.json": manifest}, "lint:eslint").suffixes


WORKSPACES: dict[str, Files] = {
    "npm": {"package.json": '{"workspaces": ["packages/*"], "scripts": {"test": "jest"}}'},
    "yarn": {"package.json": '{"workspaces": {"packages": ["./packages/*"]}, "scripts": {"test": "jest"}}'},
    "pnpm": {
        "package.json": '{"scripts": {"test": "jest"}}',
        "pnpm-workspace.yaml": "packages:\n  - 'packages/*'\n",
    },
    "lerna": {"package.json": '{"scripts": {"test": "jest"}}', "lerna.json": '{"packages": ["packages/*"]}'},
}


@pytest.mark.parametrize("root", WORKSPACES.values(), ids=WORKSPACES)
def test_members_of_a_workspace_are_not_tested_twice(root: Files) -> None:
    member = '{"scripts": {"test": "vitest"}}'
    files = {**root, "packages/a/package.json": member, "other/package.json": member}
    assert names_of(files) == {"tests:jest", "tests:vitest@other"}


def test_members_speak_for_themselves_when_the_root_has_no_tests() -> None:
    files = {
        "package.json": '{"workspaces": ["packages/*"]}',
        "packages/a/package.json": '{"scripts": {"test": "npm run build && jest", "build": "tsc"}}',
    }
    spec = spec_of(files, "tests:jest@packages/a")
    assert spec.cwd == "packages/a"
    assert spec.needs == ("build:npm@packages/a",)
    assert "$PWD/../../node_modules/.bin" in spec.argv[2]


def test_an_installed_package_is_not_the_project() -> None:
    assert not discovery_of({"node_modules/a/package.json": '{"scripts": {"test": "jest"}}'}).specs


def test_names_are_unique() -> None:
    files = {**package("jest"), "a/package.json": '{"scripts": {"test": "jest"}}', "pytest.ini": "[pytest]\n"}
    specs = discovery_of(files).specs
    assert len({spec.name for spec in specs}) == len(specs) == 3
    assert all(spec.kind is CheckKind.TESTS for spec in specs)


NODE_TEST = "const test = require('node:test')\n"
CONCLUDED: dict[str, tuple[Files, str, tuple[str, ...], str]] = {
    "node:test": (
        {"package.json": "{}", "a.test.js": NODE_TEST},
        "tests:node",
        ("node", "--test"),
        "imports node:test",
    ),
    "node:test as a module": (
        {"package.json": "{}", "src/a.test.mjs": "import { test } from 'node:test'\n"},
        "tests:node",
        ("node", "--test"),
        "imports node:test",
    ),
    "no package.json": ({"a.test.js": NODE_TEST}, "tests:node", ("node", "--test"), "imports node:test"),
    "a placeholder": (
        {
            "package.json": json.dumps({"scripts": {"test": 'echo "Error: no test specified" && exit 1'}}),
            "a.test.js": NODE_TEST,
        },
        "tests:node",
        ("node", "--test"),
        "imports node:test",
    ),
    "vitest": (
        {"package.json": "{}", "a.spec.ts": 'import { it } from "vitest"\n'},
        "tests:vitest",
        ("vitest", "run"),
        "imports vitest",
    ),
    "jest by import": (
        {"package.json": "{}", "a.test.js": "import {expect} from '@jest/globals'\n"},
        "tests:jest",
        ("jest",),
        "imports @jest/globals",
    ),
    "jest by dependency": (
        {"package.json": '{"devDependencies": {"jest": "29"}}', "a.test.js": "test('a', () => {})\n"},
        "tests:jest",
        ("jest",),
        "uses global test functions, and jest is a dependency",
    ),
    "mocha": (
        {"package.json": '{"devDependencies": {"mocha": "10"}}', "a.test.js": "describe('a', () => {})\n"},
        "tests:mocha",
        ("mocha", "--ignore"),
        "mocha is a dependency",
    ),
    "what most files import": (
        {"package.json": "{}", "a.test.js": NODE_TEST, "b.test.js": NODE_TEST, "c.test.js": "import 'vitest'\n"},
        "tests:node",
        ("node", "--test"),
        "imports node:test",
    ),
}


@each_row(("files", "name", "start", "why"), CONCLUDED.values())
def test_without_a_script_the_imports_of_test_files_name_the_runner(
    files: Files, name: str, start: tuple[str, ...], why: str
) -> None:
    spec = spec_of(files, name)
    assert spec.argv[: len(start)] == start
    assert why in spec.evidence
    assert any(f"{name} is concluded from {spec.evidence}" in note for note in discovery_of(files).notes)


NOT_CONCLUDED: dict[str, Files] = {
    "a file that is no test": {"package.json": "{}", "a.js": NODE_TEST},
    "a name that node does not find": {"package.json": "{}", "a.spec.js": NODE_TEST},
    "global functions of nobody": {"package.json": "{}", "a.test.js": "test('a', () => {})\n"},
    "a module whose name only starts alike": {"package.json": "{}", "a.test.js": "import x from 'vitest-mock'\n"},
    "a runner that nothing can have installed": {"a.test.js": "import { it } from 'vitest'\n"},
    "a manifest that cannot be read": {"package.json": "{", "a.test.js": NODE_TEST},
}


@each_row("files", NOT_CONCLUDED.values())
def test_a_runner_is_not_guessed(files: Files) -> None:
    assert not {name for name in names_of(files) if name.startswith("tests:")}
