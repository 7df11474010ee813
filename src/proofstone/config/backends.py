"""What the settings of every component have in common.

Who serves which role: what can be written, and which of several places that say so is right.

A line that names the role goes before a `default`, wherever they stand. Among lines that name it, the command line goes
before the person's own file and that before the repository's; within one place, `reviewer:security` before `reviewer`.

What agents may spend: for a whole run, for one task and for one role. On unless a person says otherwise.

How long a run may take is `gate.run_minutes`. The minutes here are of agents at work, one beside the other added up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from proofstone.common.models import Allowance, Budget
from proofstone.errors import InputError


class Component(BaseModel):
    """The settings of one component: frozen, and no key that we do not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


_TEXT = r"[^\x00]"
MODEL = r"[A-Za-z0-9][^\s\x00]*"
"""A model that a program is told to use. What begins with a `-` would be an option of the program's: a repository could
have it send the person's key to a server of its own."""
_BACKEND = (
    rf"human|(acp|cmd|script):{_TEXT}*[^\x00\s]{_TEXT}*|api:[A-Za-z0-9][A-Za-z0-9_.-]*:[^\s\x00]+"
    rf"|cli:[a-z0-9][a-z0-9-]*(:{MODEL})?"
)
KINDS = (
    "`api:<provider>:<model>`, `cli:<preset>`, `acp:<preset or command>`, `cmd:<shell command>`, `human` or "
    "`script:<file>`"
)

BackendSpec = Annotated[str, Field(strict=True, pattern=rf"^({_BACKEND})$", title=KINDS)]
ExecutorSpec = Annotated[str, Field(strict=True, pattern=rf"^({_BACKEND})?$", title=KINDS)]
ArchitectSpec = Annotated[str, Field(strict=True, pattern=rf"^(rules|{_BACKEND})$", title=f"`rules`, {KINDS}")]

RoleName = Literal[
    "executor",
    "architect",
    "researcher",
    "specifier",
    "designer",
    "planner",
    "reviewer",
    "knowledge",
    "challenger",
    "domain_expert",
    "devils_advocate",
    "synthesizer",
    "perceiver",
    "agent_validator",
    "meta_validator",
]
FOCI: Final = ("security", "architecture", "correctness")
"""Of the reviewers: three of them, each with an eye for one thing."""
DEFAULT: Final = "default"
RULES: Final = "rules"
"""What an architect is when nobody else is asked: the deterministic rules alone."""


def works_alone(spec: str) -> bool:
    """Whether it names a coding agent: a program with tools and a login of its own."""
    return spec.startswith(("acp:", "cli:"))


def _one_or_several(written: object) -> object:
    """One backend may stand without its brackets."""
    return (written,) if isinstance(written, str) else written


def _schema(kinds: str) -> WithJsonSchema:
    """One, or a list: what may be written, not what it is read into."""
    several = {"type": "array", "items": {"type": "string", "title": "one of these"}}
    return WithJsonSchema({"anyOf": [{"type": "string", "title": kinds}, several]})


Specs = Annotated[tuple[BackendSpec, ...], BeforeValidator(_one_or_several), _schema(KINDS)]
ArchitectSpecs = Annotated[tuple[ArchitectSpec, ...], BeforeValidator(_one_or_several), _schema(f"`rules`, {KINDS}")]


class BackendSettings(Component):
    """Who serves each role. A list names the first choice and those that are asked when it cannot be reached."""

    default: Specs = Field(default=(), description="Every role that has no line of its own.")
    executor: Specs = Field(default=(), description="Who does the work of a task; `gate.executor` says the same.")
    architect: ArchitectSpecs = Field(
        default=(),
        description="Who reviews a task after the rules, or `rules` for nobody; `gate.architect` says the same.",
    )
    researcher: Specs = Field(
        default=(),
        description="Who looks into the code before anything is decided, and at the plan gate into what is open.",
    )
    specifier: Specs = Field(default=(), description="Who says what is wanted, so that it can be tested.")
    designer: Specs = Field(default=(), description="Who decides how it is to be built.")
    planner: Specs = Field(default=(), description="Who cuts a design into tasks, and plans what is to be solved.")
    reviewer: Specs = Field(default=(), description="All three reviewers that have no line of their own.")
    reviewer_security: Specs = Field(
        default=(), alias="reviewer:security", description="The reviewer who looks for what can be abused."
    )
    reviewer_architecture: Specs = Field(
        default=(), alias="reviewer:architecture", description="The reviewer who looks at structure and interfaces."
    )
    reviewer_correctness: Specs = Field(
        default=(), alias="reviewer:correctness", description="The reviewer who looks for what is wrong or missing."
    )
    knowledge: Specs = Field(default=(), description="Who writes down what was learnt.")
    challenger: Specs = Field(default=(), description="Who attacks a plan before any work starts.")
    domain_expert: Specs = Field(
        default=(), description="Who challenges a plan from knowledge of its field, if it is a complex one."
    )
    devils_advocate: Specs = Field(
        default=(), description="Who makes the case against a plan as a whole, if it is a complex one."
    )
    synthesizer: Specs = Field(default=(), description="Who rules on what was brought against a plan.")
    perceiver: Specs = Field(default=(), description="Who takes in what a person wants solved.")
    agent_validator: Specs = Field(default=(), description="Who judges what came of a subtask.")
    meta_validator: Specs = Field(
        default=(),
        description="Who merges what the subtasks gave and verifies it; no weaker a model than the planner's.",
    )

    @property
    def lines(self) -> Mapping[str, tuple[str, ...]]:
        """What is set, by the key that it is written under."""
        written: dict[str, tuple[str, ...]] = self.model_dump(by_alias=True)
        return {key: specs for key, specs in written.items() if specs}


KEYS: Final = tuple(field.alias or name for name, field in BackendSettings.model_fields.items())


class Origin(StrEnum):
    """Where a backend was chosen, the strongest word first."""

    COMMAND_LINE = "command line"
    PERSON = "person"
    REPOSITORY = "repository"
    BUILT_IN = "default"


@dataclass(frozen=True)
class Place:
    """One place that may say who serves a role."""

    origin: Origin
    lines: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Choice:
    """Who serves one agent, and who said so."""

    agent: str
    """A role, or one of several agents of it: `reviewer:security`."""
    specs: tuple[str, ...]
    """The first choice, then its fallbacks. Empty: nobody was named."""
    origin: Origin
    key: str = ""
    """The line that decided."""


def choose(agent: str, places: Sequence[Place]) -> Choice:
    """Who serves `agent`, by the rule above; `places` with the strongest word first."""
    names = dict.fromkeys((agent, agent.partition(":")[0]))
    for wanted in (tuple(names), (DEFAULT,)):
        for place in places:
            for key in wanted:
                if specs := place.lines.get(key):
                    return Choice(agent, tuple(specs), place.origin, key)
    return Choice(agent, (RULES,) if agent == "architect" else (), Origin.BUILT_IN)


def from_command_line(options: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """`ROLE=SPEC` options; further ones for the same role are its fallbacks."""
    lines: dict[str, tuple[str, ...]] = {}
    for option in options:
        key, equals, spec = option.partition("=")
        if not equals or key not in KEYS:
            raise InputError(
                f"--backend {option}: {key!r} is no role" if equals else f"--backend {option}: there is no `=`",
                hint=f"ROLE=SPEC, where ROLE is one of {', '.join(KEYS)}",
            )
        lines[key] = (*lines.get(key, ()), *_read(option, key, spec))
    return lines


def _read(option: str, key: str, spec: str) -> tuple[str, ...]:
    try:
        return BackendSettings.model_validate({key: spec}).lines[key]
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        own_words = detail["msg"].removeprefix("Value error, ") if detail["type"] == "value_error" else ""
        raise InputError(
            f"--backend {option}: {own_words or f'{spec!r} names no backend'}", hint=f"SPEC is {KINDS}"
        ) from error


Tokens = Annotated[int, Field(strict=True, ge=0, le=1_000_000_000_000)]
Count = Annotated[int, Field(strict=True, ge=0, le=1_000_000_000)]
Amount = Annotated[float, Field(strict=True, ge=0, le=1_000_000)]

_MINUTES = "Minutes that agents are at work, one beside the other added up."


class TaskBudget(Component):
    """What all the work on one task may use."""

    tokens: Tokens = Field(default=1_500_000, description="Tokens, read and written. 0: no limit.")
    usd: Amount = Field(default=8.0, description="US dollars, as far as prices are known. 0: no limit.")
    requests: Count = Field(default=400, description="Calls of a model. 0: no limit.")
    tool_calls: Count = Field(default=1_000, description="Calls of tools. 0: no limit.")
    minutes: Amount = Field(default=0.0, description=f"{_MINUTES} 0: no limit.")


class RoleBudget(Component):
    """What all the agents of one role may use in a run."""

    tokens: Tokens = Field(default=0, description="Tokens, read and written. 0: no limit of its own.")
    usd: Amount = Field(default=0.0, description="US dollars, as far as prices are known. 0: no limit of its own.")
    requests: Count = Field(default=0, description="Calls of a model. 0: no limit of its own.")
    tool_calls: Count = Field(default=0, description="Calls of tools. 0: no limit of its own.")
    minutes: Amount = Field(default=0.0, description=f"{_MINUTES} 0: no limit of its own.")


class BudgetSettings(Component):
    """What the agents of a run may use. Reaching a limit stops the work, and everything is kept. How long a whole
    run may take is `gate.run_minutes`."""

    tokens: Tokens = Field(default=5_000_000, description="Tokens, read and written. 0: no limit.")
    usd: Amount = Field(default=20.0, description="US dollars, as far as prices are known. 0: no limit.")
    requests: Count = Field(default=2_000, description="Calls of a model. 0: no limit.")
    tool_calls: Count = Field(default=10_000, description="Calls of tools. 0: no limit.")
    minutes: Amount = Field(default=0.0, description=f"{_MINUTES} 0: no limit.")
    task: TaskBudget = Field(
        default=TaskBudget(), description="What all the work on one task may use: `[budget.task]`."
    )
    roles: Mapping[RoleName, RoleBudget] = Field(
        default={}, description="What all the agents of one role may use: `[budget.roles.planner]`."
    )


def limits(settings: BudgetSettings) -> Budget:
    """The settings as limits: what is 0 there is none here."""
    return Budget(
        run=_allowance(settings),
        task=_allowance(settings.task),
        roles={name: _allowance(own) for name, own in settings.roles.items()},
    )


def _allowance(own: BudgetSettings | TaskBudget | RoleBudget) -> Allowance:
    return Allowance(
        tokens=own.tokens or None,
        usd=own.usd or None,
        requests=own.requests or None,
        tool_calls=own.tool_calls or None,
        minutes=own.minutes or None,
    )
