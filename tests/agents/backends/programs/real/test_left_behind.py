"""However it ends, a real coding agent leaves no process behind, and the run can go on."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from proofstone.testing.model_server.answers import Answer, Hang, ReceivedRequest
from tests.agents.backends.programs.real.desk import HONEST, Desk, desk
from tests.check.hazards.test_processes import odd_number
from tests.waiting import PATIENCE, wait_until
from tests.workshop import command

pytestmark = [pytest.mark.registry, pytest.mark.agents]


class Silent:
    """A model that says nothing until it is told to."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.speaks: Callable[[ReceivedRequest], Answer] | None = None

    def answer(self, asked: ReceivedRequest) -> Answer:
        self.asked.set()
        return self.speaks(asked) if self.speaks else Hang()


def marked(number: str) -> list[str]:
    """Processes that have the mark in their environment, wherever they are."""
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"PROOFSTONE_TEST_MARK={number}\0".encode() in file.read_bytes():
                found.append((file.parent / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def gone(number: str) -> bool:
    wait_until(lambda: not marked(number), lambda: f"still there: {marked(number)}")
    return True


def started(at: Desk, spec: str) -> subprocess.Popen[bytes]:
    words = command("gate", "PLAN.md", "--executor", spec, "--json", "--quiet")
    env = {**at.stage.workshop.environment, **at.env}
    return subprocess.Popen(words, cwd=at.stage.root, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.few(1)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("spec", ["acp:goose", pytest.param("cli:claude", marks=pytest.mark.sweep)])
def test_when_proofstone_is_stopped_the_program_ends_and_the_run_goes_on(
    spec: str, how: signal.Signals, place: Path, program: Callable[[str], Path]
) -> None:
    name, mark, model = spec.partition(":")[2], str(odd_number()), Silent()
    with desk(place / "desk", name, program(name), HONEST, answer=model.answer, mark=mark) as at:
        process = started(at, spec)
        assert model.asked.wait(60)
        assert marked(mark)
        os.kill(process.pid, how)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == (130 if how is signal.SIGINT else -9)
        assert gone(mark), marked(mark)
        model.speaks = at.player.answer
        resumed = at.stage.workshop.proofstone(at.stage.root, "resume", "last", "--json", "--quiet", env=at.env)
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr


def test_at_its_deadline_it_is_ended(place: Path, program: Callable[[str], Path]) -> None:
    mark, model = str(odd_number()), Silent()
    settings = "[gate]\nagent_seconds = 3\nagent_seconds_max = 3\nretry_delay_seconds = 0\n"
    with desk(
        place / "desk", "goose", program("goose"), HONEST, answer=model.answer, settings=settings, mark=mark
    ) as at:
        gated = at.gate("cli:goose")
    assert gated.exit == 1
    assert set(gated.failures(1)) == {"TIMEOUT"}
    assert gone(mark), marked(mark)


def test_one_that_prints_nothing_for_too_long_is_stuck(place: Path, program: Callable[[str], Path]) -> None:
    model = Silent()
    settings = "[gate]\nidle_seconds = 3\nretry_delay_seconds = 0\n"
    with desk(place / "desk", "goose", program("goose"), HONEST, answer=model.answer, settings=settings) as at:
        gated = at.gate("acp:goose")
    assert set(gated.failures(1)) == {"TIMEOUT"}
    assert "3 s without any output" in gated.stdout
