"""Hosts that may be reached, as a person writes them, and whether another is one of them.

The way out of a sandbox whose network leads nowhere: a proxy on a socket, outside, that knows a few hosts.

It speaks `CONNECT host:port` and plain requests in absolute form. Names are resolved here. One that only a pattern
covers may not lead to an address of this machine or its neighbourhood: whoever owns the name decides where it leads.
Whoever speaks to it may mean harm: what it reads, how long it waits and how many it serves is bounded.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from proofstone.errors import InputError
from proofstone.sandbox.relay import carry

_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(?::([0-9]{1,5}))?")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_LOCAL = "localhost"


@dataclass(frozen=True)
class Host:
    name: str
    """In lower case: a name, an address, or `*.example.com` for all names below one."""
    port: int

    def __str__(self) -> str:
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"

    @property
    def address(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
        return _address(self.name)

    def covers(self, other: Host) -> bool:
        below = self.name.startswith("*.") and other.name.endswith(self.name[1:]) and not other.address
        return self.port == other.port and (self.name == other.name or below)

    @property
    def stands_at(self) -> tuple[str, ...]:
        """For one of this very machine: the addresses where programs look for it."""
        if self.name == _LOCAL:
            return "127.0.0.1", "::1"
        return (self.name,) if self.address and self.address.is_loopback else ()


def allowed(texts: Iterable[str]) -> tuple[Host, ...]:
    """The hosts of a list: `api.example.com` (port 443), `example.com:8080`, `*.example.com`, `127.0.0.1:11434`."""
    return tuple(dict.fromkeys(_allowed(text) for text in texts))


def _allowed(text: str) -> Host:
    below = "*." if text.startswith("*.") else ""
    try:
        found = host_in(text.removeprefix(below), 443)
        host = Host(below + found.name, found.port)
    except ValueError as error:
        hint = "write api.example.com, example.com:8080, *.example.com or 127.0.0.1:11434, without http://"
        raise InputError(f"the host {text!r} cannot be read: {error}", hint=hint) from None
    if host.stands_at and host.port < 1024:
        hint = "let the server listen on a port from 1024 on, and name that"
        raise InputError(f"the host {text!r} cannot be let in: its port is below 1024 on this machine", hint=hint)
    return host


def host_in(authority: str, port: int | None = None) -> Host:
    """`example.com:443`; `port` is for one that names none. What is no host is a ValueError."""
    match = _AUTHORITY.fullmatch(authority.lower())
    if address := _address(authority.lower()):
        name, number = str(address), port
    elif match:
        bare = match[1].strip("[]")
        name, number = str(_address(bare) or bare.removesuffix(".")), int(match[2]) if match[2] else port
    else:
        raise ValueError("it is no name and no address")
    if not _address(name) and not _NAME.fullmatch(name):
        raise ValueError("it is no name and no address")
    if not number or number > 65535:
        raise ValueError("it has no port" if number is None else f"{number} is no port")
    return Host(name, number)


def is_public(address: str) -> bool:
    """Whether it is an address of the wide world, also when it is wrapped in another."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        return (inner or found).is_global
    return found.is_global


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


MOST = 128
"""Connections at a time. Each has two descriptors of the engine's."""
_MOST_HEAD = 1 << 16
_MOST_TOLD = 100
_HEAD_SECONDS = 20.0
_CONNECT_SECONDS = 15.0
_FAREWELL_SECONDS = 2.0
_CLOSE_SECONDS = 2.0
_OF_THIS_CONNECTION = {"connection", "proxy-connection", "proxy-authorization", "keep-alive", "upgrade", "host"}


@dataclass(frozen=True)
class Request:
    host: Host
    first: bytes
    """What the host is sent before all else."""
    tunnel: bool


class UnfitError(Exception):
    """A request that is not carried out: the status line, and why."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.reply = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n".encode()
        body = f"{why}\n".encode()
        self.reply += f"Content-Length: {len(body)}\r\n\r\n".encode() + body


class Gateway:
    """Listens at a socket until it is closed."""

    def __init__(self, at: Path, hosts: Sequence[Host], on_refused: Callable[[str], None] | None = None) -> None:
        self._at, self._hosts, self._on_refused = at, tuple(hosts), on_refused
        self._lock = threading.Lock()
        self._told: set[Host] = set()
        self._open: set[socket.socket] = set()
        self._visits: set[threading.Thread] = set()
        self._closing = threading.Event()
        self._listener = _listening(at)
        self._welcome = threading.Thread(target=self._accept, name="gateway", daemon=True)
        self._welcome.start()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Everything that is open is cut off. Nobody waits for a name server that does not answer."""
        with self._lock:
            self._closing.set()
            for item in (self._listener, *self._open):
                with suppress(OSError):
                    item.shutdown(socket.SHUT_RDWR)
        deadline = time.monotonic() + _CLOSE_SECONDS
        self._welcome.join(_CLOSE_SECONDS)
        with self._lock:
            visits = list(self._visits)
        for thread in visits:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._listener.close()
        self._at.unlink(missing_ok=True)

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                visitor, _ = self._listener.accept()
            except OSError:
                self._closing.wait(0.05)  # closed, or too many open files: some will be closed
                continue
            if not self._welcomed(visitor):
                _turn_away(visitor)

    def _welcomed(self, visitor: socket.socket) -> bool:
        thread = threading.Thread(target=self._visit, args=(visitor,), name="gateway visit", daemon=True)
        with self._lock:
            if len(self._visits) >= MOST:
                return False
            try:
                thread.start()
            except RuntimeError:
                return False  # the machine has no thread to spare
            self._visits.add(thread)
        return True

    def _visit(self, visitor: socket.socket) -> None:
        try:
            with visitor, self._held(visitor):
                try:
                    self._serve(visitor)
                except UnfitError as unfit:
                    _dismiss(visitor, unfit.reply)
        except OSError:
            return  # they have gone, or we are closing
        finally:
            with self._lock:
                self._visits.discard(threading.current_thread())

    def _serve(self, visitor: socket.socket) -> None:
        head, rest = _head(visitor)
        request = _request(head)
        with self._connected(request.host) as host, self._held(host):
            if request.tunnel:
                visitor.settimeout(_HEAD_SECONDS)
                visitor.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            carry(visitor, host, request.first + rest)

    @contextmanager
    def _held(self, one: socket.socket) -> Iterator[None]:
        """It is cut off when we close."""
        with self._lock:
            if self._closing.is_set():
                raise ConnectionAbortedError
            self._open.add(one)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(one)

    def _connected(self, host: Host) -> socket.socket:
        """To the very address that was looked at."""
        trouble: OSError | None = None
        for family, address in self._addresses(host):
            one = socket.socket(family)
            one.settimeout(_CONNECT_SECONDS)
            try:
                one.connect(address)
            except OSError as error:
                one.close()
                trouble = error
            else:
                return one
        raise UnfitError("502 Bad Gateway", f"{host} cannot be reached: {trouble}")

    def _addresses(self, host: Host) -> Sequence[tuple[socket.AddressFamily, tuple[str, int]]]:
        if not any(item.covers(host) for item in self._hosts):
            raise self._refused(host, "")
        try:
            found = socket.getaddrinfo(host.name, host.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise UnfitError("502 Bad Gateway", f"{host} cannot be found: {error}") from None
        places = [(family, (str(address[0]), host.port)) for family, _, _, _, address in found]
        led = [(family, place) for family, place in places if host in self._hosts or self._may_be_led_to(*place)]
        if not led:
            raise self._refused(host, f": it leads to {places[0][1][0]}, which is no public address")
        return led

    def _may_be_led_to(self, address: str, port: int) -> bool:
        return is_public(address) or Host(address, port) in self._hosts

    def _refused(self, host: Host, why: str) -> UnfitError:
        with self._lock:
            new = host not in self._told and len(self._told) < _MOST_TOLD and not self._closing.is_set()
            self._told |= {host} if new else set()
        if new and self._on_refused:
            self._on_refused(str(host))
        names = ", ".join(map(str, self._hosts)) or "no host"
        return UnfitError("403 Forbidden", f"{host} may not be reached from here{why}. What may be reached: {names}")


def _listening(at: Path) -> socket.socket:
    """A path may be longer than the address of a socket: it is bound through its folder."""
    listener = socket.socket(socket.AF_UNIX)
    folder = os.open(at.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        listener.bind(f"/proc/self/fd/{folder}/{at.name}")
        listener.listen(MOST)
    except OSError:
        listener.close()
        raise
    finally:
        os.close(folder)
    return listener


def _head(visitor: socket.socket) -> tuple[bytes, bytes]:
    """A request up to the empty line, and what came behind it."""
    deadline, read = time.monotonic() + _HEAD_SECONDS, bytearray()
    while (end := read.find(b"\r\n\r\n")) < 0:
        if len(read) > _MOST_HEAD:
            raise UnfitError(
                "431 Request Header Fields Too Large", f"a request may have {_MOST_HEAD} bytes before its body"
            )
        visitor.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            data = visitor.recv(1 << 14)
        except TimeoutError:
            raise UnfitError("408 Request Timeout", "the request did not come to its end") from None
        if not data:
            raise UnfitError("400 Bad Request", "the request ends in its middle")
        read += data
    return bytes(read[:end]), bytes(read[end + 4 :])


def _request(head: bytes) -> Request:
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise UnfitError("400 Bad Request", "this is no request of HTTP/1")
    method, target, version = words
    try:
        if method == "CONNECT":
            return Request(host_in(target), b"", tunnel=True)
        url = urlsplit(target)
        if url.scheme != "http" or url.username is not None:
            raise ValueError("this is a proxy: CONNECT host:port, or a request with a whole http:// address")
        host = host_in(url.netloc, 80)
    except ValueError as error:
        raise UnfitError("400 Bad Request", f"{target[:200]}: {error}") from None
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    own = [f"{method} {path} {version}", f"Host: {url.netloc}", "Connection: close"]
    theirs = [line for line in lines if line.partition(":")[0].strip().lower() not in _OF_THIS_CONNECTION]
    return Request(host, "\r\n".join((*own, *theirs, "", "")).encode("latin-1"), tunnel=False)


def _dismiss(visitor: socket.socket, reply: bytes) -> None:
    """With an answer that arrives: a socket that is closed while it holds unread bytes takes its answer with it."""
    deadline = time.monotonic() + _FAREWELL_SECONDS
    visitor.settimeout(_FAREWELL_SECONDS)
    visitor.sendall(reply)
    visitor.shutdown(socket.SHUT_WR)
    with suppress(TimeoutError):
        while time.monotonic() < deadline and visitor.recv(1 << 16):
            visitor.settimeout(max(0.001, deadline - time.monotonic()))


def _turn_away(visitor: socket.socket) -> None:
    with visitor, suppress(OSError):
        visitor.setblocking(False)
        visitor.send(UnfitError("503 Service Unavailable", f"there are {MOST} connections already").reply)
