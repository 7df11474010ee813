"""Rows carry a code of the ledger's key: whoever does not read the key is found out."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from proofstone.check.cache import ResultCache, digest_result
from proofstone.check.models import CheckKind, CheckResult
from proofstone.check.recording import raise_if_forged
from proofstone.check.rules.commit_evidence import RecordedCheck
from proofstone.common.models import Phase, Verdict
from proofstone.errors import LedgerCorruptError, LedgerError
from proofstone.ledger.keys import key_path
from proofstone.ledger.models import CheckRow, EventRow
from proofstone.ledger.rules.chain import AuthenticationLevel, checkpoint_code, next_link, row_code
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.ledger.verification import checkpoint_path
from proofstone.testing.ledger_conformance import build_check_row
from tests.ledger.tampering import raw, unprotected


def forge(path: Path, ledger: SqliteLedger, code: str = "0" * 64) -> int:
    """Append a row as somebody does who knows how rows are hashed, but not the key."""
    head = ledger.head()
    values = {"run_id": "forged", "task_id": None, "type": "run.finished", "payload": "{}", "ts": "2026"}
    link = next_link(head.hash, head.seq + 1, "events", values)
    hashes = (link.payload_hash, link.prev_hash, link.hash)
    connection = raw(path)
    connection.execute("INSERT INTO chain VALUES (?, 'events', ?, ?, ?, ?)", (link.seq, *hashes, code))
    columns = "run_id, task_id, type, payload, ts, seq, payload_hash, prev_hash, hash"
    connection.execute(
        f"INSERT INTO events ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*values.values(), link.seq, *hashes)
    )
    connection.close()
    return link.seq


def test_a_forged_row_is_found_and_nothing_is_added_to_it(ledger: SqliteLedger, path: Path) -> None:
    ledger.append(build_check_row())
    seq = forge(path, ledger)
    found = ledger.verify()
    assert [one.seq for one in found.problems] == [seq]
    assert "authentication code" in found.problems[0].reason
    (stored,) = ledger.read(EventRow)
    assert not ledger.is_authentic(stored)
    with pytest.raises(LedgerCorruptError, match="row 2, the last one, was not written with the ledger's key"):
        ledger.append(build_check_row())
    with pytest.raises(LedgerCorruptError, match="row 2 of the ledger, of the run forged"):
        raise_if_forged(
            ledger, [RecordedCheck(run_id="forged", tree="t", base_commit="b", outcome=None, recorded_at="")]
        )


def test_whoever_reads_the_key_can_forge_and_the_level_says_so(ledger: SqliteLedger, path: Path) -> None:
    ledger.append(build_check_row())
    assert ledger.key is not None
    head = ledger.head()
    values = {"run_id": "forged", "task_id": None, "type": "run.finished", "payload": "{}", "ts": "2026"}
    link = next_link(head.hash, 2, "events", values)
    forge(path, ledger, row_code(ledger.key.value, link.hash))
    found = ledger.verify()
    assert found.ok
    assert found.level is AuthenticationLevel.KEY_FILE
    assert "process of your own account can read the key and forge rows" in found.level.limits


def test_the_key_is_for_its_owner_and_a_ledger_without_it_is_not_written(ledger: SqliteLedger, path: Path) -> None:
    ledger.append(build_check_row())
    ledger.close()
    key = key_path(path)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    text = key.read_text()
    key.unlink()
    with pytest.raises(LedgerError, match="the key that authenticates the ledger's rows is missing"):
        SqliteLedger(path)
    with SqliteLedger(path, "read") as reader:
        found = reader.verify()
        assert found.level is AuthenticationLevel.NONE
        assert "no key" in found.problems[0].reason, "removing the key does not spare a ledger the proof"
        assert reader.checkpoint() is None
    key.write_text("f" * 64)
    with SqliteLedger(path) as other:
        assert not other.verify().ok
    key.write_text("not a key")
    with pytest.raises(LedgerError, match="does not hold 64 hex digits"):
        SqliteLedger(path)
    key.write_text(text)
    with SqliteLedger(path) as again:
        assert again.verify().ok


def test_verification_goes_on_from_an_authentic_checkpoint_only(ledger: SqliteLedger, path: Path) -> None:
    ledger.append(build_check_row(), build_check_row())
    assert ledger.record_checkpoint(ledger.head()) == ""
    ledger.append(build_check_row())
    since = ledger.checkpoint()
    assert since is not None
    found = ledger.verify(since=since)
    assert (found.ok, found.start, found.head.seq) == (True, 2, 3)
    with unprotected(path) as connection:
        connection.execute("UPDATE checks SET tool = 'forged' WHERE seq IN (1, 3)")
    assert [one.seq for one in ledger.verify(since=since).problems] == [3]
    assert [one.seq for one in ledger.verify().problems] == [1, 3]
    good = checkpoint_path(path).read_text()
    head = ledger.head()
    code = checkpoint_code(b"guessed", head.ledger_id, head.seq, head.hash)
    checkpoint_path(path).write_text(f'{{"anchor":{head.model_dump_json()},"mac":"{code}"}}')
    assert ledger.checkpoint() is None
    checkpoint_path(path).write_text(good)
    assert ledger.checkpoint() == since


def result(**changes: object) -> CheckResult:
    one = CheckResult(
        name="tests:pytest",
        kind=CheckKind.TESTS,
        tier=2,
        tool="pytest",
        command="pytest",
        phase=Phase.AFTER,
        tree="a" * 40,
        verdict=Verdict.PASS,
    )
    return one.model_copy(update=changes)


def test_a_kept_result_that_is_not_what_its_row_is_about_is_not_used(ledger: SqliteLedger, tmp_path: Path) -> None:
    cache = ResultCache(tmp_path / "cache", ledger)
    row = CheckRow(
        run_id="r", task_id="t", phase=Phase.AFTER, check_name="tests:pytest", tool="pytest", state=Verdict.PASS
    )
    (seq,) = ledger.append(row.model_copy(update={"result_digest": digest_result(result())}))
    cache.store("k" * 64, result(), seq)
    assert cache.lookup("k" * 64) == result(reused_from=seq)
    assert cache.repairs == []
    (file,) = (tmp_path / "cache").rglob("*.json")
    file.write_text(file.read_text().replace('"output":""', '"output":"edited"'))
    assert cache.lookup("k" * 64) is None
    assert cache.lookup("k" * 64) is None
    assert cache.repairs == [
        "a cached result of tests:pytest was not used, and the check was run again: it is not the result that row 1 of "
        "the ledger is about",
    ]
