"""A check: what is to be run, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from pydantic import Field

from proofstone.contracts.base import Contract
from proofstone.contracts.change import TreeId
from proofstone.contracts.diagnostic import Diagnostic
from proofstone.contracts.examined import Examined
from proofstone.contracts.tests import ReportFormat, TestReport
from proofstone.contracts.verdict import Assurance, Phase, Verdict


class CheckKind(StrEnum):
    SYNTAX = "syntax"
    CONFLICT = "conflict-markers"
    SIZE = "size"
    BUILD = "build"
    TYPES = "types"
    LINT = "lint"
    TESTS = "tests"
    VERIFY = "verify"
    HELD_OUT = "held-out"
    IMPORT = "import"
    SMOKE = "smoke"
    READINESS = "readiness"

    @property
    def exercises(self) -> bool:
        """Whether a pass means that the change was put to use."""
        return self in (CheckKind.TESTS, CheckKind.VERIFY)

    @property
    def complains(self) -> bool:
        """Whether it gives complaints, which are compared with the base's one by one."""
        return self in (CheckKind.TYPES, CheckKind.LINT)


class CheckSpec(Contract):
    """One command of the cascade, as discovery or the person named it. The engine runs it; nobody else does."""

    name: str
    """Unique in a cascade: `tests:pytest`, `lint:ruff`, with `@packages/a` for a package below the root."""
    kind: CheckKind
    tier: int = Field(ge=1, le=4)
    tool: str
    """The program that must be there: its absence makes the check unverifiable."""
    argv: tuple[str, ...] = ()
    """Program and arguments. Placeholders, replaced by the engine: `{python}` the project's interpreter,
    `{report}` a directory outside the tree for reports, `{probes}` the directory of the engine's own runners and
    plug-ins, `{changed}` (a whole argument) the changed files that `suffixes` select."""
    shell: str | None = None
    """A command line for `sh -c` instead of `argv`, run verbatim."""
    cwd: str = "."
    """Relative to the repository's root."""
    env: Mapping[str, str] = {}
    """Set for this check; the same placeholders."""
    suffixes: tuple[str, ...] = ()
    """With `{changed}`: which changed files it looks at. No such file, no check."""
    report: ReportFormat | None = None
    """How test results by id are read; None for checks that are not tests."""
    needs: tuple[str, ...] = ()
    """Checks that must pass first (a build). If one does not, this is unverifiable."""
    required: bool = True
    """An optional check may be unverifiable without making the outcome so; a failure counts either way."""
    decides: bool = True
    """False for what the settings call optional: it is run and said, and its failure changes nothing."""
    evidence: str = ""
    """The project's own file that says this check exists: `pyproject.toml [tool.ruff]`."""
    install: str = ""
    """How to get the tool when it is missing."""


class DeathCause(StrEnum):
    """What kept a run from measuring anything."""

    SANDBOX = "sandbox"
    """The sandbox could not start the command."""
    CANCELLED = "cancelled"
    DEADLINE = "deadline"
    LIMIT = "limit"
    """A limit of memory or of processes."""
    SIGNAL = "signal"
    UNFINISHED = "unfinished"
    """The runner began its report and did not finish it."""


class Death(Contract):
    """Why a run measured nothing; `core.run_end` decides it."""

    cause: DeathCause
    detail: str
    """In one line, with the signal where there was one."""
    setting: str = ""
    """The setting that would have let the run go on, if one would."""


class CheckResult(Contract):
    """What the engine saw when it ran one check on one tree."""

    name: str
    kind: CheckKind
    tier: int
    tool: str
    command: str
    phase: Phase
    tree: TreeId
    verdict: Verdict
    reason: str = ""
    """Why it is not a pass, in one line."""
    ended_by: str = ""
    """What ended the run before its own end: the deadline, or a limit."""
    death: Death | None = None
    """Set if the run died, and so measured nothing: the verdict is `unverifiable`, and there is no report."""
    exit_code: int | None = None
    duration_ms: int = 0
    output: str = ""
    """Head and tail of the combined output; all of it is the artifact."""
    artifact: str | None = None
    assurance: Assurance | None = None
    """None for checks that run inside the engine and execute nothing of the project's."""
    report: TestReport | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    required: bool = True
    decides: bool = True
    examined: Examined | None = None
    """Of the row that says what the layers found about a check."""
    reused_from: int | None = None
    """Sequence number of the ledger row whose result this is, when it came from the cache."""


CheckResult.model_rebuild()
