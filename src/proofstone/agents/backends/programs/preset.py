"""What is known of a program: data, and two functions: how it is started, and how its output is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from proofstone.agents.models import Activity, Fault
from proofstone.common.models import Assurance, Usage

NOT_TOLD = Usage(requests=1, usd=None)
"""Of a program that does not say what it has used."""


class Limit(StrEnum):
    """How far a program keeps itself to the files that it may change. The sandbox and the diff come after it."""

    PATHS = "paths"
    """It refuses to change any other file, while it happens; a shell that it may use is not bound by that."""
    TREE = "tree"
    """It keeps to the work tree."""
    NONE = "none"


@dataclass(frozen=True)
class Given:
    """An argument that names a file which the engine hands to the program, read-only."""

    name: str
    """A key of `Invocation.handed`."""


@dataclass(frozen=True)
class Errand:
    """What a program is to be started for."""

    prompt: str
    model: str = ""
    """Empty: the program's own choice."""
    scope: tuple[str, ...] = ()
    """Paths and patterns, from the root of the work tree, that may be changed; empty: nothing may."""
    files: tuple[str, ...] = ()
    """Those of the scope that are there, and named without a pattern."""
    may_run: bool = True
    """Whether it may run commands."""
    level: Assurance = Assurance.BUBBLEWRAP
    """Of the sandbox that it is started in: a sandbox of its own may not work inside."""
    root: Path = Path()
    """The work tree, as the program sees it; it is started there."""
    schema: Mapping[str, JsonValue] | None = None
    """Of the answer that is wanted; None: it may say what it did in its own words."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What the program will be given of the person's: keys, URLs. It tells which provider they use."""


@dataclass(frozen=True)
class Invocation:
    arguments: tuple[str | Given, ...]
    """Behind the program's name."""
    variables: Mapping[str, str] = field(default_factory=dict)
    stdin: str | None = None
    """What it reads: a prompt can be too long for an argument."""
    handed: Mapping[str, str] = field(default_factory=dict)
    """Files that it can read, by the name of the variable that tells it where: `PROOFSTONE_SETTINGS` → content. A name
    may
    have an ending, which is the file's: `PROOFSTONE_CONFIG.yaml`."""
    home: Mapping[str, str] = field(default_factory=dict)
    """Files in its fresh HOME, by path; left out where the person's own folder is there."""


@dataclass(frozen=True)
class Final:
    """What came of one run of the program, as it says itself."""

    text: str
    """Its last words: the answer."""
    usage: Usage = NOT_TOLD
    model: str = ""
    fault: Fault | None = None
    """It says itself that it could not: no login, no credit, a limit."""
    cut: bool = False
    """Its model was ended at the limit of output tokens."""


class Stream(Protocol):
    """Reads what a program prints, line by line. It never raises: a line that it does not know is nothing."""

    def line(self, text: str) -> Iterable[Activity]:
        """What the line tells."""
        ...

    def final(self, exit_code: int | None) -> Final: ...


@dataclass(frozen=True)
class Preset:
    name: str
    """`claude`."""
    program: str
    """As it is called on PATH."""
    install: str
    """How a person gets it."""
    minimum: str
    """The oldest version that is known to work: `2.1.0`."""
    invoke: Callable[[Errand], Invocation] | None
    """None: it has no headless way that is worth it."""
    stream: Callable[[], Stream] | None
    limit: Limit
    limits: str
    """How that limit is set, in one line for a person."""
    hosts: tuple[str, ...]
    """Where its model and its login are, by default."""
    keys: tuple[str, ...] = ()
    """Variables of the person's that it is given if they are set: keys, URLs, names of models. The host of a URL among
    them may be reached."""
    login: tuple[str, ...] = ()
    """Files or folders below HOME that hold its login. Shared with the program, never copied."""
    logged_in: tuple[str, ...] = ()
    """Files below HOME one of which is there once the person has logged in."""
    startup: tuple[str, ...] = ()
    """Below HOME, within `login`: what decides what the program does when it starts (settings, hooks, plug-ins). The
    program may not change it, or it would act for whoever wrote it the next time the person starts it."""
    renewed: tuple[str, ...] = ()
    """Below HOME, patterns (`*` within a name) of the files that it renews when it renews its login, with their locks
    and temporary names: the only things of a shared folder that it may change."""
    acp: Callable[[Errand], Invocation] | None = None
    """How it is started so that it speaks the Agent Client Protocol and asks before it changes anything; None: it does
    not speak it. The errand's prompt is not used."""
    acp_program: str = ""
    """Where that is another program: an adapter."""
    acp_reads: bool = True
    """Whether it can be offered to read files through us. One that takes our word for a file that is not there as a
    failure could make no new file."""
    acp_mode: str = ""
    """The session mode in which it asks, set explicitly (some start in one that overrides it); empty: it has none."""
    vendor: str | None = None
    """Of its models, where it has only one's."""
    schema: bool = False
    """Whether it can be held to a JSON schema by an option of its own. All others are asked in words."""
    troubles: tuple[str, ...] = ()
    """What is known to go wrong, one line each."""

    @property
    def key_variables(self) -> tuple[str, ...]:
        """Those of `keys` that hold a key."""
        return tuple(filter(is_key, self.keys))


def is_key(variable: str) -> bool:
    return variable.endswith(("_KEY", "_TOKEN"))
