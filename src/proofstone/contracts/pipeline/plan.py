"""Plan: tasks that can be done and proven one by one."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from pydantic import Field, model_validator

from proofstone.contracts.agent import Output
from proofstone.contracts.base import Contract
from proofstone.contracts.pipeline.design import DesignOutput
from proofstone.contracts.pipeline.part import Line, LocalId, Part, RiskMark, Text, repeated
from proofstone.contracts.pipeline.review import PanelOutput
from proofstone.contracts.pipeline.spec import SpecOutput


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
