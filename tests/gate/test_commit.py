"""Commits hold exactly what was intended, and a branch comes to them from where it was expected, or not at all."""

from __future__ import annotations

import pytest

from proofstone.errors import InputError, RepositoryError
from proofstone.git.commit import (
    BranchMovedError,
    CommitIdentity,
    branch_contains,
    find_free_branch,
    publish_commit,
    read_identity,
    write_commit,
)
from tests.gate.place import Place
from tests.needs import needs


def changed(place: Place, text: str = "changed\n") -> str:
    return place.tree_with({"a.txt": text})


# Whom, and what


def test_the_person_is_whom_git_says(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_identity(place.repository) == CommitIdentity("Tester", "tester@example.org")
    place.git("config", "user.name", "Äda <1> Löve")
    assert read_identity(place.repository).name == "Äda 1 Löve", "as git writes it"
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "ci@example.org")
    assert read_identity(place.repository).email == "ci@example.org"


def test_without_an_identity_the_error_says_how_to_set_one(place: Place) -> None:
    repository = place.repository
    (place.workshop.home / ".gitconfig").write_text("")
    with pytest.raises(InputError, match="git has no name and email") as caught:
        read_identity(repository)
    assert caught.value.hint is not None
    assert "user.email" in caught.value.hint


def test_the_same_intent_gives_the_same_commit(place: Place) -> None:
    intent = place.intent(changed(place), message="Subject\n\nBody\n\nRun: 1\n")
    commit = write_commit(place.store, intent, sign=False)
    place.git("config", "user.name", "Somebody Else")
    place.git("config", "commit.gpgSign", "true")
    assert write_commit(place.store, intent, sign=False) == commit
    said = place.store.git().run_output("cat-file", "commit", commit).decode()
    assert said == (
        f"tree {intent.tree}\nparent {intent.parent}\n"
        "author Tester <tester@example.org> 1700000000 +0000\n"
        "committer Tester <tester@example.org> 1700000000 +0000\n\n"
        "Subject\n\nBody\n\nRun: 1\n"
    )


def test_a_commit_is_not_in_the_persons_repository_before_it_is_published(place: Place) -> None:
    commit = place.commit_of(changed(place))
    assert place.repository.git.try_line("cat-file", "-e", commit) is None
    assert not branch_contains(place.repository, "main", commit)


@needs("ssh-keygen")
def test_a_signed_commit_is_signed_with_the_persons_key(place: Place) -> None:
    key = place.workshop.folder / "key"
    done = place.workshop.run(place.root, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
    assert done.returncode == 0, done.stderr
    allowed = place.workshop.folder / "allowed"
    allowed.write_text(f"tester@example.org {key.with_suffix('.pub').read_text()}")
    for name, value in (
        ("gpg.format", "ssh"),
        ("user.signingKey", str(key)),
        ("gpg.ssh.allowedSignersFile", str(allowed)),
    ):
        place.git("config", name, value)
    commit = write_commit(place.store, place.intent(changed(place)), sign=True)
    assert place.repository.git.try_line("cat-file", "-e", commit) is None, "it goes to the private store too"
    publish_commit(place.store, "proofstone/work", commit, expected=None)
    place.git("verify-commit", commit)
    assert place.git("rev-parse", f"{commit}^{{tree}}") == changed(place)


def test_a_signature_that_fails_is_an_error_with_the_reason(place: Place) -> None:
    place.git("config", "gpg.format", "ssh")
    place.git("config", "user.signingKey", str(place.workshop.folder / "no-such-key"))
    with pytest.raises(RepositoryError, match=r"could not be signed: .*no-such-key"):
        write_commit(place.store, place.intent(changed(place)), sign=True)


# Moving a branch


def test_a_new_branch_appears_and_nothing_else_moves(place: Place) -> None:
    head, status = place.head, place.git("status", "--porcelain")
    commit = place.commit_of(changed(place))
    publish_commit(place.store, "proofstone/work", commit, expected=None)
    assert place.git("rev-parse", "proofstone/work") == commit
    assert place.git("rev-parse", "proofstone/work^{tree}") == changed(place)
    assert (place.head, place.git("status", "--porcelain")) == (head, status)
    assert place.git("reflog", "show", "--format=%gs", "proofstone/work") == "proofstone: Change"
    place.git("fsck", "--strict", "--connectivity-only")


def test_the_repository_stands_alone_afterwards(place: Place) -> None:
    """Nothing is borrowed from the private store: it may be thrown away."""
    first = place.commit_of(changed(place))
    second = place.commit_of(place.tree_with({"deep/er/new.txt": "new\n"}, changed(place)), first)
    publish_commit(place.store, "proofstone/work", second, expected=None)
    clone = place.workshop.folder / "clone"
    place.git("clone", "--quiet", "--no-local", "--branch", "proofstone/work", str(place.root), str(clone))
    assert (clone / "deep" / "er" / "new.txt").read_text() == "new\n"
    assert place.git("fsck", "--full", "--no-dangling") == ""


def test_publishing_again_changes_nothing(place: Place) -> None:
    first = place.commit_of(changed(place))
    publish_commit(place.store, "proofstone/work", first, expected=None)
    publish_commit(place.store, "proofstone/work", first, expected=None)
    second = place.commit_of(changed(place, "more\n"), first)
    publish_commit(place.store, "proofstone/work", second, expected=first)
    publish_commit(place.store, "proofstone/work", first, expected=None)
    assert place.git("rev-parse", "proofstone/work") == second
    assert branch_contains(place.repository, "proofstone/work", first)
    assert len(place.git("reflog", "show", "--format=%gs", "proofstone/work").splitlines()) == 2


@pytest.mark.parametrize("where", ["elsewhere", "gone", "appeared"])
def test_a_branch_that_moved_is_left_where_it_is(place: Place, where: str) -> None:
    first = place.commit_of(changed(place))
    other = place.git("commit-tree", "-m", "Other", "-p", "HEAD", place.tree)
    expected: str | None = first
    if where == "appeared":
        expected = None
    else:
        publish_commit(place.store, "proofstone/work", first, expected=None)
    if where == "gone":
        place.git("branch", "--quiet", "-D", "proofstone/work")
    else:
        place.git("update-ref", "refs/heads/proofstone/work", other)
    refs = place.git("for-each-ref")
    second = place.commit_of(changed(place, "more\n"), first)
    with pytest.raises(BranchMovedError) as caught:
        publish_commit(place.store, "proofstone/work", second, expected=expected)
    assert place.git("for-each-ref") == refs
    assert caught.value.expected == expected
    assert caught.value.found == (None if where == "gone" else other)
    for commit in (expected, caught.value.found):
        assert (commit[:12] if commit else "no such branch") in caught.value.message


def test_a_commit_that_does_not_build_on_the_branch_is_refused(place: Place) -> None:
    first = place.commit_of(changed(place))
    publish_commit(place.store, "proofstone/work", first, expected=None)
    beside = place.commit_of(changed(place, "beside\n"))
    with pytest.raises(RepositoryError, match="does not build on"):
        publish_commit(place.store, "proofstone/work", beside, expected=first)
    assert place.git("rev-parse", "proofstone/work") == first


def test_objects_that_an_interrupted_call_left_half_copied_are_copied_again(place: Place) -> None:
    commit = place.commit_of(changed(place))
    raw = place.store.git().run_output("cat-file", "commit", commit)
    place.repository.git.run("hash-object", "-t", "commit", "-w", "--stdin", "--literally", stdin=raw)
    publish_commit(place.store, "proofstone/work", commit, expected=None)
    assert place.git("show", "proofstone/work:a.txt") == "changed"


def test_a_branch_that_git_cannot_lock_is_an_error_of_git_and_not_a_move(place: Place) -> None:
    place.git("branch", "proofstone")
    with pytest.raises(RepositoryError, match="proofstone"):
        publish_commit(place.store, "proofstone/work", place.commit_of(changed(place)), expected=None)


def test_shallow_and_partial_clones_can_be_committed_to(place: Place) -> None:
    place.workshop.write(place.root, {"b.txt": "second\n"})
    place.workshop.commit(place.root)
    place.git("config", "uploadpack.allowFilter", "true")
    for name, option in (("shallow", "--depth=1"), ("partial", "--filter=blob:none")):
        clone = place.workshop.folder / name
        place.git("clone", "--quiet", option, f"file://{place.root}", str(clone))
        there = Place(place.workshop, clone)
        for branch, expected in (("main", there.head), ("proofstone/work", None)):
            commit = there.commit_of(changed(there, f"{branch}\n"), place.head)
            publish_commit(there.store, branch, commit, expected=expected)
            assert there.git("rev-parse", branch) == commit
        assert there.git("status", "--porcelain") == ""


# The name of a branch


def test_a_name_that_nobody_has_is_free(place: Place) -> None:
    assert find_free_branch(place.repository, "proofstone/fix-it", place.head) == "proofstone/fix-it"


def test_a_branch_with_nothing_of_its_own_is_free_and_others_are_not(place: Place) -> None:
    old = place.head
    place.git("branch", "stale")
    place.workshop.write(place.root, {"b.txt": "second\n"})
    place.workshop.commit(place.root)
    place.git("branch", "here")
    own = place.git("commit-tree", "-m", "Own", "-p", old, place.tree)
    place.git("branch", "own", own)
    place.git("branch", "own-2", own)
    wanted = {name: find_free_branch(place.repository, name, place.head) for name in ("stale", "here", "own")}
    assert wanted == {"stale": "stale", "here": "here", "own": "own-3"}
    publish_commit(place.store, "stale", place.commit_of(changed(place)), expected=old)


@pytest.mark.parametrize(
    ("taken", "wanted", "free"),
    [
        ("proofstone", "proofstone/x", "proofstone-x"),
        ("proofstone", "proofstone/x/y", "proofstone-x/y"),
        ("proofstone/x/y", "proofstone/x", "proofstone/x-2"),
        ("proofstone/x", "proofstone/x/y", "proofstone/x-y"),
    ],
)
def test_names_that_cannot_stand_beside_others_are_avoided(place: Place, taken: str, wanted: str, free: str) -> None:
    place.git("branch", taken)
    found = find_free_branch(place.repository, wanted, place.head)
    assert found == free
    publish_commit(place.store, found, place.commit_of(changed(place)), expected=None)


@pytest.mark.parametrize("name", ["", "a..b", "a b", "-x", "a/", "x.lock", "a//b", "@{x", "a~1", "/a", "a\nb"])
def test_a_name_that_git_does_not_allow_is_an_error(place: Place, name: str) -> None:
    with pytest.raises(InputError, match="does not allow"):
        find_free_branch(place.repository, name, place.head)
