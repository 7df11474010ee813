"""From words to backends: the one place that knows which kind of spec is which implementation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proofstone.adapters.backends import Backend
from proofstone.adapters.backends.api import api_backend
from proofstone.adapters.backends.cmd import CommandBackend
from proofstone.adapters.backends.fallback import Fallback
from proofstone.adapters.backends.human import HumanBackend
from proofstone.adapters.backends.programs.acp.backend import AcpBackend
from proofstone.adapters.backends.programs.cli import CliBackend
from proofstone.adapters.backends.programs.locating import locate_acp, locate_cli
from proofstone.adapters.backends.script import ScriptedBackend
from proofstone.adapters.executors import KINDS, unknown
from proofstone.adapters.executors.human import Listen
from proofstone.adapters.script_file import read_script
from proofstone.config.person import Person, PersonSettings
from proofstone.errors import InputError


def backend_from(
    specs: Sequence[str],
    *,
    folder: Path,
    root: Path | None = None,
    listen: Listen | None = None,
    person: Person | None = None,
) -> Backend:
    """The backend that the specs name, the later ones as fallbacks. A script's path counts from `folder`; coding agents
    are never looked for in the repository at `root`.

    An InputError says what a spec lacks: its provider, key, package, program or file.
    """
    theirs = person.settings if person else PersonSettings()

    def one(spec: str) -> Backend:
        kind, _, rest = spec.partition(":")
        if kind == "api":
            return api_backend(spec, person.providers if person else None, theirs.models)
        if kind == "cli" and rest.strip():
            return CliBackend(locate_cli(spec, theirs.programs, root or folder))
        if kind == "acp" and rest.strip():
            return AcpBackend(locate_acp(spec, theirs.programs, root or folder))
        if kind == "cmd" and rest.strip():
            return CommandBackend(rest)
        if spec == "human":
            return HumanBackend(listen)
        if kind == "script" and rest.strip():
            return ScriptedBackend(read_script(folder / rest), spec)
        raise unknown("agent", spec)

    if not specs:
        raise InputError("no backend is named", hint=f"one of: {KINDS}")
    named = [one(spec) for spec in dict.fromkeys(specs)]
    return named[0] if len(named) == 1 else Fallback(named)
