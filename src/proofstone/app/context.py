"""Open everything that a run needs: settings, trust, ledger, sandbox and state directory. This module chooses the
implementations."""

from __future__ import annotations

import os
import secrets
import shlex
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from proofstone.app.base_setup import detect_setup
from proofstone.app.caller import list_setting_acceptances
from proofstone.app.check_base import CheckBase, find_base, find_session, read_settings_at
from proofstone.check.cache import clean_caches
from proofstone.check.context import CheckRequest, Progress, RunContext
from proofstone.check.environment import PASSED_VARIABLES
from proofstone.check.held_out import find_held_out_paths
from proofstone.check.run import CheckRun
from proofstone.common.models import Assurance
from proofstone.common.secrets import SecretMask
from proofstone.config.home import find_proofstone_home
from proofstone.config.loader import load_settings
from proofstone.config.settings import Settings
from proofstone.config.trust import (
    ConsentResult,
    check_consent,
    find_trust_file,
    format_permissions,
    list_requested_permissions,
    load_grants,
    remove_permissions,
)
from proofstone.config.user import UserConfig, load_user_config
from proofstone.errors import MachineError, TrustError
from proofstone.git.pending_commit import find_main_work_tree, find_work_tree_roots
from proofstone.git.program import GitCommandError
from proofstone.git.repository import Repository, open_repository
from proofstone.git.store import Store, open_store
from proofstone.hooks.agent_sessions import CodingSession
from proofstone.ledger import Ledger
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.connection import artifacts_path, ledger_path
from proofstone.ledger.opening import open_ledger
from proofstone.ledger.repository_anchors import demand_valid_anchors
from proofstone.machine.files import repair_state, scratch_folder
from proofstone.machine.locks import CheckSlots, lock_run
from proofstone.sandbox.probe import choose_sandbox, load_sandbox_facts
from proofstone.sandbox.supervised import SupervisedSandbox

_LONGEST_PATH = 4096


def new_run_id() -> str:
    """Return an id that sorts by time and is valid in git refs and file names."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def ensure_private_home(home: Path | None = None) -> Path:
    """Return Proofstone's state directory. Create it if needed, readable by its owner only."""
    home = home or find_proofstone_home()
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise MachineError(
            f"{home}: cannot be created ({error.strerror})", hint="set PROOFSTONE_HOME to a folder of your own"
        ) from error
    if home.stat().st_mode & 0o077 and os.access(home, os.W_OK, effective_ids=True):
        _make_private(home)
    return home


def _make_private(home: Path) -> None:
    """Close a state directory to other users. Refuse a directory that is used for something else."""
    names = {path.name for path in home.iterdir()} - {"lost+found"}
    if names and not names & {"ledger", "cache", "scratch", "reports", "memory"}:
        raise MachineError(
            f"{home}: other users can read it, and it holds files that are not Proofstone's",
            hint="set PROOFSTONE_HOME to a separate folder",
        )
    home.chmod(0o700)


def _user_home() -> Path | None:
    """Return the person's HOME; None if it is unset or a shared directory."""
    home = Path(os.environ.get("HOME") or "/").resolve()
    is_unusable = home == home.parent or not home.is_dir() or home in (Path("/tmp"), Path("/var/tmp"), Path("/run"))  # noqa: S108
    return None if is_unusable else home


def _clean_up(home: Path, store: Store, settings: Settings) -> str:
    """Remove old results, once a day. Return what went wrong: a failure here must not stop the run."""
    try:
        clean_caches(home, store, settings.limits.cache_gb)
    except (OSError, GitCommandError) as error:
        return f"could not remove old results: {error}"
    return ""


def choose_settings(repository: Repository, base: CheckBase, request: CheckRequest) -> tuple[Settings, str]:
    """Return the settings to use, and a note. The base's settings decide, so that no change can loosen its own checks,
    unless the person asks for those of the work tree."""
    own = load_settings(repository.root)
    if request.use_worktree_config:
        return own, ""
    note = "the change edits Proofstone's own settings; the base's decide (--use-worktree-config uses the new ones)"
    settings = base.settings
    if settings.environment.setup:
        return settings, note if own != settings else ""
    if setup := request.setup or _choose_new_setup(repository, base, own):
        environment = settings.environment.model_copy(update={"setup": setup})
        settings = settings.model_copy(update={"environment": environment})
    return settings, note if own != settings else ""


def _choose_new_setup(repository: Repository, base: CheckBase, own: Settings) -> tuple[str, ...]:
    """Return the set-up commands that the work tree's settings introduce, if the base's own files ask for all of them.
    Otherwise the change that introduces the settings could not be checked: its base would lack the dependencies."""
    setup = own.environment.setup
    if not setup:
        return ()
    detected = {command.command for command in detect_setup(repository, base.tree)}
    return tuple(setup) if detected.issuperset(setup) else ()


def determine_consent(
    repository: Repository, settings: Settings, person: UserConfig, *, present: Collection[str] | None = None
) -> ConsentResult:
    """Return what these settings need, and which needs the person has not granted. `present` holds the variables that
    are set; None asks for all of them."""
    needs = list_requested_permissions(settings, repository.root)
    if not needs:
        return ConsentResult((), ())
    if is_person_file_inside(repository, person):
        return ConsentResult(needs, needs)
    main = find_main_work_tree(repository)
    grants = load_grants(find_trust_file(person)).for_repository(main)
    return check_consent(needs, person, grants, repository=main, present=present)


def is_person_file_inside(repository: Repository, person: UserConfig) -> bool:
    """Return whether the person's own file lies inside the repository, where anybody could have written it."""
    file = person.file.resolve()
    return any(file.is_relative_to(root) for root in find_work_tree_roots(repository))


def find_settings(repository: Repository, base: str | None, *, own: bool) -> tuple[Settings, str]:
    """Return the settings of the work tree, of a revision, or of the default base, and a description of where they come
    from."""
    if own:
        return load_settings(repository.root), "in the work tree"
    found = find_base(repository, base, find_session(os.environ))
    return found.settings, f"at {found.commit[:12]}"


def apply_trust(
    repository: Repository, settings: Settings, commit: str, *, own: bool = False
) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings without what the person has not granted, and notes about it. Raise a TrustError if a grant is
    missing, unless the person's settings say to ignore such needs."""
    person = load_user_config()
    granted = determine_consent(repository, settings, person, present=os.environ.keys())
    if not granted.missing:
        return settings, ()
    needs = format_permissions(granted.missing, person)
    source = "in the work tree" if own else f"at {commit[:12]}"
    if person.settings.trust.untrusted == "ignore":
        note = f"the repository's settings {source} need grants that you have not given; ignored: {'; '.join(needs)}"
        return remove_permissions(settings, granted.missing), (note,)
    listed = "\n".join(f"  {line}" for line in needs)
    raise TrustError(
        f"nothing was run: the settings of this repository, {source}, need grants that you have not given:\n{listed}",
        hint=_how_to_grant(repository, person, commit, own=own),
    )


def _how_to_grant(repository: Repository, person: UserConfig, commit: str, *, own: bool) -> str:
    """Return the hint that tells the person how to grant the missing needs."""
    if is_person_file_inside(repository, person):
        return f"your own file, {person.file}, lies inside the repository, so it grants nothing; move it elsewhere"
    default = find_base(repository, None, find_session(os.environ)).commit
    revision = " --use-worktree-config" if own else "" if commit == default else f" --base {commit[:12]}"
    return (
        f"if you trust it: `proofstone trust{revision} {shlex.quote(str(repository.root))}` shows this again "
        f'and grants it; to run without it: `untrusted = "ignore"` under [trust] in {person.file}'
    )


def require_outside_home(repository: Repository, home: Path | None) -> Path:
    """Return Proofstone's state directory. Refuse one inside the repository that is to be checked."""
    home = home or find_proofstone_home()
    if home.resolve().is_relative_to(repository.root):
        raise MachineError(
            f"{home}: Proofstone's state directory lies inside the repository to check",
            hint="set PROOFSTONE_HOME to a folder outside the repository",
        )
    return ensure_private_home(home)


def build_secret_mask(settings: Settings, variables: Mapping[str, str]) -> SecretMask:
    """Return the mask for every variable that the settings pass to checks and executors. Paths are not masked: they are
    no secrets, and a report must show which files it means."""
    names = dict.fromkeys((*settings.environment.pass_through, *settings.gate.pass_through))
    passed = {name: variables[name] for name in names if name in variables and name not in PASSED_VARIABLES}
    return SecretMask.from_variables(passed, public=[value for value in passed.values() if _is_path(value)])


def _is_path(value: str) -> bool:
    return (
        value.startswith("/") and len(value) < _LONGEST_PATH and all(Path(part).exists() for part in value.split(":"))
    )


@contextmanager
def open_writable_ledger(home: Path, repository: Repository | None = None, *, create: bool = False) -> Iterator[Ledger]:
    """Open the ledger for writing. Refuse it if it does not match its anchors."""
    with closing(open_ledger(home, "create" if create else "write")) as ledger:
        demand_valid_anchors(ledger, home, repository)
        yield ledger


@contextmanager
def open_run_context(
    repository: Repository,
    base: tuple[str, str],
    settings: Settings,
    progress: Progress,
    *,
    home: Path,
    run_id: str,
    require_sandbox: bool,
    compare_bare: bool = False,
    note: str = "",
    base_reason: str = "",
    settings_commit: str = "",
    own_settings: bool = False,
    held_out: tuple[Path, ...] = (),
) -> Iterator[RunContext]:
    """Open the context of a run. On exit, remove its scratch folder and close the ledger. `base_reason` says why the
    base was chosen; `settings_commit` is the commit that the settings were read from, if not the base; `own_settings`
    means the work tree."""
    settings, trust_notes = apply_trust(repository, settings, settings_commit or base[0], own=own_settings)
    repairs = repair_state(home)
    store = open_store(repository, home)
    store.repairs[:0] = repairs
    with scratch_folder(home, run_id) as scratch, open_writable_ledger(home, repository, create=True) as ledger:
        facts = load_sandbox_facts(home / "cache" / "sandbox.json", scratch / "probe", repository.search)
        commit = base[0] if own_settings else settings_commit or base[0]
        accepted = list_setting_acceptances(
            read_settings_at(repository, commit) if own_settings else settings, commit[:12]
        )
        sandbox = choose_sandbox(facts, settings.sandbox.level, require=require_sandbox or settings.sandbox.require)
        yield RunContext(
            run_id=run_id,
            task_id="check",
            attempt=1,
            repository=repository,
            store=store,
            home=home,
            user_home=_user_home(),
            base_commit=base[0],
            base_tree=base[1],
            settings=settings,
            notes=(*trust_notes, *(text for text in (note, _clean_up(home, store, settings)) if text)),
            ledger=ledger,
            ledger_path=ledger_path(home),
            artifacts=ArtifactStore(artifacts_path(home)),
            sandbox=sandbox,
            bare=SupervisedSandbox(Assurance.PLAIN) if compare_bare or settings.sandbox.compare_bare else None,
            slots=CheckSlots(settings.limits.slots, home / "slots"),
            scratch=scratch,
            cancel=threading.Event(),
            progress=progress,
            accepted=accepted,
            held_out=held_out,
            secrets=build_secret_mask(settings, os.environ),
            base_reason=base_reason,
        )


@contextmanager
def build_check_run(
    directory: Path,
    request: CheckRequest,
    progress: Progress,
    *,
    require_sandbox: bool = False,
    home: Path | None = None,
    session: CodingSession | None = None,
) -> Iterator[CheckRun]:
    """Build a `proofstone check` for the repository of `directory`. `session` is the coding agent's session in which
    it runs; if None, the environment says whether it runs in one."""
    repository = open_repository(directory)
    base = find_base(repository, request.base, session or find_session(os.environ), home)
    settings, note = choose_settings(repository, base, request)
    home, run_id = require_outside_home(repository, home), new_run_id()
    with (
        lock_run(home, run_id, keep=False),
        open_run_context(
            repository,
            base.pair,
            settings,
            progress,
            home=home,
            run_id=run_id,
            require_sandbox=require_sandbox,
            compare_bare=request.rerun_unsandboxed,
            note=note,
            base_reason=base.reason,
            own_settings=request.use_worktree_config,
            held_out=find_held_out_paths(repository, request.heldout, request.heldout_files, os.environ),
        ) as world,
    ):
        yield CheckRun(world, request)
