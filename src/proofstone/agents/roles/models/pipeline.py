"""Requests and answers of the pipeline: research, specification, review, design, plan and knowledge.

The descriptions of fields are written for the agents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from pydantic import ConfigDict, Field, JsonValue, computed_field, field_validator, model_validator

from proofstone.agents.models import RoleOutput
from proofstone.agents.roles.models.gate import CheckSummary
from proofstone.agents.roles.models.payload import AnswerPart, LocalId, LongText, RiskMark, ShortText, find_duplicates
from proofstone.common.models import Confidence, FrozenModel, ReviewVerdict, Severity


class ResearchFocus(StrEnum):
    ARCHITECTURE = "architecture"
    IMPACT = "impact"
    DEPENDENCIES = "dependencies"
    PATTERNS = "patterns"


class ResearchRequest(FrozenModel):
    """The request for a researcher."""

    request: str = Field(description="What the person wants, in their words.")
    focus: ResearchFocus = Field(description="What to look at. Other researchers look at the rest.")
    questions: tuple[str, ...] = Field(default=(), description="What earlier research left open.")


class ResearchFinding(AnswerPart):
    id: LocalId
    title: ShortText
    category: str = Field(default="", max_length=60, description="One or two words of your choice.")
    detail: LongText
    evidence: tuple[ShortText, ...] = Field(
        min_length=1, description="Where it can be seen: `path:line`, a commit, or a command and what it printed."
    )
    relevance: Literal["high", "medium", "low"] = Field(description="How relevant it is to the request.")


class ResearchOutput(RoleOutput):
    """The answer of a researcher."""

    focus: ResearchFocus
    findings: tuple[ResearchFinding, ...] = Field(max_length=40)
    summary: LongText
    source_files_examined: tuple[str, ...] = Field(description="Exactly the files that you have opened.")

    @model_validator(mode="after")
    def _check_ids(self) -> ResearchOutput:
        if duplicates := find_duplicates(tuple(finding.id for finding in self.findings)):
            raise ValueError(f"findings: the id {duplicates[0]} is used more than once")
        return self


class SpecRequest(FrozenModel):
    """The request for a specifier."""

    request: str = Field(description="What the person wants, in their words.")
    research: tuple[ResearchOutput, ...] = Field(default=(), description="What the researchers found.")
    answers: tuple[str, ...] = Field(default=(), description="The person's answers to your earlier concerns.")


class Requirement(AnswerPart):
    id: LocalId
    text: LongText


class AcceptanceCriterion(AnswerPart):
    id: LocalId
    text: LongText = Field(description="One observation that is true or false.")
    test_method: LongText = Field(description="How to observe it: a command, a test to write, or where to look.")


class Concern(AnswerPart):
    """A reason to reconsider the request before anything is built."""

    severity: Severity
    concern: LongText
    suggestion: str = Field(default="", max_length=2_000, description="What you would do instead.")


class SpecOutput(RoleOutput):
    """The answer of a specifier."""

    requirements: tuple[Requirement, ...] = Field(min_length=1, max_length=60)
    acceptance_criteria: tuple[AcceptanceCriterion, ...] = Field(min_length=1, max_length=80)
    edge_cases: tuple[ShortText, ...] = ()
    constraints: tuple[ShortText, ...] = Field(default=(), description="What must not change, and limits to respect.")
    pushback: tuple[Concern, ...] = Field(default=(), description="Concerns about the request itself. None is fine.")

    @model_validator(mode="after")
    def _check_ids(self) -> SpecOutput:
        criteria = tuple(criterion.id for criterion in self.acceptance_criteria)
        if duplicates := find_duplicates((*(requirement.id for requirement in self.requirements), *criteria)):
            raise ValueError(
                f"the id {duplicates[0]} is used more than once; requirements and criteria share their ids"
            )
        return self


ReviewScope = Literal["design", "code"]


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


class PanelFinding(AnswerPart):
    title: ShortText
    severity: Severity = Field(
        description="blocker: must never pass; critical: must be fixed first; major: should be fixed; minor: may stay."
    )
    category: FindingCategory
    description: LongText = Field(description="What goes wrong, and when.")
    affected: tuple[ShortText, ...] = Field(min_length=1, description="`path:line`, or a part of the design by its id.")
    recommendation: LongText
    evidence: LongText = Field(description="What you have seen that shows the problem, such as the lines themselves.")


class PanelRequest(FrozenModel):
    """The request for a reviewer of the panel."""

    request: str = Field(description="What the person wants, in their words.")
    scope: ReviewScope = Field(description="What you review.")
    focus: ReviewFocus = Field(description="What to look for. Two other reviewers look for the rest.")
    round: int = Field(default=1, ge=1)
    criteria: tuple[str, ...] = Field(default=(), description="What must be true in the end.")
    subject: str = Field(description="The design, or the change as a diff. `[...]` marks omissions.")
    checks: tuple[CheckSummary, ...] = Field(default=(), description="The results of the engine's own checks.")
    earlier: tuple[PanelFinding, ...] = Field(default=(), description="Your findings from the round before.")
    risk: RiskMark | None = Field(default=None, description="The highest risk of the files that were planned.")
    results: tuple[str, ...] = Field(
        default=(), description="The criteria of the tasks, each with its result and what shows it."
    )
    reports: tuple[str, ...] = Field(default=(), description="How each task was implemented, by the engine's record.")
    open_findings: tuple[str, ...] = Field(
        default=(), description="What the reviews of the design and the plan left open. Look whether it still holds."
    )


class PanelOutput(RoleOutput):
    """The answer of a reviewer of the panel."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    reviewer_model: str = Field(default="", description="Leave it out: the engine knows it.")
    review_focus: ReviewFocus
    scope: ReviewScope
    round: int = Field(default=1, ge=1)
    verdict: ReviewVerdict
    confidence: Confidence
    findings: tuple[PanelFinding, ...] = Field(default=(), max_length=30)
    resolved: tuple[ShortText, ...] = Field(
        default=(),
        max_length=30,
        description="Titles of critical findings of the design review, among the criteria, that the change resolves.",
    )
    summary: LongText

    @computed_field  # type: ignore[prop-decorator]
    @property
    def findings_count(self) -> dict[Severity, int]:
        """The number of findings by severity, counted from the findings and not taken from the reviewer."""
        counts = Counter(finding.severity for finding in self.findings)
        return {severity: counts[severity] for severity in Severity}

    @field_validator("confidence", mode="before")
    @classmethod
    def _lower_case(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_verdict(self) -> PanelOutput:
        blockers = self.findings_count[Severity.BLOCKER]
        if blockers and self.verdict is not ReviewVerdict.BLOCKER:
            raise ValueError(f"a finding is a blocker, so the verdict must be blocker, not {self.verdict}")
        if self.verdict is ReviewVerdict.BLOCKER and not blockers:
            raise ValueError("the verdict is blocker, but no finding has that severity")
        if self.verdict is ReviewVerdict.NEEDS_REVISION and not self.findings:
            raise ValueError("the verdict is needs_revision, but there is no finding that says what to revise")
        return self


class DesignRequest(FrozenModel):
    """The request for a designer."""

    request: str = Field(description="What the person wants, in their words.")
    spec: SpecOutput = Field(description="The specification.")
    research: tuple[ResearchOutput, ...] = Field(default=(), description="What the researchers found.")
    reviews: tuple[PanelOutput, ...] = Field(default=(), description="What reviewers said about your earlier design.")
    revise: str = Field(default="", description="What you said must be revised in your earlier answer.")


class Alternative(AnswerPart):
    id: LocalId
    label: ShortText
    description: LongText
    pros: tuple[ShortText, ...] = ()
    cons: tuple[ShortText, ...] = ()


class DesignDecision(AnswerPart):
    id: LocalId
    title: ShortText
    context: LongText = Field(description="What made a decision necessary.")
    alternatives: tuple[Alternative, ...] = Field(
        min_length=2, max_length=6, description="All alternatives that you weighed, including the selected one."
    )
    selected: str = Field(description="The id of one of the alternatives.")
    rationale: LongText
    confidence: Confidence
    confidence_definition: LongText = Field(description="What this confidence rests on, and what would change it.")
    risk: RiskMark
    date: str = Field(default="", description="Leave it out: the engine knows it.")
    decided_by: str = Field(default="", description="Leave it out: the engine knows it.")

    @field_validator("confidence", mode="before")
    @classmethod
    def _lower_case(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_selected(self) -> DesignDecision:
        ids = tuple(alternative.id for alternative in self.alternatives)
        if self.selected not in ids:
            raise ValueError(f"selected: {self.selected} is not one of the alternatives: {', '.join(ids)}")
        return self


class DesignOutput(RoleOutput):
    """The answer of a designer."""

    architecture: LongText = Field(description="The parts, what each is responsible for, and how they communicate.")
    decisions: tuple[DesignDecision, ...] = Field(min_length=1, max_length=20)

    @model_validator(mode="after")
    def _check_ids(self) -> DesignOutput:
        if duplicates := find_duplicates(tuple(decision.id for decision in self.decisions)):
            raise ValueError(f"decisions: the id {duplicates[0]} is used more than once")
        return self


class PlanRequest(FrozenModel):
    """The request for a planner."""

    request: str = Field(description="What the person wants, in their words.")
    spec: SpecOutput | None = Field(default=None, description="The specification.")
    design: DesignOutput | None = Field(default=None, description="The design to implement.")
    reviews: tuple[PanelOutput, ...] = Field(default=(), description="What reviewers said about the design.")
    directive: str = Field(default="", description="What to do differently from the plan before this one.")
    failures: tuple[str, ...] = Field(default=(), description="What went wrong with the plan before this one.")
    added: tuple[str, ...] = Field(
        default=(), description="What the person has added since the request. Plan it as well."
    )
    learnt: tuple[str, ...] = Field(
        default=(), description="Lessons of earlier runs about similar work. Weigh them: they may be outdated."
    )


class PlannedFile(AnswerPart):
    path: ShortText = Field(description="From the repository's root; it may be a glob.")
    risk: RiskMark = Field(
        description="🔴 auth, crypto, payments, deletion, migrations, concurrency, public interfaces; 🟡 existing "
        "logic; 🟢 tests, documentation, configuration, new files."
    )


class PlannedTask(AnswerPart):
    id: LocalId
    title: ShortText
    description: LongText = Field(description="What to do, for somebody who has read nothing else.")
    size: Literal["Standard", "Large"] = Field(description="Large if any of its files is 🔴.")
    risk: RiskMark = Field(description="The highest risk of its files.")
    files: tuple[PlannedFile, ...] = Field(
        min_length=1, description="All files that it may change, including its tests."
    )
    depends_on: tuple[str, ...] = Field(
        default=(), max_length=2, description="Ids of the tasks that must be done before it."
    )
    acceptance_criteria: tuple[str, ...] = Field(min_length=1, description="Ids of criteria in the specification.")
    relevant_context: tuple[ShortText, ...] = Field(
        default=(), description="What its executor must read: ids of decisions and requirements, paths."
    )
    verify: tuple[ShortText, ...] = Field(
        min_length=1, description="Command lines that exit 0 only if the task is done."
    )
    done: tuple[ShortText, ...] = Field(min_length=1, description="Criteria, each true or false.")

    @model_validator(mode="after")
    def _check_risk(self) -> PlannedTask:
        order = ("🟢", "🟡", "🔴")
        highest = max((file.risk for file in self.files), key=order.index)
        if order.index(self.risk) < order.index(highest):
            raise ValueError(f"risk is {self.risk}, but the task changes a file of risk {highest}")
        if self.risk == "🔴" and self.size != "Large":
            raise ValueError("a task of risk 🔴 is Large")
        return self


class PlanOutput(RoleOutput):
    """The answer of a planner."""

    overall_risk_summary: LongText
    tasks: tuple[PlannedTask, ...] = Field(min_length=1, max_length=40)
    waves: tuple[tuple[str, ...], ...] = Field(default=(), description="Leave it out: it follows from depends_on.")
    dependency_graph: Mapping[str, tuple[str, ...]] = Field(
        default={}, description="Leave it out: it follows from depends_on."
    )

    @model_validator(mode="after")
    def _check_references(self) -> PlanOutput:
        ids = tuple(task.id for task in self.tasks)
        if duplicates := find_duplicates(ids):
            raise ValueError(f"tasks: the id {duplicates[0]} is used more than once")
        for task in self.tasks:
            for other in task.depends_on:
                if other not in ids:
                    raise ValueError(
                        f"task {task.id} depends on {other}, which is not a task; the tasks are {', '.join(ids)}"
                    )
        try:
            TopologicalSorter({task.id: task.depends_on for task in self.tasks}).prepare()
        except CycleError as error:
            raise ValueError(f"tasks depend on each other in a cycle: {' → '.join(error.args[1])}") from error
        return self


class KnowledgeRequest(FrozenModel):
    """The request for the knowledge role."""

    request: str = Field(description="What the person wanted, in their words.")
    outcome: str = Field(description="How the run ended.")
    events: tuple[str, ...] = Field(default=(), description="What happened, from the ledger, in order.")
    findings: tuple[str, ...] = Field(default=(), description="What checks and reviewers found.")
    failures: tuple[str, ...] = Field(default=(), description="Attempts that failed, also of what passed later.")
    change: str = Field(default="", description="What the run changed. `[...]` marks omissions.")


class Lesson(AnswerPart):
    kind: Literal["memory", "instructions"] = Field(
        description="memory: for the agents of later runs; instructions: a change to a file that instructs agents, "
        "which a person must approve."
    )
    path: str = Field(default="", max_length=300, description="The path of the instruction file; empty for memory.")
    content: LongText
    reason: LongText = Field(description="What in this run shows it.")
    tags: tuple[ShortText, ...] = Field(default=(), max_length=10)


class DecisionLogEntry(AnswerPart):
    title: ShortText
    decision: LongText
    rationale: LongText


class KnowledgeOutput(RoleOutput):
    """The answer of the knowledge role."""

    updates: tuple[Lesson, ...] = Field(default=(), max_length=20)
    decision_log_entries: tuple[DecisionLogEntry, ...] = Field(default=(), max_length=20)
    evidence_bundle: str = Field(default="", description="Leave it out: the engine makes it from the ledger.")
    telemetry: Mapping[str, JsonValue] = Field(
        default={}, description="Leave it out: the engine makes it from the ledger."
    )
