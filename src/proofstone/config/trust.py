"""Consent: which permissions a repository's settings may have, and who granted them.

A repository's settings come with a clone, so anybody may have written them. What they request beyond the defaults (a
weaker sandbox, the network, variables, files and sockets of the machine: see `config/rules.py`) takes effect only if
the user has granted it, in a file of their own outside the repository:

- in `trust.json` beside their settings, written by `proofstone trust`: for one repository, and for exactly the
  permissions that were shown;
- under `[trust]` in their settings: for every repository, or for those below a folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from proofstone.config.backends import SettingsModel
from proofstone.config.rules import (
    SETTING_RULES,
    ConsentRule,
    RequestedPermission,
    SettingValues,
    find_requested_permissions,
)
from proofstone.config.setting_docs import list_sections
from proofstone.config.settings import SandboxSettings, Settings
from proofstone.config.user import UserConfig, is_login_variable
from proofstone.errors import ConfigError

TRUST_FILE: Final = "trust.json"
_PASS_SETTINGS: Final = ("environment.pass", "gate.pass")
_VARIABLE_MEANING: Final = "checks and agents get this variable of your environment"
PERMISSION_MEANINGS: Final[Mapping[str, str]] = {
    "environment.include": "checks read these files of your work tree, which git ignores",
    "environment.setup": "these commands run in the sandbox, with network access",
    "environment.setup_scripts": "packages run install scripts when a change touches a manifest",
    "environment.pass": _VARIABLE_MEANING,
    "environment.network": "checks can access the network",
    "environment.sockets": "checks can access this service of your machine",
    "environment.dependencies": "checks read this folder outside the repository",
    "sandbox.level": "checks and agents run with a weaker sandbox, or none",
    "sandbox.memory_mb": "no limit on memory",
    "sandbox.disk_mb": "no limit on disk space",
    "sandbox.allow": "checks may use these system calls, which are otherwise refused",
    "sandbox.compare_bare": "tests of the base run once outside the sandbox",
    "gate.network": "executors can access the network",
    "gate.pass": "executors get this variable of your environment",
}
"""What each permission means for the user."""


class PermissionRecord(SettingsModel):
    """One permission that was granted."""

    setting: str
    value: str


class Grant(SettingsModel):
    """The permissions that the user granted to one repository at one time."""

    repository: str
    """The root of its main work tree."""
    digest: str
    """The digest of `needs`: a repository that requests anything else needs a new grant."""
    granted_at: str
    needs: tuple[PermissionRecord, ...]

    @property
    def permissions(self) -> frozenset[RequestedPermission]:
        return frozenset(RequestedPermission(need.setting, need.value) for need in self.needs)


class Grants(SettingsModel):
    """The content of `trust.json`."""

    grants: tuple[Grant, ...] = ()

    def for_repository(self, repository: Path) -> tuple[Grant, ...]:
        """Return the grants of one repository."""
        return tuple(grant for grant in self.grants if grant.repository == str(repository))


@dataclass(frozen=True)
class ConsentResult:
    """The permissions that one repository requests, and those of them that the user has not granted."""

    requested: tuple[RequestedPermission, ...]
    missing: tuple[RequestedPermission, ...]


def find_trust_file(person: UserConfig) -> Path:
    """Return the file with the grants, beside the user's own settings."""
    return person.file.with_name(TRUST_FILE)


def load_grants(file: Path, *, checked: bool = True) -> Grants:
    """Return the grants of a file, which need not exist. `checked` refuses a grant whose digest does not match."""
    try:
        content = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return Grants()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    try:
        grants = Grants.model_validate_json(content)
    except ValidationError as error:
        raise ConfigError(
            f"{file}: not a list of grants: {error.errors(include_url=False)[0]['msg']}",
            hint="move the file away and grant again with `proofstone trust`",
        ) from error
    for grant in grants.grants:
        if checked and grant.digest != compute_grant_digest(grant.permissions):
            raise ConfigError(
                f"{file}: the grant for {grant.repository} was edited: its digest does not match",
                hint=f"`proofstone trust --revoke {grant.repository}` removes it; `proofstone trust` grants again",
            )
    return grants


def compute_grant_digest(needs: Iterable[RequestedPermission]) -> str:
    """Return the digest that binds a grant to the permissions that were shown."""
    text = json.dumps(sorted([need.setting, need.value] for need in needs), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def flatten_settings(settings: Settings) -> SettingValues:
    """Return every setting by its dotted name, as plain values."""
    dumped = settings.model_dump(mode="json", by_alias=True)
    return {
        setting.name: dumped[section.name][setting.key] for section in list_sections() for setting in section.settings
    }


def format_value(value: object) -> str:
    """Return a value as in a settings file."""
    if isinstance(value, Mapping):
        inside = ", ".join(f"{key} = {format_value(part)}" for key, part in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    return json.dumps(value, ensure_ascii=False)


def list_requested_permissions(settings: Settings, root: Path) -> tuple[RequestedPermission, ...]:
    """Return the permissions that the settings of the repository at `root` request."""

    def is_outside(path: str) -> bool:
        return not (root / path).resolve().is_relative_to(root)

    default = SandboxSettings().level
    permissions = find_requested_permissions(
        flatten_settings(settings), default_level=default, written=format_value, is_outside=is_outside
    )
    return tuple(permissions)


def check_consent(
    needs: Sequence[RequestedPermission],
    person: UserConfig,
    grants: Sequence[Grant],
    *,
    repository: Path,
    present: Collection[str] | None = None,
) -> ConsentResult:
    """Return which of the requested permissions are missing.

    One grant must cover everything that the user's own settings do not. A variable that is not `present` in the
    environment reveals nothing now, so no consent is required for it; with None, consent is required for all variables.
    """
    trust = person.settings.trust
    if any(repository.is_relative_to(Path(folder).resolve()) for folder in trust.folders):
        return ConsentResult(tuple(needs), ())
    passed = {format_value(name) for name in trust.pass_through}
    unset = set() if present is None else {need for need in needs if _is_unset(need, present)}
    required = [
        need
        for need in needs
        if need not in unset
        and not (need.setting in _PASS_SETTINGS and need.value in passed)
        and not (trust.weaker_sandbox and need.setting.startswith("sandbox."))
    ]
    if any(grant.permissions.issuperset(required) for grant in grants):
        return ConsentResult(tuple(needs), ())
    return ConsentResult(tuple(needs), tuple(required))


def remove_permissions(settings: Settings, missing: Collection[RequestedPermission]) -> Settings:
    """Return the settings with the protective value in place of everything that was not granted."""
    defaults = Settings()
    changed: dict[str, dict[str, object]] = {}
    for name in dict.fromkeys(need.setting for need in missing):
        section, _, key = name.partition(".")
        field = "pass_through" if key == "pass" else key
        value = getattr(getattr(settings, section), field)
        refused = {need.value for need in missing if need.setting == name}
        new_value: object = getattr(getattr(defaults, section), field)
        if isinstance(value, tuple) and format_value(list(value)) not in refused:
            new_value = tuple(entry for entry in value if format_value(entry) not in refused)
        changed.setdefault(section, {})[field] = new_value
    updates = {section: getattr(settings, section).model_copy(update=fields) for section, fields in changed.items()}
    return settings.model_copy(update=updates)


def explain_permission(need: RequestedPermission, person: UserConfig) -> str:
    """Explain a permission to the user, with a note if a variable holds one of their keys."""
    meaning = PERMISSION_MEANINGS[need.setting]
    is_key = need.setting in _PASS_SETTINGS and _holds_key(json.loads(need.value), person)
    return f"{meaning}; it holds a key of yours" if is_key else meaning


def format_permissions(needs: Iterable[RequestedPermission], person: UserConfig) -> list[str]:
    """Return one line for each permission: the setting, and what it means."""
    rows = [(_format_setting(need), explain_permission(need, person)) for need in needs]
    width = min(40, max((len(setting) for setting, _ in rows), default=0))
    return [f"{setting:<{width}}  {meaning}" for setting, meaning in rows]


def _format_setting(need: RequestedPermission) -> str:
    is_list_entry = SETTING_RULES[need.setting].consent in (ConsentRule.EACH, ConsentRule.OUTSIDE)
    return f"{need.setting} = [{need.value}]" if is_list_entry else f"{need.setting} = {need.value}"


def _holds_key(variable: str, person: UserConfig) -> bool:
    key_variables = {provider.key_variable for provider in person.providers.values()}
    return variable in key_variables or variable in person.settings.web.key_variables or is_login_variable(variable)


def _is_unset(need: RequestedPermission, present: Collection[str]) -> bool:
    return need.setting in _PASS_SETTINGS and json.loads(need.value) not in present
