"""The live view of `proofstone run`, with words for somebody who sees it for the first time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from proofstone.contracts.gate_report import RunView
from proofstone.contracts.solve.messages import DirectiveName
from proofstone.surfaces.demo.moments import exposed
from proofstone.surfaces.live.gate import LiveGate
from proofstone.surfaces.live.pipeline import LivePipeline

_MEANING: Final[Mapping[str, str]] = {
    "research": "four agents read the code, each for something else",
    "specification": "what is wanted, as criteria that can be tested; and what speaks against it",
    "design": "decisions, each with the ways that were not taken",
    "design review": "three reviewers, each with a focus of their own",
    "plan": "tasks, each with its files, checks and criteria",
    "plan gate": "other agents attack the plan before anybody has written a line",
    "task": "implementers at work; what they say is a claim, and Proofstone runs the checks itself",
    "whole cascade": "every check once more, on everything together",
    "code review": "three reviewers look at the whole change",
    "knowledge": "what the next run should know",
    "commit": "exactly the tree that was checked, on a branch of its own",
}
"""What happens at a step."""
_REMARKS: Final[Mapping[tuple[str, str], str]] = {
    ("plan-gate", ": REVISE: "): "challenged: the plan goes back to its planner, and nothing is lost yet",
    ("direction", f" {DirectiveName.REFINE}: "): "failed: the next plan is told why, and may keep its approach once",
    ("direction", f" {DirectiveName.BREAK_SYMMETRY}: "): "turned: more of the same gives the same, so the next plan "
    "must take another approach; one that is nearly the same would not be taken",
    ("direction", f" {DirectiveName.CHANGE_APPROACH}: "): "turned: it gets worse, so the next plan must take another "
    "approach",
    ("review-gate", "code, round 1: revise"): "sent back: what was found is planned, done and checked like any other "
    "work",
}
"""By the kind of a note and what is in it."""
_STYLE: Final = "bold magenta"


@dataclass
class ToldGate(LiveGate):
    _caught: set[tuple[str, int]] = field(default_factory=set)

    def changed(self, view: RunView, task: str) -> None:
        super().changed(view, task)
        record = view.task(task).record
        for failure in record.failures[-1:]:
            seen = exposed(failure)
            if not seen or record.claim is None or (task, failure.attempt) in self._caught:
                continue
            self._caught.add((task, failure.attempt))
            with self._telling:
                self._print(f'  caught: it said "{record.claim.evidence}"; but {seen}', _STYLE)


@dataclass
class ToldPipeline(LivePipeline):
    gate_view: type[LiveGate] = ToldGate

    def noted(self, kind: str, text: str) -> None:
        super().noted(kind, text)
        remark = next((told for (of, mark), told in _REMARKS.items() if of == kind and mark in text), "")
        if remark:
            with self._telling:
                self._print(f"  {remark}", _STYLE)

    def _reach(self, step: str, *, heading: bool = True) -> None:
        is_new = step not in self._been
        super()._reach(step, heading=heading)
        if is_new and step in _MEANING:
            self._print(f"  {_MEANING[step]}", "italic")
