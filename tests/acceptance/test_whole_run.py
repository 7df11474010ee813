"""A whole run in which all goes well: every step is there, every document is where it belongs and of its form, and
nobody had to say anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofstone.agents.models import OutputHeader
from proofstone.agents.roles.registry import ROLES
from proofstone.common.models import Lane
from proofstone.pipeline.rules.planning import LANE_DEPTHS
from tests.acceptance.conftest import Ended
from tests.export import checks
from tests.export.reading import HOSTS, exported
from tests.pipeline.stage import FOCI, RESEARCH

ROOT = Path(__file__).parents[2]
STEPS = {
    "research ×4": "SELECT COUNT(*) = 4 FROM pipeline_telemetry WHERE step = 'research/r1' AND status = 'DONE'",
    "approval": "SELECT COUNT(*) = 2 FROM approvals WHERE gate IN ('gate-post-research', 'gate-post-planning')",
    "specification": "SELECT COUNT(*) = 1 FROM pipeline_telemetry WHERE agent = 'specifier' AND status = 'DONE'",
    "design": "SELECT COUNT(*) = 1 FROM pipeline_telemetry WHERE agent = 'designer' AND status = 'DONE'",
    "design review ×3": "SELECT COUNT(*) = 3 FROM checks WHERE check_name LIKE 'review-design-%'",
    "plan": "SELECT COUNT(*) = 1 FROM pipeline_telemetry WHERE agent = 'planner' AND status = 'DONE'",
    "plan gate": "SELECT COUNT(*) = 1 FROM runs WHERE run_id LIKE '%-p1'",
    "tasks": "SELECT COUNT(*) = 1 FROM runs WHERE run_id LIKE '%-g1'",
    "whole cascade": "SELECT COUNT(*) > 2 FROM checks WHERE task_id = 'final' AND phase = 'after' AND passed = 1",
    "code review ×3": "SELECT COUNT(*) = 3 FROM checks WHERE check_name LIKE 'review-code-%'",
    "knowledge": "SELECT COUNT(*) = 1 FROM pipeline_telemetry WHERE agent = 'knowledge' AND status = 'DONE'",
    "commit": "SELECT COUNT(*) = 1 FROM events WHERE json_extract(payload, '$.step') = 'commit'",
}
"""Each step of the whole pipeline, and the question to the ledger that shows that it was taken."""


# AC-1: everything that the architecture names is there.


def test_ac_01_every_step_of_the_table_is_told_of() -> None:
    """AC-1. The seed wants its design document to be complete. Here the table of steps is a value, from which the
    documentation is made; each of them is asked for in the ledger below."""
    assert set(LANE_DEPTHS[Lane.STANDARD].steps) == set(STEPS)
    text = (ROOT / "docs" / "run.md").read_text(encoding="utf-8")
    assert " → ".join(LANE_DEPTHS[Lane.STANDARD].steps) in text
    for gate in ("gate-post-research", "gate-pushback", "gate-post-planning", "The review gate", "plan gate"):
        assert gate in text


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.seed("pipeline", "steps")
def test_ac_01_every_step_of_the_table_was_taken(well: Ended, step: str) -> None:
    """AC-1: not only written down."""
    assert well.rows(STEPS[step]) == [(1,)], step


# AC-8: whatever is said is typed.

WRITTEN = {
    **{f"research/{focus}.yaml": "researcher" for focus in RESEARCH},
    "spec-output.yaml": "specifier",
    "design-output.yaml": "designer",
    "plan-output.yaml": "planner",
    **{f"review-verdicts/{scope}-{focus}-r1.yaml": "reviewer" for scope in ("design", "code") for focus in FOCI},
    "knowledge-output.yaml": "knowledge",
}


@pytest.mark.parametrize(("name", "role"), WRITTEN.items(), ids=WRITTEN)
@pytest.mark.seed("pipeline", "output-header")
def test_ac_08_every_answer_is_typed_yaml_with_the_engines_header(well: Ended, name: str, role: str) -> None:
    """AC-8. As it is written down, it is still of the contract of its role."""
    header = OutputHeader.model_validate(well.yaml(name))
    assert (header.agent, header.schema_version) == (role, ROLES[role].schema_version)
    assert header.instance.partition(":")[0] == role
    assert header.started_at <= header.completed_at
    assert ROLES[role].output.model_validate(header.payload)


def test_ac_08_whoever_is_asked_is_given_a_contract_and_its_schema(well: Ended) -> None:
    """AC-8: in and out."""
    for message in well.stage.messages(well.report.run_id, "Dispatch"):
        role = ROLES[message["occasion"]["role"]]
        assert {"input", "output"} <= set(vars(role))
        assert message["request"]["text"].startswith(f"# {role.title}")


# AC-10, of a run on its own: the defaults are taken, and that is recorded.


@pytest.mark.seed("pipeline", "gate-research")
def test_ac_10_on_its_own_it_takes_the_defaults_and_records_that(well: Ended) -> None:
    """AC-10, autonomous: with the fields of the seed's approval_log."""
    log = well.yaml("approvals.yaml")["approval_log"]
    fields = ("gate_id", "timestamp", "mode", "selected_option", "auto_selected", "user_response_raw")
    assert [tuple(one) for one in log] == [fields] * 2
    assert [(one["gate_id"], one["selected_option"], one["auto_selected"]) for one in log] == [
        ("gate-post-research", "proceed", True),
        ("gate-post-planning", "approve", True),
    ]
    assert {one["mode"] for one in log} == {"autonomous"}


# AC-11: from the request to the end, without anybody.


def test_ac_11_a_run_goes_from_the_request_to_a_commit_and_nobody_is_asked(well: Ended) -> None:
    """AC-11. Its end is named, what was checked is what is committed, and the ledger verifies."""
    report, stage = well.report, well.stage
    assert (well.came.exit, report.outcome.value, report.waiting) == (0, "passed", None)
    assert stage.git("rev-parse", report.branch) == report.commit
    assert stage.git("rev-parse", f"{report.commit}^{{tree}}") == report.tree
    assert report.final is not None
    assert report.final.tree == report.tree
    assert stage.git("rev-list", "--count", f"{report.base_commit}..{report.branch}") == "1"
    assert stage.proofstone("ledger", "verify").returncode == 0
    assert stage.events(report.run_id, "run.finished")[-1]["outcome"] == "passed"


# AC-14: everything in its place.

LAYOUT = {
    *WRITTEN,
    *(name.replace("yaml", "md") for name in WRITTEN if name.startswith("research/")),
    *(name.replace("verdicts", "findings").replace("yaml", "md") for name in WRITTEN if "verdicts" in name),
    *("initial-request.md", "feature.md", "design.md", "plan.md", "tasks/task-01.yaml"),
    *("implementation-reports/task-01.yaml", "verification-reports/task-01.yaml", "verification-ledger.yaml"),
    *("approvals.yaml", "decisions.yaml", "evidence-bundle.md"),
}


@pytest.mark.seed("pipeline", "file-layout")
def test_ac_14_every_document_is_at_its_place(well: Ended) -> None:
    """AC-14. The seed's layout, in a folder of the run's own; reviews are called by focus and round, not by model
    (definitions, Pipeline)."""
    there = {str(path.relative_to(well.folder)) for path in well.folder.rglob("*") if path.is_file()}
    assert there >= LAYOUT, LAYOUT - there
    assert well.folder.parent == well.stage.root / ".proofstone"
    assert well.stage.git("status", "--porcelain") == "", "and nothing of it is in the way of the person's work"


@pytest.mark.seed("pipeline", "definitions-exported")
def test_ac_14_the_definitions_are_exported_into_the_seeds_folders() -> None:
    """AC-14: fourteen files, the diagram in the README among them."""
    assert list(checks.layout(HOSTS["copilot"], exported("copilot"))) == []


# EC-9: three reviewers who are one model.


@pytest.mark.seed("pipeline", "model-fallback")
def test_ec_09_one_model_in_three_foci_goes_on_and_says_that_it_is_one(well: Ended) -> None:
    """EC-9. The fallback is the seed's, and is recorded: in the report, in the setup, and where a person reads."""
    assert well.report.single_model
    assert well.report.notes[0].startswith("perspective-diverse fallback: ")
    (begun,) = (one for one in well.stage.events(well.report.run_id, "run.started"))
    assert "perspective-diverse fallback" in json.dumps(begun)
    bundle = (well.folder / "evidence-bundle.md").read_text(encoding="utf-8")
    assert "One model served all reviewers, each with a focus of its own" in bundle
    assert "perspective-diverse fallback" in bundle


def test_ec_09_where_they_are_three_nothing_of_the_kind_is_said(red: Ended) -> None:
    """EC-9: so that the warning means something."""
    assert not red.report.single_model
    assert "fallback" not in "".join(red.report.notes)
    assert "One model served" not in (red.folder / "evidence-bundle.md").read_text(encoding="utf-8")
