"""Stands between a coding agent and the files: a PreToolUse hook, run by the program itself, inside the sandbox.

    python scope_hook.py GLOBS SCOPE < the tool call

It imports nothing of Proofstone's, which is not there. GLOBS is the source of `proofstone.common.globs`, so that there
is one rule
for patterns; SCOPE is a JSON file with the `root` of the work tree and the `scope`. It denies every call that would
change another file, with a reason for the model, and allows the rest; a call that it does not understand is denied.
"""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)
"""The files that a patch in the form of `apply_patch` names."""

_SHELL = "Bash"
"""A command is not ours to read, but for a patch that it hands to `apply_patch`."""


def main(globs: str, scope: str) -> None:
    limits = json.loads(Path(scope).read_text(encoding="utf-8"))
    matches = runpy.run_path(globs)["matches"]
    refused = refusal(json.load(sys.stdin), Path(limits["root"]), limits["scope"], matches)
    decision = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny" if refused else "allow",
        "permissionDecisionReason": refused or "it is one of the files of the task",
    }
    sys.stdout.write(json.dumps({"hookSpecificOutput": decision}))


def refusal(
    call: Mapping[str, object], root: Path, scope: Sequence[str], matches: Callable[[str, str], bool]
) -> str | None:
    """Why the files may not be changed, in words for the model; None: they may."""
    named = _named(call.get("tool_input"))
    if not named and call.get("tool_name") == _SHELL:
        return None
    if not named:
        return "It cannot be told which file this would change. Edit one file, by its path."
    root = root.resolve()
    for name in named:
        path = (root / name).resolve()  # where a link leads is what would change
        known = path.relative_to(root).as_posix() if path.is_relative_to(root) else ""
        if not known or not any(matches(pattern, known) for pattern in scope):
            allowed = f"You may change: {', '.join(scope)}." if scope else "You may not change any file."
            asking = "If it must change too, name it in `files_requested`."
            return f"{known or path} is not yours to change. {allowed} {asking}"
    return None


def _named(arguments: object) -> list[str]:
    if not isinstance(arguments, Mapping):
        return []
    for key in ("file_path", "notebook_path"):
        if isinstance(path := arguments.get(key), str):
            return [path]
    patch = arguments.get("command")
    return _PATCHED.findall(patch) if isinstance(patch, str) else []


if __name__ == "__main__":
    main(*sys.argv[1:])
