"""What a run of the pipeline takes from the memory, and what it leaves there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from proofstone.adapters.bus import Bus
from proofstone.contracts.memory import Memory
from proofstone.contracts.pipeline.knowledge import KnowledgeOutput
from proofstone.core.counted import counted
from proofstone.core.memory.calibration import calibrate
from proofstone.core.memory.consolidation import consolidate
from proofstone.core.memory.lessons import ROLE, Learnt, learnt
from proofstone.engine.agents.dispatch import now
from proofstone.engine.steps import Steps
from proofstone.errors import ProofstoneError

_RECALLED: Final = "recall"
_LEARNT: Final = "learnt"


@dataclass(frozen=True)
class Learning:
    memory: Memory | None
    bus: Bus
    steps: Steps
    run_id: str

    def recalled(self, request: str) -> tuple[str, ...]:
        """What earlier runs have learnt about something like it. It may be something else when the run goes on, so it
        is on record."""
        known = self.steps.recall(_RECALLED, request)
        if known is None:
            found = self._found(request)
            known = {"lines": [*found]}
            self.steps.keep(_RECALLED, request, known)
        return tuple(map(str, known["lines"] if isinstance(known["lines"], list) else ()))

    def _found(self, request: str) -> tuple[str, ...]:
        if self.memory is None:
            return ()
        name = f"run/{self.run_id}/{_RECALLED}"
        self.bus.publish("planner", "memory", "MemoryQuery", {"words": [request]}, message_id=f"{name}/query")
        calibration = calibrate(self.memory.entries(), (request,))
        entries: dict[str, JsonValue] = {"entries": [*calibration.used]}
        self.bus.publish("memory", "planner", "MemoryEntries", entries, message_id=f"{name}/entries")
        return (*(f"must not: {line}" for line in calibration.must_not), *calibration.should_prefer)

    def keep(self, output: KnowledgeOutput) -> str:
        """Remember what may be remembered, once. What became of it, in a line; empty: that was said before."""
        if self.steps.recall(_LEARNT, self.run_id) is not None:
            return ""
        at = now()
        came = learnt(output, self.run_id, at)
        told = _told(came, self._remembered(came, at))
        self.steps.keep(_LEARNT, self.run_id, {"told": told})
        return told

    def _remembered(self, came: Learnt, at: str) -> str:
        """It holds nothing up: where it cannot be written, the run says so and goes on."""
        if self.memory is None:
            return "not remembered, as it is switched off"
        try:
            for entry in came.entries:
                payload = entry.model_dump(mode="json")
                self.bus.publish(ROLE, "memory", "MemoryEntry", payload, message_id=f"run/{entry.entry_id}")
                self.memory.write(entry)
            self.memory.revise(lambda there: consolidate(there, at))
        except (ProofstoneError, OSError) as error:
            return f"not remembered: {error}"
        return "remembered"


def _told(came: Learnt, how: str) -> str:
    kept = f"{counted(len(came.entries), 'lesson')} {how}"
    proposed = f"{counted(len(came.proposals), 'proposal')} for files that agents are told by: yours to take over"
    refused = [f"refused: {one.lesson.content[:120]!r}: {one.why}" for one in came.refused]
    return "; ".join((kept, *([proposed] if came.proposals else []), *refused))
