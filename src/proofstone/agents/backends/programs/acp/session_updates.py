"""Collect what an agent of the Agent Client Protocol reports while it works: its messages, its tool calls, its usage.

Agents report a call in different ways: some begin with an empty one and fill it in, some report it only when they ask
for permission or when it is over. Each call is noted once, as soon as something is known about it, and its result once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from proofstone.agents.backends.programs.activity import ActivityLog
from proofstone.agents.backends.programs.lines import (
    get_amount,
    get_count,
    get_objects,
    get_text,
    get_value,
    make_relative,
)
from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.models import Activity, ActivityKind
from proofstone.agents.rules.permission import PermissionRequest, build_permission_request
from proofstone.common.models import Usage

MAX_TEXT_CHARS: Final = 8 << 20
"""Characters of a turn that are kept."""
_MOST_CALLS: Final = 10_000
_END_STATES: Final[Mapping[str, bool]] = {"completed": True, "failed": False}

SessionUpdate = Mapping[str, JsonValue]


@dataclass
class ReportedCall:
    """One tool call, as far as it has been reported."""

    kind: str = ""
    tool: str = ""
    title: str = ""
    paths: tuple[str, ...] = ()
    arguments: JsonValue = None
    noted_name: str = ""
    """The name under which it was noted; empty: not yet."""
    has_ended: bool = False

    def add(self, update: SessionUpdate) -> None:
        """Add an update. Fields that it leaves out stay unchanged."""
        kind = get_text(update, "kind")
        self.kind = kind if kind not in ("", "other") else self.kind
        self.tool = _find_tool_name(get_value(update, "_meta")) or self.tool
        self.title = get_text(update, "title") or self.title
        self.paths = tuple(_find_paths(update)) or self.paths
        self.arguments = get_value(update, "rawInput") or self.arguments

    @property
    def wish(self) -> PermissionRequest:
        return build_permission_request(self.kind, self.tool, self.paths, self.arguments)

    @property
    def name(self) -> str:
        return self.tool or self.kind or "tool"


class SessionLog:
    """Collects and records the updates of one session."""

    def __init__(self, site: ExecutionContext, root: str, notes: ActivityLog) -> None:
        """`notes`: those of the turn. They must not show messages, which are shown here piece by piece."""
        self._site = site
        self._root = root
        self._notes = notes
        self._flow = notes.mask.build_flow()
        self._calls: dict[str, ReportedCall] = {}
        self._pieces: list[str] = []
        self._thought: list[str] = []
        self._message = ""
        self._messages_since_call: list[str] = []
        self._messages: list[str] = []
        self._total_size = 0
        self._tokens = Usage(requests=0)
        self._usd: float | None = None
        self.last_refusal = ""

    def read_update(self, update: SessionUpdate) -> None:
        """Read a `session/update`."""
        match get_text(update, "sessionUpdate"):
            case "agent_message_chunk":
                self._add_message(update)
            case "agent_thought_chunk":
                self._end_words()
                self._add(self._thought, get_text(update, "content", "text"))
            case "tool_call" | "tool_call_update":
                self._add_call(update)
            case "usage_update" if get_text(update, "cost", "currency") == "USD":
                self._usd = get_amount(update, "cost", "amount")

    def record_request(self, update: SessionUpdate) -> ReportedCall:
        """Return the call for which the agent asks permission."""
        call = self._find_call(update)
        self._note_call(call)
        return call

    def record_refusal(self, name: str, why: str, paths: tuple[str, ...]) -> None:
        self._end_message()
        self.last_refusal = why
        self._notes.add(Activity(kind=ActivityKind.REFUSED, name=name, text=why, paths=self._make_relative(paths)))

    def note(self, text: str) -> None:
        self._notes.add(Activity(kind=ActivityKind.NOTE, text=text))

    def end(self) -> None:
        """End the turn: note what is incomplete as it is."""
        self._end_message()
        for call in self._calls.values():
            self._note_call(call)

    @property
    def text(self) -> str:
        """The messages after the last tool call or, if there are none, all messages."""
        last = "".join(self._messages_since_call)
        return self._notes.mask(last if last.strip() else "".join(self._messages))

    def compute_usage(self, answer: SessionUpdate) -> Usage:
        """Return the usage of the turn: from the answer to the prompt, where agents report it in various places, or
        summed up."""
        reported = get_value(answer, "usage")
        tokens = _read_tokens(reported) if isinstance(reported, Mapping) else self._tokens
        quota = get_value(answer, "_meta", "quota", "token_count")
        if isinstance(quota, Mapping) and not tokens.tokens:
            tokens = Usage(
                input_tokens=get_count(quota, "input_tokens"), output_tokens=get_count(quota, "output_tokens")
            )
        return tokens.model_copy(update={"requests": max(1, self._tokens.requests), "usd": self._usd})

    def _add_message(self, update: SessionUpdate) -> None:
        text, message = get_text(update, "content", "text"), get_text(update, "messageId")
        if message != self._message:
            self._end_words()
            self._message = message
        self._end_thought()
        usage = get_value(update, "_meta", "usage")
        if isinstance(usage, Mapping):  # of one request to its model
            self._tokens += _read_tokens(usage).model_copy(update={"requests": 1})
        if text:
            self._show(self._flow.add(text))
            self._add(self._pieces, text)

    def _add(self, pieces: list[str], text: str) -> None:
        room = max(0, MAX_TEXT_CHARS - self._total_size)
        self._total_size += len(text)
        if piece := text[:room]:
            pieces.append(piece)

    def _end_message(self) -> None:
        self._end_thought()
        self._end_words()

    def _end_thought(self) -> None:
        if thought := "".join(self._thought).strip():
            self._notes.add(Activity(kind=ActivityKind.THOUGHT, text=thought))
        self._thought.clear()

    def _end_words(self) -> None:
        text = "".join(self._pieces)
        self._pieces.clear()
        self._show(self._flow.end())
        if not text:
            return
        if not text.endswith("\n"):
            self._show("\n")
        self._messages_since_call.append(text)
        self._messages.append(text)
        if text.strip():
            self._notes.add(Activity(kind=ActivityKind.SAID, text=text.strip()))

    def _show(self, text: str) -> None:
        if text:
            self._site.on_text(text)

    def _add_call(self, update: SessionUpdate) -> None:
        call = self._find_call(update)
        status = get_text(update, "status")
        if call.arguments or call.paths or status not in ("", "pending"):
            self._note_call(call)
        if status in _END_STATES and not call.has_ended:
            call.has_ended = True
            self._notes.add(
                Activity(
                    kind=ActivityKind.RESULT, name=call.noted_name, text=_render_result(update), ok=_END_STATES[status]
                )
            )

    def _find_call(self, update: SessionUpdate) -> ReportedCall:
        self._end_message()
        id = get_text(update, "toolCallId")
        call = self._calls.get(id) or ReportedCall()
        if len(self._calls) < _MOST_CALLS:
            self._calls[id] = call
        call.add(update)
        return call

    def _note_call(self, call: ReportedCall) -> None:
        if call.noted_name:
            return
        call.noted_name = call.name
        self._messages_since_call.clear()
        paths = self._make_relative(call.wish.paths)
        self._notes.add(Activity(kind=ActivityKind.TOOL, name=call.noted_name, text=call.title, paths=paths))

    def _make_relative(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(make_relative(path, self._root) for path in paths)


def _find_tool_name(meta: JsonValue) -> str:
    """Return the name of the tool, which agents put in various places outside the protocol's own fields."""
    places = (("toolName",), ("goose", "toolCall", "toolName"), ("claudeCode", "toolName"))
    return next((name for place in places if (name := get_text(meta, *place))), "")


def _find_paths(update: SessionUpdate) -> Iterator[str]:
    for location in get_objects(update, "locations"):
        if path := get_text(location, "path"):
            yield path
    for content in get_objects(update, "content"):
        if get_text(content, "type") == "diff" and (path := get_text(content, "path")):
            yield path


def _render_result(update: SessionUpdate) -> str:
    """Return the text of a call's result, if there is any."""
    texts = [get_text(content, "content", "text") for content in get_objects(update, "content")]
    return "\n".join(filter(None, texts)) or get_text(update, "rawOutput")


def _read_tokens(update: SessionUpdate) -> Usage:
    """Read token counts. Agents may count cached tokens separately from the input; here they are part of it."""
    read, written = get_count(update, "cachedReadTokens"), get_count(update, "cachedWriteTokens")
    input_tokens, output = get_count(update, "inputTokens"), get_count(update, "outputTokens")
    is_separate = input_tokens + output + read + written <= get_count(update, "totalTokens")
    return Usage(
        input_tokens=input_tokens + read + written if is_separate else input_tokens,
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=written,
    )
