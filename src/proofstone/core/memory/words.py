"""When two texts are about the same: by the words that they share. No model is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from proofstone.contracts.memory import CLASS, TARGET, TOOL, MemoryEntry

_WORD: Final = re.compile(r"\w+")

STOP_WORDS: Final = frozenset(
    {
        "a", "all", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "do", "does", "each",
        "for", "from", "had", "has", "have", "if", "in", "into", "is", "it", "its", "may", "must", "no", "not", "of",
        "on", "or", "please", "should", "so", "than", "that", "the", "then", "there", "these", "they", "this", "those",
        "to", "was", "we", "were", "what", "when", "where", "which", "who", "will", "with", "you", "your",
        # What our own entries put around the words of a task.
        "abandoned", "accepted", "after", "environmental", "failed", "logical", "merged", "mixed", "more", "partial",
        "replans", "result",
    }
)  # fmt: skip
_NAMES: Final = re.compile(rf"^(?:{TOOL}|{TARGET}|{CLASS})")


def words_in(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(word.casefold() for text in texts for word in _WORD.findall(text))


def subject_of(texts: Iterable[str]) -> frozenset[str]:
    """The words that say what a text is about."""
    return words_in(texts) - STOP_WORDS


def subject_of_entry(entry: MemoryEntry) -> frozenset[str]:
    return subject_of((entry.content, *(_NAMES.sub("", tag) for tag in entry.tags)))
