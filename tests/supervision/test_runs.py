"""Executors that are asked if they know what they are doing, from end to end; only the agents are scripted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.supervision.stage import IMPACT, PLAN, UNDERSTANDS, VERIFY, WORK, Stage, analysis, executor, judge, says

STRAY = {"tool": {"run": {"command": "printf 'x = 1\\n' > shop/other.py"}}}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage.set_up(tmp_path / "stage")


def mini(impact: str, files: str = "shop/one.py, tests/test_one.py") -> str:
    return (
        "[REVERIFY-RESPONSE] Phase 6 | Level 3\n\n## Abbreviated Re-IA\n"
        "- RC-01 (Task Understanding): A function that gives 1, as before.\n"
        f"- RC-04 (File List): {files}\n"
        "- RC-07 (Downstream Chain): Nothing rests on it.\n\n## Change Summary\n"
        "- Original IA claimed: two new files\n- Current reality: as it says above\n"
        f"- Impact: {impact}\n"
    )


@pytest.mark.seed("continuity", "self-locate-prompt")
def test_one_who_understands_goes_to_work_and_is_committed(stage: Stage) -> None:
    came = stage.gate(*UNDERSTANDS, judge(), executor())
    assert (came.exit, came.task["state"], came.task["attempts"]) == (0, "APPROVED", 1), came.json
    assert stage.asked() == ["impact", "plan"]
    assert came.task["confidence"] == "high"
    begins = [one["told"]["text"] for one in stage.messages(stage.runs[-1], "Attended") if one["told"]][-1]
    assert "[SELF-LOCATE] Phase {N}" in begins


@pytest.mark.ci
def test_nobody_to_judge_caps_the_confidence(stage: Stage) -> None:
    came = stage.gate(*UNDERSTANDS, executor())
    assert (came.exit, came.task["confidence"]) == (0, "medium")


@pytest.mark.ci
@pytest.mark.seed("continuity", "rc-engine-items")
def test_what_it_says_about_the_repository_is_looked_up(stage: Stage) -> None:
    """A signature that is not so, and a file that is not there: two items, so it is asked, and puts them right."""
    wrong = analysis(
        interfaces=[{"path": "shop/cart.py", "symbol": "total", "signature": "def total(prices, rate)"}],
        upstream=[{"artifact": "docs/design.md", "says": "how it is to be"}],
    )
    says_wrong = {"role": "executor", "match": {"asked": "impact"}, "output": wrong}
    answer = says(
        "challenge", "[CHALLENGE-RESPONSE] Phase 6 | It is def total(prices), and there is no design document."
    )
    came = stage.gate(says_wrong, answer, PLAN, judge(), executor())
    assert came.exit == 0, came.json
    assert stage.asked() == ["impact", "challenge", "plan"]
    (asked,) = [line for line in stage.transcript() if line.startswith("[CHALLENGE]")]
    assert "Category: INTERCONNECTION_MAP" in asked and "docs/design.md" in asked and "2 parameters" not in asked


@pytest.mark.seed("continuity", "entry-gate")
def test_one_who_does_not_understand_is_replaced_and_the_next_is_told(stage: Stage) -> None:
    lost = judge("pass", "RC-01", "RC-06", "RC-10", detail="it speaks of another task", attempt=1)
    came = stage.gate(*UNDERSTANDS, lost, judge(), executor())
    assert (came.exit, came.task["attempts"]) == (0, 2), came.json
    assert came.reasons == ["continuity"]
    assert stage.asked() == ["impact", "impact", "impact", "impact", "plan"]
    assert "[IMPACT_REJECTED] Phase 6" in "\n".join(stage.transcript())


@pytest.mark.ci
def test_a_plan_for_files_that_are_not_its_own_is_sent_back(stage: Stage) -> None:
    wide = says(
        "plan.1",
        "[PLAN] Phase 6 | Files: shop/one.py, shop/cart.py | Changes: a lot | Risk: 🟡 | Interface Impact: none",
    )
    came = stage.gate(IMPACT, wide, PLAN, judge(), executor())
    assert came.exit == 0
    assert stage.asked() == ["impact", "plan", "plan"]
    assert [line for line in stage.transcript() if line.startswith("[REJECTED]")] == [
        "[REJECTED] Phase 6 | Reason: shop/cart.py is not a file of the task"
    ]


@pytest.mark.seed("continuity", "t6-deviation")
def test_one_that_wanders_off_is_stopped_before_its_checks(stage: Stage) -> None:
    """It hides the file three times: another one begins, from a clean tree, and nothing of the first was checked."""
    hides = says("RV-3", mini("NONE"), attempt=1)
    came = stage.gate(*UNDERSTANDS, judge(), hides, executor(STRAY, *WORK, attempt=1), executor())
    assert (came.exit, came.task["attempts"]) == (0, 2), came.json
    assert set(came.reasons) == {"continuity", "claim-mismatch"}
    assert stage.asked() == ["impact", "plan", "RV-3", "RV-3", "RV-3", "impact", "plan"]
    run = stage.runs[-1]
    assert {one["attempt"] for one in stage.rows(run, "task-01")} == {2}, "nothing was checked before"
    assert "other" not in stage.workshop.git(stage.root, "ls-tree", "-r", "--name-only", str(came.json["branch"]))


@pytest.mark.seed("continuity", "t6-approach")
def test_one_that_changes_more_than_its_plan_named_explains_itself(stage: Stage) -> None:
    """The test is among the files of its task, but its approved plan was to write the module alone."""
    module_only = says(
        "plan", "[PLAN] Phase 6 | Files: shop/one.py | Changes: a module | Risk: 🟢 | Interface Impact: none"
    )
    came = stage.gate(IMPACT, module_only, judge(), says("RV-3", mini("NONE")), executor())
    assert (came.exit, came.task["attempts"]) == (0, 1), came.json
    assert stage.asked() == ["impact", "plan", "RV-3"]
    (asked,) = [one["told"]["text"] for one in stage.messages(stage.runs[-1], "Attended") if one["told"]][-2:-1]
    assert "RV-3" in asked or "Level 3" in asked


@pytest.mark.ci
@pytest.mark.seed("continuity", "rv3-justified")
def test_a_deviation_that_is_owned_up_to_becomes_a_part_of_the_task(stage: Stage) -> None:
    honest = says("RV-3", mini("MINOR_ADJUSTMENT", "shop/one.py, tests/test_one.py, shop/other.py (NEW)"))
    claim = {"status": "success", "files_modified": ["shop/one.py", "tests/test_one.py", "shop/other.py"]}
    came = stage.gate(*UNDERSTANDS, judge(), honest, executor(STRAY, *WORK, output=claim))
    assert (came.exit, came.task["attempts"]) == (0, 1), came.json
    assert stage.asked() == ["impact", "plan", "RV-3"]
    (amended,) = stage.events(stage.runs[-1], "plan.amended")
    assert amended["files"] == ["shop/other.py"]


@pytest.mark.ci
@pytest.mark.seed("continuity", "t1-silence")
def test_silence_is_pinged_three_times_and_then_another_begins(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path / "stage", silence=0.5)
    silent = executor({"sleep": 60}, *WORK, attempt=1)
    came = stage.gate(*UNDERSTANDS, judge(), silent, executor())
    assert (came.exit, came.task["attempts"]) == (0, 2), came.json
    pings = [line for line in stage.transcript() if line.startswith("[REVERIFY] Phase 6 | Level 1")]
    assert len(pings) == 3
    assert "3 pings were not answered" in came.task["failures"][0]["error"]


def test_a_script_that_has_no_answer_is_not_asked_and_that_is_on_record(stage: Stage) -> None:
    came = stage.gate(executor())
    assert (came.exit, came.task["confidence"]) == (0, "high")
    assert stage.asked() == []
    (why,) = stage.events(stage.runs[-1], "understanding.not-applicable")
    assert why["why"] == "not applicable: script has no answer to it"


@pytest.mark.few(1, ci=2)
@pytest.mark.parametrize("point", ["agent.after-turn:2", "agent.after-turn:4"])
def test_a_kill_in_the_middle_of_it_repeats_no_question(stage: Stage, point: str) -> None:
    honest = says("RV-3", mini("MINOR_ADJUSTMENT", "shop/one.py, tests/test_one.py, shop/other.py (NEW)"))
    where = says("RV-1", "[SELF-LOCATE] Phase 6 | Task 1/1 | Step: goes on | Progress: 0% | MCP: 0 | Docs: missing")
    entries = (*UNDERSTANDS, judge(), honest, where, executor(STRAY, *WORK, output={"status": "success"}))
    done = stage.proofstone(*stage.arguments(entries), env={"PROOFSTONE_FAULT": point})
    assert done.returncode < 0, done.stderr
    came = stage.proofstone("resume", "last", "--json", "--quiet")
    assert came.returncode == 0, came.stdout + came.stderr
    assert [one for one in stage.asked() if one != "RV-1"] == ["impact", "plan", "RV-3"]


@pytest.mark.ci
@pytest.mark.seed("continuity", "escalation")
def test_one_that_answers_a_question_wrongly_must_analyse_its_work(stage: Stage) -> None:
    """It has run its verify command without one look at anything, and cannot say what it rests on."""
    verify = {"tool": {"run": {"command": VERIFY}}}
    wrong = says("RV-2", "[REVERIFY-RESPONSE] Phase 6 | Level 2 | I take nothing for granted.")
    came = stage.gate(*UNDERSTANDS, judge(), wrong, says("RV-3", mini("NONE")), executor(*WORK, verify))
    assert (came.exit, came.task["attempts"]) == (0, 1), came.json
    assert stage.asked() == ["impact", "plan", "RV-2", "RV-3"]
