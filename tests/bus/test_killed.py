"""Subscribers in processes of their own: whatever is killed when, nothing is lost, doubled or out of order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from proofstone.agents.bus import MessageBus, OutgoingMessage
from proofstone.ledger.models import DeliveryRow, EventRow
from proofstone.ledger.sqlite import SqliteLedger

ROOT = Path(__file__).parents[2]
SHARE = 40
"""A batch is this part of all messages."""


def hearer(path: Path, name: str, last: int, batch: int, fault: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.bus.hearer", str(path), name, str(last), str(batch)],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PROOFSTONE_FAULT": fault, "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )


def letters(start: int, count: int) -> list[OutgoingMessage]:
    return [
        OutgoingMessage("engine", "planner", "Dispatch", {"number": n}, f"m{n}") for n in range(start, start + count)
    ]


def effects(ledger: SqliteLedger, name: str) -> list[object]:
    return [stored.row.payload["number"] for stored in ledger.read(EventRow, run_id=name)]


def ended(process: subprocess.Popen[str]) -> int:
    process.communicate(timeout=120)
    return process.returncode


@pytest.mark.parametrize("messages", [2_000, pytest.param(10_000, marks=pytest.mark.sweep)])
def test_thousands_of_messages_reach_three_subscribers_once_though_one_is_killed(path: Path, messages: int) -> None:
    batch = messages // SHARE
    with SqliteLedger(path, busy_ms=60_000) as ledger:
        bus = MessageBus(ledger, "bus")
        hearing = {name: hearer(path, name, messages - 1, batch) for name in ("view", "record", "victim")}
        for start in range(0, messages // 2, 500):
            bus.publish_all(letters(start, 500))
        victim = hearing["victim"]
        assert victim.stdout is not None
        while f"at {4 * batch}\n" not in victim.stdout.readline():
            assert victim.poll() is None, "it must be in the middle of its work"
        victim.send_signal(signal.SIGKILL)
        assert ended(victim) == -signal.SIGKILL
        handled = len(effects(ledger, "victim"))
        assert 0 < handled < messages
        for start in range(messages // 2, messages, 500):
            bus.publish_all(letters(start, 500))
        hearing["victim"] = hearer(path, "victim", messages - 1, batch)
        for name, process in hearing.items():
            assert ended(process) == 0
            assert effects(ledger, name) == list(range(messages))
        assert ledger.verify().ok


@pytest.mark.parametrize("point", ["ledger.before-insert", "ledger.before-commit", "ledger.after-commit"])
def test_wherever_a_subscriber_dies_its_successor_goes_on_from_there(path: Path, point: str) -> None:
    with SqliteLedger(path) as ledger:
        MessageBus(ledger, "bus").publish_all(letters(0, 50))
        assert ended(hearer(path, "view", 49, 10, fault=f"{point}:3")) == -signal.SIGKILL
        before = ledger.read(DeliveryRow)
        batches = 3 if point == "ledger.after-commit" else 2
        assert len(before) == batches
        assert effects(ledger, "view") == list(range(10 * batches))
        assert ended(hearer(path, "view", 49, 10)) == 0
        assert effects(ledger, "view") == list(range(50))


def test_two_processes_of_one_name_share_the_work_and_double_nothing(path: Path) -> None:
    with SqliteLedger(path) as ledger:
        MessageBus(ledger, "bus").publish_all(letters(0, 401))
        pair = [hearer(path, "view", 400, 10) for _ in range(2)]
        # Whoever comes to the last message ends; the other may have nothing more to hear, and is ended.
        while all(process.poll() is None for process in pair):
            assert len(effects(ledger, "view")) <= 401
        for process in pair:
            process.kill()
            process.communicate(timeout=60)
        assert effects(ledger, "view") == list(range(401))
        assert ledger.verify().ok
