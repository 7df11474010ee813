"""goose: `goose run`.

It has no limit on paths: only the sandbox and the diff limit it. With `acp:` it asks about every tool that it uses and
has the client write its files, so an undeclared write is refused at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pydantic import JsonValue

from proofstone.agents.backends.programs.known.shared import RecordedCalls, TextBuffer, shorten_name, shorten_paths
from proofstone.agents.backends.programs.lines import get_count, get_objects, get_text, get_value, parse_object, shorten
from proofstone.agents.backends.programs.preset import EditLimit, Invocation, LaunchRequest, Preset, ProgramResult
from proofstone.agents.models import Activity, ActivityKind, Fault, FaultKind
from proofstone.common.models import Usage

_KINDS = {
    "No provider configured": FaultKind.DENIED,
    "Authentication error": FaultKind.DENIED,
    "Credits exhausted": FaultKind.DENIED,
    "Rate limit exceeded": FaultKind.UNAVAILABLE,
    "Server error": FaultKind.UNAVAILABLE,
    "Network error": FaultKind.UNAVAILABLE,
    "Context length exceeded": FaultKind.REJECTED,
}
"""By the words that its own error begins with."""
_ERROR_PREFIX = "Ran into this error: "
_RETRY_ADVICE = "Please re"
"""The advice to a person below an error: to retry, or to resend the message."""


def invoke(errand: LaunchRequest) -> Invocation:
    """Build the command line. Its read and write tools are the same: if it may do neither, it gets none and asks for
    ours."""
    tools = ("--with-builtin", "developer") if errand.scope or errand.can_run else ()
    model = (f"--model={errand.model}",) if errand.model else ()
    return Invocation(
        (
            *("run", "--quiet", "--no-session", "--no-profile", *tools, *model),
            *("--output-format", "stream-json", "--instructions", "-"),
        ),
        _VARIABLES | {"GOOSE_MODE": "auto"},
        stdin=errand.prompt,
    )


def invoke_acp(errand: LaunchRequest) -> Invocation:
    model = {"GOOSE_MODEL": errand.model} if errand.model else {}
    return Invocation(("acp", "--with-builtin", "developer"), _VARIABLES | {"GOOSE_MODE": "approve"} | model)


_VARIABLES = {
    "GOOSE_DISABLE_KEYRING": "1",  # the desktop's keyring cannot be reached, and the program would wait for it
    "GOOSE_DISABLE_SESSION_NAMING": "true",  # naming would cost another request to the model
    "GOOSE_TELEMETRY_OFF": "1",
}


class GooseStream:
    """Read the output. A message arrives in pieces with the same id, and is complete when another event arrives."""

    def __init__(self) -> None:
        self._pieces = TextBuffer()
        self._id = ""
        self._answered_id: str | None = None
        """The id of the last message that came from a model."""
        self._text = ""
        self._model = ""
        self._requests = 0
        self._calls = RecordedCalls()
        self._complete: Mapping[str, JsonValue] = {}
        self._error = ""

    def line(self, text: str) -> Iterable[Activity]:
        event = parse_object(text)
        if event is None:
            before, separator, why = text.partition("error: ")
            if separator and not before.strip():
                self._error = why.strip()
            return ()
        return tuple(self._read_event(event))

    def _read_event(self, event: Mapping[str, JsonValue]) -> Iterator[Activity]:
        match get_text(event, "type"):
            case "message":
                yield from self._read_message(get_value(event, "message"))
            case "complete":
                yield from self._end_message()
                self._complete = event
            case "error":
                yield from self._end_message()
                self._error = get_text(event, "error")

    def _read_message(self, message: JsonValue) -> Iterator[Activity]:
        if (id := shorten_name(get_text(message, "id"))) != self._id:
            yield from self._end_message()
            self._id = id
        model = shorten_name(get_text(message, "metadata", "inference", "requestedModel"))
        if model:
            self._model, self._error = model, ""  # the program has recovered
            self._requests += self._answered_id != id
            self._answered_id = id
        for part in get_objects(message, "content"):
            match get_text(part, "type"):
                case "text" if model:
                    self._pieces.add(get_text(part, "text"))
                case "text" if get_text(message, "role") == "assistant":
                    yield self._read_notice(get_text(part, "text"))
                case "error":
                    self._error = get_text(part, "message")
                case "toolRequest":
                    yield from self._end_message()
                    yield self._read_call(part)
                case "toolResponse":
                    yield self._read_result(part)

    def _read_notice(self, text: str) -> Activity:
        """Read a message of the program itself, which no model has written."""
        if text.startswith(_ERROR_PREFIX) or text.startswith(tuple(_KINDS)):
            self._error = text
        return Activity(kind=ActivityKind.NOTE, text=shorten(text))

    def _end_message(self) -> Iterator[Activity]:
        text = "".join(self._pieces.take_all())
        if text.strip():
            self._text = text
            yield Activity(kind=ActivityKind.SAID, text=shorten(text))

    def _read_call(self, part: Mapping[str, JsonValue]) -> Activity:
        call = get_value(part, "toolCall", "value")
        name, paths = shorten_name(get_text(call, "name")), shorten_paths(get_text(call, "arguments", "path"))
        self._calls.add(get_text(part, "id"), name, paths)
        text = get_text(call, "arguments", "command") or get_text(part, "toolCall", "error")
        return Activity(kind=ActivityKind.TOOL, name=name, paths=paths, text=shorten(text))

    def _read_result(self, part: Mapping[str, JsonValue]) -> Activity:
        call = self._calls.get(get_text(part, "id"))
        result = get_value(part, "toolResult")
        texts = [get_text(content, "text") for content in get_objects(result, "value", "content")]
        text = "\n".join(filter(None, texts)) or get_text(result, "error")
        succeeded = get_text(result, "status") == "success" and get_value(result, "value", "isError") is not True
        return Activity(kind=ActivityKind.RESULT, name=call.tool, paths=call.paths, text=shorten(text), ok=succeeded)

    def is_final(self, exit_code: int | None) -> ProgramResult:
        """Return the result. The exit code is no help: it is 0 after most errors of the provider."""
        usage = Usage(
            requests=max(1, self._requests),
            input_tokens=get_count(self._complete, "input_tokens"),
            output_tokens=get_count(self._complete, "output_tokens"),
            cache_read_tokens=get_count(self._complete, "cache_read_input_tokens"),
            cache_write_tokens=get_count(self._complete, "cache_write_input_tokens"),
            usd=None,
        )
        text = "".join(self._pieces).strip() or self._text.strip()
        return ProgramResult(text, usage, self._model, _build_fault(self._error) if self._error else None)


def _build_fault(error: str) -> Fault:
    why = error.removeprefix(_ERROR_PREFIX).partition(f"\n\n{_RETRY_ADVICE}")[0].strip()
    kind = next((kind for phrase, kind in _KINDS.items() if why.startswith(phrase)), FaultKind.FAILED)
    return Fault(kind=kind, why=shorten(why))


PRESET = Preset(
    name="goose",
    program="goose",
    install="see its own site; the npm package @aaif/goose-binary-linux-x64 names the program goose-binary-linux-x64: "
    "set that as `path` under [programs.goose]",
    minimum="1.52.0",
    invoke=invoke,
    stream=GooseStream,
    limit=EditLimit.NONE,
    limit_description="none with `cli:`; with `acp:` it asks before each tool, and the client writes its files",
    hosts=("api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com", "openrouter.ai"),
    keys=(
        "GOOSE_PROVIDER",
        "GOOSE_MODEL",
        "OPENAI_API_KEY",
        "OPENAI_HOST",
        "OPENAI_BASE_PATH",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_HOST",
        "GOOGLE_API_KEY",
        "GOOGLE_HOST",
        "OPENROUTER_API_KEY",
        "OPENROUTER_HOST",
        "OLLAMA_HOST",
        "DATABRICKS_HOST",
        "DATABRICKS_TOKEN",
    ),
    login=(".config/goose",),
    login_markers=(".config/goose/secrets.yaml", ".config/goose/config.yaml"),
    startup_files=(
        ".config/goose/config.yaml",
        ".config/goose/permission.yaml",
        ".config/goose/permissions",
        ".config/goose/custom_providers",
        ".config/goose/declarative_providers",
        ".config/goose/.goosehints",
        ".config/goose/AGENTS.md",
        ".config/goose/memory",
        ".config/goose/plugins",
        ".config/goose/prompts",
        ".config/goose/recipes",
        ".config/goose/skills",
    ),
    renewable_files=(
        ".config/goose/chatgpt_codex/tokens.json*",
        ".config/goose/databricks/oauth/*",
        ".config/goose/gemini_oauth/tokens.json*",
        ".config/goose/githubcopilot/info.json*",
        ".config/goose/githubcopilot/*/info.json*",
        ".config/goose/huggingface/oauth/tokens.json*",
        ".config/goose/kimicode/token*.json*",
        ".config/goose/xai_oauth/tokens.json*",
    ),
    acp=invoke_acp,
    acp_mode="approve",
    known_problems=(
        "It ends with 0 after an error of the provider.",
        "It cannot use a key in the desktop's keyring: set the key in the environment.",
        "Without a scope and without commands it has no tools of its own; with either it has all of them.",
        "A provider other than OpenAI, Anthropic, Google and OpenRouter needs `hosts`.",
    ),
)
