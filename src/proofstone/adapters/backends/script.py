"""`script:FILE.yaml` as a backend: turns by the book, for tests, demonstrations and reproductions.

The n-th turn since the engine last spoke takes the steps up to and with the n-th call of tools; the last one, what is
left, and then the answer. So nothing need be remembered between turns, and a dispatch that is taken up again goes on
where it was; only how often a breakdown has happened is counted. On a repair, an entry that does not speak of it gives
its answer again and repeats no step.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping

from proofstone.adapters.backends import Identity
from proofstone.adapters.backends.calls import calls_in
from proofstone.adapters.backends.script_steps import ACTS, Steps
from proofstone.adapters.executors.site import Site
from proofstone.adapters.script_file import Breakdown, Entry, Script, Step, facts_of
from proofstone.contracts.agent import Conversation, Fault, FaultKind, Occasion, Turn


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
