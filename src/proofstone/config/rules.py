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

SettingValues = Mapping[str, object]
"""Settings by their dotted names."""


class WeakerChange(Enum):
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


class ConsentRule(Enum):
    """Which values of a setting need the user's consent if a repository sets them."""

    NONE = "none"
    EACH = "each entry"
    WHOLE = "the whole list, as soon as it has an entry"
    OUTSIDE = "each entry that leads out of the repository"
    ON = "true"
    ZERO = "0, which is no limit"
    LOW_RANK = "a value that ranks below the default"


@dataclass(frozen=True)
class SettingRule:
    """The rules for one setting."""

    weaker: WeakerChange
    consent: ConsentRule = ConsentRule.NONE
    ranking: tuple[tuple[str, ...], ...] = ()
    """For `RANKED`: groups of equally strong values, the strongest first."""
    globs: bool = False
    """Whether entries are patterns: an entry that another one matches adds nothing."""


_JUDGE_RULE: Final = SettingRule(WeakerChange.CHANGED)
"""The setting selects who judges the work: another judge may be less strict."""
_NEUTRAL_RULE: Final = SettingRule(WeakerChange.NEVER)
_DEADLINE_RULE: Final = SettingRule(WeakerChange.HIGHER)
_BUDGET_RULE: Final = SettingRule(WeakerChange.UNLIMITED)

SANDBOX_LEVELS: Final = (("bubblewrap",), ("auto",), ("landlock",), ("plain",))

SETTING_RULES: Final[Mapping[str, SettingRule]] = {
    "check.base": SettingRule(WeakerChange.CHANGED),
    "check.verify": SettingRule(WeakerChange.REMOVED),
    "check.disable": SettingRule(WeakerChange.ADDED, globs=True),
    "check.optional": SettingRule(WeakerChange.ADDED, globs=True),
    "check.max_file_kb": SettingRule(WeakerChange.HIGHER),
    "check.flaky_reruns": SettingRule(WeakerChange.HIGHER),
    "check.accept": SettingRule(WeakerChange.ADDED),
    "check.strength": SettingRule(WeakerChange.RANKED, ranking=(("full",), ("quick",), ("off",))),
    "check.strength_threshold": SettingRule(WeakerChange.LOWER),
    "check.large": SettingRule(WeakerChange.REMOVED, globs=True),
    "environment.include": SettingRule(WeakerChange.ADDED, ConsentRule.EACH, globs=True),
    "environment.setup": SettingRule(WeakerChange.ADDED, ConsentRule.WHOLE),
    "environment.setup_scripts": SettingRule(WeakerChange.ON, ConsentRule.ON),
    "environment.pass": SettingRule(WeakerChange.ADDED, ConsentRule.EACH),
    "environment.set": SettingRule(WeakerChange.CHANGED),
    "environment.network": SettingRule(WeakerChange.ON, ConsentRule.ON),
    "environment.sockets": SettingRule(WeakerChange.ADDED, ConsentRule.EACH),
    "environment.dependencies": SettingRule(WeakerChange.ADDED, ConsentRule.OUTSIDE),
    "tests.needs_service": SettingRule(WeakerChange.ADDED, globs=True),
    "tests.allow_flaky": SettingRule(WeakerChange.ADDED, globs=True),
    "sandbox.level": SettingRule(WeakerChange.RANKED, ConsentRule.LOW_RANK, SANDBOX_LEVELS),
    "sandbox.require": SettingRule(WeakerChange.OFF),
    "sandbox.memory_mb": SettingRule(WeakerChange.UNLIMITED, ConsentRule.ZERO),
    "sandbox.disk_mb": SettingRule(WeakerChange.UNLIMITED, ConsentRule.ZERO),
    "sandbox.processes": SettingRule(WeakerChange.HIGHER),
    "sandbox.allow": SettingRule(WeakerChange.ADDED, ConsentRule.EACH),
    "sandbox.compare_bare": SettingRule(WeakerChange.ON, ConsentRule.ON),
    "limits.check_seconds": _DEADLINE_RULE,
    "limits.sabotage_seconds": SettingRule(WeakerChange.LOWER),
    "limits.output_mb": SettingRule(WeakerChange.LOWER),
    "limits.slots": _NEUTRAL_RULE,
    "limits.cache_gb": _NEUTRAL_RULE,
    "hook.accepts": SettingRule(WeakerChange.ADDED),
    "gate.executor": _NEUTRAL_RULE,
    "gate.architect": _JUDGE_RULE,
    "gate.slots": _NEUTRAL_RULE,
    "gate.executor_seconds_max": _DEADLINE_RULE,
    "gate.executor_seconds": _DEADLINE_RULE,
    "gate.agent_seconds_max": _DEADLINE_RULE,
    "gate.agent_seconds": _DEADLINE_RULE,
    "gate.idle_seconds": _DEADLINE_RULE,
    "gate.verify_seconds_max": _DEADLINE_RULE,
    "gate.verify_seconds": _DEADLINE_RULE,
    "gate.architect_seconds_max": _DEADLINE_RULE,
    "gate.architect_seconds": _DEADLINE_RULE,
    "gate.retry_delay_seconds": _NEUTRAL_RULE,
    "gate.run_minutes": _DEADLINE_RULE,
    "gate.network": SettingRule(WeakerChange.ON, ConsentRule.ON),
    "gate.pass": SettingRule(WeakerChange.ADDED, ConsentRule.EACH),
    "gate.hooks": SettingRule(WeakerChange.RANKED, ranking=(("refuse", "run"), ("skip",))),
    "gate.verified_plan": SettingRule(WeakerChange.OFF),
    "solve.policy": _NEUTRAL_RULE,
    "solve.max_replans": _DEADLINE_RULE,
    "solve.seconds": _DEADLINE_RULE,
    "solve.subtask_seconds": _DEADLINE_RULE,
    "solve.memory": _NEUTRAL_RULE,
    "controller.distance_weight": _NEUTRAL_RULE,
    "controller.blame_weight": _NEUTRAL_RULE,
    "controller.budget_weight": _NEUTRAL_RULE,
    "controller.replans_weight": _NEUTRAL_RULE,
    "controller.time_weight": _NEUTRAL_RULE,
    "controller.flat_below": _NEUTRAL_RULE,
    "controller.near_below": _NEUTRAL_RULE,
    "controller.blame_above": _NEUTRAL_RULE,
    "controller.abandon_at": _NEUTRAL_RULE,
    "run.memory": _NEUTRAL_RULE,
    "memory.shared": _NEUTRAL_RULE,
    "understanding.ask": SettingRule(WeakerChange.RANKED, ranking=(("always",), ("run",), ("off",))),
    "understanding.silence_seconds": _DEADLINE_RULE,
    "understanding.question_apart_seconds": _DEADLINE_RULE,
    "tools.secret": SettingRule(WeakerChange.REMOVED, globs=True),
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
class WeakenedSetting:
    """A setting whose new value is weaker than its old one."""

    setting: str
    old: object
    new: object


@dataclass(frozen=True, order=True)
class RequestedPermission:
    """A permission that a repository's settings request and that only the user may grant."""

    setting: str
    value: str
    """The requested value, as in a settings file: an entry of the list, or the whole value."""


def list_weakened_settings(old: SettingValues, new: SettingValues) -> list[WeakenedSetting]:
    """Return every setting that is weaker in `new` than in `old`, in the order of `SETTING_RULES`."""
    return [
        WeakenedSetting(name, old[name], new[name])
        for name, row in SETTING_RULES.items()
        if old[name] != new[name] and _is_weaker(row, old[name], new[name])
    ]


def report_weakened_settings(
    weakenings: Iterable[WeakenedSetting],
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
            fix="restore the old value: a change must not loosen its own checks",
        )
        for weakening in weakenings
    ]


def find_requested_permissions(
    settings: SettingValues, *, default_level: str, written: Callable[[object], str], is_outside: Callable[[str], bool]
) -> list[RequestedPermission]:
    """Return the permissions that these settings request. `is_outside` tells whether a path leads out of the
    repository.
    """
    needs: list[RequestedPermission] = []
    for name, row in SETTING_RULES.items():
        value = settings[name]
        match row.consent:
            case ConsentRule.EACH:
                needs += [RequestedPermission(name, written(entry)) for entry in _entries(value)]
            case ConsentRule.OUTSIDE:
                needs += [
                    RequestedPermission(name, written(entry)) for entry in _entries(value) if is_outside(str(entry))
                ]
            case ConsentRule.WHOLE if value:
                needs.append(RequestedPermission(name, written(value)))
            case ConsentRule.ON if value is True:
                needs.append(RequestedPermission(name, "true"))
            case ConsentRule.ZERO if value == 0:
                needs.append(RequestedPermission(name, "0"))
            case ConsentRule.LOW_RANK if _rank(row, value) > _rank(row, default_level):
                needs.append(RequestedPermission(name, written(value)))
    return needs


def _is_weaker(row: SettingRule, old: object, new: object) -> bool:
    match row.weaker:
        case WeakerChange.NEVER:
            return False
        case WeakerChange.CHANGED:
            return True
        case WeakerChange.ADDED:
            return not _covers(_entries(old), _entries(new), globs=row.globs)
        case WeakerChange.REMOVED:
            return not _covers(_entries(new), _entries(old), globs=row.globs)
        case WeakerChange.ON:
            return new is True
        case WeakerChange.OFF:
            return new is False
        case WeakerChange.RANKED:
            return _rank(row, new) > _rank(row, old)
        case WeakerChange.HIGHER:
            return _number(new) > _number(old)
        case WeakerChange.LOWER:
            return _number(new) < _number(old)
        case WeakerChange.UNLIMITED:
            limits, before = _limits(new), _limits(old)
            return any(limits.get(key, math.inf) > limit for key, limit in before.items())


def _covers(known: Sequence[object], entries: Sequence[object], *, globs: bool) -> bool:
    """Return whether every entry is known, or matched by a known pattern if `globs` is set."""
    return all(
        entry in known or (globs and any(fnmatchcase(str(entry), str(pattern)) for pattern in known))
        for entry in entries
    )


def _entries(value: object) -> Sequence[object]:
    """Return the entries of a list, or the pairs of a table."""
    if isinstance(value, Mapping):
        return [*value.items()]
    return value if isinstance(value, list | tuple) else ()


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _limits(value: object, prefix: str = "") -> dict[str, float]:
    """Return every limit in a number or a table of numbers; 0 means no limit, which is higher than any."""
    if isinstance(value, Mapping):
        return {key: limit for name, part in value.items() for key, limit in _limits(part, f"{prefix}.{name}").items()}
    return {prefix: _number(value) or math.inf}


def _rank(row: SettingRule, value: object) -> int:
    return next((index for index, group in enumerate(row.ranking) if value in group), len(row.ranking))


def _describe_weakening(setting: str) -> str:
    weaker = SETTING_RULES[setting].weaker
    if weaker is WeakerChange.CHANGED:
        return f"{setting} changed; only a person can decide whether that weakens later checks"
    return f"{setting} is weaker than in the base: {weaker.value}"


_AGENT_VARIABLES: Final[Mapping[str, str]] = {
    "CLAUDECODE": "Claude Code",
    "CLAUDE_CODE_ENTRYPOINT": "Claude Code",
    "CODEX_SANDBOX": "Codex",
    "CODEX_SANDBOX_NETWORK_DISABLED": "Codex",
    "CODEX_THREAD_ID": "Codex",
    "CODEX_CI": "Codex",
    "GEMINI_CLI": "Gemini CLI",
    "QWEN_CODE": "Qwen Code",
    "OPENCODE": "opencode",
    "COPILOT_CLI": "Copilot CLI",
    "CURSOR_AGENT": "Cursor",
    "GOOSE_TERMINAL": "goose",
    "CLINE_ACTIVE": "Cline",
    "AUGMENT_AGENT": "Augment",
    "ANTIGRAVITY_AGENT": "Antigravity",
    "AI_AGENT": "a coding agent",
    "PROOFSTONE_TASK": "an executor of Proofstone",
}
"""Variables that coding agents set for the commands that they run."""


def detect_coding_agent(environment: Mapping[str, str]) -> str:
    """Return the name of the coding agent whose shell this is, or an empty string."""
    return next((name for variable, name in _AGENT_VARIABLES.items() if environment.get(variable)), "")
