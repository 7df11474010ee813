"""Real providers in the control loop: models over real HTTP, a shell command, a coding agent that brings its tools."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from proofstone.app.solve import SOLVE_ROLES
from proofstone.testing.model_server.answers import Answer, HttpError, ReceivedRequest, Reply, WireProtocol
from proofstone.testing.model_server.server import ModelServer
from tests.agents.models import Model, answers, calls
from tests.solve.stage import (
    COUNT,
    COUNTED,
    GOAL,
    SolveResult,
    Stage,
    passes,
    planner,
    script,
    subtask,
)
from tests.staging import DONE

EXECUTES = (
    calls("read", path="notes.txt"),
    calls("write", path="count.txt", content="3\n"),
    calls("run", command="grep -c . notes.txt"),
    answers(**DONE, status="completed", output="there are 3"),
)
TURNS: Mapping[str, Sequence[Answer]] = {
    "perceiver": (answers(**DONE, intent="count the notes"),),
    "planner": (
        calls("glob", pattern="*.txt"),
        answers(**DONE, task_criteria=[COUNTED], subtasks=[subtask("count them", COUNTED, "it is a number")]),
    ),
    "executor": EXECUTES,
    "agent_validator": (calls("read", path="count.txt"), answers(**DONE, verdicts=[passes()])),
    "meta_validator": (
        answers(**DONE, output="There are 3.", summary="counted", verdicts=[], meets_the_request="yes", why="seen"),
    ),
}
"""What each of them says when it is asked, turn by turn."""
ONE_ROUND = sum(map(len, TURNS.values()))


@dataclass
class Faltering(Model):
    """It says these first, to whoever asks."""

    first: list[Answer] = field(default_factory=list)

    def answer(self, asked: ReceivedRequest) -> Answer:
        return self.first.pop(0) if self.first else super().answer(asked)


@dataclass(frozen=True)
class Desk:
    stage: Stage
    model: Faltering
    env: Mapping[str, str]

    def solve(self, *args: str) -> SolveResult:
        return self._came(GOAL, *args)

    def resume(self, *args: str) -> SolveResult:
        return self._came("--resume", "last", *args)

    def _came(self, *args: str) -> SolveResult:
        done = self.stage.proofstone("solve", *args, "--json", "--quiet", env=self.env)
        assert self.env["LOCAL_KEY"] not in done.stdout + done.stderr
        return SolveResult(done.returncode, done.stdout, done.stderr)


@contextmanager
def desk(folder: Path, wire: WireProtocol = WireProtocol.OPENAI_CHAT, **turns: Sequence[Answer]) -> Iterator[Desk]:
    """A model for each role, by the role's name. These say something else."""
    stage = Stage.set_up(folder / "stage")
    model = Faltering({**TURNS, **turns})
    with ModelServer(model.answer) as server:
        backends = "".join(f'{role} = "api:local:{role}"\n' for role in SOLVE_ROLES)
        config = folder / "person.toml"
        config.write_text(
            f'[providers.local]\nwire = "{wire}"\nurl = "{server.base_url(wire)}"\nkey_variable = "LOCAL_KEY"\n'
            f'[models."local:*"]\ninput_usd = 1000.0\noutput_usd = 2000.0\ntier = 3\n[backends]\n{backends}'
        )
        yield Desk(stage, model, {"PROOFSTONE_CONFIG": str(config), "LOCAL_KEY": "secret-key"})


SWEPT = [pytest.param(wire, marks=pytest.mark.sweep) for wire in WireProtocol if wire is not WireProtocol.OPENAI_CHAT]


@pytest.mark.parametrize("wire", [WireProtocol.OPENAI_CHAT, *SWEPT])
def test_models_in_every_role_reach_the_goal_and_the_report_says_what_it_cost(
    tmp_path: Path, wire: WireProtocol
) -> None:
    with desk(tmp_path, wire) as at:
        came = at.solve()
        assert (came.exit, came.status, came.directives) == (0, "accepted", ["accept"]), came.stderr
        assert {role: at.model.count(role) for role in SOLVE_ROLES} == {role: len(TURNS[role]) for role in SOLVE_ROLES}
        report = came.report
        assert report.result is not None and report.result.output == "There are 3."
        assert [one.path for one in report.changed] == ["count.txt"]
        assert report.rounds[0].outcomes[0].tools == ("read", "write", "run")
        assert (report.spent.requests, report.spent.unpriced) == (ONE_ROUND, 0)
        assert (report.spent.input_tokens, report.spent.output_tokens) == (11 * ONE_ROUND, 7 * ONE_ROUND)
        assert report.spent.usd == pytest.approx(ONE_ROUND * (11 * 1000 + 7 * 2000) / 1e6)
        assert report.agents == {role: f"api:local:{role}" for role in SOLVE_ROLES}
        told = at.model.asked["executor"][-1].messages
        assert [text for role, text in told if role == "tool"][-1].endswith("\n3"), "it has heard what it ran"
        assert at.stage.proofstone("audit", "last").returncode == 0


def test_each_role_is_offered_its_own_tools_and_no_others(tmp_path: Path) -> None:
    with desk(tmp_path) as at:
        assert at.solve().status == "accepted"
        offered = {role: set(at.model.asked[role][0].tools) for role in SOLVE_ROLES}
        assert {"write", "edit", "run"} <= offered["executor"]
        for role in set(SOLVE_ROLES) - {"executor"}:
            assert not {"write", "edit", "run"} & offered[role], role


def test_a_provider_that_is_down_for_a_moment_is_asked_again(tmp_path: Path) -> None:
    with desk(tmp_path) as at:
        at.model.first.append(HttpError(503, "overloaded", retry_after=0))
        came = at.solve()
        assert (came.status, came.directives) == ("accepted", ["accept"]), came.stderr
        assert (came.report.spent.requests, came.report.spent.input_tokens) == (ONE_ROUND + 1, 11 * ONE_ROUND)
        assert len(at.stage.messages(came.report.run_id, "Fault")) == 1


def test_a_provider_that_denies_us_stops_the_run_and_it_goes_on_when_that_is_put_right(tmp_path: Path) -> None:
    with desk(tmp_path, executor=(EXECUTES[0], HttpError(401, "no such key"))) as at:
        stopped = at.solve()
        assert stopped.exit == 2 and not at.model.count("agent_validator")
        assert "no such key" in stopped.stderr and "proofstone solve --resume" in stopped.stderr
        at.model.turns = TURNS
        before = {role: at.model.count(role) for role in SOLVE_ROLES}
        came = at.resume()
        assert (came.status, came.directives) == ("accepted", ["accept"]), came.stderr
        again = {role: at.model.count(role) - before[role] for role in SOLVE_ROLES}
        assert (again["perceiver"], again["planner"], again["executor"]) == (0, 0, len(EXECUTES) - 1)
        assert came.report.spent.input_tokens == 11 * ONE_ROUND, "nothing is paid for twice"


def test_an_answer_that_is_not_of_the_schema_is_repaired(tmp_path: Path) -> None:
    aside = Reply(text="Let me think about that.")
    plans = TURNS["planner"]
    with desk(tmp_path, planner=(plans[0], aside, plans[1]), perceiver=(aside, *TURNS["perceiver"])) as at:
        came = at.solve()
        assert (came.status, came.directives) == ("accepted", ["accept"]), came.stderr
        repaired = at.stage.messages(came.report.run_id, "Repair")
        assert [str(one["dispatch"]) for one in repaired] == ["perceive/perceiver", "r1/p1/planner"]
        assert at.stage.proofstone("audit", "last").returncode == 0


# Programs as the executor.


def answering(said: str) -> str:
    return json.dumps({**DONE, "status": "completed", "output": said})


def test_a_command_as_the_executor_works_in_the_work_tree_and_is_not_believed(tmp_path: Path) -> None:
    """It is started for each attempt; the first time it claims what is not so."""
    stage = Stage.set_up(tmp_path / "stage")
    prepared = stage.cast(script(planner({**COUNT, "tools": ["run"]})))
    command = f"test $PROOFSTONE_ATTEMPT = 1 || wc -l < notes.txt > count.txt; echo {shlex.quote(answering('counted'))}"
    done = stage.proofstone("solve", GOAL, "--backend", prepared, "--backend", f"executor=cmd:{command}", "--json")
    came = SolveResult(done.returncode, done.stdout, done.stderr)
    assert (came.exit, came.status) == (0, "accepted"), came.stderr
    (outcome,) = came.report.rounds[0].outcomes
    assert [len(one.failed_criteria) for one in outcome.gap_trajectory] == [1, 0]
    assert outcome.targets == ("count.txt",), "the engine has seen what it changed"
    assert outcome.tools == ("run",), "nobody has seen what it used: it counts as what its subtask names"
    assert any("the executor has its own tools" in note for note in came.report.notes)
    assert came.report.spent.unpriced == 2
    assert [one.path for one in came.report.changed] == ["count.txt"]
    assert stage.proofstone("audit", "last").returncode == 1


CODING_AGENT = f"""#!{sys.executable}
import json, pathlib, sys
asked = sys.stdin.read()
pathlib.Path("count.txt").write_text("3\\n")
said = @@
print(json.dumps({{"type": "system", "subtype": "init", "model": "played"}}))
print(json.dumps({{"type": "result", "is_error": False, "result": said, "num_turns": 2}}))
"""
"""A stand-in for `claude`: it writes its file, and says so in the program's own way."""


@pytest.mark.parametrize("said", [answering("I wrote it"), "I wrote it."], ids=["in-the-schema", "in-its-own-words"])
def test_a_coding_agent_as_the_executor_is_seen_by_what_it_leaves(tmp_path: Path, said: str) -> None:
    stage = Stage.set_up(tmp_path / "stage")
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(CODING_AGENT.replace("@@", repr(said)))
    program.chmod(0o755)
    config = tmp_path / "person.toml"
    config.write_text(f"[programs.claude]\npath = {json.dumps(str(program))}\n")
    prepared = stage.cast(script(planner(subtask("count them", COUNTED, tools=["write"], files=["count.txt"]))))
    done = stage.proofstone(
        *("solve", GOAL, "--backend", prepared, "--backend", "executor=cli:claude", "--json"),
        env={"PROOFSTONE_CONFIG": str(config)},
    )
    came = SolveResult(done.returncode, done.stdout, done.stderr)
    assert (came.exit, came.status) == (0, "accepted"), came.stderr
    (outcome,) = came.report.rounds[0].outcomes
    assert "I wrote it" in str(outcome.output)
    assert (outcome.tools, outcome.targets) == (("write",), ("count.txt",))
    assert len(outcome.gap_trajectory) == 1
    assert [one.path for one in came.report.changed] == ["count.txt"]
    assert any("its own tools" in note for note in came.report.notes)
