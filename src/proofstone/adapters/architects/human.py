"""`human` as an architect: a question on the terminal. Where nobody can be asked, the task waits for a person."""

from __future__ import annotations

from dataclasses import dataclass

from proofstone.adapters.architects.review import Reviewed
from proofstone.adapters.executors.human import TICK, Listen, drain
from proofstone.adapters.executors.site import Site
from proofstone.contracts.gate import (
    ArchitectDecision,
    ArchitectVerdict,
    NoVerdict,
    Recommendation,
    ReviewRequest,
    Waiting,
)
from proofstone.contracts.verdict import Confidence

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
