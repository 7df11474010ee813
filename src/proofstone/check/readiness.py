"""Check whether a Large change is ready for production: no secrets, no swallowed errors, visible error paths.

Only added lines are examined. No message contains a secret, because the ledger keeps messages forever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from proofstone.common.models import ChangeKind, Diagnostic
from proofstone.common.risk import PathChange, Risk, assess_risk
from proofstone.sources.syntax import MAX_SOURCE_BYTES, detect_language
from proofstone.sources.text import parse_source

if TYPE_CHECKING:
    from tree_sitter import Node


ReadinessKind = Literal["secrets", "swallowed-exceptions", "observability"]
ReadinessProblem = tuple[ReadinessKind, Diagnostic]

MAX_LINE_CHARS: Final = 4000
"""Longer lines are generated, and the secret patterns take quadratic time on them."""


def find_readiness_problems(
    path: str, added_lines: Sequence[tuple[int, str]], content: bytes
) -> tuple[ReadinessProblem, ...]:
    """Return the problems of a changed file; `added_lines` are numbers and texts of the new file's added lines."""
    problems: list[ReadinessProblem] = [("secrets", diagnostic) for diagnostic in _find_secrets(path, added_lines)]
    added = frozenset(number for number, _ in added_lines)
    change = PathChange(path=path, kind=ChangeKind.MODIFIED, added=tuple(text for _, text in added_lines))
    is_risky = assess_risk(change).risk is Risk.RED
    for handler in _find_handlers(path, content):
        if not added.intersection(range(handler.first, handler.last + 1)):
            continue
        if handler.swallows:
            message = f"{handler.what} hides the error: handle it, log it or let it through"
            problems.append(
                (
                    "swallowed-exceptions",
                    Diagnostic(path=path, line=handler.first, code="swallowed", message=message),
                )
            )
        elif is_risky and not _REPORTS_ERROR.search(handler.body):
            message = f"{handler.what} in high-risk code neither logs the error nor passes it on"
            problems.append(
                ("observability", Diagnostic(path=path, line=handler.first, code="silent-error", message=message))
            )
    return tuple(problems)


# Secrets

_PROSE_OR_TEST = re.compile(
    r"(?:^|/)(?:tests?|spec|fixtures|examples?|docs?)/|(?:^|/)test_|\.(?:md|rst|txt)$|[._-]test\."
)
_WEAK_KINDS: Final = frozenset({"Secret Keyword", "Basic Auth Credentials"})
"""Kinds that documentation and tests often contain as examples."""
_EXCLUDED_KINDS: Final = frozenset({"Base64 High Entropy String", "Hex High Entropy String", "Public IP (ipv4)"})
"""Detectors that mistake digests, keys of maps and addresses for secrets."""
_CREDENTIAL_NAME = re.compile(r"token|secret|passw|credential|api_?key|private_?key", re.IGNORECASE)
_ENTROPIC = re.compile(r"""['"]([A-Za-z0-9+/_=-]{32,})['"]""")
_NOT_REAL = re.compile(r"example|dummy|fake|changeme|placeholder|your[-_]|xxx+|test|sample|<.*>|\.\.\.", re.IGNORECASE)


def _find_secrets(path: str, added_lines: Sequence[tuple[int, str]]) -> Iterator[Diagnostic]:
    is_prose_or_test = _PROSE_OR_TEST.search(path.lower()) is not None
    for number, text in added_lines:
        if len(text) > MAX_LINE_CHARS:
            continue
        for kind in sorted(_detect_kinds(path, number, text)):
            if is_prose_or_test and kind in _WEAK_KINDS:
                continue
            message = f"{kind} in an added line: remove it, and revoke it if it was real"
            yield Diagnostic(path=path, line=number, code="secret", message=message)


def looks_like_credential(line: str) -> bool:
    """Return whether a quoted, random-looking text follows a name such as `token` or `password` in the line."""
    if len(line) > MAX_LINE_CHARS:
        return False
    return any(
        _CREDENTIAL_NAME.search(line[: match.start()])
        and _is_random_looking(match[1])
        and not _NOT_REAL.search(match[1])
        for match in _ENTROPIC.finditer(line)
    )


def _detect_kinds(path: str, number: int, text: str) -> set[str]:
    from detect_secrets.filters import allowlist
    from detect_secrets.util.code_snippet import CodeSnippet

    kinds = set()
    for plugin in _load_plugins():
        for secret in plugin.analyze_line(filename=path, line=text, line_number=number):
            value = secret.secret_value or ""
            if plugin.secret_type not in _WEAK_KINDS or not _is_harmless(value, text, plugin):
                kinds.add(str(secret.type))
    for match in _ENTROPIC.finditer(text):
        if _CREDENTIAL_NAME.search(text[: match.start()]) and _is_random_looking(match[1]):
            kinds.add("High Entropy Credential")
    return set() if kinds and allowlist.is_line_allowlisted(path, text, CodeSnippet([text], 0, 0)) else kinds


def _is_harmless(value: str, text: str, plugin: Any) -> bool:  # noqa: ANN401  detect-secrets has no types
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


def _is_random_looking(value: str) -> bool:
    """Return whether a value has digits and letters of both cases, as random bytes have and words do not."""
    return all(re.search(kind, value) for kind in (r"\d", r"[A-Z]", r"[a-z]")) and len(set(value)) >= 16


@lru_cache(maxsize=1)
def _load_plugins() -> tuple[Any, ...]:
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    mapping: Mapping[str, Any] = get_mapping_from_secret_type_to_class()
    return tuple(mapping[kind]() for kind in sorted(mapping) if kind not in _EXCLUDED_KINDS)


# Error paths

_REPORTS_ERROR = re.compile(
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
_NO_OPS: Final = frozenset({"pass_statement", "ellipsis", "empty_statement"})
_BROAD = re.compile(rb"except\s*(?:\(?\s*(?:Base)?Exception\b.*)?:")
_EXPECTED_ERRORS = re.compile(rb"except\s*\(?[\s\w,.]*(?:ImportError|ModuleNotFoundError|StopIteration|CancelledError)")
_GO_ERROR = re.compile(rb"if\s+(?:[^{;]*;\s*)?\w*[eE]rr\w*\s*!=\s*nil\s*\{")
_GO_DROPPED = re.compile(rb"_\s*=\s*\w*[eE]rr")


@dataclass(frozen=True, slots=True)
class _Handler:
    """An error handler in a source file."""

    first: int
    last: int
    what: str
    body: str
    swallows: bool


def _find_handlers(path: str, content: bytes) -> Iterator[_Handler]:
    language = detect_language(path, content)
    if language is None or language not in _CLAUSES or len(content) > MAX_SOURCE_BYTES:
        return
    root = parse_source(content, language)
    if root is None:
        return  # too broken to parse; the syntax check reports that
    node_type, label = _CLAUSES[language]
    pending = [root]
    while pending:
        node = pending.pop()
        pending += node.children
        text = node.text or b""
        first, last = node.start_point[0] + 1, node.end_point[0] + 1
        if language == "go" and node.type == "assignment_statement" and _GO_DROPPED.fullmatch(text):
            yield _Handler(first, last, "_ = err", "", swallows=True)
        elif node.is_named and node.type == node_type and (language != "go" or _GO_ERROR.match(text)):
            yield _build_handler(node, language, label, first, last)


def _build_handler(node: Node, language: str, label: str, first: int, last: int) -> _Handler:
    body = next((child for child in node.children if child.type in _BODIES), None)
    statements = [child for child in body.named_children if child.type != "comment"] if body else []
    is_empty = all(_is_no_op(statement) for statement in statements)
    text = (body.text or b"").decode("utf-8", errors="replace") if body else ""
    header = (node.text or b"")[: body.start_byte - node.start_byte if body else None]
    has_comment = any(child.type == "comment" for child in (*node.children, *(body.children if body else ())))
    if language != "python":
        # Linters also accept an otherwise empty block that has a comment.
        return _Handler(first, last, f"an empty {label}", text, swallows=is_empty and not has_comment)
    is_broad = _BROAD.match(header) is not None
    is_bare = re.match(rb"except\s*:", header) is not None
    swallows = (is_empty and (is_broad or not (has_comment or _EXPECTED_ERRORS.match(header)))) or (
        is_bare and re.search(r"\braise\b", text) is None
    )
    return _Handler(first, last, "a bare except" if is_bare else f"an empty {label}", text, swallows=swallows)


def _is_no_op(node: Node) -> bool:
    if node.type == "expression_statement" and node.named_child_count == 1:
        inner = node.named_children[0]
        return inner.type in ("ellipsis", "string")
    return node.type in _NO_OPS
