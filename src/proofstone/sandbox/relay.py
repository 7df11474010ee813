"""The way out, as it looks from inside: a program of its own that imports nothing of ours.

    python -I -S relay.py SOCKET [ADDRESS PORT HOST]… -- PROGRAM ARGUMENT…

In a sandbox whose network leads nowhere it listens as a proxy, and at each ADDRESS and PORT for a HOST of the machine
that programs look for there. All of it is carried to SOCKET, where the gateway decides. It then becomes the program,
with the variables that name the proxy; who listens is neither its child nor its parent, and ends with the sandbox.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import NoReturn

_CHUNK = 1 << 18
_MOST = 256
"""Connections at a time; the gateway allows fewer, and says so to whoever is too many."""
_LINGER_MS = 30_000
_SETUP_FAILED = 125


class Way:
    """One direction of a connection: what has been read and not yet passed on."""

    def __init__(self, source: socket.socket, sink: socket.socket, held: bytes = b"") -> None:
        self.source, self.sink, self.held = source, sink, held
        self.is_open = True

    def waits_for(self) -> tuple[int, int]:
        return (self.sink.fileno(), select.POLLOUT) if self.held else (self.source.fileno(), select.POLLIN)

    def move(self) -> None:
        try:
            self.held = self.held or self.source.recv(_CHUNK)
            if self.held:
                self.held = self.held[self.sink.send(self.held) :]
            else:
                self.end()
        except BlockingIOError:
            return
        except OSError:
            self.end()  # one side has gone; the other direction may still have something to say

    def end(self) -> None:
        self.is_open = False
        with suppress(OSError):
            self.sink.shutdown(socket.SHUT_WR)


def carry(left: socket.socket, right: socket.socket, first: bytes = b"") -> None:
    """Bytes both ways, until there are no more. `first` goes to the right before all others. Once the right has said
    all, the left is not waited for much longer: clients keep connections that they will never use again."""
    there, back = Way(left, right, first), Way(right, left)
    ways = [there, back]
    left.setblocking(False)
    right.setblocking(False)
    while ways:
        wanted: dict[int, int] = {}
        for number, event in (way.waits_for() for way in ways):
            wanted[number] = wanted.get(number, 0) | event
        poll = select.poll()
        for number, events in wanted.items():
            poll.register(number, events)
        ready = {number for number, _ in poll.poll(None if back.is_open else _LINGER_MS)}
        if not ready:
            return
        for way in ways:
            if way.waits_for()[0] in ready:
                way.move()
        ways = [way for way in ways if way.is_open]


def lead_out(visitor: socket.socket, gateway: str, host: str) -> None:
    """One connection: as it is, or as a tunnel to `host`."""
    with visitor, socket.socket(socket.AF_UNIX) as out:
        try:
            out.connect(gateway)
            if host and not opened(out, host):
                return
        except OSError:
            return  # whoever asked sees that it is closed
        carry(visitor, out)


def opened(out: socket.socket, host: str) -> bool:
    """Whether the gateway lets us through. Byte by byte: what follows is the host's."""
    out.sendall(f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = out.recv(1)
        if not byte:
            return False
        head += byte
    return head.split(b" ", 2)[1] == b"200"


def serve(listeners: dict[socket.socket, str], gateway: str) -> NoReturn:
    poll = select.poll()
    by_number = {listener.fileno(): listener for listener in listeners}
    for number in by_number:
        poll.register(number, select.POLLIN)
    while True:
        for number, _ in poll.poll():
            try:
                visitor, _ = by_number[number].accept()
            except OSError:
                time.sleep(0.05)  # too many open files: some will be closed
                continue
            if threading.active_count() > _MOST:
                visitor.close()
                continue
            try:
                arguments = (visitor, gateway, listeners[by_number[number]])
                threading.Thread(target=lead_out, args=arguments, daemon=True).start()
            except RuntimeError:
                visitor.close()  # no thread to be had


def listening(address: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    listener.bind((address, port))
    listener.listen(_MOST)
    return listener


def stand_ins(words: list[str]) -> dict[socket.socket, str]:
    """Who listens for which host. A machine without IPv6 has nobody who looks there."""
    found = {}
    for address, port, host in zip(words[::3], words[1::3], words[2::3], strict=True):
        try:
            found[listening(address, int(port))] = host
        except OSError:
            if address != "::1":
                raise
    return found


def leave_behind(listeners: dict[socket.socket, str], gateway: str) -> None:
    """Forked twice: a program that waits for its children must not find one that it never had."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")
    nothing = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    serve(listeners, gateway)


def variables(port: int) -> dict[str, str]:
    proxy = f"http://127.0.0.1:{port}"
    named = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), proxy) | {"NO_PROXY": "127.0.0.1,localhost,::1"}
    return named | {name.lower(): value for name, value in named.items()} | {"NODE_USE_ENV_PROXY": "1"}


def main() -> NoReturn:
    gateway, words = sys.argv[1], sys.argv[2:]
    split = words.index("--")
    try:
        listeners = stand_ins(words[:split])
        proxy = listening("127.0.0.1", 0)
    except OSError as error:
        sys.stderr.write(f"the way out of the sandbox cannot be set up: {error}\n")
        sys.exit(_SETUP_FAILED)
    leave_behind({**listeners, proxy: ""}, gateway)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores them, and a program would inherit that
    program = words[split + 1 :]
    os.execvpe(program[0], program, {**os.environ, **variables(proxy.getsockname()[1])})


if __name__ == "__main__":
    main()
