"""A PreToolUse hook that decides which files a coding agent may change. The program runs it inside the sandbox.

    python scope_hook.py GLOBS SCOPE < the tool call

It imports nothing of Proofstone, which is not installed there. GLOBS is the source of `proofstone.common.globs`, so
that there is only one rule for patterns. SCOPE is a JSON file with the `root` of the work tree and the `scope`. The
hook denies every call that would change another file, gives the model a reason, and allows the rest. It denies a call
that it does not understand.
"""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_PATCHED_FILE = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)
"""A file that a patch in the format of `apply_patch` names."""

_SHELL = "Bash"
"""Shell commands are not checked, except for a patch that is passed to `apply_patch`."""


def main(globs: str, scope: str) -> None:
    limits = json.loads(Path(scope).read_text(encoding="utf-8"))
    matches = runpy.run_path(globs)["matches"]
    reason = refusal(json.load(sys.stdin), Path(limits["root"]), limits["scope"], matches)
    decision = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny" if reason else "allow",
        "permissionDecisionReason": reason or "it is one of the files of the task",
    }
    sys.stdout.write(json.dumps({"hookSpecificOutput": decision}))


def refusal(
    call: Mapping[str, object], root: Path, scope: Sequence[str], matches: Callable[[str, str], bool]
) -> str | None:
    """Return why the files may not be changed, as a message to the model, or None if they may."""
    names = _find_paths(call.get("tool_input"))
    if not names and call.get("tool_name") == _SHELL:
        return None
    if not names:
        return "It is not clear which file this would change. Edit one file and give its path."
    root = root.resolve()
    for name in names:
        path = (root / name).resolve()  # a write through a link changes its target
        relative = path.relative_to(root).as_posix() if path.is_relative_to(root) else ""
        if not relative or not any(matches(pattern, relative) for pattern in scope):
            allowed = f"You may change: {', '.join(scope)}." if scope else "You may not change any file."
            advice = "If it must change too, name it in `files_requested`."
            return f"{relative or path} is not yours to change. {allowed} {advice}"
    return None


def _find_paths(arguments: object) -> list[str]:
    if not isinstance(arguments, Mapping):
        return []
    for key in ("file_path", "notebook_path"):
        if isinstance(path := arguments.get(key), str):
            return [path]
    patch = arguments.get("command")
    return _PATCHED_FILE.findall(patch) if isinstance(patch, str) else []


if __name__ == "__main__":
    main(*sys.argv[1:])
