"""The models, their schema and their words agree."""

from __future__ import annotations

import json
import re

import pytest
from pydantic import ValidationError

from proofstone.config.loader import load_settings_text
from proofstone.config.setting_docs import SettingDoc, list_sections
from proofstone.config.settings import Settings
from proofstone.errors import ConfigError
from tests.rows import each_row


def written(value: object) -> str:
    """As TOML."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {written(item)}' for key, item in value.items())} }}"
    return json.dumps(value)


def line(setting: SettingDoc, value: str) -> str:
    return f'{setting.section}."{setting.key}" = {value}\n'


def partners(setting: SettingDoc) -> list[SettingDoc]:
    """Return the other one of a deadline and its maximum, which limit each other."""
    names = {f"{setting.name}_max", setting.name.removesuffix("_max")} - {setting.name}
    return [one for one in EVERY_SETTING if one.name in names]


EVERY_SETTING: list[SettingDoc] = [setting for section in list_sections() for setting in section.settings]


def test_the_schemas_defaults_read_back_as_the_defaults() -> None:
    text = ""
    for section in list_sections():
        text += f"[{section.name}]\n"
        text += "".join(f'"{setting.key}" = {written(setting.default)}\n' for setting in section.settings)
    assert load_settings_text(text, "proofstone.toml") == Settings()


def test_the_schema_survives_json_and_forbids_unknown_keys() -> None:
    schema = Settings.model_json_schema()
    assert json.loads(json.dumps(schema)) == schema
    assert schema["additionalProperties"] is False
    assert all(model["additionalProperties"] is False for model in schema["$defs"].values())


@each_row("setting", EVERY_SETTING)
def test_every_setting_says_what_it_is_for_and_what_it_takes(setting: SettingDoc) -> None:
    assert setting.description.endswith(".")
    assert setting.accepts


@each_row("setting", [one for one in EVERY_SETTING if "whole number" in one.accepts])
def test_the_range_in_words_is_the_range_that_holds(setting: SettingDoc) -> None:
    low, high = (int(number) for number in re.findall(r"\d+", setting.accepts))
    for value in (low, high):
        text = "".join(line(one, str(value)) for one in (setting, *partners(setting)))
        loaded = load_settings_text(text, "proofstone.toml").model_dump()
        assert loaded[setting.section][setting.key] == value
    for value in (low - 1, high + 1):
        with pytest.raises(ValidationError):
            Settings.model_validate({setting.section: {setting.key: value}})


@each_row(
    ("setting", "value"),
    [
        (one, value)
        for one in EVERY_SETTING
        for value in ('"5"', "20.0", "true", "1", "2024-01-01")
        if not (one.accepts == "true or false" and value == "true")
        and not ("whole number" in one.accepts and value == "1")
        and not (one.accepts.startswith("a number") and value in ("1", "20.0"))
        and not ("git revision" in one.accepts and value == '"5"')
    ],
)
def test_no_setting_takes_a_value_of_another_type(setting: SettingDoc, value: str) -> None:
    with pytest.raises(ConfigError, match=f"{setting.name}: .* is not valid; it takes {re.escape(setting.accepts)}"):
        load_settings_text(line(setting, value), "proofstone.toml")


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().check.base = "other"  # type: ignore[misc]
