"""Checks that run inside the engine and execute nothing: tier 1 on every changed file, tier 4 on Large changes.

Every change is searched for secrets in the lines that it adds, whatever its size. A key of a known form outside tests,
and the value of a variable that is passed to checks, block until a person accepts the finding. The same form in a test
or an example, where fake keys are common, and guesses are only reported. No message contains the secret, because the
ledger keeps messages forever.

Proofstone's own settings are compared before and after the change. A weaker setting is a finding that a person must
accept: the base's settings decide how this change is checked, but once it is committed its own settings decide about
the next one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import Final

from proofstone.check.models import CheckKind, CheckResult
from proofstone.check.readiness import find_readiness_problems, looks_like_credential
from proofstone.check.rules.protected import TEST_FOLDERS, ProtectedRole, find_changed_roles, find_roles
from proofstone.check.rules.scan_paths import check_size, find_conflict_markers
from proofstone.common.models import ChangeKind, Diagnostic, Finding, Phase, Severity, Verdict
from proofstone.common.risk import PathChange, assess_size, is_docs_only, is_test_path
from proofstone.common.secrets import SecretMask, find_known_secrets
from proofstone.config.loader import PYPROJECT, SETTINGS_FILES, choose_settings_file, load_settings_files
from proofstone.config.rules import list_weakened_settings, report_weakened_settings
from proofstone.config.setting_docs import find_line
from proofstone.config.settings import Settings
from proofstone.config.trust import flatten_settings, format_value
from proofstone.errors import ConfigError
from proofstone.git.objects import GITLINK, SYMLINK, BlobReader, read_file_at
from proofstone.git.program import Git, decode_path
from proofstone.git.snapshot import Snapshot
from proofstone.sources.syntax import find_new_syntax_errors

Inspection = tuple[CheckResult, list[Finding]]

_MANY_LINES = 4000


@dataclass(frozen=True)
class ChangedFile:
    """A changed file with its content before and after. The content is None if there is none, or if it is too large."""

    path: str
    kind: ChangeKind
    old: bytes | None
    new: bytes | None
    old_size: int | None = None
    new_size: int | None = None
    """The size of any file, however large; None if there is none."""

    @cached_property
    def roles(self) -> frozenset[ProtectedRole]:
        """What the file decides, as far as the change touched it. A file that is too large to read counts as touched
        completely."""
        is_unread = (self.old is None and self.old_size is not None) or (self.new is None and self.new_size is not None)
        return find_roles(self.path) if is_unread else find_changed_roles(self.path, self.old, self.new)

    @cached_property
    def added_lines(self) -> list[tuple[int, str]]:
        """Numbers and texts of the lines that the change added."""
        if self.new is None:
            return []
        after = self.new.decode("utf-8", "replace").splitlines()
        if self.old is None:
            return list(enumerate(after, start=1))
        before = self.old.decode("utf-8", "replace").splitlines()
        if len(before) + len(after) > _MANY_LINES:
            return _find_surplus_lines(after, before)
        matcher = SequenceMatcher(None, before, after, autojunk=len(after) > 2000)
        return [
            (number + 1, after[number])
            for tag, _, _, start, end in matcher.get_opcodes()
            if tag in ("insert", "replace")
            for number in range(start, end)
        ]


def _find_surplus_lines(after: Sequence[str], before: Sequence[str]) -> list[tuple[int, str]]:
    """Return the lines that occur more often than in `before`, wherever they are. Alignment would take hours on
    generated files."""
    remaining = Counter(before)
    added = []
    for number, line in enumerate(after, start=1):
        if remaining[line]:
            remaining[line] -= 1
        else:
            added.append((number, line))
    return added


def read_changed_files(snapshot: Snapshot, blobs: BlobReader) -> list[ChangedFile]:
    """Return the changed files that have content: no submodules and no symlinks."""
    special = (GITLINK, SYMLINK)
    files = []
    for entry in snapshot.entries:
        if entry.mode in special or (entry.kind is ChangeKind.DELETED and entry.old_mode in special):
            continue
        has_old = entry.kind is not ChangeKind.ADDED and entry.old_mode not in special
        old_size, old = blobs.read_with_size(entry.old_blob) if has_old else (None, None)
        size, new = blobs.read_with_size(entry.blob) if entry.kind is not ChangeKind.DELETED else (None, None)
        files.append(ChangedFile(decode_path(entry.path), entry.kind, old, new, old_size, size))
    return files


def build_path_changes(files: Iterable[ChangedFile]) -> list[PathChange]:
    return [
        PathChange(path=file.path, kind=file.kind, added=tuple(text for _, text in file.added_lines)) for file in files
    ]


def is_large(files: Sequence[ChangedFile]) -> bool:
    return assess_size(build_path_changes(files)) == "Large"


def is_documentation_only(snapshot: Snapshot) -> bool:
    """Return whether only documentation changed. A symlink or a submodule is never documentation."""
    special = any(mode in (GITLINK, SYMLINK) for entry in snapshot.entries for mode in (entry.mode, entry.old_mode))
    return not special and is_docs_only(decode_path(entry.path) for entry in snapshot.entries)


def inspect_files(files: Sequence[ChangedFile], tree: str, *, max_file_kb: int) -> list[Inspection]:
    """Run the tier 1 checks: syntax, conflict markers and size."""
    present = [file for file in files if file.new is not None]
    syntax: list[Diagnostic] = []
    parsed = 0
    for file in present:
        errors = find_new_syntax_errors(file.path, file.old, file.new or b"")
        parsed += errors is not None
        syntax += errors or ()
    markers = [marker for file in present for marker in find_conflict_markers(file.path, file.old, file.new or b"")]
    sizes = [
        diagnostic
        for file in files
        if file.new_size is not None
        for diagnostic in check_size(file.path, file.old_size, file.new_size, max_file_kb << 10)
    ]
    measured = sum(file.new_size is not None for file in files)
    return [
        _build_syntax_result(syntax, parsed, len(present), tree),
        _build_result(CheckKind.CONFLICT, markers, "resolve the conflict", tree, output=f"{len(present)} files read"),
        _build_result(
            CheckKind.SIZE,
            sizes,
            "keep it out of git (or use LFS), or raise check.max_file_kb",
            tree,
            output=f"{measured} files measured",
        ),
    ]


def _build_syntax_result(diagnostics: Sequence[Diagnostic], parsed: int, present: int, tree: str) -> Inspection:
    """Return the syntax check. Files that could not be parsed were not checked; if that is all of them, the check is
    unverifiable."""
    output = f"{parsed} of {present} changed files parsed"
    result, findings = _build_result(
        CheckKind.SYNTAX, diagnostics, "fix the syntax", tree, tool="tree-sitter", output=output
    )
    if present and not parsed:
        unverifiable = {"verdict": Verdict.UNVERIFIABLE, "reason": "no changed file is in a language that it parses"}
        result = result.model_copy(update={**unverifiable, "required": False})
    return result, findings


def _build_result(
    kind: CheckKind,
    diagnostics: Sequence[Diagnostic],
    fix: str,
    tree: str,
    *,
    name: str = "",
    tier: int = 1,
    tool: str = "proofstone",
    severity: Severity = Severity.MAJOR,
    output: str = "",
) -> Inspection:
    """Return the result of one of the engine's own checks, with its findings. Any severity above `minor` fails the
    check."""
    name = name or kind.value
    findings = [
        Finding(
            layer="cascade",
            rule=name,
            severity=severity,
            path=diagnostic.path,
            line=diagnostic.line,
            detail=diagnostic.message or diagnostic.code,
            fix=fix,
            check=name,
        )
        for diagnostic in diagnostics[:50]
    ]
    result = CheckResult(
        name=name,
        kind=kind,
        tier=tier,
        tool=tool,
        command="",
        phase=Phase.AFTER,
        tree=tree,
        verdict=Verdict.FAIL if diagnostics and severity is not Severity.MINOR else Verdict.PASS,
        reason=_summarize(diagnostics),
        output=output,
        diagnostics=tuple(diagnostics),
    )
    return result, findings


def _summarize(diagnostics: Sequence[Diagnostic]) -> str:
    if not diagnostics:
        return ""
    first = diagnostics[0]
    where = f"{first.path}:{first.line}" if first.line else first.path
    more = f" and {len(diagnostics) - 1} more" if len(diagnostics) > 1 else ""
    return f"{where}: {first.message or first.code}{more}"


_SEVERITY = {"secrets": Severity.BLOCKER, "swallowed-exceptions": Severity.MINOR, "observability": Severity.MINOR}
_FIX = {
    "secrets": "remove it from the file and from the history, and replace the secret itself",
    "swallowed-exceptions": "handle the error, log it, or let it through",
    "observability": "log the error or pass it on, so that it can be noticed",
}


def inspect_readiness(
    files: Sequence[ChangedFile], tree: str, known: Collection[tuple[str | None, int | None]] = ()
) -> list[Inspection]:
    """Run the tier 4 checks, for Large changes. Only secrets decide; the rest is reported to the reviewer. `known` are
    paths and lines whose secrets are findings already."""
    items = [
        (kind, diagnostic)
        for file in files
        if file.new is not None
        for kind, diagnostic in find_readiness_problems(file.path, file.added_lines, file.new)
        if kind != "secrets" or (diagnostic.path, diagnostic.line) not in known
    ]
    return [
        _build_result(
            CheckKind.READINESS,
            [diagnostic for item_kind, diagnostic in items if item_kind == kind],
            _FIX[kind],
            tree,
            name=f"readiness-{kind}",
            tier=4,
            tool="detect-secrets" if kind == "secrets" else "tree-sitter",
            severity=severity,
        )
        for kind, severity in _SEVERITY.items()
    ]


KNOWN_SECRET_RULE: Final = "added-secret"  # noqa: S105  the name of a rule
POSSIBLE_SECRET_RULE: Final = "possible-secret"  # noqa: S105  the name of a rule
_SAMPLES: Final = re.compile(r"(?:^|/)(?:examples?|demos?|samples?|fixtures?)/")
_ADDED_SECRETS_FIX: Final = (
    "remove it from the file, and revoke it if it was real: everybody who can read the repository has it"
)


def find_added_secrets(files: Sequence[ChangedFile], passed: SecretMask) -> list[Finding]:
    """Return a finding for each secret in the added lines; `passed` are the values that are passed to checks."""
    return [finding for file in files if file.new is not None for finding in _find_secrets(file, passed)]


def _find_secrets(file: ChangedFile, passed: SecretMask) -> Iterator[Finding]:
    lower = file.path.lower()
    is_sample = is_test_path(file.path) or bool(TEST_FOLDERS.search(lower) or _SAMPLES.search(lower))
    numbers = [number for number, _ in file.added_lines]
    text = "\n".join(line for _, line in file.added_lines)
    secrets: dict[int, tuple[Severity, str]] = {}
    for secret in find_known_secrets(text):
        severity = Severity.MINOR if is_sample else Severity.CRITICAL
        where = " in a test or an example" if is_sample else ""
        secrets[numbers[secret.line - 1]] = (severity, f"a {secret.kind} in an added line{where}")
    for number, line in file.added_lines if passed.values else ():
        if names := passed.find_names(line):
            detail = f"the value of {', '.join(names)}, which is passed to checks, in an added line"
            secrets[number] = (Severity.CRITICAL, detail)
    for number, line in file.added_lines:
        if number not in secrets and not is_sample and looks_like_credential(line):
            secrets[number] = (Severity.MINOR, "a text that looks like a key or a password in an added line")
    for number, (severity, detail) in sorted(secrets.items()):
        yield _build_secret_finding(file.path, number, severity, detail)


def _build_secret_finding(path: str, line: int, severity: Severity, detail: str) -> Finding:
    return Finding(
        layer="secrets",
        rule=KNOWN_SECRET_RULE if severity is Severity.CRITICAL else POSSIBLE_SECRET_RULE,
        severity=severity,
        path=path,
        line=line,
        detail=detail,
        fix=_ADDED_SECRETS_FIX,
    )


def find_weakened_settings(
    git: Git, snapshot: Snapshot, list_setup: Callable[[], Collection[str]] = tuple
) -> list[Finding]:
    """Return a finding for each setting that the change weakens. `list_setup` returns the set-up commands that the
    base's own files ask for: a change may name those, if the base names none."""
    touched = [path.path for path in snapshot.change.paths if path.path in SETTINGS_FILES]
    if not touched:
        return []
    after = _settings_files(git, snapshot.tree)
    try:
        new = load_settings_files(after)
        name = choose_settings_file(after) or touched[0]
    except ConfigError as error:
        return [_build_unreadable_finding(touched[0], error.message)]
    try:
        old = load_settings_files(_settings_files(git, snapshot.base))
    except ConfigError:
        old = Settings()  # the base's settings cannot be read, so only the defaults could apply
    if new.environment.setup and not old.environment.setup and set(new.environment.setup) <= set(list_setup()):
        environment = old.environment.model_copy(update={"setup": new.environment.setup})
        old = old.model_copy(update={"environment": environment})
    text = after.get(name, b"").decode("utf-8", "replace")
    prefix = ("tool", "proofstone") if name == PYPROJECT else ()
    return report_weakened_settings(
        list_weakened_settings(flatten_settings(old), flatten_settings(new)),
        name,
        line_of=lambda setting: find_line(text, (*prefix, *setting.split(".", 1))),
        written=format_value,
    )


def _settings_files(git: Git, tree: str) -> dict[str, bytes]:
    return {name: content for name in SETTINGS_FILES if (content := read_file_at(git, tree, name)) is not None}


def _build_unreadable_finding(path: str, why: str) -> Finding:
    return Finding(
        layer="settings",
        rule="unreadable-settings",
        severity=Severity.MAJOR,
        path=path,
        detail=f"Proofstone's settings cannot be read after this change: {why}",
        fix="fix the file: otherwise every later check is refused",
    )
