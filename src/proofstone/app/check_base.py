"""Find the base of a check: ask git, the recorded sessions of coding agents and the ledger, and let the rule choose.

Settings are read at the base, so that no change can loosen its own checks. That holds for `check.base` too: it is read
at the commit that would be the base without it, and not at HEAD, where the agent whose work is checked may have
committed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone.check.recording import find_recorded_checks, raise_if_forged
from proofstone.check.rules.base import (
    BaseChoice,
    BaseFacts,
    BranchCommit,
    BranchPoint,
    NamedRevision,
    SessionFacts,
    choose_base,
    find_last_evidence,
    find_left_branch,
)
from proofstone.config.home import find_proofstone_home
from proofstone.config.loader import SETTINGS_FILES, load_settings_files
from proofstone.config.rules import detect_coding_agent
from proofstone.config.settings import Settings
from proofstone.git.objects import read_files_at
from proofstone.git.pending_commit import find_work_tree_roots, is_ancestor
from proofstone.git.repository import Repository
from proofstone.hooks.agent_hooks import ALL_DIALECTS
from proofstone.hooks.agent_sessions import CodingSession, SessionStarts
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.opening import open_ledger

_MAX_COMMITS: Final = 50
"""How many commits of a branch are looked at for evidence."""
_MAIN_BRANCHES: Final = ("main", "master")


@dataclass(frozen=True)
class CheckBase:
    """The base of a check: its commit and tree, why it was chosen, and its settings."""

    commit: str
    tree: str
    reason: str
    settings: Settings

    @property
    def pair(self) -> tuple[str, str]:
        return self.commit, self.tree


def read_settings_at(repository: Repository, commit: str) -> Settings:
    """Return the settings that a commit holds."""
    return load_settings_files(read_files_at(repository.git, commit, SETTINGS_FILES))


def find_session(variables: Mapping[str, str]) -> CodingSession | None:
    """Return the session of the coding agent that runs this process; None if no agent is known to. Few agents pass the
    id of the session to the commands that they run, so it is unknown."""
    agent = detect_coding_agent(variables)
    if not agent:
        return None
    name = next((dialect.name for dialect in ALL_DIALECTS.values() if dialect.title == agent), agent)
    return CodingSession(name, "")


def find_base(
    repository: Repository, revision: str | None, session: CodingSession | None = None, home: Path | None = None
) -> CheckBase:
    """Return the base of a check. `revision` is what the user named; `session` is the session in which the check
    runs."""
    if revision is not None:
        commit, tree = repository.resolve_base(revision)
        facts = BaseFacts(head="", requested=NamedRevision(revision, commit))
        return CheckBase(commit, tree, choose_base(facts).reason, read_settings_at(repository, commit))
    head = repository.resolve_base("HEAD")
    branches = _find_branch_points(repository, head[0], _read_refs(repository))
    facts = BaseFacts(
        head=head[0],
        session=_find_session_facts(repository, session, head[0], branches, home or find_proofstone_home()),
        branches=branches,
    )
    automatic = choose_base(facts)
    settings = read_settings_at(repository, automatic.commit)
    if not settings.check.base:
        return _build_base(repository, automatic, head, settings)
    commit, _ = repository.resolve_base(settings.check.base)
    configured = NamedRevision(settings.check.base, commit, automatic.commit)
    choice = choose_base(BaseFacts(head=head[0], configured=configured))
    return _build_base(repository, choice, head, read_settings_at(repository, commit))


def find_evidence_bases(repository: Repository, parent: str) -> frozenset[str]:
    """Return the bases that count for a commit besides its parent: the branch's own base, which is what a check without
    `--base` compares with outside of a session; for a commit without a parent, the tips of the main branches, or of all
    branches if none is called so."""
    refs = _read_refs(repository)
    if not parent:
        main = {ref.commit for ref in refs if ref.name.split("/")[-1] in ("HEAD", *_MAIN_BRANCHES)}
        return frozenset(main or {ref.commit for ref in refs})
    left = find_left_branch(parent, _find_branch_points(repository, parent, refs, local_upstream=False))
    automatic = left.merge_base if left else parent
    configured = read_settings_at(repository, automatic).check.base
    base = repository.resolve_base(configured)[0] if configured else automatic
    return frozenset({base} if is_ancestor(repository, base, parent) else ())


def _build_base(repository: Repository, choice: BaseChoice, head: tuple[str, str], settings: Settings) -> CheckBase:
    tree = head[1] if choice.commit == head[0] else repository.git.find_tree(choice.commit)
    return CheckBase(choice.commit, tree, choice.reason, settings)


@dataclass(frozen=True)
class _Ref:
    name: str
    commit: str
    upstream: str
    is_current: bool


def _read_refs(repository: Repository) -> list[_Ref]:
    fields = "%(HEAD)%00%(refname)%00%(objectname)%00%(upstream)"
    patterns = ("refs/heads", "refs/remotes/*/HEAD", *(f"refs/remotes/*/{name}" for name in _MAIN_BRANCHES))
    lines = repository.git.run_output("for-each-ref", f"--format={fields}", *patterns).decode("utf-8", "replace")
    return [
        _Ref(name, commit, upstream, mark == "*")
        for mark, name, commit, upstream in (line.split("\0") for line in lines.splitlines())
    ]


def _find_branch_points(
    repository: Repository, head: str, refs: Sequence[_Ref], *, local_upstream: bool = True
) -> list[BranchPoint]:
    """Return the branches that HEAD may have left, up to the first that it has."""
    points: list[BranchPoint] = []
    for ref, relation in _list_candidates(refs, local_upstream=local_upstream):
        known = next((other.commit for other in refs if other.name == ref), "")
        merge_base = head if known == head else repository.git.try_line("merge-base", head, ref) or ""
        points.append(BranchPoint(_shorten(ref), relation, merge_base))
        if find_left_branch(head, points):
            break
    return points


def _list_candidates(refs: Sequence[_Ref], *, local_upstream: bool) -> Iterator[tuple[str, str]]:
    """Yield the refs to try, in order, each with what it is. Whether a local branch counts as an upstream is for the
    caller to say: anybody can make one at any commit and name it so."""
    names = {ref.name for ref in refs}
    current = next((ref for ref in refs if ref.is_current), None)
    if current is not None and current.upstream and (local_upstream or not _is_local_topic(current.upstream)):
        yield current.upstream, "its upstream"
    remotes = [ref.name.split("/")[2] for ref in refs if ref.name.startswith("refs/remotes/")]
    upstream_remote = current.upstream.split("/")[2:3] if current and current.upstream else []
    for remote in dict.fromkeys((*upstream_remote, "origin", *remotes)):
        defaults = [f"refs/remotes/{remote}/{name}" for name in ("HEAD", *_MAIN_BRANCHES)]
        if default := next((name for name in defaults if name in names), ""):
            yield default, "the remote's default branch"
            break
    if current is not None and current.name.removeprefix("refs/heads/") in _MAIN_BRANCHES:
        return  # the other of the two, if there is one, is not what this branch was made from
    local = next((f"refs/heads/{name}" for name in _MAIN_BRANCHES if f"refs/heads/{name}" in names), "")
    if local:
        yield local, "a local branch"


def _is_local_topic(ref: str) -> bool:
    return ref.startswith("refs/heads/") and ref.removeprefix("refs/heads/") not in _MAIN_BRANCHES


def _shorten(ref: str) -> str:
    return ref.removeprefix("refs/heads/").removeprefix("refs/remotes/")


def _find_session_facts(
    repository: Repository, session: CodingSession | None, head: str, branches: Sequence[BranchPoint], home: Path
) -> SessionFacts | None:
    if session is None:
        return None
    dialect = ALL_DIALECTS.get(session.agent)
    title = dialect.title if dialect else session.agent
    starts = SessionStarts(home, repository.root)
    start = starts.read(session)
    merge_base = repository.git.try_line("merge-base", start.commit, head) if start else None
    if start and merge_base:
        return SessionFacts(title, start.commit, merge_base, is_start=start.is_start)
    return SessionFacts(title, last_evidence=_find_last_evidence(repository, head, branches, home))


def _find_last_evidence(repository: Repository, head: str, branches: Sequence[BranchPoint], home: Path) -> str:
    """Return the last commit of the branch whose tree passed a check, or an empty string."""
    ledger = ledger_path(home)
    checks = find_recorded_checks(ledger, find_work_tree_roots(repository))
    if not checks:
        return ""
    left = find_left_branch(head, branches)
    floor = left.merge_base if left else ""
    commits = _list_commits(repository, head, floor)
    found = find_last_evidence(commits, checks, floor)
    if found:
        trees = {commit.tree for commit in commits}
        with closing(open_ledger(home, "read")) as evidence:
            raise_if_forged(evidence, [check for check in checks if check.tree in trees])
    return found


def _list_commits(repository: Repository, head: str, floor: str) -> list[BranchCommit]:
    """Return the commits of the branch, HEAD first, down to the floor, which is not among them."""
    excluded = (f"^{floor}",) if floor else ()
    options = ("--no-show-signature", "--first-parent", f"--max-count={_MAX_COMMITS}", "--format=%H %T %P")
    lines = repository.git.run_output("log", *options, head, *excluded, "--").decode("ascii").splitlines()
    fields = [line.split() for line in lines]
    trees = {commit: tree for commit, tree, *_ in fields}
    return [
        BranchCommit(commit, tree, parents[0] if parents else "", trees.get(parents[0], "") if parents else "")
        for commit, tree, *parents in fields
    ]
