"""Claims that the engine can look up itself, and what it saw. A finding is verified when what it rests on holds.

The records of the protocol, field by field. Ids are the engine's; nobody else writes these.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from proofstone.agents.roles.models.payload import Part
from proofstone.common.models import Contract


class ClaimKind(StrEnum):
    FILE = "file"
    """`path` is there."""
    SYMBOL = "symbol"
    """`name` is defined, in `path` if one is given."""
    TEXT = "text"
    """`path` holds `text`."""
    COMMIT = "commit"
    """The message or the change of commit `revision` holds `text`."""
    MEMORY = "memory"
    """The memory has the entry `entry`, and `text` is in it."""
    WEB = "web"
    """A web tool of this very conversation has shown `url`, and `text` in it."""


NEEDED = {
    ClaimKind.FILE: ("path",),
    ClaimKind.SYMBOL: ("name",),
    ClaimKind.TEXT: ("path", "text"),
    ClaimKind.COMMIT: ("revision", "text"),
    ClaimKind.MEMORY: ("entry", "text"),
    ClaimKind.WEB: ("url", "text"),
}


class RepositoryClaim(Part):
    """Something that the engine looks up before it believes it. A false one is held against whoever made it."""

    kind: ClaimKind = Field(
        description="file: `path` is there; symbol: `name` is defined (in `path`); text: `path` holds `text`; commit: "
        "`revision` says or changes `text`; memory: `entry` holds `text`; web: `url`, which you have seen, says `text`."
    )
    path: str = Field(default="", max_length=1000, description="From the project's root.")
    name: str = Field(default="", max_length=200, description="`parse`, or `Parser.parse`.")
    revision: str = Field(default="", max_length=200)
    entry: str = Field(default="", max_length=200)
    url: str = Field(default="", max_length=2000)
    text: str = Field(default="", max_length=2000, description="Word for word, at least 8 characters.")
    absent: bool = Field(default=False, description="The opposite: it is not there, not defined, does not hold it.")

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> RepositoryClaim:
        missing = [name for name in NEEDED[self.kind] if not getattr(self, name).strip()]
        if missing:
            raise ValueError(f"a claim of kind {self.kind} needs {', '.join(missing)}")
        return self


class LookedUp(Contract):
    """What the engine saw when it looked."""

    claim: RepositoryClaim
    holds: bool | None
    """None: it cannot be looked up here."""
    saw: str
    """In words, for a person: `src/app.py is there`."""


ChallengeId = Annotated[str, Field(pattern=r"^C[1-9][0-9]*$")]
UnknownId = Annotated[str, Field(pattern=r"^U[1-9][0-9]*$")]
SurfacedId = Annotated[str, Field(pattern=r"^S[1-9][0-9]*$")]
RiskId = Annotated[str, Field(pattern=r"^P[1-9][0-9]*$")]


def _null(written: object) -> object:
    """`null` as a word means none."""
    return None if written == "null" else written


Generated = Annotated[ChallengeId | None, BeforeValidator(_null)]


class Origin(StrEnum):
    CHALLENGER = "challenger"
    DOMAIN_EXPERT = "domain-expert"
    DEVILS_ADVOCATE = "devils-advocate"
    SURFACED = "surfaced"
    PROBED = "probed"
    RULES = "rules"
    """Found by code, without any model."""


class PlanSeverity(StrEnum):
    BLOCKING = "BLOCKING"
    SIGNIFICANT = "SIGNIFICANT"
    MINOR = "MINOR"

    @classmethod
    def _missing_(cls, value: object) -> PlanSeverity | None:
        """The words of the rest of the runtime are read too; `critical` has none of its own here."""
        return _AS_SEVERITY.get(value.lower()) if isinstance(value, str) else None

    @property
    def rank(self) -> int:
        """The gravest first."""
        return tuple(PlanSeverity).index(self)


_AS_SEVERITY = {
    "blocking": PlanSeverity.BLOCKING,
    "blocker": PlanSeverity.BLOCKING,
    "critical": PlanSeverity.BLOCKING,
    "significant": PlanSeverity.SIGNIFICANT,
    "major": PlanSeverity.SIGNIFICANT,
    "minor": PlanSeverity.MINOR,
}


class ChallengeConfidence(StrEnum):
    HIGH = "HIGH"
    MED = "MED"
    LOW = "LOW"

    @property
    def rank(self) -> int:
        """The surest first."""
        return tuple(ChallengeConfidence).index(self)


class ChallengeStatus(StrEnum):
    OPEN = "OPEN"
    RESOLVED = "RESOLVED"
    UNRESOLVED = "UNRESOLVED"
    DEFERRED = "DEFERRED"
    WITHDRAWN = "WITHDRAWN"
    DEFERRED_SURFACED = "DEFERRED_SURFACED"
    """There was no room for it: it stands in the report and was not discussed."""

    @property
    def is_open(self) -> bool:
        """Whether it still stands against the plan."""
        return self in (ChallengeStatus.OPEN, ChallengeStatus.UNRESOLVED)

    @property
    def is_put_off(self) -> bool:
        """Whether it was left for later, for whatever reason."""
        return self in (ChallengeStatus.DEFERRED, ChallengeStatus.DEFERRED_SURFACED)


class Challenge(Contract):
    id: ChallengeId
    origin: Origin
    claim: str
    concern: str
    failure_scenario: str
    alternative: str
    severity: PlanSeverity
    confidence: ChallengeConfidence
    status: ChallengeStatus
    resolution: str = ""
    mitigation: str = ""
    """What would keep it from happening, to be taken into the plan."""
    iteration_introduced: int = Field(ge=1)


class UnknownType(StrEnum):
    FILE_MISSING = "FILE_MISSING"
    API_BEHAVIOR = "API_BEHAVIOR"
    PRIOR_DECISION = "PRIOR_DECISION"
    STALE_KNOWLEDGE = "STALE_KNOWLEDGE"
    INTEGRATION_UNKNOWN = "INTEGRATION_UNKNOWN"


class UnknownResolution(StrEnum):
    CONFIRMED = "CONFIRMED"
    REFUTED = "REFUTED"
    UNRESOLVABLE = "UNRESOLVABLE"
    PARTIALLY_RESOLVED = "PARTIALLY_RESOLVED"


class Unknown(Contract):
    id: UnknownId
    description: str
    type: UnknownType
    affects_challenge: ChallengeId
    suggested_query: str
    resolution: UnknownResolution
    finding: str
    """`[VERIFIED: source | finding | impact]` where the engine saw for itself what it rests on; its source is then what
    was seen."""


class SurfacedSource(StrEnum):
    MEMORY = "memory"
    CODEBASE = "codebase"
    CLAUDE_MD = "claude_md"
    """The project's instruction files, whatever they are called."""
    GIT_HISTORY = "git_history"


class SurfacedImpact(StrEnum):
    CHANGES_NEEDED = "changes_needed"
    CONFIRMS_APPROACH = "confirms_approach"
    CONTRADICTS_PLAN = "contradicts_plan"


class SurfacedContext(Contract):
    id: SurfacedId
    source: SurfacedSource
    location: str
    relevance: str
    impact: SurfacedImpact
    generates_challenge: Generated = None


class ProbedRisk(Contract):
    id: RiskId
    risk: str
    trigger: str
    cascade: str
    probability: Literal["LOW", "MED"]
    severity: PlanSeverity
    generates_challenge: Generated = None


class PlanQuality(StrEnum):
    RICH = "RICH"
    ADEQUATE = "ADEQUATE"
    THIN = "THIN"


class TeamMode(StrEnum):
    BASE = "base"
    SCALED = "scaled"


class ConvergenceStatus(StrEnum):
    CONTINUE = "CONTINUE"
    CONVERGED = "CONVERGED"
    BLOCKED = "BLOCKED"
    FORCED_EXIT = "FORCED_EXIT"


class ChallengeLine(Contract):
    id: ChallengeId
    status: ChallengeStatus
    severity: PlanSeverity


class UnknownLine(Contract):
    id: UnknownId
    resolution: UnknownResolution


class SurfacedLine(Contract):
    id: SurfacedId
    impact: SurfacedImpact
    generates_challenge: Generated = None


class RiskLine(Contract):
    id: RiskId
    generates_challenge: Generated = None


class Convergence(Contract):
    blocking_open: int = Field(ge=0)
    significant_open: int = Field(ge=0)
    status: ConvergenceStatus


class IterationState(Contract):
    iteration: int = Field(ge=1, le=3)
    plan_path: str
    plan_quality: PlanQuality
    team_mode: TeamMode
    challenges: tuple[ChallengeLine, ...] = ()
    unknowns: tuple[UnknownLine, ...] = ()
    surfaced_contexts: tuple[SurfacedLine, ...] = ()
    probed_risks: tuple[RiskLine, ...] = ()
    convergence: Convergence
    user_responses: tuple[str, ...] = ()
    synthesizer_directives: tuple[str, ...] = ()
    quality_score: int | None = Field(default=None, ge=1, le=10)
