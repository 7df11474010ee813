"""`proofstone trust`: what a repository asks for is shown, granted, listed and taken back by the person alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.workshop import Workshop

ASKING = '[environment]\nnetwork = true\npass = ["MY_TOKEN"]\n'


@pytest.fixture
def root(workshop: Workshop) -> Path:
    root = workshop.repo({"a.txt": "a\n", "proofstone.toml": ASKING})
    workshop.write(root, {"a.txt": "b\n"})
    return root


def refusal(workshop: Workshop, root: Path, *args: str, token: str = "x-1234567", config: str = "") -> str:
    """Why `proofstone check` runs nothing; empty if the person granted all that is asked for."""
    env = {"MY_TOKEN": token} | ({"PROOFSTONE_CONFIG": config} if config else {})
    done = workshop.proofstone(root, "check", "--json", "--verify", "test -d .", *args, env=env)
    if done.returncode != 2:
        assert json.loads(done.stdout)["checks"], done.stderr
        return ""
    error = json.loads(done.stdout)["error"]
    assert error["type"] == "TrustError" and "nothing was run" in error["message"], error
    return f"{error['message']}\n{error['hint']}"


def test_a_grant_is_shown_given_listed_and_taken_back(workshop: Workshop, root: Path) -> None:
    said = refusal(workshop, root)
    assert "environment.network = true" in said and 'environment.pass = ["MY_TOKEN"]' in said
    assert f"`proofstone trust {root}`" in said
    shown = workshop.proofstone(root, "trust", "--json")
    assert shown.returncode == 1 and json.loads(shown.stdout)["granted"] is False
    assert workshop.proofstone(root, "trust").returncode == 2, "there is no terminal to ask at"
    for mark in ("CLAUDECODE", "PROOFSTONE_TASK"):
        agent = workshop.proofstone(root, "trust", "--yes", env={mark: "1"})
        assert agent.returncode == 2 and "only a person" in agent.stderr
    assert refusal(workshop, root)
    given = workshop.proofstone(root, "trust", "--yes")
    assert given.returncode == 0 and "checks can access the network" in given.stdout
    assert refusal(workshop, root) == ""
    listed = json.loads(workshop.proofstone(root, "trust", "--list", "--json").stdout)
    assert [grant["repository"] for grant in listed["grants"]] == [str(root)]
    assert workshop.proofstone(root, "trust").returncode == 0, "nothing is left to ask for"
    taken = workshop.proofstone(workshop.folder, "trust", "--revoke", str(root))
    assert taken.returncode == 0 and refusal(workshop, root)
    assert workshop.proofstone(workshop.folder, "trust", "--revoke", str(root)).returncode == 1


def test_a_grant_holds_in_work_trees_and_not_for_other_settings_or_repositories(workshop: Workshop, root: Path) -> None:
    assert workshop.proofstone(root, "trust", "--yes").returncode == 0
    beside = workshop.folder / "beside"
    workshop.git(root, "worktree", "add", "--quiet", str(beside))
    workshop.write(beside, {"a.txt": "c\n"})
    assert refusal(workshop, beside) == ""
    nested = workshop.repo({"a.txt": "a\n", "proofstone.toml": ASKING}, name="project/nested")
    assert refusal(workshop, nested), "a repository inside another is one of its own"
    stranger = workshop.folder / "stranger"
    workshop.write(stranger, {".git": f"gitdir: {root}/.git\n", "a.txt": "d\n", "proofstone.toml": ASKING})
    assert refusal(workshop, stranger), "it only claims to be a work tree"
    workshop.configure(root, ASKING.replace('"MY_TOKEN"', '"MY_TOKEN", "HOME_TOKEN"'))
    assert refusal(workshop, root) == "", "a variable that is not set gives nothing away"
    workshop.configure(root, f'{ASKING}sockets = ["/run/docker.sock"]\n')
    assert "/run/docker.sock" in refusal(workshop, root)
    workshop.configure(root, "[environment]\nnetwork = true\n")
    assert refusal(workshop, root) == "", "it asks for less than was granted"
    workshop.write(root, {"proofstone.toml": '[sandbox]\nlevel = "plain"\n'})
    said = refusal(workshop, root, "--use-worktree-config")
    assert "in the work tree" in said and "proofstone trust --use-worktree-config" in said


def test_nothing_inside_the_repository_can_grant_anything(workshop: Workshop, root: Path) -> None:
    own = f'[trust]\nfolders = ["{workshop.folder}"]\npass = ["MY_TOKEN"]\n'
    workshop.write(root, {"own.toml": own})
    said = refusal(workshop, root, config=str(root / "own.toml"))
    assert "lies inside the repository" in said
    done = workshop.proofstone(root, "trust", "--yes", env={"PROOFSTONE_CONFIG": str(root / "own.toml")})
    assert done.returncode == 2 and not (root / "trust.json").exists()
    workshop.write(workshop.folder, {"own.toml": own})
    assert refusal(workshop, root, config=str(workshop.folder / "own.toml")) == ""


@pytest.mark.parametrize(
    "args",
    [
        ("gate", "PLAN.md", "--executor", "cmd:touch ran"),
        ("run", "do it", "--backend", "cmd:touch ran"),
        ("solve", "do it", "--backend", "cmd:touch ran"),
        ("verify-plan", "PLAN.md"),
        ("ask", "researcher:impact", "where?", "--backend", "cmd:touch ran"),
    ],
    ids=lambda args: args[0],
)
def test_every_command_that_runs_something_refuses(workshop: Workshop, root: Path, args: tuple[str, ...]) -> None:
    plan = '---\nphase: 1\nplan: 1\n---\n\n<task type="auto">\n<name>One</name>\n<files>a.txt</files>\n'
    plan += "<action>Write b.</action>\n<verify>grep -q b a.txt</verify>\n<done>It is there.</done>\n</task>\n"
    workshop.write(root, {"a.txt": "a\n", "PLAN.md": plan})
    workshop.commit(root)
    done = workshop.proofstone(root, *args, env={"MY_TOKEN": "x-1234567"})
    assert done.returncode == 2 and "need grants that you have not given" in done.stderr, done.stderr
    assert not (root / "ran").exists()


def test_an_agents_hook_says_that_a_person_must_decide_and_not_how(workshop: Workshop, root: Path) -> None:
    event = json.dumps({"session_id": "s", "cwd": str(root), "hook_event_name": "Stop"})
    done = workshop.proofstone(root, "hook", "run", "agent-stop", "--agent", "claude", told=event)
    assert "need grants" in done.stdout + done.stderr
    assert "proofstone trust" not in done.stdout + done.stderr
