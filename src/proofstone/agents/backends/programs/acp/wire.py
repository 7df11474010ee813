"""Messages of JSON-RPC over a program's standard input and output, one a line.

Rules: whatever the program prints, reading it never raises, and what is no message is kept for a word about it. Writing
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

from proofstone.agents.backends.programs.activity import Mask
from proofstone.agents.backends.programs.lines import Lines, fields
from proofstone.agents.executors.output import Tail

MOST_UNREAD: Final = 64 << 20
"""Bytes that may wait for the program to read them."""
_SHOWN_LINES: Final = 10
_MOST_NOISE: Final = 1000
"""Characters of a line that is no message."""

Message = Mapping[str, JsonValue]


class Frames:
    """From what a program prints to messages."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._lines = Lines()
        self._noise = Tail()

    def add(self, data: bytes) -> Iterator[Message]:
        for line in self._lines.add(data):
            text = line.decode("utf-8", "replace")
            message = _message(text)
            if message is not None:
                yield message
            elif text.strip():
                self._noise.add(f"{self._mask(text)[:_MOST_NOISE]}\n".encode())

    def noise(self) -> str:
        """The last of what was no message."""
        return self._noise.lines(_SHOWN_LINES)


def _message(text: str) -> Message | None:
    message = fields(text)
    if message is not None and "\\ud" in text.lower():  # JSON can spell half a character, which nothing can keep
        text = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace").decode()
        message = fields(text)
    return message


class Outbox:
    """Messages to a program, through a pipe, in a thread of their own."""

    def __init__(self) -> None:
        self.read_end, self._write_end = os.pipe()
        self._waiting: SimpleQueue[bytes | None] = SimpleQueue()
        self._counting = threading.Lock()
        self._unread = 0
        self._thread = threading.Thread(target=self._deliver, name="acp-outbox", daemon=True)
        self._thread.start()

    def send(self, message: Message) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"
        with self._counting:
            self._unread += len(data)
        self._waiting.put(data)

    @property
    def is_too_full(self) -> bool:
        """Whether the program asks for more than it reads: nothing else would bound what waits for it."""
        with self._counting:
            return self._unread > MOST_UNREAD

    def hang_up(self) -> None:
        """Nothing more will be said: the program reads to the end."""
        self._waiting.put(None)

    def close(self) -> None:
        """The program has ended: what it has not read goes nowhere."""
        os.close(self.read_end)
        self.hang_up()
        self._thread.join()

    def _deliver(self) -> None:
        try:
            while (data := self._waiting.get()) is not None:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(self._write_end, rest) :]
                with self._counting:
                    self._unread -= len(data)
        except BrokenPipeError:
            return
        finally:
            os.close(self._write_end)
