"""aider: `aider --message-file`.

It prints text for people, from which fixed phrases are read. It edits any file that the model names: only the sandbox
and the diff limit it. It runs no commands: whatever would need a person's consent is declined.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from proofstone.agents.backends.programs.known.shared import (
    TextBuffer,
    parse_litellm_fault,
    shorten_name,
    shorten_paths,
)
from proofstone.agents.backends.programs.lines import parse_amount, shorten
from proofstone.agents.backends.programs.preset import (
    EditLimit,
    FileArgument,
    Invocation,
    LaunchRequest,
    Preset,
    ProgramResult,
)
from proofstone.agents.models import Activity, ActivityKind, Fault, FaultKind
from proofstone.common.models import Usage

_MAX_FILES = 50
"""Files that it is given at the start: it reads all of them again and again. It finds others as it needs them."""

_CHAT_START = re.compile(r"^(?:Repo-map: .*|Added .* to the chat\.?)$")
_MODEL = re.compile(r"^(?:Main model|Model): (\S+) with ")
_TOKENS = re.compile(
    r"^Tokens: (?P<sent>[\d.]+k?) sent(?:, (?P<write>[\d.]+k?) cache write)?(?:, (?P<hit>[\d.]+k?) cache hit)?, "
    r"(?P<received>[\d.]+k?) received\.(?: Cost: \$[\d.]+ message, \$(?P<usd>[\d.]+) session\.)?"
)
_APPLIED = re.compile(r"^Applied edit to (.+)$")
_SKIPPED = re.compile(r"^Skipping edits to (.+?) (?:that|without)\b")
_FAILED_EDIT = "The LLM did not conform to the edit format."
_NO_MODEL = "No LLM model was specified and no API keys were provided."
_RETRIES = "Retrying in "
_NOTES = ("Only 3 reflections allowed", "Did not apply")


def invoke(errand: LaunchRequest) -> Invocation:
    edits: tuple[str, ...] = tuple(f"--file={path}" for path in errand.files[:_MAX_FILES]) if errand.scope else _ASK
    model = (f"--model={errand.model}",) if errand.model else ()
    return Invocation(
        ("--message-file", FileArgument("PROOFSTONE_MESSAGE"), *_OPTIONS, *model, *edits),
        {"COLUMNS": "1000", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        files={"PROOFSTONE_MESSAGE": errand.prompt},
    )


_ASK = ("--chat-mode", "ask")

_OPTIONS = (
    "--yes-always", "--no-auto-commits", "--no-dirty-commits", "--no-gitignore", "--no-auto-lint", "--no-auto-test",
    "--no-suggest-shell-commands", "--no-detect-urls", "--disable-playwright", "--no-pretty", "--no-stream",
    "--no-fancy-input", "--no-check-update", "--no-show-release-notes", "--no-show-model-warnings", "--no-analytics",
    "--chat-history-file", "/dev/null", "--input-history-file", "/dev/null", "--env-file", "/dev/null",
    "--map-tokens", "0",  # its map of the repository would be written to the work tree
)  # fmt: skip


class AiderStream:
    def __init__(self) -> None:
        self._lines = TextBuffer()
        self._text = ""
        self._model = ""
        self._usage = Usage(usd=None)
        self._fault: Fault | None = None

    def line(self, text: str) -> Iterable[Activity]:
        return tuple(self._read_line(text.rstrip()))

    def _read_line(self, text: str) -> Iterator[Activity]:
        if match := _TOKENS.match(text):
            self._fault = None  # the provider has answered after all
            self._count_usage(match)
            yield from self._end_message()
        elif match := _APPLIED.match(text):
            yield Activity(kind=ActivityKind.RESULT, name="edit", paths=shorten_paths(match[1]), ok=True)
        elif match := _SKIPPED.match(text):
            yield Activity(kind=ActivityKind.REFUSED, name="edit", paths=shorten_paths(match[1]), text=shorten(text))
        elif text == _FAILED_EDIT:
            yield Activity(kind=ActivityKind.RESULT, name="edit", text=text, ok=False)
        elif fault := parse_litellm_fault(text):
            self._fault = fault
            yield Activity(kind=ActivityKind.NOTE, text=shorten(text))
        elif text == _NO_MODEL:
            self._fault = Fault(kind=FaultKind.DENIED, why=text)
        elif _CHAT_START.match(text):
            self._lines.take_all()
        elif text.startswith(_RETRIES):
            self._lines.take_all()  # the text of the error
            yield Activity(kind=ActivityKind.NOTE, text=shorten(text))
        elif match := _MODEL.match(text):
            self._model = shorten_name(match[1])
        elif text.startswith(_NOTES):
            yield Activity(kind=ActivityKind.NOTE, text=shorten(text))
        else:
            self._lines.add(text)

    def _end_message(self) -> Iterator[Activity]:
        text = "\n".join(self._lines.take_all())
        if text.strip():
            self._text = text
            yield Activity(kind=ActivityKind.SAID, text=shorten(text))

    def _count_usage(self, match: re.Match[str]) -> None:
        """Count the usage. Tokens are reported for each message, the cost for the whole session."""
        self._usage += Usage(
            requests=1,
            input_tokens=_parse_count(match["sent"]),
            output_tokens=_parse_count(match["received"]),
            cache_read_tokens=_parse_count(match["hit"]),
            cache_write_tokens=_parse_count(match["write"]),
            usd=None,
        )
        if (usd := parse_amount(match["usd"])) is not None:
            self._usage = self._usage.model_copy(update={"usd": usd})

    def is_final(self, exit_code: int | None) -> ProgramResult:
        """Return the result. The exit code is no help: it is always 0, whatever the provider says."""
        return ProgramResult(
            self._text.strip() or "\n".join(self._lines).strip(), self._usage, self._model, self._fault
        )


def _parse_count(text: str | None) -> int:
    """Parse a number as aider writes it: `811`, `2.3k`."""
    digits, thousands, _ = (text or "").partition("k")
    return round(parse_amount(f"{digits}e3" if thousands else digits) or 0)


PRESET = Preset(
    name="aider",
    program="aider",
    install="pipx install aider-chat",
    minimum="0.86.0",
    invoke=invoke,
    stream=AiderStream,
    limit=EditLimit.NONE,
    limit_description="none: it edits what the model names; without a scope it only answers (--chat-mode ask)",
    hosts=(
        "api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com", "openrouter.ai",
        "api.deepseek.com",
    ),
    keys=(
        "OPENAI_API_KEY", "OPENAI_API_BASE", "ANTHROPIC_API_KEY", "ANTHROPIC_API_BASE", "GEMINI_API_KEY",
        "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY", "OLLAMA_API_BASE", "AZURE_API_KEY", "AZURE_API_BASE",
        "AZURE_API_VERSION", "AIDER_MODEL", "AIDER_WEAK_MODEL", "AIDER_EDITOR_MODEL", "AIDER_EDIT_FORMAT",
    ),
    known_problems=(
        "It prints only text: tokens are rounded, and its actions are read from its messages.",
        "It ends with 0 whatever the provider says, and retries an overloaded one for a minute.",
        "With neither a model nor a key it waits five minutes for a browser.",
        "It runs no commands, and reads neither ~/.aider.conf.yml nor ~/.env: pass its keys in the environment.",
        "It sees only the files of the scope until the model names others.",
    ),
)  # fmt: skip
