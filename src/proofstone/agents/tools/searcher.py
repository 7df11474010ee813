"""Find lines by a regular expression. It is a separate program, because only a process can be stopped while it matches.

    python -I -S searcher.py < {"pattern": …, "ignore_case": …, "most": …, "seconds": …} newline, then for each text
                               its length as eight bytes, and the text

It opens no files. It prints {"error": …} or {"found": [[number of the text, line number, line], …]}. It imports nothing
of Proofstone, so that it starts at once.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from typing import BinaryIO

MAX_SHOWN_CHARS = 300
CONTEXT_CHARS = 100


def find_lines(pattern: re.Pattern[str], stream: BinaryIO, limit: int) -> list[tuple[int, int, str]]:
    matches: list[tuple[int, int, str]] = []
    number = 0
    while head := stream.read(8):
        content = stream.read(int.from_bytes(head, "big"))
        for line_number, raw in enumerate(content.removesuffix(b"\n").split(b"\n"), 1):
            line = raw.removesuffix(b"\r").decode("utf-8", "replace")
            match = pattern.search(line)
            if match:
                matches.append((number, line_number, shorten_line(line, match.start())))
                if len(matches) == limit:
                    return matches
        number += 1
    return matches


def shorten_line(line: str, position: int) -> str:
    """Shorten a long line to the part around the match."""
    start = max(0, position - CONTEXT_CHARS) if len(line) > MAX_SHOWN_CHARS else 0
    end = start + MAX_SHOWN_CHARS
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")


def main() -> None:
    request = json.loads(sys.stdin.buffer.readline())
    # Limit the CPU time, in case the parent process dies.
    resource.setrlimit(resource.RLIMIT_CPU, (request["seconds"], request["seconds"]))
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    try:
        pattern = re.compile(request["pattern"], re.IGNORECASE if request["ignore_case"] else 0)
        answer: object = {"found": find_lines(pattern, sys.stdin.buffer, request["most"])}
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        answer = {"error": str(error) or "it needs too much memory"}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
