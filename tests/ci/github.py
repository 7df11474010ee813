"""A server on this machine that plays GitHub's API for one pull request."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class FakeGitHub:
    """The part of GitHub's API that a job needs, for one pull request."""

    address: str = ""
    comments: list[dict[str, Any]] = field(default_factory=list)
    reviews: list[dict[str, Any]] = field(default_factory=list)
    permissions: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    seen_tokens: set[str] = field(default_factory=set)

    def answer(self, method: str, path: str, body: dict[str, str]) -> tuple[int, object]:
        if self.status != 200:
            return self.status, {"message": "Resource not accessible by integration"}
        place = path.partition("?")[0].removeprefix("/repos/o/shop/")
        match (method, place.split("/")):
            case "GET", ["pulls", "7", "reviews"]:
                return 200, self.reviews
            case "GET", ["issues", "7", "comments"]:
                return 200, self.comments
            case "GET", ["collaborators", login, "permission"]:
                return 200, {"permission": "write", "role_name": self.permissions.get(login, "read")}
            case "POST", ["issues", "7", "comments"]:
                self.comments.append({"id": len(self.comments) + 1, "body": body["body"], "user": {"type": "Bot"}})
                return 201, {"html_url": "https://github.example/c"}
            case "PATCH", ["issues", "comments", number]:
                self.comments[int(number) - 1]["body"] = body["body"]
                return 200, {"html_url": "https://github.example/c"}
        return 404, {"message": f"no {method} {path}"}


@contextmanager
def play_github() -> Iterator[FakeGitHub]:
    github = FakeGitHub()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else {}
            github.seen_tokens.add(self.headers.get("Authorization", ""))
            status, document = github.answer(self.command, self.path, body)
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = _answer  # noqa: N815  the names that http.server looks for

        def log_message(self, format: str, *args: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    github.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield github
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
