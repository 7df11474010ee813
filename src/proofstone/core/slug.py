"""A short name for branches, made of a longer text. Pure."""

from __future__ import annotations

import re
import unicodedata

_LONGEST = 48


def slug(text: str) -> str:
    """Lower-case letters, digits and dashes; `plan` where nothing of that kind is in the text."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii").lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:_LONGEST].strip("-") or "plan"
