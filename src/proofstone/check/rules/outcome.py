"""Which checks run, in which order. Pure.

The outcome of a whole cascade. Pure, and in one place.

| first match                                                            | outcome      |
|------------------------------------------------------------------------|--------------|
| a check that decides failed, or a finding of at least `major` stands   | failed       |
| a required check is unverifiable                                       | unverifiable |
| no test or verify command exercised it, and it is not only documentation | unverifiable |
| otherwise                                                              | passed       |

How sure an outcome is. High only when it passed at the strongest level and a test was seen to fail without it.

| first match                                            | confidence |
|--------------------------------------------------------|------------|
| the outcome is not `passed`                            | low        |
| anything caps it: a layer that could not say, a flaky test, a lower sandbox level, findings that inform | medium |
| otherwise                                              | high       |

Findings that a person may take upon themselves, by rule and with a reason. What shows that a report lies, that a
test fails or that a held-out check does, nobody can.

The layers of evidence, by name. Each finding says which of them saw it.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

from proofstone.check.models import CheckKind, CheckLine, CheckSpec, ReportFormat
from proofstone.common.models import Assurance, Confidence, Finding, Outcome, Severity, Verdict

_RUNTIME = (CheckKind.BUILD, CheckKind.TESTS, CheckKind.VERIFY)
# Options of pytest that leave the selection of tests and the way it ends as they are.
_HARMLESS = frozenset(("-q", "-qq", "-v", "-vv", "-s", "-l", "--quiet", "--verbose", "--no-header", "--showlocals"))
_HARMLESS_PREFIXES = ("--tb=", "-r", "--color=", "--durations=", "--verbosity=")


_OPTIONAL = {"required": False, "decides": False}


def combined(after: Iterable[CheckSpec], before: Iterable[CheckSpec]) -> tuple[CheckSpec, ...]:
    """The checks of the changed tree, and the tests of the base that it no longer mentions.

    A change that takes away the configuration of the tests does not take away the tests.
    """
    specs = {spec.name: spec for spec in after}
    for spec in before:
        if spec.kind in (CheckKind.TESTS, CheckKind.BUILD):
            specs.setdefault(spec.name, spec)
    return tuple(specs.values())


def chosen(
    specs: Sequence[CheckSpec], verify: Sequence[str], *, disable: Sequence[str], optional: Sequence[str]
) -> tuple[CheckSpec, ...]:
    """The cascade: discovered checks without what is disabled or said already, then the person's own commands."""
    own = tuple(
        CheckSpec(
            name=verify_name(command, number, len(verify)), kind=CheckKind.VERIFY, tier=2, tool="sh", shell=command
        )
        for number, command in enumerate(verify, start=1)
    )
    kept = [
        spec.model_copy(update=_OPTIONAL if _matches(spec.name, optional) else {})
        for spec in specs
        if not _matches(spec.name, disable) and not any(same_tests(command, spec) for command in verify)
    ]
    present = {spec.name for spec in kept}
    return tuple(
        spec.model_copy(update={"needs": tuple(name for name in spec.needs if name in present)})
        for spec in (*kept, *own)
    )


def verify_name(command: str, number: int, count: int) -> str:
    return "verify" if count == 1 else f"verify-{number}"


def same_tests(command: str, spec: CheckSpec) -> bool:
    """Whether a person's command runs exactly what the discovered check would: then once is enough."""
    if spec.kind is not CheckKind.TESTS or spec.report is not ReportFormat.PYTEST or spec.cwd != ".":
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    rest = _after_pytest(words)
    return rest is not None and all(word in _HARMLESS or word.startswith(_HARMLESS_PREFIXES) for word in rest)


def _after_pytest(words: Sequence[str]) -> Sequence[str] | None:
    """The arguments of pytest, when the command is nothing but pytest."""
    if words[:1] in (["pytest"], ["py.test"]):
        return words[1:]
    if len(words) >= 3 and words[0].rpartition("/")[2].startswith("python") and list(words[1:3]) == ["-m", "pytest"]:
        return words[3:]
    return words[3:] if list(words[:3]) == ["uv", "run", "pytest"] else None


def _matches(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


def waves(specs: Sequence[CheckSpec]) -> list[list[CheckSpec]]:
    """Checks that may run at the same time, in the order in which they can. `needs` in a circle never happens:
    discovery writes them, and a build needs nothing."""
    left, done, order = list(specs), set[str](), []
    while left:
        ready = [spec for spec in left if done.issuperset(spec.needs)] or left
        order.append(ready)
        done |= {spec.name for spec in ready}
        left = [spec for spec in left if spec not in ready]
    return order


def runtime_signal(specs: Sequence[CheckSpec]) -> bool:
    """Whether tiers 1 and 2 execute anything of the project's; if not, tier 3 must."""
    return any(spec.kind in _RUNTIME for spec in specs)


_PROOF = (CheckKind.TESTS, CheckKind.VERIFY, CheckKind.HELD_OUT)
_STRONGEST_FIRST = (Assurance.BUBBLEWRAP, Assurance.LANDLOCK, Assurance.PLAIN)


def decide(
    checks: Sequence[CheckLine], findings: Sequence[Finding], *, documentation_only: bool
) -> tuple[Outcome, str]:
    """The outcome, and why it is not `passed`."""
    failed = [check for check in checks if check.verdict is Verdict.FAIL and check.decides]
    if failed:
        return Outcome.FAILED, "; ".join(f"{check.name}: {check.reason}" for check in failed)
    silent = {check.name for check in checks if not check.decides}
    grave = [finding for finding in findings if finding.severity is not Severity.MINOR and finding.check not in silent]
    if grave:
        return Outcome.FAILED, f"{grave[0].rule}: {grave[0].detail}"
    unsure = [check for check in checks if check.required and check.verdict is Verdict.UNVERIFIABLE]
    if unsure:
        return Outcome.UNVERIFIABLE, "; ".join(f"{check.name}: {check.reason}" for check in unsure)
    exercised = any(check.kind in _PROOF and check.verdict is Verdict.PASS and check.decides for check in checks)
    if not exercised and not documentation_only:
        return (
            Outcome.UNVERIFIABLE,
            "nothing exercised the change: no test was found in the project's files, and no --verify was given",
        )
    return Outcome.PASSED, ""


def weakest(levels: Sequence[Assurance | None]) -> Assurance:
    """The level that caps the whole; with nothing run at all, nothing is assured."""
    ran = [level for level in levels if level is not None]
    return max(ran, key=_STRONGEST_FIRST.index, default=Assurance.PLAIN)


_CAPPING = frozenset(("flaky", "sandbox-failure", "check-dropped", "submodule-dirty", "understanding-unverified"))
"""Rules of findings that leave something unproven, although they refuse nothing."""


def rate(
    outcome: Outcome,
    reason: str,
    assurance: Assurance,
    caps: Sequence[str],
    findings: Sequence[Finding],
    *,
    sensitive: bool,
) -> tuple[Confidence, tuple[str, ...]]:
    """The confidence, and what would raise it. `sensitive`: a test depends on the change, or none needs to."""
    if outcome is not Outcome.PASSED:
        return Confidence.LOW, (reason,)
    told = list(caps)
    if assurance is not Assurance.BUBBLEWRAP:
        told.append(f"checks ran at the level {assurance} only")
    told += [f"{finding.rule}: {finding.detail}" for finding in findings if finding.rule in _CAPPING]
    if not sensitive and not told:
        told.append("no test was seen to fail without the change")
    return (Confidence.MEDIUM, tuple(told)) if told else (Confidence.HIGH, ())


TEST_CHANGES: Final = frozenset(
    ("edited-expectation", "old-tests-unrunnable", "edited-check", "test-vanished", "test-skipped")
)
"""What `--accept-test-changes` gives the word for."""

ACCEPTABLE: Final = TEST_CHANGES | frozenset(
    (
        "weakened-configuration",
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
        "environment-startup-file",
        "environment-tampered",
        "work-tree-moved",
    )
)


def softened(findings: Iterable[Finding], rules: Collection[str]) -> list[Finding]:
    """The same findings; those whose rule a person accepted only inform."""
    return [
        finding.model_copy(update={"severity": Severity.MINOR})
        if finding.rule in rules and finding.rule in ACCEPTABLE
        else finding
        for finding in findings
    ]


class Layer(StrEnum):
    FROZEN_TREE = "L1"
    PROTECTED_FILES = "L2"
    TEST_IDENTITY = "L3"
    CANARY = "L4"
    SENSITIVITY = "L5"
    STATIC_SCAN = "L6"
    SANDBOX = "L7"
    REVIEW = "L8"
    HELD_OUT = "L9"


TITLES: Final[dict[Layer, str]] = {
    Layer.FROZEN_TREE: "frozen tree",
    Layer.PROTECTED_FILES: "protected files",
    Layer.TEST_IDENTITY: "test identity",
    Layer.CANARY: "canary",
    Layer.SENSITIVITY: "sensitivity",
    Layer.STATIC_SCAN: "static scan",
    Layer.SANDBOX: "sandbox and environment",
    Layer.REVIEW: "independent review",
    Layer.HELD_OUT: "held-out checks",
}
