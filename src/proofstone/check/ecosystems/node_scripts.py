"""Read the test script of a package.json, as far as it is simple enough to be certain.

A script is a list of commands joined by `&&`. References to other scripts are followed. If the last command is a known
runner, that runner can be called so that it reports test ids; anything else is run unchanged.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace

PLACEHOLDER = re.compile(r"no test specified", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_TRANSPARENT = {"npx", "cross-env", "cross-env-shell", "env", "dotenv"}
_COVERAGE = {"c8", "nyc", "istanbul"}
_PACKAGE_MANAGERS = {"npm", "pnpm", "yarn", "bun"}
_OWN_COMMANDS = {
    "install",
    "ci",
    "i",
    "exec",
    "dlx",
    "add",
    "workspaces",
    "workspace",
    "recursive",
    "audit",
    "publish",
}
_MAX_DEPTH = 5
"""Deeper nesting of scripts that call scripts is a cycle."""


@dataclass(frozen=True, slots=True)
class ScriptCommand:
    """One simple command, without the variables set for it."""

    words: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    text: str = ""
    """The command as written, for a shell."""
    is_piped: bool = False
    """Whether its output goes to a second program that only formats it."""


def parse_script(script: str, scripts: Mapping[str, object], depth: int = 0) -> list[ScriptCommand] | None:
    """Return the simple commands of a script in order; None if it is more complex than that."""
    parts = _split_script(script)
    if parts is None or depth > _MAX_DEPTH:
        return None
    result: list[ScriptCommand] = []
    for part in parts:
        command = _unwrap(part)
        if command is None:
            return None
        name = _find_referenced_script(command.words)
        body = scripts.get(name) if name is not None else None
        if not isinstance(body, str):
            result.append(_resolve_program(command, scripts))
            continue
        nested = parse_script(body, scripts, depth + 1)
        if nested is None:
            return None
        result += [replace(inner, env=(*command.env, *inner.env)) for inner in nested]
    return result


def _split_script(script: str) -> list[ScriptCommand] | None:
    lexer = shlex.shlex(script, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:
        return None
    parts: list[list[str]] = [[]]
    piped = False
    for word in words:
        if word == "&&" and not piped:
            parts.append([])
        elif word == "|" and not piped:
            piped = True
        elif re.fullmatch(r"[();<>|&]+", word) or "`" in word or "$" in word:
            return None
        elif not piped:
            parts[-1].append(word)
    if not all(parts):
        return None
    texts_as_written = [text.strip() for text in script.partition("|")[0].split("&&")]
    texts = texts_as_written if len(texts_as_written) == len(parts) else [shlex.join(part) for part in parts]
    simple_commands = [ScriptCommand(tuple(part), text=text) for part, text in zip(parts, texts, strict=True)]
    return [*simple_commands[:-1], replace(simple_commands[-1], is_piped=piped)]


def _unwrap(command: ScriptCommand) -> ScriptCommand | None:
    """Return the command without leading assignments and wrapper programs; None if nothing is left."""
    words, env = list(command.words), list(command.env)
    while words:
        assignment = _ASSIGNMENT.fullmatch(words[0])
        if assignment:
            env.append((assignment[1], assignment[2]))
        elif words[0] in _COVERAGE:
            rest = [i for i, word in enumerate(words[1:], 1) if not word.startswith("-")]
            del words[: rest[0] - 1 if rest else len(words) - 1]
        elif words[0] not in _TRANSPARENT and words[:2] not in (
            ["pnpm", "exec"],
            ["yarn", "exec"],
            ["npm", "exec"],
        ):
            break
        elif words[0] in _PACKAGE_MANAGERS:
            words.pop(0)
        words.pop(0)
        while words and words[0] == "--":
            words.pop(0)
    if not words or words[0].startswith("-"):
        return None
    return replace(command, words=tuple(words), env=tuple(env))


def _resolve_program(command: ScriptCommand, scripts: Mapping[str, object]) -> ScriptCommand:
    """Return the program that `yarn jest` or `pnpm jest` runs if no script has that name."""
    first, *rest = command.words
    if first in ("yarn", "pnpm") and rest and rest[0] not in _OWN_COMMANDS | set(scripts) | {"run", "test"}:
        return command if rest[0].startswith("-") else replace(command, words=tuple(rest))
    return command


def _find_referenced_script(words: tuple[str, ...]) -> str | None:
    """Return the script that `npm run x`, `yarn x` or `pnpm x` calls, if that is all it does."""
    manager, *rest = words
    if manager not in _PACKAGE_MANAGERS:
        return None
    rest = [word for word in rest if word not in ("--silent", "-s")]
    is_explicit = rest[:1] in (["run"], ["run-script"])
    rest = rest[1:] if is_explicit else rest
    if len(rest) != 1 or rest[0].startswith("-") or (not is_explicit and rest[0] in _OWN_COMMANDS):
        return None
    if manager == "npm" and not is_explicit and rest[0] not in ("test", "t", "start"):
        return None
    return rest[0]
