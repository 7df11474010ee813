"""Research: what the code is like, before anything is decided.

Specification: what is wanted, said so that it can be tested.

Review of a design or of code by a panel of three, each with a focus of their own.

Design: how it is to be built, decision by decision, each with what else was possible.

Plan: tasks that can be done and proven one by one.

Knowledge: what the next run should know. Evidence and figures are the engine's own and no part of the answer's
weight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from pydantic import ConfigDict, Field, JsonValue, computed_field, field_validator, model_validator

from proofstone.agents.models import Output
from proofstone.agents.roles.models.gate import ReviewedCheck
from proofstone.agents.roles.models.payload import Line, LocalId, Part, RiskMark, Text, repeated
from proofstone.common.models import Confidence, Contract, ReviewVerdict, Severity


class ResearchFocus(StrEnum):
    ARCHITECTURE = "architecture"
    IMPACT = "impact"
    DEPENDENCIES = "dependencies"
    PATTERNS = "patterns"


class ResearchRequest(Contract):
    """What a researcher is given."""

    request: str = Field(description="What the person wants, in their words.")
    focus: ResearchFocus = Field(description="What to look at. Others look at the rest.")
    questions: tuple[str, ...] = Field(default=(), description="What earlier research left open.")


class ResearchFinding(Part):
    id: LocalId
    title: Line
    category: str = Field(default="", max_length=60, description="One or two words of your choice.")
    detail: Text
    evidence: tuple[Line, ...] = Field(
        min_length=1, description="Where it can be seen: `path:line`, a commit, or a command and what it printed."
    )
    relevance: Literal["high", "medium", "low"] = Field(description="To the request.")


class ResearchOutput(Output):
    """What a researcher answers."""

    focus: ResearchFocus
    findings: tuple[ResearchFinding, ...] = Field(max_length=40)
    summary: Text
    source_files_examined: tuple[str, ...] = Field(description="Paths of files that you have opened, and no others.")

    @model_validator(mode="after")
    def _ids_are_unique(self) -> ResearchOutput:
        if twice := repeated(tuple(finding.id for finding in self.findings)):
            raise ValueError(f"findings: the id {twice[0]} is there more than once")
        return self


class SpecRequest(Contract):
    """What a specifier is given."""

    request: str = Field(description="What the person wants, in their words.")
    research: tuple[ResearchOutput, ...] = Field(default=(), description="What the researchers found.")
    answers: tuple[str, ...] = Field(default=(), description="What the person said to earlier concerns.")


class Requirement(Part):
    id: LocalId
    text: Text


class AcceptanceCriterion(Part):
    id: LocalId
    text: Text = Field(description="One thing that can be observed and is true or false.")
    test_method: Text = Field(description="How to observe it: a command, a test to write, or what to look at.")


class Concern(Part):
    """A reason to think again before anything is built."""

    severity: Severity
    concern: Text
    suggestion: str = Field(default="", max_length=2_000, description="What you would do instead.")


class SpecOutput(Output):
    """What a specifier answers."""

    requirements: tuple[Requirement, ...] = Field(min_length=1, max_length=60)
    acceptance_criteria: tuple[AcceptanceCriterion, ...] = Field(min_length=1, max_length=80)
    edge_cases: tuple[Line, ...] = ()
    constraints: tuple[Line, ...] = Field(default=(), description="What must not change, and limits to keep to.")
    pushback: tuple[Concern, ...] = Field(default=(), description="Concerns about the request itself. None is fine.")

    @model_validator(mode="after")
    def _ids_are_unique(self) -> SpecOutput:
        criteria = tuple(item.id for item in self.acceptance_criteria)
        if twice := repeated((*(requirement.id for requirement in self.requirements), *criteria)):
            raise ValueError(f"the id {twice[0]} is there more than once; requirements and criteria share their ids")
        return self


Scope = Literal["design", "code"]


class ReviewFocus(StrEnum):
    SECURITY = "security"
    ARCHITECTURE = "architecture"
    CORRECTNESS = "correctness"


class FindingCategory(StrEnum):
    SECURITY = "security"
    CORRECTNESS = "correctness"
    PERFORMANCE = "performance"
    MAINTAINABILITY = "maintainability"
    DESIGN = "design"


class PanelFinding(Part):
    title: Line
    severity: Severity = Field(
        description="blocker: must never be let through; critical: must be put right first; major: should be; "
        "minor: may stay."
    )
    category: FindingCategory
    description: Text = Field(description="What goes wrong, and when.")
    affected: tuple[Line, ...] = Field(min_length=1, description="`path:line`, or a part of the design by its id.")
    recommendation: Text
    evidence: Text = Field(description="What you have seen that shows it, such as the lines themselves.")


class PanelRequest(Contract):
    """What a reviewer of the panel is given."""

    request: str = Field(description="What the person wants, in their words.")
    scope: Scope = Field(description="What is reviewed.")
    focus: ReviewFocus = Field(description="What to look for. Two others look for the rest.")
    round: int = Field(default=1, ge=1)
    criteria: tuple[str, ...] = Field(default=(), description="What must hold in the end.")
    subject: str = Field(description="The design, or the change as a diff. `[...]` stands for what was left out.")
    checks: tuple[ReviewedCheck, ...] = Field(default=(), description="What the engine's own checks gave.")
    earlier: tuple[PanelFinding, ...] = Field(default=(), description="Your findings of the round before.")


class PanelOutput(Output):
    """What a reviewer of the panel answers."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    reviewer_model: str = Field(default="", description="Leave it out: the engine knows it.")
    review_focus: ReviewFocus
    scope: Scope
    round: int = Field(default=1, ge=1)
    verdict: ReviewVerdict
    confidence: Confidence
    findings: tuple[PanelFinding, ...] = Field(default=(), max_length=30)
    summary: Text

    @computed_field  # type: ignore[prop-decorator]
    @property
    def findings_count(self) -> dict[Severity, int]:
        """Counted, whatever the reviewer says."""
        found = Counter(finding.severity for finding in self.findings)
        return {severity: found[severity] for severity in Severity}

    @field_validator("confidence", mode="before")
    @classmethod
    def _either_spelling(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _the_verdict_follows_from_the_findings(self) -> PanelOutput:
        blockers = self.findings_count[Severity.BLOCKER]
        if blockers and self.verdict is not ReviewVerdict.BLOCKER:
            raise ValueError(f"a finding is a blocker, so the verdict must be blocker, not {self.verdict}")
        if self.verdict is ReviewVerdict.BLOCKER and not blockers:
            raise ValueError("the verdict is blocker, but no finding has that severity")
        if self.verdict is ReviewVerdict.NEEDS_REVISION and not self.findings:
            raise ValueError("the verdict is needs_revision, but there is no finding that says what to revise")
        return self


class DesignRequest(Contract):
    """What a designer is given."""

    request: str = Field(description="What the person wants, in their words.")
    spec: SpecOutput = Field(description="What was specified.")
    research: tuple[ResearchOutput, ...] = Field(default=(), description="What the researchers found.")
    reviews: tuple[PanelOutput, ...] = Field(default=(), description="What reviewers said to your earlier design.")


class Alternative(Part):
    id: LocalId
    label: Line
    description: Text
    pros: tuple[Line, ...] = ()
    cons: tuple[Line, ...] = ()


class Decision(Part):
    id: LocalId
    title: Line
    context: Text = Field(description="What made a decision necessary.")
    alternatives: tuple[Alternative, ...] = Field(
        min_length=2, max_length=6, description="All that were weighed, the one that was selected among them."
    )
    selected: str = Field(description="The id of one of the alternatives.")
    rationale: Text
    confidence: Confidence
    confidence_definition: Text = Field(description="What this confidence rests on, and what would change it.")
    risk: RiskMark
    date: str = Field(default="", description="Leave it out: the engine knows it.")
    decided_by: str = Field(default="", description="Leave it out: the engine knows it.")

    @field_validator("confidence", mode="before")
    @classmethod
    def _either_spelling(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _selected_is_an_alternative(self) -> Decision:
        there = tuple(alternative.id for alternative in self.alternatives)
        if self.selected not in there:
            raise ValueError(f"selected: {self.selected} is none of the alternatives: {', '.join(there)}")
        return self


class DesignOutput(Output):
    """What a designer answers."""

    architecture: Text = Field(description="The parts, what each is responsible for, and how they talk.")
    decisions: tuple[Decision, ...] = Field(min_length=1, max_length=20)

    @model_validator(mode="after")
    def _ids_are_unique(self) -> DesignOutput:
        if twice := repeated(tuple(decision.id for decision in self.decisions)):
            raise ValueError(f"decisions: the id {twice[0]} is there more than once")
        return self


class PlanRequest(Contract):
    """What a planner is given."""

    request: str = Field(description="What the person wants, in their words.")
    spec: SpecOutput | None = Field(default=None, description="What was specified.")
    design: DesignOutput | None = Field(default=None, description="How it is to be built.")
    reviews: tuple[PanelOutput, ...] = Field(default=(), description="What reviewers said to the design.")
    directive: str = Field(default="", description="What to do differently from the plan before this one.")
    failures: tuple[str, ...] = Field(default=(), description="What went wrong with the plan before this one.")
    added: tuple[str, ...] = Field(
        default=(), description="What the person has added since they made the request: it must be planned, too."
    )
    learnt: tuple[str, ...] = Field(
        default=(), description="What earlier runs have learnt about something like it: weigh it, it may be outdated."
    )


class PlannedFile(Part):
    path: Line = Field(description="From the repository's root; it may be a glob.")
    risk: RiskMark = Field(
        description="🔴 auth, crypto, payments, deletion, migrations, concurrency, public interfaces; 🟡 existing "
        "logic; 🟢 tests, documentation, configuration, new files."
    )


class PlannedTask(Part):
    id: LocalId
    title: Line
    description: Text = Field(description="What to do, for somebody who has read nothing else.")
    size: Literal["Standard", "Large"] = Field(description="Large if any of its files is 🔴.")
    risk: RiskMark = Field(description="The highest of its files'.")
    files: tuple[PlannedFile, ...] = Field(min_length=1, description="All that it may change, its tests too.")
    depends_on: tuple[str, ...] = Field(default=(), max_length=2, description="Ids of tasks that come before it.")
    acceptance_criteria: tuple[str, ...] = Field(min_length=1, description="Ids of the specification's criteria.")
    relevant_context: tuple[Line, ...] = Field(
        default=(), description="What its executor must read: ids of decisions and requirements, paths."
    )
    verify: tuple[Line, ...] = Field(min_length=1, description="Command lines that exit 0 only if it is done.")
    done: tuple[Line, ...] = Field(min_length=1, description="Criteria, each true or false.")

    @model_validator(mode="after")
    def _risk_makes_large(self) -> PlannedTask:
        order = ("🟢", "🟡", "🔴")
        highest = max((file.risk for file in self.files), key=order.index)
        if order.index(self.risk) < order.index(highest):
            raise ValueError(f"risk is {self.risk}, but it changes a file of risk {highest}")
        if self.risk == "🔴" and self.size != "Large":
            raise ValueError("a task of risk 🔴 is Large")
        return self


class PlanOutput(Output):
    """What a planner answers."""

    overall_risk_summary: Text
    tasks: tuple[PlannedTask, ...] = Field(min_length=1, max_length=40)
    waves: tuple[tuple[str, ...], ...] = Field(default=(), description="Leave it out: it follows from depends_on.")
    dependency_graph: Mapping[str, tuple[str, ...]] = Field(
        default={}, description="Leave it out: it follows from depends_on."
    )

    @model_validator(mode="after")
    def _references_lead_somewhere(self) -> PlanOutput:
        ids = tuple(task.id for task in self.tasks)
        if twice := repeated(ids):
            raise ValueError(f"tasks: the id {twice[0]} is there more than once")
        for task in self.tasks:
            for other in task.depends_on:
                if other not in ids:
                    raise ValueError(f"task {task.id} depends on {other}, which is no task; there are {', '.join(ids)}")
        try:
            TopologicalSorter({task.id: task.depends_on for task in self.tasks}).prepare()
        except CycleError as error:
            raise ValueError(f"tasks wait for each other: {' → '.join(error.args[1])}") from error
        return self


class KnowledgeRequest(Contract):
    """What the keeper of knowledge is given."""

    request: str = Field(description="What the person wanted, in their words.")
    outcome: str = Field(description="How the run ended.")
    events: tuple[str, ...] = Field(default=(), description="What happened, from the ledger, in order.")
    findings: tuple[str, ...] = Field(default=(), description="What checks and reviewers found.")
    change: str = Field(default="", description="What the run changed. `[...]` stands for what was left out.")


class Lesson(Part):
    kind: Literal["memory", "instructions"] = Field(
        description="memory: for the agents of later runs; instructions: a change to a file that agents are told by, "
        "which a person must approve."
    )
    path: str = Field(default="", max_length=300, description="Of the instruction file; empty for memory.")
    content: Text
    reason: Text = Field(description="What of this run shows it.")
    tags: tuple[Line, ...] = Field(default=(), max_length=10)


class LoggedDecision(Part):
    title: Line
    decision: Text
    rationale: Text


class KnowledgeOutput(Output):
    """What the keeper of knowledge answers."""

    updates: tuple[Lesson, ...] = Field(default=(), max_length=20)
    decision_log_entries: tuple[LoggedDecision, ...] = Field(default=(), max_length=20)
    evidence_bundle: str = Field(default="", description="Leave it out: it is made from the ledger.")
    telemetry: Mapping[str, JsonValue] = Field(default={}, description="Leave it out: it is made from the ledger.")
