"""The monitor, trigger by trigger, rung by rung, limit by limit."""

from __future__ import annotations

import pytest

from proofstone.agents.rules.routes import SERVED_ROLES
from proofstone.common.models import Lane, Verdict
from proofstone.supervision.models.events import (
    AgentEvent,
    AnswerUnreadable,
    ApproachDiffers,
    AskQuestion,
    AttemptEnded,
    CauseNoticed,
    ContextChanged,
    CriteriaChecked,
    EngineRestarted,
    FileChanged,
    GateEntered,
    GatePassed,
    QuestionDelayed,
    ReportUpdated,
    RespawnAgent,
    ResultClaimed,
    ResumeWork,
    TaskStarted,
    TimePassed,
    ToolUsed,
    TurnStarted,
    UpdateContext,
)
from proofstone.supervision.models.ladder import AnswerResult, DocsStatus, ReverifyLevel, ReverifyTrigger
from proofstone.supervision.models.understanding import SupervisionTier
from proofstone.supervision.rules.monitor_state import (
    TRIGGERS,
    AgentProfile,
    SupervisionLimits,
    explain_exemption,
    find_tier,
)
from proofstone.supervision.rules.monitor_step import LADDER_MOVES, LadderMove
from tests.rows import each_row
from tests.supervision.watching import SAID, WORKED, Watching, graded, kept, located, scored

STRAYS = FileChanged(path="src/other.py")
NEXT = TaskStarted(task="two", number=2, total=2, files=("src/b.py",))
SCOPE = ContextChanged(version=5, what="rate limiting")
GAP = graded(Verdict.FAIL)
INTACT, JUSTIFIED, UNJUSTIFIED = (
    scored(one) for one in (AnswerResult.INTACT, AnswerResult.JUSTIFIED, AnswerResult.UNJUSTIFIED)
)
STALE = located(DocsStatus.STALE)

# What sets it off.


@pytest.mark.seed("continuity", "trigger-levels")
def test_the_triggers_begin_at_the_levels_of_the_rules() -> None:
    assert {trigger.value: row.level.value for trigger, row in TRIGGERS.items()} == {
        "T1": 1,
        "T2": 1,
        "T3": 2,
        "T5": 2,
        "T6": 3,
        "T7": 1,
    }


@each_row(
    ("events", "trigger"),
    [
        ((STALE, STALE), ReverifyTrigger.STALE_DOCS),
        ((ReportUpdated(), FileChanged(path="src/a.py"), located(), located()), ReverifyTrigger.STALE_DOCS),
        ((SCOPE,), ReverifyTrigger.SCOPE_CHANGE),
        ((CriteriaChecked(met=3, total=4),), ReverifyTrigger.LOW_TOOL_USE),
        ((STRAYS,), ReverifyTrigger.DEVIATION),
        ((ResultClaimed(status="success", files=("src/other.py",)),), ReverifyTrigger.DEVIATION),
        ((ApproachDiffers(why="it caches"),), ReverifyTrigger.DEVIATION),
        ((EngineRestarted(),), ReverifyTrigger.RECOVERY),
        ((STALE,), None),
        ((STALE, located(), STALE), None),
        ((FileChanged(path="src/a.py"), located(), located()), None),
        ((CriteriaChecked(met=2, total=4),), None),
        ((ToolUsed(name="read"), CriteriaChecked(met=4, total=4)), None),
        ((FileChanged(path="src/a.py"),), None),
        ((FileChanged(path="src/__init__.py"),), None),
        ((ResultClaimed(status="success", files=("src/a.py",)),), None),
        ((NEXT,), None),
        ((TimePassed(),), None),
    ],
)
@pytest.mark.seed("continuity", "t6-deviation")
def test_what_sets_it_off_and_what_does_not(events: tuple[AgentEvent, ...], trigger: ReverifyTrigger | None) -> None:
    at = Watching(TurnStarted())
    at.see(*events, WORKED)
    causes = [one.cause.trigger for one in at.decided if isinstance(one, CauseNoticed)]
    assert causes == ([trigger] if trigger else [])
    asked = [one.asked.level for one in at.decided if isinstance(one, AskQuestion)]
    assert asked == ([TRIGGERS[trigger].level] if trigger else [])


@pytest.mark.parametrize(("minutes", "decided"), [(15, []), (15.1, ["noticed", "ask 1"])])
@pytest.mark.seed("continuity", "t1-silence")
def test_silence_is_more_than_fifteen_minutes_of_its_own_turn(minutes: float, decided: list[str]) -> None:
    assert Watching(TurnStarted()).after(minutes, TimePassed()) == decided
    assert Watching(TurnStarted(), WORKED).after(minutes, TimePassed()) == []


def test_whatever_it_does_ends_the_silence_and_what_the_engine_does_does_not() -> None:
    at = Watching(TurnStarted())
    at.after(10, ToolUsed(name="read"))
    assert at.after(10, TimePassed()) == []
    assert at.after(6, CriteriaChecked(met=0, total=4), TimePassed()) == ["noticed", "ask 1"]


def test_a_ping_for_silence_waits_for_no_boundary() -> None:
    at = Watching(TurnStarted())
    at.after(16, TimePassed())
    (asked,) = [one for one in at.decided if isinstance(one, AskQuestion)]
    assert asked.at_once


@pytest.mark.seed("continuity", "t5-low-use")
def test_low_use_is_noticed_once_in_a_task() -> None:
    at = Watching(TurnStarted())
    seen = CriteriaChecked(met=3, total=4)
    assert at.see(seen, seen) == ["noticed"]


def test_a_program_with_tools_of_its_own_is_not_asked_how_often_it_looks() -> None:
    watched = AgentProfile(agent="implementer-1", role="executor", own_tools=True)
    assert Watching(TurnStarted(), watched=watched).see(CriteriaChecked(met=4, total=4)) == []


# The ladder.


def test_every_answer_of_every_level_leads_somewhere() -> None:
    answers = {
        ReverifyLevel.PING: {AnswerResult.FITS, AnswerResult.ANOMALY, AnswerResult.UNANSWERED},
        ReverifyLevel.QUESTION: {
            AnswerResult.UNDERSTOOD,
            AnswerResult.GAP,
            AnswerResult.UNVERIFIABLE,
            AnswerResult.UNANSWERED,
        },
        ReverifyLevel.ANALYSIS: {
            AnswerResult.INTACT,
            AnswerResult.JUSTIFIED,
            AnswerResult.UNJUSTIFIED,
            AnswerResult.UNANSWERED,
        },
    }
    assert set(LADDER_MOVES) == {(level, one) for level, some in answers.items() for one in some}
    assert not [
        key for key, move in LADDER_MOVES.items() if move is LadderMove.ESCALATE and key[0] is ReverifyLevel.ANALYSIS
    ]


PINGED, ASKED, ANALYSED = EngineRestarted(), SCOPE, STRAYS
"""At a boundary each leads to a question at once."""


@each_row(
    ("opened", "answer", "decided"),
    [
        (PINGED, located(), ["resume"]),
        (PINGED, located(DocsStatus.CURRENT, "it is elsewhere"), ["escalate", "ask 2"]),
        (PINGED, TimePassed(), ["ask 1"]),
        (PINGED, AnswerUnreadable(why="nothing of the kind"), ["ask 1"]),
        (ASKED, graded(), ["resume"]),
        (ASKED, graded(Verdict.UNVERIFIABLE), ["resume"]),
        (ASKED, GAP, ["escalate", "ask 3"]),
        (ASKED, TimePassed(), ["escalate", "ask 3"]),
        (ANALYSED, INTACT, ["resume"]),
        (ANALYSED, JUSTIFIED, ["update_context"]),
        (ANALYSED, UNJUSTIFIED, ["correct", "ask 3"]),
        (ANALYSED, TimePassed(), ["correct", "ask 3"]),
        (PINGED, graded(), ["ask 1"]),
        (ASKED, located(), ["escalate", "ask 3"]),
        (ANALYSED, graded(), ["correct", "ask 3"]),
    ],
)
@pytest.mark.seed("continuity", "escalation")
def test_what_follows_from_an_answer(opened: AgentEvent, answer: AgentEvent, decided: list[str]) -> None:
    """The last three answer something that was not asked."""
    at = Watching(opened)
    assert at.see(answer, SAID) == decided


def test_an_open_question_has_patience_with_tool_calls() -> None:
    at = Watching(ASKED, limits=SupervisionLimits(patience_turns=3))
    assert at.see(WORKED, WORKED) == []
    assert at.see(WORKED) == ["escalate", "ask 3"]


@pytest.mark.seed("continuity", "t2-stale-docs")
def test_documents_that_are_still_stale_lead_from_the_ping_to_a_question() -> None:
    at = Watching(TurnStarted(), STALE, STALE)
    assert at.see(WORKED) == ["ask 1"]
    assert at.see(STALE, SAID) == ["escalate", "ask 2"]


def test_a_justified_deviation_is_declared_from_then_on() -> None:
    at = Watching(STRAYS)
    at.see(scored(AnswerResult.JUSTIFIED, amended=("src/other.py",)), SAID)
    assert [one.files for one in at.decided if isinstance(one, UpdateContext)] == [("src/other.py",)]
    assert at.see(TurnStarted(), STRAYS, WORKED) == []


@pytest.mark.parametrize(
    ("verdict", "caps"), [(Verdict.PASS, False), (Verdict.UNVERIFIABLE, True)], ids=["judged", "unverifiable"]
)
def test_what_nobody_could_judge_caps_the_confidence_and_a_new_approach_needs_a_plan(
    verdict: Verdict, caps: bool
) -> None:
    at = Watching(ASKED)
    at.see(graded(verdict, changed_approach=True))
    (resumed,) = [one for one in at.decided if isinstance(one, ResumeWork)]
    assert (resumed.caps, resumed.plan_first) == (caps, True)


def test_a_cause_keeps_its_number_to_the_end_of_the_ladder() -> None:
    at = Watching(EngineRestarted())
    at.see(
        located(DocsStatus.CURRENT, "lost"), SAID, GAP, SAID, UNJUSTIFIED, SAID, UNJUSTIFIED, SAID, UNJUSTIFIED, SAID
    )
    (last,) = [one for one in at.decided if isinstance(one, RespawnAgent)]
    assert [cause.number for cause in last.causes] == [1]
    assert last.causes[0].level is ReverifyLevel.ANALYSIS


# Limits.


def test_three_pings_for_silence_without_an_answer_replace_it() -> None:
    at = Watching(TurnStarted())
    assert at.after(16, TimePassed()) == ["noticed", "ask 1"]
    assert at.after(16, TimePassed()) == ["ask 1"]
    assert at.after(16, TimePassed()) == ["ask 1"]
    assert at.after(16, TimePassed()) == ["respawn"]
    assert at.after(16, TimePassed(), STRAYS, EngineRestarted()) == []


def test_a_sign_of_life_answers_the_ping_and_one_that_does_not_fit_leads_further() -> None:
    at = Watching(TurnStarted())
    at.after(16, TimePassed())
    assert at.see(ToolUsed(name="read")) == ["resume"]
    at.after(16, TimePassed())
    assert at.see(located(DocsStatus.CURRENT, "it is elsewhere"), SAID) == ["escalate", "ask 2"]


@pytest.mark.parametrize("event", [NEXT, TurnStarted(), CriteriaChecked(met=0, total=1)])
def test_what_the_engine_does_is_no_answer_to_a_ping(event: AgentEvent) -> None:
    at = Watching(TurnStarted())
    at.after(16, TimePassed())
    at.see(event)
    assert not [one for one in at.decided if isinstance(one, ResumeWork) and one.why == "the agent is working"]


def test_three_pings_at_boundaries_without_an_answer_replace_it() -> None:
    assert Watching(PINGED).see(SAID, SAID, SAID) == ["ask 1", "ask 1", "respawn"]


@pytest.mark.seed("continuity", "escalation")
def test_three_refused_analyses_replace_it() -> None:
    at = Watching(STRAYS)
    assert at.see(UNJUSTIFIED, SAID, SAID) == ["correct", "ask 3", "correct", "ask 3"]
    assert at.see(UNJUSTIFIED) == ["correct", "respawn"]


@pytest.mark.seed("continuity", "limit-rv2")
def test_a_second_question_within_thirty_minutes_is_held_and_asked_later() -> None:
    at = Watching(SCOPE, graded(), SAID)
    assert at.after(10, SCOPE) == ["noticed", "held"]
    (held,) = [one for one in at.decided if isinstance(one, QuestionDelayed)]
    assert held.until == 30 * 60.0
    assert at.after(19.9, TimePassed()) == []
    assert at.after(0.1, TimePassed()) == ["ask 2"]


def test_a_held_question_is_spoken_for_by_an_analysis() -> None:
    at = Watching(SCOPE, graded(), SAID)
    at.see(SCOPE)
    assert at.see(STRAYS) == ["noticed", "ask 3"]
    assert at.see(INTACT, SAID) == ["resume"]
    assert at.monitor.open_causes == ()


def test_a_ping_does_not_wait_for_a_held_question() -> None:
    at = Watching(SCOPE, graded(), SAID)
    at.see(SCOPE)
    assert at.see(EngineRestarted()) == ["noticed", "ask 1"]


@pytest.mark.parametrize("second", [(STRAYS,), (SCOPE, GAP, SAID)], ids=["deviation", "gap"])
@pytest.mark.seed("continuity", "limit-rv3")
def test_a_second_cause_for_an_analysis_in_one_task_replaces_it(second: tuple[AgentEvent, ...]) -> None:
    at = Watching(STRAYS, INTACT, SAID)
    assert at.see(*second)[-1] == "respawn"


def test_another_task_has_an_analysis_of_its_own() -> None:
    at = Watching(STRAYS, INTACT, SAID, NEXT)
    assert at.see(STRAYS) == ["noticed", "ask 3"]


def test_more_deviations_belong_to_the_analysis_that_is_due_or_open() -> None:
    at = Watching(TurnStarted(), STRAYS)
    assert at.see(FileChanged(path="x.py"), WORKED, FileChanged(path="y.py")) == ["ask 3"]


def test_questions_about_a_task_end_with_it_and_a_changed_context_does_not() -> None:
    at = Watching(SCOPE)
    assert at.after(1, EngineRestarted(), NEXT) == ["held", "noticed", "ask 1", "resume", "held"]
    assert [one.trigger for one in at.monitor.open_causes] == [ReverifyTrigger.SCOPE_CHANGE]
    assert at.after(30, SAID) == ["ask 2"]


# Where nobody is asked.


@pytest.mark.seed("continuity", "no-rv-at-gate")
def test_at_the_understanding_gate_nothing_is_asked_and_only_the_context_is_kept_for_later() -> None:
    at = Watching(GateEntered(), TurnStarted())
    events = (STRAYS, STALE, STALE, CriteriaChecked(met=4, total=4), ApproachDiffers(why="x"), EngineRestarted(), SAID)
    assert at.see(*events) == []
    assert at.see(SCOPE) == ["noticed"]
    assert at.after(60, TurnStarted(), TimePassed(), SAID) == []
    assert at.see(GatePassed()) == ["ask 2"]


def test_a_question_that_is_open_when_a_gate_begins_waits_for_its_end() -> None:
    at = Watching(STRAYS, GateEntered())
    assert at.see(SAID, SAID, SAID, SAID) == []
    assert at.see(GatePassed()) == ["ask 3"]
    (first, again) = [one.asked for one in at.decided if isinstance(one, AskQuestion)]
    assert first == again


@pytest.mark.seed("continuity", "exempt")
def test_an_exempt_agent_is_never_asked() -> None:
    watched = AgentProfile(agent="reviewer-1", role="reviewer", exempt="tier 0")
    at = Watching(TurnStarted(), watched=watched)
    assert at.after(60, TimePassed(), STRAYS, SCOPE, EngineRestarted(), SAID) == []


@each_row("role", SERVED_ROLES)
@pytest.mark.seed("continuity", "exempt")
def test_the_tiers_are_those_of_the_rules(role: str) -> None:
    tiers = {
        "executor": SupervisionTier.IMPLEMENTER,
        "planner": SupervisionTier.ARCHITECT,
        "designer": SupervisionTier.ARCHITECT,
        "researcher": SupervisionTier.RESEARCHER,
    }
    assert find_tier(role) is tiers.get(role, SupervisionTier.EXEMPT)
    assert bool(explain_exemption(role, "api")) is (role not in tiers)


@each_row(
    ("backend", "takes_prompts", "asked"),
    [
        ("api", False, True),
        ("acp", False, True),
        ("script", False, True),
        ("cli", True, True),
        ("cli", False, False),
        ("cmd", True, False),
        ("human", True, False),
        ("unheard-of", True, False),
    ],
)
def test_who_can_be_asked_by_backend(backend: str, takes_prompts: bool, asked: bool) -> None:
    assert (explain_exemption("executor", backend, takes_prompts=takes_prompts) == "") is asked


@pytest.mark.parametrize("lane", Lane)
def test_short_lanes_are_exempt(lane: Lane) -> None:
    assert bool(explain_exemption("executor", "api", lane=lane)) is (lane in (Lane.DOCS, Lane.FIX))


# Interruption, and the end.


@pytest.mark.seed("continuity", "t7-recovery")
def test_after_a_restart_an_open_analysis_is_asked_again_as_the_same_submission() -> None:
    at = Watching(STRAYS, UNJUSTIFIED, SAID)
    at.monitor = kept(at.monitor)
    at.see(EngineRestarted())
    submissions = [one.asked.time for one in at.decided if isinstance(one, AskQuestion)]
    assert submissions == [1, 2, 2]
    assert [one.trigger for one in at.monitor.open_causes] == [ReverifyTrigger.DEVIATION, ReverifyTrigger.RECOVERY]


def test_time_without_an_engine_is_nobodys_silence() -> None:
    at = Watching(TurnStarted())
    at.after(16, TimePassed())
    assert at.after(600, EngineRestarted(), TimePassed()) == ["noticed", "ask 1"]
    assert at.after(15, TimePassed()) == []


def test_what_is_unsettled_when_the_work_is_handed_over_is_left_to_its_checks() -> None:
    at = Watching(STRAYS)
    assert at.see(SCOPE, AttemptEnded()) == ["noticed", "resume"]
    assert at.see(STRAYS, SCOPE, EngineRestarted()) == []
