"""Find everything that can be wrong with a run before it begins, and report it before anything is written."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from proofstone.agents.executors.selection import build_architect, build_executor
from proofstone.agents.gate_agents import is_agent_spec
from proofstone.check.context import RunContext
from proofstone.common.text import slugify
from proofstone.errors import InputError, RepositoryError
from proofstone.gate.models import GateSetup
from proofstone.gate.rules.pages import (
    PAGE_MARK,
    list_summary_patterns,
    name_state_page,
    name_summary_page,
    name_temporary_page,
)
from proofstone.git.commit import (
    CommitIdentity,
    CommitIntent,
    find_branch_tip,
    find_free_branch,
    find_work_trees,
    validate_branch_name,
    write_commit,
)
from proofstone.git.pending_commit import OWN_FOLDER_PATTERN, find_commit_hooks
from proofstone.git.repository import Repository
from proofstone.plans.models import Plan


def choose_branch_and_base(
    repository: Repository, plan: Plan, plan_path: Path, wanted: str | None, promised: Collection[str]
) -> tuple[str, str]:
    """Return the branch for the commits, and the commit that the first one follows."""
    head, _ = repository.resolve_base("HEAD")
    if wanted is None:
        title = plan.title if plan.title != plan_path.name else plan_path.stem
        text = "-".join(part for part in (plan.phase, plan.plan) if part) or title
        return find_free_branch(repository, f"proofstone/{slugify(text)}", head, promised=promised), head
    validate_branch_name(repository, wanted)
    return wanted, find_branch_tip(repository, wanted) or head


def refuse_unfinished_plans(plan: Plan, plan_path: Path) -> None:
    """Raise InputError if the plan depends on a plan that is not finished."""
    for name in plan.depends_on:
        if not re.fullmatch(r"[\w. -]*\w[\w. -]*", name):
            raise InputError(
                f"{plan_path.name}: depends_on names {name!r}, which is not the name of a plan",
                hint="write a name like 03-01",
            )
        if not any(list(plan_path.parent.glob(pattern)) for pattern in list_summary_patterns(name)):
            raise InputError(
                f"{plan_path.name}: depends on the plan {name}, which is not finished: it has no SUMMARY.md",
                hint=f"run that plan first, or remove it from depends_on; there is no {name}-SUMMARY.md near this plan",
            )


def refuse_foreign_pages(plan_path: Path, plan: Plan) -> None:
    """Raise InputError rather than overwrite a page that somebody else wrote, or that a task will write."""
    for page in list_pages(plan_path):
        for task in plan.tasks:
            if any(str(page).endswith(f"/{path}") for path in task.files):
                raise InputError(f"{plan_path}:{task.line}: {page.name} is written by Proofstone, not by a task")
        if page.is_dir() or (page.is_file() and PAGE_MARK not in page.read_text("utf-8", "replace")):
            raise InputError(
                f"{page}: was not written by Proofstone, and a run would overwrite it",
                hint="move the file, or put the plan into its own folder",
            )


def refuse_dirty(repository: Repository, branch: str, plan_path: Path, *, allowed: bool) -> None:
    """Raise RepositoryError if the work tree has uncommitted changes.

    Executors start from the last commit, so uncommitted changes would be missing without notice. If the branch is
    checked out, no change may be in the way of updating its files, not even in Proofstone's own pages.
    """
    own_paths: set[str] = set()
    if find_work_trees(repository, branch):
        tracked = [page for page in list_pages(plan_path) if is_tracked(repository, page)]
        if tracked:
            raise RepositoryError(
                f"{tracked[0]}: is tracked by git, but a run rewrites it while it commits to {branch}",
                hint=f"git rm --cached {tracked[0].name}, and commit that; or choose another branch",
            )
    elif allowed:
        return
    else:
        own_paths = {path.lstrip("/") for path in list_own_files(repository, plan_path)}
        if plan_path.is_relative_to(repository.root):
            own_paths.add(str(plan_path.relative_to(repository.root)))
    listed = repository.git.run_records("diff", "--name-only", "-z", "HEAD")
    changed = [
        path
        for path in (path_bytes.decode("utf-8", "backslashreplace") for path_bytes in listed)
        if path not in own_paths
    ]
    if changed:
        raise RepositoryError(
            f"{repository.root}: {changed[0]} and {len(changed) - 1} more files have uncommitted changes"
            if len(changed) > 1
            else f"{repository.root}: {changed[0]} has uncommitted changes",
            hint="commit or stash them: tasks start from the last commit; --allow-dirty continues without them, "
            "if the work goes to another branch",
        )


def validate_agents(setup: GateSetup) -> None:
    """Raise an error if the executor or the architect does not exist."""
    if not is_agent_spec(setup.executor):
        build_executor(setup.executor)
    if not is_agent_spec(setup.architect):
        build_architect(setup.architect)


def list_skipped_hooks(repository: Repository, wanted: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the hooks that will not run, and notes about them. Raise InputError if the person has not decided."""
    hooks = find_commit_hooks(repository)
    unsupported = tuple(name for name in hooks.runnable if name != "pre-commit")
    if wanted == "refuse" and hooks.runnable:
        raise InputError(
            f"{hooks.folder}: the repository has commit hooks ({', '.join(hooks.runnable)}), and Proofstone commits "
            "without `git commit`",
            hint="--hooks run runs pre-commit in the sandbox, before the checks; --hooks skip runs no hooks",
        )
    if wanted == "run" and unsupported:
        raise InputError(
            f"{hooks.folder}: {', '.join(unsupported)} checks commit messages, which Proofstone does not support",
            hint="--hooks skip runs no hooks, and records that",
        )
    left_out = (*(hooks.runnable if wanted == "skip" else ()), *hooks.ignored)
    return left_out, (f"hooks of the repository that are not run: {', '.join(left_out)}",) if left_out else ()


def can_sign(world: RunContext, who: CommitIdentity) -> bool:
    """Try to sign before anything is executed, because a failure at the first commit would come too late."""
    intent = CommitIntent(world.base_tree, world.base_commit, "Whether this can be signed\n", who, "0 +0000")
    try:
        write_commit(world.store, intent, sign=True)
    except RepositoryError as error:
        raise InputError(error.message, hint=f"{error.hint}; or --no-sign, which is recorded") from error
    return True


def list_untracked(repository: Repository, plan_path: Path) -> list[str]:
    """Return the untracked files that are not Proofstone's own."""
    listed = repository.git.run_records("ls-files", "-z", "--others", "--exclude-standard")
    own_paths = {path.lstrip("/") for path in list_own_files(repository, plan_path)}
    names = [path_bytes.decode("utf-8", "backslashreplace") for path_bytes in listed]
    return [name for name in names if name not in own_paths and repository.root / name != plan_path]


def is_tracked(repository: Repository, path: Path) -> bool:
    return path.is_relative_to(repository.root) and bool(repository.git.run_output("ls-files", "-z", "--", path))


def list_own_files(repository: Repository, plan_path: Path) -> list[str]:
    """Return the files that Proofstone writes into the work tree, as patterns from its root."""
    folder = plan_path.parent
    if not folder.is_relative_to(repository.root):
        return [OWN_FOLDER_PATTERN]
    folder_path = folder.relative_to(repository.root)
    names = [page.name for page in list_pages(plan_path)]
    return [
        OWN_FOLDER_PATTERN,
        *(f"/{folder_path / name}" for page in names for name in (page, name_temporary_page(page, "*"))),
    ]


def list_pages(plan_path: Path) -> tuple[Path, Path]:
    """Return the paths of STATE.md and SUMMARY.md."""
    return plan_path.with_name(name_state_page(plan_path.name)), plan_path.with_name(name_summary_page(plan_path.name))
