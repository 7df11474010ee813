"""`proofstone ledger`: exit codes, what is printed, what is exported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofstone.cli.main import main
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.connection import artifacts_path
from proofstone.ledger.models import EventRow
from proofstone.ledger.rules.chain import ChainEntry, ChainLink, find_first_break
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.testing.ledger_conformance import build_check_row
from tests.ledger.tampering import unprotected


@pytest.fixture
def filled(ledger: SqliteLedger, home: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteLedger:
    monkeypatch.setenv("PROOFSTONE_HOME", str(home))
    monkeypatch.setenv("COLUMNS", "120")
    ref = ArtifactStore(artifacts_path(home)).put(b"all of the output")
    ledger.append(EventRow(run_id="run-a", type="run.started"), ref.to_row())
    ledger.append(
        build_check_row("run-a").model_copy(update={"artifact": ref.hash}), build_check_row("run-b", "evil\x1b[2J")
    )
    return ledger


def proofstone(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = main(["ledger", *args])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_verify_says_yes_with_exit_0(filled: SqliteLedger, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = proofstone(capsys, "verify")
    assert code == 0
    assert out.startswith(f"verified: 4 rows; head {filled.head().hash}")


def test_verify_names_every_bad_row_with_exit_1(
    filled: SqliteLedger, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with unprotected(path) as connection:
        connection.execute("UPDATE checks SET tool = 'forged' WHERE seq IN (3, 4)")
    code, out, _ = proofstone(capsys, "verify")
    assert (code, out.splitlines()[:3]) == (
        1,
        [
            "does not verify: row 3: the row in checks was changed after it was written",
            "  row 4: the row in checks was changed after it was written",
            "2 problems; examined 4 rows, the rest verifies",
        ],
    )
    code, out, _ = proofstone(capsys, "verify", "--json")
    document = json.loads(out)
    assert (code, document["ok"], document["problem"]["seq"]) == (1, False, 3)


def test_verify_finds_a_missing_artifact(filled: SqliteLedger, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in artifacts_path(home).rglob("*/*"):
        file.unlink()
    code, out, _ = proofstone(capsys, "verify")
    assert code == 1
    assert "row 2: artifact " in out


def test_verify_holds_the_ledger_against_anchor_files(
    filled: SqliteLedger, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    anchors = tmp_path / "anchors"
    anchors.write_bytes(filled.head().to_bytes())
    assert proofstone(capsys, "verify", "--anchor", str(anchors))[:1] == (0,)
    with unprotected(path) as connection:
        for table, column in (("checks", "seq"), ("chain", "seq"), ("run_index", "first_seq")):
            connection.execute(f"DELETE FROM {table} WHERE {column} = 4")
    assert proofstone(capsys, "verify")[0] == 0
    code, out, _ = proofstone(capsys, "verify", "--anchor", str(anchors))
    assert code == 1
    assert "row 4: cut after entry 3" in out


def test_verify_of_a_damaged_file_is_exit_1(
    filled: SqliteLedger, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled.close()
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    code, out, _ = proofstone(capsys, "verify")
    assert code == 1
    assert "damaged" in out


@pytest.mark.parametrize("command", [("verify",), ("show",), ("query", "SELECT 1"), ("export",)])
def test_no_ledger_is_exit_2_and_none_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    code, out, err = proofstone(capsys, *command, "--home", str(tmp_path))
    assert (code, out) == (2, "")
    assert "there is no ledger" in err
    assert list(tmp_path.iterdir()) == []


def test_show_lists_runs_and_then_one_run(filled: SqliteLedger, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = proofstone(capsys, "show")
    assert code == 0
    assert out.index("run-b") < out.index("run-a"), "the most recent first"
    _, out, _ = proofstone(capsys, "show", "run-a")
    assert "tests:pytest" in out
    assert "run.started" in out
    _, out, _ = proofstone(capsys, "show", "run-a", "--json")
    assert [check["seq"] for check in json.loads(out)["checks"]] == [3]


def test_text_from_a_row_cannot_drive_the_terminal(filled: SqliteLedger, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = proofstone(capsys, "show", "run-b")
    assert "\x1b[2J" not in out
    assert "evil\\x1b[2J" in out


def test_show_of_an_unknown_run_is_exit_2(filled: SqliteLedger, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = proofstone(capsys, "show", "nowhere")
    assert code == 2
    assert "nowhere: names no run" in err


def test_query_answers_as_table_and_as_json(filled: SqliteLedger, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT run_id, passed FROM checks ORDER BY seq"
    assert "run-a" in proofstone(capsys, "query", sql)[1]
    _, out, _ = proofstone(capsys, "query", sql, "--json", "--limit", "1")
    assert json.loads(out) == {"rows": [{"run_id": "run-a", "passed": 1}], "more": True}


def test_an_error_in_sql_is_exit_2_with_sqlites_words(filled: SqliteLedger, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = proofstone(capsys, "query", "SELECT * FROM nowhere")
    assert code == 2
    assert "no such table: nowhere" in err


def test_an_export_verifies_without_the_ledger(filled: SqliteLedger, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = proofstone(capsys, "export")
    entries = []
    for line in out.splitlines():
        row = json.loads(line)
        link = ChainLink(row["seq"], row["table"], row["payload_hash"], row["prev_hash"], row["hash"])
        entries.append(ChainEntry(link, link, row["payload"]))
    assert len(entries) == 4
    assert find_first_break(filled.ledger_id, entries) is None


def test_an_export_of_one_run_goes_to_a_file(
    filled: SqliteLedger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out.jsonl"
    target.write_text("old")
    assert proofstone(capsys, "export", "--run", "run-a", "--out", str(target)) == (0, "", "")
    assert [json.loads(line)["seq"] for line in target.read_text().splitlines()] == [1, 3]
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["out.jsonl"]


def test_an_export_that_cannot_be_written_is_exit_2(
    filled: SqliteLedger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = proofstone(capsys, "export", "--out", str(tmp_path / "nowhere" / "out.jsonl"))
    assert code == 2
    assert "--out" in err


def test_an_export_of_a_run_that_is_not_there_writes_nothing(
    filled: SqliteLedger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rows.jsonl"
    code, text, err = proofstone(capsys, "export", "--run", "nonsense", "--out", str(out))
    assert (code, text, out.exists()) == (2, "", False)
    assert "nonsense: names no run" in err and "proofstone ledger show" in err
