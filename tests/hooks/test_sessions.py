"""Where a session of a coding agent began, and the hook that records it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from proofstone.git.session_work import RepositoryState, WorkTreeState
from proofstone.hooks.agent_sessions import CodingSession, SessionStart, SessionStarts, find_session_projects
from tests.hooks.place import Place
from tests.needs import needs

A, B = "a" * 40, "b" * 40
ONE, TWO, NAMELESS = CodingSession("claude", "one"), CodingSession("claude", "two"), CodingSession("claude", "")


@pytest.fixture
def starts(tmp_path: Path) -> SessionStarts:
    return SessionStarts(tmp_path, Path("/project"))


def test_the_first_record_of_a_session_stays(starts: SessionStarts) -> None:
    assert starts.read(ONE) is None
    starts.record_first_check(ONE, A)
    starts.record_start(ONE, B)
    starts.record_first_check(ONE, B)
    assert starts.read(ONE) == SessionStart(A, is_start=False)
    assert starts.read(TWO) is None


def test_a_session_without_an_id_is_the_newest_of_its_agent_in_its_work_tree(starts: SessionStarts) -> None:
    starts.record_start(ONE, A)
    starts.record_start(TWO, B)
    for session, seconds in ((ONE, 1000), (TWO, 2000)):
        os.utime(starts._file(session), (seconds, seconds))
    assert starts.read(NAMELESS) == SessionStart(B)
    assert starts.read(CodingSession("codex", "")) is None
    assert SessionStarts(starts.home, Path("/other")).read(NAMELESS) is None


def test_a_program_that_names_no_session_begins_a_new_one_unless_it_continues(starts: SessionStarts) -> None:
    starts.record_start(NAMELESS, A)
    starts.record_start(NAMELESS, B, is_new=False)
    assert starts.read(NAMELESS) == SessionStart(A)
    starts.record_start(NAMELESS, B)
    assert starts.read(NAMELESS) == SessionStart(B)


def test_the_projects_of_a_session_are_found_wherever_its_shell_is(starts: SessionStarts) -> None:
    state = RepositoryState({"refs/heads/main": A}, (B,), (WorkTreeState("/project", "refs/heads/main", A, "digest"),))
    starts.record_start(ONE, A, state=state)
    SessionStarts(starts.home, Path("/project/added")).record_start(ONE, A)
    SessionStarts(starts.home, Path("/other")).record_start(TWO, A, state=state)
    assert starts.read(ONE) == SessionStart(A, state=state)
    assert find_session_projects(starts.home, ONE) == (Path("/project"),)
    assert find_session_projects(starts.home, NAMELESS) == ()
    assert starts.find_foreign_roots(ONE) == {"/other"}


def test_old_records_are_removed(starts: SessionStarts) -> None:
    starts.record_start(ONE, A)
    os.utime(starts._file(ONE), (1000, 1000))
    starts.record_start(TWO, B)
    assert starts.read(ONE) is None
    assert starts.read(TWO) == SessionStart(B)


@needs("git")
def test_the_hook_records_the_start_and_prints_nothing(place: Place) -> None:
    records = place.workshop.proofstone_home / "agent-sessions"

    def start(agent: str = "copilot", cwd: Path = place.root, **variables: str) -> tuple[int, str, str]:
        message = json.dumps({"sessionId": "one", "cwd": str(cwd), "source": "new"})
        done = place.workshop.proofstone(
            place.root, "hook", "run", "agent-start", "--agent", agent, env=variables, told=message
        )
        return done.returncode, done.stdout, done.stderr

    assert start(cwd=place.root.parent) == (0, "", ""), "outside a repository there is nothing to record"
    assert start(PROOFSTONE_TASK="task.json") == (0, "", ""), "the gate gives its own base"
    assert not records.exists()
    assert start() == (0, "", "")
    (record,) = records.iterdir()
    found = json.loads(record.read_text())
    state = found.pop("state")
    assert found == {"agent": "copilot", "id": "one", "root": str(place.root), "commit": place.head, "start": True}
    assert state["refs"] == {"refs/heads/main": place.head}
    assert [tree[:3] for tree in state["work_trees"]] == [[str(place.root), "refs/heads/main", place.head]]
    code, _, error = start("hal")
    assert code == 2
    assert "one of claude" in error
