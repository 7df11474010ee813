"""The settings of a repository. Every field has a description, an allowed range and a default.

Nothing is coerced: `"900"` is not a number and `1` is not `true`, because a gate would decide wrongly if a setting were
understood differently from how it was meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from proofstone.common.commands import VACUOUS_REASON, is_vacuous
from proofstone.config.backends import (
    BACKEND_KINDS,
    ArchitectSpec,
    BackendSettings,
    BudgetSettings,
    ExecutorSpec,
    SettingsModel,
)

AllowedCalls = Literal["namespaces", "bpf", "keyring", "userfaultfd", "perf", "io_uring"]
Strength = Literal["off", "quick", "full"]
SandboxLevel = Literal["auto", "bubblewrap", "landlock", "plain"]

_TEXT = r"[^\x00]"
_PART = r"([^/\x00.]|\.[^/\x00.]|\.\.[^/\x00])[^/\x00]*"  # a part of a path: not empty, `.` or `..`

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
    Field(strict=True, pattern=r"^(?:[^-\s\x00][^\s\x00]*)?$", title="a git revision such as `HEAD`, `main` or `v1.2`"),
]


AcceptedRule = Annotated[
    str, Field(strict=True, pattern=r"^[a-z][a-z0-9-]*$", title="the rule of a finding that a person may accept")
]
AcceptedReason = Annotated[str, Field(strict=True, pattern=rf"^\s*{_TEXT}{{8,}}$", title="a reason in a few words")]
AcceptanceKind = Literal["interactive", "setting", "approver"]


class CheckSettings(SettingsModel):
    """What `proofstone check` compares and runs."""

    base: Revision = Field(
        default="",
        description="The revision that a change is compared with: a branch, tag or commit. If empty, Proofstone "
        "chooses it: in a coding agent's session the commit at which the session began, else the commit at which HEAD "
        "left its upstream, the remote's default branch or the local main or master, else HEAD.",
    )
    verify: tuple[Command, ...] = Field(
        default=(),
        description="Command lines that always run, in addition to the checks that Proofstone discovers.",
    )
    disable: tuple[CheckGlob, ...] = Field(
        default=(),
        description="Discovered checks that do not run, by name: `lint:ruff`, `tests:*`.",
    )
    optional: tuple[CheckGlob, ...] = Field(
        default=(),
        description="Checks, by name, whose failure or absence is reported but does not affect the outcome.",
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
    def _reject_vacuous(cls, commands: tuple[str, ...]) -> tuple[str, ...]:
        for command in commands:
            if is_vacuous(command):
                raise ValueError(f"{command!r} {VACUOUS_REASON}")
        return commands

    accept: Mapping[AcceptedRule, AcceptedReason] = Field(
        default={},
        description="Rules of findings that you accept in every check, each with your reason. Only the base's settings "
        "count, also with `--use-worktree-config`. A check that passes with it has at most medium confidence.",
    )
    strength: Strength = Field(
        default="quick",
        description="How thoroughly Proofstone measures whether tests notice mistakes in the changed lines: `quick` "
        "(about the time of the test suite itself, at least 10 seconds), `full` (up to 20 times that), or `off`, which "
        "leaves the confidence at most medium.",
    )
    strength_threshold: int = Field(
        default=80,
        ge=0,
        le=100,
        strict=True,
        description="The share of such mistakes, in percent, that the tests must notice. Below it the confidence is at "
        "most medium.",
    )
    large: tuple[PathGlob, ...] = Field(
        default=(),
        description="Additional paths whose change counts as high-risk and gets the strictest tier of checks.",
    )


class EnvironmentSettings(SettingsModel):
    """What a check sees in addition to the frozen tree."""

    include: tuple[InsidePath, ...] = Field(
        default=(),
        description="Files that git ignores but checks need, such as `.env.test`. Their digests are recorded.",
    )
    setup: tuple[Command, ...] = Field(
        default=(),
        description="Command lines that install dependencies, such as `npm ci`. They run with network access, once "
        "for each state of the lock files, and the result is cached.",
    )
    setup_scripts: bool = Field(
        default=False,
        strict=True,
        description="Allow packages to run install scripts even if the change touches a manifest.",
    )
    pass_through: tuple[VariableName, ...] = Field(
        default=(),
        alias="pass",
        description="Environment variables that are passed to checks; all others are withheld. Their values are "
        "masked in all output of checks.",
    )
    set: Mapping[VariableName, VariableValue] = Field(
        default={},
        description="Environment variables that are set for checks, with their values.",
    )
    network: bool = Field(
        default=False,
        strict=True,
        description="Allow checks to access the network.",
    )
    sockets: tuple[AbsolutePath, ...] = Field(
        default=(),
        description="Unix sockets, or directories of them, that checks may use, such as `/run/postgresql`.",
    )
    dependencies: tuple[AnyPath, ...] = Field(
        default=(),
        description="Directories with dependencies outside the tree; checks see them below a throwaway layer. "
        "Empty: found by rule (`.venv`, `venv`, `node_modules`, `vendor` …).",
    )

    @model_validator(mode="after")
    def _reject_duplicates(self) -> EnvironmentSettings:
        if both := sorted(name for name in self.pass_through if name in self.set):
            raise ValueError(f"{', '.join(both)} is in both `pass` and `set`; keep one")
        return self


class TestSettings(SettingsModel):
    """What is known about particular tests."""

    __test__ = False  # tells pytest that this is not a test class

    needs_service: tuple[TestGlob, ...] = Field(
        default=(),
        description="Tests, by id, that need a local service. Without it they count as unverifiable, not as failed.",
    )
    allow_flaky: tuple[TestGlob, ...] = Field(
        default=(),
        description="Tests, by id, that may fail first and pass when they run again.",
    )


class SandboxSettings(SettingsModel):
    """How strongly checks are isolated from the machine."""

    level: SandboxLevel = Field(
        default="auto",
        description="The sandbox to use. `auto` uses the strongest one that is available; the level is recorded with "
        "every check.",
    )
    require: bool = Field(
        default=False,
        strict=True,
        description="Refuse to check unless bubblewrap works, instead of falling back to a weaker level.",
    )
    memory_mb: int = Field(
        default=8192,
        ge=0,
        le=16_777_216,
        strict=True,
        description="The memory limit of one check, in MiB. The kernel enforces it where Proofstone can use a control "
        "group; elsewhere Proofstone measures twice a second and ends the check. 0: no limit.",
    )
    disk_mb: int = Field(
        default=16_384,
        ge=0,
        le=16_777_216,
        strict=True,
        description="How much one check may write to its throwaway layers and temporary folders, in MiB. 0: no limit.",
    )
    processes: int = Field(
        default=4096,
        ge=16,
        le=4_194_304,
        strict=True,
        description="The maximum number of processes and threads of one check, where the kernel can limit it.",
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
        description="Allow tests that fail on the baseline to run once outside the sandbox, to find failures that "
        "the sandbox causes.",
    )

    @model_validator(mode="after")
    def _validate_level(self) -> SandboxSettings:
        if self.require and self.level in ("landlock", "plain"):
            raise ValueError(f'`require = true` requires bubblewrap, but `level = "{self.level}"` is weaker; drop one')
        return self


class LimitSettings(SettingsModel):
    """Limits on time, output and parallel work."""

    check_seconds: int = Field(
        default=900,
        ge=1,
        le=86_400,
        strict=True,
        description="The deadline of one check, in seconds.",
    )
    sabotage_seconds: int = Field(
        default=300,
        ge=1,
        le=86_400,
        strict=True,
        description="The deadline of the tests that run while all changed code is made to raise, in seconds; never "
        "longer than `check_seconds`. Tests that do not finish lower the confidence but fail nothing.",
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
        description="The number of checks that run in parallel. 0: one for each core.",
    )
    cache_gb: int = Field(
        default=5,
        ge=0,
        le=1_048_576,
        strict=True,
        description="Disk space for checkouts, environments and build caches, in GiB; the oldest are removed first.",
    )


class GateSettings(SettingsModel):
    """How `proofstone gate` executes, reviews and commits the tasks of a plan."""

    executor: ExecutorSpec = Field(
        default="",
        description=f"The backend that does the work: {BACKEND_KINDS}. Empty: see `--executor`.",
    )
    architect: ArchitectSpec = Field(
        default="rules",
        description=f"The backend that reviews after the rules, which always apply: `rules` (no other), "
        f"{BACKEND_KINDS}.",
    )
    slots: int = Field(
        default=4,
        ge=1,
        le=64,
        strict=True,
        description="The number of executors that work in parallel.",
    )
    executor_seconds_max: int = Field(
        default=900,
        ge=1,
        le=86_400,
        strict=True,
        description="The longest that `executor_seconds` can be, and its value in the attempt after a timeout.",
    )
    executor_seconds: int = Field(
        default=300,
        ge=1,
        le=86_400,
        strict=True,
        validate_default=True,
        description="Deadline of an executor that is a command or a script.",
    )
    agent_seconds_max: int = Field(
        default=3600,
        ge=1,
        le=86_400,
        strict=True,
        description="The longest that `agent_seconds` can be, and its value in the attempt after a timeout.",
    )
    agent_seconds: int = Field(
        default=1800,
        ge=1,
        le=86_400,
        strict=True,
        validate_default=True,
        description="Deadline of an executor that is a model or a coding agent (`api:`, `cli:`, `acp:`), and of a "
        "coding agent that reviews.",
    )
    idle_seconds: int = Field(
        default=600,
        ge=1,
        le=86_400,
        strict=True,
        description="How long an executing coding agent may print nothing before it counts as stuck.",
    )
    verify_seconds_max: int = Field(
        default=300,
        ge=1,
        le=86_400,
        strict=True,
        description="The longest that `verify_seconds` can be, and its value in the attempt after a timeout.",
    )
    verify_seconds: int = Field(
        default=120,
        ge=1,
        le=86_400,
        strict=True,
        validate_default=True,
        description="Deadline of a verify command, in seconds.",
    )
    architect_seconds_max: int = Field(
        default=600,
        ge=1,
        le=86_400,
        strict=True,
        description="The longest that `architect_seconds` can be, and its value in the review after a timeout.",
    )
    architect_seconds: int = Field(
        default=180,
        ge=1,
        le=86_400,
        strict=True,
        validate_default=True,
        description="Deadline of an architect, in seconds.",
    )
    retry_delay_seconds: int = Field(
        default=30,
        ge=0,
        le=3600,
        strict=True,
        description="Pause before the attempt after a timeout.",
    )
    run_minutes: int = Field(
        default=480,
        ge=1,
        le=100_000,
        strict=True,
        description="The deadline of a whole run. Reaching it stops the run; all work is kept.",
    )
    network: bool = Field(default=False, strict=True, description="Allow executors to access the network.")
    pass_through: tuple[VariableName, ...] = Field(
        default=(),
        alias="pass",
        description="Environment variables that are passed to executors, in addition to those of checks. Their values "
        "are masked in all output of executors.",
    )
    hooks: Literal["refuse", "run", "skip"] = Field(
        default="refuse",
        description="What to do with the repository's own commit hooks: `refuse` to start, `run` them in the sandbox "
        "before the checks, or `skip` them, which is recorded.",
    )
    verified_plan: bool = Field(
        default=False,
        strict=True,
        description="Refuse a plan that has not passed the plan gate in its current form: PROCEED, or REVISE with its "
        "mitigations applied (`proofstone verify-plan`).",
    )

    @field_validator("executor_seconds", "agent_seconds", "verify_seconds", "architect_seconds")
    @classmethod
    def _refuse_above_maximum(cls, value: int, info: ValidationInfo) -> int:
        name = f"{info.field_name}_max"
        if (most := info.data.get(name)) is not None and value > most:
            raise ValueError(f"{value} is more than {name}, which is {most}; lower it, or raise the maximum")
        return value


class HookSettings(SettingsModel):
    """What the commit hooks of `proofstone hook` count as evidence."""

    accepts: tuple[AcceptanceKind, ...] = Field(
        default=("interactive",),
        description="How a finding may have been accepted for the check to count as evidence for a commit: "
        "`interactive` at a terminal, by a `setting` of the base (`check.accept`), or by an `approver` "
        "(`--accepted-by`).",
    )


class SolveSettings(SettingsModel):
    """How `proofstone solve` pursues a goal."""

    policy: Literal["patient", "gradient", "grid", "naive"] = Field(
        default="patient",
        description="The policy of the controller after a failed round; see `proofstone simulate`.",
    )
    max_replans: int = Field(default=3, ge=0, le=100, strict=True, description="The maximum number of new plans.")
    seconds: int = Field(
        default=300,
        ge=0,
        le=86_400,
        strict=True,
        description="The time budget; the run ends once `controller.abandon_at` of the budgets is spent.",
    )
    subtask_seconds: int = Field(
        default=1800,
        ge=1,
        le=86_400,
        strict=True,
        description="How long an executor may work on one subtask before it counts as failed. Each `SubTask` message "
        "states the deadline that follows from it.",
    )
    memory: bool = Field(
        default=True, strict=True, description="Remember lessons from runs, and use them for planning."
    )


ControllerWeight = Annotated[float, Field(ge=0, le=1, strict=True, allow_inf_nan=False)]


class ControllerSettings(SettingsModel):
    """How the controller of the control loop measures a round and chooses its directive, in `proofstone solve`, `gate`
    and `run`. Settings never accept a result: that needs every criterion met.
    """

    distance_weight: ControllerWeight = Field(
        default=0.6, description="α: the weight of D, the distance of the result from the goal."
    )
    blame_weight: ControllerWeight = Field(
        default=0.3, description="β: the weight of P, the share of the blame that the approach carries."
    )
    budget_weight: ControllerWeight = Field(
        default=0.4, description="λ: the weight of Ω, the share of the budget that is spent."
    )
    replans_weight: ControllerWeight = Field(default=0.6, description="The weight of the used replans in Ω.")
    time_weight: ControllerWeight = Field(default=0.4, description="The weight of the used time in Ω.")
    flat_below: ControllerWeight = Field(default=0.1, description="ε: a smaller change from round to round is none.")
    near_below: ControllerWeight = Field(default=0.3, description="δ: up to this D a result is near the goal.")
    blame_above: ControllerWeight = Field(
        default=0.5, description="ρ: above this P the approach is to blame, up to it what is in the way."
    )
    abandon_at: Annotated[float, Field(gt=0, le=1, strict=True, allow_inf_nan=False)] = Field(
        default=0.8, description="From this Ω on, nothing more is tried."
    )

    @property
    def weights(self) -> Mapping[str, float]:
        """The values by the names that the controller has for them."""
        return {
            "alpha": self.distance_weight,
            "beta": self.blame_weight,
            "lam": self.budget_weight,
            "replans_weight": self.replans_weight,
            "time_weight": self.time_weight,
            "epsilon": self.flat_below,
            "delta": self.near_below,
            "rho": self.blame_above,
            "abandon": self.abandon_at,
        }


class RunSettings(SettingsModel):
    """How `proofstone run` handles a request."""

    memory: bool = Field(
        default=True, strict=True, description="Remember lessons from runs, and give them to later planners."
    )


class MemorySettings(SettingsModel):
    """What runs are told of earlier runs, where `solve.memory` and `run.memory` let them use the memory."""

    shared: bool = Field(
        default=False,
        strict=True,
        description="Also use what runs in other repositories have left in the memory.",
    )


class UnderstandingSettings(SettingsModel):
    """Whether agents are asked, before and during their work, if they understand their task."""

    ask: Literal["off", "run", "always"] = Field(
        default="run",
        description="`run`: ask agents of `proofstone run`, in its longer lanes. `always`: ask executors of "
        "`proofstone gate` too.",
    )
    silence_seconds: float = Field(
        default=900,
        gt=0,
        le=86_400,
        strict=True,
        description="How long an agent may be silent before it is pinged. After three pings without an answer, a new "
        "agent takes over.",
    )
    question_apart_seconds: float = Field(
        default=1800,
        ge=0,
        le=86_400,
        strict=True,
        description="The least time between two questions to one working agent. An earlier question waits.",
    )


class ToolSettings(SettingsModel):
    """What the tools of agents show."""

    secret: tuple[PathGlob, ...] = Field(
        default=(),
        description="Additional files whose content is hidden from agents; Proofstone already hides those "
        "that it knows by name (`.env`, keys …).",
    )


class Settings(SettingsModel):
    """All settings of one repository."""

    check: CheckSettings = CheckSettings()
    environment: EnvironmentSettings = EnvironmentSettings()
    tests: TestSettings = TestSettings()
    sandbox: SandboxSettings = SandboxSettings()
    limits: LimitSettings = LimitSettings()
    hook: HookSettings = HookSettings()
    gate: GateSettings = GateSettings()
    solve: SolveSettings = SolveSettings()
    controller: ControllerSettings = ControllerSettings()
    run: RunSettings = RunSettings()
    memory: MemorySettings = MemorySettings()
    understanding: UnderstandingSettings = UnderstandingSettings()
    tools: ToolSettings = ToolSettings()
    backends: BackendSettings = BackendSettings()
    budget: BudgetSettings = BudgetSettings()

    @model_validator(mode="after")
    def _reject_duplicate_roles(self) -> Settings:
        for role in ("executor", "architect"):
            if role in self.gate.model_fields_set and getattr(self.backends, role):
                raise ValueError(f"gate.{role} and backends.{role} are the same setting; keep one")
        return self

    @property
    def backend_specs(self) -> Mapping[str, tuple[str, ...]]:
        """The backends of each role in this repository, including those of the gate's own section."""
        gate_specs = {"executor": self.gate.executor, "architect": self.gate.architect}
        gate_lines = {role: (spec,) for role, spec in gate_specs.items() if spec and role in self.gate.model_fields_set}
        return {**gate_lines, **self.backends.specs_by_key}
