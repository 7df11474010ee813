"""The base that is found in repositories with branches, remotes, settings and sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofstone.app.check_base import CheckBase, find_base
from proofstone.git.repository import open_repository
from proofstone.hooks.agent_sessions import CodingSession, SessionStarts
from tests.needs import needs
from tests.workshop import Workshop

pytestmark = needs("git")
CLAUDE = CodingSession("claude", "one")


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop.apart(tmp_path)


def clone(workshop: Workshop, *options: str) -> Path:
    """A clone of a repository with one commit."""
    workshop.repo({"a.md": "one\n"}, "origin")
    workshop.git(workshop.folder, "clone", "--quiet", *options, f"file://{workshop.folder}/origin", "clone")
    return workshop.folder / "clone"


def work(workshop: Workshop, root: Path, text: str) -> str:
    workshop.write(root, {"a.md": text})
    return workshop.commit(root, text)


def base_of(workshop: Workshop, root: Path, session: CodingSession | None = None) -> CheckBase:
    return find_base(open_repository(root), None, session, workshop.proofstone_home)


def test_the_upstream_then_the_remotes_default_branch_then_head(workshop: Workshop) -> None:
    root = clone(workshop)
    first = workshop.git(root, "rev-parse", "HEAD")
    assert base_of(workshop, root).reason == "HEAD, because it is not ahead of another branch"
    work(workshop, root, "on main")
    assert (base_of(workshop, root).commit, base_of(workshop, root).reason) == (
        first,
        "the merge base with origin/main, its upstream",
    )
    workshop.git(root, "checkout", "--quiet", "-b", "topic", "--no-track", "origin/main")
    work(workshop, root, "on a branch")
    assert base_of(workshop, root).reason == "the merge base with origin/HEAD, the remote's default branch"
    workshop.git(root, "push", "--quiet", "--set-upstream", "origin", "topic")
    found = base_of(workshop, root)
    assert (found.commit, found.reason) == (first, "the merge base with origin/HEAD, the remote's default branch")
    pushed = workshop.git(root, "rev-parse", "HEAD")
    work(workshop, root, "not pushed")
    assert (base_of(workshop, root).commit, base_of(workshop, root).reason) == (
        pushed,
        "the merge base with origin/topic, its upstream",
    )


@pytest.mark.ci
def test_a_remote_without_a_default_branch_a_shallow_clone_and_a_detached_head(workshop: Workshop) -> None:
    root = clone(workshop, "--depth=1")
    first = workshop.git(root, "rev-parse", "HEAD")
    workshop.git(root, "symbolic-ref", "--delete", "refs/remotes/origin/HEAD")
    workshop.git(root, "checkout", "--quiet", "--detach")
    work(workshop, root, "detached")
    found = base_of(workshop, root)
    assert (found.commit, found.reason) == (first, "the merge base with origin/main, the remote's default branch")


@pytest.mark.ci
def test_on_main_an_old_master_is_nobodys_base(workshop: Workshop) -> None:
    root = workshop.repo({"a.md": "one\n"})
    workshop.git(root, "branch", "master")
    head = work(workshop, root, "two")
    assert base_of(workshop, root).commit == head
    workshop.git(root, "checkout", "--quiet", "-b", "topic")
    assert base_of(workshop, root).commit == head
    work(workshop, root, "three")
    assert base_of(workshop, root).reason == "the merge base with main, a local branch"


def test_the_setting_is_read_where_the_base_would_be_without_it(workshop: Workshop) -> None:
    root = workshop.repo({"a.md": "one\n"})
    workshop.git(root, "tag", "v1")
    workshop.configure(root, '[check]\nbase = "v1"\n')
    settings = workshop.git(root, "rev-parse", "HEAD")
    found = base_of(workshop, root)
    assert found.commit == workshop.git(root, "rev-parse", "v1")
    assert found.reason == f"check.base is v1 in the settings at {settings[:12]}"
    assert found.settings.check.base == "", "the settings are those of the base"
    workshop.git(root, "checkout", "--quiet", "-b", "topic")
    workshop.configure(root, '[check]\nbase = "HEAD"\n')
    assert base_of(workshop, root).commit == found.commit, "a change cannot move its own base"


@pytest.mark.ci
def test_a_session_keeps_its_start_and_an_amended_start_is_part_of_the_change(workshop: Workshop) -> None:
    root = workshop.repo({"a.md": "one\n"})
    first = workshop.git(root, "rev-parse", "HEAD")
    start = work(workshop, root, "two")
    starts = SessionStarts(workshop.proofstone_home, root.resolve())
    starts.record_start(CLAUDE, start)
    work(workshop, root, "three")
    starts.record_start(CLAUDE, workshop.git(root, "rev-parse", "HEAD"))
    for session in (CLAUDE, CodingSession("claude", "")):
        found = base_of(workshop, root, session)
        assert (found.commit, found.reason) == (start, "the commit at which this session of Claude Code began")
    assert base_of(workshop, root, CodingSession("claude", "two")).reason.startswith("HEAD")
    assert base_of(workshop, root, CodingSession("codex", "")).reason.startswith("HEAD")
    workshop.git(root, "reset", "--quiet", "--soft", first)
    workshop.git(root, "commit", "--quiet", "--message", "One commit of all")
    found = base_of(workshop, root, CLAUDE)
    assert (found.commit, found.reason) == (
        first,
        f"the last commit that HEAD shares with {start[:12]}, the commit at which this session of Claude Code began",
    )


def test_without_a_recorded_start_the_last_commit_with_evidence_is_the_base(workshop: Workshop) -> None:
    root = workshop.repo({"a.md": "one\n"})
    workshop.write(root, {"a.md": "two\n"})
    assert workshop.check(root).report.outcome == "passed"
    checked = workshop.commit(root)
    work(workshop, root, "three")
    found = base_of(workshop, root, CLAUDE)
    assert found.commit == checked
    assert found.reason.startswith("the last commit with evidence; it is not recorded at which commit this session of")
    assert base_of(workshop, root).reason.startswith("HEAD"), "outside a session, HEAD has left no branch"
