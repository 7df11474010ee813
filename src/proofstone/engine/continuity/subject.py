"""An agent's task, as far as it can be asked about, and whoever answers for the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from proofstone.adapters.backends import Backend
from proofstone.adapters.executors.site import Sight, Unchanged
from proofstone.adapters.tools import Ground
from proofstone.adapters.tools.ground import Deadline
from proofstone.adapters.tools.interfaces import look_up
from proofstone.adapters.tools.tree import Tree
from proofstone.config.backends import works_alone
from proofstone.contracts.reverify.ladder import LaterTask
from proofstone.contracts.reverify.understanding import Tier
from proofstone.core.gate.amending import Amendment
from proofstone.core.reverify.attendance import Wanted as Asked
from proofstone.core.reverify.evidence import Facts, Wanted
from proofstone.core.reverify.watched import Watched, why_exempt
from proofstone.engine.continuity.board import Board
from proofstone.engine.continuity.judging import Judge

_SECONDS = 20.0
"""That looking up one analysis may take."""


def why_not_asked(role: str, backend: Backend) -> str:
    """Why an agent is not attended to; empty if it is. A program is started anew for each turn, with all that was said
    before: it can always be told something further. A script is asked what it has an answer to."""
    spec = backend.identity.spec
    kind = spec.partition(":")[0]
    if why := why_exempt(role, kind, takes_prompts=works_alone(spec)):
        return why
    if not any(backend.identity.answers(role, one) for one in Asked):
        return f"not applicable: {kind} has no answer to it"
    return ""


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
