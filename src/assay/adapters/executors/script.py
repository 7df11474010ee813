"""`script:FILE.yaml` as an executor: edits by the book, for tests and demonstrations.

Files are written by the engine itself, so a path that leaves the work tree, also through a link, is refused; commands
run in the sandbox like anybody's.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from assay.adapters.executors.cmd import ran
from assay.adapters.executors.result import Malformed, parse
from assay.adapters.executors.site import Ran, ShellJob, Site
from assay.adapters.scratch import remove
from assay.adapters.script_file import Entry, Script, Step, task_facts
from assay.contracts.gate import Assignment, ExecutorResult, ExecutorStatus


@dataclass(frozen=True)
class ScriptedExecutor:
    script: Script
    spec: str

    def execute(self, assignment: Assignment, site: Site) -> Ran:
        facts = task_facts(assignment.task_id, assignment.task_name, assignment.attempt)
        entry = self.script.entry("executor", facts)
        work = Steps(self.script, site, assignment.deadline_seconds)
        for step in entry.steps:
            ended = work.take(step)
            if ended:
                return ended
        return _spoken(entry, work.milliseconds)


class Steps:
    """The steps of one entry, taken one after the other within one deadline."""

    def __init__(self, script: Script, site: Site, seconds: float | None) -> None:
        self._script = script
        self._site = site
        self._seconds = seconds
        self._started = time.monotonic()

    @property
    def milliseconds(self) -> int:
        return round((time.monotonic() - self._started) * 1000)

    @property
    def _left(self) -> float | None:
        return None if self._seconds is None else max(0.0, self._seconds - (time.monotonic() - self._started))

    def take(self, step: Step) -> Ran | None:
        """Do it. What came of the execution, if this was its end."""
        if self._site.cancel.is_set():
            return self._interrupted()
        match step.name:
            case "say":
                self._site.say(step.given["text"])
            case "fail":
                return self._failed(step.given["text"])
            case "sleep":
                return self._sleep(step.seconds)
            case "run":
                return self._run(step.given["command"])
            case _:
                self._edit(step)
        return None

    def _sleep(self, seconds: float) -> Ran | None:
        left = self._left
        if self._site.cancel.wait(seconds if left is None else min(seconds, left)):
            return self._interrupted()
        if left is None or seconds < left:
            return None
        ended = f"not finished after {self._seconds:g} s"
        return Ran(None, timed_out=True, duration_ms=self.milliseconds, ended=ended)

    def _run(self, command: str) -> Ran | None:
        execution = self._site.run(ShellJob(command, self._left))
        if ended := ran(execution):
            return ended
        code = execution.exit_code
        return self._failed(f"`{command}` ended with exit code {code}") if code else None

    def _failed(self, error: str) -> Ran:
        return Ran(ExecutorResult(status=ExecutorStatus.FAILURE, error=error), duration_ms=self.milliseconds)

    def _interrupted(self) -> Ran:
        return Ran(None, cancelled=True, duration_ms=self.milliseconds, ended="interrupted")

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


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _spoken(entry: Entry, milliseconds: int) -> Ran:
    if entry.said is None:
        return Ran(ExecutorResult(status=ExecutorStatus.SUCCESS), duration_ms=milliseconds)
    claim = parse(entry.said, ExecutorResult)
    if isinstance(claim, Malformed):
        return Ran(None, malformed=f"the result is malformed: {claim.why}", duration_ms=milliseconds)
    return Ran(claim, duration_ms=milliseconds)
