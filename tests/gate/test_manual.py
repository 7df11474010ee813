"""The manual says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proofstone.agents.roles.models.gate import Assignment, FailureType, RetryDirection
from proofstone.cli.gate_session import GATE_EXIT_CODES
from proofstone.config.settings import GateSettings
from proofstone.gate.models import GateReport, RunOutcome
from proofstone.gate.rules.direction import APPROACH_POLICY, FAILURE_KINDS, FailureKind
from proofstone.gate.rules.pass_rule import OVERRIDE_CATEGORIES
from proofstone.gate.rules.state_machine import MAX_ATTEMPTS, RETRY_POLICIES, draw_state_diagram
from proofstone.plans.lint import find_lint_problems, select_errors
from proofstone.plans.parser import read_plan
from tests.rows import each_row

PAGE = (Path(__file__).parents[2] / "docs" / "gate.md").read_text("utf-8")


def test_the_diagram_is_the_table() -> None:
    assert f"```mermaid\n{draw_state_diagram()}\n```" in PAGE


@each_row("kind", list(FailureType))
def test_the_retry_table_is_the_policy(kind: FailureType) -> None:
    [row] = [line for line in PAGE.splitlines() if line.startswith(f"| `{kind}` |")]
    _, _, _, again, after, _ = (cell.strip() for cell in row.split("|"))
    retries, delays, _ = RETRY_POLICIES[kind]
    assert again.startswith("never" if not retries else "1 time" if retries == 1 else f"{retries} times")
    assert after == ("–" if not retries else f"{GateSettings().retry_delay_seconds} s" if delays else "at once")
    assert f"at most {MAX_ATTEMPTS} attempts" in PAGE


@each_row("kind", FAILURE_KINDS)
def test_the_table_of_what_counts_as_what_is_the_one_that_decides(kind: FailureKind) -> None:
    assert f"| {kind.description} | {kind.mode} | {kind.failure_class} |\n" in PAGE


@pytest.mark.parametrize("directive", sorted({row.directive for row in APPROACH_POLICY}))
def test_every_directive_is_there(directive: str) -> None:
    assert f"\n| `{directive}` | " in PAGE


def test_every_exit_code_and_outcome_is_there() -> None:
    for outcome in RunOutcome:
        assert f"`{outcome.value}`" in PAGE
    assert set(GATE_EXIT_CODES) == set(RunOutcome) - {RunOutcome.CANCELLED}  # its process gets SIGTERM
    for code in GATE_EXIT_CODES.values():
        assert f"\n| {code} | " in PAGE


@each_row(
    "word", [*OVERRIDE_CATEGORIES, *Assignment.model_fields, *RetryDirection.model_fields, *GateReport.model_fields]
)
def test_the_words_of_the_protocol_are_there(word: str) -> None:
    left_out = {"run_id", "plan", "base_commit", "cost", "notes"}
    assert word in left_out or f"`{word}`" in PAGE


def test_the_example_is_a_plan_that_can_be_run() -> None:
    found = re.search(r"^```markdown\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    plan, problems = read_plan(found[1], "PLAN.md")
    assert plan is not None
    assert len(plan.tasks) == 2
    assert select_errors((*problems, *find_lint_problems(plan, found[1]))) == ()
