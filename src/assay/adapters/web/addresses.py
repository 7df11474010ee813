"""Which addresses an agent may have fetched: those that anybody on the internet can reach.

An agent chooses the URL, and may have been talked into it by a page. What only this machine or its network can reach
(its own services, a router, the metadata of a cloud) is none of its business.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

_ALSO_PRIVATE: Final = (
    ip_network("192.0.0.0/24"),
    ip_network("168.63.129.16/32"),  # a public address at which a cloud serves its machines
)
_HOLD_IPV4: Final = (ip_network("64:ff9b::/96"), ip_network("::/96"))
"""IPv6 networks whose last four bytes are an IPv4 address."""
_6TO4: Final = ip_network("2002::/16")


def is_public(address: str) -> bool:
    """`address` without a zone, as the resolver gives it."""
    try:
        found = _innermost(ip_address(address))
    except ValueError:  # a zone: it is of this link only
        return False
    return found.is_global and not found.is_multicast and not any(found in net for net in _ALSO_PRIVATE)


def as_literal(host: str) -> str | None:
    """The address that stands in the place of a host's name; None: it is a name."""
    bare = host.removeprefix("[").removesuffix("]")
    try:
        ip_address(bare)
    except ValueError:
        return None
    return bare


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
