"""The journal of a run of the control loop, the patch and memory entries that it leaves, and the engine's own checks.

The engine verifies every verifiable criterion itself and never leaves that to a model. A command runs in the sandbox,
in the recorded files, and its changes are discarded. Files are read with the same restrictions as an agent's tools: no
path and no link leads out of the project. If a criterion is met although no file has changed, the evidence says so,
because nobody may have earned it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from proofstone.agents.bus import MessageBus
from proofstone.agents.dispatch import format_now
from proofstone.agents.executors.context import ShellCommand
from proofstone.agents.memory.models import MemoryStore
from proofstone.agents.memory.rules.consolidation import consolidate
from proofstone.agents.roles.models.solve_messages import (
    Criterion,
    CriterionVerdict,
    FailureClass,
    Predicate,
    PredicateKind,
)
from proofstone.agents.rules.tool_rules import ToolFailedError, ToolRefusedError
from proofstone.agents.tools.grep import find_first_line
from proofstone.agents.tools.services import OutputEnds, describe_ending
from proofstone.agents.tools.tool_context import ToolContext, ToolDeadline
from proofstone.agents.tools.tree import FileTree
from proofstone.git.pending_commit import find_run_folder
from proofstone.ledger import Ledger
from proofstone.ledger.models import EventRow
from proofstone.machine.files import write_atomic
from proofstone.runtime.journal import Journal, read_work_ms
from proofstone.sandbox.job import SandboxResult
from proofstone.solve.models import SolveReport, SolveRound
from proofstone.solve.rules.effects import SolveResult
from proofstone.solve.rules.memory_entries import FinishedTask, build_memory_entries
from proofstone.solve.rules.subtask import failed_verdict, passed_verdict
from proofstone.solve.workspace import SolveWorkspace

SOLVE_STEP_EVENT, SOLVE_ROUND_EVENT, SOLVE_REPORT_EVENT = "solve.step", "solve.round", "solve.report"
PERSON_STEP = "person"
"""The step in which a person answers the question about the goal."""


@dataclass
class SolveJournal:
    ledger: Ledger
    run_id: str
    steps: Journal
    _recorded_rounds: set[int] = field(default_factory=set)

    @classmethod
    def load(cls, ledger: Ledger, run_id: str) -> SolveJournal:
        journal = cls(ledger, run_id, Journal.load(ledger, run_id, SOLVE_STEP_EVENT, "solve"))
        for stored in ledger.read(EventRow, run_id=run_id, type=SOLVE_ROUND_EVENT):
            journal._recorded_rounds.add(SolveRound.model_validate(stored.row.payload["round"]).number)
        return journal

    def read_work_ms(self) -> int:
        """Return how long processes have worked on the run; the time between processes does not count."""
        return read_work_ms(self.ledger, self.run_id)

    def record_answer(self, question: str, text: str, by: str) -> None:
        """Record the answer of a person to the question about the goal."""
        self.steps.record(PERSON_STEP, question, {"text": text, "by": by})

    def record_round(self, round: SolveRound) -> None:
        """Record the end of a round, once."""
        if round.number not in self._recorded_rounds:
            self._append(SOLVE_ROUND_EVENT, {"round": round.model_dump(mode="json")})
            self._recorded_rounds.add(round.number)

    def record_report(self, report: SolveReport, outcome: str) -> None:
        """Record the report and the end of the run."""
        reason = report.result.summary if report.result else f"asks: {report.question}"
        self.ledger.append(
            self._event(SOLVE_REPORT_EVENT, {"report": report.model_dump(mode="json")}),
            self._event("run.finished", {"outcome": outcome, "reason": reason}),
        )

    def record_event(self, type: str, **payload: JsonValue) -> None:
        self._append(type, payload)

    def _append(self, type: str, payload: Mapping[str, JsonValue]) -> None:
        self.ledger.append(self._event(type, payload))

    def _event(self, type: str, payload: Mapping[str, JsonValue]) -> EventRow:
        return EventRow(run_id=self.run_id, type=type, payload=payload)


def read_solve_report(ledger: Ledger, run_id: str) -> SolveReport | None:
    """Return the report of a run, if there is one. A report whose question was answered since is outdated."""
    for stored in ledger.read(EventRow, run_id=run_id, type=SOLVE_REPORT_EVENT, newest=True, limit=1):
        was_continued = ledger.read(EventRow, run_id=run_id, type=SOLVE_STEP_EVENT, after=stored.seq, limit=1)
        return None if was_continued else SolveReport.model_validate(stored.row.payload["report"])
    return None


def write_patch(workspace: SolveWorkspace, run_id: str) -> str:
    """Write the changes of the run to a patch that the user can apply. Return its path, or an empty string without
    changes.
    """
    patch = workspace.build_patch()
    if not patch:
        return ""
    folder = find_run_folder(workspace.context.repository.root, run_id)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "solve.patch"
    write_atomic(path, patch)
    return str(path)


def write_memory(solved: SolveResult, memory: MemoryStore, bus: MessageBus, run_id: str, cost: float) -> int:
    """Write to the memory what later tasks should know about this one. The bus refuses roles that may not write.
    Repeating it after a crash is harmless, because entries have fixed ids.
    """
    finished = FinishedTask(
        run_id=run_id,
        at=format_now(),
        task=solved.spec,
        result=solved.result,
        rounds=solved.rounds,
        subtasks=solved.all_subtasks,
        directives=solved.directives,
        cost=cost,
    )
    entries = build_memory_entries(finished)
    for entry in entries:
        payload = entry.model_dump(mode="json")
        bus.publish(entry.role, "memory", "MemoryEntry", payload, message_id=f"solve/{entry.entry_id}")
        memory.write(entry)
    memory.revise(lambda existing: consolidate(existing, finished.at))
    return len(entries)


_MAX_FILE_BYTES: Final = 16 << 20
_MATCH_SECONDS: Final = 30.0
_HEAD_CHARS: Final = 800
_TAIL_CHARS: Final = 3200
UNCHANGED_NOTE: Final = "(no file has changed since the task started: the criterion was met before anything was done)"
_NOT_STARTED_CODES: Final = (126, 127)
"""The exit codes of a shell that could not run the command: it is missing or not executable."""


def verify_criterion(criterion: Criterion, workspace: SolveWorkspace, output: str, seconds: float) -> CriterionVerdict:
    """Return the verdict on a verifiable criterion."""
    predicate = criterion.predicate
    if criterion.command:
        verdict = _run_command(criterion, workspace, seconds)
    elif predicate is None:
        raise AssertionError("a verifiable criterion has a command or a predicate")
    else:
        verdict = _check_predicate(criterion, predicate, workspace.tool_context(), output)
    concerns_files = predicate is None or predicate.kind is not PredicateKind.OUTPUT_CONTAINS
    if concerns_files and not verdict.is_failed and workspace.is_unchanged:
        return passed_verdict(criterion, f"{verdict.evidence}\n{UNCHANGED_NOTE}")
    return verdict


def _run_command(criterion: Criterion, workspace: SolveWorkspace, seconds: float) -> CriterionVerdict:
    """Run the command of a criterion. If the sandbox could not start it, nothing was measured: it is run once more."""
    execution, output = _execute_command(criterion.command, workspace, seconds)
    if execution.setup_error:
        execution, output = _execute_command(criterion.command, workspace, seconds)
    evidence = f"`{criterion.command}`: {describe_ending(execution, seconds)}"
    if output:
        evidence = f"{evidence}\n{output}"
    evidence = _shorten(evidence)
    return (
        passed_verdict(criterion, evidence)
        if execution.exit_code == 0
        else failed_verdict(criterion, evidence, _classify_failure(execution))
    )


def _execute_command(command: str, workspace: SolveWorkspace, seconds: float) -> tuple[SandboxResult, str]:
    world, captured = workspace.context, OutputEnds()
    limits = world.job_limits(seconds)
    with world.artifacts.open_writer(world.settings.limits.output_mb << 20) as sink:
        with workspace.open_shell(sink, limits, keeps=False) as shell:
            execution = shell(ShellCommand(command, on_output=captured.add))
        world.ledger.append(sink.finish().to_row())
    if execution.cancelled:
        raise KeyboardInterrupt
    return execution, captured.text


def _classify_failure(execution: SandboxResult) -> FailureClass:
    """Classify a failed command. A command that ended by itself has failed; one that could not run, or was stopped,
    proves nothing.
    """
    has_run = execution.exit_code is not None and execution.exit_code not in _NOT_STARTED_CODES
    return FailureClass.LOGICAL if has_run else FailureClass.ENVIRONMENTAL


def _check_predicate(criterion: Criterion, predicate: Predicate, ground: ToolContext, output: str) -> CriterionVerdict:
    try:
        is_met, evidence = _evaluate_predicate(predicate, ground, output)
    except ToolRefusedError as error:
        is_met, evidence = False, error.text
    except ToolFailedError as error:
        is_met, evidence = False, error.text
    except (FileNotFoundError, NotADirectoryError):
        is_met, evidence = predicate.kind is PredicateKind.ABSENT, f"{predicate.path} does not exist"
    evidence = _shorten(evidence)
    return passed_verdict(criterion, evidence) if is_met else failed_verdict(criterion, evidence, FailureClass.LOGICAL)


def _evaluate_predicate(predicate: Predicate, ground: ToolContext, output: str) -> tuple[bool, str]:
    match predicate.kind:
        case PredicateKind.OUTPUT_CONTAINS:
            is_present = predicate.text in output
            return is_present, f"the result {'contains' if is_present else 'does not contain'} {predicate.text!r}"
        case PredicateKind.EXISTS | PredicateKind.ABSENT:
            tree = FileTree(ground)
            entry = tree.get_entry(tree.require_readable(predicate.path))
            kind = "a folder" if entry.is_folder else "a file" if entry.is_file else "neither a file nor a folder"
            return predicate.kind is PredicateKind.EXISTS, f"{predicate.path} exists: {kind}"
        case PredicateKind.CONTAINS:
            is_present = predicate.text in _read_content(predicate.path, ground).decode("utf-8", "replace")
            return is_present, f"{predicate.path} {'contains' if is_present else 'does not contain'} {predicate.text!r}"
        case PredicateKind.MATCHES:
            deadline = ToolDeadline(_MATCH_SECONDS, ground.cancel)
            line = find_first_line(predicate.path, _read_content(predicate.path, ground), predicate.text, deadline)
            return bool(line), line or f"no line of {predicate.path} matches {predicate.text!r}"


def _read_content(path: str, ground: ToolContext) -> bytes:
    tree = FileTree(ground)
    return tree.read(tree.require_readable(path), _MAX_FILE_BYTES)


def _shorten(text: str) -> str:
    """Shorten the text to its beginning and its end, where commands report errors."""
    return text if len(text) <= _HEAD_CHARS + _TAIL_CHARS else f"{text[:_HEAD_CHARS]}\n…\n{text[-_TAIL_CHARS:]}"
