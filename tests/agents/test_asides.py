"""A conversation that somebody attends to: what is an answer to a question, and what is the answer that ends it."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from proofstone.agents.models import Conversation, EngineMessage, Fault, FaultKind, ToolCall, ToolResult, Turn
from proofstone.agents.rules.conversation import (
    ConversationEffect,
    ConversationEffectResult,
    ConversationEnd,
    Interjection,
    RequestTurn,
    TurnBoundary,
    UseTool,
    run_conversation,
)
from tests.agents.test_loop import BAD, GOOD, OPENING, Answer

CALLS = Turn(calls=(ToolCall(id="1", name="read", arguments={"path": "a"}),))
REPLY = Turn(answer={"verdict": "this is the answer to a question"})
STOP = Fault(kind=FaultKind.DRIFTED, why="enough")
ASKS = Interjection(EngineMessage(text="where are you?", asked="RV-1"), {"title": "Where"}, ("a",))
RESUMES = Interjection(EngineMessage(text="go on", resumes=True))
ALLOWANCE = 6

words = st.lists(st.sampled_from([None, None, ASKS, RESUMES, STOP]), max_size=12)
turns = st.lists(st.sampled_from([GOOD, BAD, CALLS, REPLY]), max_size=30)


class Watched:
    """Whoever attends says these words, and then nothing more than they must."""

    def __init__(self, words: Sequence[Interjection | Fault | None], turns: Sequence[Turn]) -> None:
        self.words, self.turns = list(words), list(turns)
        self.boundaries: list[tuple[TurnBoundary, ConversationEffectResult]] = []
        self.thoughts: list[Conversation] = []

    def run(self) -> ConversationEnd:
        talk, sent = run_conversation(OPENING, Answer, ALLOWANCE, attended=True), None
        while True:
            try:
                request = talk.send(sent)
            except StopIteration as stop:
                assert isinstance(stop.value, ConversationEnd)
                return stop.value
            sent = self._reply(request)

    def _reply(self, request: ConversationEffect) -> ConversationEffectResult:
        match request:
            case RequestTurn():
                self.thoughts.append(request.conversation)
                assert len(self.thoughts) < 200, "it does not end"
                return self.turns.pop(0) if self.turns else GOOD
            case UseTool():
                return ToolResult(call_id=request.call.id, name=request.call.name, text="found")
            case TurnBoundary():
                said = self.words.pop(0) if self.words else None
                said = RESUMES if request.is_reply and said is None else said
                self.boundaries.append((request, said))
                return said
        return None


@given(words, turns)
def test_it_ends_and_its_answer_is_never_one_to_a_question(
    words: list[Interjection | Fault | None], turns: list[Turn]
) -> None:
    watched = Watched(words, turns)
    ended = watched.run()
    last, said = watched.boundaries[-1]
    if not isinstance(ended.output, Fault):
        assert ended.output == last.output and said is None and not last.is_reply
    for boundary, _ in watched.boundaries:
        assert not (boundary.is_reply and (boundary.output is not None or boundary.results))
    open_at = {len(one.entries) for one in watched.thoughts if one.open_question}
    assert sum(boundary.is_reply for boundary, _ in watched.boundaries) <= len(open_at)


@given(words, turns)
def test_what_is_offered_to_answer_with_is_what_is_asked_for(
    words: list[Interjection | Fault | None], turns: list[Turn]
) -> None:
    watched = Watched(words, turns)
    watched.run()
    for conversation in watched.thoughts:
        wanted = ASKS.schema if conversation.open_question else OPENING.output_schema
        assert conversation.output_schema == wanted


@given(words, turns)
def test_turns_are_counted_from_the_open_question_or_as_if_there_had_been_none(
    words: list[Interjection | Fault | None], turns: list[Turn]
) -> None:
    watched = Watched(words, turns)
    watched.run()
    for conversation in watched.thoughts:
        assert conversation.turns_since_message == _counted(conversation)


def _counted(conversation: Conversation) -> int:
    """The same, told otherwise: what was asked and answered in between is left out."""
    entries = list(conversation.entries)
    told = [at for at, entry in enumerate(entries) if isinstance(entry, EngineMessage)]
    if conversation.open_question:
        return sum(isinstance(entry, Turn) for entry in entries[told[-1] :])
    begun = max(at for at in told if not entries[at].asked and not entries[at].resumes)  # type: ignore[union-attr]
    counted, aside = 0, False
    for entry in entries[begun:]:
        if isinstance(entry, EngineMessage):
            aside = bool(entry.asked)
        counted += isinstance(entry, Turn) and not aside
    return counted
