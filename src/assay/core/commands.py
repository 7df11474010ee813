"""What a person's command line can prove."""

from __future__ import annotations

import re
import shlex

_SUCCEED_ALONE = frozenset((":", "true", "echo", "printf", "cat", "ls", "pwd", "date", "sleep", "exit"))
_OPERATORS = re.compile(r"&&|\|\||[;|&\n]")
_SHELL = frozenset("|&;<>$`()\n")


def is_compound(command: str) -> bool:
    """Whether the shell does more than start one program: then its exit code may come from any of several."""
    return bool(set(command) & _SHELL)


def is_vacuous(command: str) -> bool:
    """Whether nothing in it looks at whether the change is right: `true`, `echo ok`, `exit 0`, `cat x; true`."""
    parts = [part.strip() for part in _OPERATORS.split(command)]
    return all(_says_nothing(part) for part in parts if part)


VACUOUS = "says too little: it does not look at whether the change is right"


def _says_nothing(part: str) -> bool:
    try:
        words = shlex.split(part, comments=True)
    except ValueError:
        return False
    if not words:
        return True
    name = words[0].rpartition("/")[2]
    return name in _SUCCEED_ALONE and not (name == "exit" and words[1:2] not in ([], ["0"]))
