"""Show the files of a task as they are, for an agent that does not open them itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from proofstone.agents.rules.edit_blocks import SHOWN_HEADING
from proofstone.agents.rules.tool_rules import ToolFailedError, ToolRefusedError, format_path
from proofstone.agents.tools.files import is_binary
from proofstone.agents.tools.tool_context import ToolContext
from proofstone.agents.tools.tree import FileTree
from proofstone.common.secrets import NO_SECRETS, SecretMask
from proofstone.common.text import escape_invisible, fence_text

_MAX_FILE_BYTES: Final = 16 << 10
_MAX_BYTES: Final = 48 << 10
"""How much of all files together is shown."""
_GLOB: Final = frozenset("*?")


def render_current_files(
    root: Path, paths: Sequence[str], secret: tuple[str, ...] = (), mask: SecretMask = NO_SECRETS
) -> str:
    """Return the files at these paths as a part of a request. Secrets are not shown, and globs not expanded."""
    tree = FileTree(ToolContext(files=root, scope=(), run=None, secret=secret))
    parts = "\n\n".join(_render_files(tree, paths))
    return mask.mask_text(f"{SHOWN_HEADING}\n\n{parts}\n")


def _render_files(tree: FileTree, paths: Sequence[str]) -> Iterator[str]:
    left = _MAX_BYTES
    for path in paths:
        if _GLOB & set(path):
            continue
        try:
            content = tree.read(tree.require_readable(path), _MAX_FILE_BYTES)
        except FileNotFoundError:
            yield f"{format_path(path)} does not exist yet."
            continue
        except (OSError, ToolFailedError, ToolRefusedError) as error:
            yield f"{format_path(path)} is not shown: {error}"
            continue
        left -= len(content)
        if is_binary(content) or left < 0:
            yield f"{format_path(path)} is not shown: it is {'binary' if is_binary(content) else 'too much'}."
            continue
        text = escape_invisible(content.decode("utf-8", "replace"))
        yield f"FILE: {format_path(path)}\n{fence_text(text.rstrip())}"
