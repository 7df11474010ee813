"""What the plan gate says is a door: a plan reaches implementation as it went through, or not at all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.gate.stage import agent, work
from tests.plan_gate.scenes import BLOCKING
from tests.plan_gate.stage import Stage, challenge, challenger, ruling, script, synthesizer
from tests.staging import Entry, plan, task

ONE = plan(task("One"))
"""One task with two files: not trivial, and quickly done."""
MITIGATION = "Let one() refuse what is no number."
REVISE = script(
    challenger(challenge("The plan assumes numbers"), iteration=1),
    synthesizer(ruling("C1", "UNRESOLVED", mitigation=MITIGATION)),
)
HALF_ANSWERED = script(
    challenger(challenge("The plan assumes numbers"), challenge("The plan assumes a cart"), iteration=1),
    synthesizer(ruling("C1", "UNRESOLVED", mitigation=MITIGATION), ruling("C2", "UNRESOLVED")),
)
RETHINK = script(challenger(BLOCKING, iteration=1))
REFUSED: dict[str, tuple[list[Entry] | None, str]] = {
    "nobody has looked at it": (None, "it has not gone through the plan gate as it is"),
    "REVISE": (REVISE, "the plan gate says REVISE"),
    "RETHINK": (RETHINK, "the plan gate says RETHINK"),
    "a question is waiting": (
        script(challenger(BLOCKING, iteration=1), synthesizer(ruling("C1", "UNRESOLVED"))),
        "a question about it is waiting",
    ),
}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage.set_up(tmp_path / "stage")
    stage.write("PLAN.md", ONE)
    stage.workshop.commit(stage.root)
    return stage


def gate(stage: Stage, *args: str, executor: str = "") -> subprocess.CompletedProcess[str]:
    return stage.proofstone(
        "gate", "PLAN.md", "--executor", executor or agent(t1=work("one")), *args, "--json", "--quiet"
    )


def refused(done: subprocess.CompletedProcess[str], why: str) -> None:
    assert done.returncode == 2, done.stdout + done.stderr
    assert "PLAN.md" in done.stderr and why in done.stderr, done.stderr
    assert "proofstone verify-plan" in done.stderr


@pytest.mark.few(2, ci=4)
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_through_is_not_begun(stage: Stage, name: str) -> None:
    entries, why = REFUSED[name]
    if entries is not None:
        assert stage.verify(entries).exit in (1, 3)
    refused(gate(stage, "--verified"), why)
    assert stage.workshop.git(stage.root, "branch", "--list", "proofstone/*") == "", "nothing was begun"
    assert stage.workshop.git(stage.root, "status", "--porcelain") == ""


def test_what_is_through_is_implemented_and_a_byte_more_is_not(stage: Stage) -> None:
    assert stage.verify(script()).exit == 0
    stage.write("PLAN.md", ONE + "\n")
    refused(gate(stage, "--verified"), "it has not gone through the plan gate as it is")
    stage.write("PLAN.md", ONE)
    done = gate(stage, "--verified")
    assert done.returncode == 0, done.stdout + done.stderr


def test_after_a_revise_the_mitigations_are_taken_in_once_and_every_executor_reads_them(stage: Stage) -> None:
    came = stage.verify(REVISE)
    assert came.exit == 1 and f"--apply-mitigations {came.run_id}" in came.report.next_step
    taken = stage.proofstone("verify-plan", "--apply-mitigations", "last")
    assert taken.returncode == 0, taken.stderr
    text = (stage.root / "PLAN.md").read_text()
    assert text.count(MITIGATION) == 1 and "C1" in taken.stdout
    assert stage.proofstone("verify-plan", "--apply-mitigations", "last").returncode == 2
    assert (stage.root / "PLAN.md").read_text() == text
    stage.write("PLAN.md", text + "\n")
    refused(gate(stage, "--verified"), "it has not gone through the plan gate as it is")
    stage.write("PLAN.md", text)
    reads = f'grep -qF "{MITIGATION}" "$PROOFSTONE_TASK" || exit 1\n'
    done = gate(stage, "--verified", executor=agent(t1=reads + work("one")))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.ci
def test_what_settled_a_challenge_is_taken_in_after_a_proceed_too(stage: Stage) -> None:
    settled = script(
        challenger(challenge("The plan assumes numbers"), iteration=1), synthesizer(ruling("C1", mitigation=MITIGATION))
    )
    came = stage.verify(settled)
    assert came.exit == 0 and f"--apply-mitigations {came.run_id}" in came.report.next_step
    refused(gate(stage, "--verified"), "its mitigations are not in the plan yet")
    assert stage.proofstone("verify-plan", "--apply-mitigations", came.run_id).returncode == 0
    assert MITIGATION in (stage.root / "PLAN.md").read_text()
    done = gate(stage, "--verified", executor="cmd:exit 1")
    assert done.returncode == 1, f"it was begun, and its executor failed: {done.stderr}"


def test_the_repository_can_ask_for_it(stage: Stage) -> None:
    stage.workshop.configure(stage.root, "[gate]\nverified_plan = true\n")
    refused(gate(stage), "it has not gone through the plan gate as it is")
    assert stage.verify(script()).exit == 0
    done = gate(stage, executor="cmd:exit 1")
    assert done.returncode == 1, f"it was begun, and its executor failed: {done.stderr}"


@pytest.mark.ci
def test_the_last_word_counts(stage: Stage) -> None:
    assert stage.verify(script()).exit == 0
    assert stage.verify(REVISE).exit == 1
    refused(gate(stage, "--verified"), "the plan gate says REVISE")


@pytest.mark.ci
def test_what_was_said_of_the_same_words_elsewhere_is_about_other_files(stage: Stage) -> None:
    assert stage.verify(script()).exit == 0
    elsewhere = Stage(stage.workshop, stage.workshop.repo({"PLAN.md": ONE, "readme.txt": "nothing yet\n"}, "other"))
    refused(gate(elsewhere, "--verified"), "it has not gone through the plan gate as it is")


NOT_TAKEN_IN: dict[str, tuple[list[Entry], str, str]] = {
    "there is nothing to take in": (script(), ONE, "there is no mitigation to apply"),
    "nobody knows a mitigation": (HALF_ANSWERED, ONE, "there is no mitigation for C2"),
    "it is to be thought over": (RETHINK, ONE, "the verdict is RETHINK"),
    "the plan has changed": (REVISE, ONE + "\n", "has changed since"),
}


@pytest.mark.few(1, ci=4)
@pytest.mark.parametrize("name", NOT_TAKEN_IN)
def test_what_cannot_be_taken_in_is_said_and_the_plan_stays_as_it_is(stage: Stage, name: str) -> None:
    entries, text, why = NOT_TAKEN_IN[name]
    came = stage.verify(entries)
    stage.write("PLAN.md", text)
    done = stage.proofstone("verify-plan", "--apply-mitigations", came.run_id)
    assert done.returncode == 2 and why in done.stderr and "hint:" in done.stderr, done.stderr
    assert (stage.root / "PLAN.md").read_text() == text


@pytest.mark.ci
def test_taking_in_is_a_persons_word(stage: Stage) -> None:
    stage.verify(REVISE)
    done = stage.proofstone("verify-plan", "--apply-mitigations", "last", env={"PROOFSTONE_TASK": "in the prompt"})
    assert done.returncode == 2, done.stdout
    assert (stage.root / "PLAN.md").read_text() == ONE
