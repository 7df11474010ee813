"""mini-swe-agent: `mini`.

It can only run commands. It has no limit of its own, and none could be enforced: only the sandbox and the diff limit
it. It prints text for people, in blocks with a heading each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from proofstone.agents.backends.programs.known.shared import TextBuffer, parse_litellm_fault
from proofstone.agents.backends.programs.lines import parse_amount, shorten
from proofstone.agents.backends.programs.preset import EditLimit, Invocation, LaunchRequest, Preset, ProgramResult
from proofstone.agents.models import Activity, ActivityKind, Fault, FaultKind
from proofstone.common.models import Usage

_MAX_ARGUMENT_BYTES = 100_000
"""The system accepts 128 kB, and the program reads a task from nowhere else."""
_TASK_IN_FILE = (
    "Your task is in a file. The environment variable PROOFSTONE_TASK holds its path. First read the whole file in "
    'parts, for example with `sed -n 1,150p "$PROOFSTONE_TASK"`. Then do what it says.'
)

_STEP = re.compile(r"^mini-swe-agent \(step (?P<step>\d+), \$(?P<usd>\d+(?:\.\d+)?)\):$")
_HEADING = re.compile(r"^(System|User|Tool|Exit):$")
_RULE = re.compile(r"^─+$")
_FENCE = "```"
_SAVED = "Saved trajectory to "
_NOT_EXECUTED = "action was not executed"
_STOP_REASONS = {
    "RepeatedFormatError": "it answered three times without a command",
    "LimitsExceeded": "it reached one of its own limits",
    "TimeExceeded": "it reached one of its own limits",
}


def invoke(errand: LaunchRequest) -> Invocation:
    fits = len(errand.prompt.encode("utf-8", "replace")) <= _MAX_ARGUMENT_BYTES
    model = (f"--model={errand.model}",) if errand.model else ()
    return Invocation(
        (
            *("--yolo", "--exit-immediately", "--cost-limit", "0", "--output", "/dev/null", *model),
            f"--task={errand.prompt if fits else _TASK_IN_FILE}",
        ),
        _VARIABLES,
        files={} if fits else {"PROOFSTONE_TASK": errand.prompt},
    )


_VARIABLES = {
    "MSWEA_CONFIGURED": "true",
    "MSWEA_SILENT_STARTUP": "1",
    "MSWEA_COST_TRACKING": "ignore_errors",  # otherwise it ends if it does not know the price of the model
    "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "4",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "COLUMNS": "10000",  # it wraps longer lines
}


class MiniStream:
    """Read the output. A block is complete when the next begins."""

    def __init__(self) -> None:
        self._heading = ""
        self._lines = TextBuffer()
        self._text = ""
        self._steps = 0
        self._usd = 0.0

    def line(self, text: str) -> Iterable[Activity]:
        line = text.rstrip()
        step, heading = _STEP.match(line), _HEADING.match(line)
        if not step and not heading and not _RULE.match(line):
            self._lines.add(line)
            return ()
        activities = tuple(self._read_block(list(self._lines.take_all())))
        self._heading = heading[1] if heading else "Step" if step else ""
        if step:
            self._steps, self._usd = int(parse_amount(step["step"]) or 0), parse_amount(step["usd"]) or 0.0
        return activities

    def _read_block(self, lines: list[str]) -> Iterator[Activity]:
        if self._heading == "Step":
            text, *commands = _split_fences(lines)
            if text:
                self._text = text
                yield Activity(kind=ActivityKind.SAID, text=shorten(text))
            for command in commands:
                yield Activity(kind=ActivityKind.TOOL, name="bash", text=shorten(command))
        elif self._heading == "Tool" and _NOT_EXECUTED not in lines:
            code = lines[1] if lines[:1] == ["<returncode>"] and len(lines) > 1 else ""
            text = "\n".join(lines[3:])
            yield Activity(kind=ActivityKind.RESULT, name="bash", text=shorten(text), ok=code == "0")

    def is_final(self, exit_code: int | None) -> ProgramResult:
        usage = Usage(requests=max(1, self._steps), usd=self._usd or None)
        last_lines = [line for line in self._lines if not line.startswith(_SAVED)]
        message = "\n".join(last_lines).strip() if self._heading == "Exit" else ""
        return ProgramResult(message or self._text, usage, fault=_find_fault(message))


def _split_fences(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the text, then the commands, which are each between two fences."""
    parts: list[list[str]] = [[]]
    for line in lines:
        if line == _FENCE:
            parts.append([])
        else:
            parts[-1].append(line)
    return tuple("\n".join(part).strip() for part in (parts[0], *parts[1::2]))


def _find_fault(message: str) -> Fault | None:
    """Return why the program gave up, from its last message, or None."""
    if why := _STOP_REASONS.get(message):
        return Fault(kind=FaultKind.FAILED, why=f"{message}: {why}")
    return parse_litellm_fault(message)


PRESET = Preset(
    name="mini-swe-agent",
    program="mini",
    install="pipx install mini-swe-agent && pipx inject mini-swe-agent mcp",
    minimum="2.4.0",
    invoke=invoke,
    stream=MiniStream,
    limit=EditLimit.NONE,
    limit_description="none: it only runs commands",
    hosts=("api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com", "openrouter.ai"),
    keys=(
        "OPENAI_API_KEY", "OPENAI_API_BASE", "ANTHROPIC_API_KEY", "ANTHROPIC_API_BASE", "GEMINI_API_KEY",
        "OPENROUTER_API_KEY", "OLLAMA_API_BASE", "MSWEA_MODEL_NAME",
    ),
    login=(".config/mini-swe-agent/.env",),
    login_markers=(".config/mini-swe-agent/.env",),
    startup_files=(".config/mini-swe-agent/.env",),
    known_problems=(
        "It cannot work without commands, even in a role that may run none.",
        "It prints only text: it does not report tokens, and the price is rounded to cents.",
        "It is told to read a task above 100 kB from a file.",
        "It needs `mcp` in its environment, and otherwise ends at once.",
    ),
)  # fmt: skip
