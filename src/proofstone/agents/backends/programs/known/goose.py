"""goose: `goose run`.

It has no limit of paths: the sandbox and the diff are what holds. By `acp:` it asks about every tool that it uses, and
has the client write its files, so that there an undeclared write is refused while it happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pydantic import JsonValue

from proofstone.agents.backends.programs.known.shared import Calls, Pieces, named, paths_of
from proofstone.agents.backends.programs.lines import count_at, fields, objects_at, shown, text_at, value_at
from proofstone.agents.backends.programs.preset import Errand, Final, Invocation, Limit, Preset
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
_TROUBLE = "Ran into this error: "
_ASKS_AGAIN = "Please re"
"""What it says to a person below an error: to retry, or to send the message again."""


def invoke(errand: Errand) -> Invocation:
    """Its tools to read are its tools to write: without either it has none of its own, and can ask for ours."""
    tools = ("--with-builtin", "developer") if errand.scope or errand.may_run else ()
    model = (f"--model={errand.model}",) if errand.model else ()
    return Invocation(
        (
            *("run", "--quiet", "--no-session", "--no-profile", *tools, *model),
            *("--output-format", "stream-json", "--instructions", "-"),
        ),
        _VARIABLES | {"GOOSE_MODE": "auto"},
        stdin=errand.prompt,
    )


def acp(errand: Errand) -> Invocation:
    model = {"GOOSE_MODEL": errand.model} if errand.model else {}
    return Invocation(("acp", "--with-builtin", "developer"), _VARIABLES | {"GOOSE_MODE": "approve"} | model)


_VARIABLES = {
    "GOOSE_DISABLE_KEYRING": "1",  # the desktop's is out of reach; it would wait for it
    "GOOSE_DISABLE_SESSION_NAMING": "true",  # which would ask the model once more
    "GOOSE_TELEMETRY_OFF": "1",
}


class GooseStream:
    """A message comes in pieces of the same id; it is whole when something else comes."""

    def __init__(self) -> None:
        self._pieces = Pieces()
        self._id = ""
        self._answered: str | None = None
        """The id of the last message that a model answered with."""
        self._words = ""
        self._model = ""
        self._requests = 0
        self._calls = Calls()
        self._complete: Mapping[str, JsonValue] = {}
        self._trouble = ""

    def line(self, text: str) -> Iterable[Activity]:
        event = fields(text)
        if event is None:
            before, found, why = text.partition("error: ")
            if found and not before.strip():
                self._trouble = why.strip()
            return ()
        return tuple(self._told(event))

    def _told(self, event: Mapping[str, JsonValue]) -> Iterator[Activity]:
        match text_at(event, "type"):
            case "message":
                yield from self._message(value_at(event, "message"))
            case "complete":
                yield from self._said()
                self._complete = event
            case "error":
                yield from self._said()
                self._trouble = text_at(event, "error")

    def _message(self, message: JsonValue) -> Iterator[Activity]:
        if (id := named(text_at(message, "id"))) != self._id:
            yield from self._said()
            self._id = id
        asked = named(text_at(message, "metadata", "inference", "requestedModel"))
        if asked:
            self._model, self._trouble = asked, ""  # it has gone on
            self._requests += self._answered != id
            self._answered = id
        for part in objects_at(message, "content"):
            match text_at(part, "type"):
                case "text" if asked:
                    self._pieces.add(text_at(part, "text"))
                case "text" if text_at(message, "role") == "assistant":
                    yield self._own_words(text_at(part, "text"))
                case "error":
                    self._trouble = text_at(part, "message")
                case "toolRequest":
                    yield from self._said()
                    yield self._used(part)
                case "toolResponse":
                    yield self._came_of_it(part)

    def _own_words(self, words: str) -> Activity:
        """Of the program's, in the model's place: no model has said that."""
        if words.startswith(_TROUBLE) or words.startswith(tuple(_KINDS)):
            self._trouble = words
        return Activity(kind=ActivityKind.NOTE, text=shown(words))

    def _said(self) -> Iterator[Activity]:
        words = "".join(self._pieces.taken())
        if words.strip():
            self._words = words
            yield Activity(kind=ActivityKind.SAID, text=shown(words))

    def _used(self, part: Mapping[str, JsonValue]) -> Activity:
        call = value_at(part, "toolCall", "value")
        name, paths = named(text_at(call, "name")), paths_of(text_at(call, "arguments", "path"))
        self._calls.add(text_at(part, "id"), name, paths)
        words = text_at(call, "arguments", "command") or text_at(part, "toolCall", "error")
        return Activity(kind=ActivityKind.TOOL, name=name, paths=paths, text=shown(words))

    def _came_of_it(self, part: Mapping[str, JsonValue]) -> Activity:
        call = self._calls.of(text_at(part, "id"))
        result = value_at(part, "toolResult")
        texts = [text_at(item, "text") for item in objects_at(result, "value", "content")]
        words = "\n".join(filter(None, texts)) or text_at(result, "error")
        good = text_at(result, "status") == "success" and value_at(result, "value", "isError") is not True
        return Activity(kind=ActivityKind.RESULT, name=call.tool, paths=call.paths, text=shown(words), ok=good)

    def final(self, exit_code: int | None) -> Final:
        """The exit code tells nothing: it is 0 after most errors of the provider."""
        usage = Usage(
            requests=max(1, self._requests),
            input_tokens=count_at(self._complete, "input_tokens"),
            output_tokens=count_at(self._complete, "output_tokens"),
            cache_read_tokens=count_at(self._complete, "cache_read_input_tokens"),
            cache_write_tokens=count_at(self._complete, "cache_write_input_tokens"),
            usd=None,
        )
        words = "".join(self._pieces).strip() or self._words.strip()
        return Final(words, usage, self._model, _fault(self._trouble) if self._trouble else None)


def _fault(trouble: str) -> Fault:
    why = trouble.removeprefix(_TROUBLE).partition(f"\n\n{_ASKS_AGAIN}")[0].strip()
    kind = next((kind for words, kind in _KINDS.items() if why.startswith(words)), FaultKind.FAILED)
    return Fault(kind=kind, why=shown(why))


PRESET = Preset(
    name="goose",
    program="goose",
    install="as its own site says; from npm it is called goose-binary-linux-x64 (@aaif/goose-binary-linux-x64): "
    "name that as `path` under [programs.goose]",
    minimum="1.52.0",
    invoke=invoke,
    stream=GooseStream,
    limit=Limit.NONE,
    limits="none by `cli:`; by `acp:` it asks before each tool, and the client writes its files",
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
    logged_in=(".config/goose/secrets.yaml", ".config/goose/config.yaml"),
    startup=(
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
    renewed=(
        ".config/goose/chatgpt_codex/tokens.json*",
        ".config/goose/databricks/oauth/*",
        ".config/goose/gemini_oauth/tokens.json*",
        ".config/goose/githubcopilot/info.json*",
        ".config/goose/githubcopilot/*/info.json*",
        ".config/goose/huggingface/oauth/tokens.json*",
        ".config/goose/kimicode/token*.json*",
        ".config/goose/xai_oauth/tokens.json*",
    ),
    acp=acp,
    acp_mode="approve",
    troubles=(
        "It ends with 0 after an error of the provider.",
        "A key that it keeps in the desktop's keyring cannot be reached: set it in the environment.",
        "Without a scope and without commands it has no tools of its own; with either it has all of them.",
        "A provider other than OpenAI, Anthropic, Google and OpenRouter needs `hosts`.",
    ),
)
