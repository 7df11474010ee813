"""What the tools of one agent act on, and until when."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from proofstone.agents.executors.context import ShellJob
from proofstone.agents.memory.models import Memory
from proofstone.agents.rules.tool_rules import FailedError
from proofstone.agents.web.providers import Web
from proofstone.common.secrets import NO_SECRETS, SecretMask
from proofstone.git.program import Git
from proofstone.sandbox.job import Execution


@dataclass(frozen=True)
class Ground:
    """Made by the engine for one dispatch."""

    files: Path
    """The folder: a task's private work tree, or a checkout. The path itself must be no link."""
    scope: tuple[str, ...] = ()
    """Paths and patterns (`proofstone.common.globs`) that may be changed."""
    run: Callable[[ShellJob], Execution] | None = None
    """Runs a command line in the sandbox; None: there is no running commands."""
    git: Git | None = None
    """At the engine's private store; None: there is no history to look at."""
    commit: str | None = None
    """What the agent calls HEAD. Its ancestors are all of the history that can be seen."""
    secret: tuple[str, ...] = ()
    """Further patterns of files that are never shown."""
    memory: Memory | None = None
    """None: there is nothing to remember, or the role may not (`agents.rules.tool_rules`)."""
    web: Web | None = None
    """None: nobody looks at the web."""
    cancel: threading.Event = field(default_factory=threading.Event)
    mask: SecretMask = NO_SECRETS
    """Values that are taken out of everything that a tool shows."""


class Deadline:
    """How long one call may still take."""

    def __init__(self, seconds: float, cancel: threading.Event) -> None:
        self._end = time.monotonic() + seconds
        self._cancel = cancel

    @property
    def left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    @property
    def over(self) -> bool:
        """Whether the time is up. That the work has been stopped ends the call at once."""
        if self._cancel.is_set():
            raise FailedError("The work has been stopped.")
        return self.left == 0
