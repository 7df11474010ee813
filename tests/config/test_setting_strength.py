"""Which change of a setting weakens it, and which values need the person's consent."""

from __future__ import annotations

from proofstone.config.loader import load_settings_text
from proofstone.config.rules import (
    SETTING_RULES,
    ConsentRule,
    RequestedPermission,
    WeakerChange,
    find_requested_permissions,
    list_weakened_settings,
)
from proofstone.config.setting_docs import list_sections
from proofstone.config.settings import Settings
from proofstone.config.trust import flatten_settings, format_value
from tests.rows import each_row


def test_every_setting_of_the_model_has_a_row() -> None:
    assert [setting.name for section in list_sections() for setting in section.settings] == list(SETTING_RULES)


def test_every_ranking_names_every_value_that_the_setting_takes() -> None:
    for section in list_sections():
        for setting in section.settings:
            ranking = SETTING_RULES[setting.name].ranking
            named = {value for group in ranking for value in group}
            assert (SETTING_RULES[setting.name].weaker is WeakerChange.RANKED) == bool(ranking)
            assert all(f'"{value}"' in setting.accepts for value in named)
            assert not ranking or setting.accepts.count('"') == 2 * len(named)


# Setting, the weaker and the stronger value.
PAIRS = [
    ("check.base", '"main"', '"v1"'),
    ("check.verify", '["make lint"]', '["make lint", "make docs"]'),
    ("check.disable", '["tests:*"]', "[]"),
    ("check.disable", '["lint:*"]', '["lint:ruff"]'),
    ("check.optional", '["types:mypy"]', "[]"),
    ("check.max_file_kb", "2000", "1000"),
    ("check.flaky_reruns", "5", "1"),
    ("check.accept", '{ hard-exit = "it is a daemon" }', "{}"),
    ("check.large", "[]", '["src/auth/**"]'),
    ("environment.include", '[".env"]', "[]"),
    ("environment.setup", '["npm ci", "./x"]', '["npm ci"]'),
    ("environment.setup_scripts", "true", "false"),
    ("environment.pass", '["TOKEN"]', "[]"),
    ("environment.set", '{ PYTEST_ADDOPTS = "-k nothing" }', "{}"),
    ("environment.network", "true", "false"),
    ("environment.sockets", '["/run/docker.sock"]', "[]"),
    ("tests.allow_flaky", '["*"]', '["tests/a.py::b"]'),
    ("sandbox.level", '"plain"', '"landlock"'),
    ("sandbox.level", '"auto"', '"bubblewrap"'),
    ("sandbox.require", "false", "true"),
    ("sandbox.memory_mb", "0", "1048576"),
    ("sandbox.memory_mb", "9000", "8000"),
    ("sandbox.compare_bare", "true", "false"),
    ("limits.check_seconds", "3600", "900"),
    ("limits.output_mb", "1", "32"),
    ("hook.accepts", '["interactive", "approver"]', '["interactive"]'),
    ("gate.hooks", '"skip"', '"run"'),
    ("gate.architect", '"rules"', '"cli:claude"'),
    ("gate.verified_plan", "false", "true"),
    ("understanding.ask", '"off"', '"run"'),
    ("tools.secret", "[]", '["*.key"]'),
    ("budget.usd", "0.0", "100.0"),
    ("budget.task", "{ requests = 0 }", "{ requests = 5 }"),
    ("budget.roles", "{}", "{ planner = { requests = 3 } }"),
]


def values(setting: str, written: str) -> dict[str, object]:
    section, _, key = setting.partition(".")
    return dict(flatten_settings(load_settings_text(f'[{section}]\n"{key}" = {written}\n', "proofstone.toml")))


@each_row(("setting", "weaker", "stronger"), PAIRS)
def test_the_weaker_direction_is_found_and_the_other_passes(setting: str, weaker: str, stronger: str) -> None:
    low, high = values(setting, weaker), values(setting, stronger)
    assert [one.setting for one in list_weakened_settings(high, low)] == [setting]
    either = SETTING_RULES[setting].weaker is WeakerChange.CHANGED  # code cannot tell which way it goes
    assert [one.setting for one in list_weakened_settings(low, high)] == ([setting] if either else [])
    assert list_weakened_settings(low, low) == []


def test_a_neutral_change_says_nothing() -> None:
    new = flatten_settings(
        load_settings_text('[limits]\nslots = 3\n[backends]\nplanner = "cli:claude"\n', "proofstone.toml")
    )
    assert list_weakened_settings(flatten_settings(Settings()), new) == []


def needs(text: str) -> list[RequestedPermission]:
    return find_requested_permissions(
        flatten_settings(load_settings_text(text, "proofstone.toml")),
        default_level="auto",
        written=format_value,
        is_outside=lambda path: path.startswith(("/", "..")),
    )


def test_the_defaults_and_stronger_settings_need_no_consent() -> None:
    assert needs("") == []
    stronger = '[sandbox]\nlevel = "bubblewrap"\nrequire = true\nmemory_mb = 100\n[environment]\nset = { A = "b" }\n'
    assert needs(stronger) == []


def test_everything_that_lowers_protection_needs_consent() -> None:
    text = """
[environment]
include = [".env"]
setup = ["npm ci"]
setup_scripts = true
pass = ["TOKEN", "DSN"]
network = true
sockets = ["/run/docker.sock"]
dependencies = ["deps", "/opt/deps"]
[sandbox]
level = "plain"
memory_mb = 0
disk_mb = 0
allow = ["bpf"]
compare_bare = true
[gate]
network = true
pass = ["KEY"]
"""
    assert needs(text) == [
        RequestedPermission("environment.include", '".env"'),
        RequestedPermission("environment.setup", '["npm ci"]'),
        RequestedPermission("environment.setup_scripts", "true"),
        RequestedPermission("environment.pass", '"TOKEN"'),
        RequestedPermission("environment.pass", '"DSN"'),
        RequestedPermission("environment.network", "true"),
        RequestedPermission("environment.sockets", '"/run/docker.sock"'),
        RequestedPermission("environment.dependencies", '"/opt/deps"'),
        RequestedPermission("sandbox.level", '"plain"'),
        RequestedPermission("sandbox.memory_mb", "0"),
        RequestedPermission("sandbox.disk_mb", "0"),
        RequestedPermission("sandbox.allow", '"bpf"'),
        RequestedPermission("sandbox.compare_bare", "true"),
        RequestedPermission("gate.network", "true"),
        RequestedPermission("gate.pass", '"KEY"'),
    ]
    asked = {name for name, row in SETTING_RULES.items() if row.consent is not ConsentRule.NONE}
    assert {need.setting for need in needs(text)} == asked
