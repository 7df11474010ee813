"""`human`: a person as an executor or an architect.

An executor edits the work tree and says when they are finished, on the terminal or with `proofstone done`. There is no
time limit, and reading the terminal never blocks anything else. An architect answers a question on the terminal; if
there is no terminal, the task waits for a person.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from proofstone.agents.executors.context import ExecutionContext, ExecutionOutcome, ReviewOutcome
from proofstone.agents.roles.models.gate import (
    ArchitectDecision,
    ArchitectVerdict,
    Assignment,
    ExecutorResult,
    ExecutorStatus,
    NoVerdict,
    PendingReview,
    Recommendation,
    ReviewRequest,
)
from proofstone.common.models import Confidence

POLL_SECONDS = 0.5
_MOST_ENDS = 20
"""After so many ends of input in a row, the terminal counts as closed."""

AnswerT = TypeVar("AnswerT")
ReadLine = Callable[[float], str | None]
"""Waits the given number of seconds for a line from the person, and returns None if there was none."""


class Terminal:
    """Reads lines from a person at a terminal."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._open = os.isatty(descriptor)
        self._buffer = b""
        self._ends = 0

    def __call__(self, seconds: float) -> str | None:
        line, newline, rest = self._buffer.partition(b"\n")
        if newline:
            self._buffer = rest
            return line.decode("utf-8", "replace").rstrip()
        if not self._open:
            time.sleep(seconds)
        elif select.select([self._descriptor], [], [], seconds)[0]:
            data = self._read()
            # Ctrl-D at the start of a line only looks like the end of input; a closed terminal is at its end forever.
            self._ends = 0 if data else self._ends + 1
            self._open = self._ends < _MOST_ENDS
            self._buffer += data
            return self(0) if b"\n" in self._buffer else None
        return None

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, 4096)
        except OSError:
            return b""  # the terminal is gone


def discard_input(listen: ReadLine | None) -> None:
    """Discard lines that were typed before the question was asked."""
    while listen is not None and listen(0) is not None:
        continue


def wait_for_answer(
    site: ExecutionContext,
    listen: ReadLine | None,
    parse: Callable[[str], AnswerT | None],
    usage: str,
    answered_elsewhere: AnswerT,
) -> AnswerT | None:
    """Wait until the person has typed an answer, or has answered in another process with `proofstone answer`. Return
    None if the run is interrupted. `usage` says what an answer looks like."""
    discard_input(listen)
    while not site.cancel.is_set():
        if site.is_done():
            return answered_elsewhere
        if listen is None:
            site.cancel.wait(POLL_SECONDS)
            continue
        line = listen(POLL_SECONDS)
        answer = parse(line) if line is not None else None
        if answer:
            return answer
        if line is not None:
            site.say(f"`{line}` is not an answer: {usage}")
    return None


@dataclass(frozen=True)
class HumanExecutor:
    listen: ReadLine | None = None
    """None if there is no terminal."""
    spec: str = "human"

    def execute(self, assignment: Assignment, site: ExecutionContext) -> ExecutionOutcome:
        started = time.monotonic()
        for line in self._instructions(assignment, site):
            site.say(line)
        claim = wait_for_answer(
            site,
            self.listen,
            _parse_claim,
            "press Enter, or write `failed WHY` or `blocked WHY`",
            ExecutorResult(status=ExecutorStatus.SUCCESS),
        )
        duration = round((time.monotonic() - started) * 1000)
        if claim is None:
            return ExecutionOutcome(None, cancelled=True, duration_ms=duration, end_reason="interrupted")
        return ExecutionOutcome(claim, duration_ms=duration)

    def _instructions(self, assignment: Assignment, site: ExecutionContext) -> list[str]:
        action = "press Enter here (or write `failed WHY`, `blocked WHY`), or run " if self.listen else "run "
        return [
            f"{assignment.task_id} ({assignment.task_name}) is yours. Work in {site.work_tree}",
            f"You may change: {', '.join(assignment.files) or 'nothing'}. Your work is verified by: "
            + "; ".join(assignment.verify),
            f"When you are finished, {action}`proofstone done {assignment.run_id} {assignment.task_id}`",
        ]


def _parse_claim(word: str) -> ExecutorResult | None:
    first, _, why = word.strip().partition(" ")
    why = why.strip()
    match first.rstrip(":").lower():
        case "" | "done":
            return ExecutorResult(status=ExecutorStatus.SUCCESS)
        case "failed" | "failure":
            return ExecutorResult(status=ExecutorStatus.FAILURE, error=why or "the person gave it up")
        case "blocked" if why:
            return ExecutorResult(status=ExecutorStatus.BLOCKED, error=why)
    return None


_ANSWERS = "`approve`, `reject WHY`, or `manual` (a person looks into it first)"


@dataclass(frozen=True)
class HumanArchitect:
    listen: ReadLine | None = None
    """None if there is no terminal."""
    spec: str = "human"

    def review(self, request: ReviewRequest, site: ExecutionContext) -> ReviewOutcome:
        question = f"{request.task_id} ({request.task_name}), attempt {request.attempt}: is it what the plan asks for?"
        if self.listen is None:
            return PendingReview(question=question)
        for line in (request.diff.rstrip(), *_summarize(request), f"{question} Answer {_ANSWERS}"):
            if line:
                site.say(line)
        answered_elsewhere: ReviewOutcome = PendingReview(question=question)
        verdict = wait_for_answer(site, self.listen, _parse_verdict, f"write {_ANSWERS}", answered_elsewhere)
        return verdict or NoVerdict(why="interrupted", cancelled=True)


def _summarize(request: ReviewRequest) -> list[str]:
    checks = [
        f"{check.name}: {check.verdict}{f' ({check.reason})' if check.reason else ''}" for check in request.checks
    ]
    criteria = [f"only you can confirm: {criterion}" for criterion in request.criteria]
    return [*checks, *request.findings, *criteria]


def _parse_verdict(word: str) -> ArchitectVerdict | None:
    first, _, why = word.strip().partition(" ")
    why = why.strip()
    match first.rstrip(":").lower():
        case "approve" | "approved" | "a":
            return ArchitectVerdict(
                verdict=ArchitectDecision.APPROVED,
                confidence=Confidence.HIGH,
                findings=(why or "a person has looked at it and approves",),
                by="human",
            )
        case "reject" | "rejected" | "r" if why:
            return _build_rejection(why, Recommendation.RETRY)
        case "manual" | "m":
            return _build_rejection(why or "a person looks into it first", Recommendation.MANUAL_REVIEW)
    return None


def _build_rejection(why: str, recommendation: Recommendation) -> ArchitectVerdict:
    return ArchitectVerdict(
        verdict=ArchitectDecision.REJECTED,
        confidence=Confidence.HIGH,
        recommendation=recommendation,
        feedback=why,
        by="human",
    )
