"""The tool that runs commands, in the sandbox."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import Final

from proofstone.adapters.executors.site import ShellJob
from proofstone.adapters.sandbox.job import Execution
from proofstone.adapters.tools.ground import Deadline, Ground
from proofstone.contracts.tools import Run
from proofstone.core.agent.tool_rules import FailedError

_HEAD: Final = 10 << 10
_TAIL: Final = 20 << 10


@dataclass
class Ends:
    """The beginning and the end of an output of any length."""

    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    size: int = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        free = _HEAD - len(self.head)
        self.head += data[:free]
        self.tail += data[free:]
        del self.tail[:-_TAIL]

    @property
    def text(self) -> str:
        left = self.size - len(self.head) - len(self.tail)
        if not left:
            return _decoded(self.head + self.tail)
        return f"{_decoded(self.head)}\n[{left:,} bytes of the output left out here]\n{_decoded(self.tail)}"


def _decoded(data: bytearray) -> str:
    return data.decode("utf-8", "replace").strip("\n")


def run(ground: Ground, wanted: Run, deadline: Deadline) -> str:
    if ground.run is None:
        raise AssertionError("a toolbox offers commands only where they can be run")
    output = Ends()
    seconds = min(wanted.seconds, deadline.left)
    done = ground.run(ShellJob(wanted.command, seconds=seconds, on_output=output.add))
    said = "\n".join(filter(None, (ending(done, seconds), output.text or "It printed nothing.")))
    if done.exit_code is None or _signal(done.exit_code):
        raise FailedError(said)
    return said


def ending(done: Execution, seconds: float) -> str:
    """How a command came to its end, in words."""
    if done.setup_error:
        return f"It could not be started: {done.setup_error}"
    if done.timed_out:
        return f"It was ended: {done.limit or f'it still ran after {seconds:.0f} s'}."
    if done.cancelled:
        return "It was ended: the work has been stopped."
    if done.limit:
        return f"It was ended: {done.limit}."
    killed = _signal(done.exit_code or 0)
    return f"Exit code {done.exit_code}{f': ended by {killed}' if killed else ''}."


def _signal(code: int) -> str:
    """The signal that a shell's exit code speaks of."""
    return signal.Signals(code - 128).name if code - 128 in {one.value for one in signal.Signals} else ""
