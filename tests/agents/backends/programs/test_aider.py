"""aider: what it is started with, and what was read from it when it was run against the model server."""

from __future__ import annotations

import pytest

from proofstone.agents.backends.programs.known.aider import AiderStream, invoke
from proofstone.agents.backends.programs.preset import FileArgument, LaunchRequest
from proofstone.agents.models import ActivityKind, FaultKind
from tests.agents.backends.programs.played import brief, played, survives
from tests.rows import each_row

SAID, RESULT, NOTE = ActivityKind.SAID, ActivityKind.RESULT, ActivityKind.NOTE


def test_the_prompt_goes_by_a_file() -> None:
    started = invoke(LaunchRequest("do it", model="openai/m"))
    assert started.arguments[:2] == ("--message-file", FileArgument("PROOFSTONE_MESSAGE"))
    assert started.files == {"PROOFSTONE_MESSAGE": "do it"}
    assert "--model=openai/m" in started.arguments


@pytest.mark.parametrize("option", ["--no-auto-commits", "--no-dirty-commits", "--no-gitignore", "--no-check-update"])
def test_it_touches_nothing_but_files(option: str) -> None:
    assert option in invoke(LaunchRequest("", scope=("a.py",))).arguments


def test_it_is_given_the_declared_files_that_are_there() -> None:
    """One that is not there it would make, empty."""
    started = invoke(LaunchRequest("", scope=("src/a.py", "src/new.py", "-odd.py"), files=("src/a.py", "-odd.py")))
    files = [argument for argument in started.arguments if isinstance(argument, str) and argument.startswith("--file")]
    assert files == ["--file=src/a.py", "--file=-odd.py"]
    assert "--chat-mode" not in started.arguments


def test_without_a_scope_it_only_answers() -> None:
    started = invoke(LaunchRequest("", scope=()))
    assert started.arguments[-2:] == ("--chat-mode", "ask")


def test_edits_and_words_are_read_from_its_text() -> None:
    activities, final = played(AiderStream(), "aider-work.txt")
    assert brief(activities) == [
        (SAID, "", (), None),
        (RESULT, "edit", ("b.py",), True),
        (RESULT, "edit", ("src/a.py",), True),
    ]
    assert final.text.endswith("All done.")
    assert "Repo-map" not in final.text
    assert final.model == "openai/m1"
    assert final.fault is None
    assert (final.usage.requests, final.usage.input_tokens, final.usage.output_tokens) == (1, 11, 7)


def test_a_lie_is_no_more_than_words() -> None:
    activities, final = played(AiderStream(), "aider-lie.txt")
    assert brief(activities) == [(SAID, "", (), None)]
    assert final.text == "Done, x is 2 now."


def test_an_answer_stands_in_its_words() -> None:
    _, final = played(AiderStream(), "aider-reader.txt")
    assert final.text.endswith('{"answer": 5}')


def test_a_key_that_is_refused_is_told_though_it_ends_with_0() -> None:
    _, final = played(AiderStream(), "aider-401.txt")
    assert final.fault is not None
    assert final.fault.kind is FaultKind.DENIED


def test_an_error_that_passes_is_none() -> None:
    activities, final = played(AiderStream(), "aider-500-then-well.txt")
    assert [one.kind for one in activities] == [NOTE, NOTE, SAID]
    assert final.text == "Done after all."
    assert final.fault is None


@each_row(
    ("line", "kind"),
    [
        ("litellm.RateLimitError: RateLimitError: OpenAIException - slow down", FaultKind.UNAVAILABLE),
        ("litellm.InternalServerError: broken", FaultKind.UNAVAILABLE),
        ("litellm.APIConnectionError: nobody there", FaultKind.UNAVAILABLE),
        ("litellm.Timeout: too late", FaultKind.UNAVAILABLE),
        ("litellm.AuthenticationError: no key", FaultKind.DENIED),
        ("litellm.NotFoundError: no such model", FaultKind.DENIED),
        ("litellm.ContextWindowExceededError: too long", FaultKind.REJECTED),
        ("litellm.BadRequestError: no", FaultKind.REJECTED),
        ("litellm.ContentPolicyViolationError: no", FaultKind.FILTERED),
        ("litellm.SomethingNewError: hm", FaultKind.FAILED),
        ("No LLM model was specified and no API keys were provided.", FaultKind.DENIED),
    ],
)
def test_errors_by_their_names(line: str, kind: FaultKind) -> None:
    stream = AiderStream()
    list(stream.line(line))
    fault = stream.is_final(0).fault
    assert fault is not None
    assert fault.kind is kind


@pytest.mark.parametrize(
    ("line", "tokens", "usd"),
    [
        ("Tokens: 811 sent, 12 received.", (811, 12, 0, 0), None),
        ("Tokens: 2.3k sent, 1.1k cache write, 12k cache hit, 345 received.", (2300, 345, 12000, 1100), None),
        ("Tokens: 2.3k sent, 7 received. Cost: $0.01 message, $0.25 session.", (2300, 7, 0, 0), 0.25),
    ],
)
def test_tokens_and_price_as_it_writes_them(line: str, tokens: tuple[int, ...], usd: float | None) -> None:
    stream = AiderStream()
    list(stream.line(line))
    usage = stream.is_final(0).usage
    told = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    assert told == tokens
    assert usage.usd == usd


def test_the_price_of_the_session_is_not_added_up() -> None:
    stream = AiderStream()
    for _ in range(2):
        list(stream.line("Tokens: 1 sent, 1 received. Cost: $0.01 message, $0.25 session."))
    assert stream.is_final(0).usage.usd == 0.25


def test_an_edit_that_did_not_fit_is_a_result_that_is_not_well() -> None:
    assert [one.ok for one in AiderStream().line("The LLM did not conform to the edit format.")] == [False]


def test_nothing_that_it_prints_breaks_the_reading() -> None:
    assert survives(AiderStream()).fault is None
