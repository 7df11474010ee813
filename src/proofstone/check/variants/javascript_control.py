"""Build a JavaScript test that asserts nothing, and below which recorded calls are repeated.

It is put beside a test of the project that loads the changed files, is named like that, and loads them in the same way,
so that the runner finds it and treats it as its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from posixpath import basename, dirname, join, normpath, splitext
from typing import Final

from proofstone.check.models import ReportFormat

CONTROL_KEY: Final = "proofstone control 8c41d7e2"
"""The name of the symbol under which `probes/proofstone_control.cjs` is a property of `process`."""
_SPECIFIER: Final = re.compile(
    r"""(?:\bfrom\s*|\bimport\s*|\brequire\s*\(\s*|\bimport\s*\(\s*)(['"])(\.{1,2}/[^'"\n]*)\1"""
)
_IS_ESM: Final = re.compile(r"^\s*import\b(?!\s*\()", re.MULTILINE)
_TEST_IMPORTS: Final = {
    ReportFormat.NODE: (
        'import { test as control } from "node:test";',
        'const { test: control } = require("node:test");',
    ),
    ReportFormat.VITEST: ('import { test as control } from "vitest";',) * 2,
    ReportFormat.JEST: ("const control = test;",) * 2,
    ReportFormat.MOCHA: ("const control = it;",) * 2,
}
"""How a test of a runner names the function that defines tests: in a module, and in CommonJS."""


@dataclass(frozen=True)
class ControlTest:
    """A test file to add."""

    path: str
    content: bytes


def build_control_test(
    runner: ReportFormat | None, tests: Mapping[str, bytes], modules: Sequence[str]
) -> ControlTest | None:
    """Return a control test that loads those of the modules that a test file loads by relative paths; None if no test
    does. `tests` are the files of tests, `modules` the changed files."""
    if runner not in _TEST_IMPORTS:
        return None
    found = [(path, text, _find_specifiers(path, text, modules)) for path, text in _decode(tests)]
    if not found:
        return None
    path, text, specifiers = max(found, key=lambda each: len(each[2]))
    if not specifiers:
        return None
    is_esm = bool(_IS_ESM.search(text))
    lines = [_TEST_IMPORTS[runner][0 if is_esm else 1]]
    entries = []
    for number, (module, specifier) in enumerate(specifiers.items()):
        name, source = f"module{number}", json.dumps(specifier)
        lines.append(f"import * as {name} from {source};" if is_esm else f"const {name} = require({source});")
        entries.append(f"{json.dumps(module)}: {name}")
    is_typed = splitext(path)[1] in (".ts", ".tsx", ".mts", ".cts")
    process = "(globalThis as any).process" if is_typed else "globalThis.process"
    given = "call: any, self: any, given: any" if is_typed else "call, self, given"
    key, modules_text = json.dumps(CONTROL_KEY), ", ".join(entries)
    lines.append(f"const testCall = ({given}) => Reflect.apply(call, self, given);")
    lines.append(f'control("control", () => {process}[Symbol.for({key})]({{ {modules_text} }}, testCall));')
    return ControlTest(join(dirname(path), _name_file(basename(path))), "\n".join([*lines, ""]).encode())


def _decode(tests: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    for path, content in sorted(tests.items()):
        yield path, content.decode("utf-8", "replace")


def _find_specifiers(path: str, text: str, modules: Sequence[str]) -> dict[str, str]:
    """Return how a test file names the modules that it loads."""
    by_stem = {_strip(module): module for module in modules}
    found: dict[str, str] = {}
    for match in _SPECIFIER.finditer(text):
        target = _strip(normpath(join(dirname(path), match[2])))
        if target in by_stem:
            found.setdefault(by_stem[target], match[2])
    return found


def _strip(path: str) -> str:
    """Return the path without the ending, and without the name of a folder's main file."""
    stem = re.sub(r"\.[cm]?[jt]sx?$", "", path)
    return stem.removesuffix("/index") if stem != "index" else "."


def _name_file(name: str) -> str:
    """Return a name that the runner takes for a test, as it does the given one."""
    first, _, rest = name.partition(".")
    prefix = re.match(r"test[-_]|", first)
    start = "test-" if first == "test" else prefix[0] if prefix else ""
    return f"{start}control8c41.{rest}"
