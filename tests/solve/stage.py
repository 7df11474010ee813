"""A stage for the control loop: a small project, agents who say what is written for them, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from proofstone.ledger.models import MessageRow
from proofstone.solve.models import SolveReport
from tests.staging import DONE, CommandResult, Entry, Staged, set_up_repository

FILES: Mapping[str, str | bytes] = {"notes.txt": "one\ntwo\nthree\n", "src/app.py": "VALUE = 1\n"}
GOAL = "Tell me how many notes there are, and write it down"


# What must be so.


def runs(command: str, says: str = "") -> dict[str, Any]:
    """A criterion that the engine sees by running this."""
    return {"criterion": says or f"`{command}` exits 0", "mode": "verifiable", "command": command}


def is_there(path: str) -> dict[str, Any]:
    return {"criterion": f"{path} is there", "mode": "verifiable", "predicate": {"kind": "exists", "path": path}}


def holds(kind: str, **of: str) -> dict[str, Any]:
    return {"criterion": f"{kind} {of}", "mode": "verifiable", "predicate": {"kind": kind, **of}}


COUNTED = runs("grep -qx 3 count.txt")


# What agents say.


def subtask(intent: str, *criteria: Mapping[str, Any] | str, sequence: int = 1, **more: object) -> dict[str, Any]:
    return {"intent": intent, "success_criteria": list(criteria), "sequence": sequence, **more}


def planner(
    *subtasks: Mapping[str, Any], criteria: Sequence[Mapping[str, Any] | str] = (COUNTED,), **match: object
) -> Entry:
    output = {**DONE, "task_criteria": list(criteria), "subtasks": list(subtasks)}
    return {"role": "planner", "match": match, "output": output}


def executor(*calls: Mapping[str, Any], said: str = "done", status: str = "completed", **match: object) -> Entry:
    output = {**DONE, "status": status, "output": said}
    return {"role": "executor", "match": match, "steps": [{"tool": call} for call in calls], "output": output}


def writes(path: str, content: str) -> dict[str, Any]:
    return {"write": {"path": path, "content": content}}


def validator(*verdicts: Mapping[str, Any], **match: object) -> Entry:
    return {"role": "agent_validator", "match": match, "output": {**DONE, "verdicts": list(verdicts)}}


def passes(number: int = 1) -> dict[str, Any]:
    return {"number": number, "verdict": "pass", "evidence": "seen in the files"}


def fails(number: int = 1, of: str = "logical", evidence: str = "it says something else") -> dict[str, Any]:
    return {"number": number, "verdict": "fail", "failure_class": of, "evidence": evidence}


def merger(*verdicts: Mapping[str, Any], meets: str = "yes", said: str = "There are 3.", **match: object) -> Entry:
    output = {**DONE, "output": said, "summary": "counted", "verdicts": list(verdicts), "meets_the_request": meets}
    return {"role": "meta_validator", "match": match, "output": {**output, "why": "as far as one can see"}}


def perceiver(intent: str = "count the notes", question: str = "", **match: object) -> Entry:
    return {"role": "perceiver", "match": match, "output": {**DONE, "intent": intent, "question": question}}


def handing_over(*partial: str) -> Entry:
    """What the planner says when the task is abandoned."""
    output = {
        **DONE,
        "partial": list(partial),
        "next_moves": ["count them by hand", "ask again"],
        "summary": "not done",
    }
    return {"role": "planner", "match": {"focus": "failure"}, "output": output}


COUNT = subtask("count the lines of notes.txt and write the number to count.txt", COUNTED, files=["count.txt"])
RIGHT = writes("count.txt", "3\n")
WRONG = writes("count.txt", "4\n")


def script(*entries: Entry) -> list[Entry]:
    """These; whoever is left has little to say, and the handing over comes before other words of the planner."""
    ending = [one for one in entries if one["match"].get("focus") == "failure"] or [handing_over()]
    rest = [one for one in entries if one not in ending]
    return [*ending, *rest, perceiver(), planner(COUNT), executor(RIGHT), validator(passes()), merger()]


# What came of it.


@dataclass(frozen=True)
class SolveResult(CommandResult):
    """What one `proofstone solve --json` gave."""

    @cached_property
    def report(self) -> SolveReport:
        return SolveReport.model_validate_json(self.document)

    @property
    def status(self) -> str:
        assert self.report.result is not None, self.report.question
        return self.report.result.status.value

    @property
    def directives(self) -> list[str]:
        return [one.directive.directive.value for one in self.report.rounds]

    @property
    def distances(self) -> list[float]:
        return [one.directive.loss.D for one in self.report.rounds]


@dataclass(frozen=True)
class Stage(Staged):
    @classmethod
    def set_up(cls, folder: Path, files: Mapping[str, str | bytes] = FILES, settings: str = "") -> Stage:
        return cls(*set_up_repository(folder, files, settings))

    def solve(
        self, *entries: Entry, goal: str = GOAL, args: Sequence[str] = (), env: Mapping[str, str] | None = None
    ) -> SolveResult:
        return self._solve(goal, "--backend", self.cast(script(*entries)), *args, env=env)

    def resume(self, run: str, *args: str, env: Mapping[str, str] | None = None) -> SolveResult:
        return self._solve("--resume", run, *args, env=env)

    def _solve(self, *args: str, env: Mapping[str, str] | None = None) -> SolveResult:
        return SolveResult.of(self.proofstone("solve", *args, "--json", "--quiet", env=env))

    def said(self, run_id: str) -> list[tuple[str, str, str]]:
        """What roles have handed each other: from, to, type."""
        with closing(self.ledger()) as ledger:
            rows = [one.row for one in ledger.read(MessageRow, run_id=run_id)]
        return [(row.sender, row.recipient, row.type) for row in rows if "engine" not in (row.sender, row.recipient)]

    def asked(self, run_id: str, dispatch: str) -> str:
        """What an agent was told when it was asked."""
        with closing(self.ledger()) as ledger:
            rows = [one.row for one in ledger.read(MessageRow, run_id=run_id, type="Dispatch")]
        (text,) = [str(row.payload["request"]) for row in rows if row.payload["dispatch"] == dispatch]
        return text
