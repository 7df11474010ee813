"""Good configurations become settings; bad ones are refused with file, line, key and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofstone.config.loader import find_settings_file, load_settings, load_settings_files, load_settings_text
from proofstone.config.settings import Settings
from proofstone.errors import ConfigError
from tests.rows import each_row

BAD: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "unknown key": (
        '[check]\nbse = "main"\n',
        "proofstone.toml:2: check.bse: ",
        ("no such setting", "did you mean check.base?"),
    ),
    "unknown section": ("\n\n[chek]\n", "proofstone.toml:3: chek: ", ("did you mean check?",)),
    "key outside its section": (
        "max_file_kb = 5\n",
        "proofstone.toml:1: max_file_kb: ",
        ("did you mean check.max_file_kb?",),
    ),
    "key in another's section": (
        "[limits]\nslots = 1\nflaky_reruns = 2\n",
        "proofstone.toml:3: limits.flaky_reruns: ",
        ("did you mean check.flaky_reruns?",),
    ),
    "key like nothing there is": (
        "[tests]\nzzzz = 1\n",
        "proofstone.toml:2: tests.zzzz: ",
        ("there are tests.needs_service, tests.allow_flaky",),
    ),
    "the model's own name for an alias": (
        '[environment]\npass_through = ["HOME"]\n',
        "proofstone.toml:2: environment.pass_through: ",
        ("no such setting", "environment.pass"),
    ),
    "section that is no table": ("check = 3\n", "proofstone.toml:1: check: ", ("3 is not a table", "[check]")),
    "above the range": (
        "[check]\n# why\n\nflaky_reruns = 11\n",
        "proofstone.toml:4: check.flaky_reruns: ",
        ("11 is not valid", "a whole number from 0 to 10"),
    ),
    "below the range": (
        "[sandbox]\nprocesses = 15\n",
        "proofstone.toml:2: sandbox.processes: ",
        ("15 is not valid", "from 16 to"),
    ),
    "text for a number": (
        '[limits]\ncheck_seconds = "900"\n',
        "proofstone.toml:2: limits.check_seconds: ",
        ("'900' is not valid", "a whole number from 1 to 86400"),
    ),
    "fraction for a number": (
        "[limits]\nslots = 2.0\n",
        "proofstone.toml:2: limits.slots: ",
        ("2.0 is not valid", "a whole number from 0 to 256"),
    ),
    "truth for a number": (
        "[check]\nmax_file_kb = true\n",
        "proofstone.toml:2: check.max_file_kb: ",
        ("true is not valid", "a whole number"),
    ),
    "number for truth": (
        "[environment]\nnetwork = 1\n",
        "proofstone.toml:2: environment.network: ",
        ("1 is not valid", "true or false"),
    ),
    "text for a list": (
        '[check]\nverify = "make test"\n',
        "proofstone.toml:2: check.verify: ",
        ("'make test' is not valid", "a list, each entry a command line"),
    ),
    "date for a text": (
        "[check]\nbase = 2024-01-01\n",
        "proofstone.toml:2: check.base: ",
        ("is not valid", "a git revision"),
    ),
    "not one of the choices": (
        '[sandbox]\nlevel = "none"\n',
        "proofstone.toml:2: sandbox.level: ",
        ('"auto", "bubblewrap", "landlock", "plain"',),
    ),
    "one entry of a list over several lines": (
        '[environment]\nsockets = [\n  "/run/a",  # [1]\n\n  "run/b",\n]\n',
        "proofstone.toml:5: environment.sockets: ",
        ("'run/b' is not valid", "an absolute path"),
    ),
    "last entry of a list over several lines": (
        '[check]\nverify = [\n  "make",\n  ""]\n',
        "proofstone.toml:4: check.verify: ",
        ("'' is not valid",),
    ),
    "include that leaves the repository": (
        '[environment]\ninclude = ["a/../../b"]\n',
        "proofstone.toml:2: environment.include: ",
        ("without `..`",),
    ),
    "include that is absolute": ('[environment]\ninclude = ["/etc/passwd"]\n', "proofstone.toml:2: ", ("root",)),
    "blank command": ('[environment]\nsetup = [" "]\n', "proofstone.toml:2: environment.setup: ", ("a command line",)),
    "revision that git would take for an option": (
        '[check]\nbase = "--output=x"\n',
        "proofstone.toml:2: check.base: ",
        ("a git revision",),
    ),
    "name of no variable": (
        '[environment]\npass = ["A-B"]\n',
        "proofstone.toml:2: environment.pass: ",
        ("the name of an environment variable",),
    ),
    "value that is no text": (
        "[environment.set]\nTZ = 3\n",
        "proofstone.toml:2: environment.set.TZ: ",
        ("3 is not valid", 'such as { TZ = "UTC" }'),
    ),
    "variable that cannot be named so": (
        '[environment]\nset = { "A B" = "x" }\n',
        "proofstone.toml:2: environment.set.A B: ",
        ("'A B' is not valid",),
    ),
    "variable both passed and set": (
        '[environment]\npass = ["TZ"]\nset = { TZ = "UTC" }\n',
        "proofstone.toml:1: environment: ",
        ("TZ is in both `pass` and `set`; keep one",),
    ),
    "weaker level required": (
        '[sandbox]\nrequire = true\nlevel = "plain"\n',
        "proofstone.toml:1: sandbox: ",
        ("`require = true`", "drop one"),
    ),
    "no TOML": ("[check]\nbase = \n", "proofstone.toml:2: ", ("not valid TOML",)),
    "TOML that ends too early": ("[check]\nverify = [\n", "proofstone.toml:2: ", ("not valid TOML", "end of the file")),
    "a number of thousands of digits": (f"x = {'9' * 5000}\n", "proofstone.toml: ", ("cannot be read", "digits")),
    "brackets thousands deep": (f"x = {'[' * 5000}\n", "proofstone.toml: ", ("cannot be read",)),
    "the same key twice": ('[check]\nbase = "a"\nbase = "b"\n', "proofstone.toml:3: ", ("not valid TOML",)),
}


@each_row(("text", "start", "says"), BAD.values())
def test_a_bad_configuration_is_refused_with_file_line_key_and_what_is_right(
    text: str, start: str, says: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings_text(text, "proofstone.toml")
    assert caught.value.message.startswith(start)
    for phrase in says:
        assert phrase in caught.value.message
    assert caught.value.exit_code == 2


def test_every_problem_is_listed_not_only_the_first() -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings_text("[limits]\nslots = -1\noutput_mb = 0\n", "proofstone.toml")
    first, second = caught.value.message.splitlines()
    assert first.startswith("proofstone.toml:2: limits.slots:") or second.startswith("proofstone.toml:2: limits.slots:")
    assert first.startswith("proofstone.toml:3: limits.output_mb:") or second.startswith(
        "proofstone.toml:3: limits.output_mb:"
    )


def test_in_pyproject_only_our_table_is_read_and_lines_are_the_files_own() -> None:
    text = '[tool.other]\nbse = 1\n\n[tool.proofstone.check]\nbase = "main"\nbse = 2\n'
    with pytest.raises(ConfigError, match=r"^pyproject\.toml:6: tool\.proofstone\.check\.bse: .*check\.base\?"):
        load_settings_text(text, "pyproject.toml")


def test_a_good_configuration_is_taken_as_it_stands() -> None:
    settings = load_settings_text(
        '[check]\nbase = "main"\nverify = ["make smoke"]\n'
        '[environment]\npass = ["CI"]\nset = { TZ = "UTC" }\ninclude = [".env.test", "certs/*.pem", "..hidden"]\n'
        "[limits]\ncheck_seconds = 86400\n",
        "proofstone.toml",
    )
    assert settings.check.base == "main"
    assert settings.check.verify == ("make smoke",)
    assert settings.environment.pass_through == ("CI",)
    assert settings.environment.set == {"TZ": "UTC"}
    assert settings.environment.include == (".env.test", "certs/*.pem", "..hidden")
    assert settings.limits.check_seconds == 86400
    assert settings.sandbox == Settings().sandbox


def test_a_repository_without_configuration_has_the_defaults(tmp_path: Path) -> None:
    assert load_settings(tmp_path) == Settings()
    assert find_settings_file(tmp_path) is None


def test_a_pyproject_that_says_nothing_to_us_is_not_even_parsed(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[broken\n")
    assert load_settings(tmp_path) == Settings()


@pytest.mark.parametrize("text", ["[tool.other]\nname = 'proofstone'\n", "[tool.proofstone]\n"])
def test_a_pyproject_without_settings_of_ours_stands_beside_proofstone_toml(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    (tmp_path / "proofstone.toml").write_text("[limits]\nslots = 3\n")
    assert load_settings(tmp_path).limits.slots == 3
    assert find_settings_file(tmp_path) == "proofstone.toml"


def test_settings_in_both_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname='x'\n[tool.proofstone.limits]\nslots = 1\n")
    (tmp_path / "proofstone.toml").write_text("[limits]\nslots = 3\n")
    with pytest.raises(ConfigError, match=r"^pyproject\.toml:3: .*also a proofstone\.toml; keep one"):
        load_settings(tmp_path)


def test_settings_are_read_from_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.proofstone.limits]\nslots = 7\n")
    assert load_settings(tmp_path).limits.slots == 7
    assert find_settings_file(tmp_path) == "pyproject.toml"


def test_tool_proofstone_that_is_no_table_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^pyproject\.toml:2: tool\.proofstone: 3 is not a table"):
        load_settings_text("[tool]\nproofstone = 3\n", "pyproject.toml")


def test_bytes_that_are_not_utf8_are_refused_with_their_line() -> None:
    with pytest.raises(ConfigError, match=r"^proofstone\.toml:2: byte 0xff is not UTF-8"):
        load_settings_files({"proofstone.toml": b"# ok\n# \xff\n"})


def test_a_byte_order_mark_and_windows_line_ends_are_no_problem() -> None:
    assert load_settings_files({"proofstone.toml": b"\xef\xbb\xbf[limits]\r\nslots = 2\r\n"}).limits.slots == 2


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "proofstone.toml").mkdir()
    with pytest.raises(ConfigError, match=r"proofstone\.toml: cannot be read: Is a directory"):
        load_settings(tmp_path)
