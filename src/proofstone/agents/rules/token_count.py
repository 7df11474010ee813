"""Estimate how many tokens a text has. Pure.

Every model has a tokenizer of its own, and none of them is part of the product. The estimate counts what byte-pair
tokenizers usually make one token: short words, digits, runs of punctuation, line ends. On the prompts, schemas and
tools of the roles it was within 7 % of the tokenizer of a small model (SmolLM2).
"""

from __future__ import annotations

import re
from typing import Final

_PIECE: Final = re.compile(r"[A-Za-z]+|[^\x00-\x7f]|\d|[^\w\s\x80-\U0010ffff]+|_|\n+")
_WORD_CHARS: Final = 7
"""Letters that fit into one token of a long word."""


def estimate_tokens(text: str) -> int:
    """Return about how many tokens the text has."""
    return sum(-(-len(piece) // _WORD_CHARS) if piece[0].isalpha() else 1 for piece in _PIECE.findall(text))
