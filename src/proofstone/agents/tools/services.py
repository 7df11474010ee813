"""The tool that runs commands, in the sandbox.

The tool that searches the memory. What it shows is data: whatever an entry says, nobody has to follow it.

The tools that look at the web, through whoever the person has named. What they show is data, and bounded.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import Final

from proofstone.agents.executors.context import ShellJob
from proofstone.agents.memory.models import MemoryEntry
from proofstone.agents.rules.tool_rules import FailedError, shown
from proofstone.agents.tools.models import MemorySearch, Run, WebFetch, WebSearch
from proofstone.agents.tools.tool_context import Deadline, Ground
from proofstone.agents.web.pages import Page
from proofstone.errors import InputError
from proofstone.sandbox.job import Execution

_HEAD: Final = 10 << 10
_TAIL: Final = 20 << 10


@dataclass
class Ends:
    """The beginning and the end of an output of any length."""

    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    size: int = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        free = _HEAD - len(self.head)
        self.head += data[:free]
        self.tail += data[free:]
        del self.tail[:-_TAIL]

    @property
    def text(self) -> str:
        left = self.size - len(self.head) - len(self.tail)
        if not left:
            return _decoded(self.head + self.tail)
        return f"{_decoded(self.head)}\n[{left:,} bytes of the output left out here]\n{_decoded(self.tail)}"


def _decoded(data: bytearray) -> str:
    return data.decode("utf-8", "replace").strip("\n")


def run(ground: Ground, wanted: Run, deadline: Deadline) -> str:
    if ground.run is None:
        raise AssertionError("a toolbox offers commands only where they can be run")
    output = Ends()
    seconds = min(wanted.seconds, deadline.left)
    done = ground.run(ShellJob(wanted.command, seconds=seconds, on_output=output.add))
    said = "\n".join(filter(None, (ending(done, seconds), output.text or "It printed nothing.")))
    if done.exit_code is None or _signal(done.exit_code):
        raise FailedError(said)
    return said


def ending(done: Execution, seconds: float) -> str:
    """How a command came to its end, in words."""
    if done.setup_error:
        return f"It could not be started: {done.setup_error}"
    if done.timed_out:
        return f"It was ended: {done.limit or f'it still ran after {seconds:.0f} s'}."
    if done.cancelled:
        return "It was ended: the work has been stopped."
    if done.limit:
        return f"It was ended: {done.limit}."
    killed = _signal(done.exit_code or 0)
    return f"Exit code {done.exit_code}{f': ended by {killed}' if killed else ''}."


def _signal(code: int) -> str:
    """The signal that a shell's exit code speaks of."""
    return signal.Signals(code - 128).name if code - 128 in {Signal.value for Signal in signal.Signals} else ""


_MOST: Final = 10
_CONTENT: Final = 1800
"""Characters of one entry: ten of them are a page."""


def search(ground: Ground, wanted: MemorySearch, _deadline: Deadline) -> str:
    if ground.memory is None:
        raise AssertionError("a toolbox offers the memory only where there is one")
    try:
        found = ground.memory.search((wanted.query,), _MOST)
    except InputError as error:  # somebody has edited its file
        raise FailedError(f"The memory cannot be read: {error.message}") from error
    if not found:
        return f"The memory has nothing about {shown(wanted.query)}."
    return "\n\n".join(map(_entry, found))


def _entry(entry: MemoryEntry) -> str:
    more = len(entry.content) - _CONTENT
    content = entry.content if more <= 0 else f"{entry.content[:_CONTENT]}… [{more:,} more characters]"
    return f"{shown(entry.entry_id)} ({entry.type}, {shown(entry.timestamp)})\n{content}"


MOST: Final = 20_000
"""Characters of one result."""
_WEB_HEAD: Final = 15_000


def web_search(ground: Ground, wanted: WebSearch, deadline: Deadline) -> str:
    if ground.web is None or ground.web.search is None:
        raise AssertionError("a toolbox offers a search only where somebody searches")
    found = ground.web.search(wanted.query, deadline.left, ground.cancel)
    return _bounded(found) or "It found nothing."


def fetch(ground: Ground, wanted: WebFetch, deadline: Deadline) -> str:
    """Under the page's addresses, which are shown whole: claims about the page are looked up by them."""
    if ground.web is None or ground.web.fetch is None:
        raise AssertionError("a toolbox offers pages only where somebody fetches them")
    page = ground.web.fetch(wanted.url, deadline.left, ground.cancel)
    return Page(page.addresses, _bounded(page.text) or "The page is empty.").shown()


def _bounded(text: str) -> str:
    """Without its middle, if it is long."""
    text = text.encode("utf-8", "replace").decode().strip()  # JSON can spell half a character
    left = len(text) - MOST
    if left <= 0:
        return text
    return f"{text[:_WEB_HEAD]}\n[{left:,} characters left out here]\n{text[_WEB_HEAD - MOST :]}"
