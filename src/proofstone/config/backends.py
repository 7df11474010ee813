"""Which backend serves which role, and what agents may spend.

*Backends.* A line for the role takes precedence over a `default`, wherever they are written. Among lines for the role,
the command line takes precedence over the user's own file, and that over the repository's; within one source,
`reviewer:security` takes precedence over `reviewer`.

*Budgets* for a whole run, for one task and for one role. They apply unless the user changes them. The duration of a run
is limited by `gate.run_minutes`; the minutes here are the working time of agents, added up over parallel agents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from proofstone.common.models import Allowance, Budget
from proofstone.errors import InputError


class SettingsModel(BaseModel):
    """The base of all settings models: frozen, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)


_TEXT = r"[^\x00]"
MODEL_PATTERN = r"[A-Za-z0-9][^\s\x00]*"
"""The pattern of a model's name that is passed to a program. A name that begins with `-` would be an option of the
program: a repository could use it to send the user's key to a server of its own.
"""
_BACKEND = (
    rf"human|(acp|cmd|script):{_TEXT}*[^\x00\s]{_TEXT}*|api:[A-Za-z0-9][A-Za-z0-9_.-]*:[^\s\x00]+"
    rf"|cli:[a-z0-9][a-z0-9-]*(:{MODEL_PATTERN})?"
)
BACKEND_KINDS = (
    "`api:<provider>:<model>`, `cli:<preset>`, `acp:<preset or command>`, `cmd:<shell command>`, `human` or "
    "`script:<file>`"
)

BackendSpec = Annotated[str, Field(strict=True, pattern=rf"^({_BACKEND})$", title=BACKEND_KINDS)]
ExecutorSpec = Annotated[str, Field(strict=True, pattern=rf"^({_BACKEND})?$", title=BACKEND_KINDS)]
ArchitectSpec = Annotated[str, Field(strict=True, pattern=rf"^(rules|{_BACKEND})$", title=f"`rules`, {BACKEND_KINDS}")]

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
"""The focuses of the three reviewers."""
DEFAULT_KEY: Final = "default"
RULES_ONLY: Final = "rules"
"""The architect if no other is configured: the deterministic rules alone."""


def is_coding_agent(spec: str) -> bool:
    """Return whether the spec names a coding agent: a program with its own tools and login."""
    return spec.startswith(("acp:", "cli:"))


def _to_tuple(value: object) -> object:
    """Accept a single backend without brackets."""
    return (value,) if isinstance(value, str) else value


def _schema(kinds: str) -> WithJsonSchema:
    """Return the schema of what may be written (one backend or a list), not of what it is parsed into."""
    several = {"type": "array", "items": {"type": "string", "title": "one of these"}}
    return WithJsonSchema({"anyOf": [{"type": "string", "title": kinds}, several]})


BackendSpecs = Annotated[tuple[BackendSpec, ...], BeforeValidator(_to_tuple), _schema(BACKEND_KINDS)]
ArchitectSpecs = Annotated[tuple[ArchitectSpec, ...], BeforeValidator(_to_tuple), _schema(f"`rules`, {BACKEND_KINDS}")]


class BackendSettings(SettingsModel):
    """The backend of each role. A list names the first choice and its fallbacks, which are used when it cannot be
    reached.
    """

    default: BackendSpecs = Field(default=(), description="The backend of every role that has no line of its own.")
    executor: BackendSpecs = Field(
        default=(), description="Does the work of a task; the same setting as `gate.executor`."
    )
    architect: ArchitectSpecs = Field(
        default=(),
        description="Reviews a task after the rules, or `rules` for none; the same setting as `gate.architect`.",
    )
    researcher: BackendSpecs = Field(
        default=(),
        description="Explores the code before any decision, and answers open questions at the plan gate.",
    )
    specifier: BackendSpecs = Field(default=(), description="Writes testable requirements.")
    designer: BackendSpecs = Field(default=(), description="Designs the solution.")
    planner: BackendSpecs = Field(default=(), description="Splits a design into tasks, and plans how to solve a goal.")
    reviewer: BackendSpecs = Field(
        default=(), description="The backend of all reviewers that have no line of their own."
    )
    reviewer_security: BackendSpecs = Field(
        default=(), alias="reviewer:security", description="The reviewer for security."
    )
    reviewer_architecture: BackendSpecs = Field(
        default=(), alias="reviewer:architecture", description="The reviewer for structure and interfaces."
    )
    reviewer_correctness: BackendSpecs = Field(
        default=(), alias="reviewer:correctness", description="The reviewer for mistakes and omissions."
    )
    knowledge: BackendSpecs = Field(default=(), description="Records lessons from a run.")
    challenger: BackendSpecs = Field(default=(), description="Challenges a plan before any work starts.")
    domain_expert: BackendSpecs = Field(
        default=(), description="Challenges a complex plan with knowledge of its field."
    )
    devils_advocate: BackendSpecs = Field(default=(), description="Argues against a complex plan as a whole.")
    synthesizer: BackendSpecs = Field(default=(), description="Decides on the objections to a plan.")
    perceiver: BackendSpecs = Field(default=(), description="Interprets the goal that is to be solved.")
    agent_validator: BackendSpecs = Field(default=(), description="Judges the result of a subtask.")
    meta_validator: BackendSpecs = Field(
        default=(),
        description="Merges and verifies the results of subtasks; its model must be no weaker than the planner's.",
    )

    @property
    def specs_by_key(self) -> Mapping[str, tuple[str, ...]]:
        """The configured backends, by the key under which they are written."""
        values: dict[str, tuple[str, ...]] = self.model_dump(by_alias=True)
        return {key: specs for key, specs in values.items() if specs}


BACKEND_KEYS: Final = tuple(field.alias or name for name, field in BackendSettings.model_fields.items())


class BackendOrigin(StrEnum):
    """Where a backend was chosen, in order of precedence."""

    COMMAND_LINE = "command line"
    PERSON = "person"
    REPOSITORY = "repository"
    BUILT_IN = "default"


@dataclass(frozen=True)
class BackendSource:
    """A source that may name the backend of a role."""

    origin: BackendOrigin
    specs_by_key: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class BackendSelection:
    """The backend of one agent, and where it was chosen."""

    agent: str
    """A role, or one of several agents of a role: `reviewer:security`."""
    specs: tuple[str, ...]
    """The first choice, then its fallbacks. Empty if no backend is configured."""
    origin: BackendOrigin
    key: str = ""
    """The key of the line that decided."""


def choose_backend(agent: str, places: Sequence[BackendSource]) -> BackendSelection:
    """Return the backend of `agent` by the rule above; `places` are in order of precedence."""
    names = dict.fromkeys((agent, agent.partition(":")[0]))
    for candidates in (tuple(names), (DEFAULT_KEY,)):
        for place in places:
            for key in candidates:
                if specs := place.specs_by_key.get(key):
                    return BackendSelection(agent, tuple(specs), place.origin, key)
    return BackendSelection(agent, (RULES_ONLY,) if agent == "architect" else (), BackendOrigin.BUILT_IN)


def parse_backend_options(options: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Parse `ROLE=SPEC` options; further options for the same role are its fallbacks."""
    lines: dict[str, tuple[str, ...]] = {}
    for option in options:
        key, equals, spec = option.partition("=")
        if not equals or key not in BACKEND_KEYS:
            raise InputError(
                f"--backend {option}: {key!r} is not a role" if equals else f"--backend {option}: there is no `=`",
                hint=f"write ROLE=SPEC, where ROLE is one of {', '.join(BACKEND_KEYS)}",
            )
        lines[key] = (*lines.get(key, ()), *_parse_spec(option, key, spec))
    return lines


def _parse_spec(option: str, key: str, spec: str) -> tuple[str, ...]:
    try:
        return BackendSettings.model_validate({key: spec}).specs_by_key[key]
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        reason = detail["msg"].removeprefix("Value error, ") if detail["type"] == "value_error" else ""
        raise InputError(
            f"--backend {option}: {reason or f'{spec!r} is not a backend'}", hint=f"SPEC is {BACKEND_KINDS}"
        ) from error


Tokens = Annotated[int, Field(strict=True, ge=0, le=1_000_000_000_000)]
Count = Annotated[int, Field(strict=True, ge=0, le=1_000_000_000)]
Amount = Annotated[float, Field(strict=True, ge=0, le=1_000_000)]

_MINUTES = "Working minutes of agents, added up over parallel agents."


class TaskBudget(SettingsModel):
    """What all the work on one task may use."""

    tokens: Tokens = Field(default=1_500_000, description="Input and output tokens. 0: no limit.")
    usd: Amount = Field(default=8.0, description="US dollars, as far as prices are known. 0: no limit.")
    requests: Count = Field(default=400, description="Model calls. 0: no limit.")
    tool_calls: Count = Field(default=1_000, description="Tool calls. 0: no limit.")
    minutes: Amount = Field(default=0.0, description=f"{_MINUTES} 0: no limit.")


class RoleBudget(SettingsModel):
    """What all the agents of one role may use in a run."""

    tokens: Tokens = Field(default=0, description="Input and output tokens. 0: no limit of its own.")
    usd: Amount = Field(default=0.0, description="US dollars, as far as prices are known. 0: no limit of its own.")
    requests: Count = Field(default=0, description="Model calls. 0: no limit of its own.")
    tool_calls: Count = Field(default=0, description="Tool calls. 0: no limit of its own.")
    minutes: Amount = Field(default=0.0, description=f"{_MINUTES} 0: no limit of its own.")


class BudgetSettings(SettingsModel):
    """What the agents of a run may use. Reaching a limit stops the run; all work is kept. The duration of a whole run
    is limited by `gate.run_minutes`.
    """

    tokens: Tokens = Field(default=5_000_000, description="Input and output tokens. 0: no limit.")
    usd: Amount = Field(default=20.0, description="US dollars, as far as prices are known. 0: no limit.")
    requests: Count = Field(default=2_000, description="Model calls. 0: no limit.")
    tool_calls: Count = Field(default=10_000, description="Tool calls. 0: no limit.")
    minutes: Amount = Field(default=0.0, description=f"{_MINUTES} 0: no limit.")
    task: TaskBudget = Field(
        default=TaskBudget(), description="What all the work on one task may use: `[budget.task]`."
    )
    roles: Mapping[RoleName, RoleBudget] = Field(
        default={}, description="What all the agents of one role may use: `[budget.roles.planner]`."
    )


def to_budget(settings: BudgetSettings) -> Budget:
    """Convert the settings to a budget, in which None means no limit."""
    return Budget(
        run=_to_allowance(settings),
        task=_to_allowance(settings.task),
        roles={name: _to_allowance(role_budget) for name, role_budget in settings.roles.items()},
    )


def _to_allowance(budget: BudgetSettings | TaskBudget | RoleBudget) -> Allowance:
    return Allowance(
        tokens=budget.tokens or None,
        usd=budget.usd or None,
        requests=budget.requests or None,
        tool_calls=budget.tool_calls or None,
        minutes=budget.minutes or None,
    )
