"""`proofstone audit`: which run is meant, what is printed, how it exits, and that it cannot write."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from pathlib import Path

import pytest
import typer
from pydantic import JsonValue

from proofstone.agents.bus import MessageBus, NoRouteError
from proofstone.agents.roles.models.plan_gate_records import ClaimKind, LookupResult, RepositoryClaim
from proofstone.auditor.tap import LedgerTap
from proofstone.cli.audit import app
from proofstone.errors import InputError, LedgerError
from proofstone.ledger.models import EventRow
from proofstone.ledger.query import find_any_run, list_run_ids
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.plan_gate.models import FalseClaim
from proofstone.testing.ledger_conformance import build_check_row


def started(run_id: str, repository: str = "/somewhere") -> EventRow:
    return EventRow(run_id=run_id, type="run.started", payload={"command": "gate", "repository": repository})


@pytest.fixture
def filled(ledger: SqliteLedger, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SqliteLedger:
    """`gate-1` oversteps, `check-2` is honest, `said-3` has nothing but messages."""
    monkeypatch.setenv("PROOFSTONE_HOME", str(home))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    ledger.append(started("gate-1"))
    bus = MessageBus(ledger, "gate-1")
    with pytest.raises(NoRouteError):
        bus.publish("executor", "planner", "evil\x1b[2J", {"task": "task-01"}, message_id="m1")
    result: JsonValue = {"call_id": "c", "name": "read", "text": "no", "ok": False, "refused": "secret"}
    payload: dict[str, JsonValue] = {"task": "task-01", "dispatch": "d", "result": result}
    bus.publish("engine", "executor", "ToolResult", payload, message_id="m2")
    ledger.append(started("check-2"), build_check_row("check-2"), EventRow(run_id="check-2", type="run.finished"))
    MessageBus(ledger, "said-3").publish("engine", "planner", "Dispatch", {"task": None}, message_id="m1")
    return ledger


def proofstone(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str]:
    command = typer.main.get_command(app)
    with command.make_context("proofstone audit", list(args)) as context:
        code = command.invoke(context)
    return code, capsys.readouterr().out


def test_who_oversteps_is_named_with_exit_1(filled: SqliteLedger, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = proofstone(capsys, "gate-1")
    assert code == 1
    assert "boundary_violation off-route  gate-1 task-01 executor" in out
    assert "boundary_violation secret  gate-1 task-01 executor" in out
    assert "rows 2" in out
    assert "2 findings  1 run, 1 task" in out
    assert "\x1b[2J" not in out
    assert "evil\\x1b[2J" in out


def test_what_an_agent_called_by_any_name_stays_readable(
    ledger: SqliteLedger, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROOFSTONE_HOME", str(home))
    bus = MessageBus(ledger, "gate-1")
    for name in ("n" * 1_000_000, "two\nlines", "read", *(f"a{number}" for number in range(100))):
        refused = None if name == "read" else "unlisted"
        result: JsonValue = {"call_id": "c", "name": name, "text": name, "ok": not refused, "refused": refused}
        payload: dict[str, JsonValue] = {"task": "task-01", "dispatch": "d", "result": result}
        bus.publish("engine", "executor", "ToolResult", payload, message_id=f"result of {name[:9]}")
    code, out = proofstone(capsys, "gate-1")
    assert code == 1 and len(out) < 10_000
    assert "read      1       0        0" in out and "… and 83 more" in out
    code, out = proofstone(capsys, "gate-1", "--json")
    assert len(json.loads(out)["tool_health"]) == 103 and len(out) < 60_000


def test_a_false_claim_about_a_plan_is_named_with_its_author(
    filled: SqliteLedger, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = RepositoryClaim(kind=ClaimKind.TEXT, path="src/app.py", text="retries = 3\x1b[2J")
    looked = LookupResult(claim=claim, holds=False, saw="src/app.py does not hold it")
    held = FalseClaim(agent="researcher:resolve", iteration=1, about="U1", looked=looked)
    filled.append(EventRow(run_id="plan-4", type="plan.held-against", payload=held.model_dump(mode="json")))
    code, out = proofstone(capsys, "plan-4")
    assert code == 1
    assert "claim_mismatch claim-mismatch  plan-4 researcher:resolve" in out
    assert "src/app.py holds “" in out and "seen: src/app.py does not hold it" in " ".join(out.split())
    assert "\x1b[2J" not in out


@pytest.mark.parametrize("run", ["check-2", "check", "2", "said-3"])
def test_an_honest_run_is_exit_0(filled: SqliteLedger, capsys: pytest.CaptureFixture[str], run: str) -> None:
    code, out = proofstone(capsys, run)
    assert code == 0
    assert out.startswith("0 findings  1 run")


def test_the_last_run_is_the_one_that_began_last(filled: SqliteLedger, capsys: pytest.CaptureFixture[str]) -> None:
    filled.append(EventRow(run_id="gate-1", type="run.resumed"))
    code, out = proofstone(capsys)
    assert (code, "audit-said-3-" in out) == (0, True)
    assert proofstone(capsys, "last") == (code, out)


def test_all_runs_make_one_document(filled: SqliteLedger, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = proofstone(capsys, "--all", "--json")
    document = json.loads(out)
    assert code == 1
    assert [finding["run_id"] for finding in document["boundary_violations"]] == ["gate-1", "gate-1"]
    assert document["period"]["runs"] == 3
    assert document["tool_health"] == {"read": {"calls": 1, "errors": 0, "refusals": 1}}


def test_all_and_a_run_cannot_both_be_meant(filled: SqliteLedger, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="one or the other"):
        proofstone(capsys, "--all", "gate-1")


def test_no_ledger_is_said_and_none_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROOFSTONE_HOME", str(tmp_path / "none"))
    with pytest.raises(LedgerError, match="there is no ledger"):
        proofstone(capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("text", "why"), [("-", "several runs"), ("nowhere", "names no run")])
def test_a_run_that_is_not_one_is_named(filled: SqliteLedger, path: Path, text: str, why: str) -> None:
    filled.append(started("gate-"), started("-gate"))
    with pytest.raises(InputError, match=why):
        find_any_run(path, text, None)


def test_an_empty_ledger_has_no_run(ledger: SqliteLedger, path: Path) -> None:
    with pytest.raises(InputError, match="there is no run yet"):
        find_any_run(path, "last", None)


def test_runs_are_known_by_events_checks_and_messages_newest_first(filled: SqliteLedger, path: Path) -> None:
    filled.append(build_check_row("rows-only"))
    assert list_run_ids(path) == (
        "rows-only",
        "said-3",
        "check-2",
        "gate-1",
    )


def test_where_one_stands_the_last_run_is_that_of_the_repository(
    filled: SqliteLedger,
    path: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repository = tmp_path / "shop"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    monkeypatch.chdir(repository)
    with pytest.raises(InputError, match="there is no run here"):
        proofstone(capsys)
    filled.append(started("gate-4", str(repository)), started("gate-5"))
    _, out = proofstone(capsys)
    assert "audit-gate-4-" in out


@pytest.mark.seed("control-loop", "auditor-reads")
def test_the_auditor_cannot_write(filled: SqliteLedger, path: Path) -> None:
    before = filled.head()
    with LedgerTap(path) as tap:
        assert tap.read_run("gate-1").events
        with pytest.raises(LedgerError, match="for reading only"):
            tap._ledger.append(started("forged"))
        for statement in ("INSERT INTO meta VALUES ('a', 'b')", "DROP TABLE messages", "PRAGMA user_version = 7"):
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                tap._ledger._connection.execute(statement)
    assert filled.head() == before
    assert filled.verify().ok


def test_what_is_said_while_it_looks_belongs_to_the_next_audit(filled: SqliteLedger, path: Path) -> None:
    with LedgerTap(path) as tap:
        MessageBus(filled, "said-3").publish("engine", "planner", "Dispatch", {"task": None}, message_id="m2")
        assert len(tap.read_run("said-3").envelopes) == 1
    with LedgerTap(path) as tap:
        assert len(tap.read_run("said-3").envelopes) == 2
