"""`human`: a person edits the work tree and says when they are finished, on this terminal or with `proofstone done`.

There is no deadline. Reading the terminal never keeps anything else waiting.

`human` as an architect: a question on the terminal. Where nobody can be asked, the task waits for a person.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from dataclasses import dataclass

from proofstone.agents.executors.context import Ran, Reviewed, Site
from proofstone.agents.roles.models.gate import (
    ArchitectDecision,
    ArchitectVerdict,
    Assignment,
    ExecutorResult,
    ExecutorStatus,
    NoVerdict,
    Recommendation,
    ReviewRequest,
    Waiting,
)
from proofstone.common.models import Confidence

TICK = 0.5
_ENDS = 20
"""So many ends of the input in a row, and there is nobody any more."""

Listen = Callable[[float], str | None]
"""Waits for so many seconds for a line from the person; None: nothing was said."""


class Terminal:
    """A person at a terminal, line by line."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._open = os.isatty(descriptor)
        self._begun = b""
        self._ends = 0

    def __call__(self, seconds: float) -> str | None:
        line, found, rest = self._begun.partition(b"\n")
        if found:
            self._begun = rest
            return line.decode("utf-8", "replace").rstrip()
        if not self._open:
            time.sleep(seconds)
        elif select.select([self._descriptor], [], [], seconds)[0]:
            data = self._read()
            # Ctrl-D at the beginning of a line is an end that is none; a terminal that is gone says nothing for ever.
            self._ends = 0 if data else self._ends + 1
            self._open = self._ends < _ENDS
            self._begun += data
            return self(0) if b"\n" in self._begun else None
        return None

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, 4096)
        except OSError:
            return b""  # the terminal is gone


def drain(listen: Listen | None) -> None:
    """What was typed before the question was put answers nothing."""
    while listen is not None and listen(0) is not None:
        continue


@dataclass(frozen=True)
class HumanExecutor:
    listen: Listen | None = None
    """None: there is no terminal to ask at."""
    spec: str = "human"

    def execute(self, assignment: Assignment, site: Site) -> Ran:
        started = time.monotonic()
        for line in self._instructions(assignment, site):
            site.say(line)
        drain(self.listen)
        claim = self._await(site)
        duration = round((time.monotonic() - started) * 1000)
        if claim is None:
            return Ran(None, cancelled=True, duration_ms=duration, ended="interrupted")
        return Ran(claim, duration_ms=duration)

    def _instructions(self, assignment: Assignment, site: Site) -> list[str]:
        words = "press Enter here (or write `failed WHY`, `blocked WHY`), or run " if self.listen else "run "
        return [
            f"{assignment.task_id} ({assignment.task_name}) is yours. Work in {site.work_tree}",
            f"It may change: {', '.join(assignment.files) or 'nothing'}. It is verified by: "
            + "; ".join(assignment.verify),
            f"When you are finished, {words}`proofstone done {assignment.run_id} {assignment.task_id}`",
        ]

    def _await(self, site: Site) -> ExecutorResult | None:
        while not site.cancel.is_set():
            if site.heard():
                return ExecutorResult(status=ExecutorStatus.SUCCESS)
            if self.listen is None:
                site.cancel.wait(TICK)
                continue
            word = self.listen(TICK)
            claim = _claim(word) if word is not None else None
            if claim:
                return claim
            if word is not None:
                site.say(f"`{word}` says nothing here: press Enter, or write `failed WHY` or `blocked WHY`")
        return None


def _claim(word: str) -> ExecutorResult | None:
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


_WORDS = "`approve`, `reject WHY`, or `manual` (a person looks into it first)"


@dataclass(frozen=True)
class HumanArchitect:
    listen: Listen | None = None
    """None: there is no terminal to ask at."""
    spec: str = "human"

    def review(self, request: ReviewRequest, site: Site) -> Reviewed:
        question = f"{request.task_id} ({request.task_name}), attempt {request.attempt}: is it what the plan asks for?"
        if self.listen is None:
            return Waiting(question=question)
        for line in (request.diff.rstrip(), *_summary(request), f"{question} Answer {_WORDS}"):
            if line:
                site.say(line)
        drain(self.listen)
        while not site.cancel.is_set():
            if site.heard():
                return Waiting(question=question)  # they have said it elsewhere
            word = self.listen(TICK)
            verdict = _verdict(word) if word is not None else None
            if verdict:
                return verdict
            if word is not None:
                site.say(f"`{word}` is no answer here: {_WORDS}")
        return NoVerdict(why="interrupted", cancelled=True)


def _summary(request: ReviewRequest) -> list[str]:
    checks = [
        f"{check.name}: {check.verdict}{f' ({check.reason})' if check.reason else ''}" for check in request.checks
    ]
    criteria = [f"only your word can meet: {criterion}" for criterion in request.criteria]
    return [*checks, *request.findings, *criteria]


def _verdict(word: str) -> ArchitectVerdict | None:
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
            return _rejected(why, Recommendation.RETRY)
        case "manual" | "m":
            return _rejected(why or "a person looks into it first", Recommendation.MANUAL_REVIEW)
    return None


def _rejected(why: str, recommendation: Recommendation) -> ArchitectVerdict:
    return ArchitectVerdict(
        verdict=ArchitectDecision.REJECTED,
        confidence=Confidence.HIGH,
        recommendation=recommendation,
        feedback=why,
        by="human",
    )
