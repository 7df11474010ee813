"""Coding agents, as their presets are."""

from __future__ import annotations

from collections.abc import Mapping

from generators.page import cell
from proofstone.agents.backends.programs.known import PRESETS
from proofstone.agents.backends.programs.preset import EditLimit, Preset

KEEPS_TO: Mapping[EditLimit, str] = {
    EditLimit.PATHS: "the task's files",
    EditLimit.TREE: "the work tree",
    EditLimit.NONE: "nothing",
}


def programs() -> str:
    rows = [
        "| program | by | from version | by `cli:` it keeps itself to | how | schema, by `cli:` |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*rows, *map(_program_row, PRESETS.values()), "", *map(_program, PRESETS.values())])


def _program_row(preset: Preset) -> str:
    ways = [*(["`cli:`"] if preset.invoke else []), *(["`acp:`"] if preset.acp else [])]
    schema = "by an option" if preset.has_schema_option else "in words"
    limits = f"{KEEPS_TO[preset.limit]} | {cell(preset.limit_description)}"
    return f"| `{preset.name}` | {', '.join(ways)} | {preset.minimum} | {limits} | {schema} |"


def _program(preset: Preset) -> str:
    """What is to be known of one: how to get it, what it is given, what goes wrong."""
    given = {
        "Reaches": preset.hosts,
        "Gets, if they are set": preset.keys,
        "Shares with you": tuple(f"~/{path}" for path in preset.login),
    }
    said = [f"- {title}: {', '.join(f'`{one}`' for one in names)}" for title, names in given.items() if names]
    return "\n".join(
        [
            f"### {preset.name}\n",
            f"- Install: {preset.install}",
            *said,
            *(f"- {one}" for one in preset.known_problems),
            "",
        ]
    )
