"""What a scripted agent does itself, behind the runtime's back, as an external program would.

Files are written by the engine, so a path that leaves the work tree, also through a link, is refused; commands run in
the sandbox like anybody's.

`script:FILE.yaml` as a backend: turns by the book, for tests, demonstrations and reproductions.

The n-th turn since the engine last spoke takes the steps up to and with the n-th call of tools; the last one, what is
left, and then the answer. So nothing need be remembered between turns, and a dispatch that is taken up again goes on
where it was; only how often a breakdown has happened is counted. On a repair, an entry that does not speak of it gives
its answer again and repeats no step.
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

from proofstone.agents.backends import Identity
from proofstone.agents.backends.cmd import fault_of
from proofstone.agents.backends.wording import calls_in
from proofstone.agents.executors.context import ShellJob, Site
from proofstone.agents.executors.programs import ran
from proofstone.agents.models import Conversation, Fault, FaultKind, Occasion, Turn
from proofstone.agents.script_file import Breakdown, Entry, Script, Step, facts_of
from proofstone.machine.files import remove

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


class ScriptedBackend:
    def __init__(self, script: Script, spec: str) -> None:
        self._script = script
        self._spec = spec
        self._happened: Counter[tuple[Occasion, int, int]] = Counter()
        self._counting = threading.Lock()

    @property
    def identity(self) -> Identity:
        return Identity(self._spec, answers=self._script.answers)

    def turn(self, conversation: Conversation, site: Site, seconds: float | None) -> Turn | Fault:
        occasion = conversation.occasion
        entry = self._script.entry(occasion.role, facts_of(conversation))
        work = Steps(self._script, site, seconds)
        said, acted = _Said(site), False
        if site.cancel.is_set():
            return Fault(kind=FaultKind.CANCELLED, why="interrupted")
        for number, step in _steps_of(entry, conversation):
            match step.name:
                case "say":
                    said.add(step.given["text"])
                case "tools":
                    calls = calls_in(conversation, step.calls)
                    return Turn(text=said.text, calls=calls, model=self._spec, usage=entry.usage, acted=acted)
                case "error" if step.breakdown:
                    if self._breaks(step.breakdown, occasion, entry, number):
                        return Fault(kind=step.breakdown.kind, why=step.breakdown.why, usage=entry.usage)
                case _:
                    acted = acted or step.name in ACTS
                    if fault := work.take(step):
                        return fault
        return self._answer(entry, said).model_copy(update={"acted": acted})

    def close(self) -> None:
        """It holds nothing."""

    def _breaks(self, breakdown: Breakdown, occasion: Occasion, entry: Entry, step: int) -> bool:
        """Whether it happens this time. What is asked again in another dispatch counts on."""
        place = (occasion.model_copy(update={"dispatch": 1}), self._script.entries.index(entry), step)
        with self._counting:
            self._happened[place] += 1
            return breakdown.times is None or self._happened[place] <= breakdown.times

    def _answer(self, entry: Entry, said: _Said) -> Turn:
        answer = entry.output
        if entry.raw is not None:
            said.add(entry.raw.encode("utf-8", "surrogatepass").decode("utf-8", "replace"))
        elif answer is None and entry.role == "executor":
            answer = {"status": "success"}  # a program that ends and says nothing
        elif answer is not None and not isinstance(answer, Mapping):
            said.add(json.dumps(answer, ensure_ascii=False))
        given = answer if isinstance(answer, Mapping) and entry.raw is None else None
        return Turn(text=said.text, answer=given, model=self._spec, usage=entry.usage)


class _Said:
    """What is said in one turn, heard while it is."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.text = ""

    def add(self, text: str) -> None:
        piece = f"\n{text}" if self.text else text
        self.text += piece
        self._site.hear(piece)


def _steps_of(entry: Entry, conversation: Conversation) -> Iterator[tuple[int, Step]]:
    """The steps of this turn, with their numbers."""
    if conversation.repairs and "repair" not in entry.match:
        return
    calls_before = 0
    for number, step in enumerate(entry.steps):
        if calls_before == conversation.turns_since_told:
            yield number, step
        calls_before += step.name == "tools"
