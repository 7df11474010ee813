"""The files of the base commit, and the files that a plan counts on although they do not exist.

Repositories are large, and a plan may name thousands of files and patterns. So no function scans all files for each
name: similar names are neighbours in sorted lists, and patterns are tried a limited number of times.

Most files that do not exist will be created, and nobody would read a rule that doubts each of them:

    | a file that is not in the base, and that no earlier step lists | result |
    |---|---|
    | the text says to create it | fine |
    | the text says to change it | missing |
    | it has nearly the name of an existing file | missing: that one is meant |
    | several files of the step are in a folder that does not exist | fine: a new package |
    | its folder does not exist, and the step is only about changes | missing |
    | the step is only about changes, and none of its files exists | missing |
    | otherwise: a new file in an existing folder, or a test | fine |

A file that an `<action>` plainly says to change must exist or be listed by some task, and must be among the task's own
files. The time stays proportional to the length of the text: similar names are searched for the first paths of a plan
only. What could not be examined is not held against the plan.
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

from proofstone.agents.rules.tool_rules import format_path
from proofstone.common.globs import matches
from proofstone.common.risk import is_test_path
from proofstone.plan_gate.rules.document import LineKind, MarkdownDocument, PlanStep
from proofstone.plan_gate.rules.outline import FileIntent, PlanOutline, find_intent, find_tone, says_to_change
from proofstone.plans.fields import shorten_text
from proofstone.plans.mentions import BUILD_FOLDERS, find_paths_in_code, find_paths_in_prose, looks_like_file
from proofstone.plans.parser import MAX_FILES

MAX_COMPARED_NAMES = 48
"""At most this many names are compared with a missing one."""
MAX_PATTERN_TRIES = 500_000
"""Budget for trying patterns: 1 for a quick test, 1 per character for a full match."""
_SIMILARITY = 0.9
"""`pars.py` for `parse.py`, but not `cart.py` for `card.py`."""
_MAX_PATH_LENGTH = 400
"""Longer paths and patterns are not examined."""
_MAX_DEPTH = 40
"""How many folders of a path are examined."""
_WILD = re.compile(r"\*\*/?|\*|\?")


class PatternSet:
    """Patterns with a limited number of tries. After that, every path counts as covered, because what was not examined
    must not be held against a plan.
    """

    def __init__(self, patterns: Iterable[str] = (), tries: int = MAX_PATTERN_TRIES) -> None:
        self._all = dict.fromkeys(patterns)
        self.tries = tries

    def add(self, patterns: Iterable[str]) -> None:
        self._all.update(dict.fromkeys(patterns))

    def covers(self, path: str) -> bool:
        """Whether one of the patterns covers the path."""
        return any(self.matches(pattern, path) for pattern in self._all)

    def matches(self, pattern: str, path: str) -> bool:
        if self.tries <= 0 or len(pattern) > _MAX_PATH_LENGTH or len(path) > _MAX_PATH_LENGTH:
            return True
        self.tries -= 1
        if not _contains_in_order(path, _split_pattern(pattern)):
            return False
        self.tries -= len(pattern) + len(path)
        return matches(pattern, path)


class BaseTree:
    """The files of the base commit."""

    def __init__(self, paths: Collection[str]) -> None:
        self._paths = frozenset(paths)
        self._patterns = PatternSet()

    def __bool__(self) -> bool:
        return bool(self._paths)

    def has(self, path: str) -> bool:
        """Whether the path is a file, a folder, or a pattern that matches something."""
        bare = path.rstrip("/")
        return bare in self._paths or bare in self._folders or self._is_matched(path)

    def has_path_ending(self, path: str) -> bool:
        """Like `has`, but `parse.py` may be `src/parse.py`, as people write it."""
        return self.has(path) or path.rstrip("/") in self._endings

    def has_folder_of(self, path: str) -> bool:
        folder = path.rstrip("/").rpartition("/")[0]
        return not folder or folder in self._folders

    def find_similar(self, path: str) -> str | None:
        """Return the existing file that the author may have meant."""
        if is_test_path(path) or is_path_pattern(path):
            return None
        folder, _, name = path.rpartition("/")
        similar = get_close_matches(name, self.find_similar_names(path), 1, _SIMILARITY)
        if similar:
            return f"{folder}/{similar[0]}" if folder else similar[0]
        return None if self.has_folder_of(path) else self._from_another_root(path)

    def find_similar_names(self, path: str) -> list[str]:
        """Return names in the folder that begin or end most similarly and are about as long."""
        folder, _, name = path.rpartition("/")
        forwards, backwards = self._names.get(folder, ((), ()))
        neighbours = dict.fromkeys(
            (
                *_find_neighbours(forwards, name),
                *(neighbour[::-1] for neighbour in _find_neighbours(backwards, name[::-1])),
            )
        )
        return [
            neighbour
            for neighbour in neighbours
            if abs(len(neighbour) - len(name)) <= 2 and not _differ_by_number(neighbour, name)
        ]

    def _from_another_root(self, path: str) -> str | None:
        """Return `src/shop/cart.py` for `shop/cart.py`, or the other way round."""
        shorter = next((ending for ending in list_endings(path) if "/" in ending and ending in self._paths), None)
        return shorter or self._endings.get(path)

    def _is_matched(self, pattern: str) -> bool:
        prefix = pattern.partition("*")[0].partition("?")[0]
        if prefix == pattern:
            return False
        first, last = bisect_left(self._sorted_paths, prefix), bisect_left(self._sorted_paths, f"{prefix}\U0010ffff")
        return any(self._patterns.matches(pattern, self._sorted_paths[index]) for index in range(first, last))

    @cached_property
    def _sorted_paths(self) -> list[str]:
        return sorted(self._paths)

    @cached_property
    def _folders(self) -> frozenset[str]:
        return frozenset(folder for path in self._paths for folder in list_folders(path))

    @cached_property
    def _endings(self) -> dict[str, str]:
        """Paths by their last parts."""
        entries = sorted((*self._paths, *self._folders))
        return {ending: path for path in entries for ending in list_endings(path)}

    @cached_property
    def _names(self) -> dict[str, tuple[list[str], list[str]]]:
        """By folder: its names sorted by their beginning, and reversed names sorted by their ending."""
        names_by_folder: dict[str, list[str]] = {}
        for path in self._sorted_paths:
            folder, _, name = path.rpartition("/")
            names_by_folder.setdefault(folder, []).append(name)
        return {
            folder: (sorted(names), sorted(name[::-1] for name in names)) for folder, names in names_by_folder.items()
        }


def is_path_pattern(path: str) -> bool:
    """Whether the path covers more than one file: a folder with its slash, or a glob."""
    return path.endswith("/") or "*" in path or "?" in path


def find_uncovered(paths: Iterable[str], declared: Iterable[str]) -> tuple[str, ...]:
    """Return the paths that are not covered by the declared ones, each once."""
    known = frozenset(declared)
    patterns = PatternSet(sorted(declared_path for declared_path in known if is_path_pattern(declared_path)))
    return tuple(path for path in dict.fromkeys(paths) if path not in known and not patterns.covers(path))


def list_folders(path: str) -> Iterable[str]:
    """Yield `a` and `a/b` for `a/b/c.py`."""
    return accumulate(path.rstrip("/").split("/")[:-1][:_MAX_DEPTH], "{}/{}".format)


def list_endings(path: str) -> Iterable[str]:
    """Yield `b/c.py` and `c.py` for `a/b/c.py`."""
    parts = path.split("/")
    return ("/".join(parts[at:]) for at in range(max(1, len(parts) - _MAX_DEPTH), len(parts)))


def _find_neighbours(names: Sequence[str], name: str) -> Iterable[str]:
    """Return the names next to it in the sorted list, which share the longest beginning with it."""
    at = bisect_left(names, name)
    return names[max(0, at - MAX_COMPARED_NAMES // 4) : at + MAX_COMPARED_NAMES // 4]


def _contains_in_order(path: str, pieces: Iterable[str]) -> bool:
    """Whether the path contains the pieces in order: a quick test that every match passes."""
    closed, position = f"{path}/", 0
    for piece in pieces:
        index = closed.find(piece, position)
        if index < 0:
            return False
        position = index + len(piece)
    return True


@lru_cache(maxsize=1024)
def _split_pattern(pattern: str) -> tuple[str, ...]:
    """Return the text between the wildcards. A pattern also covers what is below it, so its end is the end of a
    name.
    """
    bare = pattern.removeprefix("./").rstrip("/")
    return () if bare in ("", ".") else tuple(_WILD.split(f"{bare}/"))


def _differ_by_number(name: str, other: str) -> bool:
    """Whether the names differ only in digits: `0002_users.py` does not mean `0001_users.py`."""
    return name.translate(_WITHOUT_DIGITS) == other.translate(_WITHOUT_DIGITS)


_WITHOUT_DIGITS = str.maketrans("", "", "0123456789")


_WORD = re.compile(r"[^\s\"'`;|&()<>=]+")
_ABSENCE = re.compile(r"(?:^|\s)!\s|\s-not\s|--ignore|--deselect")
_OUTSIDE_PREFIXES = ("/", "~", "$", "-", ".planning/", *BUILD_FOLDERS)
"""Elsewhere on the machine, or seldom committed."""
_MAX_SEARCHED = 500
"""For at most this many paths, similar names are searched."""


class MissingFile(NamedTuple):
    """A file that a plan counts on although it does not exist."""

    rule: str
    line: int
    message: str
    hint: str
    is_guess: bool = False


@dataclass
class ExpectedFiles:
    """The files of the base, and those that the steps so far have created."""

    outline: PlanOutline
    tree: BaseTree
    _created: set[str] = field(default_factory=set)
    _endings: set[str] = field(default_factory=set)
    _patterns: PatternSet = field(default_factory=PatternSet)
    _folders: set[str] = field(default_factory=set)
    _similar_files: dict[str, str | None] = field(default_factory=dict)

    def find_missing(self) -> Iterator[MissingFile]:
        """Yield the missing files."""
        for step in sorted(self.outline.steps, key=lambda step: (step.wave, step.line)):
            yield from self._check_files(step)
            self._add_created(step)
            yield from self._check_action(step)
            yield from self._check_tests(step)
        yield from self._check_artifacts()
        yield from self._check_context()

    def _check_files(self, step: PlanStep) -> Iterator[MissingFile]:
        absent = [path for path in step.files[:MAX_FILES] if not self._exists(path) and self._can_be_judged(path)]
        has_no_files = len(absent) == len(step.files)
        folders = Counter(path.rpartition("/")[0] for path in absent)
        step_tone = find_tone(step.text) if absent else FileIntent.UNSAID
        for path in absent:
            file_intent = find_intent(step.text, path)
            if file_intent is FileIntent.CREATE:
                continue
            name, similar = shorten_text(path, 80), self._find_similar(path)
            hint = f"write {similar}" if similar else f"name the right file, or say: create {path}"
            if file_intent is FileIntent.CHANGE:
                what = f"{name} is to be changed and is not there"
                yield MissingFile("missing-file", step.find_line(path), what, hint)
            elif self._has_no_folder(path) and folders[path.rpartition("/")[0]] > 1 and not similar:
                continue
            elif why := self._explain_doubt(path, similar, step_tone, has_no_files):
                yield MissingFile(
                    "missing-file", step.find_line(path), f"{name} is not there{why}", hint, is_guess=True
                )

    def _find_similar(self, path: str) -> str | None:
        """Return the file that may be meant, in printable form: a name need not be text."""
        if path not in self._similar_files and len(self._similar_files) < _MAX_SEARCHED:
            similar = self.tree.find_similar(path)
            self._similar_files[path] = format_path(similar) if similar else None
        return self._similar_files.get(path)

    def _explain_doubt(self, path: str, similar: str | None, step_tone: FileIntent, has_no_files: bool) -> str | None:
        """Explain why a file that nobody says to create is probably not new; None if it may be."""
        if similar:
            return f", but {similar} is"
        if is_test_path(path) or not looks_like_file(path) or step_tone is not FileIntent.CHANGE:
            return None
        if self._has_no_folder(path):
            return ", and neither is its folder"
        return ", and the step speaks only of changing" if has_no_files else None

    def _can_be_judged(self, path: str) -> bool:
        """Whether the rules apply. Not to what the linter refuses, nor, in a sentence, to what may be a branch or a
        route.
        """
        if path.startswith(_OUTSIDE_PREFIXES) or ".." in path or "\\" in path:
            return False
        return self.outline.is_plan or looks_like_file(path)

    def _check_action(self, step: PlanStep) -> Iterator[MissingFile]:
        """For a PLAN.md: check what a task says to change beyond the files that it lists."""
        undeclared = find_uncovered(islice(_find_paths(step.action), MAX_FILES), step.files)
        for path in undeclared:
            if (
                path.startswith(_OUTSIDE_PREFIXES)
                or not looks_like_file(path)
                or "/" not in path
                or _is_end_of(path, step.files)
            ):
                continue
            if not says_to_change(step.action, path):
                continue
            name = shorten_text(path, 80)
            if self.tree.has_path_ending(path):
                what = f"{name} should be changed here but is not among the files of the task"
                yield MissingFile(
                    "undeclared-file", step.find_line(path), what, f"add {path} to <files>", is_guess=True
                )
            elif path not in self._listed_files and find_intent(self.outline.text, path) is not FileIntent.CREATE:
                similar = self._find_similar(path)
                hint = f"write {similar}" if similar else f"name the right file, or say: create {path}"
                what = f"{name} is to be changed and is not there"
                yield MissingFile("missing-file", step.find_line(path), what, hint)

    @cached_property
    def _listed_files(self) -> frozenset[str]:
        return frozenset(self.outline.files)

    def _check_tests(self, step: PlanStep) -> Iterator[MissingFile]:
        for command in step.verify:
            absent = [] if _ABSENCE.search(command) else [*filter(self._is_unwritten, _find_tests(command))]
            line = step.find_line(command) if absent else 0
            for name in absent:
                what = f"`{shorten_text(command, 60)}` runs {shorten_text(name, 80)}, which is not there"
                hint = f"add {name} to the files of this step or of one before it"
                yield MissingFile("missing-test", line, what, hint)

    def _check_artifacts(self) -> Iterator[MissingFile]:
        for artifact in self.outline.plan.must_haves.artifacts if self.outline.plan else ():
            if not self._exists(artifact.path) and not artifact.path.startswith(_OUTSIDE_PREFIXES):
                what = f"the artifact {shorten_text(artifact.path, 80)} does not exist, and no task lists it"
                hint = f"add {artifact.path} to the <files> of the task that makes it"
                yield MissingFile("missing-artifact", artifact.line, what, hint)

    def _check_context(self) -> Iterator[MissingFile]:
        plan, whole = self.outline.plan, self.outline.whole
        paths = find_paths_in_prose(plan.context.replace("`", " ")) if plan else iter(whole.files)
        step = PlanStep("", 1, (), (), (), is_ordered=True, text=self.outline.text)
        for path in islice(dict.fromkeys(paths), MAX_FILES):
            if self._exists(path) or self.tree.has_path_ending(path) or path.startswith(_OUTSIDE_PREFIXES):
                continue
            if (
                looks_like_file(path)
                and (plan or "/" in path)
                and find_intent(whole.text, path) is not FileIntent.CREATE
            ):
                similar = self._find_similar(path)
                hint = f"write {similar}" if similar else "name an existing file, or remove it"
                what = f"{shorten_text(path, 80)} is mentioned but does not exist"
                yield MissingFile("missing-context", step.find_line(path), what, hint)

    def _exists(self, path: str) -> bool:
        if path in self._created or self.tree.has(path) or self._patterns.covers(path):
            return True
        return not self.outline.is_plan and self.tree.has_path_ending(path)

    def _is_unwritten(self, name: str) -> bool:
        """Whether the test exists nowhere, not even in a folder that the command enters: `cd web && vitest run
        tests/a.test.ts`.
        """
        return not self._exists(name) and not self.tree.has_path_ending(name) and name not in self._endings

    def _has_no_folder(self, path: str) -> bool:
        """Whether its folder exists neither in the base nor through earlier steps. In an empty project all is new."""
        folder = path.rpartition("/")[0]
        return bool(self.tree) and not self.tree.has_folder_of(path) and folder not in self._folders

    def _add_created(self, step: PlanStep) -> None:
        self._created.update(step.files)
        self._patterns.add(path for path in step.files if is_path_pattern(path))
        self._endings.update(ending for path in step.files for ending in list_endings(path))
        self._folders.update(folder for path in step.files for folder in list_folders(path))


def _find_paths(action: str) -> Iterator[str]:
    """Yield the paths that the sentences name, but not those in code blocks."""
    for line in MarkdownDocument.parse(action).lines if action else ():
        if line.kind is LineKind.PROSE:
            yield from find_paths_in_prose(line.prose)
            for code in line.inline_codes:
                yield from find_paths_in_code(code)


def _is_end_of(path: str, files: Iterable[str]) -> bool:
    """Whether the task lists the path in a longer form: `parse.py` for `src/parse.py`."""
    return any(file.endswith(f"/{path}") for file in files)


def _find_tests(command: str) -> Iterator[str]:
    """Yield the test files that a command names, from the root or from the folder that it enters."""
    for match in _WORD.finditer(command):
        name = match[0].partition("::")[0].removeprefix("./")
        is_path = len(name) <= 200 and "*" not in name and ".." not in name and not name.startswith(_OUTSIDE_PREFIXES)
        if is_path and looks_like_file(name) and is_test_path(name):
            yield name
