"""What passes between the engine and an agent: an occasion, a conversation, turns, tool calls, and how it ended.

An agent is a backend in a role. The engine owns the conversation; a backend adds one turn to it, and does nothing else.

What is said on the bus. Every word between the engine, the roles and the people is an envelope.

What was seen of a work tree while an agent works in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter

from proofstone.common.models import ChangeKind, Contract, Usage


class Occasion(Contract):
    """Which dispatch of a run this is. Every word of it is the engine's; scripts match on it."""

    run_id: str
    role: str
    step: str = ""
    """Where in the run: `task-03/a2`. With the role and the instance it names the dispatch."""
    task: str | None = None
    task_name: str = ""
    attempt: int = 1
    focus: str | None = None
    """Of one of several agents of the same role: `security`."""
    iteration: int | None = None
    round: int | None = None
    dispatch: int = 1
    """2: the engine has asked again after a failure that may have been chance."""

    @property
    def id(self) -> str:
        """Of the dispatch within its run: the same after a crash."""
        parts = (self.step, self.role, self.focus, f"d{self.dispatch}" if self.dispatch > 1 else "")
        return "/".join(part for part in parts if part)

    @property
    def agent(self) -> str:
        """How the agent is called on the bus."""
        return f"{self.role}:{self.focus}" if self.focus else self.role


class ToolSpec(Contract):
    """A tool, as an agent is told of it."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]
    """JSON Schema of its arguments."""


class ToolCall(Contract):
    id: str
    """As the agent's model named it; it means something only within its conversation."""
    name: str
    arguments: Mapping[str, JsonValue] = {}
    malformed: str = ""
    """Why the arguments could not be read; they are empty then."""


class RefusalRule(StrEnum):
    """Why a tool call was not carried out."""

    UNLISTED = "unlisted"
    """The role does not have the tool, or there is none of that name."""
    ARGUMENTS = "arguments"
    OUTSIDE = "outside"
    """The path leads out of what the agent may see."""
    SCOPE = "scope"
    """The path is not one that the task may change."""
    SECRET = "secret"  # noqa: S105  the word for it
    BUDGET = "budget"


class ToolResult(Contract):
    """What came of a tool call, as the agent is shown it. An error of the tool is a result like any other."""

    call_id: str
    name: str
    text: str
    ok: bool = True
    refused: RefusalRule | None = None
    repeated: bool = False
    """The same call in a row: it was answered from the one before."""


class Turn(Contract):
    """What a backend added to the conversation."""

    kind: Literal["turn"] = "turn"
    text: str = ""
    """What it said. Its answer, if it called no tool."""
    answer: Mapping[str, JsonValue] | None = None
    """Its answer, if it gave one in a form of its own beside the text (a call of the answer tool)."""
    calls: tuple[ToolCall, ...] = ()
    cut: bool = False
    """The provider ended it at the limit of output tokens."""
    thoughts: str = ""
    """Reasoning that the model shows. For people; never evidence and never shown to another agent."""
    model: str = ""
    """Who answered, as they call themselves: `openai:gpt-5`."""
    usage: Usage = Usage()
    acted: bool = False
    """It has changed its work tree itself, behind the runtime's back, as a program would: only it can do so again."""
    provider_state: JsonValue = None
    """What the provider wants to have back with the conversation (signatures of thoughts). Only the backend that wrote
    it reads it."""


class ActivityKind(StrEnum):
    """What a program can be seen doing by itself within a turn."""

    SAID = "said"
    THOUGHT = "thought"
    TOOL = "tool"
    """It uses a tool of its own."""
    RESULT = "result"
    """What came of that."""
    REFUSED = "refused"
    """Something it wanted to do was not allowed: by the engine, the sandbox or a limit of the program's own."""
    NOTE = "note"
    """Anything else that is worth a line: a retry, a warning."""


class Activity(Contract):
    """One thing that a program with tools of its own did within a turn, as it says itself: a claim, but a refusal by
    the engine."""

    kind: ActivityKind
    name: str = ""
    """Of the tool."""
    text: str = ""
    paths: tuple[str, ...] = ()
    """Files that it concerns, from the root of the work tree where they lie in it."""
    ok: bool | None = None
    """Of a result: whether the tool succeeded."""


class Returned(Contract):
    """The results of the tools that the turn before called."""

    kind: Literal["returned"] = "returned"
    results: tuple[ToolResult, ...]


class Told(Contract):
    """Words of the engine's to the agent: the request at the beginning, a repair later, or an aside in between."""

    kind: Literal["told"] = "told"
    text: str
    repair: int = 0
    """1 or 2: the answer before this was not of the schema, and this shows why."""
    asked: str = ""
    """What an aside asks for, such as `impact` or `RV-2`: what is answered next is the answer to that."""
    resumes: bool = False
    """The end of an aside: the work goes on where it was."""


Entry = Annotated[Told | Turn | Returned, Field(discriminator="kind")]
ENTRIES: TypeAdapter[Entry] = TypeAdapter(Entry)


class Conversation(Contract):
    """Everything that an agent knows. What never changes comes first, so that providers can cache it."""

    occasion: Occasion
    instructions: str
    """The role's prompt: the same for every dispatch of the role."""
    tools: tuple[ToolSpec, ...]
    output_schema: Mapping[str, JsonValue]
    """JSON Schema of the answer."""
    entries: tuple[Entry, ...]

    @property
    def repairs(self) -> int:
        """How many answers were not of the schema so far."""
        return max((entry.repair for entry in self.entries if isinstance(entry, Told)), default=0)

    @property
    def asked(self) -> str:
        """What an aside asks for that is not answered yet; empty: the agent is at its work."""
        told = next((entry for entry in reversed(self.entries) if isinstance(entry, Told)), None)
        return told.asked if told else ""

    @property
    def turns_since_told(self) -> int:
        """Turns since the engine last spoke: since the request, the last repair, or the aside that is open. An aside
        that is over does not count: the work goes on as if it had not been."""
        at_work = in_aside = 0
        aside = False
        for entry in self.entries:
            if isinstance(entry, Turn):
                at_work, in_aside = (at_work, in_aside + 1) if aside else (at_work + 1, in_aside)
            elif isinstance(entry, Told):
                aside, in_aside = bool(entry.asked), 0
                at_work = at_work if entry.asked or entry.resumes else 0
        return in_aside if aside else at_work

    def plus(self, *entries: Entry) -> Conversation:
        return self.model_copy(update={"entries": (*self.entries, *entries)})


class FaultKind(StrEnum):
    """How a dispatch can end without an answer. `agents.rules.budget` says what follows from each."""

    MALFORMED = "malformed"
    """Its answer was not of the schema, after the repairs."""
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    """The program or script behind it broke down."""
    UNAVAILABLE = "unavailable"
    """The provider cannot be reached, is overloaded, or limits the rate."""
    DENIED = "denied"
    """The provider does not let us: key, permission, unknown model."""
    REJECTED = "rejected"
    """The provider does not take the request: too long for the model, not allowed by its schema."""
    FILTERED = "filtered"
    """The provider's safety filter withheld the answer."""
    FAILED = "failed"
    """The agent says itself that it cannot."""
    LOOPING = "looping"
    """It made the same call three times in a row."""
    DRIFTED = "drifted"
    """It was stopped, because it did not understand its task or had left it."""
    BUDGET = "budget"
    CANCELLED = "cancelled"


class Fault(Contract):
    kind: FaultKind
    why: str
    """For a person: what happened and what would put it right."""
    retry_after: float | None = None
    """Seconds that the provider asks us to wait."""
    usage: Usage = Usage()
    """What the call that ended in it has used all the same."""
    acted: bool = False
    """As of a turn: a program that ends in a fault may have changed its work tree before."""


class CompletionStatus(StrEnum):
    DONE = "DONE"
    NEEDS_REVISION = "NEEDS_REVISION"
    ERROR = "ERROR"


class Completion(Contract):
    """How an agent says it has ended. Data about the agent."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    status: CompletionStatus
    summary: str = Field(max_length=200)
    severity: Literal["blocker", "critical", "major", "minor"] | None = None
    findings_count: int = Field(default=0, ge=0)
    risk_level: Literal["🟢", "🟡", "🔴"] | None = None
    output_paths: tuple[str, ...] = ()
    evidence_summary: str = ""


class Output(Contract):
    """What every answer of a pipeline role holds beside its payload. Fields that we do not know are kept."""

    model_config = ConfigDict(frozen=True, extra="allow")

    completion: Completion


class Dispatched(Contract):
    """What came of one dispatch."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    occasion: Occasion
    output: Contract | None
    """Of the role's output contract; None: see `fault`."""
    fault: Fault | None = None
    completion: Completion
    usage: Usage = Usage()
    model: str = ""
    turns: int = 0
    tool_calls: int = 0
    refusals: int = 0
    repairs: int = 0
    started_at: str
    completed_at: str


class OutputHeader(Contract):
    """What the engine writes around an answer that it keeps or hands on."""

    agent: str
    instance: str
    step: str
    started_at: str
    completed_at: str
    schema_version: str
    payload: Mapping[str, JsonValue]


class Envelope(Contract):
    """One message, as it is shown and exported. The engine gives id and time."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    id: str
    timestamp: str
    sender: str = Field(alias="from")
    recipient: str = Field(alias="to")
    type: str
    payload: Mapping[str, JsonValue] = {}
    run_id: str
    seq: int
    """Its place in the ledger: the order of the bus."""


class ChangedSignature(Contract):
    """An interface that is not what it was, as the engine sees it."""

    path: str
    symbol: str
    public: bool
    planned: bool
    """The plan, or what was declared before the work, says so."""


class WorkedFile(Contract):
    """A file that really changed, or is to."""

    path: str
    kind: ChangeKind = ChangeKind.MODIFIED
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class Worked(Contract):
    """What was seen of a work tree at one moment, compared with the base of the attempt."""

    files: tuple[WorkedFile, ...] = ()
    signatures: tuple[ChangedSignature, ...] = ()
    unseen: tuple[str, ...] = ()
    """Changed files whose signatures cannot be compared."""

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.files)
