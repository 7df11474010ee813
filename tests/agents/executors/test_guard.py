"""Whatever runs with a login, together or one after another, to its end or not: what decides the next start of a
program is as the person had it, and what was changed is kept for them to look at."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from proofstone.agents.executors.context import SandboxedShell, ShellCommand
from proofstone.errors import MachineError
from proofstone.sandbox.job import PrivateHome
from proofstone.sandbox.login_guard import guard_logins
from tests.agents.executors.bench import Bench, write
from tests.waiting import wait_until

SETTINGS = {
    ".agent/login": "x\n",
    ".agent/settings.json": "{}\n",
    ".agent/hooks/stop.sh": "true\n",
    ".agent/deep/down/rules": "be kind\n",
}
KEPT = (".agent/settings.json", ".agent/local.json", ".agent/hooks", ".agent/plugins", ".agent/deep/down/rules")


@dataclass
class Login:
    """A person's, and the guards in Proofstone's state."""

    folder: Path
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        write(self.home, SETTINGS)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def agent(self) -> Path:
        return self.home / ".agent"

    @property
    def guards(self) -> Path:
        return self.folder / "state/guards"

    def own(self, number: int = 1, kept: tuple[str, ...] = KEPT) -> PrivateHome:
        fresh = self.folder / f"fresh-{number}"
        fresh.mkdir(exist_ok=True)
        return PrivateHome(fresh, ((self.agent, ".agent"),), tuple((self.home / path, path) for path in kept))

    def run(self, *, sealed: bool = False, kept: tuple[str, ...] = KEPT) -> ExitStack:
        """One that goes on until it is closed."""
        with ExitStack() as stack:
            stack.enter_context(guard_logins(self.own(kept=kept), self.guards, self.said.append, sealed=sealed))
            return stack.pop_all()

    def killed(self, command: str) -> None:
        """A run that does this in the folder, and is killed with the engine."""
        script = """
import os, signal, subprocess, sys
from pathlib import Path
from proofstone.sandbox.job import PrivateHome
from proofstone.sandbox.login_guard import guard_logins
agent, guards, command, *kept = sys.argv[1:]
kept_paths = tuple((Path(agent).parent / path, path) for path in kept)
own = PrivateHome(Path(agent).parent, ((Path(agent), ".agent"),), kept_paths)
with guard_logins(own, Path(guards), print, sealed=False):
    subprocess.run(command, shell=True, cwd=agent, check=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
        argv = [sys.executable, "-c", script, str(self.agent), str(self.guards), command, *KEPT]
        assert subprocess.run(argv, check=False).returncode == -signal.SIGKILL

    def content(self) -> dict[str, str]:
        """Of what is kept, and of the login."""
        found = {path.relative_to(self.home).as_posix(): path for path in self.home.rglob("*") if path.is_file()}
        wanted = (*KEPT, ".agent/login")
        return {
            name: path.read_text()
            for name, path in found.items()
            if any(Path(name).is_relative_to(one) for one in wanted)
        }

    def aside(self) -> dict[str, str]:
        top = self.guards.parent / "put-aside"
        found = [path for path in top.rglob("*") if path.is_file()]
        return {path.relative_to(top).as_posix().partition("/")[2]: path.read_text() for path in found}

    def do(self, command: str) -> None:
        subprocess.run(command, shell=True, cwd=self.agent, check=True)


@pytest.fixture
def login(tmp_path: Path) -> Login:
    return Login(tmp_path)


# What is done in the login folder → what of it is kept aside.
ORDERS = {
    "echo evil > settings.json": {".agent/settings.json": "evil\n"},
    "rm settings.json": {},
    "echo evil > local.json": {".agent/local.json": "evil\n"},
    "mkdir plugins; echo evil > plugins/p.js": {".agent/plugins/p.js": "evil\n"},
    "rm -r hooks; ln -s /tmp hooks": {},
    "rm -r deep; echo evil > deep": {".agent/deep": "evil\n"},
}


@pytest.mark.parametrize("order", ORDERS)
def test_what_a_killed_run_did_is_put_right_before_the_next_one_starts(login: Login, order: str) -> None:
    login.killed(order)
    assert login.content() != SETTINGS
    with login.run():
        assert login.content() == SETTINGS
        assert len(login.said) == 1 and login.said[0].startswith(f"restored: {login.agent}"), login.said
    assert login.content() == SETTINGS and login.aside() == ORDERS[order]
    assert len(login.said) == 1


def test_a_killed_run_that_changed_nothing_is_not_spoken_of(login: Login) -> None:
    login.killed("echo renewed > login")
    login.run().close()
    assert login.content() == SETTINGS | {".agent/login": "renewed\n"} and login.said == []


def test_what_the_person_changes_between_two_runs_is_theirs(login: Login) -> None:
    login.run().close()
    login.do("echo mine > settings.json; echo mine > local.json; rm -r hooks")
    before = login.content()
    login.run().close()
    assert login.content() == before and login.said == []


def test_nothing_is_left_of_a_picture_that_is_no_longer_needed(login: Login) -> None:
    login.run().close()
    assert {path.name for path in login.guards.rglob("*") if path.is_file()} == {"running", "door"}


@pytest.mark.parametrize("sealed", [False, True], ids=["watched", "sealed"])
@pytest.mark.parametrize("order", ORDERS)
def test_the_last_of_several_to_go_puts_things_right_whoever_it_is(login: Login, order: str, sealed: bool) -> None:
    first = login.run(sealed=sealed)
    login.do(order)
    second = login.run(sealed=sealed)
    first.close()
    assert login.said == [] and login.content() != SETTINGS
    third = login.run(sealed=sealed)
    second.close()
    third.close()
    assert login.content() == SETTINGS and len(login.said) == 1, login.said


def test_one_that_was_killed_beside_another_is_put_right_by_that_one(login: Login) -> None:
    with login.run():
        login.killed("echo evil > settings.json")
        login.run().close()
        assert login.said == []
    assert login.content() == SETTINGS and len(login.said) == 1


def test_each_adds_what_only_it_must_keep(login: Login) -> None:
    first = login.run(kept=KEPT[:1])
    second = login.run(kept=KEPT[1:])
    login.do("echo evil > settings.json; echo evil > local.json")
    second.close()
    first.close()
    assert login.content() == SETTINGS and len(login.said) == 2


def test_a_login_that_is_a_link_has_the_same_guard(login: Login) -> None:
    linked = login.folder / "elsewhere"
    linked.mkdir()
    (linked / ".agent").symlink_to(login.agent)
    other = PrivateHome(
        linked, ((linked / ".agent", ".agent"),), ((linked / ".agent/local.json", ".agent/local.json"),)
    )
    first = login.run()
    login.do("echo evil > local.json")
    with guard_logins(other, login.guards, login.said.append, sealed=False):
        first.close()
        assert login.said == []
    assert login.content() == SETTINGS and len(login.said) == 1


def test_the_line_says_where_what_was_there_is_now(login: Login) -> None:
    with login.run():
        login.do("echo evil > settings.json; rm -r hooks")
    changed, removed = login.said
    assert Path(changed.rpartition("the changed version is in ")[2]).read_text() == "evil\n"
    assert removed.endswith(
        f"{login.agent}/hooks, which decides what a program does when you start it, had been changed"
    )


def lose_copy_of(login: Login, content: str) -> None:
    """As a broken disk would."""
    (copy,) = [path for path in login.guards.rglob("copies/*") if path.is_file() and path.read_text() == content]
    copy.unlink()


def test_what_cannot_be_put_back_is_an_error_and_keeps_nothing_else_from_it(login: Login) -> None:
    run = login.run()
    login.do("echo evil > settings.json; echo evil > local.json; rm -r hooks")
    lose_copy_of(login, "{}\n")
    with pytest.raises(MachineError, match=r"cannot be restored: .*settings\.json") as caught:
        run.close()
    without = {name: content for name, content in SETTINGS.items() if name != ".agent/settings.json"}
    assert login.content() == without
    assert [line.partition(":")[0] for line in login.said] == ["cannot be restored", "restored", "restored"]
    with pytest.raises(MachineError, match=r"cannot be restored"):
        login.run()
    (guard,) = login.guards.iterdir()
    assert str(guard) in str(caught.value.hint)
    write(login.home, SETTINGS)
    shutil.rmtree(guard)
    login.run().close()
    assert login.content() == SETTINGS


def test_an_interruption_stays_one_and_the_trouble_is_told(login: Login) -> None:
    def interrupted() -> None:
        with login.run():
            login.do("rm settings.json")
            lose_copy_of(login, "{}\n")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(login.said) == 1 and login.said[0].startswith("cannot be restored: ")


@pytest.mark.parametrize("written", ["", "[]", "{", '{"ends": {"a": {"no": 1}}, "modes": {}}'])
def test_a_picture_that_cannot_be_read_starts_nothing(login: Login, written: str) -> None:
    login.killed("echo evil > settings.json")
    (picture,) = login.guards.glob("*/picture.json")
    picture.write_text(written)
    with pytest.raises(MachineError, match="is not a valid record") as caught:
        login.run()
    assert str(picture.parent) in str(caught.value.hint)


# Something large that is read-only has no copy.


def enlarge(login: Login) -> Path:
    large = login.agent / "plugins/large"
    large.parent.mkdir()
    with large.open("wb") as file:
        file.truncate(17 << 20)
    return large


def test_something_large_that_nobody_could_write_is_looked_at_all_the_same(login: Login) -> None:
    large = enlarge(login)
    with login.run(sealed=True):
        assert not [path for path in login.guards.rglob("copies/*") if path.is_dir() and (path / "large").exists()]
        large.write_text("evil\n")
    assert login.said == [
        f"check {login.agent}/plugins, which decides what a program does when you start it, before you do: it has "
        "been changed, and there is no copy of the original"
    ]
    login.run(sealed=True).close()
    assert len(login.said) == 1


def test_it_has_a_copy_as_soon_as_there_is_somebody_who_could(login: Login) -> None:
    large = enlarge(login)
    with login.run(sealed=True), login.run(sealed=False):
        large.write_text("evil\n")
    assert large.stat().st_size == 17 << 20 and len(login.said) == 1


def test_what_has_become_of_it_by_then_is_not_taken_for_it(login: Login) -> None:
    large = enlarge(login)
    with login.run(sealed=True):
        shutil.rmtree(large.parent)
        login.do("ln -s /tmp plugins")
        login.run(sealed=False).close()
    assert len(login.said) == 1 and login.said[0].startswith(f"check {login.agent}/plugins")


def test_a_pipe_is_neither_read_nor_spoken_of(login: Login) -> None:
    os.mkfifo(login.agent / "local.json")
    login.run().close()
    assert (login.agent / "local.json").is_fifo() and login.said == []


def test_no_mode_is_set_through_a_link(login: Login) -> None:
    private = login.folder / "private"
    private.mkdir(mode=0o700)
    (login.agent / "deep").chmod(0o755)
    with login.run():
        login.do(f"rm -r deep; ln -s {private} deep")
    assert private.stat().st_mode & 0o777 == 0o700
    assert login.content() == SETTINGS and (login.agent / "deep").stat().st_mode & 0o777 == 0o755


# In the sandbox.


def shell_of(bench: Bench) -> SandboxedShell:
    shell = bench.site().run
    assert isinstance(shell, SandboxedShell)
    return replace(shell, guards=bench.state / "guards")


WAITS = "while ! test -e ~/.agent/{0}; do sleep 0.02; done"

# What the second does while the first, who plants something, has gone.
SECONDS = {"it does nothing": "true", "it plants something too": "echo evil > ~/.agent/local.json || true"}


@pytest.mark.parametrize("second", SECONDS)
def test_of_two_who_share_a_login_none_plants_anything(bench: Bench, second: str) -> None:
    login, shell = Login(bench.folder), shell_of(bench)

    def start(number: int, command: str) -> threading.Thread:
        job = ShellCommand(command, home=login.own(number), say=login.said.append)
        thread = threading.Thread(target=shell, args=(job,))
        thread.start()
        return thread

    plant = "echo evil > ~/.agent/local.json; mkdir -p ~/.agent/plugins; touch ~/.agent/planted;"
    first = start(1, f"{plant} {WAITS.format('joined')}")
    wait_until((login.agent / "planted").exists)
    other = start(2, f"touch ~/.agent/joined; {WAITS.format('gone')}; {SECONDS[second]}")
    first.join()
    (login.agent / "gone").touch()
    other.join()
    assert (login.agent / "joined").exists()
    assert login.content() == SETTINGS and not (login.agent / "plugins").exists()
    assert len(login.said) == 2 and login.aside() == {".agent/local.json": "evil\n"}


def test_what_is_read_only_is_not_changed_by_its_other_name_either(bench: Bench) -> None:
    """A store of files that the person's program has linked into its plug-ins."""
    login = Login(bench.folder)
    (login.agent / "store").hardlink_to(login.agent / "settings.json")
    shell_of(bench)(ShellCommand("echo evil > ~/.agent/store", home=login.own(), say=login.said.append))
    assert login.content() == SETTINGS and len(login.said) == 1
