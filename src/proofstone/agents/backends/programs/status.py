"""Report what is known about the programs on this machine without asking a model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from proofstone.agents.backends.programs.known import PRESETS
from proofstone.agents.backends.programs.launching import allowed_hosts, person_variables
from proofstone.agents.backends.programs.locating import Program, is_older, program_path, version_of
from proofstone.agents.backends.programs.preset import Limit, Preset, is_key
from proofstone.config.person import ProgramSettings
from proofstone.errors import InputError
from proofstone.sandbox.gateway import allowed


@dataclass(frozen=True)
class ProgramStanding:
    """What is known about one program on this machine."""

    name: str
    ways: tuple[str, ...]
    """The specs that name it: `cli:claude`, `acp:claude`."""
    path: str
    """Empty: the program is not installed."""
    version: str
    """Empty: the program does not report one."""
    minimum: str
    login: str
    """Where a login or a key was found. Empty: none was found, but there may still be one."""
    limit: Limit
    limits: str
    schema: bool
    install: str
    troubles: tuple[str, ...]
    adapter: str = ""
    """The program that `acp:` needs in addition, if it is missing."""

    @property
    def is_outdated(self) -> bool:
        return bool(self.version) and is_older(self.version, self.minimum)


def program_standings(programs: Mapping[str, ProgramSettings], outside: Path) -> tuple[ProgramStanding, ...]:
    """Return the status of all presets, in the order of the table. Each program is asked for its version."""
    with ThreadPoolExecutor(len(PRESETS)) as pool:
        return tuple(
            pool.map(
                lambda preset: _build_status(preset, programs.get(preset.name, ProgramSettings()), outside),
                PRESETS.values(),
            )
        )


def require_hosts(program: Program) -> None:
    """Raise an InputError if a host that the program must reach cannot be allowed."""
    allowed(allowed_hosts(program, person_variables(program)))


def login_of(preset: Preset, settings: ProgramSettings) -> str:
    """Return where the login comes from: a file that exists once the user has logged in, or a key."""
    home = Path.home()
    for name in (*preset.logged_in, *settings.share):
        if (home / name).exists():
            return f"~/{name}"
    set_names = [name for name in (*preset.keys, *settings.pass_through) if os.environ.get(name)]
    return next(filter(is_key, (*set_names, *settings.set)), "")


def how_to_log_in(preset: Preset) -> str:
    keys = preset.key_variables[:2]
    key = f", or set {' or '.join(keys)}" if keys else ""
    return f"log in with `{preset.program}`{key}"


def _build_status(preset: Preset, settings: ProgramSettings, outside: Path) -> ProgramStanding:
    path = _find_path(preset.program, settings, outside)
    adapter = preset.acp_program
    return ProgramStanding(
        name=preset.name,
        ways=(*((f"cli:{preset.name}",) if preset.invoke else ()), *((f"acp:{preset.name}",) if preset.acp else ())),
        path=path,
        version=version_of(path, outside) if path else "",
        minimum=preset.minimum,
        login=login_of(preset, settings),
        limit=preset.limit,
        limits=preset.limits,
        schema=preset.schema,
        install=preset.install,
        troubles=preset.troubles,
        adapter=adapter if adapter and not _find_path(adapter, ProgramSettings(), outside) else "",
    )


def _find_path(program: str, settings: ProgramSettings, outside: Path) -> str:
    try:
        return program_path(program, settings, outside)
    except InputError:
        return ""
