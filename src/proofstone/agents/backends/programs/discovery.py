"""Find the program that a spec names on this machine: `cli:claude`, `cli:codex:gpt-5`, `acp:goose`, `acp:my-agent
--acp`."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from proofstone.agents.backends.programs.known import PRESETS
from proofstone.agents.backends.programs.preset import Invocation, LaunchRequest, Preset
from proofstone.config.backends import MODEL_PATTERN
from proofstone.config.user import ProgramSettings
from proofstone.errors import InputError
from proofstone.machine.facts import is_in_work_tree, path_outside_work_tree

_VERSION = re.compile(r"\d+(?:\.\d+)+")
_VERSION_SECONDS = 8


@dataclass(frozen=True)
class InstalledProgram:
    """A program that is installed."""

    spec: str
    """The spec as the user wrote it."""
    name: str
    """The name of its preset or, if it has none, of the program itself."""
    argv: tuple[str, ...]
    """Its path and, for an `acp:` command line, its arguments."""
    preset: Preset | None
    settings: ProgramSettings
    model: str = ""

    def build_acp_invocation(self, errand: LaunchRequest) -> Invocation:
        """Return how the program is started with the protocol: as the preset or the user's command line says."""
        preset_invocation = self.preset.acp(errand) if self.preset and self.preset.acp else Invocation(())
        arguments = self.argv[1:] or preset_invocation.arguments
        return Invocation(
            arguments, preset_invocation.variables, files=preset_invocation.files, home=preset_invocation.home
        )


def _find_cli_preset(spec: str) -> tuple[Preset, str]:
    """Return the preset and the model that `cli:<preset>[:<model>]` names."""
    name, _, model = spec.partition(":")[2].partition(":")
    preset = PRESETS.get(name)
    if preset is None or preset.invoke is None:
        known = [name for name, preset in PRESETS.items() if preset.invoke]
        similar = get_close_matches(name, known, 1)
        hint = f"did you mean cli:{similar[0]}?" if similar else f"there are: {', '.join(known)}; or use cmd: or acp:"
        raise InputError(f"{spec!r}: there is no preset of that name", hint=hint)
    if model and not re.fullmatch(MODEL_PATTERN, model):  # the program would take it for an option
        raise InputError(f"{spec!r}: {model!r} is no model", hint="a model begins with a letter or a digit")
    return preset, model


def locate_cli(spec: str, programs: Mapping[str, ProgramSettings], outside: Path) -> InstalledProgram:
    preset, model = _find_cli_preset(spec)
    settings = programs.get(preset.name, ProgramSettings())
    path = _locate(spec, preset.program, settings, outside, preset.install)
    return InstalledProgram(spec, preset.name, (path,), preset, settings, model or settings.model)


def locate_acp(spec: str, programs: Mapping[str, ProgramSettings], outside: Path) -> InstalledProgram:
    """Find the program of an `acp:` spec.

    A single word that names a preset is started as the preset says. Anything else is a command line that is run without
    a shell: a command behind a `;` would get access to the login, too.
    """
    try:
        words = shlex.split(spec.partition(":")[2])
    except ValueError as error:
        raise InputError(f"{spec!r}: {error}", hint="quote it as for a shell") from error
    if not words:
        hint = f"write acp:<preset> ({', '.join(_list_acp_presets())}) or acp:<command>"
        raise InputError(f"{spec!r} names no program", hint=hint)
    known = PRESETS.get(words[0]) if len(words) == 1 else None
    if known and known.acp:
        settings = programs.get(known.name, ProgramSettings())
        path = _locate(
            spec, known.acp_program or known.program, settings, outside, known.install, adapter=bool(known.acp_program)
        )
        return InstalledProgram(spec, known.name, (path,), known, settings, settings.model)
    preset = _find_preset(words[0])
    name = preset.name if preset else Path(words[0]).name
    settings = programs.get(name, ProgramSettings())
    path = _locate(spec, words[0], settings, outside, preset.install if preset else "", adapter=True)
    return InstalledProgram(spec, name, (path, *words[1:]), preset, settings, settings.model)


def is_named_preset(spec: str) -> bool:
    """Return whether a spec names only a preset, so that the preset alone decides what is run."""
    kind, _, rest = spec.partition(":")
    return kind == "cli" or (kind == "acp" and rest in _list_acp_presets())


def _list_acp_presets() -> tuple[str, ...]:
    return tuple(name for name, preset in PRESETS.items() if preset.acp)


def _find_preset(word: str) -> Preset | None:
    name = Path(word).name
    return next((preset for preset in PRESETS.values() if name in (preset.program, preset.acp_program)), None)


def _locate(
    spec: str, program: str, settings: ProgramSettings, outside: Path, install: str, *, adapter: bool = False
) -> str:
    """Return the path of the program. `path` in the settings is that of the program itself, not of an adapter."""
    try:
        return find_program(program, ProgramSettings() if adapter else settings, outside)
    except InputError as error:
        raise InputError(
            f"{spec}: {error.message}", hint=_build_hint(settings, program, install) or error.hint
        ) from error


def _build_hint(settings: ProgramSettings, program: str, install: str) -> str:
    if settings.path:
        return f"correct `path` under [programs] in your own file, or remove it to have {program} looked up on PATH"
    similar = get_close_matches(program, _list_acp_presets(), 1)
    return f"install it: {install}" if install else f"did you mean acp:{similar[0]}?" if similar else ""


def find_program(program: str, settings: ProgramSettings, outside: Path) -> str:
    """Return the path of a program, which must not be in the work tree that contains `outside`."""
    name = settings.path or program
    if os.sep not in name:
        location = shutil.which(name, path=path_outside_work_tree(outside))
        if location is None:
            raise InputError(f"there is no program {name}", hint="its folder must be on PATH, outside the repository")
        name = location
    path = Path(name).expanduser()
    if not (path.is_absolute() and path.is_file() and os.access(path, os.X_OK)):
        raise InputError(f"{name} is no program", hint="give the absolute path of a program, or a name on PATH")
    if is_in_work_tree(path, outside):
        raise InputError(f"{name} is in the repository, where a change could replace it", hint="install it elsewhere")
    return str(path)


def read_version(path: str, outside: Path) -> str:
    """Return the version that the program reports, or an empty text. The programs that it starts, such as `node`, are
    not taken from the work tree that contains `outside` either."""
    try:
        with tempfile.TemporaryDirectory(prefix="proofstone-home-") as home:  # some write to HOME even for this
            output = _run_version(
                path, {**os.environ, "PATH": path_outside_work_tree(outside), "NODE_OPTIONS": "", "HOME": home}
            )
    except OSError:  # not a program after all, which starting it will show
        return ""
    match = _VERSION.search(output)
    return match.group() if match else ""


def _run_version(path: str, variables: Mapping[str, str]) -> str:
    with subprocess.Popen(
        [path, "--version"],
        cwd="/",
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            return process.communicate(timeout=_VERSION_SECONDS)[0]
        except subprocess.TimeoutExpired:
            return ""
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a wrapper leaves its child behind


def is_older(version: str, minimum: str) -> bool:
    return _parse_version(version) < _parse_version(minimum)


def _parse_version(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
