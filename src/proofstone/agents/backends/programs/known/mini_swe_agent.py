"""mini-swe-agent: `mini`.

All that it can do is to run commands. It has no limit of its own, and none could hold: the sandbox and the diff are
what counts. It prints text for people, in blocks with a heading each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from proofstone.agents.backends.programs.known.shared import Pieces, fault_in
from proofstone.agents.backends.programs.lines import amount_in, shown
from proofstone.agents.backends.programs.preset import Errand, Final, Invocation, Limit, Preset
from proofstone.agents.models import Activity, ActivityKind, Fault, FaultKind
from proofstone.common.models import Usage

_LONGEST_ARGUMENT = 100_000
"""Bytes. The system takes 128 kB, and the program reads a task from nowhere else."""
_TOO_LONG = (
    "Your task is in the file that the variable PROOFSTONE_TASK names. Read all of it first, in parts, for "
    "instance by `sed "
    '-n 1,150p "$PROOFSTONE_TASK"`; then do what it says.'
)

_STEP = re.compile(r"^mini-swe-agent \(step (?P<step>\d+), \$(?P<usd>\d+(?:\.\d+)?)\):$")
_HEADING = re.compile(r"^(System|User|Tool|Exit):$")
_RULE = re.compile(r"^─+$")
_FENCE = "```"
_SAVED = "Saved trajectory to "
_NOT_EXECUTED = "action was not executed"
_GAVE_UP = {
    "RepeatedFormatError": "it answered three times without a command",
    "LimitsExceeded": "it reached a limit of its own",
    "TimeExceeded": "it reached a limit of its own",
}


def invoke(errand: Errand) -> Invocation:
    fits = len(errand.prompt.encode("utf-8", "replace")) <= _LONGEST_ARGUMENT
    model = (f"--model={errand.model}",) if errand.model else ()
    return Invocation(
        (
            *("--yolo", "--exit-immediately", "--cost-limit", "0", "--output", "/dev/null", *model),
            f"--task={errand.prompt if fits else _TOO_LONG}",
        ),
        _VARIABLES,
        handed={} if fits else {"PROOFSTONE_TASK": errand.prompt},
    )


_VARIABLES = {
    "MSWEA_CONFIGURED": "true",
    "MSWEA_SILENT_STARTUP": "1",
    "MSWEA_COST_TRACKING": "ignore_errors",  # or it ends at a model whose price it does not know
    "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "4",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "COLUMNS": "10000",  # it breaks lines that are longer
}


class MiniStream:
    """A block is whole when the next begins."""

    def __init__(self) -> None:
        self._heading = ""
        self._lines = Pieces()
        self._words = ""
        self._steps = 0
        self._usd = 0.0

    def line(self, text: str) -> Iterable[Activity]:
        line = text.rstrip()
        step, heading = _STEP.match(line), _HEADING.match(line)
        if not step and not heading and not _RULE.match(line):
            self._lines.add(line)
            return ()
        told = tuple(self._told(list(self._lines.taken())))
        self._heading = heading[1] if heading else "Step" if step else ""
        if step:
            self._steps, self._usd = int(amount_in(step["step"]) or 0), amount_in(step["usd"]) or 0.0
        return told

    def _told(self, lines: list[str]) -> Iterator[Activity]:
        if self._heading == "Step":
            words, *commands = _parts(lines)
            if words:
                self._words = words
                yield Activity(kind=ActivityKind.SAID, text=shown(words))
            for command in commands:
                yield Activity(kind=ActivityKind.TOOL, name="bash", text=shown(command))
        elif self._heading == "Tool" and _NOT_EXECUTED not in lines:
            code = lines[1] if lines[:1] == ["<returncode>"] and len(lines) > 1 else ""
            words = "\n".join(lines[3:])
            yield Activity(kind=ActivityKind.RESULT, name="bash", text=shown(words), ok=code == "0")

    def final(self, exit_code: int | None) -> Final:
        usage = Usage(requests=max(1, self._steps), usd=self._usd or None)
        last = [line for line in self._lines if not line.startswith(_SAVED)]
        said = "\n".join(last).strip() if self._heading == "Exit" else ""
        return Final(said or self._words, usage, fault=_fault(said))


def _parts(lines: Iterable[str]) -> tuple[str, ...]:
    """What it said, then its commands, each between two fences."""
    parts: list[list[str]] = [[]]
    for line in lines:
        if line == _FENCE:
            parts.append([])
        else:
            parts[-1].append(line)
    return tuple("\n".join(part).strip() for part in (parts[0], *parts[1::2]))


def _fault(said: str) -> Fault | None:
    """Why it gave up, in the words that it left with."""
    if why := _GAVE_UP.get(said):
        return Fault(kind=FaultKind.FAILED, why=f"{said}: {why}")
    return fault_in(said)


PRESET = Preset(
    name="mini-swe-agent",
    program="mini",
    install="pipx install mini-swe-agent && pipx inject mini-swe-agent mcp",
    minimum="2.4.0",
    invoke=invoke,
    stream=MiniStream,
    limit=Limit.NONE,
    limits="none: all that it does are commands",
    hosts=("api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com", "openrouter.ai"),
    keys=(
        "OPENAI_API_KEY", "OPENAI_API_BASE", "ANTHROPIC_API_KEY", "ANTHROPIC_API_BASE", "GEMINI_API_KEY",
        "OPENROUTER_API_KEY", "OLLAMA_API_BASE", "MSWEA_MODEL_NAME",
    ),
    login=(".config/mini-swe-agent/.env",),
    logged_in=(".config/mini-swe-agent/.env",),
    startup=(".config/mini-swe-agent/.env",),
    troubles=(
        "It cannot work without commands, and does not keep to a role that may run none.",
        "It prints text only: tokens are not told, and the price is rounded to cents.",
        "A task above 100 kB it is told to read from a file.",
        "It needs `mcp` in its environment, and ends at once without it.",
    ),
)  # fmt: skip
