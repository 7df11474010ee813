"""Rate the risk of a changed file: red, yellow or green. One red file makes a change Large.

The table is read from the top and the first matching row decides, so that a test of the login is green and not red. A
row matches the path, the changed lines, or either of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from proofstone.common.models import ChangeKind, FrozenModel

Size = Literal["Standard", "Large"]


class Risk(StrEnum):
    GREEN = "green"
    YELLOW = "yellow"
    RED = "red"

    @property
    def mark(self) -> str:
        return {"green": "🟢", "yellow": "🟡", "red": "🔴"}[self.value]


class PathChange(FrozenModel):
    """One changed file, as the risk table sees it."""

    path: str
    kind: ChangeKind
    added: tuple[str, ...] = ()
    """The added lines."""
    removed: tuple[str, ...] = ()


class PathRisk(FrozenModel):
    """The risk of one changed file, and the reason."""

    path: str
    risk: Risk
    reason: str


@dataclass(frozen=True, slots=True)
class RiskRule:
    """One row of the risk table."""

    risk: Risk
    reason: str
    path: re.Pattern[str] | None = None
    """A pattern to find in the path, which is lower-cased."""
    added: re.Pattern[str] | None = None
    """A pattern to find in an added or removed line of code."""


def _words(*words: str) -> re.Pattern[str]:
    return re.compile(r"(?:^|[/._-])(?:" + "|".join(words) + r")(?=$|[/._-])")


def _code(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_DOCS = re.compile(
    r"\.(?:md|markdown|rst|adoc)$|(?:^|/)docs?/.*\.(?:txt|png|jpe?g|gif|svg|webp|html|css|pdf)$"
    r"|(?:^|/)(?:readme|licen[cs]e|copying|notice|authors|changelog|changes|history|news|contributing)(?:\.txt)?$"
)
"""A `.txt` file alone is not documentation: requirements.txt and CMakeLists.txt decide what runs."""
_TESTS = re.compile(
    r"(?:^|/)(?:tests?|__tests__|testdata)/|^spec/|(?:^|/)(?:test_[^/]*|conftest)\.py$"
    r"|[._-](?:test|tests|spec)\.[a-z]+$|(?:test|tests)\.(?:java|kt|cs)$"
)
_CONFIG = re.compile(r"\.(?:toml|ya?ml|json|jsonc|ini|cfg|lock|editorconfig|gitignore|gitattributes)$|(?:^|/)\.[^/]+$")

RISK_RULES: Final[tuple[RiskRule, ...]] = (
    RiskRule(Risk.GREEN, "tests", path=_TESTS),
    RiskRule(Risk.RED, "migrations", path=_words("migrations?", "migrate", "alembic", "flyway", "liquibase")),
    RiskRule(Risk.GREEN, "documentation", path=_DOCS),
    RiskRule(
        Risk.RED,
        "authentication and authorisation",
        path=_words(
            "auth",
            "authn",
            "authz",
            "authentication",
            "authorization",
            "login",
            "oauth2?",
            "sessions?",
        ),
    ),
    RiskRule(
        Risk.RED,
        "permissions",
        path=_words("permissions?", "acl", "rbac", "passwords?", "credentials?", "saml", "sso"),
    ),
    RiskRule(
        Risk.RED,
        "cryptography",
        path=_words("crypto", "cryptography", "encryption", "signing", "tls", "ssl", "jwt"),
    ),
    RiskRule(Risk.RED, "payments", path=_words("payments?", "billing", "invoices?", "checkout", "stripe", "paypal")),
    RiskRule(Risk.GREEN, "configuration", path=_CONFIG),
    RiskRule(
        Risk.RED,
        "cryptography",
        added=_code(
            r"\b(?:hashlib|hmac|bcrypt|argon2|scrypt|pbkdf2\w*|createcipher\w*|createhmac|"
            r"cryptography\.hazmat|crypto\.(?:subtle|createhash)|javax\.crypto|crypto/(?:aes|rsa|hmac|cipher))\b"
        ),
    ),
    RiskRule(
        Risk.RED,
        "authentication and authorisation",
        added=_code(r"\b(?:authenticate|authorize|check_password|verify_password|login_required|jwt\.(?:en|de)code)\b"),
    ),
    RiskRule(
        Risk.RED,
        "deletion of data",
        added=_code(
            r"\b(?:drop\s+(?:table|database|column)|delete\s+from|truncate\s+table|shutil\.rmtree|os\.removeall|"
            r"rm\s+-[a-z]*r[a-z]*f?|fs\.rm(?:sync)?|rimraf|remove_dir_all|delete_many|deletemany|delete_all)\b"
        ),
    ),
    RiskRule(
        Risk.RED,
        "concurrency",
        added=_code(
            r"\b(?:threading\.\w+|multiprocessing\.\w+|asyncio\.(?:lock|semaphore|event|queue|gather|taskgroup)|"
            r"concurrent\.futures|sync\.(?:mutex|rwmutex|waitgroup|once)|go\s+func\b|arc<mutex|"
            r"std::(?:thread|mutex|atomic)|synchronized\s*\(|pthread_\w+|tokio::spawn|new\s+worker\()"
        ),
    ),
)
"""A file that matches no row is green if it is new, and otherwise yellow, as existing logic."""

PUBLIC_API: Final = re.compile(
    r"^(?:__all__\b|export\s+(?:default\s+)?(?:async\s+)?(?:function|class|const|interface|type|enum)\b"
    r"|pub\s+(?:async\s+)?(?:fn|struct|enum|trait)\b|public\s+[\w<>\[\], ]+\("
    r"|@(?:app|router|blueprint|api)\.\w+\()"
)
"""A definition that others call. Removing or rewriting one is red; adding one is not."""

_COMMENT = re.compile(r"^\s*(?:#|//|\*|/\*|--)")


def assess_risk(change: PathChange) -> PathRisk:
    path = change.path.lower()
    touched = [line for line in (*change.added, *change.removed) if not _COMMENT.match(line)]
    for row in RISK_RULES:
        if (row.path and row.path.search(path)) or (row.added and any(map(row.added.search, touched))):
            return PathRisk(path=change.path, risk=row.risk, reason=row.reason)
    removed = {line.strip() for line in change.removed} - {line.strip() for line in change.added}
    if any(PUBLIC_API.match(line) for line in removed):
        return PathRisk(path=change.path, risk=Risk.RED, reason="public API")
    if change.kind is ChangeKind.ADDED:
        return PathRisk(path=change.path, risk=Risk.GREEN, reason="new file")
    return PathRisk(path=change.path, risk=Risk.YELLOW, reason="existing logic")


def assess_size(changes: Iterable[PathChange]) -> Size:
    """Return Large if at least one file is red."""
    return "Large" if any(assess_risk(change).risk is Risk.RED for change in changes) else "Standard"


def is_docs_only(paths: Iterable[str]) -> bool:
    """Return whether a change touches documentation and nothing else. A change without paths does not."""
    lower_paths = [path.lower() for path in paths]
    return bool(lower_paths) and all(_DOCS.search(path) and not _TESTS.search(path) for path in lower_paths)


def is_test_path(path: str) -> bool:
    """Return whether a file belongs to the tests, by its folder and its name."""
    return bool(_TESTS.search(path.lower()))
