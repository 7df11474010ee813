"""Which complaints of a linter or type checker a change brought in.

A complaint is told apart by file, code and message, not by line: one that merely moved is the same complaint.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from proofstone.contracts.diagnostic import Diagnostic


def new_complaints(before: Sequence[Diagnostic], after: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """What `after` has more of than `before`, in the order of `after`."""
    left = Counter(map(_identity, before))
    known: defaultdict[tuple[str, str, str], set[int | None]] = defaultdict(set)
    for item in before:
        known[_identity(item)].add(item.line)
    # Of several equal complaints the ones that stayed on their line are the old ones.
    surplus: set[int] = set()
    for index, item in sorted(enumerate(after), key=lambda pair: pair[1].line not in known[_identity(pair[1])]):
        if left[_identity(item)] > 0:
            left[_identity(item)] -= 1
        else:
            surplus.add(index)
    return tuple(item for index, item in enumerate(after) if index in surplus)


def _identity(item: Diagnostic) -> tuple[str, str, str]:
    """With line numbers inside the message left out: `already defined on line 7` moves as well."""
    path, code, message = item.identity
    return (path, code, re.sub(r"\bline \d+", "line", message))
