"""Whatever the contracts can hold can be written and read back, alone and within an agent's prose."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from proofstone.supervision.models.context import Ack, AckAction, ContextUpdate, DeltaLine, DeltaOperation
from proofstone.supervision.models.ladder import (
    Category,
    DeviationImpact,
    DocsStatus,
    MiniAnalysis,
    ReverifyLevel,
    SelfLocate,
)
from proofstone.supervision.models.messages import (
    ImpactChallenge,
    ImpactChallengeResponse,
    ImpactMessage,
    ImpactRejected,
    ImpactVerified,
    PlanApproved,
    PlanRejected,
    ProtocolMessage,
    ReverifyAnalysis,
    ReverifyRequest,
    ReverifyResponse,
    WorkPlan,
)
from proofstone.supervision.models.understanding import ArtifactCitation, FileImpact, ImpactAnalysis, InterfaceClaim
from proofstone.supervision.rules.wire import MESSAGE_FORMS, read_messages, write_message
from tests.rows import each_row

PIECES = (
    *(f"[{tag}]" for tag in MESSAGE_FORMS),
    *(
        "|",
        "| Question: ",
        "| Reason:",
        " Phase 1 | Level 2",
        ". Action: PAUSE.",
        "Impact:",
        "GC-v1 → GC-v2",
        "\n",
        "\n\n",
    ),
    *(
        "## Risk",
        "# x",
        "```",
        "> ",
        "- ",
        "* ",
        "1. ",
        "`",
        "**",
        "(NEW)",
        ":",
        ": ",
        ", ",
        '"',
        "§",
        "none",
        "RC-01",
        "\r",
    ),
    *("a", "src/a.py", "word", " ", ".", "é", "—", "\u2028", "\x0b", "lead: ", "Delta: ADDED §s: k: x"),
)
"""What forms are made of, so that words are tried that look like forms."""

words = st.lists(st.sampled_from(PIECES) | st.characters(codec="utf-8"), min_size=1, max_size=8).map("".join)
said = words.filter(lambda text: any(map(str.isalnum, text)))
phase = st.integers(0, 10_000)
number = st.integers(0, 999)


def _is_name(text: str) -> bool:
    try:
        FileImpact(path=text)
    except ValidationError:
        return False
    return True


name = st.one_of(st.sampled_from(("src/a.py", "none", "-", "§x", "a:b", "[id].tsx", "x — y", "RC-01")), words).filter(
    _is_name
)
names = st.lists(name, max_size=3).map(tuple)


def listed(kind: type[BaseModel], **fields: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[BaseModel, ...]]:
    return st.lists(st.builds(kind, **fields), max_size=3).map(tuple)


def versions(kind: type[ContextUpdate]) -> st.SearchStrategy[ContextUpdate]:
    lines = listed(DeltaLine, operation=st.sampled_from(DeltaOperation), section=name, key=name, text=said)
    return st.builds(
        lambda before, more, lines: kind(before=before, version=before + more, lines=lines),
        number,
        st.integers(1, 9),
        lines,
    )


analysis = st.builds(
    ImpactAnalysis,
    task_understanding=said,
    upstream=listed(ArtifactCitation, artifact=name, says=said),
    files=listed(FileImpact, path=name, new=st.booleans(), functions=names),
    interfaces=listed(InterfaceClaim, path=name, symbol=name, signature=said, new=st.booleans()),
    cross_agent_impact=words,
    risk=words,
)
mini = st.builds(
    MiniAnalysis,
    task=said,
    files=said,
    downstream=said,
    claimed_before=said,
    reality=said,
    impact=st.sampled_from(DeviationImpact),
)
asked = st.one_of(
    st.builds(
        ReverifyRequest,
        phase=phase,
        level=st.sampled_from((ReverifyLevel.PING, ReverifyLevel.ANALYSIS)),
        target=said,
        reason=said,
    ),
    st.builds(
        ReverifyRequest, phase=phase, level=st.just(ReverifyLevel.QUESTION), target=said, reason=said, question=said
    ),
)
MESSAGES: dict[type, st.SearchStrategy[ProtocolMessage]] = {
    ReverifyRequest: asked,
    ReverifyResponse: st.builds(ReverifyResponse, phase=phase, level=st.sampled_from(ReverifyLevel), content=said),
    ReverifyAnalysis: st.builds(ReverifyAnalysis, phase=phase, analysis=mini),
    SelfLocate: st.builds(
        SelfLocate,
        phase=phase,
        task=number,
        total=number,
        step=said,
        progress=st.integers(0, 100),
        tool_calls=number,
        docs=st.sampled_from(DocsStatus),
    ),
    ContextUpdate: versions(ContextUpdate),
    Ack: st.builds(
        Ack, version=st.integers(1, 999), applied=number, total=number, impact=said, action=st.sampled_from(AckAction)
    ),
    ImpactMessage: st.builds(
        ImpactMessage, phase=phase, attempt=st.integers(1, 99), of=st.integers(1, 99), analysis=analysis
    ),
    ImpactVerified: st.builds(ImpactVerified, phase=st.none() | phase),
    ImpactRejected: st.builds(ImpactRejected, phase=st.none() | phase, reason=st.none() | said),
    ImpactChallenge: st.builds(ImpactChallenge, phase=phase, category=st.sampled_from(Category), question=said),
    ImpactChallengeResponse: st.builds(ImpactChallengeResponse, phase=phase, content=said),
    WorkPlan: st.builds(
        WorkPlan,
        phase=phase,
        files=st.lists(name, min_size=1, max_size=3).map(tuple),
        changes=said,
        risk=st.sampled_from(("🟢", "🟡", "🔴")),
        interface_impact=said,
    ),
    PlanApproved: st.builds(PlanApproved, phase=st.none() | phase),
    PlanRejected: st.builds(PlanRejected, phase=st.none() | phase, reason=st.none() | said),
}
message = st.one_of(*MESSAGES.values())


def test_every_kind_of_message_is_tried() -> None:
    assert set(MESSAGES) == set(get_args(ProtocolMessage))


@each_row("kind", MESSAGES)
@pytest.mark.seed("continuity", "format-strings")
def test_what_is_written_is_read_back(kind: type) -> None:
    @settings(max_examples=40)
    @given(MESSAGES[kind])
    def there_and_back(one: ProtocolMessage) -> None:
        assert read_messages(write_message(one)) == (one,)

    there_and_back()


@settings(max_examples=40)
@given(st.lists(message, max_size=4))
def test_messages_one_after_another_are_read_one_by_one(several: list[ProtocolMessage]) -> None:
    assert read_messages("\n\n".join(map(write_message, several))) == tuple(several)


@settings(max_examples=40)
@given(message)
def test_a_message_is_found_in_prose_and_in_a_fence(one: ProtocolMessage) -> None:
    text = f"I have looked at everything, as [REVERIFY] asks.\n\n```text\n{write_message(one)}\n```\n\nThat is all."
    assert read_messages(text) == (one,)


@settings(max_examples=40)
@given(words)
def test_nothing_that_an_agent_says_breaks_the_reader(text: str) -> None:
    read_messages(text)
