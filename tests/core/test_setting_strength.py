"""Which change of a setting weakens it, and which values need the person's consent."""

from __future__ import annotations

import pytest

from proofstone.config.reading import load_text
from proofstone.config.rules import ROWS, Consent, Need, Weaker, protection_needs, weakened_settings
from proofstone.config.settings import Settings
from proofstone.config.trust import setting_values, written_value
from proofstone.config.wording import sections


def test_every_setting_of_the_model_has_a_row() -> None:
    assert [setting.name for section in sections() for setting in section.settings] == list(ROWS)


def test_every_ranking_names_every_value_that_the_setting_takes() -> None:
    for section in sections():
        for setting in section.settings:
            ranking = ROWS[setting.name].ranking
            named = {value for group in ranking for value in group}
            assert (ROWS[setting.name].weaker is Weaker.RANKED) == bool(ranking)
            assert all(f'"{value}"' in setting.takes for value in named)
            assert not ranking or setting.takes.count('"') == 2 * len(named)


# Setting, the weaker and the stronger value.
PAIRS = [
    ("check.base", '"main"', '"v1"'),
    ("check.verify", '["make lint"]', '["make lint", "make docs"]'),
    ("check.disable", '["tests:*"]', "[]"),
    ("check.disable", '["lint:*"]', '["lint:ruff"]'),
    ("check.optional", '["types:mypy"]', "[]"),
    ("check.max_file_kb", "2000", "1000"),
    ("check.flaky_reruns", "5", "1"),
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
    return dict(setting_values(load_text(f'[{section}]\n"{key}" = {written}\n', "proofstone.toml")))


@pytest.mark.parametrize(("setting", "weaker", "stronger"), PAIRS)
def test_the_weaker_direction_is_found_and_the_other_passes(setting: str, weaker: str, stronger: str) -> None:
    low, high = values(setting, weaker), values(setting, stronger)
    assert [one.setting for one in weakened_settings(high, low)] == [setting]
    either = ROWS[setting].weaker is Weaker.CHANGED  # code cannot tell which way it goes
    assert [one.setting for one in weakened_settings(low, high)] == ([setting] if either else [])
    assert weakened_settings(low, low) == []


def test_a_neutral_change_says_nothing() -> None:
    new = setting_values(load_text('[limits]\nslots = 3\n[backends]\nplanner = "cli:claude"\n', "proofstone.toml"))
    assert weakened_settings(setting_values(Settings()), new) == []


def needs(text: str) -> list[Need]:
    return protection_needs(
        setting_values(load_text(text, "proofstone.toml")),
        default_level="auto",
        written=written_value,
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
        Need("environment.include", '".env"'),
        Need("environment.setup", '["npm ci"]'),
        Need("environment.setup_scripts", "true"),
        Need("environment.pass", '"TOKEN"'),
        Need("environment.pass", '"DSN"'),
        Need("environment.network", "true"),
        Need("environment.sockets", '"/run/docker.sock"'),
        Need("environment.dependencies", '"/opt/deps"'),
        Need("sandbox.level", '"plain"'),
        Need("sandbox.memory_mb", "0"),
        Need("sandbox.disk_mb", "0"),
        Need("sandbox.allow", '"bpf"'),
        Need("sandbox.compare_bare", "true"),
        Need("gate.network", "true"),
        Need("gate.pass", '"KEY"'),
    ]
    asked = {name for name, row in ROWS.items() if row.consent is not Consent.NONE}
    assert {need.setting for need in needs(text)} == asked
