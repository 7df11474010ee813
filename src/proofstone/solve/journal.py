"""The record of a run of the control loop: its steps, its rounds, its report.

Runs of the control loop as the ledger tells them, at any time and from any process.

What stays of a run of the control loop: the patch that a person can apply, and what is worth remembering.

The engine looks itself: what can be run or seen is never judged by a model.

A command runs in the sandbox, in the files as they are on record, and what it writes is thrown away. Files are read
with the same eyes as an agent's tools: no path and no link leads out of the project. What is so although nobody has
changed a file is said to be: it may be so for no merit of anybody's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from proofstone.agents.bus import Bus
from proofstone.agents.dispatch import now
from proofstone.agents.executors.context import ShellJob
from proofstone.agents.memory.models import Memory
from proofstone.agents.memory.rules.consolidation import consolidate
from proofstone.agents.roles.models.solve_messages import (
    Criterion,
    CriterionVerdict,
    FailureClass,
    Predicate,
    PredicateKind,
)
from proofstone.agents.rules.tool_rules import FailedError, RefusedError
from proofstone.agents.tools.grep import first_line
from proofstone.agents.tools.services import Ends, ending
from proofstone.agents.tools.tool_context import Deadline, Ground
from proofstone.agents.tools.tree import Tree
from proofstone.git.pending import own_folder
from proofstone.ledger import Ledger
from proofstone.ledger.models import EventRow
from proofstone.machine.files import write_whole
from proofstone.runtime.journal import Steps, worked_on
from proofstone.sandbox.job import Execution
from proofstone.solve.models import SolveReport, SolveRound
from proofstone.solve.rules.effects import Solved
from proofstone.solve.rules.remembering import Finished, entries_of
from proofstone.solve.rules.subtask import failed, passed
from proofstone.solve.workspace import Workspace

STEP, ROUND, REPORT = "solve.step", "solve.round", "solve.report"


@dataclass
class SolveJournal:
    ledger: Ledger
    run_id: str
    steps: Steps
    _rounds: set[int] = field(default_factory=set)

    @classmethod
    def opened(cls, ledger: Ledger, run_id: str) -> SolveJournal:
        journal = cls(ledger, run_id, Steps.opened(ledger, run_id, STEP, "solve"))
        for stored in ledger.read(EventRow, run_id=run_id, type=ROUND):
            journal._rounds.add(SolveRound.model_validate(stored.row.payload["round"]).number)
        return journal

    def milliseconds(self) -> int:
        """How long processes were at work on it, up to this one; the time between them does not count."""
        return worked_on(self.ledger, self.run_id)

    def ended(self, round: SolveRound) -> None:
        """A round is recorded once."""
        if round.number not in self._rounds:
            self._append(ROUND, {"round": round.model_dump(mode="json")})
            self._rounds.add(round.number)

    def reported(self, report: SolveReport, outcome: str) -> None:
        """The report, and that the run has ended with it."""
        reason = report.result.summary if report.result else f"asks: {report.question}"
        self.ledger.append(
            self._event(REPORT, {"report": report.model_dump(mode="json")}),
            self._event("run.finished", {"outcome": outcome, "reason": reason}),
        )

    def note(self, type: str, **payload: JsonValue) -> None:
        self._append(type, payload)

    def _append(self, type: str, payload: Mapping[str, JsonValue]) -> None:
        self.ledger.append(self._event(type, payload))

    def _event(self, type: str, payload: Mapping[str, JsonValue]) -> EventRow:
        return EventRow(run_id=self.run_id, type=type, payload=payload)


def last_report(ledger: Ledger, run_id: str) -> SolveReport | None:
    """What came of a run, as far as it came to that. A question that was answered since is none any more."""
    for stored in ledger.read(EventRow, run_id=run_id, type=REPORT, newest=True, limit=1):
        went_on = ledger.read(EventRow, run_id=run_id, type=STEP, after=stored.seq, limit=1)
        return None if went_on else SolveReport.model_validate(stored.row.payload["report"])
    return None


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


_FILE_BYTES: Final = 16 << 20
_SECONDS: Final = 30.0
_BEGINNING: Final = 800
_END: Final = 3200
UNTOUCHED: Final = "(no file differs from those that the task began with: this was so before anything was done)"
_NOT_STARTED: Final = (126, 127)
"""Exit codes of a shell that could not run the command: it is missing, or may not be run."""


def look(criterion: Criterion, workspace: Workspace, output: str, seconds: float) -> CriterionVerdict:
    """The verdict on a verifiable criterion."""
    predicate = criterion.predicate
    if criterion.command:
        verdict = _run(criterion, workspace, seconds)
    elif predicate is None:
        raise AssertionError("a verifiable criterion has a command or a predicate")
    else:
        verdict = _seen(criterion, predicate, workspace.ground(), output)
    of_files = predicate is None or predicate.kind is not PredicateKind.OUTPUT_CONTAINS
    if of_files and not verdict.failed and workspace.untouched:
        return passed(criterion, f"{verdict.evidence}\n{UNTOUCHED}")
    return verdict


def _run(criterion: Criterion, workspace: Workspace, seconds: float) -> CriterionVerdict:
    world, printed = workspace.world, Ends()
    limits = world.job_limits(seconds)
    with world.artifacts.writer(world.settings.limits.output_mb << 20) as sink:
        with workspace.shell(sink, limits, keeps=False) as shell:
            done = shell(ShellJob(criterion.command, on_output=printed.add))
        world.ledger.append(sink.finish().row())
    if done.cancelled:
        raise KeyboardInterrupt
    evidence = f"`{criterion.command}`: {ending(done, seconds)}"
    if printed.text:
        evidence = f"{evidence}\n{printed.text}"
    evidence = _shown(evidence)
    return passed(criterion, evidence) if done.exit_code == 0 else failed(criterion, evidence, _class_of(done))


def _class_of(done: Execution) -> FailureClass:
    """A command that came to its own end has said no; one that could not run, or was ended, has said nothing."""
    ran = done.exit_code is not None and done.exit_code not in _NOT_STARTED
    return FailureClass.LOGICAL if ran else FailureClass.ENVIRONMENTAL


def _seen(criterion: Criterion, predicate: Predicate, ground: Ground, output: str) -> CriterionVerdict:
    try:
        holds, saw = _held(predicate, ground, output)
    except RefusedError as refused:
        holds, saw = False, refused.text
    except FailedError as error:
        holds, saw = False, error.text
    except (FileNotFoundError, NotADirectoryError):
        holds, saw = predicate.kind is PredicateKind.ABSENT, f"there is no {predicate.path}"
    saw = _shown(saw)
    return passed(criterion, saw) if holds else failed(criterion, saw, FailureClass.LOGICAL)


def _held(predicate: Predicate, ground: Ground, output: str) -> tuple[bool, str]:
    match predicate.kind:
        case PredicateKind.OUTPUT_CONTAINS:
            there = predicate.text in output
            return there, f"the result {'holds' if there else 'does not hold'} {predicate.text!r}"
        case PredicateKind.EXISTS | PredicateKind.ABSENT:
            tree = Tree(ground)
            entry = tree.entry(tree.readable(predicate.path))
            what = "a folder" if entry.folder else "a file" if entry.file else "neither a file nor a folder"
            return predicate.kind is PredicateKind.EXISTS, f"{predicate.path} is there: {what}"
        case PredicateKind.CONTAINS:
            there = predicate.text in _content(predicate.path, ground).decode("utf-8", "replace")
            return there, f"{predicate.path} {'holds' if there else 'does not hold'} {predicate.text!r}"
        case PredicateKind.MATCHES:
            deadline = Deadline(_SECONDS, ground.cancel)
            found = first_line(predicate.path, _content(predicate.path, ground), predicate.text, deadline)
            return bool(found), found or f"no line of {predicate.path} matches {predicate.text!r}"


def _content(path: str, ground: Ground) -> bytes:
    tree = Tree(ground)
    return tree.read(tree.readable(path), _FILE_BYTES)


def _shown(text: str) -> str:
    """How it began and how it ended: that is where commands say what went wrong."""
    return text if len(text) <= _BEGINNING + _END else f"{text[:_BEGINNING]}\n…\n{text[-_END:]}"
