"""Work of a session that is left where a look at one folder would not find it, and honest work beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.hooks.place import Place
from tests.needs import needs

pytestmark = needs("git")

WRONG = "<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n"


def event(place: Place, kind: str, session: str = "one", cwd: Path | None = None, **variables: str) -> dict[str, Any]:
    """What the hook answers to the agent's program, which is somewhere else than the project."""
    told = json.dumps({"session_id": session, "cwd": str(cwd or place.root), "source": "startup"})
    done = place.workshop.proofstone(
        cwd or place.root, "hook", "run", kind, "--agent", "claude", env=variables, told=told
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout or "{}")
    return answer


def stopped(place: Place, cwd: Path | None = None, **variables: str) -> str:
    """The reason for which the agent is sent back; empty if it may stop."""
    return str(event(place, "agent-stop", cwd=cwd, **variables).get("reason", ""))


@pytest.fixture
def begun(place: Place) -> Place:
    """A session that has begun on a branch with one commit, beside a branch that was there before."""
    place.git("branch", "older")
    event(place, "agent-start")
    return place


def test_the_project_is_checked_wherever_the_shell_is(begun: Place, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    begun.write(a=WRONG)
    assert "a.md:1" in stopped(begun, elsewhere)
    begun.git("init", "--quiet", str(elsewhere))
    assert "a.md:1" in stopped(begun, elsewhere)
    begun.write(a="put right\n")
    assert stopped(begun, elsewhere) == ""


def test_the_programs_variable_names_the_project_of_a_session_whose_start_is_not_recorded(
    place: Place, tmp_path: Path
) -> None:
    place.write(a=WRONG)
    assert "a.md:1" in stopped(place, tmp_path, CLAUDE_PROJECT_DIR=str(place.root))


def test_a_project_that_is_gone_is_no_way_to_stop(begun: Place, tmp_path: Path) -> None:
    begun.root.rename(tmp_path / "moved")
    assert "Put " in stopped(begun, tmp_path / "moved")


def test_work_on_another_branch_is_named_until_it_is_checked_or_gone(begun: Place) -> None:
    begun.branch("side")
    begun.write(a="one\n")
    begun.commit()
    begun.write(a=WRONG)
    begun.commit()
    begun.git("checkout", "--quiet", "main")
    assert f"- the branch side ({begun.git('rev-parse', 'side')[:12]}): 2 commits" in stopped(begun)
    begun.git("tag", "kept", "side")
    begun.git("branch", "--quiet", "--delete", "--force", "side")
    assert "- the tag kept" in stopped(begun)
    begun.git("tag", "--delete", "kept")
    begun.git("checkout", "--quiet", "-b", "proven")
    begun.write(a="fine\n")
    begun.commit()
    assert stopped(begun) == ""
    begun.git("checkout", "--quiet", "main")
    assert stopped(begun) == "", "it was checked when the agent stopped there"
    begun.git("checkout", "--quiet", "--detach")
    begun.write(a=WRONG)
    begun.commit()
    assert "a.md:1" in stopped(begun)


def test_work_in_the_stash_is_named_until_it_is_checked_or_gone(place: Place) -> None:
    place.write(a="before the session\n")
    place.git("stash")
    event(place, "agent-start")
    assert stopped(place) == ""
    place.write(a="fine\n")
    assert stopped(place) == ""
    place.git("stash")
    assert stopped(place) == "", "exactly this was checked"
    place.write(a=WRONG, new="untracked\n")
    place.git("stash", "--include-untracked")
    assert "- stash@{0}" in stopped(place)
    place.git("stash", "drop")
    assert stopped(place) == ""


def test_a_work_tree_that_was_added_is_checked_and_one_that_was_there_is_named(place: Place, tmp_path: Path) -> None:
    before, added = tmp_path / "before", tmp_path / "added"
    place.git("worktree", "add", "--quiet", "-b", "before", str(before))
    event(place, "agent-start")
    place.git("worktree", "add", "--quiet", "--detach", str(added))
    (added / "a.md").write_text(WRONG)
    assert stopped(place).startswith(f"In the work tree {added}: `proofstone check` does not pass")
    place.git("-C", str(added), "commit", "--quiet", "--all", "--message", "x")
    assert "a.md:1" in stopped(place), "a commit there hides nothing"
    place.git("worktree", "remove", "--force", str(added))
    (before / "a.md").write_text(WRONG)
    answer = event(place, "agent-stop")
    assert "decision" not in answer
    assert f"the work tree {before} has changed since this session began" in answer["systemMessage"]
    assert "a.md:1" in stopped(place, before), "the agent itself is there"


def test_what_other_sessions_do_and_what_is_fetched_holds_nobody(place: Place, tmp_path: Path) -> None:
    place.workshop.git(tmp_path, "clone", "--quiet", "--bare", str(place.root), "origin.git")
    place.git("remote", "add", "origin", str(tmp_path / "origin.git"))
    event(place, "agent-start")
    other = tmp_path / "other"
    place.git("worktree", "add", "--quiet", "-b", "other", str(other))
    event(place, "agent-start", "two", other)
    (other / "a.md").write_text(WRONG)
    place.git("-C", str(other), "commit", "--quiet", "--all", "--message", "x")
    place.git("-C", str(other), "push", "--quiet", "origin", "other:theirs")
    place.git("update-ref", "-d", "refs/remotes/origin/theirs")
    place.git("fetch", "--quiet", "origin", "theirs:refs/remotes/origin/theirs")
    place.git("branch", "--quiet", "theirs", "refs/remotes/origin/theirs")
    assert stopped(place) == ""
    place.branch("mine")
    place.write(b=WRONG)
    place.commit()
    place.git("push", "--quiet", "origin", "mine")
    place.git("checkout", "--quiet", "main")
    assert "- the branch mine" in stopped(place), "what was pushed is no less the session's"
