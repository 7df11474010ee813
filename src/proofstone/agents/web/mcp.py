"""An MCP server of the person as a web provider: a program that speaks JSON-RPC, one message per line.

Rules:
- it is started at the first call and ended by `close`, with its child processes; a server that has exited is not
  started again;
- it is a program of the person, not of the repository: it runs in their home folder, where no file of the repository
  can interfere, and gets the usual environment variables and those that the person names;
- calls take turns; each ends by its deadline or when the work is stopped, and later replies are ignored.
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

from proofstone.agents.backends.programs.acp.wire import AcpMessage, MessageReader, Outbox
from proofstone.agents.backends.programs.activity import KeyMask
from proofstone.agents.backends.programs.lines import get_objects, get_text, get_value
from proofstone.agents.executors.output import OutputTail
from proofstone.agents.rules.tool_rules import ToolFailedError, shorten_text

SEARCH_ARGUMENTS: Final = ("query", "q", "queries", "search", "search_query", "search_term", "text", "input")
FETCH_ARGUMENTS: Final = ("url", "urls", "uri", "link", "href", "input")
"""The names that servers use for the argument of a search and of a fetch."""
_PROTOCOL: Final = "2025-06-18"
_USUAL: Final = ("HOME", "PATH", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME")
_POLL_INTERVAL: Final = 0.05
"""Seconds between two checks whether the work has been stopped."""
_EXIT_TIMEOUT: Final = 1.0
"""Seconds that the server has to exit after its input was closed."""
_PIECE: Final = 1 << 16
_MOST_PAGES: Final = 20
"""How many pages of the list of tools are read."""
_NO_SUCH_METHOD: Final = -32601
_WORDS: Final = 500


class McpServer:
    def __init__(self, command: str, environ: Mapping[str, str], passed: Sequence[str] = ()) -> None:
        self._argv = shlex.split(command)
        self._environ = {name: environ[name] for name in (*_USUAL, *passed) if name in environ}
        self._mask = KeyMask.from_variables({f"{name}_KEY": environ[name] for name in passed if name in environ})
        self._call_lock = threading.Lock()
        self._process: _ServerProcess | None = None
        self._tools: Mapping[str, Mapping[str, JsonValue]] = {}

    def call(self, tool: str, names: Sequence[str], wanted: str, seconds: float, cancel: threading.Event) -> str:
        """Call a tool and return its text. `names` lists possible names of the argument that takes `wanted`."""
        until = _Deadline(time.monotonic() + seconds, cancel)
        while not self._call_lock.acquire(timeout=_POLL_INTERVAL):
            until.check()
        try:
            return self._mask(self._call_tool(tool, names, wanted, until))
        except ToolFailedError as failed:
            raise ToolFailedError(self._mask(failed.text)) from None
        finally:
            self._call_lock.release()

    def close(self) -> None:
        with self._call_lock:
            if self._process:
                self._process.end()
                self._process = None

    def _call_tool(self, tool: str, names: Sequence[str], wanted: str, until: _Deadline) -> str:
        process = self._start(until)
        if tool not in self._tools:
            available = ", ".join(sorted(self._tools)) or "none"
            raise ToolFailedError(
                f"The MCP server has no tool {tool}: {shorten_text(available, _WORDS)}. Tell the person."
            )
        arguments = _build_arguments(tool, self._tools[tool], names, wanted)
        answer = process.request("tools/call", {"name": tool, "arguments": arguments}, until)
        text = "\n\n".join(get_text(part, "text") for part in get_objects(answer, "content") if "text" in part)
        if get_value(answer, "isError") is True:
            raise ToolFailedError(f"{tool} failed: {shorten_text(text, _WORDS)}")
        return text

    def _start(self, until: _Deadline) -> _ServerProcess:
        """Return the initialized server. If it fails to initialize, it is ended and the next call starts it again."""
        if self._process is None:
            process = _ServerProcess(self._argv, self._environ, self._mask)
            try:
                self._tools = _initialize(process, until)
            except BaseException:
                process.end()
                raise
            self._process = process
        return self._process


def _initialize(process: _ServerProcess, until: _Deadline) -> Mapping[str, Mapping[str, JsonValue]]:
    """Initialize the session and return the argument schemas of the tools, by name."""
    client: JsonValue = {"name": "proofstone", "version": "1"}
    process.request("initialize", {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": client}, until)
    process.send({"method": "notifications/initialized"})
    tools: dict[str, Mapping[str, JsonValue]] = {}
    cursor: JsonValue = None
    for _ in range(_MOST_PAGES):
        page = process.request("tools/list", {"cursor": cursor} if cursor else {}, until)
        for tool in get_objects(page, "tools"):
            schema = get_value(tool, "inputSchema")
            tools[get_text(tool, "name")] = schema if isinstance(schema, dict) else {}
        cursor = get_text(page, "nextCursor")
        if not cursor:
            break
    return tools


def _build_arguments(
    tool: str, schema: Mapping[str, JsonValue], names: Sequence[str], wanted: str
) -> dict[str, JsonValue]:
    """Return the arguments with `wanted` under a usual name, or under the only name that the tool requires."""
    properties = get_value(schema, "properties")
    arguments = properties if isinstance(properties, dict) else {}
    required = get_value(schema, "required")
    sole_required = required if isinstance(required, list) and len(required) == 1 else []
    usual = [name for name in names if name in arguments]
    name = next((candidate for candidate in (*usual, *sole_required) if isinstance(candidate, str)), None)
    if name is None:
        available = shorten_text(", ".join(arguments) or "nothing", _WORDS)
        raise ToolFailedError(f"It is not clear which argument of {tool} takes what you want: it has {available}.")
    return {name: [wanted] if get_value(arguments, name, "type") == "array" else wanted}


class _Deadline:
    """The deadline of a call."""

    def __init__(self, end: float, cancel: threading.Event) -> None:
        self._end = end
        self._cancel = cancel

    def check(self) -> None:
        if self._cancel.is_set():
            raise ToolFailedError("The work has been stopped.")
        if time.monotonic() >= self._end:
            raise ToolFailedError("The MCP server did not answer in time.")


class _ServerProcess:
    """The running server process."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str], mask: KeyMask) -> None:
        self._frames = MessageReader(mask)
        self._errors = OutputTail()
        self._messages: SimpleQueue[AcpMessage | None] = SimpleQueue()
        self._has_ended = False
        self._last_id = 0
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
            raise ToolFailedError(f"The MCP server {argv[0]} cannot be started: {error.strerror}.") from error
        self._listeners = [
            _start_listener(self._program.stdout, self._receive),
            _start_listener(self._program.stderr, self._errors.add),
        ]

    def send(self, message: AcpMessage) -> None:
        self._out.send(message)

    def request(self, method: str, parameters: Mapping[str, JsonValue], until: _Deadline) -> JsonValue:
        """Send a request and return its result."""
        self._last_id += 1
        self.send({"id": self._last_id, "method": method, "params": dict(parameters)})
        try:
            answer = self._wait_for_answer(self._last_id, until)
        except ToolFailedError:
            self.send({"method": "notifications/cancelled", "params": {"requestId": self._last_id}})
            raise
        if "error" in answer:
            reason = shorten_text(get_text(answer, "error", "message"), _WORDS)
            raise ToolFailedError(f"The MCP server refused {method}: {reason or 'it does not say why'}")
        return answer.get("result")

    def _wait_for_answer(self, wanted: int, until: _Deadline) -> AcpMessage:
        while True:
            until.check()
            if self._has_ended:
                raise ToolFailedError(f"The MCP server has ended.\n{self._errors.lines(10)}".rstrip())
            try:
                message = self._messages.get(timeout=_POLL_INTERVAL)
            except Empty:
                continue
            if message is None:
                self._listeners[1].join(_EXIT_TIMEOUT)  # what it printed last says why it has ended
                self._has_ended = True
            elif "method" in message:
                self._serve(message)
            elif message.get("id") == wanted:
                return message

    def _serve(self, message: AcpMessage) -> None:
        """Answer a request of the server. Only `ping` is supported."""
        if "id" not in message:
            return
        unknown: JsonValue = {"code": _NO_SUCH_METHOD, "message": "not served here"}
        answer: AcpMessage = {"result": {}} if message["method"] == "ping" else {"error": unknown}
        self.send({"id": message["id"], **answer})

    def _receive(self, data: bytes) -> None:
        for message in self._frames.add(data):
            self._messages.put(message)
        if not data:
            self._messages.put(None)

    def end(self) -> None:
        """Let the server exit by itself for a moment, then kill it with its child processes."""
        self._out.hang_up()
        give_up_at = time.monotonic() + _EXIT_TIMEOUT
        while not self._has_exited() and time.monotonic() < give_up_at:
            time.sleep(_POLL_INTERVAL / 5)
        os.killpg(self._program.pid, signal.SIGKILL)  # the process was not waited for, so the pid is still its own
        self._program.wait()
        self._out.close()
        for listener in self._listeners:
            listener.join(_EXIT_TIMEOUT)  # a process that left the group may hold the pipe open

    def _has_exited(self) -> bool:
        return os.waitid(os.P_PID, self._program.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _start_listener(stream: IO[bytes] | None, take: Callable[[bytes], None]) -> threading.Thread:
    """Start a thread that passes on all data of the stream, and empty bytes at its end."""
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
