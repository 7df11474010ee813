"""What a program is handed so that it asks `scope_hook` before it changes a file."""

from __future__ import annotations

import json
import shlex
import sys
from importlib.resources import files
from pathlib import Path

from assay.adapters.backends.programs.preset import Errand


def hook_command() -> str:
    """For the program's shell, inside the sandbox: it knows the files by the variables that name them. The interpreter
    is the real one, not a link in an environment, which need not be there. A hook that breaks down denies: exit code 2,
    with a reason, is how the programs are told so."""
    python = shlex.quote(str(Path(sys.executable).resolve()))
    run = f'{python} -I -S -B "$ASSAY_HOOK" "$ASSAY_GLOBS" "$ASSAY_SCOPE"'
    return f"{run} || {{ echo 'It cannot be told whether this is yours to change.' >&2; exit 2; }}"


def hook_files(errand: Errand) -> dict[str, str]:
    """The rule for patterns goes along as it stands in `assay.core.globs`, so that there is no second one."""
    return {
        "ASSAY_HOOK": files("assay.adapters.backends.programs.known").joinpath("scope_hook.py").read_text("utf-8"),
        "ASSAY_GLOBS": files("assay.core").joinpath("globs.py").read_text("utf-8"),
        "ASSAY_SCOPE": json.dumps({"root": str(errand.root), "scope": errand.scope}),
    }
