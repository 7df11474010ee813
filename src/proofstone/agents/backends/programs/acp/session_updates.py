"""Collect what an agent of the Agent Client Protocol reports while it works: its messages, its tool calls, its usage.

Agents report a call in different ways: some begin with an empty one and fill it in, some report it only when they ask
for permission or when it is over. Each call is noted once, as soon as something is known about it, and its result once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from proofstone.agents.backends.programs.activity import Notes
from proofstone.agents.backends.programs.lines import amount_at, count_at, objects_at, relative, text_at, value_at
from proofstone.agents.executors.context import Site
from proofstone.agents.models import Activity, ActivityKind
from proofstone.agents.rules.permission import Wish, wish_of
from proofstone.common.models import Usage

MOST_WORDS: Final = 8 << 20
"""Characters of a turn that are kept."""
_MOST_CALLS: Final = 10_000
_END_STATES: Final[Mapping[str, bool]] = {"completed": True, "failed": False}

Told = Mapping[str, JsonValue]


@dataclass
class Call:
    """One tool call, as far as it has been reported."""

    kind: str = ""
    tool: str = ""
    title: str = ""
    named: tuple[str, ...] = ()
    arguments: JsonValue = None
    noted: str = ""
    """The name under which it was noted; empty: not yet."""
    ended: bool = False

    def add(self, update: Told) -> None:
        """Add an update. Fields that it leaves out stay unchanged."""
        kind = text_at(update, "kind")
        self.kind = kind if kind not in ("", "other") else self.kind
        self.tool = _find_tool_name(value_at(update, "_meta")) or self.tool
        self.title = text_at(update, "title") or self.title
        self.named = tuple(_find_paths(update)) or self.named
        self.arguments = value_at(update, "rawInput") or self.arguments

    @property
    def wish(self) -> Wish:
        return wish_of(self.kind, self.tool, self.named, self.arguments)

    @property
    def name(self) -> str:
        return self.tool or self.kind or "tool"


class Heard:
    """Collects and records the updates of one session."""

    def __init__(self, site: Site, root: str, notes: Notes) -> None:
        """`notes`: those of the turn. They must not show messages, which are shown here piece by piece."""
        self._site = site
        self._root = root
        self._notes = notes
        self._flow = notes.mask.flow()
        self._calls: dict[str, Call] = {}
        self._pieces: list[str] = []
        self._thought: list[str] = []
        self._message = ""
        self._messages_since_call: list[str] = []
        self._messages: list[str] = []
        self._total_size = 0
        self._tokens = Usage(requests=0)
        self._usd: float | None = None
        self.last_refusal = ""

    def update(self, update: Told) -> None:
        """Read a `session/update`."""
        match text_at(update, "sessionUpdate"):
            case "agent_message_chunk":
                self._add_message(update)
            case "agent_thought_chunk":
                self._end_words()
                self._add(self._thought, text_at(update, "content", "text"))
            case "tool_call" | "tool_call_update":
                self._add_call(update)
            case "usage_update" if text_at(update, "cost", "currency") == "USD":
                self._usd = amount_at(update, "cost", "amount")

    def asked(self, update: Told) -> Call:
        """Return the call for which the agent asks permission."""
        call = self._find_call(update)
        self._note_call(call)
        return call

    def refused(self, name: str, why: str, paths: tuple[str, ...]) -> None:
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
    def words(self) -> str:
        """The messages after the last tool call or, if there are none, all messages."""
        last = "".join(self._messages_since_call)
        return self._notes.mask(last if last.strip() else "".join(self._messages))

    def usage(self, answer: Told) -> Usage:
        """Return the usage of the turn: from the answer to the prompt, where agents report it in various places, or
        summed up."""
        reported = value_at(answer, "usage")
        tokens = _read_tokens(reported) if isinstance(reported, Mapping) else self._tokens
        quota = value_at(answer, "_meta", "quota", "token_count")
        if isinstance(quota, Mapping) and not tokens.tokens:
            tokens = Usage(input_tokens=count_at(quota, "input_tokens"), output_tokens=count_at(quota, "output_tokens"))
        return tokens.model_copy(update={"requests": max(1, self._tokens.requests), "usd": self._usd})

    def _add_message(self, update: Told) -> None:
        text, message = text_at(update, "content", "text"), text_at(update, "messageId")
        if message != self._message:
            self._end_words()
            self._message = message
        self._end_thought()
        usage = value_at(update, "_meta", "usage")
        if isinstance(usage, Mapping):  # of one request to its model
            self._tokens += _read_tokens(usage).model_copy(update={"requests": 1})
        if text:
            self._show(self._flow.add(text))
            self._add(self._pieces, text)

    def _add(self, pieces: list[str], text: str) -> None:
        room = max(0, MOST_WORDS - self._total_size)
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
            self._site.hear(text)

    def _add_call(self, update: Told) -> None:
        call = self._find_call(update)
        status = text_at(update, "status")
        if call.arguments or call.named or status not in ("", "pending"):
            self._note_call(call)
        if status in _END_STATES and not call.ended:
            call.ended = True
            self._notes.add(
                Activity(kind=ActivityKind.RESULT, name=call.noted, text=_render_result(update), ok=_END_STATES[status])
            )

    def _find_call(self, update: Told) -> Call:
        self._end_message()
        id = text_at(update, "toolCallId")
        call = self._calls.get(id) or Call()
        if len(self._calls) < _MOST_CALLS:
            self._calls[id] = call
        call.add(update)
        return call

    def _note_call(self, call: Call) -> None:
        if call.noted:
            return
        call.noted = call.name
        self._messages_since_call.clear()
        paths = self._make_relative(call.wish.paths)
        self._notes.add(Activity(kind=ActivityKind.TOOL, name=call.noted, text=call.title, paths=paths))

    def _make_relative(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(relative(path, self._root) for path in paths)


def _find_tool_name(meta: JsonValue) -> str:
    """Return the name of the tool, which agents put in various places outside the protocol's own fields."""
    places = (("toolName",), ("goose", "toolCall", "toolName"), ("claudeCode", "toolName"))
    return next((name for place in places if (name := text_at(meta, *place))), "")


def _find_paths(update: Told) -> Iterator[str]:
    for location in objects_at(update, "locations"):
        if path := text_at(location, "path"):
            yield path
    for content in objects_at(update, "content"):
        if text_at(content, "type") == "diff" and (path := text_at(content, "path")):
            yield path


def _render_result(update: Told) -> str:
    """Return the text of a call's result, if there is any."""
    texts = [text_at(content, "content", "text") for content in objects_at(update, "content")]
    return "\n".join(filter(None, texts)) or text_at(update, "rawOutput")


def _read_tokens(update: Told) -> Usage:
    """Read token counts. Agents may count cached tokens separately from the input; here they are part of it."""
    read, written = count_at(update, "cachedReadTokens"), count_at(update, "cachedWriteTokens")
    input_tokens, output = count_at(update, "inputTokens"), count_at(update, "outputTokens")
    is_separate = input_tokens + output + read + written <= count_at(update, "totalTokens")
    return Usage(
        input_tokens=input_tokens + read + written if is_separate else input_tokens,
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=written,
    )
