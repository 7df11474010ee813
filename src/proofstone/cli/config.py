"""`proofstone config`: show the settings in force, where each comes from, and their schema."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from proofstone.cli.output import JsonOption, NoColorOption, Output, RepoOption, find_project_root
from proofstone.common.text import escape_control
from proofstone.config.loader import find_settings_file, load_settings
from proofstone.config.setting_docs import list_sections
from proofstone.config.settings import Settings
from proofstone.errors import InputError

app = typer.Typer(add_completion=False, help="Show the settings in force, and their schema.")


@app.command()
def show(repo: RepoOption = Path(), as_json: JsonOption = False, no_color: NoColorOption = False) -> None:
    """Show every setting, its value, and whether it is the default or comes from a file."""
    if not repo.is_dir():
        raise InputError(f"--repo {repo}: there is no such directory")
    root = find_project_root(repo)
    settings, file = load_settings(root), find_settings_file(root)
    output = Output(json=as_json, no_color=no_color)
    values = _values(settings, file or "default")
    if as_json:
        output.print_document({"file": file, "settings": {name: _entry(*value) for name, value in values.items()}})
        return
    console = output.result_console()
    console.print(f"settings of {escape_control(str(root))}: {file or 'all defaults'}", soft_wrap=True)
    width = max(len(name) for name in values)
    for name, (value, origin) in values.items():
        mark = "" if origin == "default" else f"  ({origin})"
        style = None if origin == "default" else "bold"
        console.print(f"{name:<{width}}  {escape_control(_toml(value))}{mark}", style=style, soft_wrap=True)


@app.command()
def schema() -> None:
    """Print the JSON Schema of the settings."""
    Output(json=True).print_document(Settings.model_json_schema())


def _entry(value: object, origin: str) -> dict[str, object]:
    return {"value": value, "from": origin}


def _values(settings: Settings, file: str) -> dict[str, tuple[object, str]]:
    """Return each setting by its dotted name: its value, and the file that sets it or `default`."""
    values = {}
    given = settings.model_dump(mode="json", by_alias=True, exclude_unset=True)
    effective = settings.model_dump(mode="json", by_alias=True)
    for section in list_sections():
        for setting in section.settings:
            is_set = setting.key in given.get(section.name, {})
            values[setting.name] = (effective[section.name][setting.key], file if is_set else "default")
    return values


def _toml(value: object) -> str:
    """Return a value as it would be written in the file."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{key} = {_toml(member)}" for key, member in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    return json.dumps(value, ensure_ascii=False)
