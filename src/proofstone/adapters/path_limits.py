"""Paths that are longer than the system takes: which limit they are over, and by which part."""

from __future__ import annotations

import os
from typing import Final

from proofstone.errors import InputError

_NAME_BYTES: Final = 255
PATH_BYTES: Final = 4095
"""NAME_MAX and PATH_MAX of Linux, the latter without its closing zero."""
_SHOWN: Final = 60
"""Characters of either end of a path that is too long to be shown."""


def path_too_long(path: str | bytes | os.PathLike[str]) -> InputError:
    """Return the error for a path of which the system said that it is too long."""
    encoded = os.fsencode(path)
    text = os.fsdecode(encoded)
    shown = text if len(text) <= 2 * _SHOWN else f"{text[:_SHOWN]}…{text[-_SHOWN:]}"
    longest = max(encoded.split(b"/"), key=len)
    if len(longest) > _NAME_BYTES:
        name = os.fsdecode(longest)[:_SHOWN]
        limit = f"the name {name}… has {len(longest)} bytes, and the system allows {_NAME_BYTES} between two slashes"
    else:
        limit = f"the path has {len(encoded)} bytes, and the system allows {PATH_BYTES}"
    return InputError(
        f"{shown}: too long: {limit}",
        hint="use shorter names, or put the repository or PROOFSTONE_HOME nearer to the root",
    )
