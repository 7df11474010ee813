"""Find the oracle of a change: the changed files that decide what the base's tests expect.

`check.rules.oracle_files` decides. This module reads the sources of the base, and only if the change touches a file
that may be oracle although neither its path nor the report says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from proofstone.check.inspection import ChangedFile
from proofstone.check.rules.oracle_files import (
    ObservedUse,
    OracleFacts,
    OracleReason,
    SourceUse,
    find_command_files,
    find_reason,
    find_shared_comparisons,
    find_uses,
    is_helper,
    is_named_as_helper,
    is_shared_helper,
    is_source,
    is_test_side,
    may_be_named,
)
from proofstone.check.rules.protected import ProtectedRole
from proofstone.common.models import ChangeKind, Finding

_MAX_SOURCES: Final = 3000
"""Sources of the base that are read in order to see what uses a file."""
_NEITHER: Final = re.compile(r"(?:^|/)(?:docs?|examples?|demos?|benchmarks?|scripts?|tools?|ci|\.github)/")
"""Folders whose sources are neither the product nor its tests."""


@dataclass(frozen=True)
class Oracle:
    """What decides the expectations of the base's tests, among the files that a change touches."""

    files: Sequence[ChangedFile]
    paths: Set[str]
    """All files of the base."""
    read: Callable[[Iterable[str]], Mapping[str, bytes]]
    """Reads files of the base that exist and are not too large."""
    commands: Sequence[str] = ()
    """Commands that prove something about the change: verify commands and those of criteria."""
    observed: ObservedUse | None = None
    _facts: dict[frozenset[str], OracleFacts] = field(default_factory=dict)

    def find(self, test_files: Set[str] = frozenset()) -> dict[str, OracleReason]:
        """Return the changed files that are oracle, with the reason. `test_files` are those of the base's report. A
        file that the change adds is oracle only if it decides how the base's tests run."""
        facts = self.build_facts(test_files)
        found = {file.path: find_reason(file.path, file.roles, facts) for file in self.files}
        reasons = {path: reason for path, reason in found.items() if reason is not None}
        added = {file.path for file in self.files if file.kind is ChangeKind.ADDED}
        edits_source = any(is_source(file.path) and file.path not in reasons and not file.roles for file in self.files)
        return {
            path: reason
            for path, reason in reasons.items()
            if (path not in added or reason is OracleReason.RUNNER)
            and (edits_source or reason not in (OracleReason.NAMED, OracleReason.OPENED))
        }

    def find_shared(self, test_files: Set[str] = frozenset()) -> list[Finding]:
        """Return a finding for each changed comparison in a helper that tests and product both import."""
        facts = self.build_facts(test_files)
        findings = []
        for file in self.files:
            if is_shared_helper(file.path, facts):
                old = (file.old or b"").decode("utf-8", "replace").splitlines()
                kept = set((file.new or b"").decode("utf-8", "replace").splitlines())
                findings.append(
                    find_shared_comparisons(file.path, file.added_lines, [line for line in old if line not in kept])
                )
        return [finding for finding in findings if finding is not None]

    def is_used_by_tests(self, edited: Set[str], test_files: Set[str]) -> bool:
        """Return whether other sources of the tests import or name one of these files."""
        return any(
            user != path and find_uses(text, path, user)
            for user, text in self._sources.items()
            if is_test_side(user, test_files)
            for path in edited
        )

    def build_facts(self, test_files: Set[str]) -> OracleFacts:
        """Return what is known about the changed files."""
        key = frozenset(test_files)
        if key not in self._facts:
            self._facts[key] = self._collect_facts(key)
        return self._facts[key]

    def _collect_facts(self, test_files: frozenset[str]) -> OracleFacts:
        facts = OracleFacts(test_files=test_files, in_commands=self._in_commands, observed=self.observed)
        candidates = [file for file in self.files if self._is_candidate(file, test_files)]
        test_paths = [path for path in self.paths if is_test_side(path, test_files)]
        helpers = {
            file.path
            for file in candidates
            if is_helper(file.path, (file.old or b"").decode("utf-8", "replace"), test_paths)
        }
        paths = [file.path for file in candidates if file.path in helpers or may_be_named(file.path)]
        if not paths:
            return replace(facts, helpers=helpers)
        uses: dict[bool, dict[str, set[SourceUse]]] = {False: {}, True: {}}
        for user, text in self._sources.items():
            is_test = is_test_side(user, test_files) or (is_named_as_helper(user) and user not in helpers)
            if not is_test and _NEITHER.search(user):
                continue
            for path in paths:
                if path != user and (found := find_uses(text, path, user)):
                    uses[is_test].setdefault(path, set()).update(found)
        return replace(facts, helpers=helpers, test_uses=uses[True], product_uses=uses[False])

    def _is_candidate(self, file: ChangedFile, test_files: Set[str]) -> bool:
        """Return whether a file may be oracle although neither its path nor the report says so."""
        has_role = file.path in test_files or file.roles & {ProtectedRole.TESTS, ProtectedRole.RUNNER}
        return not has_role and file.kind is not ChangeKind.ADDED and file.old is not None

    @cached_property
    def _in_commands(self) -> frozenset[str]:
        if not self.commands:
            return frozenset()

        def read(path: str) -> str | None:
            content = self.read([path]).get(path)
            return content.decode("utf-8", "replace") if content is not None and b"\0" not in content[:8192] else None

        changed = {file.path for file in self.files}
        named = find_command_files(self.commands, self.paths, read) & changed
        imported = {
            path
            for path in named
            if is_source(path)
            and any(
                find_uses(text, path, user)
                for user, text in self._sources.items()
                if user != path and not is_test_side(user) and not _NEITHER.search(user) and user not in named
            )
        }
        return frozenset(named - imported)

    @cached_property
    def _sources(self) -> Mapping[str, str]:
        """The sources of the base that may use other files."""
        selected = sorted(path for path in self.paths if is_source(path))[:_MAX_SOURCES]
        return {path: content.decode("utf-8", "replace") for path, content in self.read(selected).items()}
