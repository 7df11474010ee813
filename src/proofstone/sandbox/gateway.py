"""The gateway out of a sandbox whose network leads nowhere: a proxy on a socket, outside, that allows a few hosts.

It supports `CONNECT host:port` and plain requests in absolute form. Names are resolved here. A name that only a pattern
allows must not lead to an address of this machine or its local network, because the owner of the name decides where it
leads. Clients may be hostile: what the gateway reads, how long it waits and how many connections it serves is limited.
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
_LOCALHOST = "localhost"


@dataclass(frozen=True)
class NetworkHost:
    """A host and port: one that may be reached, or one that is requested."""

    name: str
    """In lower case: a name, an address, or `*.example.com` for all names below it."""
    port: int

    def __str__(self) -> str:
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"

    @property
    def address(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
        return _parse_address(self.name)

    def covers(self, other: NetworkHost) -> bool:
        """Return whether this entry allows the other host."""
        is_below = self.name.startswith("*.") and other.name.endswith(self.name[1:]) and not other.address
        return self.port == other.port and (self.name == other.name or is_below)

    @property
    def loopback_addresses(self) -> tuple[str, ...]:
        """For a host on this machine: the loopback addresses at which programs expect it."""
        if self.name == _LOCALHOST:
            return "127.0.0.1", "::1"
        return (self.name,) if self.address and self.address.is_loopback else ()


def parse_hosts(texts: Iterable[str]) -> tuple[NetworkHost, ...]:
    """Parse a list of hosts: `api.example.com` (port 443), `example.com:8080`, `*.example.com`, `127.0.0.1:11434`."""
    return tuple(dict.fromkeys(_parse_allowed_host(text) for text in texts))


def _parse_allowed_host(text: str) -> NetworkHost:
    wildcard = "*." if text.startswith("*.") else ""
    try:
        parsed = parse_host(text.removeprefix(wildcard), 443)
        host = NetworkHost(wildcard + parsed.name, parsed.port)
    except ValueError as error:
        hint = "write api.example.com, example.com:8080, *.example.com or 127.0.0.1:11434, without http://"
        raise InputError(f"the host {text!r} is not valid: {error}", hint=hint) from None
    if host.loopback_addresses and host.port < 1024:
        hint = "make the server listen on port 1024 or higher, and use that port"
        raise InputError(f"the host {text!r} cannot be allowed: its port on this machine is below 1024", hint=hint)
    return host


def parse_host(authority: str, port: int | None = None) -> NetworkHost:
    """Parse `example.com:443`; `port` is the default port. Raise `ValueError` if it is not a host."""
    match = _AUTHORITY.fullmatch(authority.lower())
    if address := _parse_address(authority.lower()):
        name, number = str(address), port
    elif match:
        bare = match[1].strip("[]")
        name, number = str(_parse_address(bare) or bare.removesuffix(".")), int(match[2]) if match[2] else port
    else:
        raise ValueError("it is neither a name nor an address")
    if not _parse_address(name) and not _NAME.fullmatch(name):
        raise ValueError("it is neither a name nor an address")
    if not number or number > 65535:
        raise ValueError("it has no port" if number is None else f"{number} is not a port")
    return NetworkHost(name, number)


def is_public_address(address: str) -> bool:
    """Return whether it is a public address, also when it is embedded in another one."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour
        return (inner or parsed).is_global
    return parsed.is_global


def _parse_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


MAX_CONNECTIONS = 128
"""The maximum number of parallel connections. Each uses two file descriptors of the engine."""
_MAX_HEAD_BYTES = 1 << 16
_MAX_REPORTED = 100
_HEAD_SECONDS = 20.0
_CONNECT_SECONDS = 15.0
_REPLY_SECONDS = 2.0
_CLOSE_SECONDS = 2.0
_HOP_HEADERS = {"connection", "proxy-connection", "proxy-authorization", "keep-alive", "upgrade", "host"}


@dataclass(frozen=True)
class ProxyRequest:
    """A request to the proxy."""

    host: NetworkHost
    first_bytes: bytes
    """The bytes that the host gets before all others."""
    is_tunnel: bool


class ProxyError(Exception):
    """A request that is refused, with the status line and the reason."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.reply = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n".encode()
        body = f"{reason}\n".encode()
        self.reply += f"Content-Length: {len(body)}\r\n\r\n".encode() + body


class Gateway:
    """Listens at a socket until it is closed."""

    def __init__(self, at: Path, hosts: Sequence[NetworkHost], on_refused: Callable[[str], None] | None = None) -> None:
        self._at, self._hosts, self._on_refused = at, tuple(hosts), on_refused
        self._lock = threading.Lock()
        self._reported: set[NetworkHost] = set()
        self._open: set[socket.socket] = set()
        self._visits: set[threading.Thread] = set()
        self._closing = threading.Event()
        self._listener = _open_listener(at)
        self._accept_thread = threading.Thread(target=self._accept, name="gateway", daemon=True)
        self._accept_thread.start()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cut off all open connections, without waiting for a name server that does not answer."""
        with self._lock:
            self._closing.set()
            for open_socket in (self._listener, *self._open):
                with suppress(OSError):
                    open_socket.shutdown(socket.SHUT_RDWR)
        deadline = time.monotonic() + _CLOSE_SECONDS
        self._accept_thread.join(_CLOSE_SECONDS)
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
                self._closing.wait(0.05)  # closed, or too many open files: some will be closed soon
                continue
            if not self._try_serve(visitor):
                _reject(visitor)

    def _try_serve(self, visitor: socket.socket) -> bool:
        thread = threading.Thread(target=self._serve_visitor, args=(visitor,), name="gateway visit", daemon=True)
        with self._lock:
            if len(self._visits) >= MAX_CONNECTIONS:
                return False
            try:
                thread.start()
            except RuntimeError:
                return False  # the machine has no thread to spare
            self._visits.add(thread)
        return True

    def _serve_visitor(self, visitor: socket.socket) -> None:
        try:
            with visitor, self._track(visitor):
                try:
                    self._serve(visitor)
                except ProxyError as unfit:
                    _send_reply(visitor, unfit.reply)
        except OSError:
            return  # the client is gone, or the gateway is closing
        finally:
            with self._lock:
                self._visits.discard(threading.current_thread())

    def _serve(self, visitor: socket.socket) -> None:
        head, rest = _read_head(visitor)
        request = _parse_request(head)
        with self._connect(request.host) as host, self._track(host):
            if request.is_tunnel:
                visitor.settimeout(_HEAD_SECONDS)
                visitor.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            carry(visitor, host, request.first_bytes + rest)

    @contextmanager
    def _track(self, connection: socket.socket) -> Iterator[None]:
        """Register a connection that is cut off when the gateway closes."""
        with self._lock:
            if self._closing.is_set():
                raise ConnectionAbortedError
            self._open.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(connection)

    def _connect(self, host: NetworkHost) -> socket.socket:
        """Connect to one of the addresses that were checked."""
        last_error: OSError | None = None
        for family, address in self._resolve(host):
            connection = socket.socket(family)
            connection.settimeout(_CONNECT_SECONDS)
            try:
                connection.connect(address)
            except OSError as error:
                connection.close()
                last_error = error
            else:
                return connection
        raise ProxyError("502 Bad Gateway", f"{host} cannot be reached: {last_error}")

    def _resolve(self, host: NetworkHost) -> Sequence[tuple[socket.AddressFamily, tuple[str, int]]]:
        if not any(allowed_host.covers(host) for allowed_host in self._hosts):
            raise self._refuse(host, "")
        try:
            records = socket.getaddrinfo(host.name, host.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise ProxyError("502 Bad Gateway", f"{host} cannot be found: {error}") from None
        addresses = [(family, (str(address[0]), host.port)) for family, _, _, _, address in records]
        permitted = [(family, place) for family, place in addresses if host in self._hosts or self._may_lead_to(*place)]
        if not permitted:
            raise self._refuse(host, f": it leads to {addresses[0][1][0]}, which is not a public address")
        return permitted

    def _may_lead_to(self, address: str, port: int) -> bool:
        return is_public_address(address) or NetworkHost(address, port) in self._hosts

    def _refuse(self, host: NetworkHost, reason: str) -> ProxyError:
        with self._lock:
            is_new = host not in self._reported and len(self._reported) < _MAX_REPORTED and not self._closing.is_set()
            self._reported |= {host} if is_new else set()
        if is_new and self._on_refused:
            self._on_refused(str(host))
        names = ", ".join(map(str, self._hosts)) or "no host"
        return ProxyError("403 Forbidden", f"{host} may not be reached from here{reason}. Allowed hosts: {names}")


def _open_listener(at: Path) -> socket.socket:
    """Open the listening socket through its folder, because its path may be longer than a socket address allows."""
    listener = socket.socket(socket.AF_UNIX)
    folder = os.open(at.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        listener.bind(f"/proc/self/fd/{folder}/{at.name}")
        listener.listen(MAX_CONNECTIONS)
    except OSError:
        listener.close()
        raise
    finally:
        os.close(folder)
    return listener


def _read_head(visitor: socket.socket) -> tuple[bytes, bytes]:
    """Read a request up to the empty line; return it, and the bytes after it."""
    deadline, received = time.monotonic() + _HEAD_SECONDS, bytearray()
    while (end := received.find(b"\r\n\r\n")) < 0:
        if len(received) > _MAX_HEAD_BYTES:
            raise ProxyError(
                "431 Request Header Fields Too Large",
                f"the header of a request may have at most {_MAX_HEAD_BYTES} bytes",
            )
        visitor.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            data = visitor.recv(1 << 14)
        except TimeoutError:
            raise ProxyError("408 Request Timeout", "the request was not complete in time") from None
        if not data:
            raise ProxyError("400 Bad Request", "the request is incomplete")
        received += data
    return bytes(received[:end]), bytes(received[end + 4 :])


def _parse_request(head: bytes) -> ProxyRequest:
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise ProxyError("400 Bad Request", "this is not an HTTP/1 request")
    method, target, version = words
    try:
        if method == "CONNECT":
            return ProxyRequest(parse_host(target), b"", is_tunnel=True)
        url = urlsplit(target)
        if url.scheme != "http" or url.username is not None:
            raise ValueError("this is a proxy; send CONNECT host:port, or a request with a full http:// URL")
        host = parse_host(url.netloc, 80)
    except ValueError as error:
        raise ProxyError("400 Bad Request", f"{target[:200]}: {error}") from None
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    own_lines = [f"{method} {path} {version}", f"Host: {url.netloc}", "Connection: close"]
    client_lines = [line for line in lines if line.partition(":")[0].strip().lower() not in _HOP_HEADERS]
    return ProxyRequest(host, "\r\n".join((*own_lines, *client_lines, "", "")).encode("latin-1"), is_tunnel=False)


def _send_reply(visitor: socket.socket, reply: bytes) -> None:
    """Send the reply so that it arrives: closing a socket with unread bytes would discard the reply."""
    deadline = time.monotonic() + _REPLY_SECONDS
    visitor.settimeout(_REPLY_SECONDS)
    visitor.sendall(reply)
    visitor.shutdown(socket.SHUT_WR)
    with suppress(TimeoutError):
        while time.monotonic() < deadline and visitor.recv(1 << 16):
            visitor.settimeout(max(0.001, deadline - time.monotonic()))


def _reject(visitor: socket.socket) -> None:
    with visitor, suppress(OSError):
        visitor.setblocking(False)
        visitor.send(ProxyError("503 Service Unavailable", f"there are already {MAX_CONNECTIONS} connections").reply)
