"""The bundle of a run of the pipeline: from the ledger, with the rows that each value comes from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from proofstone.agents.roles.models.pipeline import ReviewFocus
from proofstone.common.models import Confidence, ConfidenceReason, FrozenModel, Severity, Verdict
from proofstone.errors import InputError
from proofstone.gate.models import RunOutcome
from proofstone.ledger import read_all_rows
from proofstone.ledger.models import EventRow
from proofstone.ledger.schema import StoredRow
from proofstone.pipeline.bundle_builder import build_bundle
from proofstone.pipeline.bundle_reviews import is_one_model
from proofstone.pipeline.models.bundle import EvidenceBundle, LedgerHead, SourcedValue
from proofstone.pipeline.models.run import PipelineRunConfig
from proofstone.pipeline.records import list_bundled_runs
from proofstone.pipeline.rules.bundle_page import render_bundle_html, render_bundle_page
from proofstone.pipeline.rules.documents import build_task_documents
from proofstone.runtime.run_index import read_run_configs
from tests.pipeline.bundle.story import BASE, COMMIT, FIRST, PLAN, RUN, SECOND, TREE, written

GOLDEN = Path(__file__).parent / "golden"
RENEW = "PROOFSTONE_RENEW_GOLDEN"
HOW = f"renew the copies with {RENEW}=1 python -m pytest tests/pipeline/bundle, and read the difference"


@pytest.fixture
def bundle(tmp_path: Path) -> EvidenceBundle:
    with closing(written(tmp_path / "ledger.db")) as ledger:
        return build_bundle(ledger, RUN)


def test_the_end_is_that_of_its_report(bundle: EvidenceBundle) -> None:
    ending = bundle.ending
    assert (ending.outcome, ending.confidence) == (RunOutcome.PASSED, Confidence.MEDIUM)
    assert ending.reasons == (ConfidenceReason(reason="lint could not be run", remedy="a linter that runs here"),)
    assert bundle.subject.agents["planner"] == "script:agents.yaml → api:openai:gpt-5"


def test_its_parts_are_named_with_how_they_ended(bundle: EvidenceBundle) -> None:
    assert [(one.run_id, one.kind, one.iteration, one.outcome) for one in bundle.children] == [
        (PLAN, "plan", 1, "passed"),
        (FIRST, "gate", 1, "failed"),
        (SECOND, "gate", 2, "passed"),
    ]


def test_the_one_commit_is_taken_back_and_no_commit_of_a_task(bundle: EvidenceBundle) -> None:
    (commit,) = bundle.commits
    assert (commit.commit, commit.tree, commit.parent) == (COMMIT, TREE, BASE)
    assert bundle.rollback == f"git revert --no-edit {COMMIT}"


def test_checks_stand_by_task_before_and_after(bundle: EvidenceBundle) -> None:
    seen = {(tree.iteration, tree.task): tree for tree in bundle.checks}
    assert set(seen) == {(1, "task-01"), (2, "task-01"), (1, "final")}
    (first,), (second,) = seen[1, "task-01"].lines, seen[2, "task-01"].lines
    assert (first.before, first.after, first.is_regression) == (Verdict.PASS, Verdict.FAIL, True)
    assert (second.before, second.after, second.is_regression) == (Verdict.FAIL, Verdict.PASS, False)
    assert [(probe.what, probe.state) for probe in second.probes] == [("must-fail", Verdict.FAIL)]
    assert [(line.name, line.after) for line in seen[1, "final"].lines] == [
        ("tests", Verdict.PASS),
        ("lint", Verdict.UNVERIFIABLE),
    ]


def test_a_regression_of_a_plan_that_was_replaced_is_told_and_stands_no_more(bundle: EvidenceBundle) -> None:
    assert [(one.task, one.what, one.stands) for one in bundle.regressions] == [
        ("task-01", "test_total passed on the base and fails now", False)
    ]


def test_reviews_have_verdict_findings_and_model_by_focus_and_round(bundle: EvidenceBundle) -> None:
    seen = {(one.focus.value, one.round): one for one in bundle.reviews}
    assert len(seen) == len(bundle.reviews) == 6
    asked = seen["correctness", 1]
    assert (asked.verdict, asked.severity, asked.model) == ("needs_revision", "major", "openai:gpt-5")
    assert asked.findings is not None
    assert asked.findings[Severity.MAJOR] == 1
    assert len(asked.rows) == 2
    assert bundle.one_model is True


def test_one_reviewer_is_no_panel_of_one_model_nor_of_several(bundle: EvidenceBundle) -> None:
    alone = tuple(one for one in bundle.reviews if one.focus is ReviewFocus.CORRECTNESS)
    assert (is_one_model(bundle.reviews, None), is_one_model(alone, None)) == (True, None)


def test_what_a_reviewer_finds_no_more_and_what_another_plan_overcame_was_put_right(bundle: EvidenceBundle) -> None:
    assert [(one.title, one.source, one.how) for one in bundle.fixed_issues] == [
        ("Rounding loses a cent", "review code/correctness, round 1", "not found again in round 2"),
        (
            "VERIFY_FAILURE: `pytest -q` ended with exit code 1",
            "task-01, attempt 1",
            "another plan passed in its place",
        ),
    ]


def test_the_loss_is_followed_through_tasks_and_replans(bundle: EvidenceBundle) -> None:
    assert [(one.of, one.number, one.direction.loss.L) for one in bundle.losses] == [
        ("task-01", 1, 0.9),
        ("run", 1, 0.8),
    ]


def test_cost_is_by_role_and_model_over_all_parts(bundle: EvidenceBundle) -> None:
    assert [(one.role, one.model, one.dispatches) for one in bundle.costs] == [
        ("planner", "openai:gpt-5", 1),
        ("executor", "openai:gpt-5", 1),
    ]
    spent = bundle.spent
    assert (bundle.dispatches, spent.requests, spent.tokens, spent.tool_calls) == (2, 4, 4000, 2)
    assert spent.usd == pytest.approx(0.08)


def test_a_step_is_one_line_of_the_timeline(bundle: EvidenceBundle) -> None:
    assert [(one.part, one.step, len(one.rows)) for one in bundle.timeline] == [
        ("", "plan/r1", 2),
        ("gate 2", "task-01/execute", 2),
    ]


def test_overrides_and_approvals_are_there_with_who_decided(bundle: EvidenceBundle) -> None:
    assert [(one.task, one.action, one.by) for one in bundle.overrides] == [("task-02", "skip", "ada")]
    (approval,) = bundle.approvals
    assert (approval.gate, approval.option, approval.auto_selected) == ("gate-post-planning", "approve", False)
    assert approval.words == "go on, but keep the old names"


def test_a_run_that_has_not_ended_says_so_and_has_what_there_is(tmp_path: Path) -> None:
    with closing(written(tmp_path / "ledger.db", upto="report")) as ledger:
        bundle = build_bundle(ledger, RUN)
    assert (bundle.ending.outcome, bundle.ending.confidence) == (None, None)
    assert (bundle.commits, bundle.rollback) == ((), "")
    assert [(one.path, one.by_path_alone) for one in bundle.changed] == [("shop/tax.py", True)]
    assert [one.title for one in bundle.known_issues] == ["no test fails without the change"]
    assert "**NOT FINISHED**" in render_bundle_page(bundle)
    assert "nothing was committed" in render_bundle_html(bundle)


def test_a_run_that_went_on_after_its_report_has_not_ended(tmp_path: Path) -> None:
    with closing(written(tmp_path / "ledger.db")) as ledger:
        ledger.append(
            EventRow(run_id=RUN, type="run.resumed"),
            EventRow(run_id=RUN, type="pipeline.step", payload={"step": "plan/r2", "asked": "0" * 64}),
        )
        assert build_bundle(ledger, RUN).ending.outcome is None


@pytest.mark.seed("pipeline", "bundle")
def test_every_value_names_rows_of_this_run(tmp_path: Path) -> None:
    with closing(written(tmp_path / "ledger.db")) as ledger:
        bundle = build_bundle(ledger, RUN)
        known = {stored.seq for run in (RUN, PLAN, FIRST, SECOND) for stored in read_all_rows(ledger, run)}
        last: StoredRow[FrozenModel] = max(read_all_rows(ledger), key=lambda stored: stored.seq)
    for one in sourced(bundle):
        assert one.rows, one
        assert set(one.rows) <= known, one
    assert (bundle.head.seq, bundle.head.hash) == (last.seq, last.link.hash)


def test_what_others_add_to_the_ledger_changes_nothing(tmp_path: Path) -> None:
    with closing(written(tmp_path / "ledger.db")) as ledger:
        before = build_bundle(ledger, RUN)
        ledger.append(EventRow(run_id="20270101T000000Z-ffffff", type="run.started", payload={"command": "check"}))
        assert build_bundle(ledger, RUN) == before


def test_last_means_the_run_and_not_a_part_of_it(tmp_path: Path) -> None:
    with closing(written(tmp_path / "ledger.db")) as ledger:
        assert [one.run_id for one in list_bundled_runs(ledger)] == [RUN, SECOND, FIRST]
        assert list(read_run_configs(ledger, PipelineRunConfig)) == [RUN]
        part = build_bundle(ledger, SECOND)
    assert (part.subject.command, [task.id for task in part.tasks]) == ("gate", ["task-01"])


@pytest.mark.parametrize(("run", "what"), [(PLAN, "proofstone verify-plan"), ("nobody", "no run in the ledger")])
def test_other_runs_have_no_bundle(tmp_path: Path, run: str, what: str) -> None:
    with closing(written(tmp_path / "ledger.db")) as ledger, pytest.raises(InputError, match=what):
        build_bundle(ledger, run)


def test_reports_of_a_task_are_written_from_the_bundle(bundle: EvidenceBundle) -> None:
    documents = build_task_documents(bundle)
    assert set(documents) == {
        "implementation-reports/task-01-i2.yaml",
        "verification-reports/task-01-i2.yaml",
        "verification-ledger.yaml",
    }
    assert 'gate_status: "passed"' in documents["verification-reports/task-01-i2.yaml"]


@pytest.mark.parametrize("name", ["evidence-bundle.md", "evidence-bundle.html"])
@pytest.mark.seed("pipeline", "bundle")
def test_the_page_is_what_was_reviewed(bundle: EvidenceBundle, name: str) -> None:
    named = bundle.model_copy(update={"head": LedgerHead(ledger_id="ledger", seq=bundle.head.seq, hash="0" * 64)})
    text = (render_bundle_page if name.endswith(".md") else render_bundle_html)(named)
    if os.environ.get(RENEW):
        GOLDEN.mkdir(exist_ok=True)
        (GOLDEN / name).write_text(text, encoding="utf-8")
    assert (GOLDEN / name).is_file(), HOW
    assert text == (GOLDEN / name).read_text(encoding="utf-8"), HOW


def sourced(value: object) -> Iterator[SourcedValue]:
    """Everything in it that has rows of its own."""
    if isinstance(value, SourcedValue):
        yield value
    if isinstance(value, FrozenModel):
        for name in type(value).model_fields:
            yield from sourced(getattr(value, name))
    elif isinstance(value, tuple):
        for one in value:
            yield from sourced(one)
