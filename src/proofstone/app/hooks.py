"""Answer the hooks that git calls before a commit, and coding agents when a session begins and when an agent says that
it is done.

Every commit waits for the search for evidence, so modules that only a check needs are imported when one runs.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from proofstone.check.dispute_records import find_disputes
from proofstone.check.recording import find_recorded_checks, raise_if_forged
from proofstone.check.rules.commit_evidence import CommitEvidence, CommitRuling, RecordedCheck, rule_on_commit
from proofstone.check.rules.run_end import MAX_FEEDBACK_ROUNDS, write_feedback
from proofstone.common.models import AcceptanceMethod
from proofstone.config.home import find_proofstone_home
from proofstone.errors import AnchorError, InternalError, MachineError, ProofstoneError, RepositoryError, TrustError
from proofstone.git.pending_commit import (
    PendingCommit,
    find_ancestor_bases,
    find_work_tree_roots,
    has_no_commits,
    read_pending_commit,
    with_object_stores,
    write_index_tree,
)
from proofstone.git.program import decode_path
from proofstone.git.repository import Repository, open_repository
from proofstone.git.user_hooks import (
    Hook,
    HookChange,
    find_hooks_folder,
    find_own_hook_folders,
    install_repository_hooks,
    read_hooks,
    uninstall_repository_hooks,
)
from proofstone.hooks.agent_hooks import StopRounds
from proofstone.hooks.agent_sessions import CodingSession, SessionStarts
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.opening import authentication_level, open_ledger
from proofstone.ledger.rules.chain import AuthenticationLevel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from proofstone.check.context import Progress
    from proofstone.check.models import CheckReport


_DEFAULT_INDEX: Final = "index"
_COMMIT_ALL_INDEX: Final = "index.lock"
_MAX_PATHS: Final = 5
_NOT_GRANTED: Final = (
    "`proofstone check` could not be run: the repository's settings need grants that the owner of this machine has not "
    "given. Tell the owner; only they can decide."
)


_HOW_TO_DECIDE: Final = (
    "In your own terminal: `proofstone dispute --list` shows it, `proofstone dispute decide last "
    'accept|reject|amend --reason "…"` decides it.'
)


@dataclass(frozen=True)
class OtherCheck:
    """A passing check of another tree, and the differences between the two trees."""

    check: RecordedCheck
    missing: tuple[str, ...]
    """Files that were checked but are not in the commit."""
    unchecked: tuple[str, ...]
    """Files in the commit that were not checked."""
    differing: tuple[str, ...]


@dataclass(frozen=True)
class PendingEvidence:
    """The evidence for a pending commit."""

    tree: str
    ruling: CommitRuling
    ledger: Path
    command: str = ""
    """The command that would produce the missing evidence."""
    other_check: OtherCheck | None = None


@dataclass(frozen=True)
class HooksStatus:
    """The installed hooks, and the evidence for HEAD."""

    folder: Path
    """The folder in which git looks for hooks."""
    hooks: tuple[Hook, ...]
    """The hooks in that folder, and Proofstone's hooks in other folders."""
    head_ruling: CommitRuling | None
    """The ruling on HEAD; None if there is no commit."""
    authentication: AuthenticationLevel
    """How the ledger authenticates its rows, and so who can write accepted evidence."""


@dataclass(frozen=True)
class AgentStop:
    """The message of an agent that says that it is done."""

    session: CodingSession
    directory: Path
    conversation: str
    """The id of the conversation: that of the session, and of the subagent if it is one."""
    is_continuation: bool | None
    """Whether the agent continued only because it was sent back; None if its program does not say."""


@dataclass(frozen=True)
class AgentStopAnswer:
    """The answer to an agent that wants to stop."""

    send_back: str = ""
    """What the agent must fix; empty if it may stop."""
    remark: str = ""
    """A message for the person."""


def install_hooks(directory: Path, *, check: bool) -> tuple[Path, list[HookChange]]:
    """Install Proofstone's git hooks, and return their folder and what was done."""
    repository = open_repository(directory)
    done = install_repository_hooks(repository, find_own_program(), check=check)
    return find_hooks_folder(repository), done


def uninstall_hooks(directory: Path) -> list[HookChange]:
    """Remove Proofstone's git hooks, and return what was done."""
    return uninstall_repository_hooks(open_repository(directory))


def read_hooks_status(directory: Path) -> HooksStatus:
    """Return which hooks are installed, and the evidence for HEAD."""
    repository = open_repository(directory)
    folder = find_hooks_folder(repository)
    elsewhere = [hook for other in find_own_hook_folders(repository) if other != folder for hook in read_hooks(other)]
    hooks = (*read_hooks(folder), *(hook for hook in elsewhere if hook.state.is_ours))
    head = repository.git.try_line("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    ruling = _rule_on_commit(repository, head) if head else None
    return HooksStatus(folder, hooks, ruling, authentication_level(find_proofstone_home()))


def find_own_program() -> str:
    """Return the path of the running `proofstone`, for a hook to start."""
    called, beside = Path(sys.argv[0]), Path(sys.executable).with_name("proofstone")
    for candidate in (called.absolute() if called.name == "proofstone" else beside, beside):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    if found := shutil.which("proofstone"):
        return str(Path(found).absolute())
    raise MachineError(
        "no `proofstone` program was found that a hook could start",
        hint="install it, for instance with `uv tool install`",
    )


def find_evidence(directory: Path, variables: Mapping[str, str], *, merging: bool) -> PendingEvidence:
    """Return the evidence for the commit that git is about to make. Change nothing."""
    repository = open_repository(directory)
    commit = read_pending_commit(repository, variables, merging=merging)
    ledger = ledger_path(find_proofstone_home())
    with _scratch_objects() as objects:
        tree = write_index_tree(repository, commit.index, objects)
        ruling = _rule_on_tree(repository, commit, tree, ledger)
        if ruling.is_accepted:
            return PendingEvidence(tree, ruling, ledger)
        other = _find_other_check(repository, commit, tree, ledger, objects)
        command = _build_check_command(repository, commit, tree, objects, needed_base=ruling.required_base)
        return PendingEvidence(tree, ruling, ledger, command, other)


def check_pending(
    directory: Path, variables: Mapping[str, str], progress: Progress, *, merging: bool, needed_base: str = ""
) -> CheckReport:
    """Check exactly what git is about to commit, which may differ from what is staged. If `needed_base` is given, only
    a check against that base counts."""
    from proofstone.app.check_base import find_base
    from proofstone.app.context import choose_settings, new_run_id, open_run_context, require_outside_home
    from proofstone.check.context import CheckRequest
    from proofstone.check.run import CheckRun
    from proofstone.git.snapshot import snapshot_of_tree

    repository = open_repository(directory)
    commit = read_pending_commit(repository, variables, merging=merging)
    request = CheckRequest(base=needed_base or "HEAD")
    base = find_base(repository, request.base)
    settings, note = choose_settings(repository, base, request)
    home = require_outside_home(repository, None)
    with open_run_context(
        repository,
        base.pair,
        settings,
        progress,
        home=home,
        run_id=new_run_id(),
        require_sandbox=False,
        note=note,
        base_reason="the parent of the commit",
    ) as world:
        tree = write_index_tree(repository, commit.index, world.store.objects)
        return CheckRun(world, CheckRequest(tree=snapshot_of_tree(world.store, base.tree, tree))).run()


def record_session_start(session: CodingSession, directory: Path, *, is_new: bool) -> None:
    """Record the commit at which an agent's session begins. Outside a repository, and before the first commit, there is
    nothing to record. `is_new` is False for a session that is continued."""
    from proofstone.app.context import require_outside_home

    try:
        repository = open_repository(directory)
        head, _ = repository.resolve_base("HEAD")
    except RepositoryError:
        return
    SessionStarts(require_outside_home(repository, None), repository.root).record_start(session, head, is_new=is_new)


def answer_agent_stop(stop: AgentStop) -> AgentStopAnswer:
    """Check the work that the agent leaves, and send it back with the findings, at most MOST_ROUNDS times."""
    rounds = StopRounds(find_proofstone_home() / "agent-stops", f"{stop.session.agent} {stop.conversation}")
    findings, remark = _check_work(stop.directory, stop.session)
    if not findings:
        rounds.forget()
        return AgentStopAnswer(remark=remark)
    before = 0 if stop.is_continuation is False else rounds.read_count()
    if before >= MAX_FEEDBACK_ROUNDS:
        rounds.forget()
        remark = f"Proofstone sent the agent back {before} times and now lets it stop. Its work is unproven."
        return AgentStopAnswer(remark=f"{remark}\n{findings}")
    rounds.write_count(before + 1)
    return AgentStopAnswer(send_back=findings)


def _check_work(directory: Path, session: CodingSession) -> tuple[str, str]:
    """Return the findings for the agent, and a remark for the person. A check that cannot run is a finding too, because
    the agent may have caused that; only a repository without a commit is not. If there is nothing to check, the agent
    may stop, but nobody is told that its work has passed."""
    from proofstone.app.context import build_check_run
    from proofstone.check.context import CheckRequest, NullProgress
    from proofstone.common.models import Outcome

    try:
        open_repository(directory).resolve_base("HEAD")
    except RepositoryError as error:
        return "", f"Proofstone checked nothing: {error.message}"
    try:
        with build_check_run(directory, CheckRequest(), NullProgress(), session=session) as run:
            # Later, the session is compared with the same base: an agent that is sent back cannot commit its way out.
            starts = SessionStarts(run.context.home, run.context.repository.root)
            starts.record_first_check(session, run.context.base_commit)
            report = run.run()
    except InternalError:
        raise
    except TrustError:
        # Only the person may read how to grant it: an agent that knows could do it.
        return _NOT_GRANTED, ""
    except ProofstoneError as error:
        hint = "a person must look into this" if isinstance(error, AnchorError) else error.hint
        return f"`proofstone check` could not be run: {error.message}" + (f" ({hint})" if hint else ""), ""
    if report.outcome is Outcome.NOTHING_TO_CHECK:
        return "", f"Proofstone checked nothing: {report.reason}"
    if report.outcome is Outcome.NEEDS_DECISION:
        # The agent has said what it holds for wrong: it need not go on, and its work is no pass.
        return (
            "",
            f"Proofstone: the agent's work needs your decision and is unproven. {report.reason}. {_HOW_TO_DECIDE}",
        )
    return ("", "") if report.outcome is Outcome.PASSED else (write_feedback(report), "")


def _rule_on_commit(repository: Repository, head: str) -> CommitRuling:
    """Rule on an existing commit by the recorded checks."""
    git = repository.git
    tree = git.find_tree(head)
    parents = git.run_line("rev-list", "--parents", "--max-count=1", head).split()[1:]
    trees = {commit: git.find_tree(commit) for commit in parents}
    return _rule_on_tree(
        repository, PendingCommit(trees, Path()), tree, ledger_path(find_proofstone_home()), first=not parents
    )


def _rule_on_tree(
    repository: Repository, commit: PendingCommit, tree: str, ledger: Path, *, first: bool | None = None
) -> CommitRuling:
    """Rule on a tree by the recorded checks, after verifying that nobody forged them."""
    if first is None:
        first = commit.is_first_of_branch and has_no_commits(repository)
    checks = find_recorded_checks(ledger, find_work_tree_roots(repository), tree)
    is_disputed = False
    if checks:
        with closing(open_ledger(find_proofstone_home(), "read")) as evidence:
            raise_if_forged(evidence, checks)
            is_disputed = any(dispute.is_open for dispute in find_disputes(evidence, {tree}))
    return rule_on_commit(
        tree,
        checks,
        parent_trees=commit.parents.values(),
        counting=_valid_bases(repository, commit, checks),
        parents=commit.parents,
        first=first,
        is_disputed=is_disputed,
        accepts=_read_accepted_methods(repository, commit) if any(check.accepted for check in checks) else (),
    )


def _read_accepted_methods(repository: Repository, commit: PendingCommit) -> tuple[AcceptanceMethod, ...]:
    """Return the ways of acceptance that count for the commit, as the settings of its first parent say. A commit cannot
    change them for itself."""
    from proofstone.app.check_base import read_settings_at
    from proofstone.config.settings import HookSettings

    parent = next(iter(commit.parents), None)
    settings = read_settings_at(repository, parent).hook if parent else HookSettings()
    return tuple(AcceptanceMethod(kind) for kind in settings.accepts)


def _valid_bases(
    repository: Repository, commit: PendingCommit, checks: Iterable[RecordedCheck]
) -> frozenset[str] | None:
    """Return the bases whose checks count for the commit; None if every base counts."""
    if commit.is_first_of_branch:
        return None
    return find_ancestor_bases(repository, commit.parents, {check.base_commit for check in checks})


def _find_other_check(
    repository: Repository, commit: PendingCommit, tree: str, ledger: Path, objects: Path
) -> OtherCheck | None:
    """Return the newest passing check of another tree that would have counted."""
    from proofstone.common.models import ChangeKind
    from proofstone.git.snapshot import compare_trees
    from proofstone.git.store import open_store

    checks = find_recorded_checks(ledger, find_work_tree_roots(repository))
    passed = [check for check in checks if check.is_passed and check.tree != tree and not check.own_settings]
    counting = _valid_bases(repository, commit, passed)
    newest = next((check for check in passed if counting is None or check.base_commit in counting), None)
    if newest is None:
        return None
    store = open_store(repository, find_proofstone_home())
    git = with_object_stores(repository.git, objects, (*repository.object_dirs, store.objects))
    if git.try_line("cat-file", "-e", f"{newest.tree}^{{tree}}") is None:
        return None  # removed since, or checked in another work tree
    entries = compare_trees(git, newest.tree, tree)
    paths = {
        kind: tuple(decode_path(entry.path) for entry in entries if entry.kind is kind)[:_MAX_PATHS]
        for kind in ChangeKind
    }
    return OtherCheck(newest, paths[ChangeKind.DELETED], paths[ChangeKind.ADDED], paths[ChangeKind.MODIFIED])


def _build_check_command(
    repository: Repository, commit: PendingCommit, tree: str, objects: Path, *, needed_base: str
) -> str:
    """Return the command that would produce the evidence. It stages first whatever is to be committed."""
    import shlex

    from proofstone.git.snapshot import compare_trees

    base = ""
    if commit.is_first_of_branch:
        base = " --base REV"
    elif needed_base:
        base = " --base HEAD" if needed_base == next(iter(commit.parents)) else f" --base {needed_base[:12]}"
    elif not _is_default_base_valid(repository, commit):
        base = " --base HEAD"
    check = f"proofstone check --staged{base}"
    if commit.index.name == _DEFAULT_INDEX:
        return check
    if commit.index.name == _COMMIT_ALL_INDEX:
        return f"git add --update && {check}"
    git = with_object_stores(repository.git, objects, repository.object_dirs)
    entries = compare_trees(git, next(iter(commit.parents.values())), tree)
    paths = " ".join(shlex.quote(os.fsdecode(entry.path)) for entry in entries)
    return f"git reset --quiet && git add --all -- {paths} && {check}"


def _is_default_base_valid(repository: Repository, commit: PendingCommit) -> bool:
    """Return whether a plain `proofstone check` uses a base that counts. Only `check.base` can name one that does not;
    whatever Proofstone chooses itself is HEAD or an ancestor of it."""
    from proofstone.app.check_base import find_base, find_session

    return bool(
        find_ancestor_bases(repository, commit.parents, {find_base(repository, None, find_session(os.environ)).commit})
    )


@contextmanager
def _scratch_objects() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="proofstone-objects-") as folder:
        yield Path(folder)


def describe_ruling(ruling: CommitRuling) -> str:
    """Describe the ruling in a few words, with the base if a verdict decided."""
    decided = ruling.check is not None and ruling.evidence in (CommitEvidence.PASSED, CommitEvidence.REFUSED)
    against = f" against {describe_base(ruling)}" if decided else ""
    return {
        CommitEvidence.FIRST: "the first commit: there is nothing to compare it with",
        CommitEvidence.UNCHANGED: "its tree is that of its parent",
        CommitEvidence.PASSED: f"its tree has passed{against}",
        CommitEvidence.REFUSED: f"its tree was checked and did not pass{against}",
        CommitEvidence.OWN_SETTINGS: "its tree was checked only by its own settings",
        CommitEvidence.DISPUTED: "its tree is disputed, and no person has decided",
        CommitEvidence.ACCEPTANCE: "its tree passed only with an acceptance that does not count here",
        CommitEvidence.OTHER_BASE: "its tree was checked only against a commit that is no ancestor",
        CommitEvidence.UNFINISHED: "a check of its tree came to no verdict",
        CommitEvidence.NONE: "nothing is on record of its tree",
    }[ruling.evidence]


def describe_base(ruling: CommitRuling) -> str:
    """Describe the base of the deciding check and its relation to the commit."""
    if ruling.check is None:
        return "no base"
    return f"{ruling.check.base_commit[:12]}, {'a parent' if ruling.is_against_parent else 'no parent of it'}"
