"""What is damaged is named with its place, and the rest is verified and can be read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from proofstone.check.models import CheckRunConfig
from proofstone.cli.main import main
from proofstone.errors import LedgerCorruptError
from proofstone.ledger.models import CheckRow, EventRow
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.testing.ledger_conformance import build_check_row
from tests.ledger.tampering import raw, unprotected
from tests.needs import needs

_PAGE = 4096
_COMMANDS = "import sys; from proofstone.cli.main import main; print([main(line.split('|')) for line in sys.argv[1:]])"
"""Runs several commands in one process, and prints their exit codes last."""
_ASKED = ("ledger|verify", "ledger|show|run-1", "ledger|query|SELECT COUNT(*) AS n FROM chain", "runs", "status")


def pages_of(path: Path, name: str) -> list[int]:
    """The leaf pages of a table, in order."""
    connection = raw(path)
    try:
        query = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY pageno"
        return [int(number) for (number,) in connection.execute(query, (name,))]
    finally:
        connection.close()


@pytest.mark.parametrize("table", ["checks", "chain"])
def test_rows_on_a_damaged_page_are_named_and_the_others_verified(ledger: SqliteLedger, path: Path, table: str) -> None:
    ledger.append(*(build_check_row(run_id=f"run-{number}") for number in range(200)))
    last = ledger.append(EventRow(run_id="run-1", type="run.finished"))[0]
    ledger.close()
    try:
        page = pages_of(path, table)[2]
    except Exception as error:  # noqa: BLE001  this SQLite cannot tell its pages
        pytest.skip(str(error))
    data = bytearray(path.read_bytes())
    data[(page - 1) * _PAGE : page * _PAGE] = b"\xff" * _PAGE
    path.write_bytes(data)
    with SqliteLedger(path, "read") as reader:
        found = reader.verify()
    assert found.head.seq == last
    rows = [one for one in found.problems if one.seq is not None]
    assert len(rows) == 1, "one place is damaged, and nothing else is blamed"
    assert "cannot be read" in rows[0].reason
    assert table in rows[0].reason


def test_a_row_that_is_no_row_any_more_is_named_by_whoever_reads_it(ledger: SqliteLedger, path: Path) -> None:
    ledger.append(EventRow(run_id="r", type="run.started", payload={"command": "gate"}), build_check_row())
    with unprotected(path) as connection:
        connection.execute("UPDATE events SET payload = '{' WHERE seq = 1")
        connection.execute("UPDATE checks SET run_id = x'ff' WHERE seq = 2")
    home = str(path.parent.parent)
    assert main(["ledger", "verify", "--full", "--home", home]) == 1
    assert main(["ledger", "show", "--home", home]) == 0
    with pytest.raises(LedgerCorruptError, match="entry 1 of the ledger is not a valid row of events"):
        _ = [one.row for one in ledger.read(EventRow)]
    with pytest.raises(LedgerCorruptError, match="entry 2 of the ledger is not a valid row of checks"):
        _ = [one.row for one in ledger.read(CheckRow)]


def test_a_sequence_number_that_is_none_is_a_finding(ledger: SqliteLedger, path: Path) -> None:
    ledger.append(build_check_row(), build_check_row())
    with unprotected(path) as connection:
        connection.execute("UPDATE checks SET seq = 'two' WHERE seq = 2")
    reasons = [one.reason for one in ledger.verify().problems]
    assert any("has 'two' as its sequence number" in reason for reason in reasons)


@needs("bwrap")
@pytest.mark.parametrize("log", [False, True], ids=["closed", "with a log left behind"])
def test_a_read_only_file_system_can_be_read(home: Path, path: Path, log: bool) -> None:
    with SqliteLedger(path) as ledger:
        ledger.append(build_check_row("run-1"), EventRow(run_id="run-1", type="run.finished"))
        if log:
            shutil.copytree(home, home.with_name("copy"), ignore=shutil.ignore_patterns("*-shm"))
    if log:
        shutil.rmtree(home)
        home.with_name("copy").rename(home)
    done = subprocess.run(
        ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--", sys.executable, "-c", _COMMANDS, *_ASKED],
        env={**os.environ, "PROOFSTONE_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    verified, *_, last = done.stdout.splitlines()
    assert verified.startswith("verified: 2 rows")
    assert json.loads(last) == [0, 0, 0, 0, 2], done.stderr
    assert "there is no run yet" in done.stderr


def test_a_run_whose_rows_have_another_form_is_named_and_the_others_are_listed(
    home: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a ledger has them that another version of Proofstone has written to: authentic, and unreadable."""
    readable = CheckRunConfig(
        version="1",
        repository="/r",
        base_commit="1" * 40,
        tree="2" * 40,
        frozen="2" * 40,
        base="3" * 40,
        sandbox="plain",
    ).model_dump(mode="json")
    for run_id, payload in (
        ("20260101T000000Z-00000a", readable),
        ("20260102T000000Z-00000b", {"command": "check", "repository": "/r"}),
        ("20260103T000000Z-00000c", {"command": "gate", "repository": "/r"}),
    ):
        ledger.append(EventRow(run_id=run_id, type="run.started", payload=payload))
    monkeypatch.setenv("PROOFSTONE_HOME", str(home))
    assert main(["runs"]) == 0
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()] == ["20260101T000000Z-00000a"]
    assert "20260102T000000Z-00000b: a row of this run cannot be read (CheckRunConfig, version: Field required)" in err
    assert "20260103T000000Z-00000c: a row of this run cannot be read (GateSetup, " in err
    assert main(["runs", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [run["run_id"] for run in document["unreadable"]] == ["20260103T000000Z-00000c", "20260102T000000Z-00000b"]
    assert main(["status", "00000c"]) == 2
    assert "another version of Proofstone wrote it" in capsys.readouterr().err
