"""Consent: what a repository's settings may take from the person's protection, and who granted it.

A repository's settings come with a clone, so they can be anybody's. What they ask for beyond the defaults (a weaker
sandbox, the network, variables, files and sockets of the machine: `core/setting_strength.py`) takes effect only if the
person granted it, in a file of their own outside the repository:

- in `trust.json` beside their settings, written by `proofstone trust`: for one repository, and for exactly what was
shown;
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

from proofstone.config.backends import Component
from proofstone.config.person import Person, is_login
from proofstone.config.rules import ROWS, Need, Values, protection_needs
from proofstone.config.rules import Consent as SettingConsent
from proofstone.config.settings import SandboxSettings, Settings
from proofstone.config.wording import sections
from proofstone.errors import ConfigError

TRUST_FILE: Final = "trust.json"
_PASSED: Final = ("environment.pass", "gate.pass")
_CHECKS_GET: Final = "checks and agents get this variable of your environment"
MEANINGS: Final[Mapping[str, str]] = {
    "environment.include": "checks read these files of your work tree, which git ignores",
    "environment.setup": "these commands run with network, in the sandbox",
    "environment.setup_scripts": "packages run install scripts when a change touches a manifest",
    "environment.pass": _CHECKS_GET,
    "environment.network": "checks reach the network",
    "environment.sockets": "checks reach this service of your machine",
    "environment.dependencies": "checks read this folder outside the repository",
    "sandbox.level": "checks and agents run with a weaker sandbox, or none",
    "sandbox.memory_mb": "no limit on memory",
    "sandbox.disk_mb": "no limit on what is written to disk",
    "sandbox.allow": "checks may use these system calls, which are refused otherwise",
    "sandbox.compare_bare": "tests of the base run once outside the sandbox",
    "gate.network": "executors reach the network",
    "gate.pass": "executors get this variable of your environment",
}
"""What each thing that a repository may ask for means to the person."""


class NeedRecord(Component):
    """One thing that was granted."""

    setting: str
    value: str


class Grant(Component):
    """What the person granted to one repository, once."""

    repository: str
    """The root of its main work tree."""
    digest: str
    """Of `needs`: a repository that asks for anything else asks anew."""
    granted_at: str
    needs: tuple[NeedRecord, ...]

    @property
    def covered(self) -> frozenset[Need]:
        return frozenset(Need(need.setting, need.value) for need in self.needs)


class Grants(Component):
    """The content of `trust.json`."""

    grants: tuple[Grant, ...] = ()

    def of(self, repository: Path) -> tuple[Grant, ...]:
        return tuple(grant for grant in self.grants if grant.repository == str(repository))


@dataclass(frozen=True)
class Consent:
    """What one repository asks for, and what of it the person has not granted."""

    needs: tuple[Need, ...]
    missing: tuple[Need, ...]


def trust_file(person: Person) -> Path:
    """Return where grants are kept: beside the person's own settings."""
    return person.file.with_name(TRUST_FILE)


def load_grants(file: Path, *, checked: bool = True) -> Grants:
    """Return the grants of a file, which need not exist. `checked`: one whose digest is not its own is refused."""
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
            hint="move the file away and grant anew with `proofstone trust`",
        ) from error
    for grant in grants.grants:
        if checked and grant.digest != digest_of(grant.covered):
            raise ConfigError(
                f"{file}: the grant for {grant.repository} was edited: its digest is of other settings",
                hint=f"`proofstone trust --revoke {grant.repository}` removes it; `proofstone trust` grants anew",
            )
    return grants


def digest_of(needs: Iterable[Need]) -> str:
    """Return the digest that binds a grant to what was shown."""
    listed = json.dumps(sorted([need.setting, need.value] for need in needs), ensure_ascii=True)
    return hashlib.sha256(listed.encode("ascii")).hexdigest()


def setting_values(settings: Settings) -> Values:
    """Return every setting by its dotted name, as plain values."""
    dumped = settings.model_dump(mode="json", by_alias=True)
    return {setting.name: dumped[section.name][setting.key] for section in sections() for setting in section.settings}


def written_value(value: object) -> str:
    """Return a value as a settings file would write it."""
    if isinstance(value, Mapping):
        inside = ", ".join(f"{key} = {written_value(part)}" for key, part in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    return json.dumps(value, ensure_ascii=False)


def needs_of(settings: Settings, root: Path) -> tuple[Need, ...]:
    """Return what the settings of the repository at `root` ask for that needs consent."""

    def is_outside(path: str) -> bool:
        return not (root / path).resolve().is_relative_to(root)

    default = SandboxSettings().level
    found = protection_needs(
        setting_values(settings), default_level=default, written=written_value, is_outside=is_outside
    )
    return tuple(found)


def consent(
    needs: Sequence[Need],
    person: Person,
    grants: Sequence[Grant],
    *,
    repository: Path,
    present: Collection[str] | None = None,
) -> Consent:
    """Return what is granted of `needs`. One grant must cover all that the person's own settings do not. A variable
    that is not `present` in the environment gives nothing away now, so nobody is asked for it; None asks for all."""
    trust = person.settings.trust
    if any(repository.is_relative_to(Path(folder).resolve()) for folder in trust.folders):
        return Consent(tuple(needs), ())
    passed = {written_value(name) for name in trust.pass_through}
    unset = set() if present is None else {need for need in needs if _is_unset(need, present)}
    asked = [
        need
        for need in needs
        if need not in unset
        and not (need.setting in _PASSED and need.value in passed)
        and not (trust.weaker_sandbox and need.setting.startswith("sandbox."))
    ]
    if any(grant.covered.issuperset(asked) for grant in grants):
        return Consent(tuple(needs), ())
    return Consent(tuple(needs), tuple(asked))


def without_needs(settings: Settings, missing: Collection[Need]) -> Settings:
    """Return the settings with the protective value in the place of everything that was not granted."""
    defaults = Settings()
    changed: dict[str, dict[str, object]] = {}
    for name in dict.fromkeys(need.setting for need in missing):
        section, _, key = name.partition(".")
        field = "pass_through" if key == "pass" else key
        value = getattr(getattr(settings, section), field)
        refused = {need.value for need in missing if need.setting == name}
        kept: object = getattr(getattr(defaults, section), field)
        if isinstance(value, tuple) and written_value(list(value)) not in refused:
            kept = tuple(entry for entry in value if written_value(entry) not in refused)
        changed.setdefault(section, {})[field] = kept
    updates = {section: getattr(settings, section).model_copy(update=fields) for section, fields in changed.items()}
    return settings.model_copy(update=updates)


def meaning_of(need: Need, person: Person) -> str:
    """Return what a need means to the person; a variable that holds one of their keys is named as such."""
    meaning = MEANINGS[need.setting]
    is_key = need.setting in _PASSED and _holds_key(json.loads(need.value), person)
    return f"{meaning}; it holds a key of yours" if is_key else meaning


def need_lines(needs: Iterable[Need], person: Person) -> list[str]:
    """Return one line for each need: what is asked for, and what it means."""
    rows = [(_asked(need), meaning_of(need, person)) for need in needs]
    width = min(40, max((len(asked) for asked, _ in rows), default=0))
    return [f"{asked:<{width}}  {meaning}" for asked, meaning in rows]


def _asked(need: Need) -> str:
    listed = ROWS[need.setting].consent in (SettingConsent.EACH, SettingConsent.OUTSIDE)
    return f"{need.setting} = [{need.value}]" if listed else f"{need.setting} = {need.value}"


def _holds_key(variable: str, person: Person) -> bool:
    named = {provider.key_variable for provider in person.providers.values()}
    return variable in named or variable in person.settings.web.keys or is_login(variable)


def _is_unset(need: Need, present: Collection[str]) -> bool:
    return need.setting in _PASSED and json.loads(need.value) not in present
