"""JSON as people write it in configuration: with comments and trailing commas.

Comments become blanks and line ends stay, so that the position in an error is the position in the file.
"""

from __future__ import annotations

import json
import re

# In both, a string is matched first and kept: `//` or `,]` inside one is text.
_STRING = r'("(?:\\.|[^"\\\n])*+")'
_COMMENT = re.compile(_STRING + r"|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/")
_TRAILING_COMMA = re.compile(_STRING + r"|,(?=\s*+[}\]])")


def plain_json(text: str) -> str:
    """`text` without comments and trailing commas, every other character where it was."""
    bare = _COMMENT.sub(lambda m: m[1] or re.sub(r"[^\n]", " ", m[0]), text)
    return _TRAILING_COMMA.sub(lambda m: m[1] or " ", bare)


def parse_jsonc(text: str) -> object:
    """The value; raises `json.JSONDecodeError` with the place, or `RecursionError` when nested absurdly."""
    value: object = json.loads(plain_json(text))
    return value
