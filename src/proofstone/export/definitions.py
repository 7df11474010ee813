"""The nine exported agents as data, built from the product's roles, or from what the engine does where there is no
role.

A role provides its title, prompt, contracts and tools. This module adds what matters outside the runtime: the step of
an agent, the files that it reads and writes, and what it must not forget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import Field

from proofstone.agents.models import CompletionStatus
from proofstone.agents.roles.models.pipeline import PlannedTask
from proofstone.agents.roles.registry import ROLES
from proofstone.agents.roles.role import Role
from proofstone.agents.tools.models import Tool
from proofstone.common.models import FrozenModel
from proofstone.export.pipeline_tables import BASELINE_TAG, FEATURE_FOLDER
from proofstone.export.prompts import (
    ABILITY_BY_TOOL,
    HISTORY_TOOLS,
    Ability,
    DefinitionPrompt,
    read_own_prompt,
    read_role_prompt,
)
from proofstone.export.schemas import MAX_SELF_CORRECTIONS, ImplementationReport, OutputSchema, list_schemas


class FeatureRequest(FrozenModel):
    """The input of the orchestrator."""

    request: str = Field(description="What the person wants, in their words.")
    approval_mode: Literal["autonomous", "interactive"] = Field(
        default="autonomous", description="Whether the person is asked at the approval gates."
    )


class VerificationRequest(FrozenModel):
    """The input of the verifier."""

    task: PlannedTask = Field(description="What was to be done.")
    report: ImplementationReport = Field(description="What its author says. A claim.")
    baseline: str = Field(description=f"The git tag that marks where the work started: `{BASELINE_TAG}`.")


@dataclass(frozen=True)
class DefinitionAnchor:
    """What an agent must remember even when it has lost the rest of its context."""

    does: str
    never: str


@dataclass(frozen=True)
class PipelinePlace:
    """The place of an agent in the pipeline."""

    step: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    schema: str
    ends: Mapping[CompletionStatus, str]
    checks: tuple[str, ...]
    anchor: DefinitionAnchor
    instance: str = ""
    """The name that distinguishes one of several instances."""
    rules: tuple[str, ...] = ()
    """Rules that apply only outside the runtime."""


@dataclass(frozen=True)
class AgentDefinition:
    name: str
    title: str
    summary: str
    place: PipelinePlace
    prompt: DefinitionPrompt
    input: type[FrozenModel]
    schema: OutputSchema
    tools: frozenset[Tool]
    """Tools of Proofstone that its prompt may mention."""
    abilities: frozenset[Ability]
    exempt: str = ""
    """Why the agent is not re-verified during its work. Empty if it is."""

    @property
    def missing_abilities(self) -> frozenset[Ability]:
        return frozenset(Ability) - self.abilities

    @property
    def is_orchestrator(self) -> bool:
        return Ability.DISPATCH in self.abilities


_DONE: Final = CompletionStatus.DONE
_REVISE: Final = CompletionStatus.NEEDS_REVISION
_ERROR: Final = CompletionStatus.ERROR
_READS_ONCE: Final = "it looks at what is there and answers once"

_ROLE_OF: Final[Mapping[str, str]] = {
    "researcher": "researcher",
    "spec": "specifier",
    "designer": "designer",
    "planner": "planner",
    "implementer": "executor",
    "adversarial-reviewer": "reviewer",
    "knowledge-agent": "knowledge",
}
_EXEMPT: Final = {"adversarial-reviewer": _READS_ONCE, "knowledge-agent": _READS_ONCE}

PIPELINE_PLACES: Final[Mapping[str, PipelinePlace]] = {
    "orchestrator": PipelinePlace(
        step="0 to 9, all of them",
        inputs=("the person's request", "the `completion` of every agent's output"),
        outputs=("none: it writes no file, and what it knows is in its conversation",),
        schema="completion-contract",
        ends={
            _DONE: "the pipeline came to its end, with or without a commit, and the person was told which.",
            _REVISE: "never. Revisions are routed to the agents that can make them.",
            _ERROR: "a step failed beyond its budget, or a blocker halts the run.",
        },
        checks=(
            "Every step was taken, or the decision table says why not.",
            "Every gate was decided from outputs and commands, not from impressions.",
            "No loop ran past its budget in dispatch-patterns.md.",
            "What was committed is what `proofstone check --staged` passed; otherwise nothing was.",
        ),
        anchor=DefinitionAnchor(
            "dispatch agents and decide by the table what follows", "write a file, search the code or judge"
        ),
    ),
    "researcher": PipelinePlace(
        step="1",
        inputs=("the person's request", "the focus", "the repository"),
        outputs=(f"`{FEATURE_FOLDER}/research/<focus>.yaml`", f"`{FEATURE_FOLDER}/research/<focus>.md` for people"),
        schema="research-output",
        instance="researcher:<focus>",
        ends={
            _DONE: "the focus was looked into, and every finding says where it can be seen.",
            _REVISE: "the request cannot be researched as it is; the summary says what must be made clear.",
            _ERROR: "the repository could not be read.",
        },
        checks=(
            "Every finding has at least one place that you have opened yourself.",
            "`source_files_examined` lists files that you opened, and no others.",
        ),
        anchor=DefinitionAnchor(
            "look into the code with one focus and report what is there", "decide or change anything"
        ),
    ),
    "spec": PipelinePlace(
        step="2",
        inputs=("the person's request", f"`{FEATURE_FOLDER}/research/*.yaml`"),
        outputs=(f"`{FEATURE_FOLDER}/spec-output.yaml`", f"`{FEATURE_FOLDER}/feature.md` for people"),
        schema="spec-output",
        rules=("You cannot ask the person yourself: concerns go into `pushback`, and the orchestrator asks.",),
        ends={
            _DONE: "every requirement has a criterion that can be tested; concerns are in `pushback`.",
            _REVISE: "the research contradicts itself where it matters; the summary says where.",
            _ERROR: "no testable requirement could be written.",
        },
        checks=(
            "Every requirement has at least one criterion, and every criterion a test method.",
            "No id is there twice.",
            "Each concern in `pushback` has a severity of the taxonomy.",
        ),
        anchor=DefinitionAnchor("say what is wanted so that it can be tested", "decide how it is built"),
    ),
    "designer": PipelinePlace(
        step="3",
        inputs=(
            "the person's request",
            f"`{FEATURE_FOLDER}/spec-output.yaml`",
            f"`{FEATURE_FOLDER}/research/*.yaml`",
            f"on a revision `{FEATURE_FOLDER}/review-verdicts/design-*.yaml`",
        ),
        outputs=(f"`{FEATURE_FOLDER}/design-output.yaml`", f"`{FEATURE_FOLDER}/design.md` for people"),
        schema="design-output",
        ends={
            _DONE: "every criterion can be met by the design, and on a revision every finding is answered.",
            _REVISE: "the specification cannot be designed for as it is; the summary says why.",
            _ERROR: "no design could be made.",
        },
        checks=(
            "Every decision has at least two real alternatives, and `selected` is one of them.",
            "Every criterion of the specification was checked against the design.",
            "What is said about the code is so: the files are there.",
        ),
        anchor=DefinitionAnchor("decide how it is built, and record why", "write code or cut tasks"),
    ),
    "planner": PipelinePlace(
        step="4, and 6r for a new plan",
        inputs=(
            f"`{FEATURE_FOLDER}/design-output.yaml`",
            f"`{FEATURE_FOLDER}/spec-output.yaml`",
            f"`{FEATURE_FOLDER}/review-verdicts/design-*.yaml`",
            "on a new plan: what failed, and a directive",
        ),
        outputs=(
            f"`{FEATURE_FOLDER}/plan-output.yaml`",
            f"`{FEATURE_FOLDER}/tasks/<task-id>.yaml`, one for each task, of [`task-schema`]({{schemas}}#task-schema)",
            f"`{FEATURE_FOLDER}/plan.md` for people",
        ),
        schema="plan-output",
        ends={
            _DONE: "every criterion belongs to a task that can be done and proven by itself.",
            _REVISE: "the design cannot be planned as it is; the summary says why.",
            _ERROR: "no plan could be made.",
        },
        checks=(
            "Every acceptance criterion belongs to at least one task.",
            "Every file has a risk; a task with a 🔴 file is Large.",
            "At most three production files and two dependencies for each task, and no circle.",
            "Tasks that could run at the same time share no file.",
            "Every verify command fails before the task is done.",
        ),
        anchor=DefinitionAnchor("cut a design into tasks that can be proven one by one", "do the tasks"),
    ),
    "implementer": PipelinePlace(
        step="5, and 7f for fixes",
        inputs=(
            f"`{FEATURE_FOLDER}/tasks/<task-id>.yaml`",
            "the parts of design and specification that its `relevant_context` names",
        ),
        outputs=(
            "the files that the task declares",
            f"`{FEATURE_FOLDER}/implementation-reports/<task-id>.yaml`",
        ),
        schema="implementation-report",
        instance="implementer:<task-id>",
        rules=(
            "Here the work tree is not yours alone: others may work in it at the same time, on other files. Leave "
            "theirs as they are.",
            "Before the first change run the verify commands and the tests nearby, and keep what they gave as "
            "`baseline`.",
            f"What is wrong with your own work you may correct {MAX_SELF_CORRECTIONS} times; then report it as it is.",
        ),
        ends={
            _DONE: "`status` is `success`.",
            _REVISE: "`status` is `blocked`: the task cannot be done as it stands, and nothing was changed.",
            _ERROR: "`status` is `failure`: it was tried, and is not done.",
        },
        checks=(
            "Checks were run before the first change, and are in `baseline`.",
            "The verify commands were run after the last change, and corrections are counted in `self_check.attempts`.",
            "Only files that the task declares were changed; nothing was staged or committed.",
            "To take a task back: the files are as they were at the baseline tag, and `task_type` is `revert`.",
        ),
        anchor=DefinitionAnchor(
            "do the work of one task, with its tests", "change other files, weaken a test, stage or commit"
        ),
    ),
    "verifier": PipelinePlace(
        step="6",
        inputs=(
            f"`{FEATURE_FOLDER}/tasks/<task-id>.yaml`",
            f"`{FEATURE_FOLDER}/implementation-reports/<task-id>.yaml`",
            f"the git tag `{BASELINE_TAG}`",
        ),
        outputs=(f"`{FEATURE_FOLDER}/verification-reports/<task-id>.yaml`",),
        schema="verification-report",
        instance="verifier:<task-id>",
        rules=("What `proofstone check` says goes before what you ran by hand, and before the implementer's report.",),
        ends={
            _DONE: "the task passes.",
            _REVISE: "a check failed or is unverifiable, a criterion is not shown, or an undeclared file changed.",
            _ERROR: "it could not be found out.",
        },
        checks=(
            "`proofstone check` ran, or `proofstone_check.why_not` says why it did not.",
            "`evidence_gate` agrees with `findings`: count them.",
            "Nothing unverifiable was counted as passed.",
            "No file but the report was written.",
        ),
        anchor=DefinitionAnchor("find out by running what can be run whether one task is done", "repair what you find"),
    ),
    "adversarial-reviewer": PipelinePlace(
        step="3b for the design, 7 for the code",
        inputs=(
            "the scope, the focus and the round",
            "what is reviewed: the design, or the change as a diff",
            f"for code `{FEATURE_FOLDER}/verification-reports/*.yaml`",
        ),
        outputs=(
            f"`{FEATURE_FOLDER}/review-verdicts/<scope>-<focus>-r<round>.yaml`",
            f"`{FEATURE_FOLDER}/review-findings/<scope>-<focus>-r<round>.md` for people",
        ),
        schema="review-findings",
        instance="adversarial-reviewer:<focus>",
        ends={
            _DONE: "everything that matters to the focus was looked at, whatever the verdict.",
            _REVISE: "never. What must change is said by `verdict`.",
            _ERROR: "what was to be reviewed could not be read.",
        },
        checks=(
            "`verdict` is `blocker` exactly if a finding is one.",
            "Every finding names a place and shows how it goes wrong.",
            "`completion.severity` is that of the gravest finding.",
        ),
        anchor=DefinitionAnchor(
            "look for what must not be let through", "change what you review, or approve to be agreeable"
        ),
    ),
    "knowledge-agent": PipelinePlace(
        step="8, and 8b for the evidence bundle",
        inputs=(f"all outputs in `{FEATURE_FOLDER}`", "how the run ended", "the commit, if there is one"),
        outputs=(
            f"`{FEATURE_FOLDER}/knowledge-output.yaml`",
            f"`{FEATURE_FOLDER}/decisions.yaml`, to which it only adds",
            f"`{FEATURE_FOLDER}/evidence-bundle.md` in step 8b",
        ),
        schema="knowledge-output",
        ends={
            _DONE: "what was learnt is written down, or there was nothing new.",
            _REVISE: "never. There is nothing to send back.",
            _ERROR: "the outputs could not be read. The pipeline goes on without.",
        },
        checks=(
            "No lesson weakens a check, a test, a permission or a safety rule.",
            "No instruction file was changed: a change to one is proposed in `updates`, for a person to approve.",
            "The bundle states only what outputs and commands show; the confidence is the orchestrator's.",
        ),
        anchor=DefinitionAnchor(
            "write down what the next run should know", "change code, instructions or earlier decisions"
        ),
    ),
}


def build_agents(roles: Mapping[str, Role] = ROLES) -> tuple[AgentDefinition, ...]:
    """Return the agents in the order of the pipeline."""
    return tuple(_build_agent(name, roles) for name in PIPELINE_PLACES)


def _build_agent(name: str, roles: Mapping[str, Role]) -> AgentDefinition:
    if name in _ROLE_OF:
        return _from_role(name, roles[_ROLE_OF[name]], roles)
    return {"orchestrator": _build_orchestrator, "verifier": _build_verifier}[name](roles)


def _from_role(name: str, role: Role, roles: Mapping[str, Role]) -> AgentDefinition:
    """Build an agent from a role. It writes its outputs itself, which the runtime does for the role."""
    own = {ABILITY_BY_TOOL[tool] for tool in role.tools if tool not in HISTORY_TOOLS}
    return AgentDefinition(
        name=name,
        title=_title(name),
        summary=role.title,
        place=PIPELINE_PLACES[name],
        prompt=read_role_prompt(role),
        input=role.input,
        schema=_find_schema(PIPELINE_PLACES[name], roles),
        tools=role.tools,
        abilities=frozenset(own | {Ability.EDIT}),
        exempt=_EXEMPT.get(name, ""),
    )


def _build_orchestrator(roles: Mapping[str, Role]) -> AgentDefinition:
    return AgentDefinition(
        name="orchestrator",
        title="Orchestrator",
        summary="Takes a feature through the pipeline, and decides by fixed rules what follows",
        place=PIPELINE_PLACES["orchestrator"],
        prompt=read_own_prompt("orchestrator"),
        input=FeatureRequest,
        schema=_find_schema(PIPELINE_PLACES["orchestrator"], roles),
        tools=frozenset({Tool.READ, Tool.RUN, *HISTORY_TOOLS}),
        abilities=frozenset({Ability.DISPATCH, Ability.READ, Ability.RUN}),
    )


def _build_verifier(roles: Mapping[str, Role]) -> AgentDefinition:
    return AgentDefinition(
        name="verifier",
        title="Verifier",
        summary="Finds out by running the checks whether one task is done",
        place=PIPELINE_PLACES["verifier"],
        prompt=read_own_prompt("verifier"),
        input=VerificationRequest,
        schema=_find_schema(PIPELINE_PLACES["verifier"], roles),
        tools=roles["architect"].tools,
        abilities=frozenset({Ability.READ, Ability.SEARCH, Ability.RUN, Ability.EDIT}),
    )


def _find_schema(place: PipelinePlace, roles: Mapping[str, Role]) -> OutputSchema:
    return next(schema for schema in list_schemas(roles) if schema.name == place.schema)


def _title(name: str) -> str:
    return name.replace("-", " ").title()
