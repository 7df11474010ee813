"""What is checked: the frozen tree, its changes, the checks that its files name, and their environment."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from proofstone.check.context import CheckRequest, RunContext
from proofstone.check.discovery import Discovery, build_load_checks, discover
from proofstone.check.ecosystems.setup_commands import find_setup_commands
from proofstone.check.environment import CheckEnvironment, list_package_folders
from proofstone.check.execution import select_changed_files
from proofstone.check.held_out import build_held_out_specs
from proofstone.check.inspection import ChangedFile, read_changed_files
from proofstone.check.models import CheckKind, CheckSpec
from proofstone.check.oracle import Oracle
from proofstone.check.rules import outcome as outcome_rules
from proofstone.check.rules.protected import find_roles
from proofstone.check.setup import is_manifest
from proofstone.common.globs import find_undeclared
from proofstone.common.models import ChangeKind
from proofstone.git.checkout import restore_paths
from proofstone.git.objects import BlobReader, list_submodules, list_tree_files, open_blob_reader
from proofstone.git.program import decode_path
from proofstone.git.snapshot import Snapshot, find_renames, take_snapshot


class CheckSubject:
    """The change under check. Every property is computed once, on first use."""

    def __init__(self, context: RunContext, request: CheckRequest) -> None:
        self.context = context
        self.request = request
        self.notes: list[str] = []

    @cached_property
    def frozen_snapshot(self) -> Snapshot:
        """The work tree as it was found."""
        return self.freeze()

    def freeze(self) -> Snapshot:
        """Take a snapshot of the work tree, or return the tree of the request."""
        if self.request.tree is not None:
            return self.request.tree
        return take_snapshot(self.context.store, self.context.base_tree, staged=self.request.staged)

    @cached_property
    def snapshot(self) -> Snapshot:
        """The tree to check: the frozen tree, with undeclared protected files as they are in the base."""
        reverted = {
            entry.path for entry in self.frozen_snapshot.entries if decode_path(entry.path) in self.reverted_paths
        }
        return restore_paths(self.context.store, self.frozen_snapshot, reverted) if reverted else self.frozen_snapshot

    @cached_property
    def reverted_paths(self) -> frozenset[str]:
        """Protected files that the change touches and that `--files` does not declare."""
        if not self.request.files:
            return frozenset()
        touched = [path.path for path in self.frozen_snapshot.change.paths]
        return frozenset(path for path in find_undeclared(touched, self.request.files) if find_roles(path))

    @cached_property
    def files(self) -> list[ChangedFile]:
        """The changed files with their content."""
        with open_blob_reader(self.context.store.git()) as blobs:
            return read_changed_files(self.snapshot, blobs)

    @cached_property
    def files_by_content(self) -> list[ChangedFile]:
        """The changed files, where a moved file is compared with its old content, so that its lines do not count as
        new."""
        old = {file.path: file.old for file in self.files}
        old_paths = {new: before for before, new in self.renames.items()}
        return [
            replace(file, old=old[old_paths[file.path]]) if old_paths.get(file.path) in old else file
            for file in self.files
        ]

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Read files of the tree under check that exist and are not too large."""
        names = {decode_path(path): blob for path, blob in self.tree_files[1].items()}
        with open_blob_reader(self.context.store.git()) as blobs:
            contents = {path: blobs.read(names[path]) for path in paths if path in names}
        return {path: content for path, content in contents.items() if content is not None}

    def read_base(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Read files of the base that exist and are not too large."""
        names = {decode_path(path): blob for path, blob in self.tree_files[0].items()}
        with open_blob_reader(self.context.store.git()) as blobs:
            contents = {path: blobs.read(names[path]) for path in paths if path in names}
        return {path: content for path, content in contents.items() if content is not None}

    @cached_property
    def oracle(self) -> Oracle:
        """What decides the expectations of the base's tests, among the files that the change touches."""
        commands = (*self.context.settings.check.verify, *self.request.verify)
        paths = frozenset(map(decode_path, self.tree_files[0]))
        return Oracle(self.files, paths, self.read_base, commands)

    @cached_property
    def tree_files(self) -> tuple[dict[bytes, str], dict[bytes, str]]:
        """All files of the base and of the change, as path → blob."""
        git = self.context.store.git()
        after = list_tree_files(git, self.snapshot.tree)
        return (after if self.snapshot.change.is_empty else list_tree_files(git, self.snapshot.base)), after

    @cached_property
    def discoveries(self) -> tuple[Discovery, Discovery]:
        """The checks that the files of the base, and those of the change, name."""
        before, after = self.tree_files
        with open_blob_reader(self.context.store.git()) as blobs:
            now = _discover_checks(after, blobs)
            return (now if self.snapshot.change.is_empty else _discover_checks(before, blobs)), now

    def list_base_setup(self) -> list[str]:
        """Return the set-up commands that the base's own files ask for."""
        files = {decode_path(path): blob for path, blob in self.tree_files[0].items()}
        with open_blob_reader(self.context.store.git()) as blobs:
            commands = find_setup_commands(
                list(files), lambda path: blobs.read(files[path]) if path in files else None, self.discoveries[0].specs
            )
        return [command.command for command in commands]

    @property
    def dropped_specs(self) -> list[CheckSpec]:
        """Linters and type checkers that the base's files name and the change's do not."""
        base, now = self.discoveries
        names = {spec.name for spec in now.specs}
        return [spec for spec in base.specs if spec.kind.reports_diagnostics and spec.name not in names]

    @cached_property
    def specs(self) -> tuple[CheckSpec, ...]:
        """The checks to run: those discovered on either tree, and the user's own."""
        base, now = self.discoveries
        check = self.context.settings.check
        specs = outcome_rules.choose_specs(
            outcome_rules.combine_specs(now.specs, base.specs),
            (*check.verify, *self.request.verify),
            disable=check.disable,
            optional=check.optional,
        )
        if self.request.expectations_only:
            specs = tuple(spec for spec in specs if spec.kind.executes_change or spec.kind is CheckKind.BUILD)
        present = [os.fsdecode(entry.path) for entry in self.snapshot.entries if entry.kind is not ChangeKind.DELETED]
        specs = tuple(spec for spec in specs if "{changed}" not in spec.argv or select_changed_files(spec, present))
        if not outcome_rules.has_runtime_check(specs):
            specs = (*specs, *build_load_checks(present))
        return (*specs, *build_held_out_specs(self.request.heldout))

    @cached_property
    def renames(self) -> dict[str, str]:
        """Files that moved, old path → new path."""
        moved = find_renames(self.context.store.git(), self.snapshot.base, self.snapshot.tree)
        return {decode_path(old): decode_path(new) for old, new in moved.items()}

    @cached_property
    def empty_submodules(self) -> tuple[str, ...]:
        """Submodules that are not initialised in the work tree. Checks see them as empty folders, as the user does."""
        root = self.context.repository.root
        links = list_submodules(self.context.store.git(), self.snapshot.tree)
        return tuple(decode_path(path) for path in links if not (root / os.fsdecode(path) / ".git").exists())

    @cached_property
    def environment(self) -> CheckEnvironment:
        paths = {decode_path(path) for path in self.tree_files[1]}
        folders = {"/".join(path.split("/")[:depth]) for path in paths for depth in range(1, path.count("/") + 1)}
        return CheckEnvironment(
            root=self.context.repository.root,
            home=self.context.user_home,
            settings=self.context.settings.environment,
            packages=list_package_folders((*(spec.cwd for spec in self.specs), *_manifest_folders(paths))),
            tracked=frozenset(folders),
        )


def _manifest_folders(paths: Iterable[str]) -> list[str]:
    """Return every folder with a manifest, because dependencies may be installed next to it."""
    return sorted({posixpath.dirname(path) or "." for path in paths if is_manifest(path)})


def _discover_checks(files: dict[bytes, str], blobs: BlobReader) -> Discovery:
    """Return the checks that the files of a tree name."""
    names = {decode_path(path): blob for path, blob in files.items()}
    return discover(list(names), lambda path: blobs.read(names[path]) if path in names else None)
