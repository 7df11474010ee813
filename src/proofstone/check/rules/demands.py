"""Read what files that run checks demand: CI services, git hooks, task runners, and the settings of coding agents.

Each kind of file has a reader, by the patterns of the table at the end. A new kind is a row there.
"""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ruamel.yaml.error import YAMLError

from proofstone.check.rules.check_commands import CheckCommand, find_action_commands, find_check_commands
from proofstone.common.parsing import is_bounded, make_yaml_reader, parse_ini


@dataclass
class Demands:
    """What one file demands."""

    commands: list[CheckCommand] = field(default_factory=list)
    thresholds: dict[str, float] = field(default_factory=dict)
    events: set[str] = field(default_factory=set)
    rules: set[str] = field(default_factory=set)
    """Hooks and denied permissions of coding agents."""


Reader = Callable[[str, Demands], None]


@dataclass(frozen=True)
class DemandKind:
    """A kind of file that runs checks."""

    group: str
    """`ci`, `hooks`, `scripts` or `agents`."""
    read: Reader


_UNREADABLE: Final = (ValueError, RecursionError, YAMLError, configparser.Error, AttributeError, TypeError, KeyError)
_COMMAND_KEYS: Final = frozenset(
    ("run", "script", "before_script", "after_script", "commands", "command", "bash", "sh", "install", "cmd", "cmds")
)
_EVENTS: Final = ("pull_request", "pull_request_target", "push", "merge_group")
_FACTOR: Final = re.compile(r"^[\w{},.!-]+:\s+")
"""The environments of tox that a line is for."""
_THRESHOLD: Final = re.compile(
    r"(?:fail[_-]under|min[_-]coverage|minimum_coverage)[\"']?\s*[=: ]\s*[\"']?(\d+(?:\.\d+)?)"
)
_JEST_THRESHOLD: Final = re.compile(r"\b(branches|functions|lines|statements)[\"']?\s*:\s*(\d+(?:\.\d+)?)")


def read_demands(content: bytes | None, reader: Reader) -> Demands | None:
    """Return what a file demands; nothing if it does not exist, None if it cannot be read."""
    demands = Demands()
    if content is None:
        return demands
    try:
        text = content.decode("utf-8-sig")
        reader(text, demands)
    except _UNREADABLE:
        return None
    for value in _THRESHOLD.findall(_strip_comments(text)):
        demands.thresholds["fail-under"] = max(float(value), demands.thresholds.get("fail-under", 0.0))
    return demands


def _strip_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(("#", "//", ";")))


def _read_yaml(text: str, demands: Demands) -> None:
    data = make_yaml_reader().load(text)
    if not is_bounded(data):
        raise ValueError("too many values")
    if not isinstance(data, dict):
        return
    events = data.get("on", data.get(True))
    names = {events} if isinstance(events, str) else set(map(str, events)) if isinstance(events, list | dict) else set()
    is_by_hand = bool(names) and not names.intersection((*_EVENTS, "workflow_call", "schedule"))
    _walk(data, demands, has_effect=not is_by_hand)
    if any(command.is_check for command in demands.commands):
        demands.events |= names.intersection(_EVENTS)


def _walk(node: object, demands: Demands, *, has_effect: bool) -> None:
    """Collect the commands of a tree of steps. What a step switches off holds for everything below it."""
    if isinstance(node, list):
        for item in node:
            _walk(item, demands, has_effect=has_effect)
        return
    if not isinstance(node, dict):
        return
    has_effect = has_effect and not _is_switched_off(node)
    for key, value in node.items():
        if key in _COMMAND_KEYS:
            for script in _list_scripts(value):
                demands.commands += find_check_commands(script, has_effect=has_effect)
        if key == "uses" and isinstance(value, str):
            names = find_action_commands(value)
            demands.commands += [CheckCommand(c.program, has_effect=has_effect) for c in names]
        _walk(value, demands, has_effect=has_effect)


def _list_scripts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return ["\n".join(item for item in value if isinstance(item, str))] if isinstance(value, list) else []


def _is_switched_off(node: Mapping[Any, Any]) -> bool:
    condition = str(node.get("if", "")).replace("${{", "").replace("}}", "").strip().lower()
    return (
        node.get("continue-on-error") in (True, "true")
        or node.get("continueOnError") in (True, "true")
        or node.get("allow_failure") is True
        or node.get("ignore_errors") is True
        or node.get("when") in ("manual", "never")
        or node.get("skip") is True
        or node.get("enabled") is False
        or condition in ("false", "false()", "!true", "0", "failure() && false", "never()")
        or condition.startswith("false &&")
    )


def _read_pre_commit(text: str, demands: Demands) -> None:
    data = make_yaml_reader().load(text)
    if not is_bounded(data):
        raise ValueError("too many values")
    default = data.get("default_stages") or ["pre-commit"]
    skipped = (data.get("ci") or {}).get("skip") or []
    for repository in data.get("repos") or []:
        for hook in repository.get("hooks") or []:
            stages = hook.get("stages") or default
            runs = any(stage != "manual" for stage in stages) and hook["id"] not in skipped
            arguments = [str(word) for word in hook.get("args") or []]
            runs = runs and not {"--exit-zero", "--exit-0"}.intersection(arguments)
            excluded = f"{hook.get('exclude') or ''}|{data.get('exclude') or ''}".strip("|")
            kinds = [str(hook.get(key)) for key in ("files", "types", "types_or") if hook.get(key)]
            name = str(hook["id"]).removesuffix("-check")
            demands.commands.append(CheckCommand(name, frozenset(kinds), bool(excluded), has_effect=runs))


def _read_shell(text: str, demands: Demands) -> None:
    # What follows `exit 0` at the beginning of a line is never reached.
    demands.commands += find_check_commands(re.split(r"(?m)^exit 0\b", text)[0])


def _read_makefile(text: str, demands: Demands) -> None:
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("\t"):
            command = line.strip()
            ignored = command[:2].strip("@+").startswith("-")
            demands.commands += find_check_commands(command.lstrip("@-+ "), has_effect=not ignored)


def _read_justfile(text: str, demands: Demands) -> None:
    _read_makefile(re.sub(r"(?m)^ +", "\t", text), demands)


def _read_ini_file(text: str, demands: Demands) -> None:
    for name, section in parse_ini(text).items():
        if not name.startswith(("testenv", "tox")):
            continue
        ignored = (section.get("ignore_outcome") or "").lower() == "true" or (
            (section.get("ignore_errors") or "").lower() == "true"
        )
        for key in ("commands", "commands_pre", "commands_post"):
            for line in (section.get(key) or "").replace("\\\n", " ").splitlines():
                command = _FACTOR.sub("", line.strip())
                effect = not ignored and not command.startswith("-")
                demands.commands += find_check_commands(command.lstrip("- "), has_effect=effect)


def _read_toml(text: str, demands: Demands) -> None:
    tool = tomllib.loads(text).get("tool", {})
    for name in ("poe", "pdm", "hatch", "taskipy", "tox", "rye", "pixi"):
        _walk_strings(tool.get(name, {}), demands)


def _walk_strings(node: object, demands: Demands) -> None:
    if isinstance(node, str):
        demands.commands += find_check_commands(node)
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _walk_strings(value, demands)


def _read_package(text: str, demands: Demands) -> None:
    data = json.loads(text)
    for key in ("scripts", "husky", "lint-staged", "simple-git-hooks", "pre-commit"):
        _walk_strings(data.get(key) or {}, demands)
    if "coverageThreshold" in text:
        _read_coverage(text, demands)


def _read_nox(text: str, demands: Demands) -> None:
    for call in re.findall(r"session\.run(?:_always)?\(([^()]*(?:\([^()]*\)[^()]*)*)\)", text):
        words = re.findall(r"(?<![=\w])[\"']([^\"']*)[\"']", call)
        effect = "success_codes" not in call
        demands.commands += find_check_commands(" ".join(word for word in words if word), has_effect=effect)


def _read_coverage(text: str, demands: Demands) -> None:
    if "hreshold" in text or "check-coverage" in text:
        for name, value in _JEST_THRESHOLD.findall(text):
            demands.thresholds[name] = max(float(value), demands.thresholds.get(name, 0.0))


def _read_agent_settings(text: str, demands: Demands) -> None:
    data = json.loads(text)
    if not data.get("disableAllHooks"):
        for event, entries in (data.get("hooks") or {}).items():
            demands.rules |= {f"the hook for {event}: {command}" for command in _list_commands(entries)}
    denied = (data.get("permissions") or {}).get("deny") or []
    demands.rules |= {f"the denied permission {name}" for name in denied}


def _list_commands(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        for key in ("command", "bash"):
            if isinstance(node.get(key), str):
                yield node[key]
        for value in node.values():
            yield from _list_commands(value)
    elif isinstance(node, list):
        for item in node:
            yield from _list_commands(item)


def _read_instructions(text: str, demands: Demands) -> None:
    demands.rules |= {
        f"the instruction `{command}`" for command in re.findall(r"proofstone (?:check|gate|hook)\b", text)
    }


_KINDS: Final[tuple[tuple[str, str, Reader], ...]] = (
    (r"^\.(?:github|forgejo|gitea)/workflows/[^/]+\.ya?ml$", "ci", _read_yaml),
    (r"(?:^|/)(?:\.gitlab-ci|azure-pipelines[\w-]*|\.travis|\.?appveyor)\.ya?ml$", "ci", _read_yaml),
    (r"(?:^|/)(?:bitbucket-pipelines|\.cirrus|\.drone)\.ya?ml$", "ci", _read_yaml),
    (r"^\.(?:circleci|gitlab|buildkite|woodpecker|azure-pipelines|semaphore)/.*\.ya?ml$", "ci", _read_yaml),
    (r"(?:^|/)(?:\.woodpecker|cloudbuild|buildspec)\.ya?ml$", "ci", _read_yaml),
    (r"(?:^|/)\.pre-commit-config\.ya?ml$", "hooks", _read_pre_commit),
    (r"(?:^|/)\.?lefthook\.ya?ml$", "hooks", _read_yaml),
    (r"^(?:\.husky|\.githooks|githooks|hooks)/[a-z-]+$", "hooks", _read_shell),
    (r"(?:^|/)(?:GNU)?[Mm]akefile$|\.mk$", "scripts", _read_makefile),
    (r"(?:^|/)\.?[Jj]ustfile$", "scripts", _read_justfile),
    (r"(?:^|/)[Tt]askfile\.ya?ml$", "scripts", _read_yaml),
    (r"(?:^|/)(?:tox\.ini|setup\.cfg|\.coveragerc)$", "scripts", _read_ini_file),
    (r"(?:^|/)noxfile\.py$", "scripts", _read_nox),
    (r"(?:^|/)package\.json$", "scripts", _read_package),
    (r"(?:^|/)(?:pyproject|tox)\.toml$", "scripts", _read_toml),
    (r"(?:^|/)(?:jest|vitest)\.config\.[cm]?[jt]s$|(?:^|/)\.(?:nycrc|c8rc)(?:\.json)?$", "scripts", _read_coverage),
    (r"(?:^|/)\.(?:claude|gemini|qwen)/settings(?:\.local)?\.json$", "agents", _read_agent_settings),
    (r"(?:^|/)\.codex/hooks\.json$|^\.github/hooks/[^/]+\.json$", "agents", _read_agent_settings),
    (r"(?:^|/)(?:AGENTS|CLAUDE|GEMINI|QWEN|CODEX)\.md$", "agents", _read_instructions),
    (r"^\.github/copilot-instructions\.md$", "agents", _read_instructions),
)  # fmt: skip
"""Patterns of paths, the group whose files are compared together, and how a file is read."""
_COMPILED: Final = tuple((re.compile(pattern), DemandKind(group, reader)) for pattern, group, reader in _KINDS)


def find_reader(path: str) -> DemandKind | None:
    """Return how a file is read; None if it runs no checks."""
    return next((kind for pattern, kind in _COMPILED if pattern.search(path)), None)
