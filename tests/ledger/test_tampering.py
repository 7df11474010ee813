"""Whoever has the file can change it; verification says so, with the first row that is not what was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofstone.errors import InputError
from proofstone.ledger.anchors import parse_anchors
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.rules.anchors import Anchor
from proofstone.ledger.rules.chain import ChainBreak
from proofstone.ledger.schema import TABLES, TableSpec
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.ledger.verification import verify_with_artifacts
from proofstone.testing.ledger_conformance import SAMPLE_ROWS, build_check_row
from tests.ledger.tampering import rehash_from, unprotected

LAST = len(SAMPLE_ROWS) + 3
CHECK = LAST - 1
"""A row of checks that is neither the first nor the last of anything."""


@pytest.fixture
def filled(ledger: SqliteLedger) -> SqliteLedger:
    ledger.append(*SAMPLE_ROWS)
    ledger.append(*(build_check_row() for _ in range(3)))
    return ledger


def problem(ledger: SqliteLedger, *anchors: Anchor) -> ChainBreak:
    found = ledger.verify(anchors).problem
    assert found is not None, "it verifies"
    return found


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_an_edit_of_any_column_is_found_at_its_row(filled: SqliteLedger, path: Path, table: TableSpec) -> None:
    for column in (*table.columns, "id"):
        with unprotected(path) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            query = f"SELECT seq, {column} FROM {table.name} ORDER BY seq LIMIT 1"
            seq, old = connection.execute(query).fetchone()
            new = old + 77 if isinstance(old, int) else f"{old}!"
            connection.execute(f"UPDATE {table.name} SET {column} = ? WHERE seq = ?", (new, seq))
        broken = problem(filled)
        assert broken.seq == seq, column
        with unprotected(path) as connection:
            connection.execute(f"UPDATE {table.name} SET {column} = ? WHERE seq = ?", (old, seq))
    assert filled.verify().ok


@pytest.mark.parametrize("value", ["1.5", "x'00'", "CAST(x'ff' AS TEXT)", "NULL", "'2'"])
def test_a_value_of_another_type_is_found(filled: SqliteLedger, path: Path, value: str) -> None:
    with unprotected(path) as connection:
        connection.execute(f"UPDATE checks SET command = {value} WHERE seq = 1")
    assert problem(filled) == ChainBreak(1, "the row in checks was changed after it was written")


def test_a_removed_row_is_found(filled: SqliteLedger, path: Path) -> None:
    with unprotected(path) as connection:
        connection.execute("DELETE FROM checks WHERE seq = ?", (CHECK,))
    assert problem(filled) == ChainBreak(CHECK, "the chain names a row of checks that does not exist")


def test_a_row_removed_with_its_chain_entry_is_found(filled: SqliteLedger, path: Path) -> None:
    with unprotected(path) as connection:
        for table in ("checks", "chain"):
            connection.execute(f"DELETE FROM {table} WHERE seq = ?", (CHECK,))
    assert problem(filled).seq == CHECK


def test_a_chain_entry_removed_alone_is_found(filled: SqliteLedger, path: Path) -> None:
    with unprotected(path) as connection:
        connection.execute("DELETE FROM chain WHERE seq = ?", (LAST,))
    assert problem(filled) == ChainBreak(LAST, "a row of checks has no place in the chain")


def test_an_emptied_table_is_found(filled: SqliteLedger, path: Path) -> None:
    with unprotected(path) as connection:
        connection.execute("DELETE FROM checks")
    assert problem(filled).seq == 1


def test_a_replaced_row_is_found(filled: SqliteLedger, path: Path) -> None:
    """All keys and hashes stay, the contents are another row's."""
    with unprotected(path) as connection:
        connection.execute(
            "INSERT OR REPLACE INTO checks SELECT id, 'another', task_id, phase, check_name, tool, command, "
            "exit_code, output_snippet, passed, verdict, severity, round, attempt, tree, tier, state, assurance, "
            "duration_ms, artifact, reused_from, result_digest, ts, seq, prev_hash, payload_hash, hash "
            f"FROM checks WHERE seq = {CHECK}"
        )
    assert problem(filled).seq == CHECK


def test_two_swapped_rows_are_found(filled: SqliteLedger, path: Path) -> None:
    with unprotected(path) as connection:
        for old, new in ((CHECK, 0), (LAST, CHECK), (0, LAST)):
            connection.execute("UPDATE checks SET seq = ? WHERE seq = ?", (new, old))
    assert problem(filled).seq == CHECK


def test_a_rehashed_row_is_found_at_the_row_after_it(filled: SqliteLedger, path: Path) -> None:
    with unprotected(path) as connection:
        connection.execute("UPDATE checks SET state = 'fail', passed = 0 WHERE seq = ?", (CHECK,))
        connection.execute("CREATE TEMP TABLE kept AS SELECT * FROM chain WHERE seq > ?", (CHECK,))
        assert filled.key is not None
        rehash_from(connection, filled.ledger_id, CHECK, filled.key.value)
        for table in ("chain", "checks"):
            connection.execute(
                f"UPDATE {table} SET (payload_hash, prev_hash, hash) = (SELECT payload_hash, prev_hash, hash "
                f"FROM kept WHERE kept.seq = {table}.seq) WHERE seq > ?",
                (CHECK,),
            )
    assert problem(filled) == ChainBreak(LAST, "prev_hash is not the hash of the previous entry")


def test_a_wholly_rehashed_ledger_is_seen_by_its_codes(filled: SqliteLedger, path: Path) -> None:
    with unprotected(path) as connection:
        connection.execute("UPDATE checks SET state = 'unverifiable', passed = 0 WHERE seq = ?", (CHECK,))
        rehash_from(connection, filled.ledger_id, 1)
    found = filled.verify()
    assert [one.seq for one in found.problems] == [CHECK, LAST]
    assert "authentication code" in found.problems[0].reason


def test_one_that_was_rehashed_with_its_key_is_seen_only_by_an_anchor(filled: SqliteLedger, path: Path) -> None:
    anchor = filled.head()
    assert filled.key is not None
    with unprotected(path) as connection:
        connection.execute("UPDATE checks SET state = 'unverifiable', passed = 0 WHERE seq = ?", (CHECK,))
        rehash_from(connection, filled.ledger_id, 1, filled.key.value)
    assert filled.verify().ok
    assert problem(filled, anchor).seq == LAST


def test_anchors_before_the_forgery_narrow_it_down(filled: SqliteLedger, path: Path) -> None:
    with unprotected(path) as connection:
        hashes = dict(connection.execute("SELECT seq, hash FROM chain"))
        connection.execute("UPDATE checks SET tool = 'forged' WHERE seq = ?", (CHECK,))
        assert filled.key is not None
        rehash_from(connection, filled.ledger_id, CHECK, filled.key.value)
    anchors = [Anchor(ledger_id=filled.ledger_id, seq=seq, hash=hashes[seq]) for seq in (LAST, CHECK, CHECK - 1, 1)]
    assert problem(filled, *anchors) == ChainBreak(
        CHECK, f"not the anchored entry: entries {CHECK} to {CHECK} were rewritten"
    )
    assert filled.verify(anchors[2:]).ok


@pytest.mark.parametrize("rewritten", [False, True])
def test_a_cut_tail_is_seen_only_by_an_anchor(filled: SqliteLedger, path: Path, rewritten: bool) -> None:
    anchor = filled.head()
    with unprotected(path) as connection:
        for table in ("checks", "chain"):
            connection.execute(f"DELETE FROM {table} WHERE seq > ?", (LAST - 2,))
        connection.execute("UPDATE sqlite_sequence SET seq = seq - 2 WHERE name = 'checks'")
    assert filled.verify().ok
    assert problem(filled, anchor) == ChainBreak(LAST - 1, f"cut after entry {LAST - 2}: an anchor names entry {LAST}")
    if rewritten:
        filled.append(build_check_row("forged"), build_check_row("forged"))
        assert filled.verify().ok
        assert problem(filled, anchor).seq == LAST


def test_a_swapped_ledger_id_is_found(filled: SqliteLedger, path: Path) -> None:
    with unprotected(path) as connection:
        connection.execute("UPDATE meta SET value = 'another' WHERE key = 'ledger_id'")
    with SqliteLedger(path, "read") as reopened:
        assert problem(reopened).seq == 1


def test_a_missing_trigger_is_found(filled: SqliteLedger, path: Path) -> None:
    with unprotected(path) as connection:
        pass
    assert filled.verify().ok
    connection = filled._connection
    connection.execute("DROP TRIGGER events_no_delete")
    assert problem(filled) == ChainBreak(
        None, "the schema was changed: trigger events_no_delete is missing, added or different"
    )


def test_a_damaged_file_is_a_finding(filled: SqliteLedger, path: Path) -> None:
    filled.append(*(build_check_row(run_id="x" * 400) for _ in range(200)))
    filled.close()
    data = bytearray(path.read_bytes())
    for page in range(len(data) // 4096 // 2, len(data) // 4096):
        data[page * 4096 : page * 4096 + 100] = b"\xff" * 100
    path.write_bytes(data)
    with SqliteLedger(path, "read") as reopened:
        assert not reopened.verify().ok


def test_a_missing_and_a_changed_artifact_are_found(ledger: SqliteLedger, home: Path) -> None:
    store = ArtifactStore(home / "artifacts")
    first, second = store.put(b"first"), store.put(b"second")
    ledger.append(first.to_row(), build_check_row().model_copy(update={"artifact": second.hash}))
    assert verify_with_artifacts(ledger, store).ok
    store.path_of(second.hash).write_bytes(b"forged")
    assert verify_with_artifacts(ledger, store).problem == ChainBreak(2, f"artifact {second.hash} was changed")
    store.path_of(first.hash).unlink()
    assert verify_with_artifacts(ledger, store).problem == ChainBreak(1, f"artifact {first.hash} is missing")


def test_anchors_go_through_bytes_unchanged(filled: SqliteLedger) -> None:
    anchors = (filled.head(), Anchor(ledger_id="x", seq=0, hash="0" * 64))
    assert parse_anchors(b"".join(anchor.to_bytes() for anchor in anchors), source="a file") == anchors


@pytest.mark.parametrize(
    "line", [b"{}", b"not json", b'{"ledger_id":"x","seq":-1,"hash":"' + b"0" * 64 + b'"}', b"\xff"]
)
def test_what_is_no_anchor_is_named_with_its_line(line: bytes) -> None:
    with pytest.raises(InputError, match=r"anchors\.txt, line 2: not an anchor"):
        parse_anchors(b"\n" + line + b"\n", source="anchors.txt")
