"""Which addresses an agent may have fetched: those that anybody on the internet can reach.

An agent chooses the URL, and may have been talked into it by a page. What only this machine or its network can reach
(its own services, a router, the metadata of a cloud) is none of its business.
"""

from __future__ import annotations

import socket
from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

_ALSO_PRIVATE: Final = (
    ip_network("192.0.0.0/24"),
    ip_network("168.63.129.16/32"),  # a public address at which a cloud serves its machines
)
_HOLD_IPV4: Final = (ip_network("64:ff9b::/96"), ip_network("::/96"))
"""IPv6 networks whose last four bytes are an IPv4 address."""
_6TO4: Final = ip_network("2002::/16")
_FOR_EVERYBODY: Final = ip_network("2000::/3")
"""All of IPv6 that is given to anybody on the internet. What lies outside of it is of a link, of a site, or translated
into something else on the way."""
_LOCAL: Final = frozenset(
    {"localhost", "localdomain", "local", "internal", "intranet", "private", "corp", "home", "lan", "arpa"}
)
"""How names end that are never those of a page for everybody."""


def is_public(address: str) -> bool:
    """`address` without a zone, as the resolver gives it."""
    try:
        found = _innermost(ip_address(address))
    except ValueError:  # a zone: it is of this link only
        return False
    if isinstance(found, IPv6Address) and found not in _FOR_EVERYBODY:
        return False
    return found.is_global and not found.is_multicast and not any(found in net for net in _ALSO_PRIVATE)


def is_plainly_private(host: str, trusted: Collection[str] = ()) -> bool:
    """Whether the host of a URL, before anybody has looked where it leads, cannot be one for everybody."""
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
    """`127.1`, `0x7f.0.0.1`, `010.0.0.1`: an address, but not everybody who reads it makes the same one of it."""
    try:
        socket.inet_aton(host)
    except OSError:
        return False
    return True


def _innermost(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 address leads to, if it does."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _6TO4:
        return IPv4Address(address.packed[2:6])
    if any(address in network for network in _HOLD_IPV4):
        return IPv4Address(address.packed[12:])
    return address
