"""The words by which code sees what a plan touches, and where it is still open. Whole words, in any case; what
parts words (a hyphen, a slash) is a blank here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

DOMAINS: Final[Mapping[str, str]] = {
    "database": "database|databases|db|sql|schema|migration|migrations|orm",
    "api": "api|apis|endpoint|endpoints|graphql|grpc|rpc|openapi",
    "frontend": "frontend|front end|ui|css|react|vue|svelte|browser",
    "auth": "auth|authentication|authorisation|authorization|login|password|passwords|permissions|rbac",
    "infrastructure": "infrastructure|docker|kubernetes|terraform|helm|deployment|ci",
    "payments": "payment|payments|billing|invoice|invoices|checkout|refund|refunds",
    "data": "dataset|datasets|etl|analytics|data pipeline|data warehouse|data model",
    "docs": "docs|documentation|readme|changelog",
    "security": "security|encryption|cryptography|secrets|vulnerability|csrf|xss|tls",
    "concurrency": "concurrency|concurrent|threads|threading|mutex|deadlock|race condition|async",
    "mobile": "ios|android|mobile",
    "learning": "machine learning|embeddings|training data|inference",
}
INTEGRATIONS: Final[Mapping[str, str]] = {
    "HTTP API": "http api|rest api|external api|third party api|web service",
    "webhook": "webhook|webhooks",
    "OAuth": "oauth|oauth2|oidc|openid|saml|sso|ldap",
    "payment service": "stripe|paypal|adyen|braintree",
    "object storage": "s3|gcs|azure blob|minio",
    "message queue": "kafka|rabbitmq|sqs|pubsub|nats|amqp|celery",
    "cache": "redis|memcached|valkey",
    "database server": "postgres|postgresql|mysql|mariadb|mongodb|oracle|dynamodb",
    "search engine": "elasticsearch|opensearch|solr|algolia",
    "mail": "smtp|imap|sendgrid|mailgun|ses",
    "chat": "slack|discord|telegram|twilio",
    "model provider": "openai|anthropic|gemini|bedrock",
    "code host": "github api|gitlab api|bitbucket api",
    "monitoring service": "sentry|datadog|prometheus|opentelemetry",
}
COMPLIANCE: Final[Mapping[str, str]] = {
    "GDPR": "gdpr|dsgvo|ccpa",
    "HIPAA": "hipaa",
    "PCI": "pci",
    "SOC 2": "soc 2|soc2|iso 27001",
    "audit": "audit|audits",
    "licence": "licence|licences|license|licenses|licensing",
    "privacy": "privacy|personal data|pii",
    "accessibility": "accessibility|a11y|wcag",
    "retention": "data retention|legal hold",
}

_WORD = re.compile(r"\w+")
_MARKER = re.compile(
    r"\b(?:TBD|TBC)\b"
    r"|\?{3,9}"
    r"|\[\s{0,3}(?i:needs[ _-]clarification|placeholder)\b"
    r"|(?i:\b(?:to be|yet to be|still to be)\s{1,3}(?:decided|determined|defined|confirmed|clarified|agreed)\b"
    r"|\bfigure\s{1,3}(?:this\s|that\s|it\s)?out\b"
    r"|\b(?:not|isn't|aren't)\s{1,3}(?:yet\s{1,3})?(?:decided|determined|clear yet|known yet|sure yet)\b"
    r"|\bdecide\s{1,3}(?:this\s|that\s|it\s)?later\b"
    r"|\b(?:still|yet|currently)\s{1,3}(?:unknown|unclear|undecided)\b"
    r"|\b(?:unknown|unclear|undecided)\s{1,3}(?:whether|how|which|why|where|what|yet)\b)"
)
_LABEL = re.compile(
    r"\b(?P<called>TODO|FIXME|XXX)(?=\s{0,3}[:(])"
    r"|(?:^|[>|])\s{0,40}(?:(?:[-*+•]|\d{1,4}[.)])\s{1,9})?(?:\[[ xX]\]\s{1,9})?[*_(\[]{0,4}(?P<first>TODO|FIXME|XXX)\b"
    r"(?!\s{1,3}(?:apps?|lists?|items?|comments?|entries|entry|markers?)\b)"
    r"|[:(\[]\s{0,3}(?P<alone>TODO|FIXME|XXX)(?=[).;,\]|*]|\s{0,9}(?:$|</))"
)
"""Where a line, an item, an element or what follows a colon begins with it. Elsewhere it is a word: `a TODO column`."""
_SOUGHT = re.compile(
    r"\b(?:(?:remov|resolv|delet|drop|find|fix|clear|clean|address|refus|reject)(?:e|es|ed|s|p?ing|ped)?(?: up| out)?"
    r"|no|every|all|each|any|without)\s{1,3}"
    r"(?:(?:all|every|each|any|the|an?|of|old|remaining|and|or|TODO|FIXME|XXX)[\s,/]{1,3}){0,8}$",
    re.IGNORECASE,
)
"""Before a marker that somebody is to look for."""
_DOUBT = re.compile(
    r"\b(?:still|yet|currently)\s{1,3}open\b|\bunclear\s{1,3}if\b|[:(]\s{0,3}(?:unknown|unclear|undecided)\b",
    re.IGNORECASE,
)
"""Said of a file or a key it leaves nothing open: `the handle is still open`."""
_ENDS = re.compile(r"[\s).;,!*_]{0,9}(?:$|</)")
_ABSTRACT = re.compile(
    r"\b(?:whether|question|decision|choice)\b[^.;!?]{0,200}$"
    r"|\b(?:it|this|that|which|how|who|what|when|where|points?|details?|owners?|dates?|deadlines?|formats?|limits?"
    r"|costs?|prices?|reasons?|causes?|scope|approach|design)(?:\s{1,3}(?:is|are|remains?))?(?:\s{1,3}still)?\s{0,3}$",
    re.IGNORECASE,
)
"""What one decides, and not what one opens."""
_BEFORE = 240
"""Characters before a word that say what it is about."""


def marker(said: str) -> str | None:
    """The words of a line that say that something is not known yet."""
    found = _MARKER.search(said) or next(chain(_labels(said), _doubts(said)), None)
    return found[found.lastgroup or 0].strip(" :().;,[") if found else None


def _labels(said: str) -> Iterator[re.Match[str]]:
    return (found for found in _LABEL.finditer(said) if not _SOUGHT.search(_before(said, found)))


def _doubts(said: str) -> Iterator[re.Match[str]]:
    for found in _DOUBT.finditer(said):
        if _ENDS.match(said, found.end()) or _ABSTRACT.search(_before(said, found)):
            yield found


def _before(said: str, found: re.Match[str]) -> str:
    return said[max(0, found.start() - _BEFORE) : found.start()]


def found(table: Mapping[str, str], text: str) -> tuple[str, ...]:
    """What of a table the text names, each once, in the table's order."""
    said = f" {' '.join(_WORD.findall(text.lower()))} "
    return tuple(name for name, words in table.items() if any(f" {word} " in said for word in words.split("|")))
