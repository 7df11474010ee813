"""Decide which checks run and in which order, and the outcome of all checks together.

| first match                                                            | outcome      |
|------------------------------------------------------------------------|--------------|
| a check that decides failed, or there is a finding of at least `major` | failed       |
| a required check is unverifiable                                       | unverifiable |
| no test or verify command exercised the change, and it is not only documentation | unverifiable |
| otherwise                                                              | passed       |

A person may accept some findings, by rule and with a reason (`check.rules.acceptance`). Nobody can accept findings that
show a false report, a failing test or a failing held-out check.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

from proofstone.check.models import CheckKind, CheckLine, CheckSpec, ReportFormat
from proofstone.common.models import Assurance, Finding, Outcome, Severity, Verdict

_RUNTIME = (CheckKind.BUILD, CheckKind.TESTS, CheckKind.VERIFY)
# Options of pytest that change neither the selection of tests nor the exit code.
_HARMLESS = frozenset(("-q", "-qq", "-v", "-vv", "-s", "-l", "--quiet", "--verbose", "--no-header", "--showlocals"))
_HARMLESS_PREFIXES = ("--tb=", "-r", "--color=", "--durations=", "--verbosity=")


_OPTIONAL = {"required": False, "decides": False}


def combine_specs(after: Iterable[CheckSpec], before: Iterable[CheckSpec]) -> tuple[CheckSpec, ...]:
    """Return the checks of the changed tree, and the tests of the base that it no longer mentions.

    A change that removes the configuration of the tests does not remove the tests.
    """
    specs = {spec.name: spec for spec in after}
    for spec in before:
        if spec.kind in (CheckKind.TESTS, CheckKind.BUILD):
            specs.setdefault(spec.name, spec)
    return tuple(specs.values())


def choose_specs(
    specs: Sequence[CheckSpec], verify: Sequence[str], *, disable: Sequence[str], optional: Sequence[str]
) -> tuple[CheckSpec, ...]:
    """Return all checks to run: discovered checks that are neither disabled nor repeated by a verify command, then the
    user's own commands."""
    verify_specs = tuple(
        CheckSpec(
            name=build_verify_name(command, number, len(verify)),
            kind=CheckKind.VERIFY,
            tier=2,
            tool="sh",
            shell=command,
        )
        for number, command in enumerate(verify, start=1)
    )
    discovered = [
        spec.model_copy(update=_OPTIONAL if _matches(spec.name, optional) else {})
        for spec in specs
        if not _matches(spec.name, disable) and not any(is_same_test_command(command, spec) for command in verify)
    ]
    present = {spec.name for spec in discovered}
    return tuple(
        spec.model_copy(update={"needs": tuple(name for name in spec.needs if name in present)})
        for spec in (*discovered, *verify_specs)
    )


def build_verify_name(command: str, number: int, count: int) -> str:
    return "verify" if count == 1 else f"verify-{number}"


def is_same_test_command(command: str, spec: CheckSpec) -> bool:
    """Return whether a user's command runs exactly what the discovered check would run. Then once is enough."""
    if spec.kind is not CheckKind.TESTS or spec.report is not ReportFormat.PYTEST or spec.cwd != ".":
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    arguments = _find_pytest_arguments(words)
    return arguments is not None and all(word in _HARMLESS or word.startswith(_HARMLESS_PREFIXES) for word in arguments)


def _find_pytest_arguments(words: Sequence[str]) -> Sequence[str] | None:
    """Return the arguments of pytest if the command is nothing but pytest."""
    if words[:1] in (["pytest"], ["py.test"]):
        return words[1:]
    if len(words) >= 3 and words[0].rpartition("/")[2].startswith("python") and list(words[1:3]) == ["-m", "pytest"]:
        return words[3:]
    return words[3:] if list(words[:3]) == ["uv", "run", "pytest"] else None


def _matches(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


def order_in_waves(specs: Sequence[CheckSpec]) -> list[list[CheckSpec]]:
    """Group the checks into waves that may run at the same time, in order. `needs` never form a cycle: discovery writes
    them, and a build needs nothing."""
    remaining, done, order = list(specs), set[str](), []
    while remaining:
        ready = [spec for spec in remaining if done.issuperset(spec.needs)] or remaining
        order.append(ready)
        done |= {spec.name for spec in ready}
        remaining = [spec for spec in remaining if spec not in ready]
    return order


def has_runtime_check(specs: Sequence[CheckSpec]) -> bool:
    """Return whether tiers 1 and 2 execute anything of the project. If not, tier 3 must."""
    return any(spec.kind in _RUNTIME for spec in specs)


_PROOF = (CheckKind.TESTS, CheckKind.VERIFY, CheckKind.HELD_OUT)
_STRONGEST_FIRST = (Assurance.BUBBLEWRAP, Assurance.LANDLOCK, Assurance.PLAIN)


def decide_outcome(
    checks: Sequence[CheckLine], findings: Sequence[Finding], *, documentation_only: bool
) -> tuple[Outcome, str]:
    """Return the outcome, and why it is not `passed`."""
    failed = [check for check in checks if check.verdict is Verdict.FAIL and check.decides]
    if failed:
        return Outcome.FAILED, "; ".join(f"{check.name}: {check.reason}" for check in failed)
    optional = {check.name for check in checks if not check.decides}
    serious = [
        finding for finding in findings if finding.severity is not Severity.MINOR and finding.check not in optional
    ]
    if serious:
        return Outcome.FAILED, f"{serious[0].rule}: {serious[0].headline}"
    unverifiable = [check for check in checks if check.required and check.verdict is Verdict.UNVERIFIABLE]
    if unverifiable:
        return Outcome.UNVERIFIABLE, "; ".join(f"{check.name}: {check.reason}" for check in unverifiable)
    is_exercised = any(check.kind in _PROOF and check.verdict is Verdict.PASS and check.decides for check in checks)
    if not is_exercised and not documentation_only:
        return (
            Outcome.UNVERIFIABLE,
            "nothing exercised the change: no test was found in the project's files, and no --verify was given",
        )
    return Outcome.PASSED, ""


def find_weakest_level(levels: Sequence[Assurance | None]) -> Assurance:
    """Return the weakest level of all runs. If nothing ran, nothing is assured."""
    levels_run = [level for level in levels if level is not None]
    return max(levels_run, key=_STRONGEST_FIRST.index, default=Assurance.PLAIN)


TEST_CHANGE_RULES: Final = frozenset(
    (
        "edited-expectation",
        "weakened-test",
        "old-tests-unrunnable",
        "edited-check",
        "test-vanished",
        "test-skipped",
        "weakened-configuration",
    )
)
"""Rules of findings that `--accept-test-changes` accepts."""

ACCEPTABLE_RULES: Final = TEST_CHANGE_RULES | frozenset(
    (
        "module-origin",
        "replaced-code",
        "weakened-settings",
        "added-secret",
        "blanket-suppression",
        "insensitive-test",
        "unfailing-test",
        "test-framework-import",
        "hard-exit",
        "constant-equality",
        "runner-environment",
        "stack-reading",
        "patched-framework",
        "names-the-gate",
        "report-tampering",
        "shadowed-module",
        "bytecode",
        "dependency-in-tree",
        "startup-file",
        "hidden-code",
        "opaque-file",
        "encoded-code",
        "loosened-check",
        "environment-startup-file",
        "environment-tampered",
        "work-tree-moved",
    )
)
"""Rules of findings that a person may accept."""


class EvidenceLayer(StrEnum):
    """The layers of evidence. Each finding names the layer that found it."""

    FROZEN_TREE = "L1"
    PROTECTED_FILES = "L2"
    TEST_IDENTITY = "L3"
    CANARY = "L4"
    SENSITIVITY = "L5"
    STATIC_SCAN = "L6"
    SANDBOX = "L7"
    REVIEW = "L8"
    HELD_OUT = "L9"


LAYER_TITLES: Final[dict[EvidenceLayer, str]] = {
    EvidenceLayer.FROZEN_TREE: "frozen tree",
    EvidenceLayer.PROTECTED_FILES: "protected files",
    EvidenceLayer.TEST_IDENTITY: "test identity",
    EvidenceLayer.CANARY: "canary",
    EvidenceLayer.SENSITIVITY: "sensitivity",
    EvidenceLayer.STATIC_SCAN: "static scan",
    EvidenceLayer.SANDBOX: "sandbox and environment",
    EvidenceLayer.REVIEW: "independent review",
    EvidenceLayer.HELD_OUT: "held-out checks",
}
