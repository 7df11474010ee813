"""The hook files of coding agents, and of git, as changes of files: planned first, then written or removed.

The hook is added to an existing settings file; the rest of the file stays as it is. A file that somebody else wrote is
never replaced.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from proofstone.errors import InputError
from proofstone.git.user_hooks import HOOK_NAMES, build_hook_script, is_proofstone_hook
from proofstone.hooks import agent_hooks
from proofstone.machine.files import write_atomic


class HookTarget(StrEnum):
    """The programs that configuration can be written for."""

    CLAUDE = "claude"
    CODEX = "codex"
    GEMINI = "gemini"
    QWEN = "qwen"
    COPILOT = "copilot"
    CURSOR = "cursor"
    OPENCODE = "opencode"
    GIT = "git"
    AIDER = "aider"
    GOOSE = "goose"
    MINI = "mini-swe-agent"
    GENERIC = "generic"


WITHOUT_HOOKS = (HookTarget.AIDER, HookTarget.GOOSE, HookTarget.MINI, HookTarget.GENERIC)
"""Programs without a hook that could send findings back, and any other program."""


@dataclass(frozen=True)
class FileChange:
    """The new content of a file."""

    path: Path
    content: str | None
    """None removes the file."""
    mode: int = 0o644


def build_default_content(kind: HookTarget) -> str:
    """Return what would be written into a project without any configuration."""
    if kind is HookTarget.GIT:
        return build_hook_script(HOOK_NAMES[0], "proofstone").decode()
    if kind is HookTarget.OPENCODE:
        return agent_hooks.PLUGIN
    dialect = agent_hooks.DIALECTS[kind]
    return agent_hooks.format_document(agent_hooks.add_hook(dialect, {}, dialect.file))


def plan_changes(kind: HookTarget, root: Path, *, remove: bool) -> list[FileChange]:
    """Return the files of a program with Proofstone's hook added or removed. Nothing is written."""
    for file in _target_files(kind):
        refuse_outside_link(root, file)
    if kind is HookTarget.GIT:
        return [
            _plan_git_hook(root / name, None if remove else build_hook_script(name, "proofstone").decode())
            for name in HOOK_NAMES
        ]
    if kind is HookTarget.OPENCODE:
        return [_plan_plugin(root / agent_hooks.OPENCODE.file, remove=remove)]
    dialect = agent_hooks.DIALECTS[kind]
    path = root / dialect.file
    text = read_text(path)
    document = agent_hooks.read_document(str(path), text)
    if not remove:
        new = agent_hooks.add_hook(dialect, document, str(path))
        return [FileChange(path, text if new == document else agent_hooks.format_document(new, text))]
    left = agent_hooks.remove_hook(dialect, document, str(path))
    if left == document:
        return []
    return [
        FileChange(
            path, None if agent_hooks.is_empty_document(dialect, left) else agent_hooks.format_document(left, text)
        )
    ]


def _target_files(kind: HookTarget) -> tuple[str, ...]:
    """Return the files that are written for a program, relative to the root."""
    if kind is HookTarget.GIT:
        return HOOK_NAMES
    return ((agent_hooks.OPENCODE if kind is HookTarget.OPENCODE else agent_hooks.DIALECTS[kind]).file,)


def refuse_outside_link(root: Path, file: str) -> None:
    """Refuse a link in the repository that leads outside, because it may lead to the person's own files. The root
    itself may be a link: the person named it."""
    place = root
    for part in Path(file).parts:
        place /= part
        target = os.path.realpath(place)
        if place.is_symlink() and not Path(target).is_relative_to(root.resolve()):
            raise InputError(
                f"{place} is a symbolic link that leads out of {root}, to {target}; nothing was written",
                hint="remove the link; or, if you want that, add by hand what --print shows",
            )


def _plan_git_hook(path: Path, wanted: str | None) -> FileChange:
    existing = read_text(path)
    if existing and not is_proofstone_hook(existing.encode("utf-8", "surrogateescape")):
        if wanted is None:
            return FileChange(path, existing)
        raise InputError(
            f"{path}: there is a hook already",
            hint=f"add this line to it: proofstone hook run {path.name} || exit 1",
        )
    return FileChange(path, wanted, mode=0o755)


def _plan_plugin(path: Path, *, remove: bool) -> FileChange:
    existing = read_text(path)
    if existing and "proofstone export hooks opencode" not in existing:
        raise InputError(f"{path}: exists and was not written by Proofstone", hint="move it away, or use --print")
    return FileChange(path, None if remove else agent_hooks.PLUGIN)


def read_text(path: Path) -> str:
    """Return the text of the file; empty if there is none."""
    try:
        return path.read_text("utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def differs(change: FileChange) -> bool:
    """Return whether the change would alter its file."""
    if change.content is None:
        return os.path.lexists(change.path)
    return (
        change.content != read_text(change.path) or (change.mode & 0o100 and not os.access(change.path, os.X_OK)) != 0
    )


def apply_change(change: FileChange) -> None:
    """Write or remove a file atomically. Follow a link within the root, and keep the mode of the file."""
    path, hint = change.path.resolve(), "name another DIR"
    try:
        if change.content is None:
            change.path.unlink()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 | change.mode & 0o111 if path.exists() else change.mode
    except OSError as error:
        raise InputError(f"{change.path}: cannot be written: {error.strerror}", hint=hint) from error
    write_atomic(path, change.content.encode("utf-8", "surrogateescape"), mode=mode, hint=hint)
