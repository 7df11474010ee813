"""Find secrets: mask the values of secret variables, recognise keys and tokens, and know which files hold secrets.

*Masking* (`SecretMask`) removes the values of secret variables from all output before it is stored or shown. A value is
found as it is and in the encodings that programs produce unintentionally: JSON, Python's `repr`, XML and HTML,
percent-encoding, shell quoting, base64 (also inside a longer text) and hexadecimal; and in part, where an ellipsis
replaces the rest. Each line of a value with several lines counts by itself too, and so does the password of a URL. A
value that a program changed on purpose is not found: reversed, split over lines, cut without an ellipsis or encrypted.
Short values, plain words and plain numbers are not masked (`is_maskable`), because that would make output unreadable
and protect nothing.

*Keys and tokens* (`find_known_secrets`) are recognised by their form. Each pattern belongs to one provider, or to a
private key with its body, and takes linear time. A text of the right form counts only if it looks random: documentation
and tests are full of `ghp_xxxxxxxx` and `AKIAIOSFODNN7EXAMPLE`. Guesses (a quoted text after a name such as `password`)
are made in the readiness check.

*Files* (`is_secret_path`) that are likely to hold secrets are never shown to an agent, and no agent writes them. Only
the path decides, ignoring case. A file whose name says that it is an example does not count.
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
MIN_SECRET_LENGTH: Final = 8
"""The least number of characters of a value."""
_MIN_ABBREVIATED: Final = 6
"""The least number of characters at the beginning or end of a value that are masked if the rest was cut off."""
_ELLIPSIS: Final = re.compile(rb"\.{3,}|\xe2\x80\xa6")
_PLAIN: Final = re.compile(r"[a-z]+|[A-Z]+|[A-Z][a-z]+|[0-9.]+", re.ASCII)
_HOST: Final = re.compile(r"[a-z][a-z0-9+.-]*://[A-Za-z0-9.-]+(?::[0-9]+)?/?", re.ASCII)
_PLAIN_LENGTH: Final = 16
"""From this length on, plain words and numbers are masked too: they are not ordinary names."""


@dataclass(frozen=True)
class SecretMask:
    """The values of some variables, and how to remove them from a text."""

    values: tuple[tuple[str, str], ...] = ()
    """The name and value of each variable."""

    @staticmethod
    def from_variables(variables: Mapping[str, str], *, public: Collection[str] = ()) -> SecretMask:
        """Return the mask for these variables. `public` holds values that everybody may see, such as paths."""
        pairs = ((name, value.strip()) for name, value in variables.items())
        return SecretMask(tuple((name, value) for name, value in pairs if value and value not in public))

    def __call__(self, data: bytes) -> bytes:
        """Return the data with every value masked, also one that was abbreviated: `abcdefgh...stuvwxyz`."""
        return self._mask_abbreviated(self._pattern.sub(MASK, data)) if self._pattern else data

    def mask_text(self, text: str) -> str:
        """Return the text with every value masked."""
        if not self._pattern:
            return text
        return self(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def find_names(self, text: str) -> list[str]:
        """Return the variables whose value, in any spelling, is in the text."""
        data = text.encode("utf-8", "surrogatepass")
        return [
            name
            for name, value in self.values
            if any(spelling in data for part in _secret_parts(value) for spelling in _encodings(part))
        ]

    def open_stream(self) -> MaskedStream:
        """Return a mask for data that arrives in chunks."""
        return MaskedStream(self)

    @cached_property
    def spellings(self) -> tuple[bytes, ...]:
        """All encodings of all values, longest first because one may be a part of another."""
        spellings = {
            spelling for _, value in self.values for part in _secret_parts(value) for spelling in _encodings(part)
        }
        return tuple(sorted(spellings, key=lambda spelling: (-len(spelling), spelling)))

    @cached_property
    def _pattern(self) -> re.Pattern[bytes] | None:
        return re.compile(b"|".join(map(re.escape, self.spellings))) if self.spellings else None

    def _mask_abbreviated(self, data: bytes) -> bytes:
        """Mask the beginning of a value before an ellipsis, and the end of a value after one."""
        parts, position = [], 0
        for ellipsis in _ELLIPSIS.finditer(data):
            start, end = max(ellipsis.start(), position), ellipsis.end()
            if end <= position:
                continue
            before = self.pending_length(data[max(position, start - len(self.spellings[0])) : start])
            after = max(
                (_prefix_length(data[end : end + len(spelling)][::-1], spelling[::-1]) for spelling in self.spellings),
                default=0,
            )
            parts += (
                [data[position : start - before], MASK, data[start:end]]
                if before >= _MIN_ABBREVIATED
                else [data[position:end]]
            )
            position = end
            if after >= _MIN_ABBREVIATED:
                parts.append(MASK)
                position = end + after
        return b"".join([*parts, data[position:]])

    def pending_length(self, data: bytes) -> int:
        """Return how many bytes at the end of the data may be the beginning of a longer value."""
        return max((_prefix_length(data, spelling) for spelling in self.spellings), default=0)


NO_SECRETS: Final = SecretMask()
"""Masks nothing."""


class MaskedStream:
    """Masks data that arrives in chunks: a possible beginning of a value is held back until more data arrives."""

    def __init__(self, mask: SecretMask) -> None:
        self._mask = mask
        self._pending = b""

    def add(self, data: bytes) -> bytes:
        """Take the next chunk and return the data that can be shown now."""
        if not self._mask.spellings:
            return data
        masked = self._mask(self._pending + data)
        shown_length = len(masked) - self._mask.pending_length(masked)
        self._pending = masked[shown_length:]
        return masked[:shown_length]

    def end(self) -> bytes:
        """Return the data that was held back. The beginning of a value is masked if it is long enough to reveal the
        value.
        """
        pending, self._pending = self._pending, b""
        return MASK if len(pending) >= MIN_SECRET_LENGTH else pending


def is_maskable(value: str) -> bool:
    """Return whether a value is worth masking: it is not short, and not a plain word, number or host."""
    if len(value) < MIN_SECRET_LENGTH or _HOST.fullmatch(value):
        return False
    return len(value) >= _PLAIN_LENGTH or _PLAIN.fullmatch(value) is None


def _secret_parts(value: str) -> Iterator[str]:
    """Yield the secret parts of a value: the whole, each of its lines, and the password of a URL."""
    candidates = [value, *value.splitlines()]
    try:
        password = urlsplit(value).password if "://" in value else None
    except ValueError:
        password = None
    candidates += [password, unquote(password)] if password else []
    yield from dict.fromkeys(part.strip() for part in candidates if is_maskable(part.strip()))


def _encodings(part: str) -> Iterable[bytes]:
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
    texts |= {re.sub("%[0-9A-F]{2}", lambda spellings: spellings[0].lower(), text) for text in texts if "%" in text}
    spellings = {raw, *(text.encode("utf-8", "surrogateescape") for text in texts)}
    spellings |= {raw.hex().encode(), raw.hex().upper().encode(), *_base64_forms(raw)}
    return {spelling for spelling in spellings if len(spelling) >= MIN_SECRET_LENGTH}


def _base64_forms(raw: bytes) -> Iterator[bytes]:
    """Yield the base64 forms of the value, by itself and at any position inside a longer text."""
    for shift, first in ((0, 0), (1, 2), (2, 3)):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(b"\0" * shift + raw)
            last = len(whole) if (shift + len(raw)) % 3 == 0 else len(whole.rstrip(b"=")) - 1
            yield whole[first:last]
    yield base64.b64encode(raw)


def _prefix_length(data: bytes, spelling: bytes) -> int:
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
"""Every token contains one of these. Searching for them first is many times faster than matching the patterns."""
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
    r"(?=[A-Za-z0-9+/=]{40})([A-Za-z0-9+/=\s\"'`,;\\()]{40,4096})"
)
_KEY_LINE: Final = re.compile(r"[A-Za-z0-9+/=]{20,}")
_SAMPLE: Final = re.compile(r"example|dummy|fake|placeholder|sample|x{6}|0{8}|1234567|abcdef", re.IGNORECASE)
_RANDOM_BITS: Final = 3.0
"""The entropy in bits per character from which a token looks random; words and repeated letters have less."""
_RANDOM_KEY_BITS: Final = 4.0


def find_known_secrets(text: str) -> Iterator[KnownSecret]:
    """Yield every key and token in the text, with the line on which it begins."""
    for match in _TOKEN.finditer(text) if any(mark in text for mark in _MARKS) else ():
        kind = _TOKENS[int((match.lastgroup or "t0")[1:])][0]
        if not _SAMPLE.search(match[0]) and _entropy(match[0]) >= _RANDOM_BITS:
            yield KnownSecret(text.count("\n", 0, match.start()) + 1, kind)
    for match in _PRIVATE_KEY.finditer(text):
        # The whole body counts: the first line of an OpenSSH key is the same in all keys and mostly zeros.
        body = "".join(_KEY_LINE.findall(match[1]))
        if not _SAMPLE.search(body[:40]) and _entropy(body) >= _RANDOM_KEY_BITS:
            yield KnownSecret(text.count("\n", 0, match.start()) + 1, "private key")


def _entropy(text: str) -> float:
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
"""Source and documentation about secrets, such as `credentials.py`."""

_FOLDERS: Final = frozenset({".aws", ".ssh", ".gnupg", ".azure", ".gcloud"})
_FOLDERS_OF_DATA: Final = frozenset({"secrets", ".secrets"})
"""Everything in these folders is secret unless it is source code."""
_PATHS: Final = (".kube/config", ".docker/config.json", ".config/gcloud", ".config/gh", ".terraform.d")


def is_secret_path(path: str, more: Iterable[str] = ()) -> bool:
    """Return whether the file is likely to hold secrets.

    `path` is relative to the project's root. `more` holds further patterns that the user configured.
    """
    if any(matches(pattern, path) for pattern in more):
        return True
    folded = path.casefold()
    *folders, name = folded.split("/")
    if not _FOLDERS.isdisjoint((*folders, name)) or any(f"/{place}/" in f"/{folded}/" for place in _PATHS):
        return True
    if _EXAMPLES.fullmatch(name) or _CODE.fullmatch(name):
        return False
    return bool(_NAMES.fullmatch(name)) or not _FOLDERS_OF_DATA.isdisjoint(folders)
