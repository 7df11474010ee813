"""Findings that a person may take upon themselves, by rule and with a reason. What shows that a report lies, that a
test fails or that a held-out check does, nobody can."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from proofstone.contracts.finding import Finding
from proofstone.contracts.verdict import Severity

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
        one.model_copy(update={"severity": Severity.MINOR}) if one.rule in rules and one.rule in ACCEPTABLE else one
        for one in findings
    ]
