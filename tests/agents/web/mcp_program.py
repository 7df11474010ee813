"""An MCP server of a few lines, as a program: it searches, fetches, and misbehaves as its arguments say.

    python mcp_program.py LOG [HABIT …]

It writes down what it is asked, one line each, with its own number first.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

LOG, *HABITS = sys.argv[1:]

TOOLS = [
    {"name": "search", "inputSchema": {"type": "object", "properties": {"count": {}, "query": {"type": "string"}}}},
    {"name": "read", "inputSchema": {"properties": {"urls": {"type": "array"}}, "required": ["urls"]}},
    {"name": "odd", "inputSchema": {"properties": {"needle": {"type": "string"}}, "required": ["needle"]}},
    {"name": "unclear", "inputSchema": {"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}},
    {"name": "fails", "inputSchema": {"properties": {"q": {}}}},
    {"name": "tells", "inputSchema": {"properties": {"q": {}}}},
    {"name": "slow", "inputSchema": {"properties": {"q": {}}}},
    {"name": "dies", "inputSchema": {"properties": {"q": {}}}},
]


def note(what: str) -> None:
    with Path(LOG).open("a") as log:
        log.write(f"{os.getpid()} {what}\n")


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(said: str, **more: object) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}, {"type": "image", "data": ""}], **more}


def called(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if name == "search":
        found = [{"title": "T", "url": "https://e.org", "content": arguments["query"]}]
        return text(json.dumps(found))
    if name == "fails":
        return text("no such page", isError=True)
    if name == "tells":
        return text(json.dumps({"cwd": str(Path.cwd()), "env": sorted(os.environ), "key": os.environ.get("OWN_TOKEN")}))
    if name == "slow":
        time.sleep(1)
    if name == "dies":
        sys.stderr.write(f"out of order, {os.environ.get('OWN_TOKEN')}\n")
        sys.exit(3)
    return text(json.dumps(arguments))


def page(cursor: str | None) -> dict[str, Any]:
    """Two pages."""
    return {"tools": TOOLS[3:]} if cursor else {"tools": TOOLS[:3], "nextCursor": "more"}


def main() -> None:
    if "child" in HABITS:
        child = subprocess.Popen(["sleep", "600"])
        note(f"child {child.pid}")
    sys.stdout.write("starting up, which is no message\n")
    for line in sys.stdin:
        message = json.loads(line)
        note(message["method"] if "method" in message else f"answer {json.dumps(message.get('result'))}")
        if "id" not in message or "method" not in message:
            continue
        if "mute" in HABITS:
            continue
        result: dict[str, Any] = {}
        match message["method"]:
            case "initialize":
                say({"id": "theirs", "method": "ping"})
                say({"id": "more", "method": "roots/list"})
                result = {
                    "protocolVersion": "2024-11-05",
                    "capabilities": {},
                    "serverInfo": {"name": "x", "version": "1"},
                }
            case "tools/list":
                result = page(message["params"].get("cursor"))
            case "tools/call":
                result = called(message["params"]["name"], message["params"]["arguments"])
        say({"method": "notifications/message", "params": {"level": "info"}})
        say({"id": message["id"], "result": result})
    if "stays" in HABITS:
        time.sleep(600)


main()
