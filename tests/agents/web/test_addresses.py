"""Nothing is fetched from an address that only this machine or its network can reach."""

from __future__ import annotations

from proofstone.agents.web.addresses import is_clearly_private, is_public
from tests.rows import each_row

PRIVATE = [
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "100.100.100.200",
    "169.254.169.254",
    "168.63.129.16",
    "192.0.0.192",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "ff02::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::1",
    "fec0::1",
    "64:ff9b:1::7f00:1",
    "::ffff:0:7f00:1",
    "2001:0:7f00:1::",
    "5f00::1",
    "not an address",
    "",
]


@each_row("address", PRIVATE)
def test_what_is_not_for_everybody_is_not_public(address: str) -> None:
    assert not is_public(address)


@each_row("address", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"])
def test_what_anybody_can_reach_is_public(address: str) -> None:
    assert is_public(address)


PLAINLY_PRIVATE = [
    "127.0.0.1",
    "127.0.0.1.",
    "192.168.1.1..",
    "[::1]",
    "::1",
    "fec0::1",
    "127.1",
    "0x7f.1",
    "2130706433",
    "0",
    "010.0.0.1",
    "8.8",
    "localhost",
    "LOCALHOST.",
    "app.localhost",
    "localhost.localdomain",
    "ip6-localhost",
    "router",
    "printer.local",
    "metadata.google.internal",
    "metadata.google.internal.",
    "nas.home.arpa",
    ".",
    "",
]


@each_row("host", PLAINLY_PRIVATE)
def test_a_host_that_cannot_be_for_everybody_is_known_before_it_is_looked_up(host: str) -> None:
    assert is_clearly_private(host)


@each_row(
    "host",
    ["example.org", "example.org.", "bücher.example", "1.1.1.1", "1.1.1.1.", "[2606:4700::1]", "internal.example"],
)
def test_any_other_host_may_be_one(host: str) -> None:
    assert not is_clearly_private(host)


def test_an_address_that_is_trusted_is_not_private() -> None:
    assert not is_clearly_private("127.0.0.1", ("127.0.0.1",)) and is_clearly_private("127.0.0.2", ("127.0.0.1",))
