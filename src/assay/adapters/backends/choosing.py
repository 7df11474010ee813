"""From words to backends: the one place that knows which kind of spec is which implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from assay.adapters.backends import Backend
from assay.adapters.backends.api import api_backend
from assay.adapters.backends.cmd import CommandBackend
from assay.adapters.backends.fallback import Fallback
from assay.adapters.backends.human import HumanBackend
from assay.adapters.backends.script import ScriptedBackend
from assay.adapters.executors import unknown
from assay.adapters.executors.human import Listen
from assay.adapters.script_file import read_script
from assay.config.providers import ModelSettings, Provider
from assay.errors import InputError


def backend_from(
    specs: Sequence[str],
    *,
    folder: Path,
    listen: Listen | None = None,
    providers: Mapping[str, Provider] | None = None,
    models: Mapping[str, ModelSettings] | None = None,
) -> Backend:
    """The backend that the specs name, the later ones as fallbacks. A script's path counts from `folder`.

    An InputError says what a spec lacks: its provider, key, package or file.
    """

    def one(spec: str) -> Backend:
        kind, _, rest = spec.partition(":")
        if kind == "api":
            return api_backend(spec, providers, models)
        if kind == "cmd" and rest.strip():
            return CommandBackend(rest)
        if spec == "human":
            return HumanBackend(listen)
        if kind == "script" and rest.strip():
            return ScriptedBackend(read_script(folder / rest), spec)
        raise unknown("agent", spec)

    if not specs:
        raise InputError("no backend is named", hint="api:PROVIDER:MODEL, cmd:COMMAND, human or script:FILE.yaml")
    named = [one(spec) for spec in dict.fromkeys(specs)]
    return named[0] if len(named) == 1 else Fallback(named)
