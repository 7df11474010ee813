"""Who attends to an agent, boundary by boundary: what counts as an answer, what is noticed, what a crash leaves."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.models import (
    Completion,
    CompletionStatus,
    DispatchKey,
    DispatchResult,
    Fault,
    FaultKind,
    ToolCall,
    ToolResult,
    Turn,
    WorkFile,
    WorkSnapshot,
)
from proofstone.agents.roles.models.gate import JudgeItem, JudgeItemVerdict, JudgeRequest, UnderstandingVerdicts
from proofstone.agents.rules.conversation import Interjection, TurnBoundary
from proofstone.agents.supervisor import BoundaryRecord
from proofstone.agents.tools.tool_context import ToolContext
from proofstone.common.models import ChangeKind, Verdict
from proofstone.errors import RepositoryError
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.plans.models import Plan, PlanTask
from proofstone.supervision.agent_supervision import (
    AgentDirective,
    AgentSupervision,
    ContextBoard,
    RunStoppedError,
    SupervisionTask,
    UnderstandingJudge,
    add_requirement,
)
from proofstone.supervision.models.events import AgentEvent
from proofstone.supervision.models.understanding import AnalysisItem, GateAttempts, SupervisionTier
from proofstone.supervision.rules.amendments import Amendment, explain_amendment_refusal
from proofstone.supervision.rules.monitor_state import AgentProfile, SupervisionLimits
from proofstone.supervision.rules.supervision_state import RequestKind
from proofstone.supervision.supervisor import AgentSupervisor, watch_turn
from tests.rows import each_row

OCCASION = DispatchKey(run_id="r", role="executor", step="task-01/a1", task="task-01")
LOCATED = "[SELF-LOCATE] Phase 6 | Task 1/1 | Step: goes on | Progress: 0% | MCP: 0 | Docs: missing"
PLANNED = "[PLAN] Phase 6 | Files: shop/one.py | Changes: a module | Risk: 🟢 | Interface Impact: none"


def uses(name: str, text: str = "", **arguments: str) -> TurnBoundary:
    call = ToolCall(id="1", name=name, arguments=arguments)
    return TurnBoundary(Turn(text=text, calls=(call,)), (ToolResult(call_id="1", name=name, text=""),))


def answers(text: str, *, acted: bool = False) -> TurnBoundary:
    return TurnBoundary(Turn(text=text, acted=acted), is_reply=True)


@dataclass
class Tree:
    """A work tree that was changed so."""

    paths: list[str] = field(default_factory=list)
    lost: bool = False

    def observe_changes(self, impact: Iterable[str] = ()) -> WorkSnapshot:
        if self.lost:
            raise RepositoryError("the work tree is gone")
        return WorkSnapshot(files=tuple(WorkFile(path=path, kind=ChangeKind.ADDED) for path in self.paths))


@dataclass
class Bench:
    folder: Path
    ledger: SqliteLedger
    tree: Tree = field(default_factory=Tree)
    asks: tuple[RequestKind, ...] = (RequestKind.PING, RequestKind.QUESTION, RequestKind.ANALYSIS)
    objection: str = ""
    """To whatever is to be added to the task."""

    def attends(self, *, files: tuple[str, ...] = ("shop/one.py",)) -> AgentSupervisor:
        subject = SupervisionTask(
            profile=AgentProfile(agent="implementer-1", role="executor", phase=6),
            tier=SupervisionTier.IMPLEMENTER,
            tool_context=ToolContext(files=self.folder),
            board=ContextBoard(self.ledger, "r", "a module"),
            known_version=1,
            judge=UnderstandingJudge(OCCASION, "a module", "0" * 40, None),
            can_answer=lambda asked: asked in self.asks,
            id="task-01",
            name="One",
            number=1,
            total=1,
            files=files,
            change_view=self.tree,
            amend=lambda _: self.objection,
        )
        return AgentSupervisor(AgentSupervision(subject, SupervisionLimits()))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with closing(SqliteLedger(tmp_path / "ledger.db", "create")) as ledger:
        yield Bench(tmp_path, ledger)


def asked(word: AgentDirective) -> str:
    assert isinstance(word, Interjection), word
    return word.message.asked


@pytest.mark.seed("continuity", "two-gates")
def test_before_it_has_shown_that_it_understands_it_may_change_nothing(bench: Bench) -> None:
    bench.asks = tuple(RequestKind)
    word = bench.attends().interject(TurnBoundary())
    assert asked(word) == "impact" and isinstance(word, Interjection) and word.scope == ()


def test_what_a_shell_changed_at_the_gate_is_noticed_when_the_work_begins(bench: Bench) -> None:
    bench.asks = tuple(RequestKind)
    attendant = bench.attends()
    attendant.interject(TurnBoundary())
    bench.tree.paths.append("shop/other.py")
    assert attendant.interject(uses("run", command="touch shop/other.py")) is None
    attendant._entry._pass_gate("go")
    assert asked(attendant.interject(uses("read", path="a"))) == "RV-3"


def test_what_a_program_changed_beside_its_answer_is_noticed(bench: Bench) -> None:
    attendant = bench.attends()
    attendant.interject(TurnBoundary())
    attendant._agent.ask(RequestKind.PLAN, "how?")
    attendant.interject(answers(PLANNED, acted=True))
    bench.tree.paths.append("shop/other.py")
    assert asked(attendant.interject(uses("read", path="a"))) == "RV-3"


def test_an_answer_between_brackets_beside_a_call_is_an_answer_and_other_words_are_none(bench: Bench) -> None:
    attendant = bench.attends()
    attendant.interject(TurnBoundary())
    attendant._agent.ask(RequestKind.PLAN, "how?")
    assert attendant.interject(uses("read", "I will write shop/one.py", path="a")) is None
    word = attendant.interject(uses("read", PLANNED, path="b"))
    assert isinstance(word, Interjection) and word.message.resumes and word.message.text.startswith("[APPROVED]")


@pytest.mark.seed("continuity", "t7-recovery")
def test_a_restart_is_followed_by_the_ping_that_it_calls_for(bench: Bench) -> None:
    before = bench.attends()
    before.interject(TurnBoundary())
    after = bench.attends()
    assert after.restore(TurnBoundary(), BoundaryRecord(None, before.state)) is None
    assert asked(after.interject(uses("read", path="a"))) == "RV-1"
    word = after.interject(uses("read", LOCATED, path="b"))
    assert isinstance(word, Interjection) and word.message.resumes, "it has said where it is: nothing is open any more"


def test_after_a_crash_it_may_change_what_it_could_at_that_point(bench: Bench) -> None:
    """Its task was given a file since: each boundary on record leads to the scope that it had there, narrow or wide."""
    before = bench.attends()
    before.interject(TurnBoundary())
    agent = before._agent
    narrow = agent.resume("go on")
    early = BoundaryRecord(narrow.message, before.state)
    agent.add_owned_files(("shop/more.py",))
    late = BoundaryRecord(agent.resume("yours").message, before.state)
    after = bench.attends(files=("shop/one.py", "shop/more.py"))
    first, second = after.restore(TurnBoundary(), early), after.restore(TurnBoundary(), late)
    assert first is not None and first.scope == ("shop/one.py",)
    assert second is not None and second.scope == ("shop/one.py", "shop/more.py")


def test_a_work_tree_that_cannot_be_looked_at_ends_the_attempt_and_not_the_run(bench: Bench) -> None:
    attendant = bench.attends()
    attendant.interject(TurnBoundary())
    bench.tree.lost = True
    word = attendant.interject(uses("run", command="rm -rf ."))
    assert isinstance(word, Fault) and (word.kind, word.why) == (FaultKind.CRASHED, "the work tree is gone")


def test_what_was_judged_of_other_words_is_no_judgement_of_these() -> None:
    seen: list[str] = []

    def ask(_request: JudgeRequest, occasion: DispatchKey) -> DispatchResult:
        seen.append(occasion.id)
        raise RunStoppedError(Fault(kind=FaultKind.CANCELLED, why="enough"))

    judge = UnderstandingJudge(OCCASION, "a module", "0" * 40, ask)
    for said in ("one", "one", "another"):
        with pytest.raises(RunStoppedError):
            judge.judge_items(said, [JudgeItem(item="RC-01", holds_if="it holds")], 1)
    assert seen[0] == seen[1] != seen[2]


def test_trouble_in_listening_ends_the_turn_and_is_told(tmp_path: Path) -> None:
    site = ExecutionContext(work_tree=tmp_path, scratch=tmp_path, run=lambda _: pytest.fail("nothing is run"))

    def tell(_event: AgentEvent) -> Fault | None:
        raise RepositoryError("nobody hears it")

    with pytest.raises(RepositoryError, match="nobody hears it"), watch_turn(site, 0.1, tell) as listened:
        assert listened.site.cancel.wait(60), "the turn is ended"


def test_whoever_stops_the_run_stops_a_turn_that_is_listened_to(tmp_path: Path) -> None:
    cancel = threading.Event()
    site = ExecutionContext(
        work_tree=tmp_path, scratch=tmp_path, run=lambda _: pytest.fail("nothing is run"), cancel=cancel
    )
    with watch_turn(replace(site), 900, lambda _: None) as listened:
        cancel.set()
        assert listened.site.cancel.wait(60)


@each_row(
    ("path", "may"),
    [
        ("app/[id]/page.tsx", True),
        ("shop/two.py", True),
        ("shop/", False),
        ("shop/?wo.py", False),
        ("**", False),
        ("../x.py", False),
        ("/etc/x.py", False),
    ],
)
def test_a_task_is_given_single_files_and_no_patterns(path: str, may: bool) -> None:
    task = PlanTask.model_construct(id="task-01", name="One", files=("shop/one.py",), depends_on=())
    plan = Plan.model_construct(path="PLAN.md", title="One", tasks=(task,))
    assert (explain_amendment_refusal(plan, Amendment(task="task-01", files=(path,))) == "") is may


class Said:
    """A judge that says this of everything."""

    def __init__(self, verdict: Verdict, detail: str) -> None:
        self._verdict, self._detail = verdict, detail

    def __call__(self, request: JudgeRequest, occasion: DispatchKey) -> DispatchResult:
        items = tuple(
            JudgeItemVerdict(item=one.item, verdict=self._verdict, detail=self._detail) for one in request.to_judge
        )
        return DispatchResult(
            occasion=occasion,
            output=UnderstandingVerdicts(items=items),
            completion=Completion(status=CompletionStatus.DONE, summary="judged"),
            started_at="",
            completed_at="",
        )


LONG = "long"
"""Stands for a text that is far too long: one that Hypothesis can show."""
IMPACT = json.dumps(
    {"task_understanding": "a module", "files": [{"path": "shop/one.py", "new": True}], "cross_agent_impact": "none"}
)
MINI = json.dumps(
    {
        "task": "a module",
        "files": "shop/one.py",
        "downstream": "none",
        "claimed_before": "one file",
        "reality": "one file",
        "impact": "NONE",
    }
)


FORMS = (
    IMPACT,
    MINI,
    json.dumps({"step": "on", "progress": 1, "task": 10**9, "tool_calls": 10**9}),
    json.dumps({"applied": 10**9, "total": 10**9, "impact": "x", "action": "PAUSE"}),
    json.dumps({"files": ["shop/one.py"], "changes": "|", "risk": "🔴", "interface_impact": "none"}),
    "# \n```\n[X]",
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    wanted=st.sampled_from(list(RequestKind)),
    said=st.one_of(
        st.text(max_size=200),
        st.sampled_from([LONG, f"[PLAN] Phase 6 | {LONG}", "{}", "[]", PLANNED, LOCATED, *FORMS]),
    ),
    verdict=st.sampled_from(list(Verdict)),
    detail=st.sampled_from(["", "it is not so", LONG, "a\nb | c, d"]),
    stray=st.booleans(),
)
def test_whatever_is_answered_and_judged_a_word_follows(
    bench: Bench, wanted: RequestKind, said: str, verdict: Verdict, detail: str, stray: bool
) -> None:
    bench.asks = tuple(RequestKind)
    bench.tree.paths[:] = [f"shop/stray{number}.py" for number in range(600)] if stray else []
    said, detail = (text.replace(LONG, "word " * 20_000) for text in (said, detail))
    attendant = bench.attends()
    agent = attendant._agent
    agent.subject = replace(agent.subject, judge=replace(agent.subject.judge, ask=Said(verdict, detail)))
    add_requirement(bench.ledger, "r", "and more of it", (), "ann")
    attendant.interject(TurnBoundary())
    if wanted not in (RequestKind.IMPACT, RequestKind.CHALLENGE):
        attendant._entry._pass_gate("go")
        attendant.interject(uses("run", command="x"))
    agent.ask(wanted, "?")
    if wanted is RequestKind.CHALLENGE:
        agent.update_state(
            gate=GateAttempts(tier=SupervisionTier.IMPLEMENTER, asked=(AnalysisItem.TASK,)), challenged="what?"
        )
    for _ in range(4):
        word = attendant.interject(answers(said))
        assert isinstance(word, Interjection | Fault)
        if isinstance(word, Fault) or not word.message.asked:
            break


@pytest.mark.parametrize("objection", ["", "the plan gate objects: nobody can prove that"])
def test_an_agent_is_told_what_of_the_added_is_not_its_task(bench: Bench, objection: str) -> None:
    bench.objection = objection
    attendant = bench.attends()
    attendant.interject(TurnBoundary())
    add_requirement(bench.ledger, "r", "make it nice", (), "ann")
    attendant._agent.update_state(told=(1,))
    attendant._agent.ask(RequestKind.PLAN, "how?")
    word = attendant.interject(answers(PLANNED))
    assert isinstance(word, Interjection)
    refused = f"The addition in GC-v2 is not part of your task: {objection}. Leave it to the planner."
    assert ("[APPROVED] Phase 6" in word.message.text, refused in word.message.text) == (True, bool(objection))


def test_a_request_of_any_length_can_be_told(bench: Bench) -> None:
    assert len(ContextBoard(bench.ledger, "r", "word " * 20_000).build_versions()) == 1
