"""Decide which addresses an agent may fetch: only those that anybody on the internet can reach.

An agent chooses the URL, and a page may have talked it into that. It must not reach what only this machine or its
network can reach, such as local services, a router, or the metadata service of a cloud.
"""

from __future__ import annotations

import socket
from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

_ALSO_PRIVATE: Final = (
    ip_network("192.0.0.0/24"),
    ip_network("168.63.129.16/32"),  # a public address at which a cloud provider serves its own machines
)
_HOLD_IPV4: Final = (ip_network("64:ff9b::/96"), ip_network("::/96"))
"""IPv6 networks whose last four bytes are an IPv4 address."""
_6TO4: Final = ip_network("2002::/16")
_GLOBAL_UNICAST: Final = ip_network("2000::/3")
"""All public IPv6 addresses. Other addresses belong to a link or a site, or are translated on the way."""
_LOCAL: Final = frozenset(
    {"localhost", "localdomain", "local", "internal", "intranet", "private", "corp", "home", "lan", "arpa"}
)
"""The last parts of names that never belong to a public page."""


def is_public(address: str) -> bool:
    """Return whether an address is public. It has no zone, as the resolver returns it."""
    try:
        innermost = _extract_ipv4(ip_address(address))
    except ValueError:  # an address with a zone belongs to this link only
        return False
    if isinstance(innermost, IPv6Address) and innermost not in _GLOBAL_UNICAST:
        return False
    return innermost.is_global and not innermost.is_multicast and not any(innermost in net for net in _ALSO_PRIVATE)


def is_clearly_private(host: str, trusted: Collection[str] = ()) -> bool:
    """Return whether the host of a URL cannot be public, without resolving it."""
    bare = host.removeprefix("[").removesuffix("]").rstrip(".").lower()
    if _is_address(bare):
        return bare not in trusted and not is_public(bare)
    *before, last = bare.split(".")
    return not before or last in _LOCAL or _is_number(bare)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_number(host: str) -> bool:
    """Return whether a host is a number such as `127.1` or `0x7f.0.0.1`, which programs read differently."""
    try:
        socket.inet_aton(host)
    except OSError:
        return False
    return True


def _extract_ipv4(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address inside an IPv6 address, or the address itself if there is none."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _6TO4:
        return IPv4Address(address.packed[2:6])
    if any(address in network for network in _HOLD_IPV4):
        return IPv4Address(address.packed[12:])
    return address
