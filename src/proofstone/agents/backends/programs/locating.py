"""From a spec to a program on this machine: `cli:claude`, `cli:codex:gpt-5`, `acp:goose`, `acp:my-agent --acp`."""

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
from proofstone.agents.backends.programs.preset import Errand, Invocation, Preset
from proofstone.config.backends import MODEL
from proofstone.config.person import ProgramSettings
from proofstone.errors import InputError
from proofstone.machine.facts import is_inside, search_outside

_VERSION = re.compile(r"\d+(?:\.\d+)+")
_SECONDS = 8


@dataclass(frozen=True)
class Program:
    """One that is there."""

    spec: str
    """As the person wrote it."""
    name: str
    """Of its preset, or of the program itself where there is none."""
    argv: tuple[str, ...]
    """Its path; of an `acp:` command that was written out, its arguments too."""
    preset: Preset | None
    settings: ProgramSettings
    model: str = ""

    def acp_invocation(self, errand: Errand) -> Invocation:
        """How it is made to speak the protocol: as the preset knows, or as the person wrote it out."""
        known = self.preset.acp(errand) if self.preset and self.preset.acp else Invocation(())
        arguments = self.argv[1:] or known.arguments
        return Invocation(arguments, known.variables, handed=known.handed, home=known.home)


def _preset_for_cli(spec: str) -> tuple[Preset, str]:
    """The preset that `cli:<preset>[:<model>]` names, and the model."""
    name, _, model = spec.partition(":")[2].partition(":")
    preset = PRESETS.get(name)
    if preset is None or preset.invoke is None:
        known = [name for name, one in PRESETS.items() if one.invoke]
        near = get_close_matches(name, known, 1)
        hint = f"did you mean cli:{near[0]}?" if near else f"there are: {', '.join(known)}; or use cmd: or acp:"
        raise InputError(f"{spec!r}: there is no preset of that name", hint=hint)
    if model and not re.fullmatch(MODEL, model):  # it would be taken for an option
        raise InputError(f"{spec!r}: {model!r} is no model", hint="a model begins with a letter or a digit")
    return preset, model


def locate_cli(spec: str, programs: Mapping[str, ProgramSettings], outside: Path) -> Program:
    preset, model = _preset_for_cli(spec)
    settings = programs.get(preset.name, ProgramSettings())
    path = _found(spec, preset.program, settings, outside, preset.install)
    return Program(spec, preset.name, (path,), preset, settings, model or settings.model)


def locate_acp(spec: str, programs: Mapping[str, ProgramSettings], outside: Path) -> Program:
    """One word that is a preset's name is started as the preset knows; anything else is a command line, without a
    shell: what could be smuggled behind a `;` would have the login too."""
    try:
        words = shlex.split(spec.partition(":")[2])
    except ValueError as error:
        raise InputError(f"{spec!r}: {error}", hint="quote it as a shell would have it") from error
    if not words:
        raise InputError(f"{spec!r} names no program", hint=f"acp:<preset> ({', '.join(_speaking())}) or acp:<command>")
    known = PRESETS.get(words[0]) if len(words) == 1 else None
    if known and known.acp:
        settings = programs.get(known.name, ProgramSettings())
        path = _found(
            spec, known.acp_program or known.program, settings, outside, known.install, adapter=bool(known.acp_program)
        )
        return Program(spec, known.name, (path,), known, settings, settings.model)
    preset = _by_program(words[0])
    name = preset.name if preset else Path(words[0]).name
    settings = programs.get(name, ProgramSettings())
    path = _found(spec, words[0], settings, outside, preset.install if preset else "", adapter=True)
    return Program(spec, name, (path, *words[1:]), preset, settings, settings.model)


def is_named_preset(spec: str) -> bool:
    """Whether a spec names a preset and nothing more: then what is run is what the preset says."""
    kind, _, rest = spec.partition(":")
    return kind == "cli" or (kind == "acp" and rest in _speaking())


def _speaking() -> tuple[str, ...]:
    return tuple(name for name, preset in PRESETS.items() if preset.acp)


def _by_program(word: str) -> Preset | None:
    name = Path(word).name
    return next((item for item in PRESETS.values() if name in (item.program, item.acp_program)), None)


def _found(
    spec: str, program: str, settings: ProgramSettings, outside: Path, install: str, *, adapter: bool = False
) -> str:
    """Where it is. `path` of the settings is that of the program itself, and not of an adapter of its own."""
    try:
        return program_path(program, ProgramSettings() if adapter else settings, outside)
    except InputError as error:
        raise InputError(f"{spec}: {error.message}", hint=_remedy(settings, program, install) or error.hint) from error


def _remedy(settings: ProgramSettings, program: str, install: str) -> str:
    if settings.path:
        return f"correct `path` under [programs] in your own file, or take it out: {program} is then looked for on PATH"
    near = get_close_matches(program, _speaking(), 1)
    return f"install it: {install}" if install else f"did you mean acp:{near[0]}?" if near else ""


def program_path(program: str, settings: ProgramSettings, outside: Path) -> str:
    """Where a program is, never in the work tree that `outside` is in."""
    wanted = settings.path or program
    if os.sep not in wanted:
        found = shutil.which(wanted, path=search_outside(outside))
        if found is None:
            raise InputError(f"there is no program {wanted}", hint="its folder must be on PATH, outside the repository")
        wanted = found
    path = Path(wanted).expanduser()
    if not (path.is_absolute() and path.is_file() and os.access(path, os.X_OK)):
        raise InputError(f"{wanted} is no program", hint="an absolute path of a program, or a name on PATH")
    if is_inside(path, outside):
        raise InputError(
            f"{wanted} lies in the repository, where a change decides what it is", hint="install it elsewhere"
        )
    return str(path)


def version_of(path: str, outside: Path) -> str:
    """What it says itself; empty if it does not. What it starts in turn, such as `node`, is no program of the work tree
    that `outside` is in either."""
    try:
        with tempfile.TemporaryDirectory(prefix="proofstone-home-") as home:  # some write to theirs even for this
            said = _said_version(
                path, {**os.environ, "PATH": search_outside(outside), "NODE_OPTIONS": "", "HOME": home}
            )
    except OSError:  # it is no program after all, which starting it will tell
        return ""
    found = _VERSION.search(said)
    return found.group() if found else ""


def _said_version(path: str, variables: Mapping[str, str]) -> str:
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
    ) as asked:
        try:
            return asked.communicate(timeout=_SECONDS)[0]
        except subprocess.TimeoutExpired:
            return ""
        finally:
            with suppress(ProcessLookupError):
                os.killpg(asked.pid, signal.SIGKILL)  # a wrapper leaves its child behind


def is_older(version: str, minimum: str) -> bool:
    return _numbers(version) < _numbers(minimum)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
