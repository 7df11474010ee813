"""`script:` as a backend: turn by turn by the book, with breakdowns, repairs and what a turn pretends to have used."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from proofstone.agents.backends import Backend
from proofstone.agents.backends.script import ScriptedBackend
from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.models import Conversation, Fault, FaultKind, Turn
from proofstone.agents.script_file import AgentScript, ScriptCall, ScriptEntry, ScriptFault, ScriptStep, read_script
from proofstone.agents.script_writer import format_script
from proofstone.common.models import Usage
from proofstone.errors import InputError
from proofstone.testing.backend_conformance import (
    AnswerPlay,
    BackendConformance,
    BuildBackend,
    CallPlay,
    CrashPlay,
    HangPlay,
    Play,
    TextPlay,
)
from tests.agents.backends.conversations import after, repaired, site_of, talk
from tests.agents.executors.bench import Bench


@pytest.fixture
def backend(tmp_path: Path) -> Callable[[str], ScriptedBackend]:
    def of(text: str) -> ScriptedBackend:
        file = tmp_path / "s.yaml"
        file.write_text(text)
        return ScriptedBackend(read_script(file), "script:s.yaml")

    return of


Made = Callable[[str], ScriptedBackend]


def turn_of(backend: Backend, conversation: Conversation, site: ExecutionContext, seconds: float | None = 60) -> Turn:
    turn = backend.turn(conversation, site, seconds)
    assert isinstance(turn, Turn), turn
    return turn


def fault_of(backend: Backend, conversation: Conversation, site: ExecutionContext, seconds: float | None = 60) -> Fault:
    fault = backend.turn(conversation, site, seconds)
    assert isinstance(fault, Fault), fault
    return fault


TURNS = """
- role: researcher
  usage: {input_tokens: 9, output_tokens: 4, usd: 0.5}
  steps:
    - say: I look
    - tool: {read: {path: a.txt}}
    - tools: [{read: {path: ../b}}, {grep: }, {guess: "not an object"}]
    - say: I have
    - say: seen it
  output: {finding: an a}
"""


def test_each_turn_takes_the_steps_up_to_the_next_call_and_the_last_one_answers(plain: Bench, backend: Made) -> None:
    heard: list[str] = []
    script, site, said = backend(TURNS), site_of(plain, heard), talk()
    first = turn_of(script, said, site)
    assert (first.text, first.answer) == ("I look", None)
    assert [(call.name, call.arguments) for call in first.calls] == [("read", {"path": "a.txt"})]
    said = after(said, first, "a")
    second = turn_of(script, said, site)
    assert [(call.name, call.arguments) for call in second.calls] == [
        ("read", {"path": "../b"}),
        ("grep", {}),
        ("guess", {}),
    ]
    assert [bool(call.malformed) for call in second.calls] == [False, False, True]
    last = turn_of(script, after(said, second, "", "", ""), site)
    assert (last.text, last.answer, last.calls) == ("I have\nseen it", {"finding": "an a"}, ())
    assert "".join(heard) == "I lookI have\nseen it"
    assert len({call.id for turn in (first, second) for call in turn.calls}) == 4
    assert last.usage == Usage(requests=1, input_tokens=9, output_tokens=4, usd=0.5)


def test_a_turn_can_be_taken_again_by_a_backend_that_knows_nothing_of_the_first(plain: Bench, backend: Made) -> None:
    said = talk()
    said = after(said, turn_of(backend(TURNS), said, site_of(plain)), "a")
    assert [call.name for call in turn_of(backend(TURNS), said, site_of(plain)).calls] == ["read", "grep", "guess"]


# The end of an entry of a role → text and answer.
ENDS = {
    ("researcher", "output: {finding: x}"): ("", {"finding": "x"}),
    ("researcher", "output: [1]"): ("[1]", None),
    ("researcher", "raw: '{\"finding\": 1'"): ('{"finding": 1', None),
    ("researcher", 'raw: "\\ud800"'): ("\ufffd\ufffd\ufffd", None),
    ("researcher", "steps: [{say: well}]\n  raw: so"): ("well\nso", None),
    ("researcher", "steps: []"): ("", None),
    ("executor", "steps: []"): ("", {"status": "success"}),
    ("executor", "raw: done"): ("done", None),
}


@pytest.mark.parametrize("entry,expected", ENDS.items())
def test_what_an_entry_ends_with_is_the_answer(
    plain: Bench, backend: Made, entry: tuple[str, str], expected: tuple[str, object]
) -> None:
    role, end = entry
    turn = turn_of(backend(f"- role: {role}\n  {end}\n"), talk(role=role), site_of(plain))
    assert (turn.text, turn.answer) == expected
    assert turn.usage == Usage(requests=1, usd=0.0)


REPAIRS = """
- role: researcher
  match: {focus: stubborn}
  steps: [{tool: {read: {path: a}}}, {say: so}]
  raw: no
- role: researcher
  raw: nonsense
- role: researcher
  match: {repair: 1}
  steps: [{tool: {read: {path: b}}}]
  raw: again nonsense
- role: researcher
  match: {repair: 2}
  output: {finding: at last}
"""


def test_an_entry_for_the_repair_goes_before_one_that_does_not_speak_of_it(plain: Bench, backend: Made) -> None:
    script, site, said = backend(REPAIRS), site_of(plain), talk()
    first = turn_of(script, said, site)
    assert first.text == "nonsense"
    said = repaired(said, first)
    call = turn_of(script, said, site)
    assert [call.arguments for call in call.calls] == [{"path": "b"}]
    said = after(said, call, "b")
    second = turn_of(script, said, site)
    assert second.text == "again nonsense"
    assert turn_of(script, repaired(said, second, 2), site).answer == {"finding": "at last"}


def test_without_such_an_entry_the_answer_is_given_again_and_no_step_repeated(plain: Bench, backend: Made) -> None:
    script, site = backend("- {role: researcher, steps: [{tool: {read: {}}}, {say: so}], raw: no}"), site_of(plain)
    said = talk()
    said = after(said, turn_of(script, said, site), "a")
    answer = turn_of(script, said, site)
    assert answer.text == "so\nno"
    again = turn_of(script, repaired(said, answer), site)
    assert (again.text, again.calls) == ("no", ())


MATCHES = """
- {role: reviewer, match: {focus: security, round: 2}, raw: second round}
- {role: reviewer, match: {focus: [security, correctness]}, raw: by focus}
- {role: reviewer, match: {dispatch: 2}, raw: asked again}
- {role: reviewer, match: {iteration: 3}, raw: third}
- {role: reviewer, match: {step: "task-03/*"}, raw: by step}
- {role: reviewer, match: {task: 4, attempt: 2}, raw: by task}
- {role: planner, raw: plans}
"""


@pytest.mark.parametrize(
    "occasion,taken",
    [
        ({"focus": "security", "round": 2}, "second round"),
        ({"focus": "security", "round": 1}, "by focus"),
        ({"focus": "security"}, "by focus"),
        ({"dispatch": 2}, "asked again"),
        ({"iteration": 3}, "third"),
        ({"step": "task-03/a2"}, "by step"),
        ({"task": "task-04", "attempt": 2}, "by task"),
    ],
)
def test_every_word_of_the_occasion_can_be_matched(
    plain: Bench, backend: Made, occasion: dict[str, object], taken: str
) -> None:
    said = talk(role="reviewer")
    placed = said.model_copy(update={"occasion": said.occasion.model_copy(update=occasion)})
    assert turn_of(backend(MATCHES), placed, site_of(plain)).text == taken


def test_a_dispatch_that_nothing_matches_names_what_was_asked(plain: Bench, backend: Made) -> None:
    with pytest.raises(InputError) as caught:
        backend(MATCHES).turn(talk(role="reviewer", focus="style", task="task-09"), site_of(plain), 60)
    asked = "task task-09, attempt 1, focus style, step s, run run-1, dispatch 1"
    assert f"the role reviewer with {asked}" in caught.value.message
    assert "line 8: planner with anything" in (caught.value.hint or "")


@pytest.mark.parametrize("kind", ["unavailable", "denied", "rejected", "filtered", "crashed", "timeout"])
def test_a_breakdown_has_its_kind_and_its_reason(plain: Bench, backend: Made, kind: str) -> None:
    script = backend(f"- {{role: researcher, steps: [{{error: {{kind: {kind}, why: so it is}}}}], raw: x}}")
    for _ in range(3):
        met = script.turn(talk(), site_of(plain), 60)
        assert isinstance(met, Fault) and (met.kind, met.why) == (kind, "so it is")


def test_a_breakdown_that_is_counted_passes_also_when_the_engine_asks_in_another_dispatch(
    plain: Bench, backend: Made
) -> None:
    script, site = backend("- {role: reviewer, steps: [{error: {kind: crashed, times: 2}}], raw: well}"), site_of(plain)
    other = talk(role="reviewer", focus="other")
    assert fault_of(script, talk(role="reviewer"), site).kind is FaultKind.CRASHED
    assert fault_of(script, talk(role="reviewer", dispatch=2), site).kind is FaultKind.CRASHED
    assert turn_of(script, talk(role="reviewer", dispatch=2), site).text == "well"
    assert fault_of(script, other, site).why == "crashed, says the script"


def test_breakdowns_are_counted_rightly_while_several_ask_at_once(plain: Bench, backend: Made) -> None:
    script, site = backend("- {role: reviewer, steps: [{error: {kind: crashed, times: 40}}], raw: x}"), site_of(plain)
    ends: list[Turn | Fault] = []

    def ask() -> None:
        for _ in range(10):
            ends.append(script.turn(talk(role="reviewer"), site, 60))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(end, Fault) for end in ends) == 40


# What ends a turn without an answer → kind and reason.
FAULTS = {
    "steps: [{fail: no compiler}]": (FaultKind.FAILED, "no compiler"),
    "steps: [{run: exit 3}]": (FaultKind.FAILED, "`exit 3` ended with exit code 3"),
    "steps: [{run: kill -9 $$}]": (FaultKind.CRASHED, "SIGKILL"),
    "steps: [{sleep: 3000}]": (FaultKind.TIMEOUT, "not finished after 0.5 s"),
    "steps: [{run: sleep 3000}]": (FaultKind.TIMEOUT, "not finished"),
}


@pytest.mark.parametrize("entry,expected", FAULTS.items())
def test_how_a_turn_can_end_badly(plain: Bench, backend: Made, entry: str, expected: tuple[FaultKind, str]) -> None:
    fault = fault_of(backend(f"- role: researcher\n  {entry}\n  raw: x\n"), talk(), site_of(plain), 0.5)
    assert fault.kind is expected[0] and expected[1] in fault.why


@pytest.mark.parametrize("entry", ["steps: [{sleep: 3000}]", "steps: [{run: sleep 3000}]", "output: {}"])
def test_an_interruption_ends_a_turn(plain: Bench, backend: Made, entry: str) -> None:
    plain.cancel.set()
    script = backend(f"- role: researcher\n  {entry}\n")
    assert fault_of(script, talk(), site_of(plain), None).kind is FaultKind.CANCELLED


def test_an_executor_writes_behind_the_runtimes_back_between_its_calls(plain: Bench, backend: Made) -> None:
    script = backend(
        "- role: executor\n  steps:\n    - write: {path: n.txt, content: n}\n    - tool: {read: {path: n.txt}}\n"
        "    - delete: a.txt\n    - run: echo r > r.txt\n"
    )
    said, site = talk(role="executor"), site_of(plain)
    first = turn_of(script, said, site)
    assert (plain.work_tree / "n.txt").read_text() == "n" and (plain.work_tree / "a.txt").exists()
    assert turn_of(script, after(said, first, "n"), site).answer == {"status": "success"}
    assert plain.files() == {"n.txt", "r.txt", "src/b.txt"}


class TestConformance(BackendConformance):
    """The conformance suite, with scripts that `format_script` wrote: what is acted out has been through a file."""

    @pytest.fixture
    def site(self, plain: Bench) -> ExecutionContext:
        return plain.site()

    @pytest.fixture
    def stage(self, tmp_path: Path) -> BuildBackend:
        def of(*plays: Play) -> ScriptedBackend:
            file = tmp_path / "s.yaml"
            file.write_text(format_script(entries_of(plays), "for the conformance suite"), "utf-8")
            return ScriptedBackend(read_script(file), "script:s.yaml")

        return of


def entries_of(plays: tuple[Play, ...]) -> list[ScriptEntry]:
    """Each answer ends an entry; the one after it answers the repair."""
    entries: list[ScriptEntry] = []
    steps: list[ScriptStep] = []
    for play in plays:
        repair = len(entries)
        match = {"repair": (str(repair),)} if repair else {}
        match play:
            case AnswerPlay(answer):
                entries.append(ScriptEntry("researcher", match, tuple(steps), output=dict(answer)))
                steps = []
            case TextPlay(text):
                entries.append(ScriptEntry("researcher", match, tuple(steps), raw=text))
                steps = []
            case CallPlay(name, arguments):
                steps.append(ScriptStep("tools", calls=(ScriptCall(name, dict(arguments)),)))
            case HangPlay():
                steps.append(ScriptStep("sleep", seconds=3000))
            case CrashPlay():
                steps.append(ScriptStep("error", breakdown=ScriptFault(FaultKind.CRASHED, "it broke down")))
    return [*entries, *([ScriptEntry("researcher", {}, tuple(steps))] if steps else [])]


def test_a_script_has_no_vendor(tmp_path: Path) -> None:
    backend: Backend = ScriptedBackend(AgentScript(tmp_path / "s.yaml", ()), "script:s.yaml")
    assert (backend.identity.spec, backend.identity.vendor) == ("script:s.yaml", None)
