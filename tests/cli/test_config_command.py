"""`proofstone config` shows what is in force."""

from __future__ import annotations

import json
from pathlib import Path

from proofstone.config.settings import Settings
from tests.workshop import proofstone


def test_each_value_says_where_it_comes_from(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.proofstone]\nlimits.slots = 0\nenvironment.pass = ["CI"]\n')
    done = proofstone("config", "show", "--json", home=tmp_path / "home", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["file"] == "pyproject.toml"
    settings = document["settings"]
    assert settings["limits.slots"] == {"value": 0, "from": "pyproject.toml"}  # stated, though it is the default
    assert settings["environment.pass"] == {"value": ["CI"], "from": "pyproject.toml"}
    assert settings["environment.network"] == {"value": False, "from": "default"}
    fields = [model for _, model in Settings()]
    assert len(settings) == sum(len(type(model).model_fields) for model in fields)


def test_the_page_for_people_marks_what_is_not_default(tmp_path: Path) -> None:
    (tmp_path / "proofstone.toml").write_text('[environment.set]\nTZ = "UTC"\n')
    done = proofstone("config", "show", "--no-color", home=tmp_path / "home", cwd=tmp_path)
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines()[1:])
    assert lines["environment.set"] == '{ TZ = "UTC" }  (proofstone.toml)'
    assert lines["check.base"] == '""'


def test_a_value_cannot_drive_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "proofstone.toml").write_text('[check]\nverify = ["a\\u001b[2Jb [bold]x"]\n')
    done = proofstone("config", "show", home=tmp_path / "home", cwd=tmp_path)
    assert "\x1b" not in done.stdout
    assert "[bold]x" in done.stdout


def test_any_directory_inside_the_repository_will_do(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "proofstone.toml").write_text("[limits]\nslots = 5\n")
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    done = proofstone("config", "show", "--json", "--repo", str(inside), home=tmp_path / "home")
    assert json.loads(done.stdout)["settings"]["limits.slots"]["value"] == 5


def test_the_schema_that_is_printed_is_the_models(tmp_path: Path) -> None:
    done = proofstone("config", "schema", home=tmp_path / "home")
    assert json.loads(done.stdout) == Settings.model_json_schema()
