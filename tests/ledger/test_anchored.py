"""A ledger that was set back, emptied or exchanged is noticed before anything is written to it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from proofstone.app.context import open_writable_ledger
from proofstone.app.ledger import LedgerVerification, reanchor_repository, verify_ledger
from proofstone.cli.main import main
from proofstone.errors import AnchorError, LedgerError
from proofstone.git.repository import LEDGER_REF, Repository, open_repository
from proofstone.ledger.anchors import AnchorFiles
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.models import OverrideRow
from proofstone.ledger.repository_anchors import anchor_head, demand_valid_anchors
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.testing.ledger_conformance import build_check_row


def git(directory: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=directory, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    (tmp_path / "repo").mkdir()
    git(tmp_path / "repo", "init", "-q")
    return open_repository(tmp_path / "repo")


def record(home: Path, repository: Repository) -> None:
    """What a run does: it opens the ledger, writes, and anchors the head."""
    with open_writable_ledger(home, repository, create=True) as ledger:
        ledger.append(build_check_row(), build_check_row())
        assert anchor_head(ledger, home, repository) is None


def refused(home: Path, repository: Repository) -> str:
    with pytest.raises(AnchorError) as caught, open_writable_ledger(home, repository, create=True):
        pass
    assert "proofstone ledger reanchor" in (caught.value.hint or "")
    assert caught.value.exit_code == 2
    return caught.value.message


def copy_of(home: Path, name: str = "ledger") -> Path:
    return Path(shutil.copytree(home / name, home.parent / f"copy-of-{name}"))


def test_a_ledger_that_was_set_back_is_refused_until_a_person_says_why(home: Path, repository: Repository) -> None:
    record(home, repository)
    before = copy_of(home)
    record(home, repository)
    shutil.rmtree(home / "ledger")
    before.rename(home / "ledger")
    message = refused(home, repository)
    assert (
        "rewound: refs/proofstone/ledger in the repository recorded the ledger at row 4; it now ends at row 2"
        in message
    )
    assert "rewound: the state directory" in message
    git(repository.root, "update-ref", "-d", LEDGER_REF)
    assert "rewound: the state directory" in refused(home, repository), "the second place knows it as well"
    with pytest.raises(AnchorError), open_writable_ledger(home):
        pass  # words of a person, which are about no repository
    findings, _ = reanchor_repository(repository.root, "restored\nfrom the backup", "me", home)
    assert findings
    record(home, repository)
    with SqliteLedger(ledger_path(home), "read") as ledger:
        (row,) = ledger.read(OverrideRow)
    assert (row.row.action, row.row.reason, row.row.decided_by) == ("reanchor", "restored from the backup", "me")
    assert "rewound" in str(row.row.payload)


def test_rows_that_were_written_anew_are_refused(home: Path, repository: Repository) -> None:
    record(home, repository)
    before = copy_of(home)
    record(home, repository)
    shutil.rmtree(home / "ledger")
    before.rename(home / "ledger")
    with SqliteLedger(ledger_path(home)) as ledger:
        ledger.append(build_check_row("another"), build_check_row("another"))
    assert "rewritten: refs/proofstone/ledger" in refused(home, repository)


@pytest.mark.parametrize("what", ["ledger", "."])
def test_a_ledger_or_a_state_directory_that_was_removed_is_missed(
    home: Path, repository: Repository, what: str
) -> None:
    record(home, repository)
    with SqliteLedger(ledger_path(home), "read") as ledger:
        old = ledger.ledger_id
    shutil.rmtree(home / what)
    message = refused(home, repository)
    assert f"foreign: the repository is anchored to row 2 of the ledger {old}, which is not here" in message
    assert ("replaced:" in message) == (what == "ledger")
    reanchor_repository(repository.root, "I removed it", "me", home)
    record(home, repository)


def test_an_empty_ledger_does_not_verify_in_a_repository_that_is_anchored_elsewhere(
    home: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record(home, repository)
    shutil.rmtree(home)
    refused(home, repository)  # a check, which makes a new ledger and then refuses to write to it
    monkeypatch.setenv("PROOFSTONE_HOME", str(home))
    monkeypatch.chdir(repository.root)
    assert main(["ledger", "verify"]) == 1
    assert f"{repository.common_dir}: the repository is anchored to row 2 of the ledger " in capsys.readouterr().out
    monkeypatch.chdir(home)
    assert main(["ledger", "verify"]) == 0


def test_a_ref_that_was_removed_is_missed(home: Path, repository: Repository) -> None:
    record(home, repository)
    git(repository.root, "update-ref", "-d", LEDGER_REF)
    assert "missing: refs/proofstone/ledger" in refused(home, repository)
    proof = verify_ledger(home)
    assert isinstance(proof, LedgerVerification)
    assert [one.seq for one in proof.verification.problems] == [None]
    assert str(repository.common_dir) in proof.verification.problems[0].reason


def test_a_clone_and_a_new_clone_at_the_same_path_are_no_concern(
    home: Path, repository: Repository, tmp_path: Path
) -> None:
    git(repository.root, "-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "--allow-empty", "-m", "x")
    record(home, repository)
    git(tmp_path, "clone", "-q", str(repository.root), "clone")
    record(home, open_repository(tmp_path / "clone"))
    (tmp_path / "clone").rename(tmp_path / "old")  # still there, so that its inode is not given to another
    git(tmp_path, "clone", "-q", str(repository.root), "clone")
    record(home, open_repository(tmp_path / "clone"))


def test_two_homes_share_a_repository_once_the_second_was_accepted(home: Path, repository: Repository) -> None:
    other = home.with_name("other")
    record(home, repository)
    assert "foreign:" in refused(other, repository)
    reanchor_repository(repository.root, "my second machine", "me", other)
    for place in (other, home, other):
        record(place, repository)
    assert len(git(repository.root, "cat-file", "blob", LEDGER_REF).splitlines()) == 2


def test_anchors_that_changed_during_a_run_are_not_overwritten(home: Path, repository: Repository) -> None:
    record(home, repository)
    with open_writable_ledger(home, repository) as ledger:
        ledger.append(build_check_row())
        git(repository.root, "update-ref", "-d", LEDGER_REF)
        problem = anchor_head(ledger, home, repository)
    assert problem is not None
    assert "no longer names row 2" in problem
    assert "missing:" in refused(home, repository)


def test_a_line_that_a_crash_left_unfinished_is_passed_over(home: Path, repository: Repository) -> None:
    record(home, repository)
    (file,) = AnchorFiles(home).folder.iterdir()
    with file.open("ab") as opened:
        opened.write(b'{"anchor":{"ha')
    for rows in (4, 6):
        record(home, repository)
        found = AnchorFiles(home).find_last(repository.common_dir)
        assert found is not None
        assert found.anchor.seq == rows
    file.write_bytes(b"nothing\n")
    with SqliteLedger(ledger_path(home)) as ledger, pytest.raises(LedgerError, match="contains no readable anchor"):
        demand_valid_anchors(ledger, home, repository)


def test_reanchoring_asks_for_a_reason_and_leaves_what_holds_alone(
    home: Path, repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    record(home, repository)
    command = ["ledger", "reanchor", "--home", str(home), "--repo", str(repository.root), "--reason"]
    assert main([*command, " "]) == 2
    assert main([*command, "to be sure"]) == 0
    assert "nothing to do" in capsys.readouterr().out
    with SqliteLedger(ledger_path(home)) as ledger:
        assert ledger.read(OverrideRow) == []


def test_a_repository_that_cannot_be_read_is_named_and_the_rest_verified(
    home: Path, repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(home, repository)
    (tmp_path / "second").mkdir()
    git(tmp_path / "second", "init", "-q")
    record(home, open_repository(tmp_path / "second"))
    (repository.git_dir / "HEAD").unlink()
    assert main(["ledger", "verify", "--home", str(home)]) == 1
    out = capsys.readouterr().out
    assert f"{repository.git_dir}: its anchor cannot be read" in out
    assert "1 problem; examined 4 rows, the rest verifies" in out
