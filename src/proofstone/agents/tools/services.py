"""The tools that run commands in the sandbox, search the memory, and access the web through the user's providers.

What the memory and the web return is data, limited in size; nobody has to follow what it says.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import Final

from proofstone.agents.executors.context import ShellCommand
from proofstone.agents.memory.models import MemoryEntry
from proofstone.agents.roles.models.gate import ClaimedDispute
from proofstone.agents.rules.tool_rules import ToolFailedError, format_path
from proofstone.agents.tools.models import (
    DisputeArguments,
    MemorySearchArguments,
    RunArguments,
    WebFetchArguments,
    WebSearchArguments,
)
from proofstone.agents.tools.tool_context import ToolContext, ToolDeadline
from proofstone.agents.web.pages import WebPage
from proofstone.errors import InputError
from proofstone.sandbox.job import SandboxResult

_MAX_HEAD_BYTES: Final = 10 << 10
_MAX_TAIL_BYTES: Final = 20 << 10


@dataclass
class OutputEnds:
    """The beginning and the end of an output of any length."""

    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    size: int = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        free = _MAX_HEAD_BYTES - len(self.head)
        self.head += data[:free]
        self.tail += data[free:]
        del self.tail[:-_MAX_TAIL_BYTES]

    @property
    def text(self) -> str:
        omitted = self.size - len(self.head) - len(self.tail)
        if not omitted:
            return _decode(self.head + self.tail)
        return f"{_decode(self.head)}\n[{omitted:,} bytes of the output left out here]\n{_decode(self.tail)}"


def _decode(data: bytearray) -> str:
    return data.decode("utf-8", "replace").strip("\n")


def run_command(ground: ToolContext, wanted: RunArguments, deadline: ToolDeadline) -> str:
    if ground.run is None:
        raise AssertionError("a toolbox offers commands only where they can be run")
    output = OutputEnds()
    seconds = min(wanted.seconds, deadline.remaining)
    execution = ground.run(ShellCommand(wanted.command, seconds=seconds, on_output=output.add))
    message = "\n".join(filter(None, (describe_ending(execution, seconds), output.text or "It printed nothing.")))
    if execution.exit_code is None or _find_signal(execution.exit_code):
        raise ToolFailedError(message)
    return message


def record_dispute(ground: ToolContext, wanted: DisputeArguments, deadline: ToolDeadline) -> str:
    """Keep what the agent disputes for the answer. The gate puts it to a person."""
    if ground.disputes is None:
        raise AssertionError("a toolbox offers disputes only where somebody receives them")
    dispute = ClaimedDispute(subject=wanted.subject, because=wanted.because)
    if dispute not in ground.disputes:
        ground.disputes.append(dispute)
    return "Recorded. A person decides about it when you have answered. Leave the disputed thing as it is."


PASSED_TEXT: Final = "Exit code 0."
"""How the result of a command begins that ended well."""


def describe_ending(execution: SandboxResult, seconds: float) -> str:
    """Describe how a command ended."""
    if execution.setup_error:
        return f"It could not be started: {execution.setup_error}"
    if execution.timed_out:
        return f"It was ended: {execution.limit or f'it was still running after {seconds:.0f} s'}."
    if execution.cancelled:
        return "It was ended: the work has been stopped."
    if execution.limit:
        return f"It was ended: {execution.limit}."
    signal_name = _find_signal(execution.exit_code or 0)
    return f"Exit code {execution.exit_code}{f': ended by {signal_name}' if signal_name else ''}."


def _find_signal(code: int) -> str:
    """Return the signal that a shell's exit code stands for."""
    return signal.Signals(code - 128).name if code - 128 in {member.value for member in signal.Signals} else ""


_MAX_ENTRIES: Final = 10
_MAX_CONTENT_CHARS: Final = 1800
"""Characters of one entry; ten entries are a page."""


def search_memory(ground: ToolContext, wanted: MemorySearchArguments, _deadline: ToolDeadline) -> str:
    if ground.memory is None:
        raise AssertionError("a toolbox offers the memory only where there is one")
    try:
        entries = ground.memory.search((wanted.query,), _MAX_ENTRIES)
    except InputError as error:  # somebody has edited its file
        raise ToolFailedError(f"The memory cannot be read: {error.message}") from error
    if not entries:
        return f"The memory has nothing about {format_path(wanted.query)}."
    return "\n\n".join(map(_render_entry, entries))


def _render_entry(entry: MemoryEntry) -> str:
    omitted = len(entry.content) - _MAX_CONTENT_CHARS
    content = entry.content if omitted <= 0 else f"{entry.content[:_MAX_CONTENT_CHARS]}… [{omitted:,} more characters]"
    return f"{format_path(entry.entry_id)} ({entry.type}, {format_path(entry.timestamp)})\n{content}"


MAX_RESULT_CHARS: Final = 20_000
"""Characters of one result."""
_MAX_WEB_HEAD_CHARS: Final = 15_000


def search_web(ground: ToolContext, wanted: WebSearchArguments, deadline: ToolDeadline) -> str:
    if ground.web is None or ground.web.search is None:
        raise AssertionError("a toolbox offers a search only with a search provider")
    text = ground.web.search(wanted.query, deadline.remaining, ground.cancel)
    return _shorten(text) or "It found nothing."


def fetch_page(ground: ToolContext, wanted: WebFetchArguments, deadline: ToolDeadline) -> str:
    """Fetch a page. Its addresses are shown in full, because claims about the page are looked up by them."""
    if ground.web is None or ground.web.fetch is None:
        raise AssertionError("a toolbox offers pages only with a fetch provider")
    page = ground.web.fetch(wanted.url, deadline.remaining, ground.cancel)
    return WebPage(page.addresses, _shorten(page.text) or "The page is empty.").format_text()


def _shorten(text: str) -> str:
    """Leave out the middle of a long text."""
    text = text.encode("utf-8", "replace").decode().strip()  # JSON can contain unpaired surrogates
    omitted = len(text) - MAX_RESULT_CHARS
    if omitted <= 0:
        return text
    return (
        f"{text[:_MAX_WEB_HEAD_CHARS]}\n[{omitted:,} characters left out "
        f"here]\n{text[_MAX_WEB_HEAD_CHARS - MAX_RESULT_CHARS :]}"
    )
