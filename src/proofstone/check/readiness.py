"""Whether a Large change is ready for production: no secrets, no swallowed errors, error paths that can be seen.

Only added lines are looked at. What a secret is never appears in a message: the ledger keeps messages for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from proofstone.common.models import ChangeKind, Diagnostic
from proofstone.common.risk import PathChange, Risk, risk_of
from proofstone.sources.syntax import LIMIT, language_of
from proofstone.sources.text import parse_source

if TYPE_CHECKING:
    from tree_sitter import Node


ReadinessType = Literal["secrets", "swallowed-exceptions", "observability"]
Item = tuple[ReadinessType, Diagnostic]

LONGEST_LINE: Final = 4000
"""Longer lines are generated, and the secret patterns take quadratic time on them."""


def readiness(path: str, added_lines: Sequence[tuple[int, str]], content: bytes) -> tuple[Item, ...]:
    """What speaks against a changed file; `added_lines` are numbers and texts of the new file's added lines."""
    found: list[Item] = [("secrets", item) for item in _secrets(path, added_lines)]
    added = frozenset(number for number, _ in added_lines)
    change = PathChange(path=path, kind=ChangeKind.MODIFIED, added=tuple(text for _, text in added_lines))
    risky = risk_of(change).risk is Risk.RED
    for handler in _handlers(path, content):
        if not added.intersection(range(handler.first, handler.last + 1)):
            continue
        if handler.swallows:
            message = f"{handler.what} hides the error: handle it, log it or let it through"
            found.append(
                (
                    "swallowed-exceptions",
                    Diagnostic(path=path, line=handler.first, code="swallowed", message=message),
                )
            )
        elif risky and not _TELLS.search(handler.body):
            message = f"{handler.what} in high-risk code neither logs the error nor passes it on"
            found.append(
                ("observability", Diagnostic(path=path, line=handler.first, code="silent-error", message=message))
            )
    return tuple(found)


# Secrets

_PROSE_OR_TEST = re.compile(
    r"(?:^|/)(?:tests?|spec|fixtures|examples?|docs?)/|(?:^|/)test_|\.(?:md|rst|txt)$|[._-]test\."
)
_WEAK: Final = frozenset({"Secret Keyword", "Basic Auth Credentials"})
"""Kinds that documentation and tests hold as examples all the time."""
_LEFT_OUT: Final = frozenset({"Base64 High Entropy String", "Hex High Entropy String", "Public IP (ipv4)"})
"""Digests, keys of maps and addresses look the same as secrets to these."""
_CREDENTIAL_NAME = re.compile(r"token|secret|passw|credential|api_?key|private_?key", re.IGNORECASE)
_ENTROPIC = re.compile(r"""['"]([A-Za-z0-9+/_=-]{32,})['"]""")
_NOT_REAL = re.compile(r"example|dummy|fake|changeme|placeholder|your[-_]|xxx+|test|sample|<.*>|\.\.\.", re.IGNORECASE)


def _secrets(path: str, added_lines: Sequence[tuple[int, str]]) -> Iterator[Diagnostic]:
    quiet = _PROSE_OR_TEST.search(path.lower()) is not None
    for number, text in added_lines:
        if len(text) > LONGEST_LINE:
            continue
        for kind in sorted(_kinds(path, number, text)):
            if quiet and kind in _WEAK:
                continue
            message = f"{kind} in an added line: take it out, and revoke it if it was real"
            yield Diagnostic(path=path, line=number, code="secret", message=message)


def looks_like_credential(line: str) -> bool:
    """Return whether a quoted, random-looking text follows a name such as `token` or `password` in the line."""
    if len(line) > LONGEST_LINE:
        return False
    return any(
        _CREDENTIAL_NAME.search(line[: match.start()]) and _varied(match[1]) and not _NOT_REAL.search(match[1])
        for match in _ENTROPIC.finditer(line)
    )


def _kinds(path: str, number: int, text: str) -> set[str]:
    from detect_secrets.filters import allowlist
    from detect_secrets.util.code_snippet import CodeSnippet

    found = set()
    for plugin in _plugins():
        for secret in plugin.analyze_line(filename=path, line=text, line_number=number):
            value = secret.secret_value or ""
            if plugin.secret_type not in _WEAK or not _harmless(value, text, plugin):
                found.add(str(secret.type))
    for match in _ENTROPIC.finditer(text):
        if _CREDENTIAL_NAME.search(text[: match.start()]) and _varied(match[1]):
            found.add("High Entropy Credential")
    return set() if found and allowlist.is_line_allowlisted(path, text, CodeSnippet([text], 0, 0)) else found


def _harmless(value: str, text: str, plugin: Any) -> bool:  # noqa: ANN401  detect-secrets has no types
    from detect_secrets.filters import heuristic

    return bool(
        len(value) < 6
        or _NOT_REAL.search(value)
        or heuristic.is_sequential_string(value)
        or heuristic.is_potential_uuid(value)
        or heuristic.is_templated_secret(value)
        or heuristic.is_prefixed_with_dollar_sign(value)
        or heuristic.is_not_alphanumeric_string(value)
        or heuristic.is_indirect_reference(text)
        or heuristic.is_likely_id_string(value, text, plugin)
    )


def _varied(value: str) -> bool:
    """Digits and both cases, as random bytes have and words do not."""
    return all(re.search(kind, value) for kind in (r"\d", r"[A-Z]", r"[a-z]")) and len(set(value)) >= 16


@lru_cache(maxsize=1)
def _plugins() -> tuple[Any, ...]:
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    mapping: Mapping[str, Any] = get_mapping_from_secret_type_to_class()
    return tuple(mapping[kind]() for kind in sorted(mapping) if kind not in _LEFT_OUT)


# Error paths

_TELLS = re.compile(
    r"\b(?:raise|throw|return|yield|panic|rethrow|reject|abort|exit|fail|next)\b|log|warn|error\(|print|fatal|trace|"
    r"capture|report|metric|emit",
    re.IGNORECASE,
)
_CLAUSES: Final[Mapping[str, tuple[str, str]]] = {
    "python": ("except_clause", "except"),
    "javascript": ("catch_clause", "catch"),
    "typescript": ("catch_clause", "catch"),
    "tsx": ("catch_clause", "catch"),
    "java": ("catch_clause", "catch"),
    "php": ("catch_clause", "catch"),
    "ruby": ("rescue", "rescue"),
    "go": ("if_statement", "if err != nil"),
}
_BODIES: Final = frozenset({"block", "statement_block", "compound_statement", "statements", "then"})
_NOTHING: Final = frozenset({"pass_statement", "ellipsis", "empty_statement"})
_BROAD = re.compile(rb"except\s*(?:\(?\s*(?:Base)?Exception\b.*)?:")
_MISSING_IS_FINE = re.compile(rb"except\s*\(?[\s\w,.]*(?:ImportError|ModuleNotFoundError|StopIteration|CancelledError)")
_GO_ERROR = re.compile(rb"if\s+(?:[^{;]*;\s*)?\w*[eE]rr\w*\s*!=\s*nil\s*\{")
_GO_DROPPED = re.compile(rb"_\s*=\s*\w*[eE]rr")


@dataclass(frozen=True, slots=True)
class _Handler:
    first: int
    last: int
    what: str
    body: str
    swallows: bool


def _handlers(path: str, content: bytes) -> Iterator[_Handler]:
    language = language_of(path, content)
    if language is None or language not in _CLAUSES or len(content) > LIMIT:
        return
    root = parse_source(content, language)
    if root is None:
        return  # too broken to hold any; the check of the syntax says so
    wanted, what = _CLAUSES[language]
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        text = node.text or b""
        first, last = node.start_point[0] + 1, node.end_point[0] + 1
        if language == "go" and node.type == "assignment_statement" and _GO_DROPPED.fullmatch(text):
            yield _Handler(first, last, "_ = err", "", swallows=True)
        elif node.is_named and node.type == wanted and (language != "go" or _GO_ERROR.match(text)):
            yield _handler(node, language, what, first, last)


def _handler(node: Node, language: str, what: str, first: int, last: int) -> _Handler:
    body = next((child for child in node.children if child.type in _BODIES), None)
    statements = [child for child in body.named_children if child.type != "comment"] if body else []
    empty = all(_does_nothing(statement) for statement in statements)
    text = (body.text or b"").decode("utf-8", errors="replace") if body else ""
    header = (node.text or b"")[: body.start_byte - node.start_byte if body else None]
    commented = any(child.type == "comment" for child in (*node.children, *(body.children if body else ())))
    if language != "python":
        # An explanation in an otherwise empty block is what linters accept as well.
        return _Handler(first, last, f"an empty {what}", text, swallows=empty and not commented)
    broad = _BROAD.match(header) is not None
    bare = re.match(rb"except\s*:", header) is not None
    swallows = (empty and (broad or not (commented or _MISSING_IS_FINE.match(header)))) or (
        bare and re.search(r"\braise\b", text) is None
    )
    return _Handler(first, last, "a bare except" if bare else f"an empty {what}", text, swallows=swallows)


def _does_nothing(node: Node) -> bool:
    if node.type == "expression_statement" and node.named_child_count == 1:
        inner = node.named_children[0]
        return inner.type in ("ellipsis", "string")
    return node.type in _NOTHING
