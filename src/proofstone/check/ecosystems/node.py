"""Node and TypeScript: tests by the package's test script, types by tsc, lint by ESLint.

Without a test script, files that are named as tests (`cart.test.js`) say by what they import which runner they are for.

Programs have the names that they have in node_modules/.bin. If the tests need compiled output, the build is a check of
its own, and the test command builds as well, so that the tests do not depend on the output of another check.
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from proofstone.check.ecosystems.ecosystem import (
    DISCOVERED_TIER,
    Ecosystem,
    Package,
    Table,
    find_subtable,
    list_strings,
    make_build_check,
    make_optional_check,
    make_test_check,
)
from proofstone.check.ecosystems.node_scripts import PLACEHOLDER, ScriptCommand, parse_script
from proofstone.check.models import CheckKind, CheckSpec, ReportFormat


@dataclass(frozen=True, slots=True)
class NodeRunner:
    """How to make a test runner report results by id."""

    report: ReportFormat
    first: str = ""
    """An argument that comes right after the runner's name."""
    last: tuple[str, ...] = ()
    dropped_options: tuple[str, ...] = ()
    """Options that would keep the runner running or send the results elsewhere."""
    dropped_valued_options: tuple[str, ...] = ()
    """Such options that take the next word as their value."""


_WATCH = ("--watch", "--watchAll", "--watch=*", "--watchAll=*")
_JEST = ("--json", "--outputFile={report}/jest.json")
NODE_RUNNERS = {
    "jest": NodeRunner(ReportFormat.JEST, last=_JEST, dropped_options=(*_WATCH, "--json", "--outputFile=*")),
    "react-scripts": NodeRunner(
        ReportFormat.JEST, last=("--watchAll=false", *_JEST), dropped_options=(*_WATCH, "--json", "--outputFile=*")
    ),
    "vitest": NodeRunner(
        ReportFormat.VITEST,
        first="run",
        last=("--reporter=default", "--reporter=json", "--outputFile.json={report}/vitest.json"),
        dropped_options=(*_WATCH, "-w", "--run", "run", "watch", "dev", "--ui", "--reporter=*", "--outputFile*"),
        dropped_valued_options=("--reporter",),
    ),
    "mocha": NodeRunner(
        ReportFormat.MOCHA,
        last=("--reporter", "json", "--reporter-option", "output={report}/mocha.json"),
        dropped_options=(*_WATCH, "-w", "--reporter=*", "--reporter-option*=*"),
        dropped_valued_options=("--reporter", "-R", "--reporter-option", "--reporter-options", "-O"),
    ),
    "ava": NodeRunner(
        ReportFormat.TAP, last=("--tap",), dropped_options=(*_WATCH, "-w", "--tap", "-t", "--verbose", "-v")
    ),
    "tap": NodeRunner(
        ReportFormat.TAP,
        last=("--reporter=tap",),
        dropped_options=("--reporter=*", "-R*"),
        dropped_valued_options=("--reporter", "-R"),
    ),
    "tape": NodeRunner(ReportFormat.TAP),
    "node": NodeRunner(ReportFormat.NODE, dropped_options=("--watch",)),
}
_BUILDS = re.compile(r"\b(build|compile|tsc|prepare|bundle|rollup|webpack|esbuild|babel|tsup|swc)\b")
_LINTS = re.compile(r"lint|prettier|\bstandard\b|\bxo\b|\bbiome\b|--noEmit\b|type-?check|\bformat\b|check-types")
"""Commands before the tests that the tests do not need. Types and lint are checks of their own."""
_ESLINT_CONFIG = ("eslint.config.js", "eslint.config.mjs", "eslint.config.cjs", "eslint.config.ts", ".eslintrc*")
_TYPESCRIPT_LINT = ("typescript-eslint", "@typescript-eslint/parser", "eslint-config-next", "@antfu/eslint-config")
_INSTALL = "npm install"
_SUFFIXES = ("js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx")


def _find_checks(package: Package) -> Iterable[CheckSpec]:
    manifest = package.table("package.json")
    yield from _find_tests(package, find_subtable(manifest, "scripts"))
    dependencies = _list_dependencies(manifest)
    if package.has("tsconfig.json") and "typescript" in dependencies | _list_dependencies(_root_manifest(package)):
        yield _build_types_spec(package, dependencies)
    yield from _find_lint(package, manifest, dependencies)


def _root_manifest(package: Package) -> Table:
    return package.tree.read_table("package.json") or {}


def _list_dependencies(manifest: Table) -> frozenset[str]:
    tables = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
    return frozenset(name for table in tables for name in find_subtable(manifest, table))


def _find_tests(package: Package, scripts: Table) -> Iterable[CheckSpec]:
    script = scripts.get("test")
    if not isinstance(script, str) or not script.strip() or PLACEHOLDER.search(script):
        yield from _find_tests_by_imports(package)
        return
    evidence = f"{package.path('package.json')} [scripts.test]"
    script_commands = parse_script(script, scripts)
    name = _find_runner(script_commands[-1]) if script_commands else None
    # If a script has two runners, a report of the last one would miss tests.
    if not script_commands or name is None or any(map(_find_runner, script_commands[:-1])):
        yield make_test_check(
            *("npm", "npm", "npm", "test"), report=ReportFormat.EXIT_CODE, install="install Node.js with npm"
        ).model_copy(update={"evidence": evidence})
        return
    steps = [command.text for command in script_commands[:-1] if not _LINTS.search(command.text)]
    pretest = scripts.get("pretest")
    if isinstance(pretest, str) and not _LINTS.search(pretest):
        steps.insert(0, "npm run --silent pretest")
    for spec in _build_runner_specs(package, name, script_commands[-1], " && ".join(steps)):
        yield spec.model_copy(update={"evidence": f"{evidence}: {script}"[:200]})


_TEST_FILES = tuple(f"*.{word}.{suffix}" for word in ("test", "spec") for suffix in _SUFFIXES)
_IMPORT = r"""(?:\bfrom\s*|\bimport\s*|\brequire\s*\(\s*|\bimport\s*\(\s*)['"]{}(?:/[^'"]*)?['"]"""
_RUNNERS_BY_IMPORT = tuple(
    (runner, re.compile(_IMPORT.format(module)))
    for runner, module in (
        ("node", "node:test"),
        ("vitest", "vitest"),
        ("jest", "@jest/globals"),
        ("ava", "ava"),
        ("tap", "(?:tap|@tapjs)"),
        ("mocha", "mocha"),
    )
)
_GLOBAL_TESTS = re.compile(r"^\s*(?:describe|it|test)(?:\.\w+)*\s*\(", re.MULTILINE)
_RUNNERS_WITH_GLOBALS = ("jest", "vitest", "mocha", "ava")
"""Runners that a dependency names, for test files that import none: their functions are global."""
_READ_LIMIT = 400
_CONCLUDED_COMMANDS = {
    "node": ("node", "--test"),
    "mocha": ("mocha", "--ignore", "**/node_modules/**", "**/*.{test,spec}.{js,mjs,cjs}"),
}
"""How a runner is started that is not started by its name alone."""
_FOUND_BY_NODE = ("*.test.js", "*.test.mjs", "*.test.cjs")


def _find_tests_by_imports(package: Package) -> Iterable[CheckSpec]:
    """Return the tests of a package without a test script: one run of the runner that most test files are for."""
    manifest = package.tree.read_table(package.path("package.json"))
    if manifest is None and package.has("package.json"):
        return  # it cannot be read, so it may have a test script
    runners: dict[str, list[str]] = defaultdict(list)
    dependencies = _list_dependencies(manifest or {})
    for name in package.find_named(*_TEST_FILES)[:_READ_LIMIT]:
        runner = _find_imported_runner(package.text(name), dependencies)
        if runner != "node" and manifest is None:
            continue  # without a manifest nothing is installed, and only Node's own runner needs nothing
        if runner and (runner != "node" or any(fnmatchcase(name, pattern) for pattern in _FOUND_BY_NODE)):
            runners[runner].append(name)
    if not runners:
        return
    chosen = max(runners, key=lambda runner: len(runners[runner]))
    files = runners.pop(chosen)
    conclusion = f"{package.path(files[0])}, which {_describe_conclusion(package.text(files[0]), chosen)}"
    package.tree.notes.append(f"tests:{chosen} is concluded from {conclusion}; there is no test script")
    for other, left in runners.items():
        package.tree.notes.append(f"{package.path(left[0])} is for {other}, and is not run: name it in a test script")
    words = _CONCLUDED_COMMANDS.get(chosen, (chosen,))
    for spec in _build_runner_specs(package, chosen, ScriptCommand(words, text=shlex.join(words)), ""):
        yield spec.model_copy(update={"evidence": conclusion, "is_concluded": True})


def _find_imported_runner(text: str, dependencies: frozenset[str]) -> str:
    """Return the runner that a test file is for; empty if nothing says so."""
    imported = next((runner for runner, pattern in _RUNNERS_BY_IMPORT if pattern.search(text)), "")
    if imported or not _GLOBAL_TESTS.search(text):
        return imported
    return next((runner for runner in _RUNNERS_WITH_GLOBALS if runner in dependencies), "")


def _describe_conclusion(text: str, runner: str) -> str:
    is_imported = any(name == runner and pattern.search(text) for name, pattern in _RUNNERS_BY_IMPORT)
    module = {"node": "node:test", "jest": "@jest/globals"}.get(runner, runner)
    return f"imports {module}" if is_imported else f"uses global test functions, and {runner} is a dependency"


def _find_runner(command: ScriptCommand) -> str | None:
    name = command.words[0].removeprefix("./node_modules/.bin/").removeprefix("node_modules/.bin/")
    if command.is_piped and NODE_RUNNERS.get(name, _NO_RUNNER).report is not ReportFormat.TAP:
        return None
    if name == "node" and "--test" not in command.words:
        return None
    if name == "react-scripts" and command.words[1:2] != ("test",):
        return None
    return name if name in NODE_RUNNERS else None


_NO_RUNNER = NodeRunner(ReportFormat.EXIT_CODE)


def _build_runner_specs(package: Package, name: str, command: ScriptCommand, steps: str) -> Iterable[CheckSpec]:
    runner = NODE_RUNNERS[name]
    words = _filter_arguments(command.words[1:], runner)
    argv = (name, *((runner.first,) if runner.first else ()), *words, *runner.last)
    # Only a shell expands an unquoted pattern for node; the other runners expand it themselves.
    has_globs = name == "node" and any(set("*?[") & set(word) for word in words)
    has_build = bool(_BUILDS.search(steps)) or "pretest" in steps
    if has_build:
        yield make_build_check("npm", "npm", "sh", "-c", _with_bin(package, steps), install="install Node.js with npm")
    if steps or has_globs:
        line = command.text if has_globs else shlex.join(argv)
        argv = ("sh", "-c", _with_bin(package, f"{steps} && {line}" if steps else line))
    yield make_test_check(
        *(name, name if name == "node" else f"node:{name}", *argv),
        report=runner.report,
        install=_INSTALL if name != "node" else "install Node.js",
        needs="build:npm" if has_build else "",
    ).model_copy(update={"env": dict(command.env)})


def _filter_arguments(words: tuple[str, ...], runner: NodeRunner) -> tuple[str, ...]:
    arguments: list[str] = []
    skip = False
    for word in words:
        if skip or any(fnmatchcase(word, pattern) for pattern in runner.dropped_options):
            skip = False
        elif word in runner.dropped_valued_options:
            skip = True
        else:
            arguments.append(word)
    return tuple(arguments)


def _with_bin(package: Package, line: str) -> str:
    """Return a shell line that finds the package's programs, including those at the root of a workspace."""
    depth = 0 if package.directory == "." else package.directory.count("/") + 1
    folders = ":".join("$PWD/" + "../" * level + "node_modules/.bin" for level in range(depth + 1))
    return f'PATH="{folders}:$PATH"; {line}'


def _build_types_spec(package: Package, dependencies: frozenset[str]) -> CheckSpec:
    compiler = "vue-tsc" if "vue-tsc" in dependencies else "tsc"
    # A configuration that only refers to others checks nothing unless `-b` builds it.
    argv = ("-b",) if package.table("tsconfig.json").get("references") else ("--noEmit", "-p", ".")
    spec = make_optional_check(CheckKind.TYPES, compiler, f"node:{compiler}", compiler, *argv, install=_INSTALL)
    return spec.model_copy(update={"evidence": package.path("tsconfig.json")})


def _find_lint(package: Package, manifest: Table, dependencies: frozenset[str]) -> Iterable[CheckSpec]:
    config = package.find_top_level(*_ESLINT_CONFIG)
    if not config and "eslintConfig" not in manifest:
        return
    all_dependencies = dependencies | _list_dependencies(_root_manifest(package))
    typescript = (".ts", ".tsx", ".mts", ".cts") if all_dependencies & set(_TYPESCRIPT_LINT) else ()
    yield CheckSpec(
        name="lint:eslint",
        kind=CheckKind.LINT,
        tier=DISCOVERED_TIER,
        tool="node:eslint",
        argv=("eslint", "--format", "json", "--no-error-on-unmatched-pattern", "{changed}"),
        suffixes=(".js", ".jsx", ".mjs", ".cjs", *typescript),
        required=False,
        evidence=package.path(config[0]) if config else f"{package.path('package.json')} [eslintConfig]",
        install=_INSTALL,
    )


def _covers_member(above: Package, below: Package, spec: CheckSpec) -> bool:
    """Return whether the root covers a member of its workspace. It does if the root has a check of that kind."""
    declared = above.table("package.json").get("workspaces")
    globs = list_strings(declared) or list_strings(declared.get("packages") if isinstance(declared, dict) else None)
    globs += re.findall(r"^\s*-\s*['\"]?([^'\"#\s]+)", above.text("pnpm-workspace.yaml"), re.MULTILINE)
    globs += list_strings(above.table("lerna.json").get("packages")) if above.has("lerna.json") else []
    included = [glob.removeprefix("./").rstrip("/") for glob in globs if not glob.startswith("!")]
    excluded = [glob[1:].removeprefix("./").rstrip("/") for glob in globs if glob.startswith("!")]
    return _is_among(above, below, included) and not _is_among(above, below, excluded)


def _is_among(above: Package, below: Package, globs: list[str]) -> bool:
    return any(fnmatchcase(below.directory, above.path(glob)) for glob in globs)


NODE = Ecosystem(
    name="node", manifests=("package.json",), root_signs=_TEST_FILES, find=_find_checks, covers=_covers_member
)
