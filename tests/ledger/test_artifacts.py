"""Artifacts appear whole, under their hash, or not at all."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.errors import InputError, LedgerCorruptError, LedgerError
from proofstone.ledger.artifacts import ArtifactStore


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "artifacts")


def files(store: ArtifactStore) -> list[Path]:
    return sorted(path.relative_to(store.directory) for path in store.directory.rglob("*") if path.is_file())


@given(chunks=st.lists(st.binary(max_size=50)), limit=st.integers(0, 200))
def test_what_is_kept_is_the_beginning_up_to_the_limit(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes], limit: int
) -> None:
    store = ArtifactStore(tmp_path_factory.getbasetemp() / "artifacts")
    with store.open_writer(limit) as writer:
        for chunk in chunks:
            writer.write(chunk)
        ref = writer.finish()
    whole = b"".join(chunks)
    assert store.read(ref.hash) == whole[:limit]
    assert (ref.size, ref.truncated) == (len(whole[:limit]), len(whole) > limit)


def test_the_name_is_the_hash_and_the_mode_is_private(store: ArtifactStore) -> None:
    ref = store.put(b"output")
    digest = hashlib.sha256(b"output").hexdigest()
    assert ref.hash == digest
    path = store.directory / digest[:2] / digest[2:]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(store.directory.stat().st_mode) == 0o700


def test_the_same_bytes_twice_are_one_file(store: ArtifactStore) -> None:
    assert store.put(b"same") == store.put(b"same")
    assert len(files(store)) == 1


def test_writing_again_repairs_a_damaged_artifact(store: ArtifactStore) -> None:
    ref = store.put(b"output")
    store.path_of(ref.hash).write_bytes(b"damaged")
    store.put(b"output")
    assert store.find_problem(ref.hash) is None


def test_leaving_without_finish_leaves_nothing(store: ArtifactStore) -> None:
    with pytest.raises(RuntimeError, match="the process died"), store.open_writer() as writer:
        writer.write(b"half")
        raise RuntimeError("the process died")
    assert files(store) == []


def test_a_changed_artifact_is_not_handed_out(store: ArtifactStore) -> None:
    ref = store.put(b"output")
    store.path_of(ref.hash).write_bytes(b"forged")
    with pytest.raises(LedgerCorruptError, match="does not match the hash in its name"):
        store.read(ref.hash)
    assert store.find_problem(ref.hash) == f"artifact {ref.hash} was changed"


def test_a_missing_artifact_is_named(store: ArtifactStore) -> None:
    with pytest.raises(LedgerError, match="No such file"):
        store.read("0" * 64)
    assert store.find_problem("0" * 64) == f"artifact {'0' * 64} is missing"


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "0" * 63, "A" * 64, "0" * 62 + "/x"])
def test_what_is_no_hash_is_refused(store: ArtifactStore, digest: str) -> None:
    with pytest.raises(LedgerError, match="is not the hash of an artifact"):
        store.path_of(digest)


def test_a_row_says_what_was_kept(store: ArtifactStore) -> None:
    row = store.put(b"0123456789", max_bytes=4).to_row("text/x-log")
    assert (row.size, row.truncated, row.media_type) == (4, True, "text/x-log")


def test_an_artifact_is_found_by_the_first_digits_of_its_hash(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    digest = store.put(b"evidence").hash
    assert store.find(digest[:6]) == store.find(digest) == digest
    for wrong in ("abc", "zzzz", "../../etc", digest[:-1] + ("0" if digest[-1] != "0" else "1")):
        with pytest.raises(InputError):
            store.find(wrong)
