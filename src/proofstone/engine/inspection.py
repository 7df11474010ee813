"""Checks that run inside the engine and execute nothing: tier 1 on every changed file, tier 4 on Large changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

from proofstone.adapters.checks.readiness import readiness
from proofstone.adapters.checks.syntax import new_syntax_errors
from proofstone.adapters.git.blobs import BlobReader
from proofstone.adapters.git.listing import GITLINK, SYMLINK
from proofstone.adapters.git.program import readable
from proofstone.adapters.git.snapshot import Snapshot
from proofstone.contracts.change import ChangeKind
from proofstone.contracts.check import CheckKind, CheckResult
from proofstone.contracts.diagnostic import Diagnostic
from proofstone.contracts.finding import Finding
from proofstone.contracts.verdict import Phase, Severity, Verdict
from proofstone.core.hygiene import conflict_markers, oversized
from proofstone.core.protected import Role, changed_roles, roles
from proofstone.core.risk import PathChange, docs_only, size_of

Inspected = tuple[CheckResult, list[Finding]]

_MANY_LINES = 4000


@dataclass(frozen=True)
class ChangedFile:
    """A changed file with its content before and after; None where there is none, or it is too large to read."""

    path: str
    kind: ChangeKind
    old: bytes | None
    new: bytes | None
    old_size: int | None = None
    new_size: int | None = None
    """Of any file, however large; None where there is none."""

    @cached_property
    def roles(self) -> frozenset[Role]:
        """What it decides, as far as the change touched that. A file that is too large to be read counts whole."""
        unread = (self.old is None and self.old_size is not None) or (self.new is None and self.new_size is not None)
        return roles(self.path) if unread else changed_roles(self.path, self.old, self.new)

    @cached_property
    def added(self) -> list[tuple[int, str]]:
        """Numbers and texts of the lines that the change added."""
        if self.new is None:
            return []
        after = self.new.decode("utf-8", "replace").splitlines()
        if self.old is None:
            return list(enumerate(after, start=1))
        before = self.old.decode("utf-8", "replace").splitlines()
        if len(before) + len(after) > _MANY_LINES:
            return _not_among(after, before)
        matcher = SequenceMatcher(None, before, after, autojunk=len(after) > 2000)
        return [
            (number + 1, after[number])
            for tag, _, _, start, end in matcher.get_opcodes()
            if tag in ("insert", "replace")
            for number in range(start, end)
        ]


def _not_among(after: Sequence[str], before: Sequence[str]) -> list[tuple[int, str]]:
    """Lines that `before` has fewer of, wherever they stand: alignment would take hours on generated files."""
    left = Counter(before)
    added = []
    for number, line in enumerate(after, start=1):
        if left[line]:
            left[line] -= 1
        else:
            added.append((number, line))
    return added


def changed_files(snapshot: Snapshot, blobs: BlobReader) -> list[ChangedFile]:
    """The changed files that have bytes: no submodules, no symlinks."""
    special = (GITLINK, SYMLINK)
    files = []
    for entry in snapshot.entries:
        if entry.mode in special or (entry.kind is ChangeKind.DELETED and entry.old_mode in special):
            continue
        had = entry.kind is not ChangeKind.ADDED and entry.old_mode not in special
        old_size, old = blobs.measured(entry.old_blob) if had else (None, None)
        size, new = blobs.measured(entry.blob) if entry.kind is not ChangeKind.DELETED else (None, None)
        files.append(ChangedFile(readable(entry.path), entry.kind, old, new, old_size, size))
    return files


def path_changes(files: Iterable[ChangedFile]) -> list[PathChange]:
    return [PathChange(path=file.path, kind=file.kind, added=tuple(text for _, text in file.added)) for file in files]


def is_large(files: Sequence[ChangedFile]) -> bool:
    return size_of(path_changes(files)) == "Large"


def is_documentation(snapshot: Snapshot) -> bool:
    """Documentation and nothing else: a symlink or a submodule is something else, wherever it stands."""
    special = any(mode in (GITLINK, SYMLINK) for entry in snapshot.entries for mode in (entry.mode, entry.old_mode))
    return not special and docs_only(readable(entry.path) for entry in snapshot.entries)


def inspect(files: Sequence[ChangedFile], tree: str, *, max_file_kb: int) -> list[Inspected]:
    """Tier 1: syntax, conflict markers, size."""
    present = [file for file in files if file.new is not None]
    syntax: list[Diagnostic] = []
    known = 0
    for file in present:
        errors = new_syntax_errors(file.path, file.old, file.new or b"")
        known += errors is not None
        syntax += errors or ()
    markers = [one for file in present for one in conflict_markers(file.path, file.old, file.new or b"")]
    sizes = [
        one
        for file in files
        if file.new_size is not None
        for one in oversized(file.path, file.old_size, file.new_size, max_file_kb << 10)
    ]
    measured = sum(file.new_size is not None for file in files)
    return [
        _parsed(syntax, known, len(present), tree),
        _said(CheckKind.CONFLICT, markers, "resolve the conflict", tree, output=f"{len(present)} files read"),
        _said(
            CheckKind.SIZE,
            sizes,
            "keep it out of git (or use LFS), or raise check.max_file_kb",
            tree,
            output=f"{measured} files measured",
        ),
    ]


def _parsed(found: Sequence[Diagnostic], known: int, present: int, tree: str) -> Inspected:
    """What could not be parsed was not checked: where that is all of it, the check says so instead of passing."""
    said = f"{known} of {present} changed files parsed"
    result, findings = _said(CheckKind.SYNTAX, found, "mend the syntax", tree, tool="tree-sitter", output=said)
    if present and not known:
        unsure = {"verdict": Verdict.UNVERIFIABLE, "reason": "no changed file is in a language that it parses"}
        result = result.model_copy(update={**unsure, "required": False})
    return result, findings


def _said(
    kind: CheckKind,
    found: Sequence[Diagnostic],
    fix: str,
    tree: str,
    *,
    name: str = "",
    tier: int = 1,
    tool: str = "proofstone",
    severity: Severity = Severity.MAJOR,
    output: str = "",
) -> Inspected:
    """A check of the engine's own, and what it found; anything graver than `minor` fails it."""
    name = name or kind.value
    findings = [
        Finding(
            layer="cascade",
            rule=name,
            severity=severity,
            path=one.path,
            line=one.line,
            detail=one.message or one.code,
            fix=fix,
            check=name,
        )
        for one in found[:50]
    ]
    result = CheckResult(
        name=name,
        kind=kind,
        tier=tier,
        tool=tool,
        command="",
        phase=Phase.AFTER,
        tree=tree,
        verdict=Verdict.FAIL if found and severity is not Severity.MINOR else Verdict.PASS,
        reason=_told(found),
        output=output,
        diagnostics=tuple(found),
    )
    return result, findings


def _told(found: Sequence[Diagnostic]) -> str:
    if not found:
        return ""
    first = found[0]
    where = f"{first.path}:{first.line}" if first.line else first.path
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{where}: {first.message or first.code}{more}"


_SEVERITY = {"secrets": Severity.BLOCKER, "swallowed-exceptions": Severity.MINOR, "observability": Severity.MINOR}
_FIX = {
    "secrets": "take it out of the file and of the history, and replace the secret itself",
    "swallowed-exceptions": "handle the error, log it, or let it through",
    "observability": "log the error or pass it on, so that somebody can see it happen",
}


def inspect_readiness(
    files: Sequence[ChangedFile], tree: str, known: Collection[tuple[str | None, int | None]] = ()
) -> list[Inspected]:
    """Tier 4, for Large changes. Only a secret decides; the rest is said to whoever reviews. `known`: paths and lines
    whose secrets are findings already."""
    items = [
        (kind, one)
        for file in files
        if file.new is not None
        for kind, one in readiness(file.path, file.added, file.new)
        if kind != "secrets" or (one.path, one.line) not in known
    ]
    return [
        _said(
            CheckKind.READINESS,
            [one for of, one in items if of == kind],
            _FIX[kind],
            tree,
            name=f"readiness-{kind}",
            tier=4,
            tool="detect-secrets" if kind == "secrets" else "tree-sitter",
            severity=severity,
        )
        for kind, severity in _SEVERITY.items()
    ]
