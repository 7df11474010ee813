"""Several backends as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from proofstone.agents.backends import BackendIdentity
from proofstone.agents.backends.cmd import CommandBackend
from proofstone.agents.backends.factory import FallbackBackend
from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.models import Conversation, EngineMessage, Fault, FaultKind, Turn
from proofstone.config.providers import ProviderProtocol
from proofstone.testing.model_server.answers import HttpError, Reply
from tests.agents.backends.api_world import conversation, kept, results, served, site_in, the_fault, the_turn


@dataclass
class Scripted:
    """Says one thing after the other, and remembers what it was asked."""

    name: str
    says: Sequence[Turn | Fault]
    asked: list[tuple[Conversation, float | None]] = field(default_factory=list)
    closed: int = 0

    @property
    def identity(self) -> BackendIdentity:
        return BackendIdentity(f"script:{self.name}", vendor=self.name)

    def turn(self, conversation: Conversation, site: ExecutionContext, seconds: float | None) -> Turn | Fault:
        self.asked.append((conversation, seconds))
        return self.says[len(self.asked) - 1]

    def close(self) -> None:
        self.closed += 1


def fault(kind: FaultKind, why: str = "why") -> Fault:
    return Fault(kind=kind, why=why)


NEXT = {FaultKind.UNAVAILABLE, FaultKind.DENIED, FaultKind.REJECTED, FaultKind.FILTERED}


@pytest.mark.parametrize("kind", list(FaultKind))
def test_the_next_is_asked_when_another_may_do_better(kind: FaultKind, tmp_path: Path) -> None:
    first, second = Scripted("a", [fault(kind)]), Scripted("b", [Turn(text="b")])
    outcome = FallbackBackend((first, second)).turn(conversation(), site_in(tmp_path), 10)
    if kind in NEXT:
        assert the_turn(outcome).text == "b"
    else:
        assert the_fault(outcome) == fault(kind)
        assert second.asked == []


def test_if_none_can_serve_the_last_fault_tells_of_all(tmp_path: Path) -> None:
    several = [
        Scripted("a", [fault(FaultKind.DENIED, "a: key")]),
        Scripted("b", [Fault(kind=FaultKind.UNAVAILABLE, why="b: down", retry_after=3)]),
    ]
    outcome = the_fault(FallbackBackend(several).turn(conversation(), site_in(tmp_path), None))
    assert outcome == Fault(kind=FaultKind.UNAVAILABLE, why="a: key\nb: down", retry_after=3)


def test_what_one_did_before_it_failed_counts_for_whoever_comes_after_it(tmp_path: Path) -> None:
    acted = Fault(kind=FaultKind.UNAVAILABLE, why="why", acted=True)
    for first, then in ((acted, True), (fault(FaultKind.UNAVAILABLE), False)):
        after_it = FallbackBackend((Scripted("a", [first]), Scripted("b", [Turn(text="b")])))
        assert the_turn(after_it.turn(conversation(), site_in(tmp_path), 10)).acted is then
        failed = FallbackBackend((Scripted("a", [first]), Scripted("b", [fault(FaultKind.DENIED)])))
        assert the_fault(failed.turn(conversation(), site_in(tmp_path), 10)).acted is then


def test_whoever_wrote_the_last_turn_is_asked_first(tmp_path: Path) -> None:
    first = Scripted("a", [fault(FaultKind.UNAVAILABLE), Turn(text="a")])
    second = Scripted("b", [Turn(text="b1"), Turn(text="b2")])
    both = FallbackBackend((first, second))
    talk = conversation()
    one = the_turn(both.turn(talk, site_in(tmp_path), None))
    two = the_turn(both.turn(talk.with_entries(one, EngineMessage(text="go on")), site_in(tmp_path), None))
    assert (one.text, two.text) == ("b1", "b2")
    assert len(first.asked) == 1


def test_state_is_given_back_to_its_author_alone(tmp_path: Path) -> None:
    first = Scripted("a", [Turn(text="a", provider_state={"mine": 1}), fault(FaultKind.UNAVAILABLE)])
    second = Scripted("b", [Turn(text="b", provider_state="s")])
    both = FallbackBackend((first, second))
    talk = conversation()
    talk = talk.with_entries(the_turn(both.turn(talk, site_in(tmp_path), None)), EngineMessage(text="go on"))
    the_turn(both.turn(talk, site_in(tmp_path), None))

    def seen(backend: Scripted) -> object:
        entry = backend.asked[-1][0].entries[1]
        assert isinstance(entry, Turn)
        return entry.provider_state

    assert seen(first) == {"mine": 1}
    assert seen(second) is None


def test_the_deadline_is_one_for_all(tmp_path: Path) -> None:
    first, second = Scripted("a", [fault(FaultKind.UNAVAILABLE)]), Scripted("b", [Turn(text="b")])
    FallbackBackend((first, second)).turn(conversation(), site_in(tmp_path), 10)
    given = [asked[0][1] for asked in (first.asked, second.asked)]
    assert all(seconds is not None and 0 < seconds <= 10 for seconds in given)
    assert the_fault(FallbackBackend((first,)).turn(conversation(), site_in(tmp_path), 0)).kind is FaultKind.TIMEOUT


def test_it_is_known_by_its_first_and_closes_all() -> None:
    first, second = Scripted("a", []), Scripted("b", [])
    both = FallbackBackend((first, second))
    assert both.identity == first.identity
    both.close()
    assert (first.closed, second.closed) == (1, 1)


def test_a_conversation_goes_on_with_another_provider_when_the_first_fails(tmp_path: Path) -> None:
    calls = (("read", {"path": "a"}),)
    with (
        served(ProviderProtocol.ANTHROPIC, [Reply(calls=calls, thoughts="hm"), HttpError(529, "overloaded")]) as (
            first,
            _,
        ),
        served(ProviderProtocol.GOOGLE, [Reply(text="done")]) as (second, server),
    ):
        both = FallbackBackend((first, second))
        talk = conversation("read")
        one = the_turn(both.turn(talk, site_in(tmp_path), 60))
        talk = talk.with_entries(kept(one), results(one, "of a"))
        two = the_turn(both.turn(talk, site_in(tmp_path), 60))
    assert (two.text, two.model) == ("done", "google:gemini-2.5-pro")
    assert ("tool", "of a") in server.asked[0].messages


def test_a_command_is_never_asked_in_the_middle_of_the_work(tmp_path: Path) -> None:
    """It would take the question for the work, and do it."""
    asked = conversation().with_entries(EngineMessage(text="[REVERIFY]", asked="RV-1"))
    down = Fault(kind=FaultKind.UNAVAILABLE, why="it is down")
    came = FallbackBackend([Scripted("one", [down]), CommandBackend("touch done")]).turn(asked, site_in(tmp_path), 5)
    assert isinstance(came, Fault) and (came.kind, came.why) == (down.kind, down.why)
