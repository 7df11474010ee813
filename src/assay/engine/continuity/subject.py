"""An agent's task, as far as it can be asked about, and whoever answers for the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from assay.adapters.executors.site import Sight, Unchanged
from assay.adapters.tools import Ground
from assay.adapters.tools.ground import Deadline
from assay.adapters.tools.interfaces import look_up
from assay.adapters.tools.tree import Tree
from assay.contracts.reverify.ladder import LaterTask
from assay.contracts.reverify.understanding import Tier
from assay.core.gate.amending import Amendment
from assay.core.reverify.evidence import Facts, Wanted
from assay.core.reverify.watched import Watched
from assay.engine.continuity.board import Board
from assay.engine.continuity.judging import Judge

_SECONDS = 20.0
"""That looking up one analysis may take."""


@dataclass(frozen=True)
class Subject:
    watched: Watched
    tier: Tier
    ground: Ground
    """Where what it says is looked up."""
    board: Board
    knows: int
    """The version of the context that its task holds already."""
    judge: Judge
    answers: Callable[[str], bool]
    """Whether it has an answer to what it may be asked."""
    exempt: str = ""
    """Why it does not pass the understanding gate; empty: it does."""
    id: str = ""
    """Of its task."""
    name: str = ""
    number: int = 0
    total: int = 0
    files: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    upstream: tuple[str, ...] = ()
    """What its task rests on."""
    later: tuple[LaterTask, ...] = ()
    """Tasks that rest on this one."""
    sight: Sight = field(default_factory=Unchanged)
    amend: Callable[[Amendment], str] = lambda _: "its task cannot be changed"
    """Adds to the task; why that cannot be, if it cannot."""

    def facts(self, wanted: Wanted) -> Facts:
        return look_up(Tree(self.ground), wanted, Deadline(_SECONDS, self.ground.cancel))

    def is_there(self, path: str) -> bool:
        """Also where it cannot be told: what is there is of the higher risk."""
        return self.facts(Wanted((path,), ())).paths.get(path) is not False
