"""The words that say what a text is about, for finding what is remembered about a task. Pure.

Words are compared by their stems, so that "counting rows" is found for "count the rows". The stemmer takes the usual
endings of English words off; it need not give a word of the language, only the same stem for the forms of one word.
Words of other languages are mostly left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_WORD: Final = re.compile(r"\w+")

STOP_WORDS: Final = frozenset(
    {
        "a", "all", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "do", "does", "each",
        "for", "from", "had", "has", "have", "if", "in", "into", "is", "it", "its", "may", "must", "no", "not", "of",
        "on", "or", "please", "should", "so", "than", "that", "the", "then", "there", "these", "they", "this", "those",
        "to", "was", "we", "were", "what", "when", "where", "which", "who", "will", "with", "you", "your",
        # Words that our own entries add to the words of a task.
        "abandoned", "accepted", "after", "committed", "environmental", "failed", "logical", "merged", "mixed", "more",
        "partial", "replans", "result",
    }
)  # fmt: skip

_MIN_STEM: Final = 3
_ENDINGS: Final = (
    ("ations", "at"), ("ation", "at"), ("ators", "at"), ("ator", "at"),
    ("tions", "t"), ("tion", "t"), ("sions", "s"), ("sion", "s"),
    ("ments", ""), ("ment", ""), ("nesses", ""), ("ness", ""),
    ("ings", ""), ("ing", ""), ("ers", ""), ("er", ""), ("ors", ""), ("or", ""),
    ("ies", "y"), ("ied", "y"), ("sses", "ss"), ("ed", ""), ("ly", ""), ("es", ""), ("s", ""), ("e", ""),
)  # fmt: skip
"""Endings and what replaces them. The first that fits is taken off, once."""
_KEPT_ENDINGS: Final = ("ss", "us", "is")
_VOWELS: Final = frozenset("aeiouy")


def split_words(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(word.casefold() for text in texts for word in _WORD.findall(text))


def stem_word(word: str) -> str:
    """Return the stem of a word in lower case."""
    if not word.isascii() or not word.isalpha() or word.endswith(_KEPT_ENDINGS):
        return word
    for ending, replacement in _ENDINGS:
        stem = word.removesuffix(ending) + replacement
        if word.endswith(ending) and len(stem) >= _MIN_STEM and not _VOWELS.isdisjoint(stem):
            return _undouble(stem)
    return word


def _undouble(stem: str) -> str:
    """Return `stop` for `stopp`; `call` and `miss` keep their letters."""
    is_doubled = len(stem) > _MIN_STEM and stem[-1] == stem[-2] and stem[-1] not in "lsz"
    return stem[:-1] if is_doubled else stem


def extract_stems(texts: Iterable[str]) -> frozenset[str]:
    """Return the stems of all words of the texts."""
    return frozenset(map(stem_word, split_words(texts)))


def extract_subject(texts: Iterable[str]) -> frozenset[str]:
    """Return the stems of the words that say what the texts are about."""
    return frozenset(map(stem_word, split_words(texts) - STOP_WORDS))


def is_same_request(text: str, other: str) -> bool:
    """Return whether two requests have the same words, whatever their case and spacing."""
    return bool(text.strip()) and _WORD.findall(text.casefold()) == _WORD.findall(other.casefold())
