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
from proofstone.common.models import Contract
from proofstone.export.pipeline import BASELINE, FEATURE
from proofstone.export.prompts import ABILITY, HISTORY, Ability, Prompt, own_prompt, prompt_of
from proofstone.export.schemas import MOST_CORRECTIONS, ImplementationReport, Schema, schemas


class FeatureRequest(Contract):
    """The input of the orchestrator."""

    request: str = Field(description="What the person wants, in their words.")
    approval_mode: Literal["autonomous", "interactive"] = Field(
        default="autonomous", description="Whether the person is asked at the approval gates."
    )


class VerificationRequest(Contract):
    """The input of the verifier."""

    task: PlannedTask = Field(description="What was to be done.")
    report: ImplementationReport = Field(description="What its author says. A claim.")
    baseline: str = Field(description=f"The git tag that marks where the work started: `{BASELINE}`.")


@dataclass(frozen=True)
class Anchor:
    """What an agent must remember even when it has lost the rest of its context."""

    does: str
    never: str


@dataclass(frozen=True)
class Place:
    """The place of an agent in the pipeline."""

    step: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    schema: str
    ends: Mapping[CompletionStatus, str]
    checks: tuple[str, ...]
    anchor: Anchor
    instance: str = ""
    """The name that distinguishes one of several instances."""
    rules: tuple[str, ...] = ()
    """Rules that apply only outside the runtime."""


@dataclass(frozen=True)
class Agent:
    name: str
    title: str
    summary: str
    place: Place
    prompt: Prompt
    input: type[Contract]
    schema: Schema
    tools: frozenset[Tool]
    """Tools of Proofstone that its prompt may mention."""
    abilities: frozenset[Ability]
    exempt: str = ""
    """Why the agent is not re-verified during its work. Empty if it is."""

    @property
    def forbidden(self) -> frozenset[Ability]:
        return frozenset(Ability) - self.abilities

    @property
    def leads(self) -> bool:
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

PLACES: Final[Mapping[str, Place]] = {
    "orchestrator": Place(
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
        anchor=Anchor("dispatch agents and decide by the table what follows", "write a file, search the code or judge"),
    ),
    "researcher": Place(
        step="1",
        inputs=("the person's request", "the focus", "the repository"),
        outputs=(f"`{FEATURE}/research/<focus>.yaml`", f"`{FEATURE}/research/<focus>.md` for people"),
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
        anchor=Anchor("look into the code with one focus and report what is there", "decide or change anything"),
    ),
    "spec": Place(
        step="2",
        inputs=("the person's request", f"`{FEATURE}/research/*.yaml`"),
        outputs=(f"`{FEATURE}/spec-output.yaml`", f"`{FEATURE}/feature.md` for people"),
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
        anchor=Anchor("say what is wanted so that it can be tested", "decide how it is built"),
    ),
    "designer": Place(
        step="3",
        inputs=(
            "the person's request",
            f"`{FEATURE}/spec-output.yaml`",
            f"`{FEATURE}/research/*.yaml`",
            f"on a revision `{FEATURE}/review-verdicts/design-*.yaml`",
        ),
        outputs=(f"`{FEATURE}/design-output.yaml`", f"`{FEATURE}/design.md` for people"),
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
        anchor=Anchor("decide how it is built, and record why", "write code or cut tasks"),
    ),
    "planner": Place(
        step="4, and 6r for a new plan",
        inputs=(
            f"`{FEATURE}/design-output.yaml`",
            f"`{FEATURE}/spec-output.yaml`",
            f"`{FEATURE}/review-verdicts/design-*.yaml`",
            "on a new plan: what failed, and a directive",
        ),
        outputs=(
            f"`{FEATURE}/plan-output.yaml`",
            f"`{FEATURE}/tasks/<task-id>.yaml`, one for each task, of [`task-schema`]({{schemas}}#task-schema)",
            f"`{FEATURE}/plan.md` for people",
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
        anchor=Anchor("cut a design into tasks that can be proven one by one", "do the tasks"),
    ),
    "implementer": Place(
        step="5, and 7f for fixes",
        inputs=(
            f"`{FEATURE}/tasks/<task-id>.yaml`",
            "the parts of design and specification that its `relevant_context` names",
        ),
        outputs=(
            "the files that the task declares",
            f"`{FEATURE}/implementation-reports/<task-id>.yaml`",
        ),
        schema="implementation-report",
        instance="implementer:<task-id>",
        rules=(
            "Here the work tree is not yours alone: others may work in it at the same time, on other files. Leave "
            "theirs as they are.",
            "Before the first change run the verify commands and the tests nearby, and keep what they gave as "
            "`baseline`.",
            f"What is wrong with your own work you may correct {MOST_CORRECTIONS} times; then report it as it is.",
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
        anchor=Anchor("do the work of one task, with its tests", "change other files, weaken a test, stage or commit"),
    ),
    "verifier": Place(
        step="6",
        inputs=(
            f"`{FEATURE}/tasks/<task-id>.yaml`",
            f"`{FEATURE}/implementation-reports/<task-id>.yaml`",
            f"the git tag `{BASELINE}`",
        ),
        outputs=(f"`{FEATURE}/verification-reports/<task-id>.yaml`",),
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
        anchor=Anchor("find out by running what can be run whether one task is done", "repair what you find"),
    ),
    "adversarial-reviewer": Place(
        step="3b for the design, 7 for the code",
        inputs=(
            "the scope, the focus and the round",
            "what is reviewed: the design, or the change as a diff",
            f"for code `{FEATURE}/verification-reports/*.yaml`",
        ),
        outputs=(
            f"`{FEATURE}/review-verdicts/<scope>-<focus>-r<round>.yaml`",
            f"`{FEATURE}/review-findings/<scope>-<focus>-r<round>.md` for people",
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
        anchor=Anchor("look for what must not be let through", "change what you review, or approve to be agreeable"),
    ),
    "knowledge-agent": Place(
        step="8, and 8b for the evidence bundle",
        inputs=(f"all outputs in `{FEATURE}`", "how the run ended", "the commit, if there is one"),
        outputs=(
            f"`{FEATURE}/knowledge-output.yaml`",
            f"`{FEATURE}/decisions.yaml`, to which it only adds",
            f"`{FEATURE}/evidence-bundle.md` in step 8b",
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
        anchor=Anchor("write down what the next run should know", "change code, instructions or earlier decisions"),
    ),
}


def agents(roles: Mapping[str, Role] = ROLES) -> tuple[Agent, ...]:
    """Return the agents in the order of the pipeline."""
    return tuple(_build_agent(name, roles) for name in PLACES)


def _build_agent(name: str, roles: Mapping[str, Role]) -> Agent:
    if name in _ROLE_OF:
        return _from_role(name, roles[_ROLE_OF[name]], roles)
    return {"orchestrator": _build_orchestrator, "verifier": _build_verifier}[name](roles)


def _from_role(name: str, role: Role, roles: Mapping[str, Role]) -> Agent:
    """Build an agent from a role. It writes its outputs itself, which the runtime does for the role."""
    own = {ABILITY[tool] for tool in role.tools if tool not in HISTORY}
    return Agent(
        name=name,
        title=_title(name),
        summary=role.title,
        place=PLACES[name],
        prompt=prompt_of(role),
        input=role.input,
        schema=_find_schema(PLACES[name], roles),
        tools=role.tools,
        abilities=frozenset(own | {Ability.EDIT}),
        exempt=_EXEMPT.get(name, ""),
    )


def _build_orchestrator(roles: Mapping[str, Role]) -> Agent:
    return Agent(
        name="orchestrator",
        title="Orchestrator",
        summary="Takes a feature through the pipeline, and decides by fixed rules what follows",
        place=PLACES["orchestrator"],
        prompt=own_prompt("orchestrator"),
        input=FeatureRequest,
        schema=_find_schema(PLACES["orchestrator"], roles),
        tools=frozenset({Tool.READ, Tool.RUN, *HISTORY}),
        abilities=frozenset({Ability.DISPATCH, Ability.READ, Ability.RUN}),
    )


def _build_verifier(roles: Mapping[str, Role]) -> Agent:
    return Agent(
        name="verifier",
        title="Verifier",
        summary="Finds out by running the checks whether one task is done",
        place=PLACES["verifier"],
        prompt=own_prompt("verifier"),
        input=VerificationRequest,
        schema=_find_schema(PLACES["verifier"], roles),
        tools=roles["architect"].tools,
        abilities=frozenset({Ability.READ, Ability.SEARCH, Ability.RUN, Ability.EDIT}),
    )


def _find_schema(place: Place, roles: Mapping[str, Role]) -> Schema:
    return next(schema for schema in schemas(roles) if schema.name == place.schema)


def _title(name: str) -> str:
    return name.replace("-", " ").title()
