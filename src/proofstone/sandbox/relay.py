"""The relay inside the sandbox that carries connections to the gateway: a program that imports no other module of ours.

    python -I -S relay.py SOCKET [ADDRESS PORT HOST]… -- PROGRAM ARGUMENT…

In a sandbox whose network leads nowhere it listens as a proxy, and at each ADDRESS and PORT in place of a HOST of the
machine that programs expect there. It carries every connection to SOCKET, where the gateway decides. Then it becomes
the program, with variables that name the proxy. The listening process is neither a child nor the parent of the program,
and ends with the sandbox.
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
_MAX_CONNECTIONS = 256
"""The maximum number of parallel connections; the gateway allows fewer, and reports it when there are too many."""
_LINGER_MS = 30_000
_SETUP_FAILED = 125


class RelayDirection:
    """One direction of a connection, with bytes that were read and not yet sent."""

    def __init__(self, source: socket.socket, sink: socket.socket, held: bytes = b"") -> None:
        self.source, self.sink, self.buffer = source, sink, held
        self.is_open = True

    def waits_for(self) -> tuple[int, int]:
        return (self.sink.fileno(), select.POLLOUT) if self.buffer else (self.source.fileno(), select.POLLIN)

    def move(self) -> None:
        try:
            self.buffer = self.buffer or self.source.recv(_CHUNK)
            if self.buffer:
                self.buffer = self.buffer[self.sink.send(self.buffer) :]
            else:
                self.close()
        except BlockingIOError:
            return
        except OSError:
            self.close()  # one side is gone; the other direction may still have data

    def close(self) -> None:
        self.is_open = False
        with suppress(OSError):
            self.sink.shutdown(socket.SHUT_WR)


def carry(left: socket.socket, right: socket.socket, first: bytes = b"") -> None:
    """Carry bytes both ways until there are no more. `first` goes to the right before all others.

    After the right side has finished, wait for the left only briefly: clients keep connections that they will not use
    again.
    """
    outgoing, incoming = RelayDirection(left, right, first), RelayDirection(right, left)
    open_ways = [outgoing, incoming]
    left.setblocking(False)
    right.setblocking(False)
    while open_ways:
        events_by_number: dict[int, int] = {}
        for number, event in (way.waits_for() for way in open_ways):
            events_by_number[number] = events_by_number.get(number, 0) | event
        poll = select.poll()
        for number, events in events_by_number.items():
            poll.register(number, events)
        ready = {number for number, _ in poll.poll(None if incoming.is_open else _LINGER_MS)}
        if not ready:
            return
        for way in open_ways:
            if way.waits_for()[0] in ready:
                way.move()
        open_ways = [way for way in open_ways if way.is_open]


def carry_to_gateway(visitor: socket.socket, gateway: str, host: str) -> None:
    """Carry one connection to the gateway: as it is, or as a tunnel to `host`."""
    with visitor, socket.socket(socket.AF_UNIX) as out:
        try:
            out.connect(gateway)
            if host and not open_tunnel(out, host):
                return
        except OSError:
            return  # the client sees that the connection is closed
        carry(visitor, out)


def open_tunnel(out: socket.socket, host: str) -> bool:
    """Return whether the gateway accepts the tunnel. Read byte by byte, because what follows belongs to the host."""
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
                time.sleep(0.05)  # too many open files: some will be closed soon
                continue
            if threading.active_count() > _MAX_CONNECTIONS:
                visitor.close()
                continue
            try:
                arguments = (visitor, gateway, listeners[by_number[number]])
                threading.Thread(target=carry_to_gateway, args=arguments, daemon=True).start()
            except RuntimeError:
                visitor.close()  # no thread is available


def open_listener(address: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    listener.bind((address, port))
    listener.listen(_MAX_CONNECTIONS)
    return listener


def open_host_listeners(words: list[str]) -> dict[socket.socket, str]:
    """Open a listener for each host. A machine without IPv6 needs none for IPv6."""
    listeners = {}
    for address, port, host in zip(words[::3], words[1::3], words[2::3], strict=True):
        try:
            listeners[open_listener(address, int(port))] = host
        except OSError:
            if address != "::1":
                raise
    return listeners


def serve_in_background(listeners: dict[socket.socket, str], gateway: str) -> None:
    """Serve in a process that is forked twice: a program that waits for its children must not find one it never
    started.
    """
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


def build_proxy_variables(port: int) -> dict[str, str]:
    proxy = f"http://127.0.0.1:{port}"
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), proxy) | {"NO_PROXY": "127.0.0.1,localhost,::1"}
    return proxies | {name.lower(): value for name, value in proxies.items()} | {"NODE_USE_ENV_PROXY": "1"}


def main() -> NoReturn:
    gateway, words = sys.argv[1], sys.argv[2:]
    split = words.index("--")
    try:
        listeners = open_host_listeners(words[:split])
        proxy = open_listener("127.0.0.1", 0)
    except OSError as error:
        sys.stderr.write(f"the network access of the sandbox cannot be set up: {error}\n")
        sys.exit(_SETUP_FAILED)
    serve_in_background({**listeners, proxy: ""}, gateway)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores them, and the program would inherit that
    program = words[split + 1 :]
    os.execvpe(program[0], program, {**os.environ, **build_proxy_variables(proxy.getsockname()[1])})


if __name__ == "__main__":
    main()
