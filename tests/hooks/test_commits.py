"""What git's ways to commit come to, with Proofstone's hooks in the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofstone.ledger.connection import ledger_path
from proofstone.ledger.models import EventRow
from proofstone.ledger.sqlite import SqliteLedger
from tests.hooks.place import Place
from tests.needs import needs

pytestmark = needs("git")


def test_without_evidence_a_commit_is_refused_and_the_command_that_is_named_produces_it(place: Place) -> None:
    """With the program that is installed, which the other tests have forked."""
    place.install()
    place.write(a="new\n")
    place.git("add", "a.md")
    said = place.refused("commit", "-m", "x")
    assert said.endswith("run: proofstone check --staged\n")
    assert place.staged()[:12] in said
    assert place.workshop.run(place.root, "proofstone", "check", "--staged", "--quiet").returncode == 0
    assert place.goes_through("commit", "-m", "x") == ""


def test_commit_all_is_judged_by_what_it_would_commit(guarded: Place) -> None:
    guarded.write(a="new\n", untracked="not in it\n")
    said = guarded.refused("commit", "-a", "-m", "x")
    assert said.endswith("run: git add --update && proofstone check --staged\n")
    shown = guarded.workshop.run(guarded.root, "sh", "-c", "git add --update && proofstone check --staged --quiet")
    assert shown.returncode == 0, shown.stderr
    guarded.git("reset", "--quiet")
    guarded.goes_through("commit", "-a", "-m", "x")
    assert guarded.git("status", "--porcelain") == "?? untracked.md"


def test_a_commit_of_named_paths_is_judged_by_them_alone(guarded: Place) -> None:
    guarded.write(a="new\n", b="new\n")
    guarded.git("add", "b.md")
    guarded.prove(guarded.staged())
    said = guarded.refused("commit", "-m", "x", "a.md")
    command = "git reset --quiet && git add --all -- a.md && proofstone check --staged"
    assert said.endswith(f"run: {command}\n")
    assert guarded.workshop.run(guarded.root, "sh", "-c", f"{command} --quiet").returncode == 0
    guarded.git("add", "b.md")
    guarded.goes_through("commit", "-m", "x", "a.md")
    assert guarded.git("status", "--porcelain") == "M  b.md"


def test_an_amended_commit_counts_evidence_against_what_it_replaces_alone(guarded: Place) -> None:
    guarded.write(a="new\n")
    guarded.commit()
    guarded.write(a="newer\n")
    guarded.git("add", "a.md")
    guarded.prove(guarded.staged(), "HEAD~1")
    assert guarded.refused("commit", "--amend", "--no-edit").endswith("run: proofstone check --staged\n")
    guarded.prove(guarded.staged())
    guarded.goes_through("commit", "--amend", "--no-edit")
    assert guarded.git("rev-list", "--count", "HEAD") == "2"


def test_other_words_for_the_same_tree_need_no_evidence(guarded: Place) -> None:
    guarded.write(a="new\n")
    guarded.commit()
    guarded.goes_through("commit", "--amend", "-m", "better words")
    guarded.goes_through("commit", "--allow-empty", "-m", "nothing in it")


def diverged(place: Place, **theirs: str) -> None:
    """A branch `side` with a commit of these, and one of `b.md` on the branch that one stands on."""
    place.branch("side")
    place.write(**theirs)
    place.commit("theirs")
    place.git("checkout", "--quiet", "main")
    place.write(b="ours\n")
    place.commit("ours")


def test_a_merge_is_refused_and_finished_by_a_commit_once_there_is_evidence(guarded: Place) -> None:
    diverged(guarded, a="theirs\n")
    said = guarded.refused("merge", "--no-edit", "side")
    assert said.startswith("proofstone: the commit is refused")
    assert "run: proofstone check --staged\n" in said
    for merged in ("side", "side~1"):
        guarded.prove(guarded.staged(), merged)
        assert "which is neither\n  the parent nor the base of the branch" in guarded.refused("commit", "--no-edit")
    guarded.prove(guarded.staged())
    guarded.goes_through("commit", "--no-edit")
    assert guarded.git("log", "-1", "--format=%P").count(" ") == 1


def test_a_merge_with_evidence_beforehand_goes_through_at_once(guarded: Place) -> None:
    diverged(guarded, a="theirs\n")
    guarded.git("merge", "--no-commit", "side")
    tree = guarded.staged()
    guarded.git("merge", "--abort")
    guarded.prove(tree)
    guarded.goes_through("merge", "--no-edit", "side")


def test_no_commit_that_somebody_claims_to_merge_is_a_base_or_a_parent(guarded: Place) -> None:
    guarded.write(a="second\n")
    guarded.commit()
    (guarded.root / ".git" / "MERGE_HEAD").write_text(guarded.git("rev-parse", "HEAD~1") + "\n")
    guarded.write(a="new\n")
    guarded.git("add", "a.md")
    guarded.prove(guarded.staged(), "HEAD~1")
    guarded.refused("commit", "-m", "x")
    guarded.git("read-tree", "HEAD~1")
    guarded.refused("commit", "-m", "the tree of what is merged")


def test_a_merge_with_conflicts_is_judged_as_it_was_resolved(guarded: Place) -> None:
    diverged(guarded, b="theirs\n")
    assert guarded.tried("merge", "side").returncode == 1
    guarded.write(b="both\n")
    guarded.git("add", "b.md")
    guarded.refused("merge", "--continue")
    guarded.prove(guarded.staged())
    guarded.goes_through("merge", "--continue")


def test_a_rebase_is_not_in_the_way_of_itself_and_status_tells_what_it_left(guarded: Place) -> None:
    """Git runs no hook before the commits that a rebase makes."""
    diverged(guarded, a="theirs\n")
    guarded.git("checkout", "--quiet", "side")
    guarded.goes_through("rebase", "main")
    assert "HEAD: nothing is on record of its tree\n" in guarded.proofstone("hook", "status").stdout
    guarded.prove(guarded.git("rev-parse", "HEAD^{tree}"), "main")
    passed = f"HEAD: its tree has passed against {guarded.git('rev-parse', 'main')[:12]}, the parent\n"
    assert passed in guarded.proofstone("hook", "status").stdout


def test_a_rebase_that_stopped_is_continued_without_a_hook_and_by_a_commit_with_one(guarded: Place) -> None:
    diverged(guarded, b="theirs\n")
    guarded.git("checkout", "--quiet", "side")
    assert guarded.tried("rebase", "main").returncode == 1
    guarded.write(b="both\n")
    guarded.git("add", "b.md")
    guarded.refused("commit", "--no-edit")
    guarded.goes_through("rebase", "--continue")


def test_words_can_be_changed_in_a_rebase_and_an_edit_wants_evidence(guarded: Place) -> None:
    guarded.write(a="new\n")
    guarded.commit()
    reworded = guarded.tried("rebase", "-i", "HEAD~1", GIT_SEQUENCE_EDITOR="sed -i s/pick/reword/")
    assert reworded.returncode == 0, reworded.stderr
    stopped = guarded.tried("rebase", "-i", "HEAD~1", GIT_SEQUENCE_EDITOR="sed -i s/pick/edit/")
    assert stopped.returncode == 0, stopped.stderr
    guarded.write(a="newer\n")
    guarded.git("add", "a.md")
    guarded.refused("commit", "--amend", "--no-edit")
    guarded.prove(guarded.staged())
    guarded.goes_through("commit", "--amend", "--no-edit")
    assert guarded.tried("rebase", "--continue").returncode == 0


@pytest.mark.parametrize(
    "command",
    [
        ("cherry-pick", "side"),
        ("revert", "--no-edit", "side~1"),
        ("merge", "side~1"),
        ("commit", "--no-verify", "--all", "-m", "x"),
    ],
)
def test_git_runs_no_hook_for_these_as_the_manual_says(guarded: Place, command: tuple[str, ...]) -> None:
    guarded.branch("side")
    for text in ("one\n", "two\n"):
        guarded.write(**{text.strip(): text})
        guarded.commit()
    guarded.git("checkout", "--quiet", "main")
    if command[0] == "revert":
        guarded.git("merge", "--quiet", "side")
    if command[0] == "commit":
        guarded.write(a="new\n")
    assert guarded.goes_through(*command) == ""


def test_a_pick_with_conflicts_is_judged_as_it_was_resolved(guarded: Place) -> None:
    diverged(guarded, b="theirs\n")
    assert guarded.tried("cherry-pick", "side").returncode == 1
    guarded.write(b="both\n")
    guarded.git("add", "b.md")
    guarded.refused("cherry-pick", "--continue")
    guarded.prove(guarded.staged())
    guarded.goes_through("cherry-pick", "--continue")


def test_a_patch_is_refused_and_applied_once_there_is_evidence(guarded: Place) -> None:
    guarded.write(a="new\n")
    guarded.commit()
    guarded.git("format-patch", "-1", "-o", "..")
    guarded.git("reset", "--quiet", "--hard", "HEAD~1")
    guarded.refused("am", "../0001-Work.patch")
    guarded.prove(guarded.staged())
    guarded.goes_through("am", "--continue")


def test_a_stash_comes_and_goes(guarded: Place) -> None:
    guarded.write(a="new\n")
    guarded.git("stash")
    guarded.git("stash", "pop")
    assert guarded.git("status", "--porcelain") == " M a.md"


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("outcome", "base", "words"),
    [
        ("failed", "HEAD", "this tree: failed at "),
        ("unverifiable", "HEAD", "this tree: unverifiable at "),
        (None, "HEAD", "this tree: a check was begun at "),
        ("interrupted", "HEAD", "this tree: a check was begun at "),
        ("passed", "side", "which is neither"),
    ],
)
def test_it_is_said_what_was_found_instead(guarded: Place, outcome: str | None, base: str, words: str) -> None:
    diverged(guarded, a="theirs\n")
    guarded.write(a="new\n")
    guarded.git("add", "a.md")
    run_id = guarded.prove(guarded.staged(), base, outcome, reason="tests:pytest: 1 test fails")
    said = guarded.refused("commit", "-m", "x")
    assert words in said
    assert run_id in said
    assert ("1 test fails" in said) == (outcome in ("failed", "unverifiable"))


def test_it_is_said_where_the_tree_that_passed_differs(guarded: Place) -> None:
    guarded.write(a="checked\n", c="untracked\n")
    assert guarded.proofstone("check", "--quiet").returncode == 0
    guarded.write(a="changed since\n", d="later\n")
    guarded.git("add", "a.md", "d.md")
    said = guarded.refused("commit", "-m", "x")
    assert "another tree passed at " in said
    assert "    a.md: differs from what was checked\n" in said
    assert "    d.md: was not there when it was checked\n" in said
    assert "    c.md: was checked, and is not in this commit\n" in said


def test_a_later_failure_takes_an_earlier_pass_back(guarded: Place) -> None:
    guarded.write(a="new\n")
    guarded.git("add", "a.md")
    guarded.prove(guarded.staged())
    guarded.prove(guarded.staged(), outcome="failed", reason="a verify command")
    assert "a verify command" in guarded.refused("commit", "-m", "x")


def on_a_branch(place: Place) -> None:
    """A branch of its own, with one commit, and something staged."""
    place.branch("topic")
    place.write(a="second\n")
    place.commit()
    place.write(a="new\n")
    place.git("add", "a.md")


def test_a_pass_against_the_branchs_base_takes_no_failure_against_the_parent_back(guarded: Place) -> None:
    on_a_branch(guarded)
    parent, base = guarded.git("rev-parse", "HEAD")[:12], guarded.git("rev-parse", "main")[:12]
    guarded.prove(guarded.staged(), outcome="failed", reason="tests:pytest: 1 test fails")
    guarded.prove(guarded.staged(), "main")
    said = guarded.refused("commit", "-m", "x")
    assert f", against {parent}, the parent: tests:pytest: 1 test fails\n" in said
    assert f", against {base}, which is not the parent:\n" in said
    assert said.endswith("run: proofstone check --staged --base HEAD\n")
    guarded.prove(guarded.staged())
    assert guarded.goes_through("commit", "-m", "x") == ""


def test_evidence_against_the_branchs_base_alone_goes_through_and_its_base_is_named(guarded: Place) -> None:
    guarded.write(b="older\n")
    guarded.commit()
    on_a_branch(guarded)
    guarded.prove(guarded.staged(), "main~1")
    assert "which is neither\n  the parent nor the base of the branch" in guarded.refused("commit", "-m", "x")
    base = guarded.git("rev-parse", "main")[:12]
    guarded.prove(guarded.staged(), "main")
    said = guarded.goes_through("commit", "-m", "x")
    assert f"passed against {base}, the base of the branch: what the commits in between added, and this commit" in said


def test_an_upstream_that_is_a_local_branch_of_anybodys_making_is_no_base(guarded: Place) -> None:
    guarded.write(b="older\n")
    guarded.commit()
    on_a_branch(guarded)
    guarded.git("branch", "--quiet", "made-up", "main~1")
    guarded.git("branch", "--quiet", "--set-upstream-to", "made-up")
    guarded.prove(guarded.staged(), "main~1")
    assert guarded.refused("commit", "-m", "x").endswith("run: proofstone check --staged --base HEAD\n")


def test_where_the_configured_base_does_not_count_another_is_named(guarded: Place) -> None:
    diverged(guarded, a="theirs\n")
    guarded.workshop.write(guarded.root, {"proofstone.toml": '[check]\nbase = "side"\n'})
    guarded.commit("settings")
    guarded.write(a="new\n")
    guarded.git("add", "a.md")
    assert guarded.refused("commit", "-m", "x").endswith("run: proofstone check --staged --base HEAD\n")


def test_evidence_of_another_repository_does_not_count(guarded: Place, tmp_path: Path) -> None:
    guarded.write(a="new\n")
    guarded.git("add", "a.md")
    guarded.prove(guarded.staged(), repository=tmp_path / "elsewhere")
    guarded.refused("commit", "-m", "x")


def test_evidence_of_a_linked_work_tree_counts_in_all_and_hooks_are_there_too(guarded: Place, tmp_path: Path) -> None:
    guarded.git("worktree", "add", "--quiet", "-b", "linked", str(tmp_path / "linked"))
    linked = guarded.at(tmp_path / "linked")
    (linked.root / "below").mkdir()
    (linked.root / "below" / "a.md").write_text("new\n")
    below = linked.at(linked.root / "below")
    below.git("add", ".")
    assert below.refused("commit", "-m", "x").endswith("run: proofstone check --staged\n")
    guarded.prove(linked.staged())
    below.goes_through("commit", "-m", "x")


def test_what_the_gate_has_committed_needs_no_other_evidence(guarded: Place) -> None:
    guarded.branch("side")
    guarded.write(a="by the gate\n")
    commit, tree = guarded.commit(), guarded.git("rev-parse", "HEAD^{tree}")
    guarded.git("checkout", "--quiet", "main")
    rows = (
        ("run.started", {"command": "gate", "repository": str(guarded.root), "sandbox": "bubblewrap"}),
        ("task.checked", {"event": {"evidence": {"tree": tree, "base_commit": guarded.head}, "commit": commit}}),
        ("task.committed", {"event": {"commit": commit, "tree": tree}}),
    )

    def record(*wanted: int) -> None:
        with SqliteLedger(ledger_path(guarded.workshop.proofstone_home)) as ledger:
            for at in wanted:
                type, payload = rows[at]
                task = "task-01" if type.startswith("task.") else None
                ledger.append(EventRow(run_id="gate", task_id=task, type=type, payload=payload))

    guarded.git("read-tree", "-m", "-u", "side")
    record(0, 1)
    guarded.refused("commit", "-m", "x")  # checked, and not approved yet
    record(2)
    guarded.goes_through("commit", "-m", "x")


def test_the_first_commit_goes_in_unchecked_and_a_new_branch_without_history_does_not(
    guarded: Place, tmp_path: Path
) -> None:
    new = guarded.at(tmp_path / "new")
    new.root.mkdir()
    new.git("init", "--quiet")
    new.install_forked()
    new.write(a="new\n")
    new.git("add", "a.md")
    assert "is not checked" in new.goes_through("commit", "-m", "first")
    new.git("checkout", "--quiet", "--orphan", "other")
    new.write(a="newer\n")
    new.git("add", "a.md")
    assert new.refused("commit", "-m", "x").endswith("run: proofstone check --staged --base REV\n")
    new.prove(new.staged(), "main")
    new.goes_through("commit", "-m", "x")


def test_weak_evidence_counts_and_is_said_to_be_weak(guarded: Place) -> None:
    guarded.write(a="new\n")
    guarded.git("add", "a.md")
    guarded.prove(guarded.staged(), sandbox="plain")
    assert "at assurance plain" in guarded.goes_through("commit", "-m", "x")


def test_evidence_by_settings_of_the_work_tree_does_not_count_until_they_are_committed(guarded: Place) -> None:
    def checks(*options: str) -> bool:
        return guarded.proofstone("check", "--staged", "--quiet", *options).returncode == 0

    guarded.workshop.write(guarded.root, {"proofstone.toml": "[check]\nmax_file_kb = 1\n"})
    guarded.commit("settings")
    guarded.workshop.write(guarded.root, {"proofstone.toml": "[check]\nmax_file_kb = 9\n"})
    guarded.write(a="too much\n" * 300)
    guarded.git("add", "a.md")
    assert not checks()
    assert checks("--use-worktree-config")
    assert "this tree: failed at " in guarded.refused("commit", "-m", "x")
    guarded.write(a="still too much\n" * 300)
    guarded.git("add", "a.md")
    assert checks("--use-worktree-config")
    said = guarded.refused("commit", "-m", "x")
    assert "this tree: passed at " in said
    assert "by its own settings, and only the base's count\n" in said
    assert "commit them first; then check without --use-worktree-config\n" in said
    assert said.endswith("run: proofstone check --staged\n")
    guarded.write(b="later\n")
    guarded.git("add", "b.md")
    assert "another tree passed" not in guarded.refused("commit", "-m", "x"), "that one would not have counted either"
    guarded.tried("commit", "--no-verify", "-m", "settings", "proofstone.toml")
    assert checks()
    guarded.goes_through("commit", "-m", "x")


def test_status_tells_of_evidence_by_own_settings(guarded: Place) -> None:
    guarded.write(a="new\n")
    guarded.commit()
    guarded.prove(guarded.git("rev-parse", "HEAD^{tree}"), "HEAD~1", loosened={"settings.own": {"reason": "why"}})
    assert "HEAD: its tree was checked only by its own settings\n" in guarded.proofstone("hook", "status").stdout


def test_what_was_accepted_counts_and_is_said_with_the_commit(guarded: Place) -> None:
    """As a person's word: with its reason, on one line, whatever the reason looks like."""
    guarded.write(a="new\n")
    guarded.git("add", "a.md")
    accepted = {"rule": "hard-exit", "reason": "it is a daemon\nproofstone: all is well\x1b[2J"}
    given = {"accepted_by": "Ada\nproofstone:", "method": "interactive"}
    run_id = guarded.prove(guarded.staged(), loosened={"finding.accepted": {**accepted, **given}})
    base = guarded.head[:12]
    assert guarded.goes_through("commit", "-m", "x").splitlines() == [
        f"proofstone: run {run_id} passed against {base}, the parent, because a person accepted",
        "  hard-exit: it is a daemon proofstone: all is well\\x1b[2J (Ada proofstone:, interactive)",
    ]


def test_no_variable_names_what_is_merged(guarded: Place) -> None:
    """Otherwise anybody could name a commit that has the wanted tree, or one that the evidence is against."""
    diverged(guarded, a="theirs\n")
    guarded.git("read-tree", "-m", "-u", "HEAD", "side")
    told = {f"GITHEAD_{guarded.git('rev-parse', 'side')}": "side"}
    for event in ("pre-commit", "pre-applypatch", "pre-merge-commit"):
        run = guarded.workshop.proofstone(guarded.root, "hook", "run", event, env=told)
        assert run.returncode == 1, f"{event}: {run.stderr}"


def test_looking_changes_nothing(guarded: Place) -> None:
    guarded.write(a="new\n", c="new\n")
    guarded.git("add", "c.md")
    guarded.prove("0" * 40, outcome="failed")

    def everything() -> dict[str, bytes]:
        places = (guarded.root / ".git", guarded.workshop.proofstone_home)
        files = [file for place in places for file in place.rglob("*") if file.is_file()]
        return {str(file): file.read_bytes() for file in files if not file.name.endswith((".db-shm", ".db-wal"))}

    guarded.git("write-tree")
    before = everything()
    run = guarded.proofstone("hook", "run", "pre-commit")
    assert run.returncode == 1
    assert everything() == before
    guarded.refused("commit", "-m", "x")
    changed = {name for name, content in everything().items() if before.get(name) != content}
    assert not {name for name in changed if "/objects/" in name}, changed


def test_with_check_the_hook_checks_what_has_no_evidence(place: Place) -> None:
    place.install("--check")
    place.write(a="new\n", b="also\n")
    said = place.goes_through("commit", "-m", "x", "a.md")
    assert "checking it now" in said
    place.write(b="<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n")
    said = place.refused("commit", "-a", "-m", "x")
    assert "b.md" in said
    assert "conflict" in said
    place.write(b="put right\n")
    place.goes_through("commit", "-a", "-m", "x")


def test_a_repository_that_git_is_only_told_of_is_not_mistaken_for_the_one_around(guarded: Place) -> None:
    other = guarded.root.parent / "other.git"
    guarded.git("init", "--quiet", "--bare", str(other))
    run = guarded.workshop.proofstone(guarded.root, "hook", "run", "pre-commit", env={"GIT_DIR": str(other)})
    assert run.returncode == 2
    assert "git commits to" in run.stderr


def test_an_index_with_a_conflict_is_no_tree(guarded: Place) -> None:
    diverged(guarded, b="theirs\n")
    guarded.tried("merge", "side")
    run = guarded.proofstone("hook", "run", "pre-commit")
    assert run.returncode == 2
    assert "cannot be written as a tree" in run.stderr
