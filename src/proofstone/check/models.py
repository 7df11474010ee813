"""The data of a check: test results, check specifications, check results and the report of `proofstone check`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, Literal

from pydantic import Field

from proofstone.check.observation import Observations
from proofstone.common.models import (
    Acceptance,
    Assurance,
    Confidence,
    ConfidenceReason,
    Diagnostic,
    Finding,
    FrozenModel,
    Outcome,
    Phase,
    TreeId,
    Verdict,
    VerdictDispute,
)
from proofstone.ledger.models import RunConfig


class TestStatus(StrEnum):
    __test__ = False  # pytest must not collect this class because of its name

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """Set-up, tear-down or collection failed."""
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    """The test failed, as it was declared to."""
    XPASSED = "xpassed"
    """The test passed although it was declared to fail."""

    @property
    def is_executed(self) -> bool:
        return self is not TestStatus.SKIPPED

    @property
    def is_failure(self) -> bool:
        return self in (TestStatus.FAILED, TestStatus.ERROR)


NEVER_RUN: Final = "collected but never run"
"""The message of a test that a runner collected and then did not run."""


class TestResult(FrozenModel):
    __test__ = False

    id: str
    """Stable between two trees. This is the runner's own id where it has one, with paths relative to the repository."""
    status: TestStatus
    duration_ms: int | None = None
    message: str = ""
    """The beginning of the failure text, at most 2,000 characters."""
    path: str | None = None
    """The test's file relative to the repository, if the runner reports it."""
    cause: str = ""
    """Why the test failed, in one line: the assertion's own message or the error, without frames of the runner."""

    def describe_failure(self, prefix: str) -> str:
        """Return `prefix`, followed by the cause of the failure if it is known."""
        return f"{prefix}: {self.cause}" if self.cause else prefix


class ReplacedFunction(FrozenModel):
    """A function or method of one module that code of another file stands in for."""

    module: str
    name: str
    path: str
    """The file of the code, relative to the repository."""


class TestReport(FrozenModel):
    """All results of one run of one runner."""

    __test__ = False

    runner: str
    results: tuple[TestResult, ...]
    complete: bool
    """False if the runner died before it reported that it had finished."""
    began: bool = True
    """False if no runner began a run: none wrote a report, or the runner reported that it could not begin."""
    imported_from: tuple[str, ...] = ()
    """Absolute paths from which the project's own packages were imported, if the runner reports them."""
    loaded: Mapping[str, str | None] = {}
    """The project's modules that were loaded before the tests ran, with their files relative to the repository: None
    for a module without a file in it. Empty if the runner does not report them."""
    replaced: tuple[ReplacedFunction, ...] = ()
    """Functions of the project that were replaced before the tests ran."""
    problems: tuple[str, ...] = ()
    """Descriptions of what could not be read."""
    forged: str = ""
    """Why part of the report must have been written by something other than the runner; empty if nothing suggests
    that."""

    @property
    def by_id(self) -> Mapping[str, TestResult]:
        return {result.id: result for result in self.results}

    @property
    def executed_count(self) -> int:
        return sum(result.status.is_executed for result in self.results)


class TestRun(FrozenModel):
    """The results of one check by test id, on the base and on the change."""

    __test__ = False

    check: str
    base: TestReport | None
    """None if the check was not run on the base, or gave no results there."""
    now: TestReport | None


class ReportFormat(StrEnum):
    """The formats in which test results by id are read from a run."""

    PYTEST = "pytest"
    UNITTEST = "unittest"
    NODE = "node"
    JEST = "jest"
    VITEST = "vitest"
    MOCHA = "mocha"
    GO = "go"
    CARGO = "cargo"
    JUNIT = "junit"
    TAP = "tap"
    EXIT_CODE = "exit-code"
    """There are no ids. Only the exit code is known, and the assurance states that."""


class StrengthLevel(StrEnum):
    """How thoroughly the strength of the tests is measured."""

    OFF = "off"
    QUICK = "quick"
    FULL = "full"


class MutantStatus(StrEnum):
    """What became of a mutant, the most certain first."""

    KILLED = "killed"
    SURVIVED = "survived"
    """All tests that reach it pass."""
    UNREACHED = "unreached"
    """No test runs the line."""
    UNDECIDED = "undecided"
    """The tests did not end in time, or died of something else."""


class MutantResult(FrozenModel):
    """A small mistake in a changed line, and whether a test noticed it."""

    path: str
    line: int
    operator: str
    """The kind of mistake: `boundary`, `condition negated`."""
    before: str
    """The line as it is."""
    after: str
    """The line with the mistake."""
    function: str = ""
    is_new_function: bool = False
    status: MutantStatus = MutantStatus.UNDECIDED
    killed_by: str = ""
    """The test that failed, or how the run ended."""
    check: str = ""


class TestStrength(FrozenModel):
    """How many of the mistakes in the changed lines the tests notice."""

    __test__ = False

    mutants: tuple[MutantResult, ...] = ()
    untried: int = 0
    """Mutants beyond the bounds of the measurement."""

    @property
    def killed(self) -> tuple[MutantResult, ...]:
        return tuple(mutant for mutant in self.mutants if mutant.status is MutantStatus.KILLED)

    @property
    def survivors(self) -> tuple[MutantResult, ...]:
        """The mutants that no test noticed."""
        unnoticed = (MutantStatus.SURVIVED, MutantStatus.UNREACHED)
        return tuple(mutant for mutant in self.mutants if mutant.status in unnoticed)

    @property
    def undecided(self) -> tuple[MutantResult, ...]:
        return tuple(mutant for mutant in self.mutants if mutant.status is MutantStatus.UNDECIDED)

    @property
    def decided(self) -> int:
        return len(self.killed) + len(self.survivors)

    @property
    def score(self) -> int | None:
        """The share of killed mutants in percent, rounded down; None if none was decided."""
        return 100 * len(self.killed) // self.decided if self.decided else None


class LayerResult(FrozenModel):
    """What the layers of evidence found about one check that passed."""

    findings: tuple[Finding, ...] = ()
    edited: tuple[str, ...] = ()
    """Tests that pass only because they were edited."""
    sensitive: tuple[str, ...] = ()
    """Tests that failed when the source of the change was removed."""
    reasons: tuple[ConfidenceReason, ...] = ()
    """Why the confidence is not high."""
    uncovered: tuple[ConfidenceReason, ...] = ()
    """Why no test of the check was seen to fail without the change. They count only if no other check has such a
    test."""
    not_measured: tuple[str, ...] = ()
    """Runs that died although the verdict needs them. The check is then unverifiable."""
    mutants: tuple[MutantResult, ...] = ()
    """Mistakes in the changed lines, and whether the tests noticed them."""
    untried: int = 0
    """Mutants that were not tried."""
    notes: tuple[str, ...] = ()
    """What was not examined, where that is no reason against the confidence."""


def merge_layer_results(results: Iterable[LayerResult]) -> LayerResult:
    """Merge the findings of several layers."""
    parts = list(results)
    return LayerResult(
        findings=tuple(finding for part in parts for finding in part.findings),
        edited=tuple(sorted({test for part in parts for test in part.edited})),
        sensitive=tuple(sorted({test for part in parts for test in part.sensitive})),
        reasons=tuple(dict.fromkeys(reason for part in parts for reason in part.reasons)),
        uncovered=tuple(dict.fromkeys(reason for part in parts for reason in part.uncovered)),
        not_measured=tuple(dict.fromkeys(reason for part in parts for reason in part.not_measured)),
        mutants=tuple(mutant for part in parts for mutant in part.mutants),
        untried=sum(part.untried for part in parts),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


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
    def executes_change(self) -> bool:
        """Whether a pass means that the change was executed."""
        return self in (CheckKind.TESTS, CheckKind.VERIFY)

    @property
    def reports_diagnostics(self) -> bool:
        """Whether the check reports diagnostics, which are compared with those of the base one by one."""
        return self in (CheckKind.TYPES, CheckKind.LINT)


class CheckSpec(FrozenModel):
    """One command to run, as discovery or the user named it. Only the engine runs it."""

    name: str
    """Unique among all checks: `tests:pytest`, `lint:ruff`, with `@packages/a` for a package below the root."""
    kind: CheckKind
    tier: int = Field(ge=1, le=4)
    tool: str
    """The required program. Without it the check is unverifiable."""
    argv: tuple[str, ...] = ()
    """Program and arguments. The engine replaces placeholders: `{python}` is the project's interpreter, `{report}` a
    directory outside the tree for reports, `{probes}` the directory of the engine's own runners and plug-ins, and
    `{changed}` (a whole argument) the changed files that `suffixes` select."""
    shell: str | None = None
    """A command line for `sh -c` instead of `argv`, run verbatim."""
    cwd: str = "."
    """Relative to the repository's root."""
    env: Mapping[str, str] = {}
    """Variables set for this check. The same placeholders are replaced."""
    suffixes: tuple[str, ...] = ()
    """Selects the changed files for `{changed}`. The check is skipped if there is no such file."""
    report: ReportFormat | None = None
    """How test results by id are read; None for checks that are not tests."""
    needs: tuple[str, ...] = ()
    """Checks that must pass first, such as a build. If one does not, this check is unverifiable."""
    required: bool = True
    """An optional check may be unverifiable without making the outcome unverifiable. A failure counts either way."""
    decides: bool = True
    """False for checks that the settings call optional: they are run and reported, but a failure changes nothing."""
    evidence: str = ""
    """The project's own file that names this check: `pyproject.toml [tool.ruff]`."""
    is_concluded: bool = False
    """Whether the runner was concluded from what the test files contain, because no configuration names one."""
    install: str = ""
    """How to install the tool if it is missing."""


class DeathCause(StrEnum):
    """What prevented a run from measuring anything."""

    SANDBOX = "sandbox"
    """The sandbox could not start the command."""
    CANCELLED = "cancelled"
    DEADLINE = "deadline"
    LIMIT = "limit"
    """A limit of memory or processes."""
    SIGNAL = "signal"
    UNFINISHED = "unfinished"
    """The runner began its report and did not finish it."""


class RunDeath(FrozenModel):
    """Why a run measured nothing, as decided by `check.rules.run_end`."""

    cause: DeathCause
    detail: str
    """One line, with the signal if there was one."""
    setting: str = ""
    """The setting that would have let the run continue, if there is one."""


class CheckResult(FrozenModel):
    """What the engine observed when it ran one check on one tree."""

    name: str
    kind: CheckKind
    tier: int
    tool: str
    command: str
    phase: Phase
    tree: TreeId
    verdict: Verdict
    reason: str = ""
    """Why the check did not pass, in one line."""
    remedy: str = ""
    """What would let the check run, if it could not."""
    ended_by: str = ""
    """What ended the run early: the deadline, or a limit."""
    death: RunDeath | None = None
    """Set if the run died and so measured nothing. The verdict is then `unverifiable` and there is no report."""
    exit_code: int | None = None
    duration_ms: int = 0
    output: str = ""
    """Beginning and end of the combined output. The artifact holds all of it."""
    artifact: str | None = None
    assurance: Assurance | None = None
    """None for checks that run inside the engine and execute nothing of the project."""
    report: TestReport | None = None
    observations: Observations | None = None
    """What was observed while the tests ran, if it was asked for."""
    diagnostics: tuple[Diagnostic, ...] = ()
    required: bool = True
    decides: bool = True
    examined: LayerResult | None = None
    """Set in the row that records what the layers found about a check."""
    reused_from: int | None = None
    """Sequence number of the ledger row that holds this result, if it came from the cache."""


CheckResult.model_rebuild()


class CheckLine(FrozenModel):
    """One check and its judgement, as shown in the report."""

    name: str
    kind: CheckKind
    tier: int
    verdict: Verdict
    baseline: Verdict | None
    """The verdict of the same check on the base tree; None if it was not run there."""
    duration_ms: int
    reused: bool
    """Whether the result came from an earlier run on the same tree."""
    required: bool
    decides: bool
    reason: str
    command: str
    assurance: Assurance | None
    tests: int | None
    """Number of tests that were executed; None for checks that are not tests."""
    seq: int | None
    """The ledger row that holds the result."""
    artifact: str | None
    exit_code: int | None = None
    """None if nothing was run, or if the engine ended the run."""
    remedy: str = ""
    """What would let the check run, if it could not."""
    output_tail: str = ""
    """The end of what a verify command printed."""
    failures: tuple[str, ...] = ()
    """What could be read of the output of a verify command that did not pass: failing tests, diagnostics, an error."""
    depends_on_change: bool = False
    """Whether a test of this check failed on the base, or failed when the source of the change was removed."""


class CheckRunConfig(RunConfig):
    """What a check was started with."""

    command: Literal["check"] = "check"
    tree: str
    """The tree that is checked: the frozen tree, with undeclared protected files as they are in the base."""
    frozen: str
    """The work tree as it was found."""
    base: str
    """The base tree."""
    base_reason: str = ""
    """Why this base was chosen."""
    sandbox: str

    @property
    def subject(self) -> str:
        return f"tree {self.frozen[:12]}"


class CheckReport(FrozenModel):
    """The result of `proofstone check`, for people and programs."""

    run_id: str
    tree: str
    """The tree that was checked: the frozen tree, with undeclared protected files as they are in the base."""
    frozen: str
    """The work tree as it was found."""
    base: str
    """The base tree."""
    base_commit: str
    base_reason: str = ""
    """Why this base was chosen."""
    outcome: Outcome
    reason: str
    """Why the outcome is not `passed`, in one line."""
    confidence: Confidence | None
    """None if there was nothing to check."""
    reasons: tuple[ConfidenceReason, ...] = ()
    """Why the confidence is not high, and what would raise it."""
    assurance: Assurance
    """The weakest level at which a check ran."""
    checks: tuple[CheckLine, ...]
    findings: tuple[Finding, ...]
    regressions: tuple[str, ...]
    fixed: tuple[str, ...]
    """Tests that failed on the base and pass now."""
    standing: tuple[str, ...]
    """Tests that failed on the base already. They do not count against the change."""
    edited: tuple[str, ...]
    """Tests that pass as the change left them and fail as they were on the base."""
    sensitive: tuple[str, ...]
    """Tests that failed when the source of the change was removed."""
    strength: TestStrength | None = None
    """How many mistakes in the changed lines the tests notice; None if that was not measured."""
    flaky: tuple[str, ...]
    unverifiable_tests: tuple[str, ...]
    """Tests whose failures may be caused by the sandbox or by a missing service."""
    changed: tuple[str, ...]
    accepted: tuple[Acceptance, ...] = ()
    """What a person accepted, and who, how and why."""
    disputes: tuple[VerdictDispute, ...] = ()
    """What the author of the change disputes and a person has not decided yet."""
    notes: tuple[str, ...]
    ledger: str
