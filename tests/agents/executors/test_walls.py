"""What an executor reaches besides its work tree, and what of the engine's stays in the work tree: nothing."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from proofstone.agents.executors.context import ShellCommand
from proofstone.sandbox.bubblewrap import BubblewrapSandbox
from tests.agents.executors.bench import Bench, write
from tests.check.hazards import walls
from tests.check.hazards.processes import greeting, tcp_service


def attempt(bench: Bench, script: str) -> str:
    (bench.work_tree / "attempt.py").write_text(script)
    bench.output.clear()
    bench.run("python3 attempt.py")
    return bench.printed()


def test_writes_outside_the_work_tree_fail(bench: Bench) -> None:
    target = bench.folder / "outside.txt"
    said = attempt(bench, walls.write(str(target)))
    # Below a temporary folder, where a clone may lie, it writes into one of its own: nothing of that is seen outside.
    is_private = any(target.is_relative_to(folder) for folder in ("/tmp", "/var/tmp"))
    assert said.startswith("held") or bench.sandbox.level == "plain" or is_private, said
    assert target.exists() is (bench.sandbox.level == "plain")


def test_the_persons_own_work_tree_is_out_of_reach(strong: Bench) -> None:
    """The work tree stands in its place."""
    strong.run(f"echo x > {strong.root}/a.txt; echo y > {strong.root}/y.txt")
    assert (strong.root / "a.txt").read_text() == "the person's own\n"
    assert not (strong.root / "y.txt").exists() and {"a.txt", "y.txt"} <= strong.files()


def test_what_it_writes_in_home_and_tmp_is_thrown_away(strong: Bench) -> None:
    name = f"left-{os.getpid()}"
    done = strong.run(f"echo x > ~/{name} && echo x > /tmp/{name} && echo x > /dev/shm/{name}")
    assert done.exit_code == 0, strong.printed()
    places = (strong.folder / "home", Path("/tmp"), Path("/dev/shm"))
    assert not any((folder / name).exists() for folder in places)


def test_proofstones_own_state_is_invisible(strong: Bench) -> None:
    assert attempt(strong, walls.read(str(strong.state / "ledger"))).startswith("held")
    strong.output.clear()
    strong.run(f"ls -A {strong.state}")
    assert strong.printed() == ""


def test_there_is_no_network_and_no_socket_of_the_machine(bench: Bench) -> None:
    expected = "through" if bench.sandbox.level == "plain" else "held"
    path = f"/tmp/{os.getpid()}-{bench.sandbox.level}.s"
    try:
        with greeting(socket.AF_UNIX, path), tcp_service() as port:
            for script in (walls.connect_tcp(port), walls.connect_unix(path)):
                assert attempt(bench, script).startswith(expected)
    finally:
        Path(path).unlink(missing_ok=True)


def test_edits_to_dependencies_are_thrown_away(layered: Bench) -> None:
    layered.run("cat .venv/lib/m.py; echo 'x = 2' > .venv/lib/m.py; touch .venv/new; cat .venv/lib/m.py; true")
    assert isinstance(layered.sandbox, BubblewrapSandbox)
    seen = "x = 1" if layered.sandbox.layers == "none" else "x = 2"
    assert layered.printed().splitlines()[0] == "x = 1" and layered.printed().splitlines()[-1] == seen
    assert (layered.root / ".venv/lib/m.py").read_text() == "x = 1\n" and not (layered.root / ".venv/new").exists()
    assert layered.files() == {"a.txt", "src/b.txt"}


def test_dependencies_are_there_and_leave_no_trace(bench: Bench) -> None:
    write(bench.root, {".env": "KEY=1\n", "deep/down/.env": "KEY=2\n"})
    bench.includes = (".env", "deep/down/.env")
    done = bench.run("cat .venv/lib/m.py .env deep/down/.env")
    assert done.exit_code == 0 and bench.printed() == "x = 1\nKEY=1\nKEY=2\n", bench.printed()
    assert bench.files() == {"a.txt", "src/b.txt"}
    assert (bench.root / ".venv/lib/m.py").exists()


def test_an_environment_that_the_work_tree_has_itself_stays(bench: Bench) -> None:
    write(bench.work_tree, {".venv/own.txt": "own\n", ".env": "own\n"})
    write(bench.root, {".env": "KEY=1\n"})
    bench.includes = (".env",)
    assert bench.run("true").exit_code == 0
    assert bench.files() == {"a.txt", "src/b.txt", ".venv/own.txt", ".env"}
    assert (bench.work_tree / ".env").read_text() == "own\n"


def test_a_link_that_a_killed_run_left_is_taken_away(bench: Bench) -> None:
    (bench.work_tree / ".venv").symlink_to(bench.root / ".venv")
    assert bench.run("cat .venv/lib/m.py").exit_code == 0, bench.printed()
    assert bench.files() == {"a.txt", "src/b.txt"}


def test_an_environment_that_it_makes_in_the_place_of_ours_is_not_part_of_its_work(plain: Bench) -> None:
    plain.run("rm .venv && mkdir .venv && touch .venv/mine")
    assert plain.files() == {"a.txt", "src/b.txt"} and (plain.root / ".venv/lib/m.py").exists()


def test_nothing_is_put_or_removed_through_a_link_that_an_earlier_attempt_made(plain: Bench) -> None:
    elsewhere = plain.folder / "elsewhere"
    elsewhere.mkdir()
    write(plain.root, {"deep/.env": "KEY=1\n"})
    plain.includes = ("deep/.env",)
    (plain.work_tree / "deep").symlink_to(elsewhere)
    assert plain.run("ls deep/").exit_code == 0
    assert plain.printed() == "" and list(elsewhere.iterdir()) == [] and (plain.work_tree / "deep").is_symlink()


def test_compiled_python_is_no_work_of_its(bench: Bench) -> None:
    write(bench.work_tree, {"src/m.py": "x = 1\n"})
    assert bench.run("cd src && python3 -c 'import m'").exit_code == 0, bench.printed()
    assert bench.files() == {"a.txt", "src/b.txt", "src/m.py"}


@pytest.mark.parametrize("made", ["packages", "packages/a"])
def test_folders_above_a_dependency_are_not_left_either(bench: Bench, made: str) -> None:
    write(bench.root, {"packages/a/node_modules/x.js": "1\n"})
    if made == "packages":
        (bench.work_tree / "packages").mkdir()
    view = replace(bench.view, dependencies=(bench.root / "packages/a/node_modules",))
    assert bench.site(view=view).run(ShellCommand("cat packages/a/node_modules/x.js")).exit_code == 0, bench.printed()
    assert bench.files() == {"a.txt", "src/b.txt"} | ({"packages"} if made == "packages" else set())
