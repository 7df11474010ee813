"""The files of the base commit, as a plan may speak of them.

Repositories are large, and a plan may name thousands of files and patterns. So nothing here goes through all files for
each of them: what is near a name stands beside it in sorted lists, and patterns are tried on paths only so often.

Files that a plan counts on and that are not there.

Most files that are not there are meant to be written, and a rule that doubts each of them would be read by nobody.

| a file that is not at the base, and no earlier step lists | then |
|---|---|
| the text says to create it | it is fine |
| the text says to change it | it is missing |
| it is nearly the name of one that is there | it is missing: that one is meant |
| several of the step's files are in a folder that is not there | it is fine: a new package |
| its folder is not there either, and the step speaks of changing and of nothing new | it is missing |
| the step speaks of changing and of nothing new, and none of its files is there | it is missing |
| otherwise: a new file in a folder that is there, or a test | it is fine |

What an `<action>` plainly says to change is there, or some task lists it, and it is among the task's own files.
No text takes longer than its length allows: names that are nearly right are sought for a plan's first paths only, and
what code could not look at is not held against the plan.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property, lru_cache
from itertools import accumulate, islice
from typing import NamedTuple

from proofstone.agents.rules.tool_rules import shown
from proofstone.common.globs import matches
from proofstone.common.risk import is_test
from proofstone.plan_gate.rules.document import Document, Kind, Step
from proofstone.plan_gate.rules.outline import Intent, Outline, intent, is_to_change, tone
from proofstone.plans.fields import shortened
from proofstone.plans.mentions import MADE_BY_A_BUILD, has_ending, in_code, in_words
from proofstone.plans.reading import MOST_FILES

MOST_BESIDE = 48
"""So many names are compared with one that is not there."""
MOST_TRIES = 500_000
"""Steps that trying patterns may take: one for a glance, one a character for a match."""
_AS_GOOD_AS = 0.9
"""`pars.py` for `parse.py`, but not `cart.py` for `card.py`."""
_LONGEST = 400
"""Characters of a path or a pattern beyond which it is not looked at."""
_DEEPEST = 40
"""Folders of a path that are looked at."""
_WILD = re.compile(r"\*\*/?|\*|\?")


class Patterns:
    """Some patterns, tried so often. After that all is taken to be covered: what was not looked at is not held against
    a plan."""

    def __init__(self, patterns: Iterable[str] = (), tries: int = MOST_TRIES) -> None:
        self._all = dict.fromkeys(patterns)
        self.tries = tries

    def add(self, patterns: Iterable[str]) -> None:
        self._all.update(dict.fromkeys(patterns))

    def cover(self, path: str) -> bool:
        """Whether one of them covers the path."""
        return any(self.matches(pattern, path) for pattern in self._all)

    def matches(self, pattern: str, path: str) -> bool:
        if self.tries <= 0 or len(pattern) > _LONGEST or len(path) > _LONGEST:
            return True
        self.tries -= 1
        if not _has_in_order(path, _pieces(pattern)):
            return False
        self.tries -= len(pattern) + len(path)
        return matches(pattern, path)


class Tree:
    def __init__(self, paths: Collection[str]) -> None:
        self._paths = frozenset(paths)
        self._patterns = Patterns()

    def __bool__(self) -> bool:
        return bool(self._paths)

    def has(self, path: str) -> bool:
        """A file, a folder, or a pattern that something matches."""
        bare = path.rstrip("/")
        return bare in self._paths or bare in self._folders or self._is_matched(path)

    def has_ending_in(self, path: str) -> bool:
        """The same for how people write: `parse.py` may be `src/parse.py`."""
        return self.has(path) or path.rstrip("/") in self._endings

    def has_folder_of(self, path: str) -> bool:
        folder = path.rstrip("/").rpartition("/")[0]
        return not folder or folder in self._folders

    def meant_by(self, path: str) -> str | None:
        """The file that somebody may have meant who wrote this one."""
        if is_test(path) or is_pattern(path):
            return None
        folder, _, name = path.rpartition("/")
        alike = get_close_matches(name, self.beside(path), 1, _AS_GOOD_AS)
        if alike:
            return f"{folder}/{alike[0]}" if folder else alike[0]
        return None if self.has_folder_of(path) else self._from_another_root(path)

    def beside(self, path: str) -> list[str]:
        """The names in its folder that begin or end most like it and are about as long."""
        folder, _, name = path.rpartition("/")
        forwards, backwards = self._names.get(folder, ((), ()))
        near = dict.fromkeys((*_around(forwards, name), *(item[::-1] for item in _around(backwards, name[::-1]))))
        return [item for item in near if abs(len(item) - len(name)) <= 2 and not _differ_by_number(item, name)]

    def _from_another_root(self, path: str) -> str | None:
        """`shop/cart.py` for `src/shop/cart.py`, or the other way round."""
        shorter = next((item for item in endings_of(path) if "/" in item and item in self._paths), None)
        return shorter or self._endings.get(path)

    def _is_matched(self, pattern: str) -> bool:
        begins = pattern.partition("*")[0].partition("?")[0]
        if begins == pattern:
            return False
        first, last = bisect_left(self._sorted, begins), bisect_left(self._sorted, f"{begins}\U0010ffff")
        return any(self._patterns.matches(pattern, self._sorted[at]) for at in range(first, last))

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._paths)

    @cached_property
    def _folders(self) -> frozenset[str]:
        return frozenset(folder for path in self._paths for folder in folders_of(path))

    @cached_property
    def _endings(self) -> dict[str, str]:
        """By its last parts: a path."""
        whole = sorted((*self._paths, *self._folders))
        return {ending: path for path in whole for ending in endings_of(path)}

    @cached_property
    def _names(self) -> dict[str, tuple[list[str], list[str]]]:
        """By folder: the names in it, sorted by how they begin and by how they end, the latter spelt backwards."""
        found: dict[str, list[str]] = {}
        for path in self._sorted:
            folder, _, name = path.rpartition("/")
            found.setdefault(folder, []).append(name)
        return {folder: (sorted(names), sorted(name[::-1] for name in names)) for folder, names in found.items()}


def is_pattern(path: str) -> bool:
    """Whether it covers more than one file: a folder with its slash, or a glob."""
    return path.endswith("/") or "*" in path or "?" in path


def uncovered(paths: Iterable[str], declared: Iterable[str]) -> tuple[str, ...]:
    """The paths that nothing declared covers, each once."""
    known = frozenset(declared)
    patterns = Patterns(sorted(item for item in known if is_pattern(item)))
    return tuple(path for path in dict.fromkeys(paths) if path not in known and not patterns.cover(path))


def folders_of(path: str) -> Iterable[str]:
    """`a` and `a/b` of `a/b/c.py`."""
    return accumulate(path.rstrip("/").split("/")[:-1][:_DEEPEST], "{}/{}".format)


def endings_of(path: str) -> Iterable[str]:
    """`b/c.py` and `c.py` of `a/b/c.py`."""
    parts = path.split("/")
    return ("/".join(parts[at:]) for at in range(max(1, len(parts) - _DEEPEST), len(parts)))


def _around(names: Sequence[str], name: str) -> Iterable[str]:
    """Those that would stand beside it: they share more of their beginning with it than any other."""
    at = bisect_left(names, name)
    return names[max(0, at - MOST_BESIDE // 4) : at + MOST_BESIDE // 4]


def _has_in_order(path: str, pieces: Iterable[str]) -> bool:
    """What any match needs, and quickly seen."""
    closed, at = f"{path}/", 0
    for piece in pieces:
        found = closed.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return True


@lru_cache(maxsize=1024)
def _pieces(pattern: str) -> tuple[str, ...]:
    """What stands between the wildcards. A pattern also covers what is below: its end is that of a name."""
    bare = pattern.removeprefix("./").rstrip("/")
    return () if bare in ("", ".") else tuple(_WILD.split(f"{bare}/"))


def _differ_by_number(one: str, other: str) -> bool:
    """`0002_users.py` is not meant by `0001_users.py`."""
    return one.translate(_WITHOUT_DIGITS) == other.translate(_WITHOUT_DIGITS)


_WITHOUT_DIGITS = str.maketrans("", "", "0123456789")


_WORD = re.compile(r"[^\s\"'`;|&()<>=]+")
_ABSENCE = re.compile(r"(?:^|\s)!\s|\s-not\s|--ignore|--deselect")
_NOT_HERE = ("/", "~", "$", "-", ".planning/", *MADE_BY_A_BUILD)
"""Elsewhere on the machine, or seldom committed."""
_MOST_SOUGHT = 500
"""So many paths are compared with the names that are there."""


class Missing(NamedTuple):
    rule: str
    line: int
    what: str
    hint: str
    guessed: bool = False


@dataclass
class Expected:
    """What is there at the base, and what the steps so far have made."""

    outline: Outline
    tree: Tree
    _made: set[str] = field(default_factory=set)
    _endings: set[str] = field(default_factory=set)
    _patterns: Patterns = field(default_factory=Patterns)
    _folders: set[str] = field(default_factory=set)
    _sought: dict[str, str | None] = field(default_factory=dict)

    def missing(self) -> Iterator[Missing]:
        for step in sorted(self.outline.steps, key=lambda step: (step.wave, step.line)):
            yield from self._of_files(step)
            self._make(step)
            yield from self._of_action(step)
            yield from self._of_tests(step)
        yield from self._of_artifacts()
        yield from self._of_context()

    def _of_files(self, step: Step) -> Iterator[Missing]:
        absent = [path for path in step.files[:MOST_FILES] if not self._is_there(path) and self._is_judged(path)]
        alone = len(absent) == len(step.files)
        folders = Counter(path.rpartition("/")[0] for path in absent)
        speaks_of = tone(step.text) if absent else Intent.UNSAID
        for path in absent:
            said = intent(step.text, path)
            if said is Intent.CREATE:
                continue
            name, meant = shortened(path, 80), self._meant(path)
            hint = f"write {meant}" if meant else f"name the file that is meant, or say: create {path}"
            if said is Intent.CHANGE:
                what = f"{name} is to be changed and is not there"
                yield Missing("missing-file", step.line_of(path), what, hint)
            elif self._is_nowhere(path) and folders[path.rpartition("/")[0]] > 1 and not meant:
                continue
            elif why := self._doubt(path, meant, speaks_of, alone):
                yield Missing("missing-file", step.line_of(path), f"{name} is not there{why}", hint, guessed=True)

    def _meant(self, path: str) -> str | None:
        """The file that may be meant, as it can be shown: a name need not be text."""
        if path not in self._sought and len(self._sought) < _MOST_SOUGHT:
            meant = self.tree.meant_by(path)
            self._sought[path] = shown(meant) if meant else None
        return self._sought.get(path)

    def _doubt(self, path: str, meant: str | None, speaks_of: Intent, alone: bool) -> str | None:
        """Why a file that nobody says to create is hardly meant to be."""
        if meant:
            return f", but {meant} is"
        if is_test(path) or not has_ending(path) or speaks_of is not Intent.CHANGE:
            return None
        if self._is_nowhere(path):
            return ", and neither is its folder"
        return ", and the step speaks only of changing" if alone else None

    def _is_judged(self, path: str) -> bool:
        """Not what the linter refuses, nor, in a sentence, what may be a branch or a route."""
        if path.startswith(_NOT_HERE) or ".." in path or "\\" in path:
            return False
        return self.outline.is_plan or has_ending(path)

    def _of_action(self, step: Step) -> Iterator[Missing]:
        """Of a PLAN.md: what a task is told to change beyond the files that it lists."""
        beyond = uncovered(islice(_paths_in(step.action), MOST_FILES), step.files)
        for path in beyond:
            if path.startswith(_NOT_HERE) or not has_ending(path) or "/" not in path or _is_end_of(path, step.files):
                continue
            if not is_to_change(step.action, path):
                continue
            name = shortened(path, 80)
            if self.tree.has_ending_in(path):
                what = f"{name} is to be changed here and is not among the files of the task"
                yield Missing("undeclared-file", step.line_of(path), what, f"add {path} to <files>", guessed=True)
            elif path not in self._listed and intent(self.outline.text, path) is not Intent.CREATE:
                meant = self._meant(path)
                hint = f"write {meant}" if meant else f"name the file that is meant, or say: create {path}"
                what = f"{name} is to be changed and is not there"
                yield Missing("missing-file", step.line_of(path), what, hint)

    @cached_property
    def _listed(self) -> frozenset[str]:
        return frozenset(self.outline.files)

    def _of_tests(self, step: Step) -> Iterator[Missing]:
        for command in step.verify:
            absent = [] if _ABSENCE.search(command) else [*filter(self._is_unwritten, _tests_in(command))]
            line = step.line_of(command) if absent else 0
            for name in absent:
                what = f"`{shortened(command, 60)}` runs {shortened(name, 80)}, which is not there"
                hint = f"add {name} to the files of this step or of one before it"
                yield Missing("missing-test", line, what, hint)

    def _of_artifacts(self) -> Iterator[Missing]:
        for artifact in self.outline.plan.must_haves.artifacts if self.outline.plan else ():
            if not self._is_there(artifact.path) and not artifact.path.startswith(_NOT_HERE):
                what = f"the artifact {shortened(artifact.path, 80)} is not there, and no task lists it"
                hint = f"add {artifact.path} to the <files> of the task that makes it"
                yield Missing("missing-artifact", artifact.line, what, hint)

    def _of_context(self) -> Iterator[Missing]:
        plan, whole = self.outline.plan, self.outline.whole
        named = in_words(plan.context.replace("`", " ")) if plan else iter(whole.files)
        step = Step("", 1, (), (), (), ordered=True, text=self.outline.text)
        for path in islice(dict.fromkeys(named), MOST_FILES):
            if self._is_there(path) or self.tree.has_ending_in(path) or path.startswith(_NOT_HERE):
                continue
            if has_ending(path) and (plan or "/" in path) and intent(whole.text, path) is not Intent.CREATE:
                meant = self._meant(path)
                hint = f"write {meant}" if meant else "name a file that is there, or leave it out"
                what = f"{shortened(path, 80)} is spoken of and is not there"
                yield Missing("missing-context", step.line_of(path), what, hint)

    def _is_there(self, path: str) -> bool:
        if path in self._made or self.tree.has(path) or self._patterns.cover(path):
            return True
        return not self.outline.is_plan and self.tree.has_ending_in(path)

    def _is_unwritten(self, name: str) -> bool:
        """Nor in a folder that the command goes into first: `cd web && vitest run tests/a.test.ts`."""
        return not self._is_there(name) and not self.tree.has_ending_in(name) and name not in self._endings

    def _is_nowhere(self, path: str) -> bool:
        """Neither its folder is there nor one that the steps so far have made. In an empty project all is new."""
        folder = path.rpartition("/")[0]
        return bool(self.tree) and not self.tree.has_folder_of(path) and folder not in self._folders

    def _make(self, step: Step) -> None:
        self._made.update(step.files)
        self._patterns.add(path for path in step.files if is_pattern(path))
        self._endings.update(ending for path in step.files for ending in endings_of(path))
        self._folders.update(folder for path in step.files for folder in folders_of(path))


def _paths_in(action: str) -> Iterator[str]:
    """What its sentences name, and not the code that it shows."""
    for line in Document.of(action).lines if action else ():
        if line.kind is Kind.PROSE:
            yield from in_words(line.plain)
            for code in line.codes:
                yield from in_code(code)


def _is_end_of(path: str, files: Iterable[str]) -> bool:
    """`parse.py` where the task lists `src/parse.py`."""
    return any(file.endswith(f"/{path}") for file in files)


def _tests_in(command: str) -> Iterator[str]:
    """Files of tests that a command names, from the root or from where it goes."""
    for match in _WORD.finditer(command):
        name = match[0].partition("::")[0].removeprefix("./")
        is_path = len(name) <= 200 and "*" not in name and ".." not in name and not name.startswith(_NOT_HERE)
        if is_path and has_ending(name) and is_test(name):
            yield name
