"""Finds lines by a regular expression: a program of its own, because only a process can be stopped while it matches.

    python -I -S searcher.py < {"pattern": …, "ignore_case": …, "most": …, "seconds": …} newline, then for each text
                               its length as eight bytes, and the text

It opens no file. It prints {"error": …} or {"found": [[number of the text, line, what stands there], …]}. Nothing of
ours is imported, so that it starts at once.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from typing import BinaryIO

SHOWN = 300
BEFORE = 100


def lines(pattern: re.Pattern[str], stream: BinaryIO, most: int) -> list[tuple[int, int, str]]:
    found: list[tuple[int, int, str]] = []
    number = 0
    while head := stream.read(8):
        content = stream.read(int.from_bytes(head, "big"))
        for at, raw in enumerate(content.removesuffix(b"\n").split(b"\n"), 1):
            line = raw.removesuffix(b"\r").decode("utf-8", "replace")
            match = pattern.search(line)
            if match:
                found.append((number, at, part(line, match.start())))
                if len(found) == most:
                    return found
        number += 1
    return found


def part(line: str, at: int) -> str:
    """Of a long line, what stands around the match."""
    start = max(0, at - BEFORE) if len(line) > SHOWN else 0
    end = start + SHOWN
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")


def main() -> None:
    asked = json.loads(sys.stdin.buffer.readline())
    # Should whoever started it die, it does not go on for ever.
    resource.setrlimit(resource.RLIMIT_CPU, (asked["seconds"], asked["seconds"]))
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    try:
        pattern = re.compile(asked["pattern"], re.IGNORECASE if asked["ignore_case"] else 0)
        said: object = {"found": lines(pattern, sys.stdin.buffer, asked["most"])}
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        said = {"error": str(error) or "it needs too much memory"}
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main()
