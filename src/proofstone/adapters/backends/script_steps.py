"""What a scripted agent does itself, behind the runtime's back, as an external program would.

Files are written by the engine, so a path that leaves the work tree, also through a link, is refused; commands run in
the sandbox like anybody's.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from proofstone.adapters.backends.cmd import fault_of
from proofstone.adapters.executors.cmd import ran
from proofstone.adapters.executors.site import ShellJob, Site
from proofstone.adapters.scratch import remove
from proofstone.adapters.script_file import Script, Step
from proofstone.contracts.agent import Fault, FaultKind

ACTS: Final = ("write", "append", "edit", "delete", "run")
"""Steps that may change the work tree."""


class Steps:
    """The steps of one turn that need no runtime, taken one after the other within one deadline."""

    def __init__(self, script: Script, site: Site, seconds: float | None) -> None:
        self._script = script
        self._site = site
        self._seconds = seconds
        self._started = time.monotonic()

    @property
    def _left(self) -> float | None:
        return None if self._seconds is None else max(0.0, self._seconds - (time.monotonic() - self._started))

    def take(self, step: Step) -> Fault | None:
        """Do it; how the turn has ended, if this was its end."""
        if self._site.cancel.is_set():
            return _INTERRUPTED
        match step.name:
            case "fail":
                return Fault(kind=FaultKind.FAILED, why=step.given["text"])
            case "sleep":
                return self._sleep(step.seconds)
            case "run":
                return self._run(step.given["command"])
            case _:
                self._edit(step)
        return None

    def _sleep(self, seconds: float) -> Fault | None:
        left = self._left
        if self._site.cancel.wait(seconds if left is None else min(seconds, left)):
            return _INTERRUPTED
        if left is None or seconds < left:
            return None
        return Fault(kind=FaultKind.TIMEOUT, why=f"not finished after {self._seconds:g} s")

    def _run(self, command: str) -> Fault | None:
        execution = self._site.run(ShellJob(command, self._left))
        if ended := ran(execution):
            return fault_of(ended)
        code = execution.exit_code
        return Fault(kind=FaultKind.FAILED, why=f"`{command}` ended with exit code {code}") if code else None

    def _edit(self, step: Step) -> None:
        at = self._inside(step, follow=step.name != "delete")
        try:
            match step.name:
                case "write":
                    at.parent.mkdir(parents=True, exist_ok=True)
                    at.write_bytes(_encoded(step.given["content"]))
                case "append":
                    at.parent.mkdir(parents=True, exist_ok=True)
                    with at.open("ab") as file:
                        file.write(_encoded(step.given["content"]))
                case "edit":
                    at.write_bytes(self._replaced(step, at.read_bytes()))
                case "delete":
                    remove(at) if at.is_dir() and not at.is_symlink() else at.unlink()
        except OSError as error:
            said = f"{step.name}: {step.given['path']}: {error.strerror}"
            raise self._script.wrong(step.line, said, "a step can only do what the work tree allows") from error

    def _replaced(self, step: Step, content: bytes) -> bytes:
        old, new = _encoded(step.given["old"]), _encoded(step.given["new"])
        count = content.count(old) if old else 0
        if count != 1:
            raise self._script.wrong(
                step.line,
                f"edit: {step.given['path']} has the old text {count} times",
                "it must be there exactly once",
            )
        return content.replace(old, new)

    def _inside(self, step: Step, *, follow: bool) -> Path:
        """Where the path really leads, which is in the work tree. A link to be deleted is not followed."""
        top = Path(os.path.realpath(self._site.work_tree))
        at = top / step.given["path"]
        real = Path(os.path.realpath(at)) if follow else Path(os.path.realpath(at.parent)) / at.name
        if real == top or not real.is_relative_to(top) or ".." in at.parts:
            raise self._script.wrong(
                step.line,
                f"{step.name}: {step.given['path']!r} leads out of the work tree",
                "name a file in it, by a path from its top",
            )
        return real


_INTERRUPTED: Final = Fault(kind=FaultKind.CANCELLED, why="interrupted")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
