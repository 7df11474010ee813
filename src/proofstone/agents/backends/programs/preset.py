"""The description of a program: data, a function that builds its command line, and a reader of its output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from proofstone.agents.models import Activity, Fault
from proofstone.common.models import Assurance, Usage

UNKNOWN_USAGE = Usage(requests=1, usd=None)
"""The usage of a program that does not report any."""


class EditLimit(StrEnum):
    """How far a program itself keeps to the files that it may change. The sandbox and the diff check it afterwards."""

    PATHS = "paths"
    """It refuses to change any other file. A shell that it may use is not bound by this."""
    TREE = "tree"
    """It stays within the work tree."""
    NONE = "none"


@dataclass(frozen=True)
class FileArgument:
    """An argument that names a file which the engine gives to the program, read-only."""

    name: str
    """A key of `Invocation.files`."""


@dataclass(frozen=True)
class LaunchRequest:
    """What a program is started for."""

    prompt: str
    model: str = ""
    """Empty: the program chooses."""
    scope: tuple[str, ...] = ()
    """Paths and patterns, relative to the root of the work tree, that may be changed; empty: none."""
    files: tuple[str, ...] = ()
    """The files of the scope that exist and are named without a pattern."""
    can_run: bool = True
    """Whether the program may run commands."""
    level: Assurance = Assurance.BUBBLEWRAP
    """The level of the sandbox that the program runs in: its own sandbox may not work inside it."""
    root: Path = Path()
    """The work tree as the program sees it, and its working directory."""
    schema: Mapping[str, JsonValue] | None = None
    """The schema of the answer; None: the program may describe its work in free text."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """The user's variables that the program is given: keys, URLs. They show which provider the user has."""


@dataclass(frozen=True)
class Invocation:
    """How a program is started: arguments, variables, standard input and files."""

    arguments: tuple[str | FileArgument, ...]
    """The arguments after the program's name."""
    variables: Mapping[str, str] = field(default_factory=dict)
    stdin: str | None = None
    """The standard input: a prompt can be too long for an argument."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files for the program to read, by the variable that holds their path: `PROOFSTONE_SETTINGS` → content. A name may
    have a suffix, which becomes the file's: `PROOFSTONE_CONFIG.yaml`."""
    home: Mapping[str, str] = field(default_factory=dict)
    """Files in its fresh HOME, by path; left out if the user's own folder is shared there."""


@dataclass(frozen=True)
class ProgramResult:
    """The result of one run of the program, as the program reports it."""

    text: str
    """The last message: the answer."""
    usage: Usage = UNKNOWN_USAGE
    model: str = ""
    fault: Fault | None = None
    """The program's own report that it could not work: no login, no credit, a limit."""
    is_cut_off: bool = False
    """The model was stopped at the limit of output tokens."""


class OutputReader(Protocol):
    """Read what a program prints, line by line. Never raise: an unknown line is ignored."""

    def line(self, text: str) -> Iterable[Activity]:
        """Return the activities that the line reports."""
        ...

    def is_final(self, exit_code: int | None) -> ProgramResult: ...


@dataclass(frozen=True)
class Preset:
    """The description of one program."""

    name: str
    """For example `claude`."""
    program: str
    """The name of the executable on PATH."""
    install: str
    """How a user installs it."""
    minimum: str
    """The oldest version that is known to work: `2.1.0`."""
    invoke: Callable[[LaunchRequest], Invocation] | None
    """Builds the headless command line. None: the program has no useful headless mode."""
    stream: Callable[[], OutputReader] | None
    limit: EditLimit
    limit_description: str
    """How that limit is enforced, in one line for the user."""
    hosts: tuple[str, ...]
    """The default hosts of its model and its login."""
    keys: tuple[str, ...] = ()
    """The user's variables that the program is given if they are set: keys, URLs, names of models. The hosts of these
    URLs may be reached."""
    login: tuple[str, ...] = ()
    """Files or folders below HOME that hold its login. They are shared with the program, never copied."""
    login_markers: tuple[str, ...] = ()
    """Files below HOME. At least one of them exists once the user has logged in."""
    startup_files: tuple[str, ...] = ()
    """Paths below HOME, within `login`, that decide what the program does when it starts (settings, hooks, plug-ins).
    The program may not change them: otherwise an agent could plant code that runs when the user next starts the
    program."""
    renewable_files: tuple[str, ...] = ()
    """Patterns below HOME (`*` within a name) of the files that the program rewrites when it renews its login, with
    their locks and temporary names. It may change nothing else in a shared folder."""
    acp: Callable[[LaunchRequest], Invocation] | None = None
    """Builds the command line with which the program speaks the Agent Client Protocol and asks before it changes
    anything. The errand's prompt is not used. None: the program does not speak the protocol."""
    acp_program: str = ""
    """The adapter, if another program speaks the protocol."""
    can_read_over_acp: bool = True
    """Whether to offer the program to read files through us. A program that takes our "not found" for a failure could
    not create a new file."""
    acp_mode: str = ""
    """The session mode in which the program asks. It is set explicitly, because some start in another; empty: no
    modes."""
    vendor: str | None = None
    """The vendor of its models, if it has models of only one."""
    has_schema_option: bool = False
    """Whether it has an option that enforces a JSON schema. Other programs are asked in the prompt."""
    known_problems: tuple[str, ...] = ()
    """Known problems, one line each."""

    @property
    def key_variables(self) -> tuple[str, ...]:
        """The variables in `keys` that hold a key."""
        return tuple(filter(is_key, self.keys))


def is_key(variable: str) -> bool:
    return variable.endswith(("_KEY", "_TOKEN"))
