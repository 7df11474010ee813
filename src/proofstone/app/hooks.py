"""Hooks: what git and coding agents call when somebody wants to commit, or says that they are done.

Looking for evidence is what every commit waits for, so what only a check needs is imported when one is run.
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

from proofstone.check.recording import checks_on_record, refuse_forged
from proofstone.check.rules.commit_evidence import Ruling, Seen, Standing, rule
from proofstone.check.rules.run_end import MOST_ROUNDS, feedback
from proofstone.config.home import proofstone_home
from proofstone.config.reading import FILES
from proofstone.errors import AnchorError, InternalError, MachineError, ProofstoneError, RepositoryError, TrustError
from proofstone.git.pending import Pending, counting_bases, is_empty, knowing, pending, tree_of_index, worktree_roots
from proofstone.git.program import readable
from proofstone.git.repository import Repository, open_repository
from proofstone.git.user_hooks import Done, Hook, hooks_folder, hooks_in, install, own_folders, uninstall
from proofstone.hooks.agent_hooks import StopRounds
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.opening import authentication_level, open_ledger
from proofstone.ledger.rules.chain import AuthenticationLevel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from proofstone.check.context import Progress
    from proofstone.check.models import CheckReport


_OWN_INDEX: Final = "index"
_WHOLE_INDEX: Final = "index.lock"
_MOST_PATHS: Final = 5
_NOT_GRANTED: Final = (
    "`proofstone check` could not be run: the repository's settings ask for more than the person who owns this "
    "machine has "
    "granted. Tell them; only they can decide about it."
)


@dataclass(frozen=True)
class Other:
    """A passing check of another tree, and where the two differ."""

    seen: Seen
    missing: tuple[str, ...]
    """Files that were checked and are not in the commit."""
    unchecked: tuple[str, ...]
    """Files of the commit that were not there when it was checked."""
    differing: tuple[str, ...]


@dataclass(frozen=True)
class Looked:
    """What was found of a commit that is to be made."""

    tree: str
    ruling: Ruling
    ledger: Path
    command: str = ""
    """What would produce the evidence that is missing."""
    other: Other | None = None


@dataclass(frozen=True)
class Status:
    folder: Path
    """Where git looks for hooks."""
    hooks: tuple[Hook, ...]
    """Those there, and any of Proofstone's where git does not look."""
    head: Ruling | None
    """What is on record of the commit that one stands on; None if there is none."""
    authentication: AuthenticationLevel
    """Who can write evidence that is believed."""


@dataclass(frozen=True)
class Stop:
    """An agent says that it is done."""

    agent: str
    directory: Path
    conversation: str
    again: bool | None
    """Whether it goes on only because it was sent back; None: its program does not say."""


@dataclass(frozen=True)
class StopAnswer:
    send_back: str = ""
    """What it must put right; empty: it may stop."""
    remark: str = ""
    """For the person."""


def install_hooks(directory: Path, *, check: bool) -> tuple[Path, list[Done]]:
    repository = open_repository(directory)
    done = install(repository, own_program(), check=check)
    return hooks_folder(repository), done


def uninstall_hooks(directory: Path) -> list[Done]:
    return uninstall(open_repository(directory))


def hooks_status(directory: Path) -> Status:
    repository = open_repository(directory)
    folder = hooks_folder(repository)
    elsewhere = [hook for other in own_folders(repository) if other != folder for hook in hooks_in(other)]
    known = (*hooks_in(folder), *(hook for hook in elsewhere if hook.state.ours))
    head = repository.git.maybe("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    ruling = _of_commit(repository, head) if head else None
    return Status(folder, known, ruling, authentication_level(proofstone_home()))


def own_program() -> str:
    """The `proofstone` that is running, as something that a shell can start."""
    called, beside = Path(sys.argv[0]), Path(sys.executable).with_name("proofstone")
    for candidate in (called.absolute() if called.name == "proofstone" else beside, beside):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    if found := shutil.which("proofstone"):
        return str(Path(found).absolute())
    raise MachineError(
        "there is no program `proofstone` that a hook could start",
        hint="install it, for instance with `uv tool install`",
    )


def look(directory: Path, variables: Mapping[str, str], *, merging: bool) -> Looked:
    """What is on record of the commit that git is about to make. Nothing is changed by it."""
    repository = open_repository(directory)
    commit = pending(repository, variables, merging=merging)
    ledger = ledger_path(proofstone_home())
    with _scratch_objects() as objects:
        tree = tree_of_index(repository, commit.index, objects)
        ruling = _ruled(repository, commit, tree, ledger)
        if ruling.accepted:
            return Looked(tree, ruling, ledger)
        other = _other(repository, commit, tree, ledger, objects)
        command = _command(repository, commit, tree, objects, needed_base=ruling.needed_base)
        return Looked(tree, ruling, ledger, command, other)


def check_pending(
    directory: Path, variables: Mapping[str, str], progress: Progress, *, merging: bool, needed_base: str = ""
) -> CheckReport:
    """`proofstone check` of exactly what git is about to commit, which need not be what is staged. `needed_base`: the
    only
    base that would do."""
    from proofstone.app.context import choose_settings, new_run_id, opened_world, outside_of, resolve_base
    from proofstone.check.context import CheckRequest
    from proofstone.check.run import CheckRun
    from proofstone.git.snapshot import of_tree

    repository = open_repository(directory)
    commit = pending(repository, variables, merging=merging)
    plain = CheckRequest(base=needed_base or None)
    base = resolve_base(repository, plain)
    if not counting_bases(repository, commit.parents, {base[0]}):
        base = repository.resolve_base("HEAD")
    settings, note = choose_settings(repository, base[0], plain)
    home = outside_of(repository, None)
    with opened_world(
        repository, base, settings, progress, home=home, run_id=new_run_id(), require_sandbox=False, note=note
    ) as world:
        tree = tree_of_index(repository, commit.index, world.store.objects)
        return CheckRun(world, CheckRequest(tree=of_tree(world.store, base[1], tree))).run()


def agent_stopped(stop: Stop) -> StopAnswer:
    """Check what the agent leaves, and send it back with what is wrong, but not for ever."""
    rounds = StopRounds(proofstone_home() / "agent-stops", f"{stop.agent} {stop.conversation}")
    wrong, remark = _wrong_with(stop.directory)
    if not wrong:
        rounds.forget()
        return StopAnswer(remark=remark)
    before = 0 if stop.again is False else rounds.count()
    if before >= MOST_ROUNDS:
        rounds.forget()
        return StopAnswer(remark=f"Proofstone has sent it back {before} times and lets it stop now, unproven.\n{wrong}")
    rounds.keep(before + 1)
    return StopAnswer(send_back=wrong)


def _wrong_with(directory: Path) -> tuple[str, str]:
    """What is wrong with the work, and what the person should know otherwise. What keeps Proofstone from checking is
    wrong
    as well, unless there is nothing that could be checked: an agent may have caused it."""
    from proofstone.app.context import check_run
    from proofstone.check.context import CheckRequest, Silent
    from proofstone.common.models import Outcome

    try:
        open_repository(directory).resolve_base("HEAD")
    except RepositoryError as error:
        return "", f"Proofstone checked nothing: {error.message}"
    try:
        with check_run(directory, CheckRequest(), Silent()) as run:
            if run.subject.frozen.change.empty:
                return "", ""
            report = run.run()
    except InternalError:
        raise
    except TrustError:
        # How to grant it is for the person alone to read: an agent that is told may do it.
        return _NOT_GRANTED, ""
    except ProofstoneError as error:
        hint = "a person must look into this" if isinstance(error, AnchorError) else error.hint
        return f"`proofstone check` could not be run: {error.message}" + (f" ({hint})" if hint else ""), ""
    return ("", "") if report.outcome is Outcome.PASSED else (feedback(report), "")


def _of_commit(repository: Repository, head: str) -> Ruling:
    """What is on record of a commit that is made already."""
    git = repository.git
    tree = git.tree_of(head)
    parents = git.line("rev-list", "--parents", "--max-count=1", head).split()[1:]
    trees = {commit: git.tree_of(commit) for commit in parents}
    return _ruled(repository, Pending(trees, Path()), tree, ledger_path(proofstone_home()), first=not parents)


def _ruled(repository: Repository, commit: Pending, tree: str, ledger: Path, *, first: bool | None = None) -> Ruling:
    if first is None:
        first = commit.first_of_branch and is_empty(repository)
    seen = checks_on_record(ledger, worktree_roots(repository), tree)
    if seen:
        with closing(open_ledger(proofstone_home(), "read")) as evidence:
            refuse_forged(evidence, seen)
    return rule(
        tree,
        seen,
        parent_trees=commit.parents.values(),
        counting=_counting(repository, commit, seen),
        parents=commit.parents,
        first=first,
    )


def _counting(repository: Repository, commit: Pending, seen: Iterable[Seen]) -> frozenset[str] | None:
    if commit.first_of_branch:
        return None
    return counting_bases(repository, commit.parents, {item.base_commit for item in seen})


def _other(repository: Repository, commit: Pending, tree: str, ledger: Path, objects: Path) -> Other | None:
    """The newest passing check of another tree that would have counted."""
    from proofstone.common.models import ChangeKind
    from proofstone.git.snapshot import difference
    from proofstone.git.store import open_store

    known = checks_on_record(ledger, worktree_roots(repository))
    passed = [item for item in known if item.passed and item.tree != tree and not item.own_settings]
    counting = _counting(repository, commit, passed)
    found = next((item for item in passed if counting is None or item.base_commit in counting), None)
    if found is None:
        return None
    store = open_store(repository, proofstone_home())
    git = knowing(repository.git, objects, (*repository.object_dirs, store.objects))
    if git.maybe("cat-file", "-e", f"{found.tree}^{{tree}}") is None:
        return None  # tidied away since, or checked in another work tree
    entries = difference(git, found.tree, tree)
    named = {
        kind: tuple(readable(entry.path) for entry in entries if entry.kind is kind)[:_MOST_PATHS]
        for kind in ChangeKind
    }
    return Other(found, named[ChangeKind.DELETED], named[ChangeKind.ADDED], named[ChangeKind.MODIFIED])


def _command(repository: Repository, commit: Pending, tree: str, objects: Path, *, needed_base: str) -> str:
    """What would produce the evidence: of what is staged, and so everything that is to be committed staged first."""
    import shlex

    from proofstone.git.snapshot import difference

    base = ""
    if commit.first_of_branch:
        base = " --base REV"
    elif needed_base:
        base = " --base HEAD" if needed_base == next(iter(commit.parents)) else f" --base {needed_base[:12]}"
    elif not _takes_counting_base(repository, commit):
        base = " --base HEAD"
    check = f"proofstone check --staged{base}"
    if commit.index.name == _OWN_INDEX:
        return check
    if commit.index.name == _WHOLE_INDEX:
        return f"git add --update && {check}"
    git = knowing(repository.git, objects, repository.object_dirs)
    entries = difference(git, next(iter(commit.parents.values())), tree)
    paths = " ".join(shlex.quote(os.fsdecode(entry.path)) for entry in entries)
    return f"git reset --quiet && git add --all -- {paths} && {check}"


def _takes_counting_base(repository: Repository, commit: Pending) -> bool:
    """Whether a plain `proofstone check` compares with a base that counts. Without settings it is HEAD, which does."""
    if not repository.git.out("ls-tree", "--full-tree", "--name-only", "HEAD", "--", *FILES):
        return True
    from proofstone.app.context import resolve_base
    from proofstone.check.context import CheckRequest

    return bool(counting_bases(repository, commit.parents, {resolve_base(repository, CheckRequest())[0]}))


@contextmanager
def _scratch_objects() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="proofstone-objects-") as folder:
        yield Path(folder)


def standing_words(ruling: Ruling) -> str:
    """What was found, in a few words, and against which base where a verdict decided it."""
    decided = ruling.seen is not None and ruling.standing in (Standing.PASSED, Standing.REFUSED)
    against = f" against {describe_base(ruling)}" if decided else ""
    return {
        Standing.FIRST: "the first commit: there is nothing to compare it with",
        Standing.UNCHANGED: "its tree is that of its parent",
        Standing.PASSED: f"its tree has passed{against}",
        Standing.REFUSED: f"its tree was checked and did not pass{against}",
        Standing.OWN_SETTINGS: "its tree was checked only by its own settings",
        Standing.OTHER_BASE: "its tree was checked only against a commit that is no ancestor",
        Standing.UNFINISHED: "a check of its tree came to no verdict",
        Standing.NONE: "nothing is on record of its tree",
    }[ruling.standing]


def describe_base(ruling: Ruling) -> str:
    """The base of the check that decided, and what it is to the commit."""
    if ruling.seen is None:
        return "no base"
    return f"{ruling.seen.base_commit[:12]}, {'a parent' if ruling.is_against_parent else 'no parent of it'}"
