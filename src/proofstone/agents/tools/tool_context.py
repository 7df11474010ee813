"""What the tools of one agent work on, and their deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from proofstone.agents.executors.context import ShellCommand
from proofstone.agents.memory.models import MemoryStore
from proofstone.agents.roles.models.gate import ClaimedDispute
from proofstone.agents.rules.tool_rules import ToolFailedError
from proofstone.agents.web.providers import WebProviders
from proofstone.common.secrets import NO_SECRETS, SecretMask
from proofstone.git.program import Git
from proofstone.sandbox.job import SandboxResult


@dataclass(frozen=True)
class ToolContext:
    """What the tools of one dispatch work on. The engine builds it."""

    files: Path
    """The folder: the private work tree of a task, or a checkout. The path itself must not be a link."""
    scope: tuple[str, ...] = ()
    """Paths and patterns (`proofstone.common.globs`) that may be changed."""
    run: Callable[[ShellCommand], SandboxResult] | None = None
    """Runs a command line in the sandbox; None: commands cannot be run."""
    git: Git | None = None
    """The engine's private store; None: there is no history to show."""
    commit: str | None = None
    """The agent's HEAD. Only its ancestors can be seen."""
    secret: tuple[str, ...] = ()
    """Further patterns of files that are never shown."""
    memory: MemoryStore | None = None
    """None: there is no memory, or the role may not use it (`agents.rules.tool_rules`)."""
    web: WebProviders | None = None
    """None: there is no access to the web."""
    disputes: list[ClaimedDispute] | None = None
    """Receives what the agent disputes; None: it cannot dispute anything."""
    cancel: threading.Event = field(default_factory=threading.Event)
    mask: SecretMask = NO_SECRETS
    """Hides secret values in everything that a tool shows."""


class ToolDeadline:
    """How much time one call has left."""

    def __init__(self, seconds: float, cancel: threading.Event) -> None:
        self._end = time.monotonic() + seconds
        self._cancel = cancel

    @property
    def remaining(self) -> float:
        return max(0.0, self._end - time.monotonic())

    @property
    def is_over(self) -> bool:
        """Whether the time is up. If the work has been stopped, raise an error that ends the call at once."""
        if self._cancel.is_set():
            raise ToolFailedError("The work has been stopped.")
        return self.remaining == 0
