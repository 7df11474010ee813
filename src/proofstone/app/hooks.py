"""Answer the hooks that git calls before a commit.

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
from proofstone.common.models import AcceptanceMethod
from proofstone.config.home import find_proofstone_home
from proofstone.errors import MachineError
from proofstone.git.pending_commit import (
    PendingCommit,
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


def find_evidence(directory: Path, variables: Mapping[str, str]) -> PendingEvidence:
    """Return the evidence for the commit that git is about to make. Change nothing."""
    repository = open_repository(directory)
    commit = read_pending_commit(repository, variables)
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
    directory: Path, variables: Mapping[str, str], progress: Progress, *, needed_base: str = ""
) -> CheckReport:
    """Check exactly what git is about to commit, which may differ from what is staged. If `needed_base` is given, only
    a check against that base counts."""
    from proofstone.app.check_base import find_base
    from proofstone.app.context import choose_settings, new_run_id, open_run_context, require_outside_home
    from proofstone.check.context import CheckRequest
    from proofstone.check.run import CheckRun
    from proofstone.git.snapshot import snapshot_of_tree

    repository = open_repository(directory)
    commit = read_pending_commit(repository, variables)
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


def _rule_on_commit(repository: Repository, head: str) -> CommitRuling:
    """Rule on an existing commit by the recorded checks."""
    git = repository.git
    tree = git.find_tree(head)
    parents = git.run_line("rev-list", "--parents", "--max-count=1", head).split()[1:]
    parent = parents[0] if parents else ""
    commit = PendingCommit(parent, git.find_tree(parent) if parent else "", Path())
    return _rule_on_tree(repository, commit, tree, ledger_path(find_proofstone_home()), first=not parents)


def _rule_on_tree(
    repository: Repository, commit: PendingCommit, tree: str, ledger: Path, *, first: bool | None = None
) -> CommitRuling:
    """Rule on a tree by the recorded checks, after verifying that nobody forged them."""
    if first is None:
        first = not commit.parent and has_no_commits(repository)
    checks = find_recorded_checks(ledger, find_work_tree_roots(repository), tree)
    is_disputed = False
    if checks:
        with closing(open_ledger(find_proofstone_home(), "read")) as evidence:
            raise_if_forged(evidence, checks)
            is_disputed = any(dispute.is_open for dispute in find_disputes(evidence, {tree}))
    return rule_on_commit(
        tree,
        checks,
        parent=commit.parent,
        parent_tree=commit.parent_tree,
        counting=_counting_bases(repository, commit, checks),
        first=first,
        is_disputed=is_disputed,
        accepts=_read_accepted_methods(repository, commit) if any(check.accepted for check in checks) else (),
    )


def _read_accepted_methods(repository: Repository, commit: PendingCommit) -> tuple[AcceptanceMethod, ...]:
    """Return the ways of acceptance that count for the commit, as the settings of its parent say. A commit cannot
    change them for itself."""
    from proofstone.app.check_base import read_settings_at
    from proofstone.config.settings import HookSettings

    settings = read_settings_at(repository, commit.parent).hook if commit.parent else HookSettings()
    return tuple(AcceptanceMethod(kind) for kind in settings.accepts)


def _counting_bases(repository: Repository, commit: PendingCommit, checks: Iterable[RecordedCheck]) -> frozenset[str]:
    """Return the bases whose checks count for the commit besides its parent. They are looked for only if a check has
    another base, because every commit waits for them."""
    from proofstone.app.check_base import find_evidence_bases

    others = {check.base_commit for check in checks} - {commit.parent}
    return find_evidence_bases(repository, commit.parent) if others else frozenset()


def _find_other_check(
    repository: Repository, commit: PendingCommit, tree: str, ledger: Path, objects: Path
) -> OtherCheck | None:
    """Return the newest passing check of another tree that would have counted."""
    from proofstone.common.models import ChangeKind
    from proofstone.git.snapshot import compare_trees
    from proofstone.git.store import open_store

    checks = find_recorded_checks(ledger, find_work_tree_roots(repository))
    passed = [check for check in checks if check.is_passed and check.tree != tree and not check.own_settings]
    counting = {commit.parent, *_counting_bases(repository, commit, passed)}
    newest = next((check for check in passed if check.base_commit in counting), None)
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
    if not commit.parent:
        base = " --base REV"
    elif needed_base or not _is_default_base_valid(repository, commit):
        base = " --base HEAD"
    check = f"proofstone check --staged{base}"
    if commit.index.name == _DEFAULT_INDEX:
        return check
    if commit.index.name == _COMMIT_ALL_INDEX:
        return f"git add --update && {check}"
    git = with_object_stores(repository.git, objects, repository.object_dirs)
    entries = compare_trees(git, commit.parent_tree, tree)
    paths = " ".join(shlex.quote(os.fsdecode(entry.path)) for entry in entries)
    return f"git reset --quiet && git add --all -- {paths} && {check}"


def _is_default_base_valid(repository: Repository, commit: PendingCommit) -> bool:
    """Return whether a plain `proofstone check` uses a base that counts. In a session it may be the commit at which the
    session began, which does not."""
    from proofstone.app.check_base import find_base, find_evidence_bases, find_session

    base = find_base(repository, None, find_session(os.environ)).commit
    return base == commit.parent or base in find_evidence_bases(repository, commit.parent)


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
        CommitEvidence.OTHER_BASE: "its tree was checked, but neither against its parent nor the base of its branch",
        CommitEvidence.UNFINISHED: "a check of its tree came to no verdict",
        CommitEvidence.NONE: "nothing is on record of its tree",
    }[ruling.evidence]


def describe_base(ruling: CommitRuling) -> str:
    """Describe the base of the deciding check and its relation to the commit."""
    if ruling.check is None:
        return "no base"
    return f"{ruling.check.base_commit[:12]}, {'the parent' if ruling.is_against_parent else 'the base of the branch'}"
