"""Hosts that may be reached, as a person writes them, and whether another is one of them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

from proofstone.errors import InputError

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
