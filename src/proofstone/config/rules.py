"""For each setting, which changes weaken a check, and which values need the user's consent.

Settings are plain values here (numbers, texts, lists and tables, as in a settings file), named `section.key`. Every
setting has a row in `SETTING_RULES`; a test compares the rows with the settings model, so that no new setting can be
forgotten. The rows answer two questions:

- `list_weakened_settings`: does the new version of a settings file let more pass, or protect less, than the old one?
- `find_requested_permissions`: what do these settings request that a repository must not have without consent?

`detect_coding_agent` detects the shell of a coding agent, where consent is refused because only a person can give it.
This is no security boundary: the owner of the account can unset a variable. It keeps an agent that follows a hint from
granting itself what only a person may grant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from typing import Final

from proofstone.common.models import Finding, Severity

Values = Mapping[str, object]
"""Settings by their dotted names."""


class Weaker(Enum):
    """Which change of a setting is the weaker one."""

    NEVER = "no change weakens anything"
    CHANGED = "any change may weaken checks, and Proofstone cannot tell"
    ADDED = "an entry is added"
    REMOVED = "an entry is removed"
    HIGHER = "the number is raised"
    LOWER = "the number is lowered"
    UNLIMITED = "the number is raised, or set to 0, which means no limit"
    ON = "it is switched on"
    OFF = "it is switched off"
    RANKED = "the new value ranks lower"


class Consent(Enum):
    """Which values of a setting need the user's consent if a repository sets them."""

    NONE = "none"
    EACH = "each entry"
    WHOLE = "the whole list, as soon as it has an entry"
    OUTSIDE = "each entry that leads out of the repository"
    ON = "true"
    ZERO = "0, which is no limit"
    LOW_RANK = "a value that ranks below the default"


@dataclass(frozen=True)
class Row:
    """The rules for one setting."""

    weaker: Weaker
    consent: Consent = Consent.NONE
    ranking: tuple[tuple[str, ...], ...] = ()
    """For `RANKED`: groups of equally strong values, the strongest first."""
    globs: bool = False
    """Whether entries are patterns: an entry that another one matches adds nothing."""


_JUDGE_RULE: Final = Row(Weaker.CHANGED)
"""The setting selects who judges the work: another judge may be less strict."""
_NEUTRAL_RULE: Final = Row(Weaker.NEVER)
_DEADLINE_RULE: Final = Row(Weaker.HIGHER)
_BUDGET_RULE: Final = Row(Weaker.UNLIMITED)

SANDBOX_LEVELS: Final = (("bubblewrap",), ("auto",), ("landlock",), ("plain",))

ROWS: Final[Mapping[str, Row]] = {
    "check.base": Row(Weaker.CHANGED),
    "check.verify": Row(Weaker.REMOVED),
    "check.disable": Row(Weaker.ADDED, globs=True),
    "check.optional": Row(Weaker.ADDED, globs=True),
    "check.max_file_kb": Row(Weaker.HIGHER),
    "check.flaky_reruns": Row(Weaker.HIGHER),
    "check.large": Row(Weaker.REMOVED, globs=True),
    "environment.include": Row(Weaker.ADDED, Consent.EACH, globs=True),
    "environment.setup": Row(Weaker.ADDED, Consent.WHOLE),
    "environment.setup_scripts": Row(Weaker.ON, Consent.ON),
    "environment.pass": Row(Weaker.ADDED, Consent.EACH),
    "environment.set": Row(Weaker.CHANGED),
    "environment.network": Row(Weaker.ON, Consent.ON),
    "environment.sockets": Row(Weaker.ADDED, Consent.EACH),
    "environment.dependencies": Row(Weaker.ADDED, Consent.OUTSIDE),
    "tests.needs_service": Row(Weaker.ADDED, globs=True),
    "tests.allow_flaky": Row(Weaker.ADDED, globs=True),
    "sandbox.level": Row(Weaker.RANKED, Consent.LOW_RANK, SANDBOX_LEVELS),
    "sandbox.require": Row(Weaker.OFF),
    "sandbox.memory_mb": Row(Weaker.UNLIMITED, Consent.ZERO),
    "sandbox.disk_mb": Row(Weaker.UNLIMITED, Consent.ZERO),
    "sandbox.processes": Row(Weaker.HIGHER),
    "sandbox.allow": Row(Weaker.ADDED, Consent.EACH),
    "sandbox.compare_bare": Row(Weaker.ON, Consent.ON),
    "limits.check_seconds": _DEADLINE_RULE,
    "limits.sabotage_seconds": Row(Weaker.LOWER),
    "limits.output_mb": Row(Weaker.LOWER),
    "limits.slots": _NEUTRAL_RULE,
    "limits.cache_gb": _NEUTRAL_RULE,
    "gate.executor": _NEUTRAL_RULE,
    "gate.architect": _JUDGE_RULE,
    "gate.slots": _NEUTRAL_RULE,
    "gate.executor_seconds": _DEADLINE_RULE,
    "gate.agent_seconds": _DEADLINE_RULE,
    "gate.idle_seconds": _DEADLINE_RULE,
    "gate.executor_seconds_max": _DEADLINE_RULE,
    "gate.verify_seconds": _DEADLINE_RULE,
    "gate.verify_seconds_max": _DEADLINE_RULE,
    "gate.architect_seconds": _DEADLINE_RULE,
    "gate.architect_seconds_max": _DEADLINE_RULE,
    "gate.retry_delay_seconds": _NEUTRAL_RULE,
    "gate.run_minutes": _DEADLINE_RULE,
    "gate.network": Row(Weaker.ON, Consent.ON),
    "gate.pass": Row(Weaker.ADDED, Consent.EACH),
    "gate.hooks": Row(Weaker.RANKED, ranking=(("refuse", "run"), ("skip",))),
    "gate.verified_plan": Row(Weaker.OFF),
    "solve.policy": _NEUTRAL_RULE,
    "solve.max_replans": _DEADLINE_RULE,
    "solve.seconds": _DEADLINE_RULE,
    "solve.memory": _NEUTRAL_RULE,
    "run.memory": _NEUTRAL_RULE,
    "understanding.ask": Row(Weaker.RANKED, ranking=(("always",), ("run",), ("off",))),
    "understanding.silence_seconds": _DEADLINE_RULE,
    "understanding.question_apart_seconds": _DEADLINE_RULE,
    "understanding.milestones": Row(Weaker.OFF),
    "tools.secret": Row(Weaker.REMOVED, globs=True),
    "backends.default": _JUDGE_RULE,
    "backends.executor": _NEUTRAL_RULE,
    "backends.architect": _JUDGE_RULE,
    "backends.researcher": _NEUTRAL_RULE,
    "backends.specifier": _NEUTRAL_RULE,
    "backends.designer": _NEUTRAL_RULE,
    "backends.planner": _NEUTRAL_RULE,
    "backends.reviewer": _JUDGE_RULE,
    "backends.reviewer:security": _JUDGE_RULE,
    "backends.reviewer:architecture": _JUDGE_RULE,
    "backends.reviewer:correctness": _JUDGE_RULE,
    "backends.knowledge": _NEUTRAL_RULE,
    "backends.challenger": _JUDGE_RULE,
    "backends.domain_expert": _JUDGE_RULE,
    "backends.devils_advocate": _JUDGE_RULE,
    "backends.synthesizer": _JUDGE_RULE,
    "backends.perceiver": _NEUTRAL_RULE,
    "backends.agent_validator": _JUDGE_RULE,
    "backends.meta_validator": _JUDGE_RULE,
    "budget.tokens": _BUDGET_RULE,
    "budget.usd": _BUDGET_RULE,
    "budget.requests": _BUDGET_RULE,
    "budget.tool_calls": _BUDGET_RULE,
    "budget.minutes": _BUDGET_RULE,
    "budget.task": _BUDGET_RULE,
    "budget.roles": _BUDGET_RULE,
}


@dataclass(frozen=True)
class Weakening:
    """A setting whose new value is weaker than its old one."""

    setting: str
    old: object
    new: object


@dataclass(frozen=True, order=True)
class Need:
    """A permission that a repository's settings request and that only the user may grant."""

    setting: str
    value: str
    """The requested value, as in a settings file: an entry of the list, or the whole value."""


def weakened_settings(old: Values, new: Values) -> list[Weakening]:
    """Return every setting that is weaker in `new` than in `old`, in the order of `SETTING_RULES`."""
    return [
        Weakening(name, old[name], new[name])
        for name, row in ROWS.items()
        if old[name] != new[name] and _is_weaker(row, old[name], new[name])
    ]


def weakened_findings(
    weakenings: Iterable[Weakening],
    path: str,
    *,
    line_of: Callable[[str], int | None],
    written: Callable[[object], str],
) -> list[Finding]:
    """Return a finding for each weakened setting. `written` formats a value as in a settings file."""
    return [
        Finding(
            layer="settings",
            rule="weakened-settings",
            severity=Severity.CRITICAL,
            path=path,
            line=line_of(weakening.setting),
            detail=_describe_weakening(weakening.setting),
            before=f"{weakening.setting} = {written(weakening.old)}",
            after=f"{weakening.setting} = {written(weakening.new)}",
            fix="restore the old value; if the new one is intended, accept the finding by its rule, weakened-settings",
        )
        for weakening in weakenings
    ]


def protection_needs(
    settings: Values, *, default_level: str, written: Callable[[object], str], is_outside: Callable[[str], bool]
) -> list[Need]:
    """Return the permissions that these settings request. `is_outside` tells whether a path leads out of the
    repository.
    """
    needs: list[Need] = []
    for name, row in ROWS.items():
        value = settings[name]
        match row.consent:
            case Consent.EACH:
                needs += [Need(name, written(entry)) for entry in _entries(value)]
            case Consent.OUTSIDE:
                needs += [Need(name, written(entry)) for entry in _entries(value) if is_outside(str(entry))]
            case Consent.WHOLE if value:
                needs.append(Need(name, written(value)))
            case Consent.ON if value is True:
                needs.append(Need(name, "true"))
            case Consent.ZERO if value == 0:
                needs.append(Need(name, "0"))
            case Consent.LOW_RANK if _rank(row, value) > _rank(row, default_level):
                needs.append(Need(name, written(value)))
    return needs


def _is_weaker(row: Row, old: object, new: object) -> bool:
    match row.weaker:
        case Weaker.NEVER:
            return False
        case Weaker.CHANGED:
            return True
        case Weaker.ADDED:
            return not _covers(_entries(old), _entries(new), globs=row.globs)
        case Weaker.REMOVED:
            return not _covers(_entries(new), _entries(old), globs=row.globs)
        case Weaker.ON:
            return new is True
        case Weaker.OFF:
            return new is False
        case Weaker.RANKED:
            return _rank(row, new) > _rank(row, old)
        case Weaker.HIGHER:
            return _number(new) > _number(old)
        case Weaker.LOWER:
            return _number(new) < _number(old)
        case Weaker.UNLIMITED:
            limits, before = _limits(new), _limits(old)
            return any(limits.get(key, math.inf) > limit for key, limit in before.items())


def _covers(known: Sequence[object], entries: Sequence[object], *, globs: bool) -> bool:
    """Return whether every entry is known, or matched by a known pattern if `globs` is set."""
    return all(
        entry in known or (globs and any(fnmatchcase(str(entry), str(pattern)) for pattern in known))
        for entry in entries
    )


def _entries(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _limits(value: object, prefix: str = "") -> dict[str, float]:
    """Return every limit in a number or a table of numbers; 0 means no limit, which is higher than any."""
    if isinstance(value, Mapping):
        return {key: limit for name, part in value.items() for key, limit in _limits(part, f"{prefix}.{name}").items()}
    return {prefix: _number(value) or math.inf}


def _rank(row: Row, value: object) -> int:
    return next((index for index, group in enumerate(row.ranking) if value in group), len(row.ranking))


def _describe_weakening(setting: str) -> str:
    weaker = ROWS[setting].weaker
    if weaker is Weaker.CHANGED:
        return f"{setting} changed; only a person can decide whether that weakens later checks"
    return f"{setting} is weaker than in the base: {weaker.value}"


_AGENT_VARIABLES: Final[Mapping[str, str]] = {
    "CLAUDECODE": "Claude Code",
    "CODEX_SANDBOX": "Codex",
    "CODEX_THREAD_ID": "Codex",
    "GEMINI_CLI": "Gemini CLI",
    "QWEN_CODE": "Qwen Code",
    "OPENCODE": "opencode",
    "COPILOT_CLI": "Copilot CLI",
    "CURSOR_AGENT": "Cursor",
    "GOOSE_TERMINAL": "goose",
    "PROOFSTONE_TASK": "an executor of Proofstone",
}
"""Variables that coding agents set for the commands that they run."""


def coding_agent_in(environment: Mapping[str, str]) -> str:
    """Return the name of the coding agent whose shell this is, or an empty string."""
    return next((name for variable, name in _AGENT_VARIABLES.items() if environment.get(variable)), "")
