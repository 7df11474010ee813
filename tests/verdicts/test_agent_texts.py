"""Texts that reach an agent never name acceptance: it would be a way around the checks. They offer to dispute."""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

import proofstone
from proofstone.agents.roles.models.gate import AttemptFailure, FailureReason, FailureType
from proofstone.agents.tools.models import Tool
from proofstone.agents.tools.toolbox import build_spec
from proofstone.check.models import CheckReport
from proofstone.check.rules.acceptance import AcceptanceFacts, rule_on_acceptance
from proofstone.check.rules.outcome import ACCEPTABLE_RULES
from proofstone.check.rules.run_end import write_feedback
from proofstone.cli.render.check import Reader, print_check_report
from proofstone.common.models import Assurance, Confidence, Finding, Outcome, Severity
from proofstone.gate.rules.assignment import build_assignment
from proofstone.hooks.agent_hooks import INSTRUCTION, PLUGIN
from tests.gate.records import plan, record, task

SOURCE = Path(proofstone.__file__).parent
NAMES_ACCEPTANCE = re.compile(
    r"--accept|accepted-by|accept[_-]test[_-]changes|check\.accept|hook\.accepts|may accept|accept (the|this|a) finding"
)
FOR_PERSONS = {
    "app/caller.py": "errors of the options themselves, which the caller used",
    "app/check.py": "errors of the options themselves, which the caller used",
    "app/api.py": "errors of the arguments themselves",
    "cli/acceptance_questions.py": "the question at a terminal",
    "cli/answer.py": "an option, for the person who answers",
    "cli/check.py": "the options and their help",
    "cli/dispute.py": "an option, for the person who decides",
    "cli/hook.py": "the refusal of a commit that a person accepted in a way that does not count",
    "cli/render/check.py": "a hint that only a reader at a terminal gets",
    "config/rules.py": "the names of settings",
    "config/settings.py": "the manual of the settings",
    "prove/trial.py": "the options of the catalogue's own checks",
}


def literals(file: Path) -> Iterator[str]:
    """Yield the texts of a module that are not documentation of its code."""
    tree = ast.parse(file.read_text("utf-8"))
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    documentation |= {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


def test_only_modules_that_speak_to_persons_name_acceptance() -> None:
    naming = {
        str(file.relative_to(SOURCE))
        for file in SOURCE.rglob("*.py")
        if any(NAMES_ACCEPTANCE.search(text) for text in literals(file))
    }
    assert naming <= FOR_PERSONS.keys()
    for page in (SOURCE / "agents/roles/prompts").glob("*.md"):
        assert not NAMES_ACCEPTANCE.search(page.read_text("utf-8")), page


def report_with(rules: list[str]) -> CheckReport:
    findings = tuple(
        Finding(layer="L2", rule=rule, severity=Severity.CRITICAL, detail="a.py::test_a: d", fix="mend it")
        for rule in rules
    )
    empty: dict[str, tuple[str, ...]] = dict.fromkeys(
        ("regressions", "fixed", "standing", "edited", "sensitive", "flaky", "unverifiable_tests", "changed", "notes"),
        (),
    )
    return CheckReport(
        run_id="r",
        tree="a" * 40,
        frozen="a" * 40,
        base="b" * 40,
        base_commit="c" * 40,
        outcome=Outcome.FAILED,
        reason="why",
        confidence=Confidence.LOW,
        reasons=(),
        assurance=Assurance.BUBBLEWRAP,
        checks=(),
        findings=findings,
        ledger="",
        **empty,
    )


def test_what_an_agent_is_told_offers_to_dispute_and_names_no_acceptance() -> None:
    reasons = tuple(FailureReason(check=rule, layer="L2", detail="d. mend it") for rule in sorted(ACCEPTABLE_RULES))
    failure = AttemptFailure(attempt=1, type=FailureType.VERIFY_FAILURE, error="e", reasons=reasons)
    again = record(attempt=2, failures=(failure,))
    whole = plan(task(1))
    assignment = build_assignment(whole, task(1), again, [again], run_id="r", base_commit="c" * 40, seconds=1)
    texts = {
        "the feedback of a hook": write_feedback(report_with(sorted(ACCEPTABLE_RULES))),
        "the next assignment": assignment.prompt,
        "the instruction": INSTRUCTION,
        "the prompt of the executor": (SOURCE / "agents/roles/prompts/executor.md").read_text("utf-8"),
        "the tool": build_spec(Tool.DISPUTE).description,
    }
    for name, text in texts.items():
        assert not NAMES_ACCEPTANCE.search(text), name
        assert "ispute" in text or "is wrong" in text, name
    assert not NAMES_ACCEPTANCE.search(PLUGIN)
    refusals = [rule_on_acceptance(facts) for facts in (AcceptanceFacts(), AcceptanceFacts(agent="Codex"))]
    assert not any(NAMES_ACCEPTANCE.search(f"{ruling.refusal} {ruling.hint}") for ruling in refusals)


@pytest.mark.parametrize(("reader", "is_told"), [(Reader.PERSON, True), (Reader.UNKNOWN, False)])
def test_only_a_person_at_a_terminal_reads_how_to_accept(reader: Reader, is_told: bool) -> None:
    console = Console(record=True, width=200, file=io.StringIO())
    print_check_report(console, report_with(["edited-expectation", "regression"]), reader)
    shown = console.export_text()
    assert ('--accept edited-expectation="why"' in shown) is is_told
    assert "--accept regression" not in shown
