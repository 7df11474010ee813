"""Find out who calls, and so whether the caller may accept findings or decide disputes."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Mapping
from typing import Final

from proofstone.check.rules.acceptance import (
    AcceptanceFacts,
    AcceptanceRuling,
    build_acceptances,
    is_reason_sufficient,
    rule_on_acceptance,
)
from proofstone.check.rules.outcome import ACCEPTABLE_RULES
from proofstone.common.models import Acceptance, AcceptanceMethod
from proofstone.common.text import escape_control
from proofstone.config.rules import detect_coding_agent
from proofstone.config.settings import Settings
from proofstone.errors import InputError
from proofstone.sandbox.job import SANDBOX_VARIABLE

_SETTING: Final = "check.accept"


def gather_facts(accepted_by: str | None = None, *, can_ask: bool = True) -> AcceptanceFacts:
    """Return the facts about this process that decide whether it may accept findings. `can_ask` says whether the caller
    could ask a question at a terminal."""
    return AcceptanceFacts(
        agent=detect_coding_agent(os.environ),
        in_sandbox=SANDBOX_VARIABLE in os.environ,
        has_terminal=can_ask and sys.stdin.isatty() and sys.stderr.isatty(),
        approver=require_approver(accepted_by) if accepted_by is not None else "",
    )


def require_approver(name: str) -> str:
    """Return the identity of an approver. Refuse one that says nothing or cannot be recorded as it is."""
    if not name.strip() or escape_control(name) != name or name.encode("utf-8", "ignore").decode("utf-8") != name:
        raise InputError(
            f"--accepted-by {name!r}: not the name of a person",
            hint="for instance --accepted-by 'Ada Lovelace <ada@example.org>'",
        )
    return " ".join(name.split())


def demand_acceptance(what: str, facts: AcceptanceFacts) -> AcceptanceMethod:
    """Return how the acceptance counts. Raise an InputError if the caller may not accept anything."""
    ruling: AcceptanceRuling = rule_on_acceptance(facts)
    if ruling.method is None:
        raise InputError(f"{what}: refused: {ruling.refusal}; nothing was run", hint=ruling.hint)
    return ruling.method


def require_acceptable(option: str, rule: str, reason: str) -> tuple[str, str]:
    """Return the rule and the reason. Refuse a rule that nobody may accept, and a reason that says nothing."""
    if rule not in ACCEPTABLE_RULES:
        raise InputError(
            f"{option} {rule}: no finding of that rule can be accepted",
            hint=f"one of {', '.join(sorted(ACCEPTABLE_RULES))}",
        )
    if not is_reason_sufficient(reason):
        raise InputError(
            f"{option} {rule}: say why in a few words; the reason is recorded",
            hint=f"for instance {option} {rule}='the daemon must not run exit handlers'",
        )
    return rule, reason


def find_login_name() -> str:
    """Return the login name of the person, or their user id."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def list_setting_acceptances(settings: Settings, source: str) -> tuple[Acceptance, ...]:
    """Return what the settings of a base accept. `source` says where these settings are from."""
    reasons: Mapping[str, str] = dict(
        require_acceptable(_SETTING, rule, reason) for rule, reason in settings.check.accept.items()
    )
    return build_acceptances(reasons, f"{_SETTING} at {source}", AcceptanceMethod.SETTING)
