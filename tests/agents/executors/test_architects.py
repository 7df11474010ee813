"""Architects by command, person and script: only a verdict of the schema is one, and nothing else approves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proofstone.agents.executors.context import ReviewOutcome
from proofstone.agents.executors.people import ReadLine
from proofstone.agents.executors.selection import SPEC_KINDS, build_architect
from proofstone.agents.roles.models.gate import (
    ArchitectDecision,
    ArchitectVerdict,
    NoVerdict,
    PendingReview,
    Recommendation,
    ReviewRequest,
)
from proofstone.errors import InputError
from tests.agents.executors.bench import Bench, asked
from tests.agents.executors.test_human import typed


def reviewed(
    bench: Bench, spec: str, request: ReviewRequest | None = None, listen: ReadLine | None = None
) -> ReviewOutcome:
    architect = bench.casting(listen).build_architect([spec])
    assert architect
    candidate = replace(bench.view, work_tree=None)
    return architect.review(request or asked(), bench.site(view=candidate))


def writing(verdict: str, code: int = 0) -> str:
    return f"""cmd:printf '%s' '{verdict}' > "$PROOFSTONE_VERDICT"; exit {code}"""


def test_a_command_sees_the_candidate_and_the_request_and_its_verdict_counts(bench: Bench) -> None:
    command = (
        'cat a.txt; cat "$PROOFSTONE_REVIEW"; echo "$PROOFSTONE_TASK_ID $PROOFSTONE_ATTEMPT"; '
        + writing('{"verdict": "APPROVED", "findings": ["greets"], "by": "human"}')[4:]
    )
    found = reviewed(bench, f"cmd:{command}")
    assert isinstance(found, ArchitectVerdict) and found.verdict is ArchitectDecision.APPROVED, found
    assert found.findings == ("greets",) and found.by == f"cmd:{command}"
    first, _, rest = bench.printed().partition("\n")
    request, _, last = rest.rstrip("\n").rpartition("\n")
    assert first == "a" and ReviewRequest.model_validate_json(request) == asked() and last == "task-02 1"


def test_a_command_cannot_change_the_candidate(bench: Bench) -> None:
    reviewed(bench, "cmd:echo x > a.txt; echo y > y.txt; rm -rf src")
    assert bench.files() == {"a.txt", "src/b.txt"} and (bench.work_tree / "a.txt").read_text() == "a\n"


# What a command does → why there is no verdict.
NONE = {
    "cmd:exit 0": "nothing was written to $PROOFSTONE_VERDICT (exit code 0)",
    "cmd:echo I approve; exit 1": "nothing was written to $PROOFSTONE_VERDICT (exit code 1):\nI approve",
    writing('{"verdict": "APPROVED"}', 1): "it approves, but ended with exit code 1",
    writing('{"verdict": "FINE"}'): "malformed: verdict: input should be 'APPROVED' or 'REJECTED'",
    writing("APPROVED"): "it is not JSON",
    "cmd:ln -s /etc/hostname $PROOFSTONE_VERDICT": "symbolic link",
    "cmd:kill -9 $$": "SIGKILL",
}


@pytest.mark.parametrize("spec,why", NONE.items())
def test_whatever_is_not_a_verdict_approves_nothing(plain: Bench, spec: str, why: str) -> None:
    found = reviewed(plain, spec)
    assert isinstance(found, NoVerdict) and why in found.why and not found.timed_out


def test_a_rejection_counts_whatever_the_exit_code(plain: Bench) -> None:
    found = reviewed(plain, writing('{"verdict": "REJECTED", "feedback": "no"}', 1))
    assert isinstance(found, ArchitectVerdict) and found.feedback == "no"


@pytest.mark.parametrize("spec", ["cmd:sleep 3000", "script:s.yaml"])
def test_a_review_past_its_deadline_says_so(plain: Bench, spec: str) -> None:
    (plain.folder / "s.yaml").write_text("- {role: architect, steps: [{sleep: 3000}], output: {verdict: APPROVED}}")
    found = reviewed(plain, spec, asked(seconds=0.3))
    assert isinstance(found, NoVerdict) and found.timed_out and "not finished" in found.why


@pytest.mark.parametrize("spec", ["cmd:sleep 3000", "human", "script:s.yaml"])
def test_an_interruption_is_no_verdict(plain: Bench, spec: str) -> None:
    (plain.folder / "s.yaml").write_text("- {role: architect, steps: [{say: x}], output: {verdict: APPROVED}}")
    plain.cancel.set()
    with typed("") as terminal:
        found = reviewed(plain, spec, listen=terminal)
    assert isinstance(found, NoVerdict) and found.cancelled


def test_without_a_terminal_a_person_is_waited_for(plain: Bench) -> None:
    found = reviewed(plain, "human")
    assert isinstance(found, PendingReview) and "task-02 (Greet the user), attempt 1" in found.question


ANSWERS = {
    "approve\n": (ArchitectDecision.APPROVED, Recommendation.COMMIT, ""),
    "reject it is rude\n": (ArchitectDecision.REJECTED, Recommendation.RETRY, "it is rude"),
    "reject\nReject: rude\n": (ArchitectDecision.REJECTED, Recommendation.RETRY, "rude"),
    "manual\n": (ArchitectDecision.REJECTED, Recommendation.MANUAL_REVIEW, "a person looks into it first"),
    "\nyes\napprove it is kind\n": (ArchitectDecision.APPROVED, Recommendation.COMMIT, ""),
}


@pytest.mark.parametrize("text,expected", ANSWERS.items())
def test_a_person_answers_in_words_and_only_in_these(
    plain: Bench, text: str, expected: tuple[ArchitectDecision, Recommendation, str]
) -> None:
    with typed(text, after=0.3) as terminal:
        found = reviewed(plain, "human", listen=terminal)
    assert isinstance(found, ArchitectVerdict) and found.by == "human"
    assert (found.verdict, found.recommendation, found.feedback) == expected
    assert plain.said[:3] == ["+hello", "verify: pass", "only you can confirm: it is friendly"]


SCRIPT = """
- {role: executor, output: {status: success}}
- {role: architect, match: {attempt: 1}, output: {verdict: REJECTED, feedback: again}}
- {role: architect, match: {attempt: 2}, steps: [{run: test -f a.txt}], output: {verdict: APPROVED, confidence: HIGH}}
- {role: architect, match: {attempt: 3}, raw: "looks good to me"}
- {role: architect, match: {attempt: 4}, steps: [{fail: tired}], output: {verdict: APPROVED}}
- {role: architect, match: {attempt: 5}}
"""


@pytest.mark.parametrize(
    "attempt,expected", [(1, "REJECTED"), (2, "APPROVED"), (3, "not JSON"), (4, "tired"), (5, "it is empty")]
)
def test_a_scripted_architect_says_what_is_written(plain: Bench, attempt: int, expected: str) -> None:
    (plain.folder / "s.yaml").write_text(SCRIPT)
    found = reviewed(plain, "script:s.yaml", asked(attempt=attempt))
    assert expected in (found.why if isinstance(found, NoVerdict) else str(getattr(found, "verdict", found)))
    assert isinstance(found, NoVerdict) or (isinstance(found, ArchitectVerdict) and found.by == "script:s.yaml")


def test_the_rules_are_no_adapter_and_unknown_words_are_refused() -> None:
    assert build_architect("rules") is None
    with pytest.raises(InputError) as caught:
        build_architect("robot:x")
    assert caught.value.hint == f"one of: rules, {SPEC_KINDS}"
