"""Report what is known about the programs on this machine without asking a model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from proofstone.agents.backends.programs.discovery import InstalledProgram, find_program, is_older, read_version
from proofstone.agents.backends.programs.known import PRESETS
from proofstone.agents.backends.programs.launch import list_allowed_hosts, read_user_variables
from proofstone.agents.backends.programs.preset import Preset, is_key
from proofstone.config.user import ProgramSettings
from proofstone.errors import InputError
from proofstone.sandbox.gateway import parse_hosts


@dataclass(frozen=True)
class ProgramStatus:
    """What is known about one program on this machine."""

    name: str
    specs: tuple[str, ...]
    """The specs that name it: `cli:claude`, `acp:claude`."""
    path: str
    """Empty: the program is not installed."""
    version: str
    """Empty: the program does not report one."""
    minimum: str
    login: str
    """Where a login or a key was found. Empty: none was found, but there may still be one."""
    limit_description: str
    install: str
    missing_adapter: str = ""
    """The program that `acp:` needs in addition, if it is missing."""

    @property
    def is_outdated(self) -> bool:
        return bool(self.version) and is_older(self.version, self.minimum)


def read_program_statuses(programs: Mapping[str, ProgramSettings], outside: Path) -> tuple[ProgramStatus, ...]:
    """Return the status of all presets, in the order of the table. Each program is asked for its version."""
    with ThreadPoolExecutor(len(PRESETS)) as pool:
        return tuple(
            pool.map(
                lambda preset: _build_status(preset, programs.get(preset.name, ProgramSettings()), outside),
                PRESETS.values(),
            )
        )


def require_hosts(program: InstalledProgram) -> None:
    """Raise an InputError if a host that the program must reach cannot be allowed."""
    parse_hosts(list_allowed_hosts(program, read_user_variables(program)))


def find_login(preset: Preset, settings: ProgramSettings) -> str:
    """Return where the login comes from: a file that exists once the user has logged in, or a key."""
    home = Path.home()
    for name in (*preset.login_markers, *settings.share):
        if (home / name).exists():
            return f"~/{name}"
    set_names = [name for name in (*preset.keys, *settings.pass_through) if os.environ.get(name)]
    return next(filter(is_key, (*set_names, *settings.set)), "")


def describe_login(preset: Preset) -> str:
    keys = preset.key_variables[:2]
    key = f", or set {' or '.join(keys)}" if keys else ""
    return f"log in with `{preset.program}`{key}"


def _build_status(preset: Preset, settings: ProgramSettings, outside: Path) -> ProgramStatus:
    path = _find_path(preset.program, settings, outside)
    adapter = preset.acp_program
    return ProgramStatus(
        name=preset.name,
        specs=(*((f"cli:{preset.name}",) if preset.invoke else ()), *((f"acp:{preset.name}",) if preset.acp else ())),
        path=path,
        version=read_version(path, outside) if path else "",
        minimum=preset.minimum,
        login=find_login(preset, settings),
        limit_description=preset.limit_description,
        install=preset.install,
        missing_adapter=adapter if adapter and not _find_path(adapter, ProgramSettings(), outside) else "",
    )


def _find_path(program: str, settings: ProgramSettings, outside: Path) -> str:
    try:
        return find_program(program, settings, outside)
    except InputError:
        return ""
