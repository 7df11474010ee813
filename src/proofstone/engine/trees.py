"""A tree under check: its files, checked out when first needed, and the view that its checks get of the world."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

from proofstone.adapters.bytecode import bytecode_layer
from proofstone.adapters.environment import Environment
from proofstone.adapters.git.checkout import check_out, write_minimal_git
from proofstone.adapters.git.store import Store
from proofstone.adapters.ledger.location import folders_elsewhere
from proofstone.adapters.sandbox.job import Bind, View
from proofstone.contracts.verdict import Phase

_OBJECTS = Path("/run/proofstone/objects")


@dataclass
class TreeUnderCheck:
    """One of the two trees of a run. Several checks of it run at once and share one checkout."""

    phase: Phase
    tree: str
    commit: str
    """The base commit: HEAD of the `.git` that checks see."""
    folder: Path
    store: Store
    environment: Environment
    state: Path
    """Proofstone's own home, which no check may see."""
    changed: tuple[str, ...] = ()
    """The changed files that this tree has."""
    under: tuple[Path, ...] = ()
    """What the set-up commands wrote."""
    is_derived: bool = False
    """Made from a tree whose objects are known to be sound, and from the engine's own."""
    built: dict[str, Path] = field(default_factory=dict)
    """What builds of this tree wrote, by check."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _view: View | None = None

    def view(self, needs: tuple[str, ...] = ()) -> View:
        """What a check sees that needs these builds."""
        with self._lock:
            if self._view is None:
                self._view = self._make()
        over = tuple(self.built[name] for name in needs if name in self.built)
        return replace(self._view, over=over, under=self.under)

    def derived(self, tree: str, folder: Path) -> TreeUnderCheck:
        """A tree made from this one, under check in the same way, with nothing built yet."""
        return replace(self, tree=tree, folder=folder, is_derived=True, built={}, _lock=threading.Lock(), _view=None)

    def _make(self) -> View:
        checkout = check_out(self.store, self.tree, self.folder, verified=not self.is_derived)
        repository, environment = self.store.repository, self.environment
        stores = [self.store.git_dir / "objects", *repository.object_dirs]
        objects = tuple(Bind(path, _OBJECTS / str(number)) for number, path in enumerate(stores))
        git = write_minimal_git(
            self.store, checkout, self.commit, self.folder / "dot-git", [str(bind.at) for bind in objects]
        )
        return View(
            root=repository.root,
            files=checkout.files,
            git=git,
            objects=objects,
            home=environment.home,
            dependencies=environment.dependencies,
            bytecode=self._bytecode(),
            includes=environment.includes,
            masked=(self.state, *folders_elsewhere(self.state), *environment.masked),
            visible=environment.visible,
            sockets=tuple(Path(path) for path in environment.settings.sockets),
            network=environment.settings.network,
        )

    def _bytecode(self) -> dict[Path, Path]:
        cache = self.state / "cache" / "bytecode"
        layers = {folder: bytecode_layer(folder, cache, self.store.repairs) for folder in self.environment.dependencies}
        return {folder: layer for folder, layer in layers.items() if layer is not None}
