"""EC-4: without its ledger Proofstone does nothing, and says so.

The seed falls back to YAML where SQLite cannot be had. Here there is no evidence without a row, so it is an error that
says what is wrong and what would be right (exit code 2), and nothing has happened.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from proofstone.ledger.connection import ledger_path
from proofstone.ledger.sqlite import SqliteLedger
from tests.pipeline.stage import REQUEST, TEAM, PipelineResult, Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage.set_up(tmp_path / "stage")


EXCLUDE = ".git/info/exclude"


def refusal(came: PipelineResult) -> tuple[str, str]:
    """What it says, to a program and to a person, and what it advises."""
    assert came.exit == 2, came.stderr
    error = json.loads(came.stdout)["error"]
    assert error["exit_code"] == 2
    assert came.stderr.startswith(f"proofstone: {error['message']}\n")
    assert "Traceback" not in came.stderr
    assert error["hint"], "and what would be right"
    return error["message"], error["hint"]


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@contextmanager
def nothing_happens(stage: Stage) -> Iterator[None]:
    """In the repository: not a file, not a ref. That git shall not look at Proofstone's own folder may be there
    already."""
    before, refs = everything(stage.root), stage.git("for-each-ref")
    yield
    after = everything(stage.root)
    assert stage.git("for-each-ref") == refs
    assert {path for path in {*before, *after} if before.get(path) != after.get(path)} <= {EXCLUDE}


def _no_database(ledger: Path) -> None:
    ledger.write_bytes(b"once upon a time " * 500)


def _a_folder(ledger: Path) -> None:
    ledger.mkdir()


def _somebody_elses(ledger: Path) -> None:
    with closing(sqlite3.connect(ledger)) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")


def _damaged(ledger: Path) -> None:
    SqliteLedger(ledger).close()
    data = bytearray(ledger.read_bytes())
    for page in range(3 * 4096, len(data), 4096):
        data[page : page + 200] = b"\xff" * 200
    ledger.write_bytes(data)


def _cut_short(ledger: Path) -> None:
    SqliteLedger(ledger).close()
    ledger.write_bytes(ledger.read_bytes()[: 3 * 4096])


def _for_everybody(ledger: Path) -> None:
    ledger.parent.chmod(0o777)


SPOILED: dict[str, tuple[Callable[[Path], None], str]] = {
    "no database": (_no_database, "ledger.db: is not a database"),
    "a folder": (_a_folder, "ledger.db: is a directory, not a ledger"),
    "a database of somebody else": (_somebody_elses, "ledger.db: is a database, but not a ledger"),
    "damaged": (_damaged, "ledger.db: is damaged"),
    "cut short": (_cut_short, "ledger.db: is damaged"),
    "open to everybody": (_for_everybody, "ledger: others may write to it (mode 0777)"),
}


@pytest.mark.parametrize("case", SPOILED)
def test_ec_04_a_ledger_that_is_none_is_named_and_left_alone(stage: Stage, case: str) -> None:
    """EC-4: before anybody is asked."""
    spoil, told = SPOILED[case]
    ledger = ledger_path(stage.workshop.proofstone_home)
    ledger.parent.mkdir(parents=True, mode=0o700)
    spoil(ledger)
    before = everything(ledger.parent)
    with nothing_happens(stage):
        message, _ = refusal(stage.run())
    assert told in message
    assert str(stage.workshop.proofstone_home) in message
    assert everything(ledger.parent) == before


@pytest.mark.parametrize("home", ["/proc/proofstone", "/dev/null", "/sys/kernel"])
def test_ec_04_a_place_that_can_hold_no_ledger_is_named(stage: Stage, home: str) -> None:
    """EC-4."""
    with nothing_happens(stage):
        message, hint = refusal(stage.run(env={"PROOFSTONE_HOME": home}))
    assert message.startswith(home)
    assert "PROOFSTONE_HOME" in hint


def test_ec_04_a_ledger_that_somebody_else_holds_is_waited_for_and_then_named(stage: Stage) -> None:
    """EC-4: for five seconds, as the seed's busy_timeout says."""
    ledger = ledger_path(stage.workshop.proofstone_home)
    SqliteLedger(ledger).close()
    with closing(sqlite3.connect(ledger, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with nothing_happens(stage):
            message, hint = refusal(stage.run())
    assert message.endswith("ledger.db: another process is writing and did not finish in time")
    assert hint == "try again"
    assert stage.runs == []


FULL = ("bash", "-c", 'ulimit -f 600; exec "$@"', "bash")
"""No file may be longer than so many kilobytes: the ledger's log is, before the run is half through."""


def test_ec_04_a_ledger_that_fails_in_the_middle_stops_the_run_and_it_goes_on_afterwards(stage: Stage) -> None:
    """EC-4: a disk that takes no more. What was recorded stands, nothing else does, and nobody is asked twice."""
    with nothing_happens_to_branches(stage):
        done = stage.workshop.proofstone(stage.root, *_run(stage), wrap=FULL)
        message, hint = refusal(PipelineResult(done.returncode, done.stdout, done.stderr))
    assert message.endswith("ledger.db: could not be read or written (disk I/O error)")
    assert "proofstone resume" in hint
    assert stage.proofstone("ledger", "verify").returncode == 0
    (run,) = stage.runs
    answered = {str(one["dispatch"]) for one in stage.messages(run, "Output")}
    assert answered, "it had begun"
    came = stage.resume(run)
    assert (came.exit, came.outcome) == (0, "passed"), came.stderr
    again = [str(one["dispatch"]) for one in stage.messages(run, "Output")]
    assert len(again) == len(set(again)) and set(again) > answered


@contextmanager
def nothing_happens_to_branches(stage: Stage) -> Iterator[None]:
    before = stage.git("for-each-ref", "refs/heads")
    yield
    assert stage.git("for-each-ref", "refs/heads") == before
    assert stage.git("status", "--porcelain") == ""


def _run(stage: Stage) -> tuple[str, ...]:
    return ("run", REQUEST, "--backend", stage.cast(list(TEAM)), "--json", "--quiet")
