"""The commit that a change is compared with, and why."""

from __future__ import annotations

from proofstone.check.rules.base import (
    BaseFacts,
    BranchCommit,
    BranchPoint,
    NamedRevision,
    SessionFacts,
    choose_base,
    find_last_evidence,
)
from proofstone.check.rules.commit_evidence import RecordedCheck
from tests.rows import each_row

UPSTREAM = BranchPoint("origin/topic", "its upstream", "upstream")
DEFAULT = BranchPoint("origin/HEAD", "the remote's default branch", "default")
LOCAL = BranchPoint("main", "a local branch", "local")
AT_HEAD = BranchPoint("origin/topic", "its upstream", "head")
UNRELATED = BranchPoint("origin/topic", "its upstream", "")
SESSION = SessionFacts("Claude Code", "start", "start")
EVIDENCE = SessionFacts("Claude Code", last_evidence="evidence")

CHOICES: dict[str, tuple[BaseFacts, str, str]] = {
    "the user names it": (
        BaseFacts("head", NamedRevision("v1", "one"), session=SESSION, branches=[UPSTREAM]),
        "one",
        "--base v1",
    ),
    "the settings name it": (
        BaseFacts("head", configured=NamedRevision("main", "tip", "settings"), session=SESSION, branches=[UPSTREAM]),
        "tip",
        "check.base is main in the settings at settings",
    ),
    "a session began": (
        BaseFacts("head", session=SESSION, branches=[UPSTREAM]),
        "start",
        "the commit at which this session of Claude Code began",
    ),
    "a session began at HEAD": (BaseFacts("start", session=SESSION, branches=[UPSTREAM]), "start", "began"),
    "a session began on a commit that was amended": (
        BaseFacts("head", session=SessionFacts("Codex", "start", "shared"), branches=[UPSTREAM]),
        "shared",
        "the last commit that HEAD shares with start, the commit at which this session of Codex began",
    ),
    "a session was checked first": (
        BaseFacts("head", session=SessionFacts("Codex", "first", "first", is_start=False)),
        "first",
        "the base of the first check of this session of Codex",
    ),
    "a session without a start, and a commit with evidence": (
        BaseFacts("head", session=EVIDENCE, branches=[UPSTREAM]),
        "evidence",
        "the last commit with evidence",
    ),
    "a session of which nothing is known": (
        BaseFacts("head", session=SessionFacts("Cursor"), branches=[UPSTREAM]),
        "upstream",
        "the merge base with origin/topic, its upstream",
    ),
    "the upstream comes first": (BaseFacts("head", branches=[UPSTREAM, DEFAULT, LOCAL]), "upstream", "its upstream"),
    "everything is pushed": (BaseFacts("head", branches=[AT_HEAD, DEFAULT, LOCAL]), "default", "default branch"),
    "a shallow clone": (BaseFacts("head", branches=[UNRELATED, LOCAL]), "local", "the merge base with main"),
    "no other branch": (
        BaseFacts("head", branches=[AT_HEAD]),
        "head",
        "HEAD, because it is not ahead of another branch",
    ),
    "no branch at all": (BaseFacts("head"), "head", "HEAD"),
}


@each_row(("facts", "commit", "why"), CHOICES.values())
def test_the_base_is_chosen_by_the_first_rule_that_matches(facts: BaseFacts, commit: str, why: str) -> None:
    choice = choose_base(facts)
    assert choice.commit == commit
    assert why in choice.reason


def branch(*trees: str) -> list[BranchCommit]:
    """Commits with these trees, HEAD first, named after their position from the oldest."""
    names = [f"c{number}" for number in range(len(trees), 0, -1)]
    parents = [*names[1:], "floor"]
    return [
        BranchCommit(name, tree, parent, trees[index + 1] if index + 1 < len(trees) else "")
        for index, (name, tree, parent) in enumerate(zip(names, trees, parents, strict=True))
    ]


def passed(tree: str, base: str, outcome: str = "passed") -> RecordedCheck:
    return RecordedCheck("run", tree, base, outcome)


EVIDENCES: dict[str, tuple[list[RecordedCheck], bool, str]] = {
    "nothing is recorded": ([], True, ""),
    "the first commit was checked": ([passed("t1", "floor")], True, "c1"),
    "the second was checked against the merge base": ([passed("t2", "floor")], True, "c2"),
    "evidence reaches down to the merge base": ([passed("t2", "c1"), passed("t1", "floor")], True, "c2"),
    "a check against an unchecked commit": ([passed("t2", "c1")], True, ""),
    "the same without a merge base": ([passed("t2", "c1")], False, "c2"),
    "a check that failed": ([passed("t2", "floor", "failed"), passed("t1", "floor")], True, "c1"),
    "a failure against the parent wins": (
        [passed("t2", "floor"), passed("t2", "c1", "failed"), passed("t1", "floor")],
        True,
        "c1",
    ),
    "nothing to check is no evidence": ([passed("t2", "floor", "nothing-to-check")], True, ""),
    "a check against an older ancestor": ([passed("t2", "ancient")], True, ""),
    "an older ancestor without a merge base": ([passed("t3", "c1")], False, ""),
    "a check against another branch": ([passed("t2", "elsewhere")], True, ""),
    "a check against a later commit": ([passed("t1", "c2")], True, ""),
    "HEAD itself": ([passed("t3", "floor")], True, "c3"),
}


@each_row(("checks", "has_floor", "commit"), EVIDENCES.values())
def test_the_last_commit_with_evidence(checks: list[RecordedCheck], has_floor: bool, commit: str) -> None:
    assert find_last_evidence(branch("t3", "t2", "t1"), checks, "floor" if has_floor else "") == commit


def test_an_empty_commit_has_the_evidence_of_its_parent() -> None:
    assert find_last_evidence(branch("t1", "t1"), [passed("t1", "floor")], "floor") == "c2"
