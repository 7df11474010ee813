"""Look at a repository for `proofstone init`, and write or take back what the person agreed to.

What was written is recorded in git's own folder of the repository, with what was there before. `init --remove` restores
that, and leaves alone whatever was edited since.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from proofstone import __version__
from proofstone.app.hooks import install_hooks, uninstall_hooks
from proofstone.app.project_tools import build_reader
from proofstone.check.discovery import discover
from proofstone.check.ecosystems.setup_commands import find_setup_commands
from proofstone.config.loader import find_settings_file
from proofstone.errors import InputError
from proofstone.git.program import decode_path
from proofstone.git.repository import Repository
from proofstone.git.user_hooks import is_ignored
from proofstone.hooks.agent_files import (
    FileChange,
    HookTarget,
    apply_change,
    differs,
    plan_changes,
    read_text,
    refuse_outside_link,
)
from proofstone.init.models import CiService, InitRecord, Proposal, RepositoryFacts, SetupStep, WrittenFile
from proofstone.init.rules.proposals import GITIGNORE, list_proposals
from proofstone.machine.files import write_atomic

AGENT_PROGRAMS: Final[Mapping[str, HookTarget]] = {
    "claude": HookTarget.CLAUDE,
    "codex": HookTarget.CODEX,
    "gemini": HookTarget.GEMINI,
    "qwen": HookTarget.QWEN,
    "copilot": HookTarget.COPILOT,
    "opencode": HookTarget.OPENCODE,
}
"""Programs on PATH whose hooks are proposed."""
_LEFTOVERS: Final = {
    "__pycache__/": (".py",),
    ".venv/": ("pyproject.toml", "requirements.txt", "setup.py", "Pipfile"),
    "node_modules/": ("package.json",),
    "target/": ("Cargo.toml",),
}
"""Patterns for .gitignore, and the ends of file names that show that they are needed."""
_RECORD: Final = "proofstone-init.json"


@dataclass(frozen=True)
class InitSession:
    """What is proposed for one repository."""

    repository: Repository
    facts: RepositoryFacts
    proposals: Sequence[Proposal]
    """Files for the repository."""
    agent_files: Mapping[HookTarget, Sequence[FileChange]]
    """Hook files of the coding agents that are installed here and have no hook yet."""


def look_at(repository: Repository) -> InitSession:
    """Return what is proposed for a repository. Nothing is written."""
    root = repository.root
    facts = _gather_facts(repository)
    agent_files: dict[HookTarget, Sequence[FileChange]] = {}
    for name in facts.agents:
        changes = [change for change in plan_changes(AGENT_PROGRAMS[name], root, remove=False) if differs(change)]
        if changes:
            agent_files[AGENT_PROGRAMS[name]] = changes
    return InitSession(repository, facts, list_proposals(facts), agent_files)


def _gather_facts(repository: Repository) -> RepositoryFacts:
    root = repository.root
    records = repository.git.run_records("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    paths = [decode_path(record) for record in records]
    read = build_reader(root)
    discovery = discover(paths, read)
    steps = tuple(
        SetupStep(
            command=command.command,
            evidence=command.evidence,
            tool=command.tool,
            is_installed=shutil.which(command.tool) is not None,
        )
        for command in find_setup_commands(paths, read, discovery.specs)
    )
    needed = [
        pattern
        for pattern, signs in _LEFTOVERS.items()
        if any(path.endswith(signs) for path in paths) and not is_ignored(repository, root / pattern.strip("/") / "x")
    ]
    return RepositoryFacts(
        setup=steps,
        checks=tuple(spec.name for spec in discovery.specs),
        ignorable=tuple(needed),
        has_settings=find_settings_file(root) is not None,
        services=_find_services(repository, paths),
        existing=frozenset(path for path in paths if (root / path).exists()),
        gitignore=read_text(root / GITIGNORE),
        agents=tuple(name for name in AGENT_PROGRAMS if shutil.which(name)),
        version=__version__,
    )


def _find_services(repository: Repository, paths: Sequence[str]) -> tuple[CiService, ...]:
    """Return the services that the repository uses, by its files, or else by the address that it is pushed to."""
    found = []
    if any(path.startswith(".github/workflows/") for path in paths):
        found.append(CiService.GITHUB)
    if ".gitlab-ci.yml" in paths:
        found.append(CiService.GITLAB)
    if not found:
        addresses = (repository.git.try_line("config", "--get-regexp", r"^remote\..*\.url$") or "").lower()
        found += [CiService.GITHUB] if "github" in addresses else []
        found += [CiService.GITLAB] if "gitlab" in addresses else []
    return tuple(found)


def write_proposal(repository: Repository, proposal: Proposal) -> Path:
    """Write a file that was agreed to, and record it."""
    path = repository.root / proposal.path
    refuse_outside_link(repository.root, proposal.path)
    if (read_text(path) if path.exists() else None) != proposal.previous:
        raise InputError(f"{proposal.path}: changed while you were asked; nothing was written", hint="run it again")
    _record_file(repository, proposal.path, proposal.content, proposal.previous)
    apply_change(FileChange(path, proposal.content))
    return path


def write_agent_files(repository: Repository, changes: Sequence[FileChange]) -> list[Path]:
    """Write the hook files of a coding agent, and record them."""
    for change in changes:
        previous = read_text(change.path) if change.path.exists() else None
        if change.content is not None:
            _record_file(repository, change.path.relative_to(repository.root).as_posix(), change.content, previous)
        apply_change(change)
    return [change.path for change in changes]


def write_git_hooks(repository: Repository) -> Path:
    """Install the git hooks, and record that `init` did."""
    folder, _ = install_hooks(repository.root, check=False)
    _save(repository, _load(repository).model_copy(update={"git_hook": True}))
    return folder


@dataclass(frozen=True)
class Removal:
    """What `init --remove` did."""

    restored: tuple[str, ...]
    """Files that are as they were before."""
    removed: tuple[str, ...]
    """Files that are gone, because they did not exist before."""
    kept: tuple[str, ...]
    """Files that were edited since, and that were left alone."""
    git_hook: bool
    """Whether the git hooks were removed."""


def take_back(repository: Repository) -> Removal:
    """Undo what `init` has written into this repository."""
    record = _load(repository)
    restored: list[str] = []
    removed: list[str] = []
    kept: list[str] = []
    for file in record.files:
        path = repository.root / file.path
        if not path.exists():
            continue
        if _digest(read_text(path)) != file.digest:
            kept.append(file.path)
            continue
        apply_change(FileChange(path, file.previous))
        (removed if file.previous is None else restored).append(file.path)
        _remove_empty_folders(path.parent, repository.root)
    if record.git_hook:
        uninstall_hooks(repository.root)
    _record_path(repository).unlink(missing_ok=True)
    return Removal(tuple(restored), tuple(removed), tuple(kept), record.git_hook)


def _remove_empty_folders(folder: Path, root: Path) -> None:
    while folder != root and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _record_file(repository: Repository, path: str, content: str, previous: str | None) -> None:
    """Record a file before it is written. If `init` has written it before, what was there first is kept."""
    record = _load(repository)
    first = next((file for file in record.files if file.path == path), None)
    kept = first.previous if first is not None and previous is not None else previous
    others = tuple(file for file in record.files if file.path != path)
    entry = WrittenFile(path=path, digest=_digest(content), previous=kept)
    _save(repository, record.model_copy(update={"files": (*others, entry)}))


def _record_path(repository: Repository) -> Path:
    return repository.git_dir / _RECORD


def _load(repository: Repository) -> InitRecord:
    path = _record_path(repository)
    if not path.exists():
        return InitRecord()
    try:
        return InitRecord.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise InputError(
            f"{path}: cannot be read, so it is unknown what `proofstone init` has written",
            hint="remove this file, and the files that you do not want, by hand",
        ) from error


def _save(repository: Repository, record: InitRecord) -> None:
    write_atomic(_record_path(repository), (record.model_dump_json(indent=2) + "\n").encode("utf-8", "surrogatepass"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
