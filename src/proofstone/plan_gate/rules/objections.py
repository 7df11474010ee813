"""The objection of each rule, and the words by which code recognises subjects and open points in a plan.

An objection says why code objects, what will happen, and what to do instead. Its severity applies if the plan can still
be run; a problem for which `proofstone gate` refuses a plan is always BLOCKING.

Words are matched whole, in any case. A hyphen or a slash between words counts as a blank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final, NamedTuple

from proofstone.agents.roles.models.plan_gate_records import PlanSeverity

BLOCKING, SIGNIFICANT, MINOR = PlanSeverity.BLOCKING, PlanSeverity.SIGNIFICANT, PlanSeverity.MINOR


class Objection(NamedTuple):
    """Why code objects, what will happen, and what to do instead."""

    concern: str
    failure_scenario: str
    alternative: str


FORM = Objection(
    "The plan parser cannot tell what this means.",
    "The plan is refused before its first task, or a task is read differently from what you meant.",
    "Write it in the form that `proofstone manual plan` describes, which has only one meaning.",
)
SIZE = Objection(
    "A plan of this size cannot be read, run and reviewed as a whole.",
    "The plan is refused before its first task.",
    "Split it into several plans, each of which can be reviewed and reverted.",
)
ORDER = Objection(
    "No order of the tasks satisfies what they say of each other.",
    "The tasks wait for something that never comes, so none of them can begin.",
    "Name only tasks that come before, so that one of them can begin.",
)
UNPROVEN = Objection(
    "Nothing is run that would fail if the work were not done.",
    "The work is wrong or missing, everything passes, and the fault is found by those who use it.",
    "Run a command that fails before the work and passes after it.",
)
PERSON = Objection(
    "Only a command is run; sentences and checks by hand are not.",
    "Nobody checks what the sentence asks for, and the task passes without it.",
    "Make it a command, a done criterion, or a checkpoint for a person.",
)
UNFINISHED = Objection(
    "Nobody can tell by this whether the work is finished.",
    "The work is called done when somebody feels so, and a reviewer can neither accept nor reject it.",
    "Name what one can see or count.",
)
PATHS = Objection(
    "These paths cannot be the right ones.",
    "Changes are outside of the declared files and are rejected, however good they are.",
    "Name every file from the root of the repository.",
)
UNNAMED = Objection(
    "The plan does not say which files this may change.",
    "Every change is outside of the declared files, so it is rejected.",
    "Name the files, or say that there are none.",
)
MISSING = Objection(
    "The plan counts on a file that is not there.",
    "Whoever carries it out writes a second file beside the right one, or changes one that nobody declared.",
    "Name the file that is meant, or say that it is to be created.",
)
UNDECLARED = Objection(
    "The task says to change a file that it does not list.",
    "The change falls outside what was declared and is rejected, or the task does not do what it should.",
    "List the file, or leave its change to the task that lists it.",
)
UNTESTED = Objection(
    "The verification runs a test file that does not exist and that no earlier task writes.",
    "The command always fails, or the executor writes a test file that is not declared.",
    "List the test file among the files of the task that writes it.",
)
PROMISED = Objection(
    "The plan promises a file that no task may write.",
    "Every task passes, and the plan fails at its end because the file is missing.",
    "List it among the files of the task that creates it.",
)
SHARED = Objection(
    "Tasks that may run at the same time may change the same files.",
    "They are merged in whatever order they finish, and one may undo or contradict the other.",
    "Say which comes first, or part the files.",
)
BROAD = Objection(
    "The command says little about this task.",
    "It passes although the task added nothing, because everything else still does.",
    "Name the tests of this task; Proofstone runs the whole suite anyway.",
)
LARGE = Objection(
    "The task changes too much for one review.",
    "One wrong part rejects the whole, and the review overlooks what a small change would show.",
    "Split it into tasks of a few files each.",
)
DETAIL = Objection(
    "This text is not read as you may mean it.",
    "The plan can be run, but a part of it has no effect, or not the expected one.",
    "Write it as the hint says.",
)
OUTSIDE = Objection(
    "The command leaves the copy of the repository in which the work is checked.",
    "It looks at another copy, and passes or fails for reasons that have nothing to do with the work.",
    "Start commands in the root of the repository.",
)
OPEN = Objection(
    "The plan leaves something undecided.",
    "Whoever carries it out decides it in passing, and nobody has weighed that decision.",
    "Decide it in the plan, or make a checkpoint at which a person decides.",
)
SHAPELESS = Objection(
    "No step was found that somebody could carry out and check.",
    "Everybody who reads it does something else, and nobody can say how far it has come.",
    "Say the steps as a numbered list, or as <task> elements.",
)
SEVERAL = Objection(
    "There are several small problems.",
    "Each costs the executor a question or a wrong guess, and together they hide what matters.",
    "Fix each of them as its hint says.",
)

RULES: Final[Mapping[str, tuple[PlanSeverity, Objection]]] = {
    # problems of the parser
    "frontmatter": (BLOCKING, FORM),
    "no-task": (BLOCKING, FORM),
    "broken-tag": (BLOCKING, FORM),
    "stray-tag": (BLOCKING, FORM),
    "unclosed-tag": (BLOCKING, FORM),
    "two-names": (BLOCKING, FORM),
    "missing-name": (BLOCKING, FORM),
    "missing-action": (BLOCKING, FORM),
    "too-large": (BLOCKING, SIZE),
    "missing-files": (BLOCKING, UNNAMED),
    "missing-verify": (BLOCKING, UNPROVEN),
    "missing-done": (BLOCKING, UNFINISHED),
    "wave": (MINOR, DETAIL),
    "task-type": (MINOR, DETAIL),
    "flaky": (MINOR, DETAIL),
    "idle-command": (MINOR, DETAIL),
    # problems of the order
    "cycle": (SIGNIFICANT, ORDER),
    "unknown-dependency": (SIGNIFICANT, ORDER),
    "self-dependency": (SIGNIFICANT, ORDER),
    # problems of commands
    "prose-verify": (BLOCKING, UNPROVEN),
    "inverted-verify": (BLOCKING, UNPROVEN),
    "verify-too-long": (BLOCKING, SIZE),
    "manual-verify": (MINOR, PERSON),
    "prose-in-verify": (MINOR, PERSON),
    "entity-in-verify": (MINOR, DETAIL),
    # problems of the linter
    "empty-checkpoint": (BLOCKING, FORM),
    "vacuous-verify": (SIGNIFICANT, UNPROVEN),
    "vacuous-heldout": (SIGNIFICANT, UNPROVEN),
    "lost-exit-code": (SIGNIFICANT, UNPROVEN),
    "bad-path": (BLOCKING, PATHS),
    "bad-pattern": (BLOCKING, FORM),
    "overlapping-files": (SIGNIFICANT, SHARED),
    "vague-done": (SIGNIFICANT, UNFINISHED),
    "absolute-cd": (SIGNIFICANT, OUTSIDE),
    "broad-verify": (MINOR, BROAD),
    "many-files": (MINOR, LARGE),
    "duplicate-name": (MINOR, DETAIL),
    "heldout-shown": (MINOR, DETAIL),
    "odd-path": (MINOR, PATHS),
    "autonomous": (MINOR, DETAIL),
    "key-link": (MINOR, DETAIL),
    # problems that only the plan gate finds
    "missing-file": (SIGNIFICANT, MISSING),
    "missing-test": (SIGNIFICANT, UNTESTED),
    "missing-artifact": (SIGNIFICANT, PROMISED),
    "missing-context": (MINOR, MISSING),
    "undeclared-file": (MINOR, UNDECLARED),
    "files-modified": (MINOR, DETAIL),
    "unknown-in-step": (SIGNIFICANT, OPEN),
    "unknown": (MINOR, OPEN),
    "no-steps": (SIGNIFICANT, SHAPELESS),
    "no-verification": (SIGNIFICANT, UNPROVEN),
    "several": (MINOR, SEVERAL),
}


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
"""A marker that begins a line, an item, an element or the text after a colon. Elsewhere it is a word: `a TODO
column`.
"""
_SEARCHED_FOR = re.compile(
    r"\b(?:(?:remov|resolv|delet|drop|find|fix|clear|clean|address|refus|reject)(?:e|es|ed|s|p?ing|ped)?(?: up| out)?"
    r"|no|every|all|each|any|without)\s{1,3}"
    r"(?:(?:all|every|each|any|the|an?|of|old|remaining|and|or|TODO|FIXME|XXX)[\s,/]{1,3}){0,8}$",
    re.IGNORECASE,
)
"""Text before a marker that somebody should search for."""
_DOUBT = re.compile(
    r"\b(?:still|yet|currently)\s{1,3}open\b|\bunclear\s{1,3}if\b|[:(]\s{0,3}(?:unknown|unclear|undecided)\b",
    re.IGNORECASE,
)
"""Said of a file or a key, this leaves nothing open: `the handle is still open`."""
_ENDS = re.compile(r"[\s).;,!*_]{0,9}(?:$|</)")
_ABSTRACT_SUBJECT = re.compile(
    r"\b(?:whether|question|decision|choice)\b[^.;!?]{0,200}$"
    r"|\b(?:it|this|that|which|how|who|what|when|where|points?|details?|owners?|dates?|deadlines?|formats?|limits?"
    r"|costs?|prices?|reasons?|causes?|scope|approach|design)(?:\s{1,3}(?:is|are|remains?))?(?:\s{1,3}still)?\s{0,3}$",
    re.IGNORECASE,
)
"""A subject that somebody decides rather than opens."""
_CONTEXT_LENGTH = 240
"""Characters before a word that show what it is about."""


def find_open_point(line: str) -> str | None:
    """Return the words of a line that say that something is not known yet."""
    match = _MARKER.search(line) or next(chain(_find_labels(line), _find_doubts(line)), None)
    return match[match.lastgroup or 0].strip(" :().;,[") if match else None


def _find_labels(line: str) -> Iterator[re.Match[str]]:
    return (match for match in _LABEL.finditer(line) if not _SEARCHED_FOR.search(_text_before(line, match)))


def _find_doubts(line: str) -> Iterator[re.Match[str]]:
    for match in _DOUBT.finditer(line):
        if _ENDS.match(line, match.end()) or _ABSTRACT_SUBJECT.search(_text_before(line, match)):
            yield match


def _text_before(line: str, match: re.Match[str]) -> str:
    return line[max(0, match.start() - _CONTEXT_LENGTH) : match.start()]


def find_named_subjects(table: Mapping[str, str], text: str) -> tuple[str, ...]:
    """Return the entries of a table that the text names, each once, in the order of the table."""
    normalized_text = f" {' '.join(_WORD.findall(text.lower()))} "
    return tuple(
        name for name, words in table.items() if any(f" {word} " in normalized_text for word in words.split("|"))
    )
