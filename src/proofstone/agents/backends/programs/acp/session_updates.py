"""What an agent of the Agent Client Protocol tells while it works: its words, its tool calls, what it has used.

Agents tell of one call in many ways: some begin with an empty one and fill it in, some tell of it only when they ask or
when it is over. Each is noted once, as soon as there is something to say of it, and what came of it once.
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
_ENDED: Final[Mapping[str, bool]] = {"completed": True, "failed": False}

Told = Mapping[str, JsonValue]


@dataclass
class Call:
    """One tool call, as far as it has been told."""

    kind: str = ""
    tool: str = ""
    title: str = ""
    named: tuple[str, ...] = ()
    arguments: JsonValue = None
    noted: str = ""
    """The name by which it was noted; empty: it was not yet."""
    ended: bool = False

    def add(self, told: Told) -> None:
        """What an update leaves out stays as it was."""
        kind = text_at(told, "kind")
        self.kind = kind if kind not in ("", "other") else self.kind
        self.tool = _tool_in(value_at(told, "_meta")) or self.tool
        self.title = text_at(told, "title") or self.title
        self.named = tuple(_named(told)) or self.named
        self.arguments = value_at(told, "rawInput") or self.arguments

    @property
    def wish(self) -> Wish:
        return wish_of(self.kind, self.tool, self.named, self.arguments)

    @property
    def name(self) -> str:
        return self.tool or self.kind or "tool"


class Heard:
    def __init__(self, site: Site, root: str, notes: Notes) -> None:
        """`notes`: of the turn, which do not say aloud what is heard here piece by piece."""
        self._site = site
        self._root = root
        self._notes = notes
        self._flow = notes.mask.flow()
        self._calls: dict[str, Call] = {}
        self._piece: list[str] = []
        self._thought: list[str] = []
        self._message = ""
        self._since_call: list[str] = []
        self._all: list[str] = []
        self._size = 0
        self._tokens = Usage(requests=0)
        self._usd: float | None = None
        self.last_refusal = ""

    def update(self, told: Told) -> None:
        """What `session/update` says."""
        match text_at(told, "sessionUpdate"):
            case "agent_message_chunk":
                self._said(told)
            case "agent_thought_chunk":
                self._end_words()
                self._add(self._thought, text_at(told, "content", "text"))
            case "tool_call" | "tool_call_update":
                self._called(told)
            case "usage_update" if text_at(told, "cost", "currency") == "USD":
                self._usd = amount_at(told, "cost", "amount")

    def asked(self, told: Told) -> Call:
        """The call for which it asks permission."""
        call = self._call(told)
        self._note(call)
        return call

    def refused(self, name: str, why: str, paths: tuple[str, ...]) -> None:
        self._end_message()
        self.last_refusal = why
        self._notes.add(Activity(kind=ActivityKind.REFUSED, name=name, text=why, paths=self._from_root(paths)))

    def note(self, text: str) -> None:
        self._notes.add(Activity(kind=ActivityKind.NOTE, text=text))

    def end(self) -> None:
        """The turn is over: what was begun is noted as it stands."""
        self._end_message()
        for call in self._calls.values():
            self._note(call)

    @property
    def words(self) -> str:
        """The last ones: behind the last tool call; all of them, if there are none there."""
        last = "".join(self._since_call)
        return self._notes.mask(last if last.strip() else "".join(self._all))

    def usage(self, answer: Told) -> Usage:
        """Of the turn: from the answer to the prompt, where agents tell it at different places, or summed up."""
        told = value_at(answer, "usage")
        tokens = _tokens(told) if isinstance(told, Mapping) else self._tokens
        quota = value_at(answer, "_meta", "quota", "token_count")
        if isinstance(quota, Mapping) and not tokens.tokens:
            tokens = Usage(input_tokens=count_at(quota, "input_tokens"), output_tokens=count_at(quota, "output_tokens"))
        return tokens.model_copy(update={"requests": max(1, self._tokens.requests), "usd": self._usd})

    def _said(self, told: Told) -> None:
        text, message = text_at(told, "content", "text"), text_at(told, "messageId")
        if message != self._message:
            self._end_words()
            self._message = message
        self._end_thought()
        spent = value_at(told, "_meta", "usage")
        if isinstance(spent, Mapping):  # of one request to its model
            self._tokens += _tokens(spent).model_copy(update={"requests": 1})
        if text:
            self._aloud(self._flow.add(text))
            self._add(self._piece, text)

    def _add(self, into: list[str], text: str) -> None:
        room = max(0, MOST_WORDS - self._size)
        self._size += len(text)
        if kept := text[:room]:
            into.append(kept)

    def _end_message(self) -> None:
        self._end_thought()
        self._end_words()

    def _end_thought(self) -> None:
        if thought := "".join(self._thought).strip():
            self._notes.add(Activity(kind=ActivityKind.THOUGHT, text=thought))
        self._thought.clear()

    def _end_words(self) -> None:
        said = "".join(self._piece)
        self._piece.clear()
        self._aloud(self._flow.end())
        if not said:
            return
        if not said.endswith("\n"):
            self._aloud("\n")
        self._since_call.append(said)
        self._all.append(said)
        if said.strip():
            self._notes.add(Activity(kind=ActivityKind.SAID, text=said.strip()))

    def _aloud(self, text: str) -> None:
        if text:
            self._site.hear(text)

    def _called(self, told: Told) -> None:
        call = self._call(told)
        status = text_at(told, "status")
        if call.arguments or call.named or status not in ("", "pending"):
            self._note(call)
        if status in _ENDED and not call.ended:
            call.ended = True
            self._notes.add(Activity(kind=ActivityKind.RESULT, name=call.noted, text=_result(told), ok=_ENDED[status]))

    def _call(self, told: Told) -> Call:
        self._end_message()
        id = text_at(told, "toolCallId")
        call = self._calls.get(id) or Call()
        if len(self._calls) < _MOST_CALLS:
            self._calls[id] = call
        call.add(told)
        return call

    def _note(self, call: Call) -> None:
        if call.noted:
            return
        call.noted = call.name
        self._since_call.clear()
        paths = self._from_root(call.wish.paths)
        self._notes.add(Activity(kind=ActivityKind.TOOL, name=call.noted, text=call.title, paths=paths))

    def _from_root(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(relative(path, self._root) for path in paths)


def _tool_in(meta: JsonValue) -> str:
    """The name of the tool, which agents put at different places beside the protocol's own fields."""
    places = (("toolName",), ("goose", "toolCall", "toolName"), ("claudeCode", "toolName"))
    return next((name for place in places if (name := text_at(meta, *place))), "")


def _named(told: Told) -> Iterator[str]:
    for location in objects_at(told, "locations"):
        if path := text_at(location, "path"):
            yield path
    for content in objects_at(told, "content"):
        if text_at(content, "type") == "diff" and (path := text_at(content, "path")):
            yield path


def _result(told: Told) -> str:
    """What came of a call, in its words, if it has any."""
    texts = [text_at(content, "content", "text") for content in objects_at(told, "content")]
    return "\n".join(filter(None, texts)) or text_at(told, "rawOutput")


def _tokens(told: Told) -> Usage:
    """The protocol counts what came from a cache beside the input; here it is a part of it."""
    read, written = count_at(told, "cachedReadTokens"), count_at(told, "cachedWriteTokens")
    given, output = count_at(told, "inputTokens"), count_at(told, "outputTokens")
    beside = given + output + read + written <= count_at(told, "totalTokens")
    return Usage(
        input_tokens=given + read + written if beside else given,
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=written,
    )
