"""A web site on this machine, for one test: what it answers to each path, and what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HERE = "127.0.0.1"


@dataclass(frozen=True)
class Reply:
    body: bytes = b""
    kind: str = "text/plain; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    instead: Callable[[BaseHTTPRequestHandler], None] | None = None
    """Does something of its own instead."""


@dataclass
class Site:
    replies: dict[str, Reply] = field(default_factory=dict)
    """By path, without its query."""
    asked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    """Path with query, and headers."""
    port: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str = "/", host: str = HERE) -> str:
        return f"http://{host}:{self.port}{path}"

    def leads(self, path: str, to: str) -> None:
        self.replies[path] = Reply(status=302, headers={"Location": to})


@contextmanager
def running_site() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            reply = site.replies.get(self.path.partition("?")[0], Reply(b"there is none", status=404))
            if reply.instead:
                reply.instead(self)
                return
            self.send_response(reply.status)
            if reply.kind:
                self.send_header("Content-Type", reply.kind)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            try:
                self.wfile.write(reply.body)
            except OSError:  # whoever asked has heard enough
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer((HERE, 0), Handler)
    site.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        site.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
