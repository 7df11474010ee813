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

from assay.adapters.backends.programs.lines import fields
from assay.adapters.executors.result import Tail

LONGEST_LINE: Final = 32 << 20
"""Bytes; what is longer is no message of any agent."""
_SHOWN_LINES: Final = 10

Message = Mapping[str, JsonValue]


class Frames:
    """From what a program prints to messages."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._noise = Tail()

    def add(self, data: bytes) -> Iterator[Message]:
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._keep(end)
            line = bytes(self._line)
            self._line.clear()
            message = _message(line)
            if message is not None:
                yield message
            elif line.strip():
                self._noise.add(line[:1000] + b"\n")
        self._keep(rest)

    def noise(self) -> str:
        """The last of what was no message."""
        return self._noise.lines(_SHOWN_LINES)

    def _keep(self, data: bytes) -> None:
        """One byte more than is allowed, and it is no longer JSON."""
        self._line += data[: max(0, LONGEST_LINE - len(self._line))]


def _message(line: bytes) -> Message | None:
    text = line.decode("utf-8", "replace")
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
        self._thread = threading.Thread(target=self._deliver, name="acp-outbox", daemon=True)
        self._thread.start()

    def send(self, message: Message) -> None:
        text = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"))
        self._waiting.put(text.encode() + b"\n")

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
                while data:
                    data = data[os.write(self._write_end, data) :]
        except BrokenPipeError:
            return
        finally:
            os.close(self._write_end)
