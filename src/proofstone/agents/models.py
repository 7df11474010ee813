"""What passes between the engine and an agent: the key of a dispatch, the conversation, tool calls and the result.

An agent is a backend in a role. The engine owns the conversation; a backend only adds one turn to it. Every message
between the engine, the roles and people is an envelope on the bus. The last models describe the changes in a work tree
while an agent works in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue, field_validator

from proofstone.common.models import ChangeKind, FrozenModel, Usage
from proofstone.common.serialization import serializable


class DispatchKey(FrozenModel):
    """Identifies a dispatch within its run. Only the engine writes these values; scripts match on them."""

    run_id: str
    role: str
    step: str = ""
    """The position in the run, such as `task-03/a2`. With the role and the instance it identifies the dispatch."""
    task: str | None = None
    task_name: str = ""
    attempt: int = 1
    focus: str | None = None
    """The focus of one of several agents of the same role, such as `security`."""
    iteration: int | None = None
    round: int | None = None
    dispatch: int = 1
    """2 if the engine asks again after a failure that may have been a coincidence."""

    @property
    def id(self) -> str:
        """The id of the dispatch within its run. It is the same after a crash."""
        parts = (self.step, self.role, self.focus, f"d{self.dispatch}" if self.dispatch > 1 else "")
        return "/".join(part for part in parts if part)

    @property
    def agent(self) -> str:
        """The name of the agent on the bus."""
        return f"{self.role}:{self.focus}" if self.focus else self.role


class ToolSpec(FrozenModel):
    """The description of a tool for an agent."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]
    """JSON Schema of its arguments."""


class ToolCall(FrozenModel):
    id: str
    """The id that the model chose. It is valid only within its conversation."""
    name: str
    arguments: Mapping[str, JsonValue] = {}
    malformed: str = ""
    """Why the arguments could not be parsed; `arguments` is then empty."""


class RefusalRule(StrEnum):
    """Why a tool call was not carried out."""

    UNLISTED = "unlisted"
    """The role does not have the tool, or the tool does not exist."""
    ARGUMENTS = "arguments"
    OUTSIDE = "outside"
    """The path is outside the files that the agent may see."""
    SCOPE = "scope"
    """The task may not change the path."""
    SECRET = "secret"  # noqa: S105  the word for it
    BUDGET = "budget"


@serializable("conversation.tool_result")
class ToolResult(FrozenModel):
    """The result of a tool call as it is shown to the agent. An error of the tool is a result too."""

    call_id: str
    name: str
    text: str
    ok: bool = True
    refused: RefusalRule | None = None
    repeated: bool = False
    """Whether the call repeated the previous one and was answered with its result."""


@serializable("conversation.turn")
class Turn(FrozenModel):
    """A turn of a backend in the conversation."""

    kind: Literal["turn"] = "turn"
    text: str = ""
    """The text of the turn. It is the answer if no tool was called."""
    answer: Mapping[str, JsonValue] | None = None
    """The answer, if it was given separately from the text, by a call of the answer tool."""
    calls: tuple[ToolCall, ...] = ()
    cut: bool = False
    """Whether the provider cut the turn off at the limit of output tokens."""
    thoughts: str = ""
    """Reasoning that the model shows. It is for people, never counts as evidence and is not shown to other agents."""
    model: str = ""
    """The model that answered, as it names itself: `openai:gpt-5`."""
    usage: Usage = Usage()
    acted: bool = False
    """Whether the agent changed its work tree with its own tools. The runtime cannot replay such changes."""
    provider_state: JsonValue = None
    """Data that the provider needs back with the conversation (signatures of thoughts). Only the backend that wrote
    the data reads it."""


class ActivityKind(StrEnum):
    """The kinds of activity that a program with its own tools reports within a turn."""

    SAID = "said"
    THOUGHT = "thought"
    TOOL = "tool"
    """The program uses a tool of its own."""
    RESULT = "result"
    """The result of a tool of its own."""
    REFUSED = "refused"
    """An action was refused by the engine, the sandbox or a limit of the program itself."""
    NOTE = "note"
    """Anything else worth reporting, such as a retry or a warning."""


class Activity(FrozenModel):
    """One action of a program with its own tools within a turn. It is a claim of the program, except for refusals by
    the engine."""

    kind: ActivityKind
    name: str = ""
    """The name of the tool."""
    text: str = ""
    paths: tuple[str, ...] = ()
    """The files that it concerns, relative to the root of the work tree if they are inside."""
    ok: bool | None = None
    """For a result: whether the tool succeeded."""


class ToolResults(FrozenModel):
    """The results of the tools that the previous turn called."""

    kind: Literal["returned"] = "returned"
    results: tuple[ToolResult, ...]


class EngineMessage(FrozenModel):
    """A message of the engine to the agent: the request, a repair, or an interjection during the work."""

    kind: Literal["told"] = "told"
    text: str
    repair: int = 0
    """1 or 2 if the previous answer did not match the schema and this message says why."""
    asked: str = ""
    """The question of an interjection, such as `impact` or `RV-2`. The next answer is the answer to it."""
    resumes: bool = False
    """Whether this ends an interjection, so that the work continues where it was."""


ConversationEntry = Annotated[EngineMessage | Turn | ToolResults, Field(discriminator="kind")]


EditMode = Literal["tool", "blocks"]
"""How an agent changes files (`agents.rules.edit_blocks`)."""


class Conversation(FrozenModel):
    """Everything that an agent knows. The constant parts come first, so that providers can cache them."""

    occasion: DispatchKey
    instructions: str
    """The role's prompt: the same for every dispatch of the role."""
    tools: tuple[ToolSpec, ...]
    output_schema: Mapping[str, JsonValue]
    """JSON Schema of the answer."""
    entries: tuple[ConversationEntry, ...]
    edits: EditMode = "tool"
    """How the agent changes files: only by tools, or also by blocks in its text."""

    @property
    def repairs(self) -> int:
        """How many answers have not matched the schema so far."""
        return max((entry.repair for entry in self.entries if isinstance(entry, EngineMessage)), default=0)

    @property
    def open_question(self) -> str:
        """The question of the open interjection; empty if the agent is doing its work."""
        message = next((entry for entry in reversed(self.entries) if isinstance(entry, EngineMessage)), None)
        return message.asked if message else ""

    @property
    def turns_since_message(self) -> int:
        """The number of turns since the request, the last repair, or the interjection that is open. An interjection
        that has ended does not count: the work continues as if it had not happened."""
        at_work = in_interjection = 0
        is_interjection = False
        for entry in self.entries:
            if isinstance(entry, Turn):
                at_work, in_interjection = (
                    (at_work, in_interjection + 1) if is_interjection else (at_work + 1, in_interjection)
                )
            elif isinstance(entry, EngineMessage):
                is_interjection, in_interjection = bool(entry.asked), 0
                at_work = at_work if entry.asked or entry.resumes else 0
        return in_interjection if is_interjection else at_work

    def with_entries(self, *entries: ConversationEntry) -> Conversation:
        return self.model_copy(update={"entries": (*self.entries, *entries)})


class FaultKind(StrEnum):
    """How a dispatch can end without an answer. `agents.rules.budget` decides what follows from each."""

    MALFORMED = "malformed"
    """The answer did not match the schema, even after the repairs."""
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    """The program or script of the agent crashed."""
    UNAVAILABLE = "unavailable"
    """The provider cannot be reached, is overloaded, or limits the rate."""
    DENIED = "denied"
    """The provider denies access: wrong key, no permission, unknown model."""
    REJECTED = "rejected"
    """The provider rejects the request: it is too long for the model, or its schema does not allow it."""
    FILTERED = "filtered"
    """The provider's safety filter withheld the answer."""
    FAILED = "failed"
    """The agent reports that it cannot do the work."""
    LOOPING = "looping"
    """The agent made the same call three times in a row."""
    DRIFTED = "drifted"
    """The agent was stopped because it misunderstood its task or drifted away from it."""
    BUDGET = "budget"
    CANCELLED = "cancelled"


@serializable("conversation.fault")
class Fault(FrozenModel):
    kind: FaultKind
    why: str
    """What happened and how to fix it, for a person."""
    retry_after: float | None = None
    """How many seconds the provider asks us to wait."""
    usage: Usage = Usage()
    """The usage of the call that failed."""
    acted: bool = False
    """Whether the program changed its work tree before it failed, as in `Turn.acted`."""


class CompletionStatus(StrEnum):
    DONE = "DONE"
    NEEDS_REVISION = "NEEDS_REVISION"
    ERROR = "ERROR"


class Completion(FrozenModel):
    """How an agent says that its work ended. It is the agent's claim."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    status: CompletionStatus
    summary: str = Field(max_length=200)
    severity: Literal["blocker", "critical", "major", "minor"] | None = None
    findings_count: int = Field(default=0, ge=0)
    risk_level: Literal["🟢", "🟡", "🔴"] | None = None
    output_paths: tuple[str, ...] = ()
    evidence_summary: str = ""

    @field_validator("severity", mode="before")
    @classmethod
    def _lower_case(cls, value: object) -> object:
        """Accept `Major` and `null`, as the protocol writes them."""
        word = value.lower() if isinstance(value, str) else value
        return None if word in ("", "null", "none") else word

    @field_validator("evidence_summary", mode="before")
    @classmethod
    def _write_counts(cls, value: object) -> object:
        """Accept the counts that the protocol writes as an object, as text: nothing is decided by them."""
        if isinstance(value, Mapping):
            return ", ".join(f"{name}: {count}" for name, count in value.items())
        return value


class RoleOutput(FrozenModel):
    """The base of every answer of a pipeline role. Unknown fields are kept."""

    model_config = ConfigDict(frozen=True, extra="allow")

    completion: Completion


class DispatchResult(FrozenModel):
    """The result of one dispatch."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    occasion: DispatchKey
    output: FrozenModel | None
    """The answer, an instance of the role's output model; None if there is a fault."""
    fault: Fault | None = None
    completion: Completion
    usage: Usage = Usage()
    model: str = ""
    turns: int = 0
    tool_calls: int = 0
    refusals: int = 0
    repairs: int = 0
    mended: tuple[str, ...] = ()
    """What the engine has mended in the form of the answer (`agents.rules.mending`)."""
    started_at: str
    completed_at: str

    def describe_spent_tools(self, allowance: int) -> str:
        """Return that the agent ran out of tool calls before it was finished; "" if it did not."""
        if self.tool_calls < allowance or not self.refusals:
            return ""
        return f"{self.occasion.agent} ran out of its {allowance} tool calls and answered with what it knew"


class OutputHeader(FrozenModel):
    """An answer with the header that the engine adds when it stores or forwards the answer."""

    agent: str
    instance: str
    step: str
    started_at: str
    completed_at: str
    schema_version: str
    payload: Mapping[str, JsonValue]


class Envelope(FrozenModel):
    """One message as it is shown and exported. The engine assigns id and time."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    id: str
    timestamp: str
    sender: str = Field(alias="from")
    recipient: str = Field(alias="to")
    type: str
    payload: Mapping[str, JsonValue] = {}
    run_id: str
    seq: int
    """The position in the ledger, which is the order of the bus."""


class SignatureChange(FrozenModel):
    """A signature that changed, as the engine sees it."""

    path: str
    symbol: str
    public: bool
    planned: bool
    """Whether the plan, or a declaration before the work, announced the change."""


class WorkFile(FrozenModel):
    """A file that has changed or is going to change."""

    path: str
    kind: ChangeKind = ChangeKind.MODIFIED
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class WorkSnapshot(FrozenModel):
    """The changes in a work tree at one moment, compared with the base of the attempt."""

    files: tuple[WorkFile, ...] = ()
    signatures: tuple[SignatureChange, ...] = ()
    unseen: tuple[str, ...] = ()
    """Changed files whose signatures cannot be compared."""

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.files)
