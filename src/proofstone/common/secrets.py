"""Takes the values of secret variables out of everything that a program says, before anybody keeps or shows it.

A value is looked for as it is and in the spellings that programs produce without meaning to: in JSON, in Python's
`repr`, in XML and HTML, percent-encoded, quoted for a shell, in base64 (also inside a longer text) and in hexadecimal;
and in part, where an ellipsis stands for the rest. Of a value with several lines each line counts by itself too, and of
a URL its password. Not found is what a program changed on purpose: a value that is reversed, split over lines, cut
without a mark or encrypted.

Not masked is what would make output unreadable and protect nothing (`is_maskable`): short values, plain words and
plain numbers.

Keys and tokens that are known by their form: nothing else looks like them.

Each pattern is that of one provider, or of a private key with its body, and takes linear time. A text of the right form
still counts only if it looks random: documentation and tests are full of `ghp_xxxxxxxx` and `AKIAIOSFODNN7EXAMPLE`.
Guesses (a quoted text behind a name such as `password`) are made elsewhere: `adapters/checks/readiness.py`.

Files that are likely to hold secrets: no agent is shown what is in them, and none writes them.

Judged by the path alone, in any case of letters. A name that is only an example of such a file is none.
"""

from __future__ import annotations

import base64
import html
import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple
from urllib.parse import quote, quote_plus, unquote, urlsplit

from proofstone.common.globs import matches

MASK: Final = b"***"
SHORTEST: Final = 8
"""Characters that a value must have."""
_CUT: Final = 6
"""Characters at the beginning or the end of a value that are masked where the rest is cut off."""
_ELLIPSIS: Final = re.compile(rb"\.{3,}|\xe2\x80\xa6")
_PLAIN: Final = re.compile(r"[a-z]+|[A-Z]+|[A-Z][a-z]+|[0-9.]+", re.ASCII)
_HOST: Final = re.compile(r"[a-z][a-z0-9+.-]*://[A-Za-z0-9.-]+(?::[0-9]+)?/?", re.ASCII)
_PLAIN_LENGTH: Final = 16
"""From this length on, also a plain word or number is masked: nobody names things so."""


@dataclass(frozen=True)
class SecretMask:
    """The values of some variables, and how to take them out of a text."""

    values: tuple[tuple[str, str], ...] = ()
    """Name and value of each variable."""

    @staticmethod
    def of(variables: Mapping[str, str], *, public: Collection[str] = ()) -> SecretMask:
        """Return the mask for these variables. `public`: values that everybody may see, such as paths."""
        found = ((name, value.strip()) for name, value in variables.items())
        return SecretMask(tuple((name, value) for name, value in found if value and value not in public))

    def __call__(self, data: bytes) -> bytes:
        """Return the data with every value masked, also one that its author has cut: `abcdefgh...stuvwxyz`."""
        return self._without_cut(self._pattern.sub(MASK, data)) if self._pattern else data

    def text(self, text: str) -> str:
        """Return the text with every value masked."""
        if not self._pattern:
            return text
        return self(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def names_in(self, text: str) -> list[str]:
        """Return the variables whose value, in any spelling, is in the text."""
        data = text.encode("utf-8", "surrogatepass")
        return [
            name
            for name, value in self.values
            if any(spelling in data for part in _parts(value) for spelling in _spellings(part))
        ]

    def stream(self) -> MaskedStream:
        """Return a mask for data that comes in pieces."""
        return MaskedStream(self)

    @cached_property
    def spellings(self) -> tuple[bytes, ...]:
        """Everything that is looked for; the longest first, since one may be a part of another."""
        found = {spelling for _, value in self.values for part in _parts(value) for spelling in _spellings(part)}
        return tuple(sorted(found, key=lambda spelling: (-len(spelling), spelling)))

    @cached_property
    def _pattern(self) -> re.Pattern[bytes] | None:
        return re.compile(b"|".join(map(re.escape, self.spellings))) if self.spellings else None

    def _without_cut(self, data: bytes) -> bytes:
        """Return the data without beginnings of a value in front of an ellipsis, and ends of one behind it."""
        parts, shown = [], 0
        for cut in _ELLIPSIS.finditer(data):
            start, end = max(cut.start(), shown), cut.end()
            if end <= shown:
                continue
            before = self.unfinished(data[max(shown, start - len(self.spellings[0])) : start])
            after = max(
                (_unfinished(data[end : end + len(spelling)][::-1], spelling[::-1]) for spelling in self.spellings),
                default=0,
            )
            parts += [data[shown : start - before], MASK, data[start:end]] if before >= _CUT else [data[shown:end]]
            shown = end
            if after >= _CUT:
                parts.append(MASK)
                shown = end + after
        return b"".join([*parts, data[shown:]])

    def unfinished(self, data: bytes) -> int:
        """Return how many bytes at the end of the data may be the beginning of a value that goes on."""
        return max((_unfinished(data, spelling) for spelling in self.spellings), default=0)


NO_SECRETS: Final = SecretMask()
"""Masks nothing."""


class MaskedStream:
    """Masks data that comes in pieces: what may be the beginning of a value is held back until more is known."""

    def __init__(self, mask: SecretMask) -> None:
        self._mask = mask
        self._held = b""

    def add(self, data: bytes) -> bytes:
        """Take the next piece, and return what may be shown by now."""
        if not self._mask.spellings:
            return data
        known = self._mask(self._held + data)
        shown = len(known) - self._mask.unfinished(known)
        self._held = known[shown:]
        return known[:shown]

    def end(self) -> bytes:
        """Return what was held back. The beginning of a value that is long enough to give it away is masked."""
        held, self._held = self._held, b""
        return MASK if len(held) >= SHORTEST else held


def is_maskable(value: str) -> bool:
    """Return whether a value is worth masking: not a short one, and not a plain word, number or host."""
    if len(value) < SHORTEST or _HOST.fullmatch(value):
        return False
    return len(value) >= _PLAIN_LENGTH or _PLAIN.fullmatch(value) is None


def _parts(value: str) -> Iterator[str]:
    """Yield what is secret in a value: the whole, each of its lines, and the password of a URL."""
    candidates = [value, *value.splitlines()]
    try:
        password = urlsplit(value).password if "://" in value else None
    except ValueError:
        password = None
    candidates += [password, unquote(password)] if password else []
    yield from dict.fromkeys(part.strip() for part in candidates if is_maskable(part.strip()))


def _spellings(part: str) -> Iterable[bytes]:
    raw = part.encode("utf-8", "surrogateescape")
    texts = {
        part.replace("\n", "\r\n"),
        json.dumps(part)[1:-1],
        json.dumps(part, ensure_ascii=False)[1:-1],
        repr(part)[1:-1],
        html.escape(part),
        html.escape(part, quote=False),
        quote(raw, safe=""),
        quote(raw),
        quote_plus(raw),
        shlex.quote(part),
    }
    texts |= {re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), text) for text in texts if "%" in text}
    found = {raw, *(text.encode("utf-8", "surrogateescape") for text in texts)}
    found |= {raw.hex().encode(), raw.hex().upper().encode(), *_base64(raw)}
    return {spelling for spelling in found if len(spelling) >= SHORTEST}


def _base64(raw: bytes) -> Iterator[bytes]:
    """Yield what base64 makes of the value by itself, and at any place inside a longer text."""
    for shift, first in ((0, 0), (1, 2), (2, 3)):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(b"\0" * shift + raw)
            last = len(whole) if (shift + len(raw)) % 3 == 0 else len(whole.rstrip(b"=")) - 1
            yield whole[first:last]
    yield base64.b64encode(raw)


def _unfinished(data: bytes, spelling: bytes) -> int:
    at = data.find(spelling[:1], max(0, len(data) - len(spelling) + 1))
    while at >= 0:
        if spelling.startswith(data[at:]):
            return len(data) - at
        at = data.find(spelling[:1], at + 1)
    return 0


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


_EXAMPLES: Final = re.compile(r".*[._-](?:examples?|sample|template|tmpl|tpl|dist|schema)(?:\.[a-z0-9]+)?")

_DATA: Final = r"(?:ya?ml|json5?|toml|ini|cfg|conf|properties|xml|txt|csv|env|enc|db|gpg)"

_NAMES: Final = re.compile(
    "|".join(
        (
            # variables
            r"\.env(?:[._-].*)?",
            r"\.envrc",
            r".+\.env",
            # keys and certificates with keys
            r".*\.(?:pem|key|p12|pfx|p8|jks|keystore|kdbx|ppk|gpg|pgp|ovpn|age)",
            r"id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?:[._-].*)?",
            r".*_(?:rsa|dsa|ecdsa|ed25519)",
            # credentials of programs
            r"[._]netrc",
            r"\.(?:npmrc|yarnrc|pypirc|gemrc|dockercfg|git-credentials|htpasswd|pgpass|my\.cnf|s3cfg|boto|vault-token)",
            r"htpasswd",
            r"\.(?:bash|zsh|python|node_repl|psql|mysql)_history",
            # by their own word
            rf"\.?credentials?(?:[._-].*)?(?:\.{_DATA})?",
            rf"(?:.*[._-])?credentials?\.{_DATA}",
            rf"(?:.*[._-])?secrets?(?:[._-].*)?\.{_DATA}",
            r"\.?secrets?",
            rf"(?:.*[._-])?(?:api|access|auth)[._-]?(?:keys?|tokens?)\.{_DATA}",
            r"service[._-]?account.*\.json",
            r"client[._-]?secret.*\.json",
            r"google-services\.json",
            # state of tools that keep secrets in the clear
            r".*\.tfstate(?:\..*)?",
            r".*\.tfvars(?:\.json)?",
            r"kubeconfig(?:[._-].*)?",
            r"master\.key",
            r"\.vault[._-]pass(?:word)?(?:\..*)?",
        )
    )
)

_CODE: Final = re.compile(
    r".+\.(?:py|pyi|js|mjs|cjs|jsx|ts|mts|cts|tsx|go|rs|java|kt|scala|rb|php|c|h|cc|cpp|cs|swift|sh|html|css|md|rst)"
)
"""Source and documentation about such things: `credentials.py`."""

_FOLDERS: Final = frozenset({".aws", ".ssh", ".gnupg", ".azure", ".gcloud"})
_FOLDERS_OF_DATA: Final = frozenset({"secrets", ".secrets"})
"""What lies in them is secret unless it is source."""
_PLACES: Final = (".kube/config", ".docker/config.json", ".config/gcloud", ".config/gh", ".terraform.d")


def is_secret(path: str, more: Iterable[str] = ()) -> bool:
    """`path`: from the project's root. `more`: further patterns, of the person's own."""
    if any(matches(pattern, path) for pattern in more):
        return True
    folded = path.casefold()
    *folders, name = folded.split("/")
    if not _FOLDERS.isdisjoint((*folders, name)) or any(f"/{place}/" in f"/{folded}/" for place in _PLACES):
        return True
    if _EXAMPLES.fullmatch(name) or _CODE.fullmatch(name):
        return False
    return bool(_NAMES.fullmatch(name)) or not _FOLDERS_OF_DATA.isdisjoint(folders)
