"""The way out of a sandbox leads to the hosts that were named, and whoever means harm does none to it."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from proofstone.errors import InputError
from proofstone.sandbox.gateway import MAX_CONNECTIONS, Gateway, NetworkHost, is_public_address, parse_host, parse_hosts
from tests.rows import each_row

BIG = 50 << 20


@contextmanager
def server(talk: Callable[[socket.socket], None]) -> Iterator[tuple[int, list[int]]]:
    """A server of this machine: its port, and one entry for each connection that it has seen."""
    seen: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    visitor, _ = listener.accept()
                except OSError:
                    return
                seen.append(1)
                threading.Thread(target=answer, args=(visitor,), daemon=True).start()

        def answer(visitor: socket.socket) -> None:
            with visitor:
                talk(visitor)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1], seen
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def echo(visitor: socket.socket) -> None:
    while data := visitor.recv(1 << 16):
        visitor.sendall(data)


def http(visitor: socket.socket) -> None:
    """Answers with the request, as it came."""
    head = b""
    while b"\r\n\r\n" not in head:
        head += visitor.recv(1 << 16)
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
    start, _, body = head.partition(b"\r\n\r\n")
    while len(body) < length:
        body += visitor.recv(1 << 16)
    said = start + b"\r\n\r\n" + body
    visitor.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(said) + said)


class Way:
    """A gateway, and what comes of using it."""

    def __init__(self, at: Path, *hosts: str) -> None:
        self.at, self.refused = at, list[str]()
        self.gateway = Gateway(at, parse_hosts(hosts), self.refused.append)

    def connect(self) -> socket.socket:
        one = socket.socket(socket.AF_UNIX)
        one.settimeout(30)
        one.connect(str(self.at))
        return one

    def tunnel(self, host: str) -> socket.socket:
        one, opened = self.connect(), b"HTTP/1.1 200 Connection established\r\n\r\n"
        one.sendall(f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert one.recv(len(opened), socket.MSG_WAITALL) == opened
        return one

    def ask(self, request: bytes) -> str:
        with self.connect() as one:
            one.sendall(request)
            return everything(one)

    def ask_for(self, host: str) -> str:
        return self.ask(f"CONNECT {host} HTTP/1.1\r\n\r\n".encode())


def everything(one: socket.socket) -> str:
    said = b""
    while data := one.recv(1 << 16):
        said += data
    return said.decode("latin-1")


@pytest.fixture
def way(tmp_path: Path) -> Iterator[Callable[..., Way]]:
    with ExitStack() as stack:

        def make(*hosts: str) -> Way:
            made = Way(tmp_path / "way.sock", *hosts)
            stack.enter_context(made.gateway)
            return made

        yield make


# What is written → what may be reached by it, and what not.
COVERED = {
    "api.example.com": (["api.example.com:443", "API.Example.COM.:443"], ["api.example.com:80", "example.com:443"]),
    "example.com:8080": (["example.com:8080"], ["example.com:443", "a.example.com:8080", "badexample.com:8080"]),
    "*.example.com": (["a.example.com:443", "a.b.example.com:443"], ["example.com:443", "evil-example.com:443"]),
    "*.example.com:8080": (["a.example.com:8080"], ["a.example.com:443", "a.example.com.evil.org:8080"]),
    "127.0.0.1:11434": (["127.0.0.1:11434"], ["127.0.0.1:443", "localhost:11434", "127.0.0.2:11434", "127.1:11434"]),
    "localhost:11434": (["LOCALHOST:11434"], ["127.0.0.1:11434"]),
    "[::1]:11434": (["[::1]:11434", "[0:0:0:0:0:0:0:1]:11434"], ["127.0.0.1:11434"]),
    "10.0.0.2:8080": (["10.0.0.2:8080"], ["10.0.0.22:8080"]),
}


@each_row("text", COVERED)
def test_a_host_covers_what_was_meant_and_nothing_else(text: str) -> None:
    (host,) = parse_hosts([text])
    inside, outside = COVERED[text]
    assert [name for name in inside if not host.covers(parse_host(name))] == []
    assert [name for name in outside if host.covers(parse_host(name))] == []


@each_row(
    "text",
    [
        *("", "*", "*.", "http://example.com", "example.com/x", "a b", "user@example.com", "example.com:0"),
        *("example.com:x", "example.com:99999", "*.*.example.com", "a.*.com", "[::1", "-a.com", "a..com", "x" * 64),
        *("ä.com", "a\nb", "127.0.0.1", "localhost:80", "[::1]:443"),
    ],
)
def test_what_is_no_host_is_told_to_the_person(text: str) -> None:
    with pytest.raises(InputError, match="the host"):
        parse_hosts([text])


ADDRESSES = {
    "93.184.216.34": True,
    "2606:4700::1111": True,
    "127.0.0.1": False,
    "10.1.2.3": False,
    "192.168.0.1": False,
    "172.16.0.1": False,
    "169.254.169.254": False,
    "100.64.0.1": False,
    "0.0.0.0": False,
    "::1": False,
    "fe80::1%eth0": False,
    "fd00::1": False,
    "::ffff:127.0.0.1": False,
    "::ffff:93.184.216.34": True,
    "2002:7f00:1::": False,
}


@each_row("address", ADDRESSES)
def test_an_address_is_of_the_wide_world_or_not(address: str) -> None:
    assert is_public_address(address) is ADDRESSES[address]


def test_a_tunnel_carries_bytes_both_ways(way: Callable[..., Way]) -> None:
    with server(echo) as (port, _), way(f"127.0.0.1:{port}").tunnel(f"127.0.0.1:{port}") as one:
        for said in (b"one", b"two" * 1000, bytes(range(256))):
            one.sendall(said)
            heard = b""
            while len(heard) < len(said):
                heard += one.recv(1 << 16)
            assert heard == said
        one.shutdown(socket.SHUT_WR)
        assert one.recv(1) == b""


def test_what_is_sent_with_the_request_is_not_lost(way: Callable[..., Way]) -> None:
    with server(echo) as (port, _), way(f"127.0.0.1:{port}").connect() as one:
        one.sendall(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nearly".encode())
        one.shutdown(socket.SHUT_WR)
        assert everything(one).endswith("\r\n\r\nearly")


def test_a_host_that_closes_at_once_closes_the_tunnel(way: Callable[..., Way]) -> None:
    with (
        server(lambda visitor: visitor.sendall(b"bye")) as (port, _),
        way(f"127.0.0.1:{port}").tunnel(f"127.0.0.1:{port}") as one,
    ):
        assert everything(one) == "bye"


def test_a_big_transfer_goes_through_in_both_directions_at_once(way: Callable[..., Way]) -> None:
    with server(echo) as (port, _), way(f"127.0.0.1:{port}").tunnel(f"127.0.0.1:{port}") as one:
        block = os.urandom(1 << 20)

        def send() -> None:
            for _ in range(BIG // len(block)):
                one.sendall(block)
            one.shutdown(socket.SHUT_WR)

        sending = threading.Thread(target=send)
        sending.start()
        heard = bytearray()
        while data := one.recv(1 << 20):
            heard += data
        sending.join()
    assert len(heard) == BIG and heard == block * (BIG // len(block))


def test_a_plain_request_reaches_its_host_in_the_form_it_expects(way: Callable[..., Way]) -> None:
    with server(http) as (port, _):
        lines = [
            f"POST http://127.0.0.1:{port}/v1/x?y=1#z HTTP/1.1",
            "Host: another.example.com",
            "Proxy-Connection: keep-alive",
            "Proxy-Authorization: Basic eDp5",
            "Connection: keep-alive",
            "X-Own: 1",
            "Content-Length: 4",
        ]
        said = way(f"127.0.0.1:{port}").ask("\r\n".join((*lines, "", "body")).encode())
    head, _, request = said.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 OK")
    assert request.split("\r\n") == [
        "POST /v1/x?y=1 HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Connection: close",
        "X-Own: 1",
        "Content-Length: 4",
        "",
        "body",
    ]


def test_another_host_is_refused_by_name_and_told_once(way: Callable[..., Way]) -> None:
    with server(echo) as (port, seen):
        out = way("api.example.com", "*.example.org")
        for _ in range(3):
            said = out.ask_for(f"127.0.0.1:{port}")
            assert said.startswith("HTTP/1.1 403 ") and f"127.0.0.1:{port}" in said and "api.example.com:443" in said
        assert out.ask(f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n".encode()).startswith("HTTP/1.1 403 ")
        assert "evil.example.com:443" in out.ask_for("evil.example.com:443")
        assert "api.example.com:80 " in out.ask(b"GET http://api.example.com/ HTTP/1.1\r\n\r\n")
    assert out.refused == [f"127.0.0.1:{port}", "evil.example.com:443", "api.example.com:80"] and seen == []


def test_no_flood_of_names_is_told(way: Callable[..., Way]) -> None:
    out = way()
    for number in range(150):
        assert out.ask_for(f"h{number}.example.com:443").startswith("HTTP/1.1 403 ")
    assert len(out.refused) == 100


@pytest.mark.parametrize("listed", [(), ("127.0.0.1:{port}",)], ids=["not listed", "listed by itself"])
def test_a_pattern_does_not_lead_into_the_neighbourhood(
    way: Callable[..., Way], monkeypatch: pytest.MonkeyPatch, listed: tuple[str, ...]
) -> None:
    """The owner of a name decides where it leads: here, to this very machine."""
    with server(echo) as (port, seen):
        here = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: here)
        name = f"rebound.example.com:{port}"
        out = way(f"*.example.com:{port}", *(text.format(port=port) for text in listed))
        if listed:
            out.tunnel(name).close()
            return
        said = out.ask_for(name)
    assert said.startswith("HTTP/1.1 403 ") and "leads to 127.0.0.1" in said
    assert out.refused == [name] and seen == []


def test_a_name_that_is_listed_itself_may_lead_anywhere(way: Callable[..., Way]) -> None:
    with server(echo) as (port, _):
        way(f"localhost:{port}").tunnel(f"localhost:{port}").close()


# Who cannot be reached → what is said of it.
OUT_OF_REACH = {"nowhere.invalid:443": "cannot be found", "127.0.0.1:{closed}": "cannot be reached"}


@pytest.mark.parametrize("host", OUT_OF_REACH)
def test_an_allowed_host_that_does_not_answer_is_a_bad_gateway(way: Callable[..., Way], host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closed = listener.getsockname()[1]
    name = host.format(closed=closed)
    out = way(name)
    said = out.ask_for(name)
    assert said.startswith("HTTP/1.1 502 ") and f"{name} {OUT_OF_REACH[host]}" in said and out.refused == []


# A first line that is none → the status.
GARBAGE = {
    b"\x00\xff\x16\x03\x01 \r\n\r\n": "400",
    b"hello\r\n\r\n": "400",
    b"GET / HTTP/1.1\r\n\r\n": "400",
    b"GET https://api.example.com/ HTTP/1.1\r\n\r\n": "400",
    b"GET ftp://api.example.com/ HTTP/1.1\r\n\r\n": "400",
    b"GET http://user@api.example.com/ HTTP/1.1\r\n\r\n": "400",
    b"GET http://[::1/ HTTP/1.1\r\n\r\n": "400",
    b"GET http://api.example.com:x/ HTTP/1.1\r\n\r\n": "400",
    b"CONNECT api.example.com HTTP/1.1\r\n\r\n": "400",
    b"CONNECT x@api.example.com:443 HTTP/1.1\r\n\r\n": "400",
    b"CONNECT api.example.com:443:443 HTTP/1.1\r\n\r\n": "400",
    b"CONNECT *.example.org:443 HTTP/1.1\r\n\r\n": "400",
    b"CONNECT " + b"a" * 300 + b":443 HTTP/1.1\r\n\r\n": "400",
    b"CONNECT api.example.com:443 HTTP/2\r\n\r\n": "400",
    b"CONNECT api.example.com:443 HTTP/1.1\r\nX: " + b"x" * (1 << 20): "431",
    b"x" * (1 << 20): "431",
    b"\r\n\r\n": "400",
}


@pytest.mark.parametrize("sent", GARBAGE, ids=lambda sent: repr(sent[:40]))
def test_garbage_is_answered_and_harms_nobody(way: Callable[..., Way], sent: bytes) -> None:
    with server(echo) as (port, _):
        out = way("api.example.com", f"127.0.0.1:{port}")
        assert out.ask(sent).startswith(f"HTTP/1.1 {GARBAGE[sent]} ")
        out.tunnel(f"127.0.0.1:{port}").close()
    assert out.refused == []


def test_one_who_hangs_up_in_the_middle_harms_nobody(way: Callable[..., Way]) -> None:
    with server(echo) as (port, _):
        out = way(f"127.0.0.1:{port}")
        for part in (b"", b"CONN", f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nx".encode()):
            with out.connect() as one:
                one.sendall(part)
        out.tunnel(f"127.0.0.1:{port}").close()


def test_a_crowd_is_turned_away_and_the_others_are_served_afterwards(way: Callable[..., Way]) -> None:
    with server(echo) as (port, _):
        out = way(f"127.0.0.1:{port}")
        with ExitStack() as stack:
            crowd = [stack.enter_context(out.connect()) for _ in range(MAX_CONNECTIONS)]
            for one in crowd:
                one.sendall(b"CONNECT ")
            for _ in range(300 - MAX_CONNECTIONS):
                late = stack.enter_context(out.connect())
                assert everything(late).startswith("HTTP/1.1 503 ")
        while True:  # they are gone as soon as the gateway has noticed
            with out.connect() as one:
                one.sendall(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
                if one.recv(1024).startswith(b"HTTP/1.1 200 "):
                    return


def test_closing_cuts_off_whoever_is_there_and_leaves_nothing(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with server(echo) as (port, _):
        out = Way(tmp_path / "way.sock", f"127.0.0.1:{port}")
        with out.gateway, ExitStack() as stack:
            waiting = [stack.enter_context(out.tunnel(f"127.0.0.1:{port}")) for _ in range(5)]
            half = stack.enter_context(out.connect())
            half.sendall(b"CONNECT 127")
            out.gateway.close()
            assert [one.recv(1) for one in waiting] == [b""] * 5
        assert not out.at.exists()
        assert [thread for thread in set(threading.enumerate()) - before if "gateway" in thread.name] == []


def test_a_path_that_is_too_long_for_a_socket_will_do(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    with Gateway(folder / "way.sock", [NetworkHost("example.com", 443)]):
        assert (folder / "way.sock").is_socket()
    assert list(folder.iterdir()) == []
