"""A plan's bytes, from disk. What cannot be a plan is refused before anybody tries to read it."""

from __future__ import annotations

from pathlib import Path

from proofstone.errors import InputError

MOST_BYTES = 2 * 1024 * 1024


def load_plan(path: Path) -> tuple[bytes, str]:
    """The file as it is, and its text without byte order mark and with plain line ends."""
    raw = _bytes(path)
    if b"\0" in raw:
        raise InputError(f"{path} is not text", hint="a plan is a Markdown file, in UTF-8")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        hint = f"save it as UTF-8; byte 0x{raw[error.start]:02x} on that line is none"
        raise InputError(f"{path}:{line}: this is not UTF-8", hint=hint) from error
    if not text.strip():
        raise InputError(f"{path} is empty", hint="write the plan in it; docs/plan.md tells how")
    return raw, text.replace("\r\n", "\n").replace("\r", "\n")


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file", hint="name a Markdown file that is there") from error
    except (IsADirectoryError, NotADirectoryError) as error:
        raise InputError(f"{path} is not a file", hint=f"name the plan in it: {path / 'PLAN.md'}") from error
    except PermissionError as error:
        raise InputError(f"{path} may not be read", hint=f"`chmod u+r {path}`") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}", hint="name a Markdown file") from error
    if len(raw) > MOST_BYTES:
        raise InputError(f"{path} is larger than 2 MiB", hint="a plan is a few pages; split it, or name another file")
    return raw
