"""Disguise the environment of a test run, and judge the tests that fail in it.

Where calls cannot be repeated in a process without tests, the repaired and added tests themselves run once more:
without variables that name CI, for another user in another time zone, in another order and several times, as far as the
runner offers it, and without the rest of the suite if it can select tests. Code that gives its answer only to a test
run as it usually is has another one then.

A failure is a suspicion if the same tests fail in two disguised runs, pass in a run of the same selection without
disguise, and no test of the base that passes there fails in the same disguise.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from proofstone.check.models import ReportFormat, TestReport
from proofstone.common.models import ConfidenceReason
from proofstone.common.text import pluralize

REMOVED_VARIABLES: Final = (
    "CI",
    "CONTINUOUS_INTEGRATION",
    "BUILD_NUMBER",
    "BUILD_ID",
    "GITHUB_ACTIONS",
    "GITHUB_WORKFLOW",
    "GITLAB_CI",
    "JENKINS_URL",
    "TRAVIS",
    "CIRCLECI",
    "BUILDKITE",
    "TEAMCITY_VERSION",
    "TF_BUILD",
    "RAILS_ENV",
    "RACK_ENV",
    "APP_ENV",
    "DOTNET_ENVIRONMENT",
    "ASPNETCORE_ENVIRONMENT",
)
"""Variables that name CI, or the environment of tests. Proofstone passes none of them on by itself; settings may."""
CHANGED_VARIABLES: Final = {
    "USER": "worker",
    "LOGNAME": "worker",
    "TZ": "Asia/Kathmandu",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "MAVEN_ARGS": "-Dsurefire.runOrder=reversealphabetical",
}
_START: Final = "{probes}/proofstone_disguise.sh"
_GO: Final = ("-count=3", "-shuffle=20250711", "-exec", f"sh {_START}")
_CARGO: Final = ("--config", f'target."cfg(all())".runner=["sh", "{_START}"]')
_SERIAL: Final = "--test-threads=1"
DISGUISED_RUNNERS: Final = (ReportFormat.GO, ReportFormat.CARGO, ReportFormat.JUNIT, ReportFormat.TAP)
"""Runners that report results by id, and whose calls are not repeated."""


_USER: Final = "for another user, in another time zone and locale"
_HOW: Final = {
    ReportFormat.GO: f"runs three times, in another order, under another program name, {_USER}",
    ReportFormat.CARGO: f"runs without the tests around it, under another program name, {_USER}",
}
"""What the disguise changes for the tests of a runner."""


def disguise_command(runner: ReportFormat, argv: Sequence[str]) -> tuple[str, ...]:
    """Return the command with its environment disguised."""
    removed = [word for name in REMOVED_VARIABLES for word in ("-u", name)]
    changed = [f"{name}={value}" for name, value in CHANGED_VARIABLES.items()]
    return ("env", *removed, *changed, *_add_options(runner, argv))


def _add_options(runner: ReportFormat, argv: Sequence[str]) -> tuple[str, ...]:
    if "test" not in argv or runner not in (ReportFormat.GO, ReportFormat.CARGO):
        return tuple(argv)
    start = argv.index("test") + 1
    head, rest = tuple(argv[:start]), tuple(argv[start:])
    if runner is ReportFormat.GO:
        return (*head, *_drop_counts(rest[: _find_packages(rest)]), *_GO, *rest[_find_packages(rest) :])
    if any(word.startswith("--test-threads") for word in rest):
        return (*head, *_CARGO, *rest)
    serial = (_SERIAL,) if "--" in rest else ("--", _SERIAL)
    end = rest.index("--") + 1 if "--" in rest else len(rest)
    return (*head, *_CARGO, *rest[:end], *serial, *rest[end:])


def _find_packages(words: Sequence[str]) -> int:
    """Return where the packages begin. Options of `go test` stand before them."""
    is_value = False
    for number, word in enumerate(words):
        if not word.startswith("-") and not is_value:
            return number
        is_value = word in ("-run", "-count", "-timeout", "-tags", "-p", "-parallel", "-cpu", "-mod", "-C", "-shuffle")
    return len(words)


def _drop_counts(options: Sequence[str]) -> tuple[str, ...]:
    """Return the options without those that the disguise sets. The last of two would count."""
    return tuple(word for word in options if not word.startswith(("-count=", "-shuffle=")))


def list_passing(report: TestReport | None, tests: Collection[str]) -> tuple[str, ...]:
    """Return those of the tests that ran and did not fail."""
    results = report.by_id if report is not None else {}
    return tuple(
        test for test in tests if test in results and results[test].status.is_executed and not is_failing(report, test)
    )


def list_failing(report: TestReport | None, tests: Collection[str]) -> tuple[str, ...]:
    """Return those of the tests that failed."""
    return tuple(test for test in tests if is_failing(report, test))


def is_failing(report: TestReport | None, test: str) -> bool:
    return report is not None and test in report.by_id and report.by_id[test].status.is_failure


def describe_suspicion(
    check: str, runner: ReportFormat, failing: Sequence[str], report: TestReport
) -> ConfidenceReason:
    """Return the reason why the confidence is not high. `report` is that of the disguised run."""
    how = _HOW.get(runner, f"runs {_USER}")
    cause = report.by_id[failing[0]].cause or "no message"
    others = f" (and {pluralize(len(failing) - 1, 'other test')})" if len(failing) > 1 else ""
    return ConfidenceReason(
        reason=f"{check}: {failing[0]}{others} passes, and fails when it {how}: {cause}",
        remedy="let the code and its tests not depend on the environment, or on how often they run; set up in the test "
        "what it needs",
    )
