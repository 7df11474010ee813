"""The weaker levels promise less, keep what they promise, and say which they are."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from proofstone.sandbox.probe import try_sandboxes
from tests.check.hazards import walls
from tests.check.hazards.processes import bystander, greeting, tcp_service
from tests.needs import unavailable
from tests.workshop import CheckRun, Workshop

WEAKER = ("landlock", "plain")


@pytest.fixture(params=WEAKER)
def level(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    name: str = request.param
    if name == "landlock" and not try_sandboxes(tmp_path / "probe").landlock:
        unavailable("the kernel has no Landlock")
    return name


def checked(place: Workshop, level: str, script: str, *args: str, **variables: str) -> CheckRun:
    root = place.folder / "project"
    if not root.exists():
        place.trust_everything()
        place.repo({"proofstone.toml": f'[sandbox]\nlevel = "{level}"\n', "a.txt": "a\n"})
    place.write(root, {"attempt.py": script})
    return place.check(root, *args, "--verify", "python3 attempt.py", env=variables)


def attempted(place: Workshop, level: str, script: str, **variables: str) -> str:
    done = checked(place, level, script, **variables)
    assert done.check("verify").assurance == level, done.stderr
    assert done.report.assurance == level
    return done.output("verify")


def test_the_work_tree_and_git_are_beyond_a_check_that_looks_for_them_where_it_runs(
    real_place: Workshop, level: str
) -> None:
    attempted(
        real_place, level, "import pathlib\npathlib.Path('a.txt').write_text('x')\npathlib.Path('.git/x').touch()\n"
    )
    root = real_place.folder / "project"
    assert (root / "a.txt").read_text() == "a\n" and not (root / ".git" / "x").exists()


def test_landlock_keeps_writes_inside_and_plain_does_not_claim_to(real_place: Workshop, level: str) -> None:
    target = real_place.folder / "outside.txt"
    said = attempted(real_place, level, walls.write(str(target)))
    assert said.startswith("held" if level == "landlock" else "through")
    assert target.exists() is (level == "plain")


@pytest.mark.few(1)
def test_landlock_keeps_sockets_out_of_reach_and_plain_does_not_claim_to(real_place: Workshop, level: str) -> None:
    path = f"/tmp/{real_place.folder.name[-40:]}.s"
    expected = "held" if level == "landlock" else "through"
    try:
        with greeting(socket.AF_UNIX, path), tcp_service() as port:
            for script in (walls.connect_unix(path), walls.connect_tcp(port)):
                assert attempted(real_place, level, script).startswith(expected)
    finally:
        Path(path).unlink(missing_ok=True)


def test_secrets_in_the_environment_are_not_passed_on_at_any_level(real_place: Workshop, level: str) -> None:
    script = "import os\nprint(sorted(os.environ))\n"
    said = attempted(real_place, level, script, GITHUB_TOKEN="do-not-leak", AWS_SECRET_ACCESS_KEY="do-not-leak")
    assert "'PATH'" in said and "GITHUB_TOKEN" not in said and "AWS_SECRET_ACCESS_KEY" not in said


def test_home_is_an_empty_one_of_its_own(real_place: Workshop, level: str) -> None:
    real_place.write(real_place.home, {".ssh/id": "secret\n"})
    said = attempted(
        real_place, level, "import os\nprint(os.path.expanduser('~'), os.listdir(os.path.expanduser('~')))\n"
    )
    assert said.strip().endswith("[]") and str(real_place.home) not in said


def test_the_weaker_levels_do_not_keep_processes_of_the_machine_out_of_sight(real_place: Workshop, level: str) -> None:
    """Not promised, and so not hidden either: the report says which level it was."""
    with bystander() as process:
        assert attempted(real_place, level, walls.read(f"/proc/{process.pid}/cmdline")).startswith("through")


def test_a_required_sandbox_refuses_the_weaker_levels(real_place: Workshop, level: str) -> None:
    done = checked(real_place, level, "print('ran')\n", "--require-sandbox")
    assert done.exit == 2 and level in done.stderr
    assert "verify" not in done.stdout


@pytest.mark.few(1)
def test_python_tests_run_against_the_copy_at_the_weaker_levels(real_place: Workshop, level: str) -> None:
    real_place.trust_everything()
    root = real_place.repo(
        {
            "proofstone.toml": f'[sandbox]\nlevel = "{level}"\n',
            "src/thing.py": "def f():\n    return 1\n",
            "tests/test_thing.py": "import thing\n\ndef test_f():\n    assert thing.f() == 2\n",
            "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\n',
        }
    )
    real_place.write(root, {"src/thing.py": "def f():\n    return 2\n"})
    done = real_place.check(root, env={"PYTHONPATH": str(root / "src")})
    assert done.report.fixed == ("tests/test_thing.py::test_f",), (done.stderr, done.stdout)
    assert done.exit == 0


@pytest.mark.few(2)
@pytest.mark.parametrize("made", ["setsid sleep 987 &", "(setsid sleep 987 &) &", "nohup sleep 987 >/dev/null 2>&1 &"])
def test_no_process_stays_behind_at_the_weaker_levels(real_place: Workshop, level: str, made: str) -> None:
    real_place.trust_everything()
    root = real_place.repo({"proofstone.toml": f'[sandbox]\nlevel = "{level}"\n', "a.txt": "a\n"})
    real_place.write(root, {"a.txt": "b\n"})
    done = real_place.check(root, "--verify", f"{made} echo started && test -d .")
    assert done.output("verify").strip().endswith("started"), done.stderr
    assert not sleeping("987") and real_place.leftovers == []


def sleeping(seconds: str) -> list[str]:
    """Processes `sleep SECONDS`, wherever they are."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", seconds.encode()]:
            found.append(file.parent.name)
    return found
