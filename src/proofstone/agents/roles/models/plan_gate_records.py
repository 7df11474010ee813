"""The records of the plan gate: claims, challenges, unknowns, surfaced context, risks and the state of an iteration.

The engine writes these records and assigns their ids. It looks up claims itself; a finding is verified if the claims
that it rests on are true.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from proofstone.agents.roles.models.payload import AnswerPart
from proofstone.common.models import FrozenModel


class ClaimKind(StrEnum):
    FILE = "file"
    """`path` exists."""
    SYMBOL = "symbol"
    """`name` is defined, in `path` if one is given."""
    TEXT = "text"
    """`path` contains `text`."""
    COMMIT = "commit"
    """The message or the diff of commit `revision` contains `text`."""
    MEMORY = "memory"
    """The memory has the entry `entry`, which contains `text`."""
    WEB = "web"
    """A web tool has shown `url`, containing `text`, in this conversation."""


REQUIRED_CLAIM_FIELDS = {
    ClaimKind.FILE: ("path",),
    ClaimKind.SYMBOL: ("name",),
    ClaimKind.TEXT: ("path", "text"),
    ClaimKind.COMMIT: ("revision", "text"),
    ClaimKind.MEMORY: ("entry", "text"),
    ClaimKind.WEB: ("url", "text"),
}


class RepositoryClaim(AnswerPart):
    """A claim that the engine looks up before it counts. A false claim is reported against its author."""

    kind: ClaimKind = Field(
        description="file: `path` exists; symbol: `name` is defined (in `path`); text: `path` contains `text`; commit: "
        "`revision` says or changes `text`; memory: `entry` contains `text`; web: `url`, which a tool showed you, says "
        "`text`."
    )
    path: str = Field(default="", max_length=1000, description="Relative to the project's root.")
    name: str = Field(default="", max_length=200, description="`parse`, or `Parser.parse`.")
    revision: str = Field(default="", max_length=200)
    entry: str = Field(default="", max_length=200)
    url: str = Field(default="", max_length=2000)
    text: str = Field(default="", max_length=2000, description="Word for word, at least 8 characters.")
    absent: bool = Field(
        default=False,
        description="Claim the opposite: it does not exist, is not defined, or does not contain the text.",
    )

    @model_validator(mode="after")
    def _check_required_fields(self) -> RepositoryClaim:
        missing = [name for name in REQUIRED_CLAIM_FIELDS[self.kind] if not getattr(self, name).strip()]
        if missing:
            raise ValueError(f"a claim of kind {self.kind} needs {', '.join(missing)}")
        return self


class LookupResult(FrozenModel):
    """The result of looking up a claim."""

    claim: RepositoryClaim
    holds: bool | None
    """None if the claim cannot be looked up here."""
    saw: str
    """The result in words for a person, such as `src/app.py is there`."""


ChallengeId = Annotated[str, Field(pattern=r"^C[1-9][0-9]*$")]
UnknownId = Annotated[str, Field(pattern=r"^U[1-9][0-9]*$")]
SurfacedId = Annotated[str, Field(pattern=r"^S[1-9][0-9]*$")]
RiskId = Annotated[str, Field(pattern=r"^P[1-9][0-9]*$")]


def _read_null(value: object) -> object:
    """Read the word `null` as None."""
    return None if value == "null" else value


GeneratedChallengeId = Annotated[ChallengeId | None, BeforeValidator(_read_null)]


class ChallengeOrigin(StrEnum):
    CHALLENGER = "challenger"
    DOMAIN_EXPERT = "domain-expert"
    DEVILS_ADVOCATE = "devils-advocate"
    SURFACED = "surfaced"
    PROBED = "probed"
    RULES = "rules"
    """Found by code, without a model."""


class PlanSeverity(StrEnum):
    BLOCKING = "BLOCKING"
    SIGNIFICANT = "SIGNIFICANT"
    MINOR = "MINOR"

    @classmethod
    def _missing_(cls, value: object) -> PlanSeverity | None:
        """Also accept the severities of the rest of the runtime. `critical` is read as BLOCKING."""
        return _AS_SEVERITY.get(value.lower()) if isinstance(value, str) else None

    @property
    def rank(self) -> int:
        """The rank for sorting, the gravest first."""
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
        """The rank for sorting, the surest first."""
        return tuple(ChallengeConfidence).index(self)


class ChallengeStatus(StrEnum):
    OPEN = "OPEN"
    RESOLVED = "RESOLVED"
    UNRESOLVED = "UNRESOLVED"
    DEFERRED = "DEFERRED"
    WITHDRAWN = "WITHDRAWN"
    DEFERRED_SURFACED = "DEFERRED_SURFACED"
    """There was no room for it in the iteration: it is reported and was not discussed."""

    @property
    def is_open(self) -> bool:
        """Whether the challenge is not settled yet."""
        return self in (ChallengeStatus.OPEN, ChallengeStatus.UNRESOLVED)

    @property
    def is_postponed(self) -> bool:
        """Whether the challenge was postponed, for any reason."""
        return self in (ChallengeStatus.DEFERRED, ChallengeStatus.DEFERRED_SURFACED)


class Challenge(FrozenModel):
    id: ChallengeId
    origin: ChallengeOrigin
    claim: str
    concern: str
    failure_scenario: str
    alternative: str
    severity: PlanSeverity
    confidence: ChallengeConfidence
    status: ChallengeStatus
    resolution: str = ""
    mitigation: str = ""
    """The addition to the plan that would prevent the failure."""
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


class Unknown(FrozenModel):
    id: UnknownId
    description: str
    type: UnknownType
    affects_challenge: ChallengeId
    suggested_query: str
    resolution: UnknownResolution
    finding: str
    """`[VERIFIED: source | finding | impact]` if the engine has checked its evidence; the source is then what the
    engine saw."""


class SurfacedSource(StrEnum):
    MEMORY = "memory"
    CODEBASE = "codebase"
    CLAUDE_MD = "claude_md"
    """The project's instruction files, whatever their names are."""
    GIT_HISTORY = "git_history"


class SurfacedImpact(StrEnum):
    CHANGES_NEEDED = "changes_needed"
    CONFIRMS_APPROACH = "confirms_approach"
    CONTRADICTS_PLAN = "contradicts_plan"


class SurfacedContext(FrozenModel):
    id: SurfacedId
    source: SurfacedSource
    location: str
    relevance: str
    impact: SurfacedImpact
    generates_challenge: GeneratedChallengeId = None


class ProbedRisk(FrozenModel):
    id: RiskId
    risk: str
    trigger: str
    cascade: str
    probability: Literal["LOW", "MED"]
    severity: PlanSeverity
    generates_challenge: GeneratedChallengeId = None


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


class ChallengeLine(FrozenModel):
    id: ChallengeId
    status: ChallengeStatus
    severity: PlanSeverity


class UnknownLine(FrozenModel):
    id: UnknownId
    resolution: UnknownResolution


class SurfacedLine(FrozenModel):
    id: SurfacedId
    impact: SurfacedImpact
    generates_challenge: GeneratedChallengeId = None


class RiskLine(FrozenModel):
    id: RiskId
    generates_challenge: GeneratedChallengeId = None


class Convergence(FrozenModel):
    blocking_open: int = Field(ge=0)
    significant_open: int = Field(ge=0)
    status: ConvergenceStatus


class IterationState(FrozenModel):
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
