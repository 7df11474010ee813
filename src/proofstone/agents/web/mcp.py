"""An MCP server of the person's, as a provider: a program that is spoken to in JSON-RPC, one message a line.

Rules:
- it is started at the first call and ended by `close`, with whatever it has started itself; one that has ended by
  itself is not started again;
- it is a program of the person's, not of the repository's: it runs in their home folder, where nothing of the
  repository's can get between, and gets the variables that they name beside the usual ones;
- calls take turns; each ends by its deadline or when the work is stopped, and what comes later is nobody's answer.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import IO, Final

from pydantic import JsonValue

from proofstone.agents.backends.programs.acp.wire import Frames, Message, Outbox
from proofstone.agents.backends.programs.activity import Mask
from proofstone.agents.backends.programs.lines import objects_at, text_at, value_at
from proofstone.agents.executors.output import Tail
from proofstone.agents.rules.tool_rules import FailedError, shortened

SEARCHING: Final = ("query", "q", "queries", "search", "search_query", "search_term", "text", "input")
FETCHING: Final = ("url", "urls", "uri", "link", "href", "input")
"""What servers call the one argument that counts."""
_PROTOCOL: Final = "2025-06-18"
_USUAL: Final = ("HOME", "PATH", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME")
_LOOK: Final = 0.05
"""Seconds between two looks at whether the work has been stopped."""
_LEAVE: Final = 1.0
"""Seconds that it has to end by itself once nothing more is said to it."""
_PIECE: Final = 1 << 16
_MOST_PAGES: Final = 20
"""Of a list of tools."""
_NO_SUCH_METHOD: Final = -32601
_WORDS: Final = 500


class McpServer:
    def __init__(self, command: str, environ: Mapping[str, str], passed: Sequence[str] = ()) -> None:
        self._argv = shlex.split(command)
        self._environ = {name: environ[name] for name in (*_USUAL, *passed) if name in environ}
        self._mask = Mask.of({f"{name}_KEY": environ[name] for name in passed if name in environ})
        self._turn = threading.Lock()
        self._going: _Going | None = None
        self._tools: Mapping[str, Mapping[str, JsonValue]] = {}

    def call(self, tool: str, names: Sequence[str], wanted: str, seconds: float, cancel: threading.Event) -> str:
        """What it says. `names`: what the argument may be called that takes what is wanted."""
        until = _Until(time.monotonic() + seconds, cancel)
        while not self._turn.acquire(timeout=_LOOK):
            until.check()
        try:
            return self._mask(self._called(tool, names, wanted, until))
        except FailedError as failed:
            raise FailedError(self._mask(failed.text)) from None
        finally:
            self._turn.release()

    def close(self) -> None:
        with self._turn:
            if self._going:
                self._going.end()
                self._going = None

    def _called(self, tool: str, names: Sequence[str], wanted: str, until: _Until) -> str:
        going = self._started(until)
        if tool not in self._tools:
            there = ", ".join(sorted(self._tools)) or "none"
            raise FailedError(f"The MCP server has no tool {tool}: {shortened(there, _WORDS)}. The person must say so.")
        arguments = _arguments(tool, self._tools[tool], names, wanted)
        answer = going.asked("tools/call", {"name": tool, "arguments": arguments}, until)
        text = "\n\n".join(text_at(part, "text") for part in objects_at(answer, "content") if "text" in part)
        if value_at(answer, "isError") is True:
            raise FailedError(f"{tool} failed: {shortened(text, _WORDS)}")
        return text

    def _started(self, until: _Until) -> _Going:
        """The server, introduced. One that could not be is ended, and begun anew by the next call."""
        if self._going is None:
            going = _Going(self._argv, self._environ, self._mask)
            try:
                self._tools = _introduced(going, until)
            except BaseException:
                going.end()
                raise
            self._going = going
        return self._going


def _introduced(going: _Going, until: _Until) -> Mapping[str, Mapping[str, JsonValue]]:
    """The schemas of its tools' arguments, by name."""
    client: JsonValue = {"name": "proofstone", "version": "1"}
    going.asked("initialize", {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": client}, until)
    going.tell({"method": "notifications/initialized"})
    tools: dict[str, Mapping[str, JsonValue]] = {}
    cursor: JsonValue = None
    for _ in range(_MOST_PAGES):
        page = going.asked("tools/list", {"cursor": cursor} if cursor else {}, until)
        for tool in objects_at(page, "tools"):
            schema = value_at(tool, "inputSchema")
            tools[text_at(tool, "name")] = schema if isinstance(schema, dict) else {}
        cursor = text_at(page, "nextCursor")
        if not cursor:
            break
    return tools


def _arguments(tool: str, schema: Mapping[str, JsonValue], names: Sequence[str], wanted: str) -> dict[str, JsonValue]:
    """What is wanted, under the name that the tool has for it: a usual one, or the only one that it requires."""
    properties = value_at(schema, "properties")
    known = properties if isinstance(properties, dict) else {}
    required = value_at(schema, "required")
    only = required if isinstance(required, list) and len(required) == 1 else []
    usual = [name for name in names if name in known]
    name = next((item for item in (*usual, *only) if isinstance(item, str)), None)
    if name is None:
        takes = shortened(", ".join(known) or "nothing", _WORDS)
        raise FailedError(f"It is not clear which argument of {tool} takes what you want: it has {takes}.")
    return {name: [wanted] if value_at(known, name, "type") == "array" else wanted}


class _Until:
    """How long a call may still take."""

    def __init__(self, end: float, cancel: threading.Event) -> None:
        self._end = end
        self._cancel = cancel

    def check(self) -> None:
        if self._cancel.is_set():
            raise FailedError("The work has been stopped.")
        if time.monotonic() >= self._end:
            raise FailedError("The MCP server did not answer in time.")


class _Going:
    """The program while it goes on."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str], mask: Mask) -> None:
        self._frames = Frames(mask)
        self._errors = Tail()
        self._heard: SimpleQueue[Message | None] = SimpleQueue()
        self._ended = False
        self._last = 0
        self._out = Outbox()
        try:
            self._program = subprocess.Popen(
                argv,
                stdin=self._out.read_end,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(environ),
                cwd=environ.get("HOME") or "/",
                start_new_session=True,
            )
        except OSError as error:
            self._out.close()
            raise FailedError(f"The MCP server {argv[0]} cannot be started: {error.strerror}.") from error
        self._listeners = [
            _listener(self._program.stdout, self._hear),
            _listener(self._program.stderr, self._errors.add),
        ]

    def tell(self, message: Message) -> None:
        self._out.send(message)

    def asked(self, method: str, parameters: Mapping[str, JsonValue], until: _Until) -> JsonValue:
        """What it answers."""
        self._last += 1
        self.tell({"id": self._last, "method": method, "params": dict(parameters)})
        try:
            answer = self._answer(self._last, until)
        except FailedError:
            self.tell({"method": "notifications/cancelled", "params": {"requestId": self._last}})
            raise
        if "error" in answer:
            said = shortened(text_at(answer, "error", "message"), _WORDS)
            raise FailedError(f"The MCP server refused {method}: {said or 'it does not say why'}")
        return answer.get("result")

    def _answer(self, wanted: int, until: _Until) -> Message:
        while True:
            until.check()
            if self._ended:
                raise FailedError(f"The MCP server has ended.\n{self._errors.lines(10)}".rstrip())
            try:
                message = self._heard.get(timeout=_LOOK)
            except Empty:
                continue
            if message is None:
                self._ended = True
            elif "method" in message:
                self._serve(message)
            elif message.get("id") == wanted:
                return message

    def _serve(self, message: Message) -> None:
        """It may ask whether we are there, and for nothing else."""
        if "id" not in message:
            return
        unknown: JsonValue = {"code": _NO_SUCH_METHOD, "message": "not served here"}
        answer: Message = {"result": {}} if message["method"] == "ping" else {"error": unknown}
        self.tell({"id": message["id"], **answer})

    def _hear(self, data: bytes) -> None:
        for message in self._frames.add(data):
            self._heard.put(message)
        if not data:
            self._heard.put(None)

    def end(self) -> None:
        """It may end by itself; then it is ended, with what it has started."""
        self._out.hang_up()
        patience = time.monotonic() + _LEAVE
        while not self._has_left() and time.monotonic() < patience:
            time.sleep(_LOOK / 5)
        os.killpg(self._program.pid, signal.SIGKILL)  # it was not waited for yet: the number is still its own
        self._program.wait()
        self._out.close()
        for listener in self._listeners:
            listener.join(_LEAVE)  # who has left its group may hold the pipe open

    def _has_left(self) -> bool:
        return os.waitid(os.P_PID, self._program.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _listener(stream: IO[bytes] | None, take: Callable[[bytes], None]) -> threading.Thread:
    """Hands on what comes, and at the end nothing."""
    if stream is None:
        raise AssertionError("both outputs are pipes")

    def listen() -> None:
        with stream:
            while data := os.read(stream.fileno(), _PIECE):
                take(data)
            take(b"")

    thread = threading.Thread(target=listen, name="mcp-listener", daemon=True)
    thread.start()
    return thread
