"""The only place that chooses implementations."""

from __future__ import annotations

import os
import secrets
import shlex
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from proofstone.check.cache import keep_house
from proofstone.check.context import CheckRequest, Progress, World
from proofstone.check.environment import PASSED
from proofstone.check.run import CheckRun
from proofstone.common.models import Assurance
from proofstone.common.secrets import SecretMask
from proofstone.config.home import proofstone_home
from proofstone.config.person import Person, load_person
from proofstone.config.reading import FILES, load, load_files
from proofstone.config.settings import Settings
from proofstone.config.trust import Consent, consent, load_grants, need_lines, needs_of, trust_file, without_needs
from proofstone.errors import MachineError, TrustError
from proofstone.git.objects import file_at
from proofstone.git.pending import main_work_tree, worktree_roots
from proofstone.git.program import GitFailedError
from proofstone.git.repository import Repository, open_repository
from proofstone.git.store import Store, open_store
from proofstone.ledger import Ledger
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.connection import artifacts_path, ledger_path
from proofstone.ledger.opening import open_ledger
from proofstone.ledger.repository_anchors import refuse_anchor_faults
from proofstone.machine.files import mend_state, scratch_folder
from proofstone.machine.locks import Slots
from proofstone.sandbox.probe import choose, remembered_facts
from proofstone.sandbox.supervised import Supervised

_LONGEST_PATH = 4096


def new_run_id() -> str:
    """Legal in git refs and file names, and in order of time."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def private_home(home: Path | None = None) -> Path:
    """Proofstone's state directory, made if need be, for its owner only."""
    home = home or proofstone_home()
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise MachineError(
            f"{home}: cannot be made ({error.strerror})", hint="set PROOFSTONE_HOME to a folder of your own"
        ) from error
    if home.stat().st_mode & 0o077 and os.access(home, os.W_OK, effective_ids=True):
        _make_private(home)
    return home


def _make_private(home: Path) -> None:
    """Close a state directory to others. A directory that somebody uses for something else stays as it is."""
    names = {path.name for path in home.iterdir()} - {"lost+found"}
    if names and not names & {"ledger", "cache", "scratch", "reports", "memory"}:
        raise MachineError(
            f"{home}: others can look into it, and it holds what is not Proofstone's",
            hint="set PROOFSTONE_HOME to a folder of its own",
        )
    home.chmod(0o700)


def _user_home() -> Path | None:
    """The person's HOME; None where they have none, or one that is not a person's."""
    home = Path(os.environ.get("HOME") or "/").resolve()
    nobody = home == home.parent or not home.is_dir() or home in (Path("/tmp"), Path("/var/tmp"), Path("/run"))  # noqa: S108
    return None if nobody else home


def _tidied(home: Path, store: Store, settings: Settings) -> str:
    """Once a day; what went wrong with it, which stops nobody."""
    try:
        keep_house(home, store, settings.limits.cache_gb)
    except (OSError, GitFailedError) as error:
        return f"old results could not be tidied away: {error}"
    return ""


def settings_at(repository: Repository, commit: str) -> Settings:
    """The settings that a commit holds."""
    found = {name: content for name in FILES if (content := file_at(repository.git, commit, name)) is not None}
    return load_files(found)


def choose_settings(repository: Repository, commit: str, request: CheckRequest) -> tuple[Settings, str]:
    """The base's settings decide, so that no change can loosen its own checks; the person may say otherwise."""
    own, based = load(repository.root), settings_at(repository, commit)
    if request.own_settings:
        return own, ""
    note = "the change edits Proofstone's own settings; the base's decide (--use-worktree-config uses the new ones)"
    return based, note if own != based else ""


def consent_for(
    repository: Repository, settings: Settings, person: Person, *, present: Collection[str] | None = None
) -> Consent:
    """Return what these settings ask for, and what of it the person has not granted. `present`: the variables that
    are set; None: all are asked for."""
    needs = needs_of(settings, repository.root)
    if not needs:
        return Consent((), ())
    if grants_from_inside(repository, person):
        return Consent(needs, needs)
    main = main_work_tree(repository)
    grants = load_grants(trust_file(person)).of(main)
    return consent(needs, person, grants, repository=main, present=present)


def grants_from_inside(repository: Repository, person: Person) -> bool:
    """Whether the person's own file lies inside the repository, whose content anybody may have written."""
    file = person.file.resolve()
    return any(file.is_relative_to(root) for root in worktree_roots(repository))


def asked_settings(repository: Repository, base: str | None, *, own: bool) -> tuple[Settings, str]:
    """Return the settings that a run would read, and where they stand: in the work tree, at a revision, or where
    `proofstone check` reads them."""
    if own:
        return load(repository.root), "in the work tree"
    commit = resolve_base(repository, CheckRequest(base=base))[0]
    return settings_at(repository, commit), f"at {commit[:12]}"


def trusted_settings(
    repository: Repository, settings: Settings, commit: str, *, own: bool = False
) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings as far as the person granted what they ask for, and what is to be said about them. Raise a
    TrustError if something is missing, unless the person prefers to go on without it."""
    person = load_person()
    found = consent_for(repository, settings, person, present=os.environ.keys())
    if not found.missing:
        return settings, ()
    asked = need_lines(found.missing, person)
    source = "in the work tree" if own else f"at {commit[:12]}"
    if person.settings.trust.untrusted == "ignore":
        note = f"the repository's settings {source} ask for what you have not granted; ignored: {'; '.join(asked)}"
        return without_needs(settings, found.missing), (note,)
    listed = "\n".join(f"  {line}" for line in asked)
    raise TrustError(
        f"nothing was run: the settings of this repository, {source}, ask for what you have not granted:\n{listed}",
        hint=_how_to_grant(repository, person, commit, own=own),
    )


def _how_to_grant(repository: Repository, person: Person, commit: str, *, own: bool) -> str:
    if grants_from_inside(repository, person):
        return f"your own file, {person.file}, lies inside the repository, so it grants nothing; move it elsewhere"
    default = resolve_base(repository, CheckRequest())[0]
    revision = " --use-worktree-config" if own else "" if commit == default else f" --base {commit[:12]}"
    return (
        f"if you trust it: `proofstone trust{revision} {shlex.quote(str(repository.root))}` shows this again "
        f"and grants it; "
        f'to run without it: `untrusted = "ignore"` under [trust] in {person.file}'
    )


def resolve_base(repository: Repository, request: CheckRequest) -> tuple[str, str]:
    """Commit and tree of the base, as the person named it or as the settings at HEAD do."""
    if request.base is not None:
        return repository.resolve_base(request.base)
    head = repository.resolve_base("HEAD")
    named = settings_at(repository, head[0]).check.base
    return head if named == "HEAD" else repository.resolve_base(named)


def outside_of(repository: Repository, home: Path | None) -> Path:
    """Proofstone's state directory, which may not lie inside the repository that it is to judge."""
    home = home or proofstone_home()
    if home.resolve().is_relative_to(repository.root):
        raise MachineError(
            f"{home}: Proofstone's state lies inside the repository that it is to check",
            hint="set PROOFSTONE_HOME to a folder outside of it",
        )
    return private_home(home)


def passed_secrets(settings: Settings, variables: Mapping[str, str]) -> SecretMask:
    """Return the mask for every variable that the settings pass to checks and executors. A path is no secret, and
    masking it would hide which files a report speaks of."""
    names = dict.fromkeys((*settings.environment.pass_through, *settings.gate.pass_through))
    passed = {name: variables[name] for name in names if name in variables and name not in PASSED}
    return SecretMask.of(passed, public=[value for value in passed.values() if _is_path(value)])


def _is_path(value: str) -> bool:
    return (
        value.startswith("/") and len(value) < _LONGEST_PATH and all(Path(part).exists() for part in value.split(":"))
    )


@contextmanager
def writing_ledger(home: Path, repository: Repository | None = None, *, create: bool = False) -> Iterator[Ledger]:
    """The ledger, to be written to. It is refused if it is not the one that was anchored."""
    with closing(open_ledger(home, "create" if create else "write")) as ledger:
        refuse_anchor_faults(ledger, home, repository)
        yield ledger


@contextmanager
def opened_world(
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
    settings_commit: str = "",
    own_settings: bool = False,
) -> Iterator[World]:
    """Everything outside that a run touches; its scratch folder and its hold on the ledger end with it.
    `settings_commit` is where the settings were read, if not at the base; `own_settings`: in the work tree."""
    settings, told = trusted_settings(repository, settings, settings_commit or base[0], own=own_settings)
    mended = mend_state(home)
    store = open_store(repository, home)
    store.repairs[:0] = mended
    with scratch_folder(home, run_id) as scratch, writing_ledger(home, repository, create=True) as ledger:
        facts = remembered_facts(home / "cache" / "sandbox.json", scratch / "probe", repository.search)
        sandbox = choose(facts, settings.sandbox.level, require=require_sandbox or settings.sandbox.require)
        yield World(
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
            notes=(*told, *(item for item in (note, _tidied(home, store, settings)) if item)),
            ledger=ledger,
            ledger_path=ledger_path(home),
            artifacts=ArtifactStore(artifacts_path(home)),
            sandbox=sandbox,
            bare=Supervised(Assurance.PLAIN) if compare_bare or settings.sandbox.compare_bare else None,
            slots=Slots(settings.limits.slots, home / "slots"),
            scratch=scratch,
            cancel=threading.Event(),
            progress=progress,
            secrets=passed_secrets(settings, os.environ),
        )


@contextmanager
def check_run(
    directory: Path,
    request: CheckRequest,
    progress: Progress,
    *,
    require_sandbox: bool = False,
    home: Path | None = None,
) -> Iterator[CheckRun]:
    """A `proofstone check` in the repository of `directory`, ready to run."""
    repository = open_repository(directory)
    base = resolve_base(repository, request)
    settings, note = choose_settings(repository, base[0], request)
    home = outside_of(repository, home)
    with opened_world(
        repository,
        base,
        settings,
        progress,
        home=home,
        run_id=new_run_id(),
        require_sandbox=require_sandbox,
        compare_bare=request.compare_bare,
        note=note,
        own_settings=request.own_settings,
    ) as world:
        yield CheckRun(world, request)
