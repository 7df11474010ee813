"""Where the state directory is."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofstone.config.home import find_proofstone_home


@pytest.mark.parametrize(
    ("environment", "home"),
    [
        ({"PROOFSTONE_HOME": "/a", "XDG_STATE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"XDG_STATE_HOME": "/b", "HOME": "/c"}, "/b/proofstone"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/c"}, "/c/.local/state/proofstone"),
        ({"PROOFSTONE_HOME": "", "XDG_STATE_HOME": "", "HOME": "/c"}, "/c/.local/state/proofstone"),
    ],
)
def test_the_first_that_is_set_decides(environment: dict[str, str], home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PROOFSTONE_HOME", "XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert find_proofstone_home() == Path(home)


def test_a_relative_home_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROOFSTONE_HOME", "state")
    assert find_proofstone_home() == tmp_path / "state"
