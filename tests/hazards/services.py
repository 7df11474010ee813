"""Servers of the machine, outside every sandbox, that say hello to whoever connects."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def greeting(family: socket.AddressFamily, address: str | tuple[str, int]) -> Iterator[socket.socket]:
    """A server at this address, for as long as the block lasts."""
    with socket.socket(family) as server:
        server.bind(address)
        server.listen()
        thread = threading.Thread(target=_greet, args=(server,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def _greet(server: socket.socket) -> None:
    while True:
        try:
            visitor, _ = server.accept()
        except OSError:
            return
        with visitor:
            visitor.sendall(b"hello")


@contextmanager
def tcp_service() -> Iterator[int]:
    with greeting(socket.AF_INET, ("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@contextmanager
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the machine that has nothing to do with any check."""
    with subprocess.Popen(["sleep", "600"], env={"SECRET_OF_ANOTHER": "visible"}) as process:
        try:
            yield process
        finally:
            process.kill()
