"""Compares Proofstone's own settings before and after a change: a weaker one is a finding that a person must accept.

The base's settings decide how the change itself is checked. Once the change is committed its own settings decide how
the next one is, so what it weakens has to be seen now.
"""

from __future__ import annotations

from proofstone.adapters.git.blobs import file_at
from proofstone.adapters.git.program import Git
from proofstone.adapters.git.snapshot import Snapshot
from proofstone.config import FILES, Settings, load_files
from proofstone.config.lines import line_of
from proofstone.config.reading import PYPROJECT, chosen_file
from proofstone.config.trust import setting_values, written_value
from proofstone.contracts.finding import Finding
from proofstone.contracts.verdict import Severity
from proofstone.core.setting_strength import weakened_findings, weakened_settings
from proofstone.errors import ConfigError


def settings_findings(git: Git, snapshot: Snapshot) -> list[Finding]:
    """Return a finding for each setting that the change weakens."""
    touched = [path.path for path in snapshot.change.paths if path.path in FILES]
    if not touched:
        return []
    after = _settings_files(git, snapshot.tree)
    try:
        new = load_files(after)
        name = chosen_file(after) or touched[0]
    except ConfigError as error:
        return [_unreadable(touched[0], error.message)]
    try:
        old = load_files(_settings_files(git, snapshot.base))
    except ConfigError:
        old = Settings()  # the base's settings cannot be read, so only the defaults could be in force
    text = after.get(name, b"").decode("utf-8", "replace")
    prefix = ("tool", "proofstone") if name == PYPROJECT else ()
    return weakened_findings(
        weakened_settings(setting_values(old), setting_values(new)),
        name,
        line_of=lambda setting: line_of(text, (*prefix, *setting.split(".", 1))),
        written=written_value,
    )


def _settings_files(git: Git, tree: str) -> dict[str, bytes]:
    return {name: content for name in FILES if (content := file_at(git, tree, name)) is not None}


def _unreadable(path: str, why: str) -> Finding:
    return Finding(
        layer="settings",
        rule="unreadable-settings",
        severity=Severity.MAJOR,
        path=path,
        detail=f"Proofstone's settings cannot be read as the change leaves them: {why}",
        fix="mend the file: every later check would be refused",
    )
