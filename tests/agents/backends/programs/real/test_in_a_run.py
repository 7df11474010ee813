"""Real coding agents in a whole `proofstone run`, each pointed at a model that is played."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from proofstone.testing.model_server.answers import Answer, ReceivedRequest, Reply
from proofstone.testing.model_server.server import ModelServer
from tests.agents.backends.programs.real.desk import Player, person
from tests.pipeline.served import FIX, UNASKED, Question, asker
from tests.pipeline.served import Player as Team
from tests.pipeline.stage import REQUEST, PipelineResult, Stage, module
from tests.pipeline.stage import test_of as its_test

pytestmark = [pytest.mark.registry, pytest.mark.agents]

WORK = (("shop/count.py", module()), ("tests/test_count.py", its_test()), "Done: count() is there, with a test.")


@dataclass(frozen=True)
class Run:
    stage: Stage
    executor: Player
    team: Team
    env: Mapping[str, str]

    def run(self, *args: str) -> PipelineResult:
        done = self.stage.proofstone("run", REQUEST, *args, "--json", "--quiet", env=self.env)
        return PipelineResult(done.returncode, done.stdout, done.stderr)

    def answer(self, asked: ReceivedRequest) -> Answer:
        """The executor works with the program's own tools; everybody else answers in words."""
        if not asked.tools:  # a title for the session, and the like
            return Reply(text="A title")
        one = asker(asked)
        if one.role == "executor":
            return self.executor.answer(asked)
        reply = self.team.reply(Question(one, 99))  # at once with what it has to say
        self.team.answered[Question(one, 0)] += 1
        return Reply(text=json.dumps(reply.calls[0][1]))


@contextmanager
def run(folder: Path, name: str, program: Path) -> Iterator[Run]:
    stage = Stage.set_up(folder, settings=UNASKED)
    config = folder / "person.toml"
    at = Run(stage, Player(name, stage.root, WORK), Team(), {"PROOFSTONE_CONFIG": str(config)})
    with ModelServer(at.answer) as server:
        config.write_text(person(name, program, server))
        yield at


@pytest.mark.few(1)
@pytest.mark.parametrize("spec", ["acp:goose", "cli:claude", pytest.param("cli:qwen", marks=pytest.mark.sweep)])
def test_a_program_does_the_task_of_a_run_through_the_gate(
    spec: str, place: Path, program: Callable[[str], Path]
) -> None:
    name = spec.partition(":")[2]
    with run(place / "run", name, program(name)) as at:
        others = at.stage.cast(at.team.entries)
        came = at.run("--backend", others, "--backend", f"executor={spec}", *FIX)
    assert (came.exit, came.outcome) == (0, "passed"), came.stdout + came.stderr
    assert [(one.state, one.attempts) for one in came.report.tasks] == [("APPROVED", 1)]
    assert at.stage.git("show", f"{came.report.commit}:shop/count.py") == module().rstrip("\n")
    assert len(at.executor.asked) >= len(WORK)


@pytest.mark.parametrize("lane", [FIX, pytest.param((), marks=pytest.mark.sweep)])
def test_a_program_serves_every_role_of_a_run(
    lane: tuple[str, ...], place: Path, program: Callable[[str], Path]
) -> None:
    with run(place / "run", "goose", program("goose")) as at:
        came = at.run("--backend", "acp:goose", *lane)
    assert (came.exit, came.outcome) == (0, "passed"), came.stdout + came.stderr
    assert came.report.lane == ("fix" if lane else "standard")
    assert {asker.role for asker, _ in at.team.answered} >= {"planner", "reviewer"}
    assert set(at.team.answered.values()) == {1}, "nobody was asked twice"
