"""Keys and tokens that are known by their form: nothing else looks like them.

Each pattern is that of one provider, or of a private key with its body, and takes linear time. A text of the right form
still counts only if it looks random: documentation and tests are full of `ghp_xxxxxxxx` and `AKIAIOSFODNN7EXAMPLE`.
Guesses (a quoted text behind a name such as `password`) are made elsewhere: `adapters/checks/readiness.py`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple


class KnownSecret(NamedTuple):
    """A key or token found in a text."""

    line: int
    kind: str


_MARKS: Final = (
    "AKIA", "ASIA", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glptt-", "glrt-",
    "glsoat-", "npm_", "pypi-AgE", "xox", "hooks.slack.com", "k_live_", "SG.", "AIza", "sk-", "hf_", "_v1_",
    "AccountKey=",
)  # fmt: skip
"""One of these is in every token. To look for them first is many times faster than the patterns are."""
_TOKENS: Final[tuple[tuple[str, str], ...]] = (
    ("AWS access key", r"(?:AKIA|ASIA)[A-Z2-7]{16}"),
    ("GitHub token", r"gh[pousr]_[A-Za-z0-9]{36,255}"),
    ("GitHub token", r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    ("GitLab token", r"gl(?:pat|dt|ptt|rt|soat)-[A-Za-z0-9_-]{20,64}"),
    ("npm token", r"npm_[A-Za-z0-9]{36}"),
    ("PyPI token", r"pypi-AgE[A-Za-z0-9_-]{60,}"),
    ("Slack token", r"xox[abposr]-[0-9]{8,}-[0-9A-Za-z-]{16,}"),
    ("Slack webhook", r"hooks\.slack\.com/services/T[A-Z0-9]{8,}/B[A-Z0-9]{8,}/[A-Za-z0-9]{20,}"),
    ("Stripe key", r"[sr]k_live_[A-Za-z0-9]{20,}"),
    ("SendGrid key", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    ("Google API key", r"AIza[A-Za-z0-9_-]{35}"),
    ("OpenAI key", r"sk-(?:proj-|svcacct-|admin-)[A-Za-z0-9_-]{40,}"),
    ("OpenAI key", r"sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}"),
    ("Anthropic key", r"sk-ant-[a-z]+[0-9]{2}-[A-Za-z0-9_-]{40,}"),
    ("Hugging Face token", r"hf_[A-Za-z]{34}"),
    ("DigitalOcean token", r"do[opr]_v1_[a-f0-9]{64}"),
    ("Azure storage key", r"AccountKey=[A-Za-z0-9+/]{86}=="),
)
_TOKEN: Final = re.compile(
    "|".join(rf"(?<![A-Za-z0-9_])(?P<t{number}>{form})(?![A-Za-z0-9_])" for number, (_, form) in enumerate(_TOKENS))
)
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[\s\"'`+,;\\()]|\\[nr]|[br]?[\"'])*"
    r"(?:(?:Proc-Type|DEK-Info|Version|Comment): ?[^\n\\]*(?:[\s\"'\\]|\\n)*)*"
    r"([A-Za-z0-9+/=]{40,})"
)
_SAMPLE: Final = re.compile(r"example|dummy|fake|placeholder|sample|x{6}|0{8}|1234567|abcdef", re.IGNORECASE)
_RANDOM_BITS: Final = 3.0
"""Bits per character from which a token looks random; words and repeated letters have fewer."""
_RANDOM_KEY_BITS: Final = 4.0


def known_secrets(text: str) -> Iterator[KnownSecret]:
    """Yield every key and token in the text, with the line that it begins on."""
    for found in _TOKEN.finditer(text) if any(mark in text for mark in _MARKS) else ():
        kind = _TOKENS[int((found.lastgroup or "t0")[1:])][0]
        if not _SAMPLE.search(found[0]) and _bits(found[0]) >= _RANDOM_BITS:
            yield KnownSecret(text.count("\n", 0, found.start()) + 1, kind)
    for found in _PRIVATE_KEY.finditer(text):
        if not _SAMPLE.search(found[1][:40]) and _bits(found[1]) >= _RANDOM_KEY_BITS:
            yield KnownSecret(text.count("\n", 0, found.start()) + 1, "private key")


def _bits(text: str) -> float:
    """Return the Shannon entropy of the text, in bits per character."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())
