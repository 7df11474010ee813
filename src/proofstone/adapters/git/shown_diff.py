"""A change as agents are shown it: without files that may hold secrets, and of a bounded length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from proofstone.adapters.git.program import Git, readable


def shown_diff(git: Git, old: str, new: str, hidden: Sequence[str], most: int) -> str:
    """`hidden`: changed files of which only that is said. A long one is shown without its middle."""
    # What is left out is said with pathspec magic, which our git does not read otherwise.
    reading = replace(git, variables={**git.variables, "GIT_LITERAL_PATHSPECS": "0"})
    without = [f":(top,exclude,literal){path}" for path in hidden]
    limits = ("--", ":/", *without) if without else ()
    text = readable(reading.out("diff-tree", "-p", old, new, *limits))
    text = "".join((text, *(f"[{path} changed; it may hold secrets and is not shown]\n" for path in hidden)))
    return text if len(text) <= most else f"{text[: most // 2]}\n[...]\n{text[-most // 2 :]}"
