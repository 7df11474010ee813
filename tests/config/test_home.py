"""Where the state directory is."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.config import assay_home


@pytest.mark.parametrize(
    ("environment", "home"),
    [
        ({"ASSAY_HOME": "/a", "XDG_STATE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"XDG_STATE_HOME": "/b", "HOME": "/c"}, "/b/assay"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/c"}, "/c/.local/state/assay"),
        ({"ASSAY_HOME": "", "XDG_STATE_HOME": "", "HOME": "/c"}, "/c/.local/state/assay"),
    ],
)
def test_the_first_that_is_set_decides(environment: dict[str, str], home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ASSAY_HOME", "XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert assay_home() == Path(home)


def test_a_relative_home_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASSAY_HOME", "state")
    assert assay_home() == tmp_path / "state"
