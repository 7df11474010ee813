"""`script:FILE.yaml` as a backend: an agent that follows a script, for tests, demonstrations and reproductions.

Steps other than tool calls are done here, without the runtime, as an external program would do them. The engine writes
the files, so a path that leaves the work tree, even through a symbolic link, is refused. Commands run in the sandbox
like those of any other agent.

The n-th turn since the last engine message takes the steps up to and including the n-th tool call; the last turn takes
the remaining steps and then gives the answer. So no state is needed between turns, and a resumed dispatch continues
where it stopped. Only the number of times that a breakdown has happened is counted. On a repair, an entry that does not
match on `repair` gives its answer again and repeats no step.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from proofstone.agents.backends import BackendIdentity
from proofstone.agents.backends.cmd import build_outcome_fault
from proofstone.agents.backends.transcript import build_tool_calls
from proofstone.agents.executors.context import ExecutionContext, ShellCommand
from proofstone.agents.executors.programs import find_failed_outcome
from proofstone.agents.models import Conversation, DispatchKey, Fault, FaultKind, Turn
from proofstone.agents.script_file import AgentScript, ScriptEntry, ScriptFault, ScriptStep, build_facts
from proofstone.machine.files import remove_folder

WRITING_STEPS: Final = ("write", "append", "edit", "delete", "run")
"""Steps that may change the work tree."""


class StepRunner:
    """Take the steps of one turn that need no runtime, one after the other, within one deadline."""

    def __init__(self, script: AgentScript, site: ExecutionContext, seconds: float | None) -> None:
        self._script = script
        self._site = site
        self._seconds = seconds
        self._started = time.monotonic()

    @property
    def _left(self) -> float | None:
        return None if self._seconds is None else max(0.0, self._seconds - (time.monotonic() - self._started))

    def run_step(self, step: ScriptStep) -> Fault | None:
        """Take a step. Return a fault if the step ends the turn."""
        if self._site.cancel.is_set():
            return _INTERRUPTED
        match step.name:
            case "fail":
                return Fault(kind=FaultKind.FAILED, why=step.parameters["text"])
            case "sleep":
                return self._sleep(step.seconds)
            case "run":
                return self._run(step.parameters["command"])
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
        execution = self._site.run(ShellCommand(command, self._left))
        if outcome := find_failed_outcome(execution):
            return build_outcome_fault(outcome)
        code = execution.exit_code
        return Fault(kind=FaultKind.FAILED, why=f"`{command}` ended with exit code {code}") if code else None

    def _edit(self, step: ScriptStep) -> None:
        path = self._resolve_path(step, follow=step.name != "delete")
        try:
            match step.name:
                case "write":
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(_encode(step.parameters["content"]))
                case "append":
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with path.open("ab") as file:
                        file.write(_encode(step.parameters["content"]))
                case "edit":
                    path.write_bytes(self._replace_text(step, path.read_bytes()))
                case "delete":
                    remove_folder(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        except OSError as error:
            message = f"{step.name}: {step.parameters['path']}: {error.strerror}"
            raise self._script.build_error(
                step.line, message, "a step can only do what the work tree allows"
            ) from error

    def _replace_text(self, step: ScriptStep, content: bytes) -> bytes:
        old, new = _encode(step.parameters["old"]), _encode(step.parameters["new"])
        count = content.count(old) if old else 0
        if count != 1:
            raise self._script.build_error(
                step.line,
                f"edit: {step.parameters['path']} has the old text {count} times",
                "it must be there exactly once",
            )
        return content.replace(old, new)

    def _resolve_path(self, step: ScriptStep, *, follow: bool) -> Path:
        """Return the real path, which must be in the work tree. A link that is to be deleted is not followed."""
        root = Path(os.path.realpath(self._site.work_tree))
        path = root / step.parameters["path"]
        real = Path(os.path.realpath(path)) if follow else Path(os.path.realpath(path.parent)) / path.name
        if real == root or not real.is_relative_to(root) or ".." in path.parts:
            raise self._script.build_error(
                step.line,
                f"{step.name}: {step.parameters['path']!r} leads out of the work tree",
                "name a file in it, by a path from its top",
            )
        return real


_INTERRUPTED: Final = Fault(kind=FaultKind.CANCELLED, why="interrupted")


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class ScriptedBackend:
    """A backend that follows a script."""

    def __init__(self, script: AgentScript, spec: str) -> None:
        self._script = script
        self._spec = spec
        self._breakdown_counts: Counter[tuple[DispatchKey, int, int]] = Counter()
        self._lock = threading.Lock()

    @property
    def identity(self) -> BackendIdentity:
        return BackendIdentity(self._spec, can_answer=self._script.can_answer)

    def turn(self, conversation: Conversation, site: ExecutionContext, seconds: float | None) -> Turn | Fault:
        occasion = conversation.occasion
        entry = self._script.find_entry(occasion.role, build_facts(conversation))
        steps = StepRunner(self._script, site, seconds)
        output, acted = _Output(site), False
        if site.cancel.is_set():
            return Fault(kind=FaultKind.CANCELLED, why="interrupted")
        for number, step in _select_steps(entry, conversation):
            match step.name:
                case "say":
                    output.add(step.parameters["text"])
                case "tools":
                    calls = build_tool_calls(conversation, step.calls)
                    return Turn(text=output.text, calls=calls, model=self._spec, usage=entry.usage, acted=acted)
                case "error" if step.breakdown:
                    if self._should_fail(step.breakdown, occasion, entry, number):
                        return Fault(kind=step.breakdown.kind, why=step.breakdown.why, usage=entry.usage)
                case _:
                    acted = acted or step.name in WRITING_STEPS
                    if fault := steps.run_step(step):
                        return fault
        return self._answer(entry, output).model_copy(update={"acted": acted})

    def close(self) -> None:
        """Do nothing: this backend holds no resources."""

    def _should_fail(self, breakdown: ScriptFault, occasion: DispatchKey, entry: ScriptEntry, step: int) -> bool:
        """Return whether the breakdown happens this time. Later dispatches of the same question continue the count."""
        key = (occasion.model_copy(update={"dispatch": 1}), self._script.entries.index(entry), step)
        with self._lock:
            self._breakdown_counts[key] += 1
            return breakdown.times is None or self._breakdown_counts[key] <= breakdown.times

    def _answer(self, entry: ScriptEntry, output: _Output) -> Turn:
        answer = entry.output
        if entry.raw is not None:
            output.add(entry.raw.encode("utf-8", "surrogatepass").decode("utf-8", "replace"))
        elif answer is None and entry.role == "executor":
            answer = {"status": "success"}  # a program that ends and says nothing
        elif answer is not None and not isinstance(answer, Mapping):
            output.add(json.dumps(answer, ensure_ascii=False))
        mapping = answer if isinstance(answer, Mapping) and entry.raw is None else None
        return Turn(text=output.text, answer=mapping, model=self._spec, usage=entry.usage)


class _Output:
    """The text of one turn, passed on as it grows."""

    def __init__(self, site: ExecutionContext) -> None:
        self._site = site
        self.text = ""

    def add(self, text: str) -> None:
        piece = f"\n{text}" if self.text else text
        self.text += piece
        self._site.on_text(piece)


def _select_steps(entry: ScriptEntry, conversation: Conversation) -> Iterator[tuple[int, ScriptStep]]:
    """Yield the steps of this turn with their numbers."""
    if conversation.repairs and "repair" not in entry.match:
        return
    calls_before = 0
    for number, step in enumerate(entry.steps):
        if calls_before == conversation.turns_since_message:
            yield number, step
        calls_before += step.name == "tools"
