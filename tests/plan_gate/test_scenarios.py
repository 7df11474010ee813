"""The plan gate end to end, with agents who say what is written for them: what came of every scene is a page that was
reviewed, and what the page cannot show is on record."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from proofstone.plan_gate.rules.decision import DECISION_TABLE
from tests.agents.web.site import Reply, running_site
from tests.plan_gate.reports import GOLDEN, matches_golden
from tests.plan_gate.scenes import DECISIONS, FAILURES, GREPS, SCENES
from tests.plan_gate.stage import (
    PlanGateResult,
    Stage,
    challenge,
    challenger,
    researcher,
    ruling,
    script,
    symbol,
    synthesizer,
    unknown,
)
from tests.plan_gate.test_rules_alone import PLANS

Play = Callable[[str], list[PlanGateResult]]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage.set_up(tmp_path_factory.mktemp("plan-gate") / "stage")


@pytest.fixture(scope="module")
def play(stage: Stage) -> Play:
    """What came of a scene, each time that it ended or paused; it is played once."""
    played: dict[str, list[PlanGateResult]] = {}

    def play(name: str) -> list[PlanGateResult]:
        if name not in played:
            scene = SCENES[name]
            came = [stage.verify(scene.entries, plan=scene.plan)]
            for answer in scene.answers:
                stage.cast(scene.entries)
                came.append(stage.resume(came[-1].run_id, "--answer", answer))
            played[name] = came
        return played[name]

    return play


@pytest.mark.few(8, ci=31)
@pytest.mark.parametrize("name", SCENES)
def test_a_scene_ends_with_the_report_that_was_reviewed(play: Play, name: str) -> None:
    scene = SCENES[name]
    *paused, last = play(name)
    assert [one.exit for one in paused] == [3] * len(scene.answers), [one.stderr for one in paused]
    assert last.exit == scene.exit, last.stderr
    assert last.convergence == scene.convergence
    matches_golden(f"{name}.md", last.masked)


@pytest.mark.parametrize("name", ["blocked", "proceed"])
def test_as_a_document_it_has_all_that_was_reviewed(play: Play, name: str) -> None:
    matches_golden(f"{name}.json", play(name)[-1].masked_document)


def test_every_page_belongs_to_a_scene() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == {*SCENES, *PLANS}


@pytest.mark.seed("plan-gate", "convergence-table")
def test_every_row_of_the_table_is_reached(play: Play) -> None:
    told = [play(name)[-1].report.reason for name in DECISIONS]
    ends = {row.when for row in DECISION_TABLE if row.verdict is not None or row.status == "BLOCKED"}
    assert ends <= set(told)
    on_the_way = {status for name in DECISIONS for status in play(name)[-1].convergence}
    assert on_the_way == {row.status.value for row in DECISION_TABLE}
    assert play("revise-strong")[-1].report.strong and not play("revise")[-1].report.strong


# A pause, and what the person says.


@pytest.mark.seed("plan-gate", "blocked-pause")
def test_a_pause_says_what_is_asked_and_how_to_answer(play: Play) -> None:
    (paused,) = play("blocked")
    (question,) = paused.report.questions
    assert (question.question, question.options) == ("Are prices whole?", ("whole", "in cents"))
    assert paused.report.verdict is None and paused.report.score is None
    assert f'--resume {paused.run_id} --answer "C1=…"' in paused.report.next_step


def test_an_answer_is_heard_in_the_next_iteration_and_is_the_persons(stage: Stage, play: Play) -> None:
    _, answered = play("answered")
    assert [(one.challenge, one.text, one.iteration) for one in answered.report.answers] == [("C1", "in cents", 1)]
    assert answered.report.iterations[1].user_responses == ("C1: in cents",)
    assert answered.report.evidence["C1"] == "person"
    told = [one["request"]["text"] for one in stage.messages(answered.run_id, "Dispatch")]
    assert sum("C1: in cents" in text for text in told) == 4, "challenger, resolve, synthesizer and the closing audit"


def test_a_second_pause_about_the_same_challenge_asks_again_and_does_not_take_the_old_answer(
    stage: Stage, play: Play
) -> None:
    first, second, last = play("asked-again")
    assert (first.exit, second.exit, last.exit) == (3, 3, 0)
    assert second.convergence == ["BLOCKED", "BLOCKED"]
    assert [(one.text, one.iteration) for one in last.report.answers] == [("in cents", 1), ("whole after all", 2)]
    before = stage.asked(last.run_id)
    again = stage.resume(last.run_id)
    assert (again.exit, again.report) == (0, last.report), "what has ended is shown, and nobody is asked"
    assert stage.asked(last.run_id) == before


def test_resumed_without_an_answer_it_asks_nobody_and_waits_on(stage: Stage, play: Play) -> None:
    (paused,) = play("blocked")
    before = len(stage.messages(paused.run_id, "Turn"))
    again = stage.resume(paused.run_id)
    assert (again.exit, again.masked) == (3, paused.masked)
    assert len(stage.messages(paused.run_id, "Turn")) == before


def test_an_answer_that_is_given_beforehand_is_used_when_it_is_asked_for(stage: Stage) -> None:
    done = stage.verify(SCENES["answered"].entries, "--answer", "c1 = in cents", "--answer", "C7=never asked")
    assert done.exit == 0
    assert [one.text for one in done.report.answers] == ["in cents"]
    assert "there was no question about C7" in done.stderr


# Guards.


@pytest.mark.seed("plan-gate", "excess-tagged")
def test_overflow_puts_off_what_there_is_no_room_for_and_a_graver_one_displaces_the_weakest(play: Play) -> None:
    (came,) = play("overflow")
    assert came.statuses["C6"] == "DEFERRED_SURFACED", "the challenger brought six"
    assert [one.id for one in came.report.challenges if "took its place" in one.resolution] == ["C4", "C5"]
    assert came.statuses["C10"] == "RESOLVED", "the one that blocks was discussed"
    assert len(came.events("displaced")) == 2 and len(came.events("overflow")) >= 3
    assert came.report.debt_warning
    assert came.report.verdict == "REVISE", "a SIGNIFICANT one was put off"
    assert all(
        sum(line.status in ("OPEN", "UNRESOLVED") for line in one.challenges) <= 8 for one in came.report.iterations
    )


def test_after_a_degradation_nobody_may_add_a_challenge(stage: Stage, play: Play) -> None:
    (came,) = play("degradation")
    (told,) = came.events("degradation")
    assert told.startswith("2 challenges came in and 0 ") and told.endswith("the next iteration may add none")
    asked = stage.asked(came.run_id)
    assert ("challenger", 2) in asked and ("challenger", 3) not in asked


@pytest.mark.seed("plan-gate", "debt-warning")
def test_what_was_put_off_is_a_debt_that_is_warned_of(play: Play) -> None:
    (came,) = play("debt")
    assert came.report.debt_warning and set(came.statuses.values()) == {"DEFERRED"}
    assert "## Technical Debt Warning" in came.masked


def test_the_whole_team_is_asked_once_and_all_of_it(stage: Stage, play: Play) -> None:
    (came,) = play("whole-team")
    assert {agent for agent, _ in stage.asked(came.run_id)} == {
        *("challenger", "domain_expert", "devils_advocate", "synthesizer", "challenger:audit"),
        *("researcher:resolve", "researcher:surface", "researcher:probe"),
    }
    assert [one.origin for one in came.report.challenges] == ["challenger", "domain-expert", "devils-advocate"]


# Tools.


@pytest.mark.seed("plan-gate", "tool-budgets")
def test_a_call_beyond_its_budget_is_refused_in_the_conversation_that_the_agent_sees(stage: Stage, play: Play) -> None:
    (came,) = play("over-budget")
    for mode, limit, calls in (("resolve", 5, 7), ("probe", 4, 5)):
        results = stage.results(came.run_id, mode)
        assert [one.refused for one in results] == [None] * limit + ["budget"] * (calls - limit)
        assert results[-1].text.startswith(f"No more Grep calls: you had {limit} for this iteration.")
    assert len(came.events("budget")) == 3


@pytest.mark.seed("plan-gate", "budget-raise")
def test_a_budget_is_raised_by_a_directive_and_for_the_next_iteration(stage: Stage, play: Play) -> None:
    (came,) = play("budget-raised")
    carried_out = [
        sum(one.refused is None for one in stage.results(came.run_id, "resolve", number)) for number in (1, 2)
    ]
    assert carried_out == [5, 7]
    assert came.report.iterations[0].synthesizer_directives == ("RAISE-BUDGET resolve Grep +2: look further",)
    assert any("Fly" in text for text in came.events("refused"))


SEARCH = [
    {"web_search": {"query": "is it there", "reason": "FILE_MISSING"}},
    {"web_search": {"query": "what sum does", "reason": "API_BEHAVIOR"}},
]


@pytest.mark.seed("plan-gate", "web-search")
def test_the_web_is_searched_for_what_it_may_be_and_for_nothing_else(stage: Stage) -> None:
    url = "https://docs.example/sum"
    seen = {"kind": "web", "url": url, "text": "sum adds numbers"}
    entries = script(
        challenger(challenge("The plan assumes that sum adds", "BLOCKING"), iteration=1),
        researcher("resolve", unknown("C1", seen), steps=[{"tools": SEARCH}]),
        researcher("surface", steps=[{"tools": SEARCH[1:]}]),
        researcher(
            "probe", steps=[{"tools": [SEARCH[1], {"web_search": {"query": "old", "reason": "TEMPORAL_RISK"}}]}]
        ),
        synthesizer(ruling("C1", evidence=["U1"])),
    )
    with running_site() as site:
        found = [{"title": "sum", "url": url, "content": "sum adds numbers"}]
        site.replies["/search"] = Reply(json.dumps({"results": found}).encode(), kind="application/json")
        own = stage.workshop.folder / "own.toml"
        own.write_text(f'[web]\nsearch = "{site.url("/search")}?q={{query}}"\n')
        came = stage.verify(entries, env={"PROOFSTONE_CONFIG": str(own)})
        asked = sorted(path for path, _ in site.asked)
    assert came.exit == 0, came.stderr
    assert asked == ["/search?q=old", "/search?q=what%20sum%20does"]
    wrong, right = stage.results(came.run_id, "resolve")
    assert wrong.refused == "budget" and "not for FILE_MISSING" in wrong.text
    assert right.ok and url in right.text
    assert [one.refused for one in stage.results(came.run_id, "probe")] == ["budget", None]
    (unlisted,) = stage.results(came.run_id, "surface")
    assert unlisted.refused is not None, "this mode has no such tool"
    assert came.report.unknowns[0].finding.startswith("[VERIFIED: "), "the engine saw the page in the conversation"


def test_without_a_provider_there_is_no_web_to_search(stage: Stage) -> None:
    entries = script(
        challenger(challenge("The plan assumes that sum adds", "MINOR"), iteration=1),
        researcher("resolve", steps=[{"tools": SEARCH[1:]}]),
    )
    came = stage.verify(entries)
    (result,) = stage.results(came.run_id, "resolve")
    assert result.refused is not None and not result.ok
    told = [one["request"]["text"] for one in stage.messages(came.run_id, "Dispatch")]
    assert any("Grep" in text for text in told) and not any("WebSearch: " in text for text in told[:4])


# Who fails.


@pytest.mark.parametrize("name", FAILURES)
def test_whoever_fails_is_named_in_the_report(play: Play, name: str) -> None:
    (came,) = play(name)
    failed = came.events("failure")
    assert len(failed) == (2 if name == "two-fail" else 1), failed
    if "FORCED_EXIT" in came.convergence:
        assert came.report.verdict in ("REVISE", "RETHINK"), "never better than REVISE"
        assert came.report.audit == "", "who is cut short has no closing words"


def test_whoever_breaks_down_is_asked_once_more(stage: Stage, play: Play) -> None:
    (came,) = play("probe-fails")
    assert stage.asked(came.run_id).count(("researcher:probe", 1)) == 2


def test_an_answer_that_cannot_be_read_leaves_what_it_was_to_settle_unresolvable(stage: Stage, play: Play) -> None:
    (came,) = play("resolve-cannot-be-read")
    assert [(one.affects_challenge, one.resolution) for one in came.report.unknowns] == [("C1", "UNRESOLVABLE")]
    assert len(stage.messages(came.run_id, "Repair")) == 4, "two repairs in each of two dispatches"
    assert play("resolve-fails")[0].report.unknowns == ()


# What agents claim.


def test_a_false_claim_is_held_against_its_author_and_settles_nothing(stage: Stage, play: Play) -> None:
    (came,) = play("false-claims")
    held = [(one.agent, one.about) for one in came.report.against]
    assert held[:3] == [("challenger", "C1"), ("researcher:resolve", "U1"), ("researcher:surface", "S1")]
    assert came.statuses["C1"] == "WITHDRAWN" and came.statuses["C3"] == "RESOLVED"
    findings = [one.finding.partition(":")[0] for one in came.report.unknowns[:2]]
    assert findings == ["[UNVERIFIED", "[VERIFIED"]
    assert any(text.startswith("C2 → RESOLVED was not allowed") for text in came.events("refused"))
    agents = [one["agent"] for one in stage.events(came.run_id, "plan.held-against")]
    assert sorted(set(agents)) == ["challenger", "researcher:resolve", "researcher:surface"]
    audit = stage.proofstone("audit", came.run_id, "--json")
    assert audit.returncode == 1, audit.stderr
    assert "README.md" in audit.stdout
    clean = stage.proofstone("audit", play("whole-team")[0].run_id)
    assert clean.returncode == 0, clean.stdout


def test_the_base_of_the_repository_is_looked_at_and_not_what_lies_beside_it(stage: Stage) -> None:
    stage.write("draft.py", "def average():\n    return 0\n")
    entries = script(
        challenger(challenge("The plan forgets average", evidence=[symbol("average", "draft.py")]), iteration=1),
        researcher("surface", steps=[{"tools": [{"read": {"path": "draft.py"}}, GREPS[0]]}]),
    )
    came = stage.verify(entries)
    (stage.root / "draft.py").unlink()
    assert came.statuses == {"C1": "WITHDRAWN"}
    assert not stage.results(came.run_id, "surface")[0].ok


def test_the_agents_of_a_recorded_run_say_it_again(stage: Stage, play: Play) -> None:
    (came,) = play("proceed")
    into = stage.workshop.folder / "again.yaml"
    recorded = stage.proofstone("record", came.run_id, "-o", str(into), "--force")
    assert recorded.returncode == 0, recorded.stderr
    again = stage.by_rules("PLAN.md", "--backend", f"script:{into}")
    assert again.exit == 0, again.stderr
    assert again.masked.replace("again.yaml", "script.yaml") == came.masked
