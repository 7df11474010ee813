"""Change one thing in a rule, and see whether a test notices.

    python -m tests.mutants --count 50 --seed 1

A mutant is one changed operator or constant in a module of rules: `<` becomes `<=`, `and` becomes `or`, `not` is left
out, a number grows by one, True becomes False. Equal seeds draw equal mutants from equal sources. Rules are pure, so
no whole run is needed to find a mutant: first the tests are tried that import its module themselves or stand in its
folder, and that start no `proofstone`, then all pure tests whose imports lead to it. A mutant that none of them notices
is printed with its line; some change nothing that can be seen, the others are tests that are missing. The source is
mutated in a copy.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.tiers import ROOT, find_imported_files, find_tier, list_imported_files, list_pure_files, list_test_files

SOURCE: Final = ROOT / "src" / "proofstone"
LONGEST: Final = 240
"""Seconds of processor time after which a mutant is taken for one that does not end, which is noticed."""
_START: Final = (
    f"import resource, sys, pytest; resource.setrlimit(resource.RLIMIT_CPU, ({LONGEST}, {LONGEST})); "
    "sys.exit(pytest.console_main())"
)
_OTHER: Final = {
    "==": "!=",
    "!=": "==",
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "in": "not in",
    "not in": "in",
    "is": "is not",
    "is not": "is",
    "and": "or",
    "or": "and",
    "+": "-",
    "-": "+",
}
_NOT: Final = re.compile(r"not\s*")
_OPERATOR: Final = re.compile(r"not\s+in|is\s+not|[=!<>]=|[<>+-]|\b(?:in|is|and|or)\b")


@dataclass(frozen=True)
class Mutant:
    path: str
    """Below the source."""
    start: int
    """In characters, as the end is."""
    end: int
    replacement: str
    line: int

    def apply(self, text: str) -> str:
        return text[: self.start] + self.replacement + text[self.end :]

    def describe(self, text: str) -> str:
        before = text.splitlines()[self.line - 1].strip()
        after = self.apply(text).splitlines()[self.line - 1].strip()
        return f"{self.path}:{self.line}\n    - {before}\n    + {after}"


def find_mutants(path: str, text: str) -> Iterator[Mutant]:
    """Yield every mutant of a module, in the order of its text."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = text.splitlines()

    def at(line: int, column: int) -> int:
        """Return the place in the text of a column, which the syntax tree counts in bytes."""
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def span(node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)

    def between(left: ast.expr, right: ast.expr) -> Iterator[Mutant]:
        first, last = span(left)[1], span(right)[0]
        found = _OPERATOR.search(text, first, last)
        if found and (other := _OTHER.get(" ".join(found[0].split()))):
            yield Mutant(path, found.start(), found.end(), other, text.count("\n", 0, found.start()) + 1)

    for node in _walk(ast.parse(text)):
        match node:
            case ast.Compare(left=left, comparators=[right]):
                yield from between(left, right)
            case ast.BoolOp(values=[left, right, *_]):
                yield from between(left, right)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right) if not (_is_text(left) or _is_text(right)):
                yield from between(left, right)
            case ast.UnaryOp(op=ast.Not()) if found := _NOT.match(text, span(node)[0]):
                yield Mutant(path, found.start(), found.end(), "", node.lineno)
            case ast.Constant(value=bool() as value):
                yield Mutant(path, *span(node), str(not value), node.lineno)
            case ast.Constant(value=int() as number):
                yield Mutant(path, *span(node), str(number + 1), node.lineno)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree without its annotations, which decide nothing."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child
                yield from _walk(child)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def draw_mutants(count: int, seed: str) -> list[Mutant]:
    paths = sorted(path for path in SOURCE.rglob("*.py") if "rules" in (path.stem, *path.parent.parts))
    mutants = [
        mutant
        for path in paths
        for mutant in find_mutants(path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8"))
    ]
    return random.Random(seed).sample(mutants, min(count, len(mutants)))


def _is_about(test: str, source: str) -> bool:
    """Return whether a test file imports a module itself, or stands where the module stands and imports lead to it."""
    folder = f"tests/{source.removeprefix('src/proofstone/').rpartition('/')[0]}"
    is_beside = test.rpartition("/")[0] == folder and source in find_imported_files(test)
    return is_beside or source in list_imported_files(test)


class Copy:
    """A copy of the source in which one mutant at a time is tried."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "src" / "proofstone"
        shutil.copytree(SOURCE, self.source, ignore=shutil.ignore_patterns("__pycache__"))
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(self.source.parent),
            "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        }
        self._pure = list_pure_files()
        self._tests = [name for name in list_test_files() if find_tier(name) != "end_to_end"]
        self._written = 0
        self._deselected: list[str] = []

    def is_imported(self) -> bool:
        asked = [sys.executable, "-c", "import proofstone; print(proofstone.__file__)"]
        said = subprocess.run(asked, cwd=ROOT, env=self._environment, capture_output=True, text=True, check=True).stdout
        return Path(said.strip()).is_relative_to(self.source)

    def kills(self, mutant: Mutant) -> str:
        """Return the test that notices the mutant, or nothing."""
        path = self.source / mutant.path
        text = path.read_text(encoding="utf-8")
        self._write(path, mutant.apply(text))
        try:
            source = f"src/proofstone/{mutant.path}"
            near = [name for name in self._tests if _is_about(name, source)]
            rest = [name for name in self._pure if name not in near and source in find_imported_files(name)]
            return (self._failing(near) if near else "") or (self._failing(rest) if rest else "")
        finally:
            self._write(path, text)

    def leave_out_failing(self, mutants: Sequence[Mutant]) -> list[str]:
        """Return the tests for these mutants that fail although nothing was changed: they can notice nothing."""
        sources = {f"src/proofstone/{mutant.path}" for mutant in mutants}
        near = [name for name in self._tests if any(_is_about(name, source) for source in sources)]
        rest = [name for name in self._pure if name not in near and not sources.isdisjoint(find_imported_files(name))]
        done = self._pytest("-rfE", *near, *rest)
        self._deselected = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
        return self._deselected

    def _write(self, path: Path, text: str) -> None:
        """Write a module with a time of its own, so that no bytecode of another version is taken for its."""
        path.write_text(text, encoding="utf-8")
        self._written += 1
        os.utime(path, (1_000_000_000 + self._written,) * 2)

    def _failing(self, files: Sequence[str]) -> str:
        done = self._pytest("-x", *(f"--deselect={test}" for test in self._deselected), *files)
        if done.returncode == 0:
            return ""
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return "it does not end"
        named = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        return named[1] if named else f"pytest ends with {done.returncode}"

    def _pytest(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", _START, "-q", "-p", "no:cacheprovider", "-m", "not sweep", *args],
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description="Try mutants of the rules against the pure tests.")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", default="1")
    options = parser.parse_args()
    survivors = []
    with tempfile.TemporaryDirectory(prefix="proofstone-mutants-") as folder:
        copy = Copy(Path(folder))
        if not copy.is_imported():
            sys.exit("the tests do not import the copy of the source: is proofstone installed editable?")
        mutants = draw_mutants(options.count, options.seed)
        for test in copy.leave_out_failing(mutants):
            sys.stdout.write(f"left out, for it fails without a mutant: {test}\n")
        for number, mutant in enumerate(mutants, start=1):
            described = mutant.describe((SOURCE / mutant.path).read_text(encoding="utf-8"))
            killer = copy.kills(mutant)
            survivors += [] if killer else [described]
            sys.stdout.write(f"{number}/{len(mutants)} {killer or 'SURVIVES'} {described}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(mutants) - len(survivors)} of {len(mutants)} mutants are noticed, seed {options.seed}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
