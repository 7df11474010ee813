"""Plugin packages for coding agents: hooks at the beginning and the end of a session, and three commands.

A package is a folder that the program installs. Its hooks start Proofstone by an absolute path, or else look for it on
PATH and say what to do if it is not there. The packages in `plugins/` of the repository look on PATH.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from proofstone.hooks.agent_hooks import DIALECTS, INSTRUCTION, Dialect

NAME: Final = "proofstone"
_DESCRIPTION: Final = "Checks what the agent says is done, in a sandbox and against the base, before it may stop."


class PluginTarget(StrEnum):
    """The programs that a package can be written for."""

    CLAUDE = "claude"
    CODEX = "codex"
    GEMINI = "gemini"
    CURSOR = "cursor"
    COPILOT = "copilot"


class AgentCommand(NamedTuple):
    """A command that a person types in the agent's program."""

    name: str
    description: str
    arguments: str
    """What may follow the name."""
    prompt: str
    """What the agent is asked; `{arguments}` stands for what was typed."""


COMMANDS: Final = (
    AgentCommand(
        "check",
        "Check the change with Proofstone",
        "",
        "Run `proofstone check` in this repository and wait for its end. If it does not print PASSED, fix what each "
        "finding names, in the code and not in the checks, and run it again. If a test or a requirement is wrong, "
        'dispute it with `proofstone dispute SUBJECT --because "why"` and stop. At the end quote the last lines that '
        "it printed. NOTHING-TO-CHECK is no pass.",
    ),
    AgentCommand(
        "explain",
        "Explain a finding of Proofstone",
        "[RULE]",
        "Rule: {arguments}\n\nRun `proofstone explain RULE` for this rule; if none is given, for each rule that the "
        "last `proofstone check` of this session named. Say in plain words what it means for the change at hand, and "
        "what to do. Change nothing.",
    ),
    AgentCommand(
        "dispute",
        "Dispute a test or a requirement",
        "SUBJECT: why it is wrong",
        "Subject and reason: {arguments}\n\nA test, a rule or a requirement may be wrong. Do not change it. Record the "
        'dispute with `proofstone dispute SUBJECT --because "why"`, and tell the person that they decide with '
        "`proofstone dispute decide last accept|reject|amend` in their own terminal.",
    ),
)


def build_plugin_files(target: PluginTarget, version: str, program: str = "") -> dict[str, str]:
    """Return the files of a package by their path in it. `program` is the absolute path of Proofstone; without one, the
    hooks look for it on PATH."""
    return dict(sorted(_BUILDERS[target](version, program)))


def build_marketplace_files() -> dict[str, str]:
    """Return the files by which Claude Code and Codex find the packages of this repository."""
    source = f"./plugins/{PluginTarget.CLAUDE}"
    claude = {
        "name": NAME,
        "owner": {"name": "The Proofstone developers"},
        "description": _DESCRIPTION,
        "plugins": [{"name": NAME, "source": source, "description": _DESCRIPTION}],
    }
    codex = {
        "name": NAME,
        "interface": {"displayName": "Proofstone"},
        "plugins": [
            {
                "name": NAME,
                "source": {"source": "local", "path": f"./plugins/{PluginTarget.CODEX}"},
                "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
                "category": "Coding",
            }
        ],
    }
    return {".claude-plugin/marketplace.json": _json(claude), ".agents/plugins/marketplace.json": _json(codex)}


def build_hook_command(dialect: Dialect, event: str, program: str) -> str:
    """Return the command line of a hook. If Proofstone is not there, it says so and lets the agent go on: a hook that
    blocked it could not be satisfied."""
    arguments = dialect.build_command(event).removeprefix("proofstone ")
    if program:
        missing = (
            f"{program} is not there any more; write the plugin again: proofstone export plugin {dialect.name} DIR"
        )
        start = shlex.quote(program)
        return f"test -x {start} || {{ {_say(missing)}; exit 1; }}; exec {start} {arguments}"
    missing = (
        "the command `proofstone` is not on PATH, so nothing was checked; install it (pipx install proofstone), or "
        f"have its path written: proofstone export plugin {dialect.name} DIR"
    )
    return f"command -v proofstone >/dev/null || {{ {_say(missing)}; exit 1; }}; exec proofstone {arguments}"


def _say(text: str) -> str:
    return f"echo {shlex.quote(f'proofstone: {text}')} >&2"


def _build_hooks(dialect: Dialect, program: str) -> dict[str, object]:
    return {
        event: [dialect.build_entry(event, build_hook_command(dialect, event, program))] for event in dialect.all_events
    }


def _build_manifest(version: str, **more: object) -> str:
    manifest = {
        "name": NAME,
        "version": version,
        "description": _DESCRIPTION,
        "author": {"name": "The Proofstone developers"},
        "license": "Apache-2.0",
    }
    return _json({**manifest, **more})


def _build_claude(version: str, program: str) -> Iterator[tuple[str, str]]:
    yield ".claude-plugin/plugin.json", _build_manifest(version)
    yield "hooks/hooks.json", _json({"hooks": _build_hooks(DIALECTS["claude"], program)})
    for command in COMMANDS:
        fields = {
            "description": command.description,
            "argument-hint": command.arguments,
            "allowed-tools": f"Bash(proofstone {command.name}:*)",
        }
        yield (
            f"commands/{command.name}.md",
            _front_matter(fields) + command.prompt.format(arguments="$ARGUMENTS") + "\n",
        )


def _build_codex(version: str, program: str) -> Iterator[tuple[str, str]]:
    yield ".codex-plugin/plugin.json", _build_manifest(version, skills="./skills/", hooks="./hooks/hooks.json")
    yield "hooks/hooks.json", _json({"hooks": _build_hooks(DIALECTS["codex"], program)})
    for command in COMMANDS:
        text = command.prompt.format(arguments="what the person wrote after the name of this skill")
        fields = {"name": command.name, "description": command.description}
        yield f"skills/{command.name}/SKILL.md", _front_matter(fields) + text + "\n"


def _build_gemini(version: str, program: str) -> Iterator[tuple[str, str]]:
    manifest = {"name": NAME, "version": version, "description": _DESCRIPTION, "contextFileName": "GEMINI.md"}
    yield "gemini-extension.json", _json(manifest)
    yield "GEMINI.md", INSTRUCTION
    yield "hooks/hooks.json", _json({"hooks": _build_hooks(DIALECTS["gemini"], program)})
    for command in COMMANDS:
        lines = (
            f"description = {json.dumps(command.description)}",
            f"prompt = {json.dumps(command.prompt.format(arguments='{{args}}'))}",
        )
        yield f"commands/{command.name}.toml", "\n".join(lines) + "\n"


def _build_cursor(version: str, program: str) -> Iterator[tuple[str, str]]:
    description = f"Proofstone {version}: check before you say that you are done"
    fields: dict[str, str | bool] = {"description": description, "alwaysApply": True}
    yield ".cursor/rules/proofstone.mdc", _front_matter(fields) + INSTRUCTION
    yield ".cursor/hooks.json", _json({"version": 1, "hooks": _build_hooks(DIALECTS["cursor"], program)})
    for command in COMMANDS:
        text = command.prompt.format(arguments="what the person wrote after the command")
        yield f".cursor/commands/{command.name}.md", text + "\n"


def _build_copilot(version: str, program: str) -> Iterator[tuple[str, str]]:
    fields = {"description": f"Proofstone {version}: check before you say that you are done", "applyTo": "**"}
    yield ".github/instructions/proofstone.instructions.md", _front_matter(fields) + INSTRUCTION
    yield ".github/hooks/proofstone.json", _json({"version": 1, "hooks": _build_hooks(DIALECTS["copilot"], program)})
    for command in COMMANDS:
        text = command.prompt.format(arguments="${input:arguments}")
        heading = _front_matter({"description": command.description, "agent": "agent"})
        yield f".github/prompts/{command.name}.prompt.md", heading + text + "\n"


_BUILDERS: Final = {
    PluginTarget.CLAUDE: _build_claude,
    PluginTarget.CODEX: _build_codex,
    PluginTarget.GEMINI: _build_gemini,
    PluginTarget.CURSOR: _build_cursor,
    PluginTarget.COPILOT: _build_copilot,
}
INSTALL: Final[Mapping[PluginTarget, str]] = {
    PluginTarget.CLAUDE: "claude --plugin-dir {folder}   (or add a marketplace that holds it)",
    PluginTarget.CODEX: "name it in a marketplace, and add that: codex plugin marketplace add FOLDER",
    PluginTarget.GEMINI: "gemini extensions install {folder}",
    PluginTarget.CURSOR: "copy the folder .cursor into your project",
    PluginTarget.COPILOT: "copy the folder .github into your project",
}
"""How each program takes the package."""


def _front_matter(fields: Mapping[str, str | bool]) -> str:
    """Write the front matter. JSON values are valid YAML, with correct quoting."""
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items() if value != ""]
    return "\n".join(("---", *lines, "---", "", ""))


def _json(document: Mapping[str, object]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
