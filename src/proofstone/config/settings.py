"""What can be set. Every field says what it is for, what it may be and what it is when nobody sets it.

Nothing is coerced: `"900"` is not a number and `1` is not `true`, because a configuration that is understood
differently from how it was meant decides a gate wrongly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from proofstone.common.commands import VACUOUS, is_vacuous
from proofstone.config.backends import KINDS, ArchitectSpec, BackendSettings, BudgetSettings, Component, ExecutorSpec

AllowedCalls = Literal["namespaces", "bpf", "keyring", "userfaultfd", "perf", "io_uring"]
SandboxLevel = Literal["auto", "bubblewrap", "landlock", "plain"]

_TEXT = r"[^\x00]"
_PART = r"([^/\x00.]|\.[^/\x00.]|\.\.[^/\x00])[^/\x00]*"  # of a path: neither empty nor `.` nor `..`

Command = Annotated[str, Field(strict=True, pattern=rf"^{_TEXT}*[^\x00\s]{_TEXT}*$", title="a command line")]
CheckGlob = Annotated[
    str, Field(strict=True, pattern=rf"^{_TEXT}+$", title="the name of a check, or a glob such as `lint:*`")
]
TestGlob = Annotated[
    str, Field(strict=True, pattern=rf"^{_TEXT}+$", title="the id of a test, or a glob such as `tests/db/*`")
]
PathGlob = Annotated[
    str, Field(strict=True, pattern=rf"^{_TEXT}+$", title="a path from the repository's root, or a glob")
]
InsidePath = Annotated[
    str,
    Field(
        strict=True,
        pattern=rf"^{_PART}(/{_PART})*/?$",
        title="a path from the repository's root, or a glob, without `..`",
    ),
]
AbsolutePath = Annotated[str, Field(strict=True, pattern=rf"^/{_TEXT}*$", title="an absolute path")]
AnyPath = Annotated[
    str, Field(strict=True, pattern=rf"^{_TEXT}+$", title="a directory, absolute or from the repository's root")
]
VariableName = Annotated[
    str, Field(strict=True, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", title="the name of an environment variable")
]
VariableValue = Annotated[str, Field(strict=True, pattern=rf"^{_TEXT}*$", title="a text")]
Revision = Annotated[
    str,
    Field(strict=True, pattern=r"^[^-\s\x00][^\s\x00]*$", title="a git revision such as `HEAD`, `main` or `v1.2`"),
]


class CheckSettings(Component):
    """What `proofstone check` compares and runs."""

    base: Revision = Field(
        default="HEAD",
        description="The revision that a change is compared with: a branch, tag or commit.",
    )
    verify: tuple[Command, ...] = Field(
        default=(),
        description="Command lines that are always run, beside the checks that Proofstone discovers.",
    )
    disable: tuple[CheckGlob, ...] = Field(
        default=(),
        description="Discovered checks that are not run, by name: `lint:ruff`, `tests:*`.",
    )
    optional: tuple[CheckGlob, ...] = Field(
        default=(),
        description="Checks, by name, whose failure or absence is shown but does not decide the outcome.",
    )
    max_file_kb: int = Field(
        default=1024,
        ge=1,
        le=1_048_576,
        strict=True,
        description="An added file larger than this, in KiB, is a finding.",
    )
    flaky_reruns: int = Field(
        default=1,
        ge=0,
        le=10,
        strict=True,
        description="How often a failed test is run again, to tell a flaky test from a regression.",
    )

    @field_validator("verify")
    @classmethod
    def _prove_something(cls, commands: tuple[str, ...]) -> tuple[str, ...]:
        for command in commands:
            if is_vacuous(command):
                raise ValueError(f"{command!r} {VACUOUS}")
        return commands

    large: tuple[PathGlob, ...] = Field(
        default=(),
        description="Further paths whose change counts as high-risk and gets the strictest tier of checks.",
    )


class EnvironmentSettings(Component):
    """What a check sees besides the frozen tree."""

    include: tuple[InsidePath, ...] = Field(
        default=(),
        description="Files that git ignores and checks need, such as `.env.test`. Their digests are recorded.",
    )
    setup: tuple[Command, ...] = Field(
        default=(),
        description="Command lines that install dependencies, such as `npm ci`. Run with network, once for each "
        "state of the lock files, and kept.",
    )
    setup_scripts: bool = Field(
        default=False,
        strict=True,
        description="Let packages run install scripts even if the change touches a manifest.",
    )
    pass_through: tuple[VariableName, ...] = Field(
        default=(),
        alias="pass",
        description="Environment variables that checks get as they are; all others are withheld. Their values are "
        "masked in everything that checks say.",
    )
    set: Mapping[VariableName, VariableValue] = Field(
        default={},
        description="Environment variables that checks get with the values given here.",
    )
    network: bool = Field(
        default=False,
        strict=True,
        description="Let checks reach the network.",
    )
    sockets: tuple[AbsolutePath, ...] = Field(
        default=(),
        description="Unix sockets, or directories of them, that checks may reach, such as `/run/postgresql`.",
    )
    dependencies: tuple[AnyPath, ...] = Field(
        default=(),
        description="Directories that hold dependencies outside the tree; checks get them under a throwaway "
        "layer. Empty: found by rule (`.venv`, `venv`, `node_modules`, `vendor` …).",
    )

    @model_validator(mode="after")
    def _one_value_for_each_variable(self) -> EnvironmentSettings:
        if both := sorted(name for name in self.pass_through if name in self.set):
            raise ValueError(f"{', '.join(both)} is in both `pass` and `set`; keep one")
        return self


class TestSettings(Component):
    """What is known about particular tests."""

    __test__ = False  # not a test class, whatever pytest thinks of the name

    needs_service: tuple[TestGlob, ...] = Field(
        default=(),
        description="Tests, by id, that need a local service. Without it they are unverifiable, not failed.",
    )
    allow_flaky: tuple[TestGlob, ...] = Field(
        default=(),
        description="Tests, by id, that may pass only when run again.",
    )


class SandboxSettings(Component):
    """How far checks are kept from the machine."""

    level: SandboxLevel = Field(
        default="auto",
        description="The sandbox to use. `auto` takes the strongest that this machine has; the level used is "
        "recorded with every check.",
    )
    require: bool = Field(
        default=False,
        strict=True,
        description="Check nothing unless bubblewrap works, instead of falling back to a weaker level.",
    )
    memory_mb: int = Field(
        default=8192,
        ge=0,
        le=16_777_216,
        strict=True,
        description="Memory that one check may use, in MiB. The kernel enforces it where Proofstone may have a control "
        "group; elsewhere Proofstone measures twice a second and ends the check. 0: no limit.",
    )
    disk_mb: int = Field(
        default=16_384,
        ge=0,
        le=16_777_216,
        strict=True,
        description="What one check may write to its throwaway layers and temporary folders, in MiB. 0: no limit.",
    )
    processes: int = Field(
        default=4096,
        ge=16,
        le=4_194_304,
        strict=True,
        description="Processes and threads that one check may have, where the kernel can limit it.",
    )
    allow: tuple[AllowedCalls, ...] = Field(
        default=(),
        description="Groups of system calls that checks may use although hardly any check needs them: `namespaces` "
        "(mounting and user namespaces, for projects that are sandboxes themselves), `bpf`, `keyring`, `userfaultfd`, "
        "`perf`, `io_uring`.",
    )
    compare_bare: bool = Field(
        default=False,
        strict=True,
        description="Consent to run tests that fail on the baseline once outside the sandbox, to tell failures "
        "that the sandbox causes.",
    )

    @model_validator(mode="after")
    def _a_weaker_level_cannot_be_required(self) -> SandboxSettings:
        if self.require and self.level in ("landlock", "plain"):
            raise ValueError(f'`require = true` asks for bubblewrap, `level = "{self.level}"` for less; drop one')
        return self


class LimitSettings(Component):
    """How long, how much and how many."""

    check_seconds: int = Field(
        default=900,
        ge=1,
        le=86_400,
        strict=True,
        description="The longest that one check may take, in seconds.",
    )
    sabotage_seconds: int = Field(
        default=300,
        ge=1,
        le=86_400,
        strict=True,
        description="The longest that the tests may take when everything that changed is made to raise, in seconds; "
        "never longer than `check_seconds`. What is not finished then costs confidence, and fails nothing.",
    )
    output_mb: int = Field(
        default=32,
        ge=1,
        le=1024,
        strict=True,
        description="How much of a check's output is kept, in MiB.",
    )
    slots: int = Field(
        default=0,
        ge=0,
        le=256,
        strict=True,
        description="Checks that run at the same time. 0: as many as there are cores.",
    )
    cache_gb: int = Field(
        default=5,
        ge=0,
        le=1_048_576,
        strict=True,
        description="Room for checkouts, environments and build caches, in GiB; the oldest give way.",
    )


class GateSettings(Component):
    """How `proofstone gate` has the tasks of a plan done, reviewed and committed."""

    executor: ExecutorSpec = Field(
        default="",
        description=f"Who does the work: {KINDS}. Empty: see `--executor`.",
    )
    architect: ArchitectSpec = Field(
        default="rules",
        description=f"Who reviews, after the rules, which always do: `rules` (nobody else), {KINDS}.",
    )
    slots: int = Field(
        default=4,
        ge=1,
        le=64,
        strict=True,
        description="Executors that work at the same time.",
    )
    executor_seconds: int = Field(
        default=300, ge=1, le=86_400, strict=True, description="Deadline of an executor that is a command or a script."
    )
    agent_seconds: int = Field(
        default=1800,
        ge=1,
        le=86_400,
        strict=True,
        description="Deadline of an executor that is a model or a coding agent (`api:`, `cli:`, `acp:`), and of a "
        "coding agent that reviews.",
    )
    idle_seconds: int = Field(
        default=600,
        ge=1,
        le=86_400,
        strict=True,
        description="How long a coding agent that executes may print nothing before it counts as stuck.",
    )
    executor_seconds_max: int = Field(
        default=900,
        ge=1,
        le=86_400,
        strict=True,
        description="Deadline of the attempt that follows a time-out, if it is longer.",
    )
    verify_seconds: int = Field(
        default=120, ge=1, le=86_400, strict=True, description="Deadline of a verify command, in seconds."
    )
    verify_seconds_max: int = Field(
        default=300,
        ge=1,
        le=86_400,
        strict=True,
        description="Deadline of a verify command in the attempt that follows a time-out, if it is longer.",
    )
    architect_seconds: int = Field(
        default=180, ge=1, le=86_400, strict=True, description="Deadline of an architect, in seconds."
    )
    architect_seconds_max: int = Field(
        default=600,
        ge=1,
        le=86_400,
        strict=True,
        description="Deadline of an architect in the attempt that follows a time-out, if it is longer.",
    )
    retry_delay_seconds: int = Field(
        default=30,
        ge=0,
        le=3600,
        strict=True,
        description="Pause before the attempt that follows a time-out.",
    )
    run_minutes: int = Field(
        default=480,
        ge=1,
        le=100_000,
        strict=True,
        description="The longest that a whole run may take; reaching it stops the work, and everything is kept.",
    )
    network: bool = Field(default=False, strict=True, description="Let executors reach the network.")
    pass_through: tuple[VariableName, ...] = Field(
        default=(),
        alias="pass",
        description="Environment variables that executors get beside those that checks get. Their values are masked "
        "in everything that executors say.",
    )
    hooks: Literal["refuse", "run", "skip"] = Field(
        default="refuse",
        description="What to do with the repository's own commit hooks: `refuse` to start, `run` them in the sandbox "
        "before the checks, or `skip` them, which is recorded.",
    )
    verified_plan: bool = Field(
        default=False,
        strict=True,
        description="Refuse a plan that is not through the plan gate as it is: PROCEED, or REVISE with its mitigations "
        "taken in (`proofstone verify-plan`).",
    )


class SolveSettings(Component):
    """How `proofstone solve` pursues a goal."""

    policy: Literal["patient", "gradient", "grid", "naive"] = Field(
        default="patient",
        description="What follows a round that failed: a table of the controller, see `proofstone simulate`.",
    )
    max_replans: int = Field(default=3, ge=0, le=100, strict=True, description="How often another plan is made.")
    seconds: int = Field(
        default=300, ge=0, le=86_400, strict=True, description="The time budget: from 80 % of all budgets on it ends."
    )
    memory: bool = Field(
        default=True, strict=True, description="Whether what was learnt is remembered, and asked before it is planned."
    )


class RunSettings(Component):
    """How `proofstone run` goes about a request."""

    memory: bool = Field(
        default=True, strict=True, description="Whether what was learnt is remembered, and told to whoever plans next."
    )


class UnderstandingSettings(Component):
    """Whether agents are asked, before and during their work, if they know what they are doing."""

    ask: Literal["off", "run", "always"] = Field(
        default="run",
        description="`run`: agents of `proofstone run`, in its longer lanes; `always`: executors of `proofstone "
        "gate` too.",
    )
    silence_seconds: float = Field(
        default=900,
        gt=0,
        le=86_400,
        strict=True,
        description="Longer than this without a sign of life, and an agent is pinged; three pings without an answer, "
        "and another one begins.",
    )
    question_apart_seconds: float = Field(
        default=1800,
        ge=0,
        le=86_400,
        strict=True,
        description="Between two questions to one agent in the middle of its work. One that comes sooner waits.",
    )
    milestones: bool = Field(
        default=False, strict=True, description="Ask an agent also when it goes from one task to the next."
    )


class ToolSettings(Component):
    """What the tools of agents show."""

    secret: tuple[PathGlob, ...] = Field(
        default=(),
        description="Files whose content no agent is shown, beside those that Proofstone knows by name (`.env`, "
        "keys …).",
    )


class Settings(Component):
    """All settings of one repository."""

    check: CheckSettings = CheckSettings()
    environment: EnvironmentSettings = EnvironmentSettings()
    tests: TestSettings = TestSettings()
    sandbox: SandboxSettings = SandboxSettings()
    limits: LimitSettings = LimitSettings()
    gate: GateSettings = GateSettings()
    solve: SolveSettings = SolveSettings()
    run: RunSettings = RunSettings()
    understanding: UnderstandingSettings = UnderstandingSettings()
    tools: ToolSettings = ToolSettings()
    backends: BackendSettings = BackendSettings()
    budget: BudgetSettings = BudgetSettings()

    @model_validator(mode="after")
    def _one_line_for_each_role(self) -> Settings:
        for role in ("executor", "architect"):
            if role in self.gate.model_fields_set and getattr(self.backends, role):
                raise ValueError(f"gate.{role} and backends.{role} say the same; keep one")
        return self

    @property
    def backend_lines(self) -> Mapping[str, tuple[str, ...]]:
        """Who serves which role, as this repository says: those of the gate's own section too."""
        stated = {"executor": self.gate.executor, "architect": self.gate.architect}
        own = {role: (spec,) for role, spec in stated.items() if spec and role in self.gate.model_fields_set}
        return {**own, **self.backends.lines}
