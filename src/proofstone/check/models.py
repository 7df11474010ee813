"""Test results by id, whatever runner produced them.

What the layers of evidence found about one check that passed.

A check: what is to be run, and what came of it.

What `proofstone check` says at the end, for people and programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from pydantic import Field

from proofstone.common.models import (
    Assurance,
    Confidence,
    Contract,
    Diagnostic,
    Finding,
    Outcome,
    Phase,
    TreeId,
    Verdict,
)


class TestStatus(StrEnum):
    __test__ = False  # not a test class, whatever pytest thinks of the name

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """Set-up, tear-down or collection broke."""
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    """Failed as it was declared to."""
    XPASSED = "xpassed"
    """Passed although it was declared to fail."""

    @property
    def executed(self) -> bool:
        return self is not TestStatus.SKIPPED

    @property
    def bad(self) -> bool:
        return self in (TestStatus.FAILED, TestStatus.ERROR)


class TestResult(Contract):
    __test__ = False

    id: str
    """Stable between two trees: the runner's own id where it has one, with paths relative to the repository."""
    status: TestStatus
    duration_ms: int | None = None
    message: str = ""
    """Head of the failure text, at most 2,000 characters."""
    path: str | None = None
    """The test's file relative to the repository, where the runner says it."""

    def told(self, what: str) -> str:
        """`what`, and the last line of the failure text, which is where runners say what went wrong."""
        lines = [line.strip() for line in self.message.splitlines() if line.strip()]
        return f"{what}: {lines[-1][:200]}" if lines else what


class TestReport(Contract):
    """All results of one run of one runner."""

    __test__ = False

    runner: str
    results: tuple[TestResult, ...]
    complete: bool
    """False when the runner died before it said that it had finished."""
    began: bool = True
    """False when no runner began a run: none wrote a report, or it said itself that it could not begin."""
    imported_from: tuple[str, ...] = ()
    """Where the project's own packages were imported from (absolute paths), where the runner can say."""
    problems: tuple[str, ...] = ()
    """What could not be read, in words."""
    forged: str = ""
    """Why somebody else than the runner must have written part of it; empty if nothing says so."""

    @property
    def by_id(self) -> Mapping[str, TestResult]:
        return {result.id: result for result in self.results}

    @property
    def executed(self) -> int:
        return sum(result.status.executed for result in self.results)


class ReportFormat(StrEnum):
    """How results by id are obtained from a run."""

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
    """No ids: the exit code is all there is, and the assurance says so."""


class Examined(Contract):
    findings: tuple[Finding, ...] = ()
    edited: tuple[str, ...] = ()
    """Tests that pass only because they were edited."""
    sensitive: tuple[str, ...] = ()
    """Tests that were seen to fail without the change's source."""
    caps: tuple[str, ...] = ()
    """What keeps the confidence from being high, in words."""
    not_measured: tuple[str, ...] = ()
    """Runs that died although the verdict needs them, in words: the check cannot be verified then."""


def together(parts: Iterable[Examined]) -> Examined:
    listed = list(parts)
    return Examined(
        findings=tuple(finding for part in listed for finding in part.findings),
        edited=tuple(sorted({test for part in listed for test in part.edited})),
        sensitive=tuple(sorted({test for part in listed for test in part.sensitive})),
        caps=tuple(dict.fromkeys(cap for part in listed for cap in part.caps)),
        not_measured=tuple(dict.fromkeys(words for part in listed for words in part.not_measured)),
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
    """Why a run measured nothing; `check.rules.run_end` decides it."""

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


class CheckLine(Contract):
    """One check of the cascade, judged."""

    name: str
    kind: CheckKind
    tier: int
    verdict: Verdict
    baseline: Verdict | None
    """What the same check gave on the base tree; None when it was not run there."""
    duration_ms: int
    reused: bool
    """The result came from an earlier run on the same tree."""
    required: bool
    decides: bool
    reason: str
    command: str
    assurance: Assurance | None
    tests: int | None
    """Tests that were executed; None for checks that are not tests."""
    seq: int | None
    """Row of the ledger that holds it."""
    artifact: str | None
    exit_code: int | None = None
    """None where nothing was run, or the engine ended it."""


class CheckReport(Contract):
    run_id: str
    tree: str
    """What was checked: the frozen tree, with undeclared protected files as they are in the base."""
    frozen: str
    """The work tree as it was found."""
    base: str
    """The base tree."""
    base_commit: str
    outcome: Outcome
    reason: str
    """Why the outcome is not `passed`, in one line."""
    confidence: Confidence
    caps: tuple[str, ...]
    """Why the confidence is not high: what would raise it."""
    assurance: Assurance
    """The weakest level at which a check ran."""
    checks: tuple[CheckLine, ...]
    findings: tuple[Finding, ...]
    regressions: tuple[str, ...]
    fixed: tuple[str, ...]
    """Tests that failed on the base and pass now."""
    standing: tuple[str, ...]
    """Failures that stood in the baseline and are not held against the change."""
    edited: tuple[str, ...]
    """Tests that pass as the change left them and fail as they stood on the base."""
    sensitive: tuple[str, ...]
    """Tests that were seen to fail without the change's source."""
    flaky: tuple[str, ...]
    unverifiable_tests: tuple[str, ...]
    """Tests that cannot be told from what the sandbox or a missing service does to them."""
    changed: tuple[str, ...]
    notes: tuple[str, ...]
    ledger: str
