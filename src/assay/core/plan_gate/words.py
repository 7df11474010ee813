"""The words by which code sees what a plan touches, and where it is still open. Whole words, in any case; what
parts words (a hyphen, a slash) is a blank here."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    r"\b(?:TBD|TBC|FIXME|XXX)\b"
    r"|\bTODO\b(?!\s{1,3}(?:apps?|lists?|items?|comments?|entries|entry|markers?)\b)"
    r"|\?{3,9}"
    r"|\[\s{0,3}(?i:needs[ _-]clarification|placeholder)\b"
    r"|(?i:\b(?:to be|yet to be|still to be)\s{1,3}(?:decided|determined|defined|confirmed|clarified|agreed)\b"
    r"|\bfigure\s{1,3}(?:this\s|that\s|it\s)?out\b"
    r"|\b(?:not|isn't|aren't)\s{1,3}(?:yet\s{1,3})?(?:decided|determined|clear yet|known yet|sure yet)\b"
    r"|\bdecide\s{1,3}(?:this\s|that\s|it\s)?later\b"
    r"|\b(?:still|yet|currently)\s{1,3}(?:unknown|unclear|undecided|open)\b"
    r"|\b(?:unknown|unclear|undecided)\s{1,3}(?:whether|how|which|if|why|where|what|yet)\b"
    r"|[:(]\s{0,3}(?:unknown|unclear|undecided)\s{0,3}(?:$|[).;,]))"
)


def marker(said: str) -> str | None:
    """The words of a line that say that something is not known yet."""
    found = _MARKER.search(said)
    return found[0].strip(" :().;,[") if found else None


def found(table: Mapping[str, str], text: str) -> tuple[str, ...]:
    """What of a table the text names, each once, in the table's order."""
    said = f" {' '.join(_WORD.findall(text.lower()))} "
    return tuple(name for name, words in table.items() if any(f" {word} " in said for word in words.split("|")))
