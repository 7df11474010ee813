"""What stays of a run of the control loop: the patch that a person can apply, and what is worth remembering."""

from __future__ import annotations

from proofstone.adapters.bus import Bus
from proofstone.adapters.git.exclude import own_folder
from proofstone.adapters.whole_file import write_whole
from proofstone.contracts.memory import Memory
from proofstone.core.memory.consolidation import consolidate
from proofstone.core.memory.remembering import Finished, entries_of
from proofstone.core.solve.needs import Solved
from proofstone.engine.agents.dispatch import now
from proofstone.engine.solve.workspace import Workspace


def keep_patch(workspace: Workspace, run_id: str) -> str:
    """Where the changes of the run are, so that the person can take them in; empty: it has changed nothing."""
    patch = workspace.patch()
    if not patch:
        return ""
    folder = own_folder(workspace.world.repository.root, run_id)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "solve.patch"
    write_whole(path, patch)
    return str(path)


def remember(solved: Solved, memory: Memory, bus: Bus, run_id: str, cost: float) -> int:
    """What the next task should know of this one. Whoever may not write to the memory is refused by the bus. Said and
    written again after a crash, it is there once: entries have ids of their own."""
    finished = Finished(
        run_id=run_id,
        at=now(),
        task=solved.spec,
        result=solved.result,
        rounds=solved.rounds,
        subtasks=solved.all_subtasks,
        directives=solved.directives,
        cost=cost,
    )
    entries = entries_of(finished)
    for entry in entries:
        payload = entry.model_dump(mode="json")
        bus.publish(entry.role, "memory", "MemoryEntry", payload, message_id=f"solve/{entry.entry_id}")
        memory.write(entry)
    memory.revise(lambda there: consolidate(there, finished.at))
    return len(entries)
