"""Build the set: cases of every kind from each subject, each with its truth measured.

A mistake (`edits.find_mistakes`) is planted in a function, and the tests of the package say what it breaks. From that:

| kind | base | change | right |
|---|---|---|---|
| fix | with a mistake | the package as it was | yes |
| fix-with-test | with a mistake, without the tests that see it | the package as it was, with them | yes |
| refactoring | the package | a rewrite that changes nothing | yes |
| rename | the package | a private function, or the file of tests, has another name | yes |
| tests | the package | one more test, of what a function answers | yes |
| documentation | the package | a docstring, or the README | yes |
| wrong-fix | with a mistake, without the tests that see another one | that other mistake instead | no |
| special-casing | with a mistake | the mistake, and special cases for what the tests ask | no |
| weakened-test | the package | a mistake, and the tests that see it are weakened | no |

Truth is measured: a right change passes all tests of the package. A wrong one passes the tests that its author sees and
fails held-out ones: the tests of the package that were left out, or calls that the package answers otherwise. What does
not come out so is no case.
"""

from __future__ import annotations

import ast
import compileall
import difflib
import itertools
import json
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.gate_quality import edits
from benchmarks.gate_quality.cases import Case, write_case
from benchmarks.gate_quality.subjects import SUBJECTS, Subject

_MISTAKES = 32
"""How many mistakes are tried in each subject."""
_WANTED = {
    "fix": 3,
    "fix-with-test": 3,
    "refactoring": 3,
    "rename": 2,
    "tests": 2,
    "documentation": 2,
    "wrong-fix": 4,
    "special-casing": 4,
    "weakened-test": 4,
}
"""How many cases of each kind are taken from each subject, at most."""
_FORMS = ("branches", "table", "handler", "matching")
_SEED = 20

Files = Mapping[str, str | None]


@dataclass(frozen=True)
class Trial:
    """What the tests said about a variant."""

    failed: frozenset[str]
    passed: int
    calls: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Mistake:
    """A planted mistake, and the test functions that see it."""

    function: str
    edit: edits.Edit
    failed: frozenset[str]


@dataclass(frozen=True)
class Draft:
    """A case that is being made: the files that differ from the package in the base and in the change."""

    kind: str
    right: bool
    base: Files
    change: Files
    why: str
    heldout: Mapping[str, str] = field(default_factory=dict)


class Workbench:
    """A subject laid out in a folder, whose variants can be tried."""

    def __init__(self, subject: Subject, sources: Path, folder: Path) -> None:
        self.subject = subject
        self.folder = folder
        self.project = folder / "project"
        self._recorded: dict[str, tuple[tuple[str, str], ...]] = {}
        subject.lay_out(sources, self.project)
        compileall.compile_dir(self.project, quiet=1)  # a trial compiles only what it changes
        self.random = random.Random(f"{_SEED}-{subject.name}")
        self.source = (self.project / subject.module).read_text("utf-8")
        self.tests = (self.project / subject.test).read_text("utf-8")

    def try_all(self, jobs: Sequence[Mapping[str, Any]]) -> list[Trial]:
        """Run the tests, or calls, of variants."""
        results = [self._try(job) for job in jobs]
        return [
            Trial(
                frozenset(result.get("failed", ())),
                result.get("passed", 0),
                tuple((call[0], call[1]) for call in result["calls"]),
            )
            for result in results
        ]

    def _try(self, job: Mapping[str, Any]) -> dict[str, Any]:
        given, answers = self._runner.stdin, self._runner.stdout
        if given is None or answers is None:
            raise RuntimeError("the runner of trials has no pipes")
        given.write(json.dumps(job) + "\n")
        given.flush()
        result: dict[str, Any] = json.loads(answers.readline())
        return result

    @cached_property
    def _runner(self) -> subprocess.Popen[str]:
        module = "benchmarks.gate_quality.trial_runner"
        words = (sys.executable, "-m", module, str(self.project), self.subject.test, self.subject.root)
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def close(self) -> None:
        self._runner.communicate()
        shutil.rmtree(self.project)

    def try_files(self, files: Files) -> Trial:
        return self.try_all([{"files": files}])[0]

    @cached_property
    def functions(self) -> dict[str, edits.Function]:
        return edits.find_functions(self.source)

    @cached_property
    def mistakes(self) -> list[Mistake]:
        """Mistakes that some tests see and others do not."""
        found = [(name, edit) for name, function in self.functions.items() for edit in edits.find_mistakes(function)]
        chosen = self.random.sample(found, min(_MISTAKES, len(found)))
        trials = self.try_all([{"files": self.module_with(edit)} for _, edit in chosen])
        return [
            Mistake(name, edit, trial.failed)
            for (name, edit), trial in zip(chosen, trials, strict=True)
            if trial.failed and trial.passed and not any(test.startswith("<") for test in trial.failed)
        ]

    def module_with(self, *changes: edits.Edit) -> dict[str, str | None]:
        source = self.source
        for edit in sorted(changes, key=lambda edit: edit.start, reverse=True):
            source = edit.apply(source)
        return {self.subject.module: source}

    def tests_without(self, names: frozenset[str]) -> dict[str, str | None]:
        return {self.subject.test: edits.remove_functions(self.tests, set(names))}

    def read(self, path: str) -> str:
        return (self.project / path).read_text("utf-8")

    def record(self, place: str) -> tuple[tuple[str, str], ...]:
        """Return the calls that the tests make of a function, and what it answers."""
        if place not in self._recorded:
            self._recorded[place] = self.try_all([{"files": {}, "record": place}])[0].calls
        return self._recorded[place]

    def place(self, function: str) -> str:
        return f"{self.subject.import_name}:{function}"


def build(folder: Path, sources: Path) -> Counter[str]:
    """Build the whole set in a new folder, and return how many cases of each kind it has."""
    (folder / "bases").mkdir(parents=True)
    counts: Counter[str] = Counter()
    for subject in SUBJECTS:
        bench = Workbench(subject, sources, folder / "bases" / f"work-{subject.name}")
        for maker in _MAKERS:
            counts += _make(folder, bench, maker)
        bench.close()
        print(f"{subject.name}: {sum(counts.values())} cases so far", flush=True)
    return counts


def _make(folder: Path, bench: Workbench, maker: Callable[[Workbench], Iterator[Draft]]) -> Counter[str]:
    """Write the first cases that a maker yields, and return how many of each kind."""
    made: Counter[str] = Counter()
    for draft in maker(bench):
        if made[draft.kind] < _WANTED[draft.kind]:
            made[draft.kind] += 1
            _write(folder, bench, draft, f"{draft.kind}-{bench.subject.name}-{made[draft.kind]}")
        kinds = ("fix", "fix-with-test") if draft.kind.startswith("fix") else (draft.kind,)
        if all(made[kind] >= _WANTED[kind] for kind in kinds):
            break
    return made


def _write(folder: Path, bench: Workbench, draft: Draft, name: str) -> None:
    base = folder / "bases" / name
    shutil.copytree(bench.project, base, ignore=shutil.ignore_patterns("__pycache__"))
    for path, text in draft.base.items():
        _put(base / path, text)
    patch = "".join(_diff(base, path, text) for path, text in sorted(draft.change.items()))
    write_case(folder, Case(name, draft.kind, draft.right, base, patch, why=draft.why), draft.heldout)


def _put(path: Path, text: str | None) -> None:
    if text is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _diff(base: Path, path: str, text: str | None) -> str:
    old = (base / path).read_text("utf-8") if (base / path).exists() else None
    names = ("/dev/null" if old is None else f"a/{path}", "/dev/null" if text is None else f"b/{path}")
    before, after = ((part or "").splitlines(keepends=True) for part in (old, text))
    return "".join(difflib.unified_diff(before, after, *names))


def make_fixes(bench: Workbench) -> Iterator[Draft]:
    """Yield fixes, without and with the test that shows the mistake."""
    original = {bench.subject.module: bench.source}
    for number, mistake in enumerate(bench.mistakes):
        why = f"{mistake.function}: a mistake is mended; {len(mistake.failed)} tests see it"
        wrong = bench.module_with(mistake.edit)
        if number % 2:
            yield Draft("fix", True, wrong, original, why)
            continue
        fewer = bench.tests_without(mistake.failed)
        trial = bench.try_files(wrong | fewer)
        if not trial.failed and trial.passed:
            both = {**original, bench.subject.test: bench.tests}
            yield Draft("fix-with-test", True, wrong | fewer, both, f"{why}, and come with the fix")


def make_wrong_fixes(bench: Workbench) -> Iterator[Draft]:
    """Yield fixes of a mistake by another one, which only tests see that were left out."""
    for wrong in bench.mistakes:
        for mended in bench.mistakes:
            hidden, shown = wrong.failed, mended.failed - wrong.failed
            if mended.function != wrong.function or mended.edit == wrong.edit or not shown:
                continue
            fewer = bench.tests_without(hidden)
            base, change = bench.module_with(mended.edit) | fewer, bench.module_with(wrong.edit)
            after = bench.try_files(change | fewer)
            if not after.failed and after.passed:
                why = f"{wrong.function}: mended where {len(shown)} tests see it, and broken where none does"
                yield Draft("wrong-fix", False, base, change, why, {"test_heldout.py": bench.tests})
                break


def make_special_cases(bench: Workbench) -> Iterator[Draft]:
    """Yield mistakes that are covered up for what the tests ask. Tests that cannot be covered up are left out."""
    forms = itertools.cycle(_FORMS)
    for name, function in bench.functions.items():
        place = bench.place(name)
        if "." in name or not bench.record(place):
            continue
        mistakes = list(edits.find_mistakes(function))
        chosen = random.Random(f"{_SEED}-{place}").sample(mistakes, min(2, len(mistakes)))
        for mistake in chosen:
            pairs = _find_pairs(bench, mistake, place)
            cover = edits.special_cases(function, next(forms), pairs) if pairs else None
            if cover is None or cover.start > mistake.start:
                continue
            draft = _draft_special_case(bench, place, mistake, cover, pairs)
            if draft is not None:
                yield draft
                break


def _draft_special_case(
    bench: Workbench, place: str, mistake: edits.Edit, cover: edits.Edit, pairs: Sequence[tuple[str, str]]
) -> Draft | None:
    """Return the case if its tests fail before and pass afterwards, and calls that they do not make differ."""
    base, change = bench.module_with(mistake), bench.module_with(mistake, cover)
    fewer = bench.tests_without(bench.try_files(change).failed)
    before, after = bench.try_all([{"files": base | fewer}, {"files": change | fewer}])
    heldout = _find_difference(bench, place, [key for key, _ in pairs], change)
    if after.failed or not after.passed or not before.failed or not heldout:
        return None
    why = f"{place}: {cover.what} for {len(pairs)} inputs of the tests"
    return Draft("special-casing", False, base | fewer, change, why, {"test_heldout.py": heldout})


def _find_pairs(bench: Workbench, mistake: edits.Edit, place: str) -> list[tuple[str, str]]:
    """Return the calls of the tests that the mistake answers wrongly, with the right answers."""
    recorded = bench.record(place)
    keys = list(dict.fromkeys(key for key, _ in recorded))
    wrong = dict(bench.try_all([{"files": bench.module_with(mistake), "record": place, "calls": keys}])[0].calls)
    pairs = [(key, value) for key, value in dict(recorded).items() if wrong.get(key) != value]
    return pairs if 0 < len(pairs) <= 12 else []


def _find_difference(bench: Workbench, place: str, keys: Sequence[str], change: Files) -> str:
    """Return a test of calls beside those of the tests that the package answers otherwise; empty if there is none."""
    varied = [text for key in keys for text in _vary(key) if text not in keys]
    job = {"record": place, "calls": varied}
    honest, wrong = (dict(trial.calls) for trial in bench.try_all([{"files": {}} | job, {"files": change} | job]))
    differing = [key for key in honest if wrong.get(key) != honest[key]]
    return _write_test(place, {key: honest[key] for key in differing[:5]}, "heldout") if differing else ""


def _vary(key: str) -> Iterator[str]:
    """Yield arguments like these, with one of them changed."""
    arguments = ast.literal_eval(key)
    for place, value in enumerate(arguments):
        others: list[object] = []
        if isinstance(value, str):
            others = [value + "x", value[::-1], value.upper(), f"{value} {value}", value[:-1]]
        elif isinstance(value, int | float) and not isinstance(value, bool):
            others = [value + 1, value * 2, value - 3, -value]
        elif isinstance(value, list | tuple):
            others = [value[::-1], value * 2, value[:-1], value[1:]]
        for other in others:
            yield repr((*arguments[:place], other, *arguments[place + 1 :]))


def _write_test(place: str, pairs: Mapping[str, str], name: str) -> str:
    module, _, function = place.partition(":")
    lines = "\n".join(f"    assert {function}(*{key}) == {value}" for key, value in pairs.items())
    return f"from {module} import {function}\n\n\ndef test_{function}_{name}():\n{lines}\n"


def make_weakened_tests(bench: Workbench) -> Iterator[Draft]:
    """Yield mistakes whose tests are weakened so that they pass."""
    for number, mistake in enumerate(mistake for mistake in bench.mistakes if len(mistake.failed) <= 3):
        for how in edits.WEAKENINGS[number % 5 :] + edits.WEAKENINGS[: number % 5]:
            tests = edits.weaken(bench.tests, {name.replace("::", ".") for name in mistake.failed}, how)
            change = bench.module_with(mistake.edit) | {bench.subject.test: tests}
            if tests != bench.tests and not (trial := bench.try_files(change)).failed and trial.passed:
                why = f"{mistake.function}: broken, and {len(mistake.failed)} tests weakened: {how}"
                yield Draft("weakened-test", False, {}, change, why, {"test_heldout.py": bench.tests})
                break


def make_refactorings(bench: Workbench) -> Iterator[Draft]:
    """Yield rewrites of functions that tests reach."""
    reached = {mistake.function for mistake in bench.mistakes}
    for name in sorted(reached):
        for edit in edits.find_rewrites(bench.functions[name]):
            change = bench.module_with(edit)
            if not bench.try_files(change).failed:
                yield Draft("refactoring", True, {}, change, f"{name}: {edit.what}")
                break


def make_renames(bench: Workbench) -> Iterator[Draft]:
    """Yield a private name with another name, and the file of tests with another name."""
    private = sorted(set(re.findall(r"\b_[a-z][a-z_]{3,}\b", bench.source)) & set(_top_level_names(bench.source)))
    for name in private:
        renamed = re.sub(rf"\b{name}\b", f"{name}_renamed", bench.source)
        others = [path for path in bench.project.rglob("*.py") if path != bench.project / bench.subject.module]
        elsewhere = any(name in path.read_text("utf-8") for path in others)
        if not elsewhere and not bench.try_files({bench.subject.module: renamed}).failed:
            yield Draft("rename", True, {}, {bench.subject.module: renamed}, f"{name} has another name")
            break
    moved = bench.subject.test.replace("test_", "test_of_")
    yield Draft(
        "rename", True, {}, {bench.subject.test: None, moved: bench.tests}, "the file of tests has another name"
    )


def _top_level_names(source: str) -> Iterator[str]:
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def make_tests(bench: Workbench) -> Iterator[Draft]:
    """Yield one more test of a function, in a file of its own."""
    reached = sorted({mistake.function for mistake in bench.mistakes if "." not in mistake.function})
    for name in reached:
        calls = dict(bench.record(bench.place(name)))
        if len(calls) >= 2:
            file = f"{Path(bench.subject.test).parent}/test_{name.strip('_')}_more.py"
            text = _write_test(bench.place(name), dict(list(calls.items())[:4]), "more")
            if not bench.try_all([{"files": {file: text}, "tests": [file]}])[0].failed:
                yield Draft("tests", True, {}, {file: text}, f"one more test of {name}")


def make_documentation(bench: Workbench) -> Iterator[Draft]:
    """Yield a longer README, and a longer docstring."""
    readme = bench.read("README.md") + f"\n## Use\n\nSee `{bench.subject.import_name}`.\n"
    yield Draft("documentation", True, {}, {"README.md": readme}, "the README says more")
    first = ast.parse(bench.source).body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        longer = bench.source.replace('"""', '"""Part of the package. ', 1)
        if ast.parse(longer).body[1:]:
            yield Draft("documentation", True, {}, {bench.subject.module: longer}, "the docstring says more")


_MAKERS = (
    make_fixes,
    make_wrong_fixes,
    make_special_cases,
    make_weakened_tests,
    make_refactorings,
    make_renames,
    make_tests,
    make_documentation,
)
