"""What a program is handed so that it asks `scope_hook` before it changes a file."""

from __future__ import annotations

import json
import shlex
import sys
from importlib.resources import files
from pathlib import Path

from proofstone.adapters.backends.programs.preset import Errand


def hook_command() -> str:
    """For the program's shell, inside the sandbox: it knows the files by the variables that name them. The interpreter
    is the real one, not a link in an environment, which need not be there. A hook that breaks down denies: exit code 2,
    with a reason, is how the programs are told so."""
    python = shlex.quote(str(Path(sys.executable).resolve()))
    run = f'{python} -I -S -B "$PROOFSTONE_HOOK" "$PROOFSTONE_GLOBS" "$PROOFSTONE_SCOPE"'
    return f"{run} || {{ echo 'It cannot be told whether this is yours to change.' >&2; exit 2; }}"


def hook_files(errand: Errand) -> dict[str, str]:
    """The rule for patterns goes along as it stands in `proofstone.core.globs`, so that there is no second one."""
    return {
        "PROOFSTONE_HOOK": files("proofstone.adapters.backends.programs.known")
        .joinpath("scope_hook.py")
        .read_text("utf-8"),
        "PROOFSTONE_GLOBS": files("proofstone.core").joinpath("globs.py").read_text("utf-8"),
        "PROOFSTONE_SCOPE": json.dumps({"root": str(errand.root), "scope": errand.scope}),
    }
