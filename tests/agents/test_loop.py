"""The conversation of a dispatch: what follows what, and that it always ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from proofstone.agents.models import (
    Conversation,
    DispatchKey,
    EngineMessage,
    Fault,
    FaultKind,
    RefusalRule,
    ToolCall,
    ToolResult,
    ToolResults,
    Turn,
)
from proofstone.agents.rules.budget import FAULT_POLICIES, build_fault_completion, compute_pause
from proofstone.agents.rules.conversation import (
    MAX_CALLS_PER_TURN,
    MAX_REPAIRS,
    MAX_TURNS_AFTER_LIMIT,
    ConversationEffect,
    ConversationEffectResult,
    ConversationEnd,
    RecordRepair,
    RecordToolResult,
    RequestTurn,
    UseTool,
    WaitForRetry,
    run_conversation,
)
from proofstone.common.models import FrozenModel
from tests.rows import each_row


class Answer(FrozenModel):
    verdict: str
    count: int = 0


GOOD = Turn(answer={"verdict": "yes"})
BAD = Turn(text="I would rather not say")
OPENING = Conversation(
    occasion=DispatchKey(run_id="r", role="researcher"),
    instructions="Look.",
    tools=(),
    output_schema=Answer.model_json_schema(),
    entries=(EngineMessage(text="what is there?"),),
)


def call(name: str = "read", **arguments: str) -> ToolCall:
    return ToolCall(id=f"{name}-{arguments}", name=name, arguments=arguments)


@dataclass
class Driven:
    """The loop, with what it is told prepared beforehand."""

    says: Iterator[Turn | Fault]
    asked: list[ConversationEffect] = field(default_factory=list)
    use: Callable[[ToolCall], ToolResult | Fault] = lambda call: ToolResult(
        call_id=call.id, name=call.name, text="found"
    )

    def run(self, allowance: int = 10) -> ConversationEnd:
        talk, sent = run_conversation(OPENING, Answer, allowance), None
        while True:
            try:
                request = talk.send(sent)
            except StopIteration as stop:
                assert isinstance(stop.value, ConversationEnd)
                return stop.value
            self.asked.append(request)
            sent = self._reply(request)

    def _reply(self, request: ConversationEffect) -> ConversationEffectResult:
        match request:
            case RequestTurn():
                return next(self.says)
            case UseTool():
                return self.use(request.call)
        return None

    def of(self, kind: type[ConversationEffect]) -> list[ConversationEffect]:
        return [one for one in self.asked if isinstance(one, kind)]


def driven(*says: Turn | Fault) -> Driven:
    return Driven(iter(says))


def kind_of(ended: ConversationEnd) -> FaultKind | None:
    return ended.output.kind if isinstance(ended.output, Fault) else None


ANSWERS: dict[str, Turn] = {
    "by the answer tool": GOOD,
    "as text": Turn(text='{"verdict": "yes"}'),
    "in a fence": Turn(text='Here it is:\n```json\n{"verdict": "yes"}\n```'),
    "after a thought": Turn(text='<think>{"verdict": "no"}?</think>{"verdict": "yes"}'),
    "after a thought whose beginning is missing": Turn(text='hm, "no"?</think>{"verdict": "yes"}'),
    "before a second object": Turn(text='{"verdict": "yes"} {"verdict": "no"}'),
    "by the answer tool, beside text": Turn(text="there you are", answer={"verdict": "yes"}),
}


@each_row("turn", ANSWERS.values())
def test_an_answer_is_found_wherever_it_stands(turn: Turn) -> None:
    ended = driven(turn).run()
    assert ended == ConversationEnd(Answer(verdict="yes"), turns=1, tool_calls=0, repairs=0)


def test_text_inside_the_answer_is_left_as_it_is() -> None:
    ended = driven(Turn(text='{"verdict": "<think>both</think> {tags}"}')).run()
    assert ended.output == Answer(verdict="<think>both</think> {tags}")


def test_an_answer_that_does_not_validate_is_shown_why_and_given_again() -> None:
    loop = driven(Turn(answer={"verdict": "yes", "count": "many"}), GOOD)
    ended = loop.run()
    assert ended == ConversationEnd(Answer(verdict="yes"), turns=2, tool_calls=0, repairs=1)
    (repair,) = loop.of(RecordRepair)
    assert isinstance(repair, RecordRepair) and "count" in repair.message.text and '"many"' in repair.message.text
    last = loop.asked[-1]
    assert isinstance(last, RequestTurn) and last.conversation.entries[-1] == repair.message
    assert last.conversation.repairs == 1 and last.conversation.turns_since_message == 0


def test_after_two_repairs_it_is_malformed() -> None:
    ended = driven(BAD, BAD, BAD, GOOD).run()
    assert kind_of(ended) is FaultKind.MALFORMED
    assert (ended.turns, ended.repairs) == (MAX_REPAIRS + 1, MAX_REPAIRS)
    assert isinstance(ended.output, Fault) and "not JSON" in ended.output.why


def test_an_answer_that_was_cut_off_is_said_to_be() -> None:
    ended = driven(*(Turn(text='{"verdict": ', cut=True) for _ in range(3))).run()
    assert isinstance(ended.output, Fault) and "limit of output tokens" in ended.output.why


def test_results_of_tools_are_shown_in_the_order_of_the_calls() -> None:
    loop = driven(Turn(calls=(call(path="a"), call(path="b"))), GOOD)
    ended = loop.run()
    assert ended == ConversationEnd(Answer(verdict="yes"), turns=2, tool_calls=2, repairs=0)
    last = loop.asked[-1]
    assert isinstance(last, RequestTurn)
    returned = last.conversation.entries[-1]
    assert isinstance(returned, ToolResults)
    assert [one.call_id for one in returned.results] == [call(path="a").id, call(path="b").id]


def test_the_beginning_of_a_conversation_never_changes() -> None:
    loop = driven(Turn(calls=(call(),)), BAD, GOOD)
    loop.run()
    talks = [one.conversation for one in loop.asked if isinstance(one, RequestTurn)]
    for before, after in pairwise(talks):
        assert after.entries[: len(before.entries)] == before.entries
        assert (after.instructions, after.tools) == (before.instructions, before.tools)


def test_the_same_call_again_is_answered_from_the_first_and_the_third_time_ends_it() -> None:
    loop = driven(*(Turn(calls=(call(path="a"),)) for _ in range(3)), GOOD)
    ended = loop.run()
    assert kind_of(ended) is FaultKind.LOOPING
    assert len(loop.of(UseTool)) == 1
    (known,) = loop.of(RecordToolResult)
    assert isinstance(known, RecordToolResult) and known.result.repeated and known.result.text == "found"


def test_another_call_in_between_makes_it_a_new_one() -> None:
    loop = driven(*(Turn(calls=(call(path=path),)) for path in "abababab"), GOOD)
    assert loop.run().output == Answer(verdict="yes")
    assert len(loop.of(UseTool)) == 8


def test_a_spent_allowance_is_refused_and_the_agent_may_still_answer() -> None:
    loop = driven(*(Turn(calls=(call(path=str(n)),)) for n in range(4)), GOOD)
    ended = loop.run(allowance=2)
    assert ended.output == Answer(verdict="yes") and ended.tool_calls == 2
    refusals = [one.result for one in loop.asked if isinstance(one, RecordToolResult)]
    assert [one.refused for one in refusals] == [RefusalRule.BUDGET] * 2
    assert "give your answer now" in refusals[0].text


def test_an_agent_that_does_not_hear_the_refusals_is_stopped() -> None:
    ended = driven(*(Turn(calls=(call(path=str(n)),)) for n in range(50))).run(allowance=2)
    assert kind_of(ended) is FaultKind.LOOPING and ended.turns == 2 + MAX_TURNS_AFTER_LIMIT + 1


def test_calls_that_cannot_be_read_are_refused_and_counted() -> None:
    wrong = ToolCall(id="1", name="read", malformed="line 1: not JSON")
    loop = driven(*(Turn(calls=(wrong,)) for _ in range(50)))
    ended = loop.run(allowance=3)
    assert kind_of(ended) is FaultKind.LOOPING and not loop.of(UseTool)
    first = loop.of(RecordToolResult)[0]
    assert isinstance(first, RecordToolResult) and first.result.refused is RefusalRule.ARGUMENTS
    assert "line 1: not JSON" in first.result.text


def test_of_too_many_calls_in_one_turn_the_rest_is_refused() -> None:
    calls = tuple(call(path=str(n)) for n in range(MAX_CALLS_PER_TURN + 5))
    loop = driven(Turn(calls=calls), GOOD)
    assert loop.run(allowance=1000).output == Answer(verdict="yes")
    assert (len(loop.of(UseTool)), len(loop.of(RecordToolResult))) == (MAX_CALLS_PER_TURN, 1), (
        "one word for all of them"
    )


@each_row("kind", FaultKind)
def test_a_fault_is_tried_again_as_often_as_the_table_says(kind: FaultKind) -> None:
    retries = FAULT_POLICIES[kind].retries
    assert driven(*(Fault(kind=kind, why="?") for _ in range(retries)), GOOD).run().output == Answer(verdict="yes")
    loop = driven(*(Fault(kind=kind, why="?") for _ in range(retries + 1)), GOOD)
    assert kind_of(loop.run()) is kind
    assert len(loop.of(WaitForRetry)) == retries


def test_only_a_provider_that_cannot_be_reached_is_asked_again_at_once() -> None:
    assert {kind for kind in FaultKind if FAULT_POLICIES[kind].retries} == {FaultKind.UNAVAILABLE}
    again = {FaultKind.UNAVAILABLE, FaultKind.CRASHED, FaultKind.MALFORMED, FaultKind.DRIFTED}
    assert {kind for kind in FaultKind if FAULT_POLICIES[kind].can_repeat} == again


LAST_RETRY = FAULT_POLICIES[FaultKind.UNAVAILABLE].retries


@each_row(
    ("asked", "retry", "seconds"),
    [
        *[(None, 1, 1.0), (None, 2, 2.0), (0.5, 2, 0.5), (7.0, 1, 7.0), (61.0, 1, None), (-3.0, 1, 0.0)],
        *[(None, LAST_RETRY, 2.0 ** (LAST_RETRY - 1)), (None, LAST_RETRY + 1, None)],
    ],
)
def test_a_pause_is_as_long_as_the_provider_asks_within_reason(
    asked: float | None, retry: int, seconds: float | None
) -> None:
    assert compute_pause(Fault(kind=FaultKind.UNAVAILABLE, why="?", retry_after=asked), retry) == seconds


def test_a_fault_of_a_tool_ends_the_dispatch() -> None:
    loop = driven(Turn(calls=(call(),)), GOOD)
    loop.use = lambda _: Fault(kind=FaultKind.CANCELLED, why="interrupted")
    assert kind_of(loop.run()) is FaultKind.CANCELLED


def test_a_fault_is_an_error_in_the_words_of_the_completion_contract() -> None:
    said = build_fault_completion(Fault(kind=FaultKind.TIMEOUT, why="x" * 500))
    assert said.status == "ERROR" and said.summary.startswith("timeout: x") and len(said.summary) == 200


CALLS = st.builds(
    ToolCall,
    id=st.just("1"),
    name=st.sampled_from(["read", "write", "fly"]),
    arguments=st.dictionaries(st.just("path"), st.sampled_from(["a", "b"])),
    malformed=st.sampled_from(["", "", "not JSON"]),
)
SAID = st.one_of(
    st.builds(Turn, calls=st.lists(CALLS, min_size=1, max_size=4).map(tuple)),
    st.builds(Turn, text=st.sampled_from(["", "{", "{}", '{"verdict": 1}'])),
    st.builds(Fault, kind=st.sampled_from(FaultKind), why=st.just("?")),
)


@given(st.lists(SAID, min_size=1, max_size=5), st.integers(1, 6))
def test_whatever_an_agent_says_it_comes_to_an_end(says: Sequence[Turn | Fault], allowance: int) -> None:
    """It says the same over and over; without a bound this would not return."""

    def for_ever() -> Iterator[Turn | Fault]:
        while True:
            yield from says

    loop = Driven(for_ever())
    ended = loop.run(allowance)
    assert len(loop.of(UseTool)) <= ended.tool_calls <= allowance
    assert ended.repairs <= MAX_REPAIRS
    assert ended.turns <= allowance + MAX_REPAIRS + 1 + MAX_TURNS_AFTER_LIMIT + 1
