"""What a repository's settings ask for, who granted it, and what is left of them without."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofstone.app.trust import add_grant, remove_grants
from proofstone.config.loader import load_settings_text
from proofstone.config.rules import SETTING_RULES, ConsentRule, RequestedPermission
from proofstone.config.settings import Settings
from proofstone.config.trust import (
    PERMISSION_MEANINGS,
    check_consent,
    explain_permission,
    format_value,
    list_requested_permissions,
    load_grants,
    remove_permissions,
)
from proofstone.config.user import UserConfig, UserSettings
from proofstone.errors import ConfigError

ROOT = Path("/srv/project")
ASKING = load_settings_text(
    '[environment]\npass = ["TOKEN", "DSN"]\nnetwork = true\ninclude = [".env"]\nsetup = ["npm ci"]\n'
    '[sandbox]\nlevel = "plain"\n[gate]\npass = ["OPENAI_API_KEY"]\n[check]\nverify = ["make lint"]\n',
    "proofstone.toml",
)
NEEDS = list_requested_permissions(ASKING, ROOT)


def person(**trust: object) -> UserConfig:
    return UserConfig(UserSettings.model_validate({"trust": trust}), Path("/nowhere/proofstone.toml"))


def missing(
    owner: UserConfig, *, present: list[str] | None = None, file: Path | None = None
) -> set[RequestedPermission]:
    grants = load_grants(file).for_repository(ROOT) if file else ()
    return set(check_consent(NEEDS, owner, grants, repository=ROOT, present=present).missing)


def test_nothing_is_granted_by_default() -> None:
    assert missing(person()) == set(NEEDS) and len(NEEDS) == 7


def test_each_thing_that_needs_consent_says_what_it_means() -> None:
    assert set(PERMISSION_MEANINGS) == {
        name for name, row in SETTING_RULES.items() if row.consent is not ConsentRule.NONE
    }
    assert "a key of yours" in explain_permission(RequestedPermission("gate.pass", '"OPENAI_API_KEY"'), person())
    assert "a key of yours" not in explain_permission(RequestedPermission("gate.pass", '"TZ"'), person())


def test_a_variable_that_is_not_set_gives_nothing_away_and_is_not_asked_for() -> None:
    asked = missing(person(), present=["DSN"])
    assert (
        RequestedPermission("environment.pass", '"DSN"') in asked
        and RequestedPermission("environment.pass", '"TOKEN"') not in asked
    )
    assert RequestedPermission("environment.network", "true") in asked


def test_the_persons_own_settings_grant_by_kind_and_by_folder() -> None:
    owner = person(**{"pass": ["TOKEN", "DSN", "OPENAI_API_KEY"], "weaker_sandbox": True})
    assert {need.setting for need in missing(owner)} == {
        "environment.network",
        "environment.include",
        "environment.setup",
    }
    assert missing(person(folders=["/srv"])) == set()
    assert missing(person(folders=["/srv/proj"])) == set(NEEDS)


def test_a_grant_is_for_one_repository_and_for_what_was_shown(tmp_path: Path) -> None:
    file = tmp_path / "own" / "trust.json"
    grant = add_grant(file, ROOT, NEEDS)
    add_grant(file, ROOT, NEEDS)
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert load_grants(file).grants == load_grants(file).for_repository(ROOT) and len(load_grants(file).grants) == 1
    assert missing(person(), file=file) == set()
    grants = load_grants(file).grants
    fewer = NEEDS[:3]
    assert check_consent(fewer, person(), grants, repository=ROOT).missing == ()
    more = (*NEEDS, RequestedPermission("environment.pass", '"ANOTHER"'))
    assert set(check_consent(more, person(), grants, repository=ROOT).missing) == set(more)
    assert load_grants(file).for_repository(Path("/srv/other")) == ()
    assert remove_grants(file, str(ROOT)) == load_grants(file).grants or load_grants(file).grants == ()
    assert missing(person(), file=file) == set(NEEDS) and grant.repository == str(ROOT)


def test_a_grant_that_was_edited_counts_for_nothing(tmp_path: Path) -> None:
    file = tmp_path / "trust.json"
    add_grant(file, ROOT, NEEDS[:1])
    text = json.loads(file.read_text())
    text["grants"][0]["needs"].append({"setting": "sandbox.level", "value": '"plain"'})
    file.write_text(json.dumps(text))
    with pytest.raises(ConfigError, match="was edited"):
        load_grants(file)
    assert len(remove_grants(file, str(ROOT))) == 1
    file.write_text("[]")
    with pytest.raises(ConfigError, match="not a list of grants"):
        load_grants(file)


def test_what_is_not_granted_has_its_protective_value() -> None:
    safe = remove_permissions(ASKING, NEEDS)
    assert safe.environment == Settings().environment and safe.sandbox == Settings().sandbox
    assert safe.gate.pass_through == () and safe.check == ASKING.check
    assert list_requested_permissions(safe, ROOT) == ()
    some = remove_permissions(ASKING, [RequestedPermission("environment.pass", format_value("DSN"))])
    assert some.environment.pass_through == ("TOKEN",) and some.environment.network


def test_a_folder_that_a_link_leads_out_to_lies_outside(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "link").symlink_to("/etc")
    text = '[environment]\ndependencies = ["inside", "link", "../beside"]\n'
    found = list_requested_permissions(load_settings_text(text, "proofstone.toml"), tmp_path)
    assert [need.value for need in found] == ['"link"', '"../beside"']
