"""JSON-RPC messages over a program's standard input and output, one per line.

Reading never raises, whatever the program prints; a line that is not a message is kept to be shown in an error. Writing
never waits for the program: a program that does not read while it writes would wait for us, and we for it.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from queue import SimpleQueue
from typing import Final

from pydantic import JsonValue

from proofstone.agents.backends.programs.activity import KeyMask
from proofstone.agents.backends.programs.lines import LineSplitter, parse_object
from proofstone.agents.executors.output import OutputTail

MAX_UNREAD_BYTES: Final = 64 << 20
"""Bytes that may wait for the program to read them."""
_MAX_SHOWN_LINES: Final = 10
_MAX_NOISE_CHARS: Final = 1000
"""Characters of a line that is not a message."""

AcpMessage = Mapping[str, JsonValue]


class MessageReader:
    """Split the output of a program into messages."""

    def __init__(self, mask: KeyMask) -> None:
        self._mask = mask
        self._lines = LineSplitter()
        self._noise = OutputTail()

    def add(self, data: bytes) -> Iterator[AcpMessage]:
        for line in self._lines.add(data):
            text = line.decode("utf-8", "replace")
            message = _parse_message(text)
            if message is not None:
                yield message
            elif text.strip():
                self._noise.add(f"{self._mask(text)[:_MAX_NOISE_CHARS]}\n".encode())

    def render_noise(self) -> str:
        """Return the last lines that were not messages."""
        return self._noise.lines(_MAX_SHOWN_LINES)


def _parse_message(text: str) -> AcpMessage | None:
    message = parse_object(text)
    if message is not None and "\\ud" in text.lower():  # JSON can contain unpaired surrogates, and UTF-8 cannot
        text = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace").decode()
        message = parse_object(text)
    return message


class Outbox:
    """Send messages to a program through a pipe, in a separate thread."""

    def __init__(self) -> None:
        self.read_end, self._write_end = os.pipe()
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._unread = 0
        self._thread = threading.Thread(target=self._deliver, name="acp-outbox", daemon=True)
        self._thread.start()

    def send(self, message: AcpMessage) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            self._unread += len(data)
        self._queue.put(data)

    @property
    def is_too_full(self) -> bool:
        """Whether the program asks for more than it reads. Nothing else limits how much waits for it."""
        with self._lock:
            return self._unread > MAX_UNREAD_BYTES

    def hang_up(self) -> None:
        """Send nothing more: the program reads to the end."""
        self._queue.put(None)

    def close(self) -> None:
        """Discard what the program has not read, after it has ended."""
        os.close(self.read_end)
        self.hang_up()
        self._thread.join()

    def _deliver(self) -> None:
        try:
            while (data := self._queue.get()) is not None:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(self._write_end, rest) :]
                with self._lock:
                    self._unread -= len(data)
        except BrokenPipeError:
            return
        finally:
            os.close(self._write_end)
