"""What is thrown away, and what never is."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from proofstone.check.cache import clean_caches
from proofstone.git.repository import open_repository
from proofstone.git.store import Store, open_store

DAY = 24 * 3600


@pytest.fixture
def store(tmp_path: Path) -> Store:
    subprocess.run(["git", "init", "-q", tmp_path / "repo"], check=True)
    return open_store(open_repository(tmp_path / "repo"), tmp_path / "home")


def file(path: Path, size: int, days_old: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as handle:
        handle.truncate(size)
    then = time.time() - days_old * DAY
    os.utime(path, (then, then))
    return path


def test_the_least_recently_used_goes_first_and_only_as_much_as_needed(tmp_path: Path, store: Store) -> None:
    home = tmp_path / "home"
    results = home / "cache" / "results"
    oldest = file(results / "aa" / "1.json", 700 << 20, 9)
    older = file(results / "aa" / "2.json", 700 << 20, 5)
    newer = file(results / "bb" / "3.json", 200 << 20, 3)
    assert clean_caches(home, store, 1)
    assert (oldest.exists(), older.exists(), newer.exists()) == (False, True, True)


def test_what_was_used_within_a_day_stays_whatever_its_size(tmp_path: Path, store: Store) -> None:
    home = tmp_path / "home"
    kept = file(home / "cache" / "results" / "aa" / "1.json", 3 << 30, 0.5)
    clean_caches(home, store, 1)
    assert kept.exists()


def test_evidence_is_never_thrown_away_but_half_written_files_are(tmp_path: Path, store: Store) -> None:
    home = tmp_path / "home"
    artifact = file(home / "artifacts" / "ab" / "cd", 2 << 30, 400)
    row = file(home / "ledger" / "ledger.db", 2 << 30, 400)
    half = file(home / "artifacts" / "tmp-1234", 10, 3)
    being_written = file(home / "artifacts" / "tmp-5678", 10, 0)
    clean_caches(home, store, 1)
    assert artifact.exists() and row.exists() and being_written.exists() and not half.exists()


def test_it_is_done_once_a_day(tmp_path: Path, store: Store) -> None:
    home = tmp_path / "home"
    assert clean_caches(home, store, 1)
    assert not clean_caches(home, store, 1)
    assert clean_caches(home, store, 1, now=time.time() + DAY + 60)


def test_a_clock_that_was_once_far_ahead_does_not_stop_the_housekeeping(tmp_path: Path, store: Store) -> None:
    home = tmp_path / "home"
    ahead = -127 * 365
    stamp = file(home / "cache" / "tidied", 0, ahead)
    kept = file(home / "cache" / "results" / "aa" / "1.json", 2 << 30, ahead)
    half = file(home / "artifacts" / "tmp-1234", 10, ahead)
    name = store.git().run("hash-object", "-w", "--stdin", stdin=b"once").stdout.decode().strip()
    thing = store.objects / name[:2] / name[2:]
    os.utime(thing, (time.time() - ahead * DAY,) * 2)
    assert clean_caches(home, store, 1)
    assert not clean_caches(home, store, 1), "the stamp is of today again"
    assert kept.exists() and half.exists(), "they may be in use: nobody knows how old they are"
    for path in (stamp, kept, half, thing):
        assert path.stat().st_mtime <= time.time()
    assert clean_caches(home, store, 1, now=time.time() + 15 * DAY)
    assert not kept.exists() and not half.exists()


def test_an_environment_is_removed_whole(tmp_path: Path, store: Store) -> None:
    home = tmp_path / "home"
    big = file(home / "environments" / "k1" / "layer" / "x", 2 << 30, 3)
    os.utime(big.parents[1], (time.time() - 3 * DAY,) * 2)
    clean_caches(home, store, 1)
    assert not big.parents[1].exists()
