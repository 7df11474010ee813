"""The weaker levels, for machines without namespaces: Landlock with seccomp, or only limits.

The checkout cannot be at the repository's path, so each check gets its own copy, and path variables tell it to look for
the project's modules there. The report shows whether it did. An executor works in its work tree itself.
"""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofstone.common.models import Assurance
from proofstone.machine.files import remove_folder, write_alternates
from proofstone.sandbox.bubblewrap import PROBES_FOLDER, copy_files, find_hidden_files
from proofstone.sandbox.job import SANDBOX_VARIABLE, OutputSink, SandboxJob, SandboxPaths, SandboxResult, SandboxView
from proofstone.sandbox.limits import ControlGroup, limit_resources
from proofstone.sandbox.mounts import link_dependencies, link_home, list_shared
from proofstone.sandbox.process import run_launcher
from proofstone.sandbox.seccomp import build_filter

_DEVICES = (
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/shm",
    "/dev/pts",
)


@dataclass(frozen=True)
class SupervisedSandbox:
    """A sandbox without namespaces."""

    level: Assurance

    def prepare(self, view: SandboxView, scratch: Path) -> SandboxPaths:
        for name in ("report", "tmp", "home"):
            (scratch / name).mkdir(parents=True)
        root = view.work_tree or self._copy_files(view, view.copy_at or scratch / "copy")
        sources = tuple(path for path in (root / "src", root) if path.is_dir())
        handed = tuple(bind.source for bind in view.engine_binds)
        home = view.own_home.folder if view.own_home else None
        return SandboxPaths(
            root,
            scratch / "report",
            PROBES_FOLDER,
            scratch / "tmp",
            module_path=sources,
            engine_paths=handed,
            home=home,
        )

    def _copy_files(self, view: SandboxView, copy: Path) -> Path:
        if copy.is_symlink():
            copy.unlink()
        elif copy.exists():
            remove_folder(copy)
        copy_files(view, copy)
        for folder in view.dependencies:
            if folder.is_relative_to(view.root):
                at = copy / folder.relative_to(view.root)
                at.parent.mkdir(parents=True, exist_ok=True)
                if not at.exists():
                    at.symlink_to(folder)
        for bind in view.includes:
            at = copy / bind.at.relative_to(view.root)
            at.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(bind.source, at)
        if view.git:
            shutil.copytree(view.git, copy / ".git")
            write_alternates(copy / ".git", [bind.source for bind in view.objects])
        for name in find_hidden_files(copy, view):
            (copy / name).unlink()  # it may be read-only
            (copy / name).touch()
        return copy

    def find_written(self, job: SandboxJob) -> Path:
        return job.paths.root

    def run(self, job: SandboxJob, sink: OutputSink) -> SandboxResult:
        with (
            limit_resources(job.limits.memory_mb, job.limits.processes) as group,
            link_dependencies(job.view) if job.view.work_tree else nullcontext(),
            link_home(job.view.own_home) if job.view.own_home else nullcontext(),
        ):
            return run_launcher(job, self._build_spec(job, group), group, sink)

    def _build_spec(self, job: SandboxJob, group: ControlGroup | None) -> dict[str, Any]:
        uses_landlock = self.level is Assurance.LANDLOCK
        writable = [str(job.paths.root), *(str(job.scratch / name) for name in ("report", "tmp", "home"))]
        writable += [str(bind.source) for bind in job.view.engine_binds if bind.writable]
        own_home = job.view.own_home
        if own_home:
            writable += [str(own_home.folder), *(str(source) for source, _ in list_shared(own_home))]
        seccomp_filter = (
            build_filter(job.limits.allowed, without_sockets=not _may_connect(job.view)) if uses_landlock else b""
        )
        folder_variables = {"HOME": str(job.paths.home or job.scratch / "home"), "TMPDIR": str(job.paths.temporary)}
        bytecode_variables = {"PYTHONPYCACHEPREFIX": str(job.paths.temporary / "pycache")}
        return {
            "groups": group.procs_files if group else (),
            "confine": True,
            "layers": [],
            "landlock": uses_landlock,
            "filter": seccomp_filter,
            "writable": [*writable, *(device for device in _DEVICES if Path(device).exists())],
            "argv": list(job.argv),
            "cwd": str(job.cwd),
            "env": {**job.env, **folder_variables, **bytecode_variables, SANDBOX_VARIABLE: self.level.value},
        }


def _may_connect(view: SandboxView) -> bool:
    """Return whether sockets are allowed. Without a network namespace, hosts cannot be told apart: all are allowed, or
    none.
    """
    return view.network if view.hosts is None else bool(view.hosts)
