"""What a coding agent's program is given by the sandbox: a dialogue, a HOME of its own with its login in it, and a
network that leads to its model alone."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from proofstone.agents.backends.programs.acp.backend import AcpBackend
from proofstone.agents.backends.programs.discovery import InstalledProgram
from proofstone.agents.executors.context import SandboxedShell, ShellCommand
from proofstone.agents.executors.programs import find_failed_outcome
from proofstone.agents.models import Turn
from proofstone.config.user import ProgramSettings
from proofstone.errors import InputError
from proofstone.sandbox.job import PrivateHome, SandboxResult
from proofstone.sandbox.limits import CGROUP_MOUNT, create_control_group
from tests.agents.backends.conversations import talk
from tests.agents.executors.bench import Bench, write
from tests.check.hazards.processes import running
from tests.check.hazards.test_processes import odd_number
from tests.needs import unavailable
from tests.sandbox.test_gateway import BIG, echo, http, server


def run(bench: Bench, job: ShellCommand) -> SandboxResult:
    """With what the shell says in `bench.said`, and the hosts that it refuses in `bench.heard`."""
    bench.output.clear()
    shell = bench.site().run
    assert isinstance(shell, SandboxedShell)
    return shell(replace(job, say=bench.said.append, on_refused=bench.heard.append))


def printed(bench: Bench, job: ShellCommand) -> str:
    assert run(bench, job).exit_code == 0, bench.printed()
    return bench.printed()


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    """Its end to read from, and its end to write to."""
    reading, writing = os.pipe()
    try:
        yield reading, writing
    finally:
        os.close(reading)
        os.close(writing)


# Its standard input.


def test_what_is_written_to_it_while_it_runs_is_answered(bench: Bench) -> None:
    said = bytearray()
    turns = [b"one\n", b"two\n", b"bye\n"]

    with pipe() as (reading, writing):

        def answer(data: bytes) -> None:
            said.extend(data)
            if data.endswith(b"\n"):
                os.write(writing, turns.pop(0))

        talk = 'echo ready; while read -r line; do echo "heard $line"; test "$line" = bye && exit 7; done'
        done = run(
            bench,
            ShellCommand(talk, stdin=reading, on_output=lambda data: answer(data) if turns else said.extend(data)),
        )
    assert done.exit_code == 7 and said == b"ready\nheard one\nheard two\nheard bye\n"


def test_without_an_input_there_is_nothing_to_read(bench: Bench) -> None:
    assert printed(bench, ShellCommand("cat; echo end")) == "end\n"


@pytest.mark.parametrize("silenced", ["", "exec >/dev/null 2>&1;"], ids=["talking", "with its output closed"])
def test_enough_ends_it_and_its_orphans(bench: Bench, silenced: str) -> None:
    nap, enough = odd_number(), threading.Event()
    with pipe() as (reading, _):
        command = f"(setsid sleep {nap} & setsid sleep {nap} &); echo there; {silenced} cat"
        done = run(bench, ShellCommand(command, stdin=reading, stop_event=enough, on_output=lambda _: enough.set()))
    assert done == SandboxResult(None, done.duration_ms, was_stopped=True)
    assert find_failed_outcome(done) is None
    assert running("sleep", nap) == []


# What is to end it → how it ended.
ENDS: dict[str, Callable[[SandboxResult], bool]] = {
    "deadline": lambda done: done.timed_out and not done.limit,
    "silence": lambda done: done.timed_out and "without any output" in done.limit,
    "cancel": lambda done: done.cancelled,
}


@pytest.mark.parametrize("what", ENDS)
def test_an_open_input_keeps_nothing_from_ending_it(bench: Bench, what: str) -> None:
    nap, enough = odd_number(), threading.Event()
    if what == "silence":
        bench.limits = replace(bench.limits, idle_seconds=0.3)
    if what == "cancel":
        threading.Timer(0.3, bench.cancel.set).start()
    with pipe() as (reading, _):
        seconds = 0.5 if what == "deadline" else 60
        done = run(bench, ShellCommand(f"sleep {nap} & cat", seconds, stdin=reading, stop_event=enough))
    assert ENDS[what](done) and not done.was_stopped and done.exit_code is None, done
    assert running("sleep", nap) == []


# Its HOME.


def home_of(bench: Bench, *shared: str, kept: tuple[str, ...] = ()) -> PrivateHome:
    """A fresh one, with these of the person's."""
    folder = bench.folder / "fresh"
    folder.mkdir(exist_ok=True)
    real = bench.folder / "home"
    return PrivateHome(
        folder, tuple((real / path, path) for path in shared), tuple((real / path, path) for path in kept)
    )


def test_home_is_fresh_and_keeps_what_is_written_there(bench: Bench) -> None:
    write(bench.folder / "home", {".bashrc": "x", ".config/tool/a": "x"})
    own = home_of(bench)
    assert printed(bench, ShellCommand("ls -A ~; echo mine > ~/kept.txt; cat ~/kept.txt", home=own)) == "mine\n"
    assert (own.folder / "kept.txt").read_text() == "mine\n"
    assert not (bench.folder / "home" / "kept.txt").exists()


def test_of_the_persons_home_it_sees_what_projects_are_built_with(strong: Bench) -> None:
    real = strong.folder / "home"
    write(real, {".bash_history": "x", ".config/browser/cookies": "x", ".cargo/bin/cargo": "x", ".m2/a/b": "x"})
    write(real, {"own-tool/bin/x": "x", "letters/a.txt": "x"})
    job = ShellCommand(f"cd {real} && find . -type f | sort", home=home_of(strong), visible=(real / "own-tool",))
    assert printed(strong, job).split() == ["./.cargo/bin/cargo", "./.m2/a/b", "./own-tool/bin/x"]


def test_of_a_shared_folder_only_what_is_renewed_can_be_changed(strong: Bench) -> None:
    """Whatever the rest is called: some program may start from it."""
    real = strong.folder / "home"
    write(real, {".agent/token": "old", ".agent/state.json": "{}", ".agent/hooks/h": "ok", ".agent/logs/1": "x"})
    own = replace(home_of(strong, ".agent", kept=(".agent/hooks",)), renewable=(".agent/token*",))
    command = (
        "cd ~/.agent; cat state.json; echo evil > state.json; cat state.json; echo evil > logs/2;"
        " echo new > token.tmp; mv token.tmp token; echo evil > .env; mkdir plugin; echo evil > hooks/h"
    )
    said = printed(strong, ShellCommand(f"{command}; true", home=own)).splitlines()
    assert said[0] == "{}evil"
    found = {path.relative_to(real).as_posix(): path.read_text() for path in real.rglob("*") if path.is_file()}
    assert found == {".agent/token": "new\n", ".agent/state.json": "{}", ".agent/hooks/h": "ok", ".agent/logs/1": "x"}
    assert sorted(path.name for path in (real / ".agent").iterdir()) == ["hooks", "logs", "state.json", "token"]
    assert any(".env, plugin" in line for line in strong.said), strong.said


def test_a_database_of_the_persons_is_begun_anew(strong: Bench) -> None:
    """Somebody may be writing to it: half of what they wrote would be no database."""
    real = strong.folder / "home"
    write(real, {".agent/state.db": "x", ".agent/state.db-wal": "y", ".agent/notes": "z"})
    own = replace(home_of(strong, ".agent"), renewable=())
    assert (
        printed(strong, ShellCommand("cd ~/.agent; wc -c < state.db; wc -c < state.db-wal; cat notes", home=own))
        == "0\n0\nz"
    )
    assert (real / ".agent/state.db").read_text() == "x"


def test_without_one_home_is_as_it_was(strong: Bench) -> None:
    assert printed(strong, ShellCommand("echo $HOME")) == f"{strong.folder}/home\n"


def test_toolchains_are_those_of_the_person_and_nothing_leads_past_home(bench: Bench) -> None:
    write(bench.folder / "home", {".cargo/bin/cargo": "", "go/bin/x": "", ".nvm/x": ""})
    shell = bench.site().run
    assert isinstance(shell, SandboxedShell)
    theirs = {"XDG_CONFIG_HOME": "/x", "XDG_DATA_HOME": "/x", "XDG_STATE_HOME": "/x", "XDG_CACHE_HOME": "/x"}
    shell = replace(shell, variables=dict(shell.variables) | theirs | {"NVM_DIR": "/their/own"})
    assert shell(ShellCommand("env", env={"XDG_DATA_HOME": "/wanted"}, home=home_of(bench))).exit_code == 0
    said = dict(line.split("=", 1) for line in bench.printed().splitlines())
    real = bench.folder / "home"
    assert (said["CARGO_HOME"], said["GOPATH"], said["NVM_DIR"]) == (f"{real}/.cargo", f"{real}/go", "/their/own")
    assert "RUSTUP_HOME" not in said
    assert {name: value for name, value in said.items() if name.startswith("XDG_")} == {"XDG_DATA_HOME": "/wanted"}
    assert Path(said["HOME"]) not in (real, *real.parents)


def test_a_login_is_shared_and_never_copied(bench: Bench) -> None:
    """Renewed as programs do it: written beside, then renamed."""
    real = bench.folder / "home"
    write(real, {".agent/token": "old\n", ".agent.json": "{}\n"})
    own = home_of(bench, ".agent", ".agent.json", ".config/not-there")
    command = "cat ~/.agent/token; echo new > ~/.agent/t && mv ~/.agent/t ~/.agent/token; echo '{1}' > ~/.agent.json"
    assert printed(bench, ShellCommand(command, home=own)) == "old\n"
    assert (real / ".agent/token").read_text() == "new\n" and (real / ".agent.json").read_text() == "{1}\n"
    assert sorted(path.name for path in (real / ".agent").iterdir()) == ["token"]
    assert not (real / ".config").exists()
    assert not (own.folder / ".agent/token").exists()


def test_the_login_is_out_of_sight_where_the_person_has_it(strong: Bench) -> None:
    real = strong.folder / "home"
    write(real, {".agent/token": "secret\n", ".config/deep/agent/token": "secret\n", ".other/token": "secret\n"})
    shell = strong.site(view=replace(strong.view, masked=(strong.state, real / ".agent", real / ".other"))).run
    own = home_of(strong, ".agent", ".config/deep/agent")
    seen = "cat ~/.agent/token ~/.config/deep/agent/token; ls -A {0}/.agent {0}/.other"
    assert shell(ShellCommand(seen.format(shlex.quote(str(real))), home=own)).exit_code == 0, strong.printed()
    assert strong.printed().count("secret") == 2


def test_a_login_that_is_a_link_is_followed(bench: Bench) -> None:
    real = bench.folder / "home"
    write(real, {"dotfiles/agent/token": "old\n"})
    (real / ".agent").symlink_to("dotfiles/agent")
    printed(bench, ShellCommand("echo new > ~/.agent/token", home=home_of(bench, ".agent")))
    assert (real / "dotfiles/agent/token").read_text() == "new\n" and (real / ".agent").is_symlink()


SETTINGS = {
    ".agent/token": "t\n",
    ".agent/settings.json": "{}\n",
    ".agent/hooks/stop.sh": "true\n",
    ".agent/deep/down/settings.json": "{}\n",
    ".agent/linked-to.json": "{}\n",
}
KEPT = (
    ".agent/settings.json",
    ".agent/settings.local.json",
    ".agent/hooks",
    ".agent/plugins",
    ".agent/deep/down/settings.json",
    ".agent/deep/new/settings.json",
    ".agent/linked.json",
)

# What a program that means harm does in its login folder, and whether the strongest level lets it happen at all.
ORDERS = {
    "echo x > settings.json": False,
    "echo x > s && mv s settings.json": False,
    "rm -f settings.json": False,
    "ln -sf /tmp/mine settings.json": False,
    "echo x >> hooks/stop.sh": False,
    "echo x > hooks/start.sh": False,
    "mv hooks old; mkdir hooks; echo x > hooks/stop.sh": False,
    "chmod +x hooks/stop.sh": False,
    "mv deep shallow; mkdir -p deep/down; echo x > deep/down/settings.json": False,
    "mv deep/down deep/up; mkdir deep/down; echo x > deep/down/settings.json": False,
    "echo x > linked-to.json": False,
    "echo x > settings.local.json": True,
    "ln -s /etc/passwd settings.local.json": True,
    "mkdir settings.local.json; mkfifo settings.local.json/p": True,
    "mkdir plugins; echo x > plugins/p.js": True,
    "ln -s /tmp plugins": True,
    "mkdir deep/new; echo x > deep/new/settings.json": True,
    "ln -s ../hooks deep/new": True,
    "rm linked.json; echo x > linked.json": True,
    "ln -sfn /etc/passwd linked.json": True,
    "echo x > settings.local.json; chmod 0 .": True,
}


def listing(folder: Path) -> dict[str, tuple[int, str]]:
    return {
        path.relative_to(folder).as_posix(): (
            path.lstat().st_mode,
            str(path.readlink()) if path.is_symlink() else path.read_text() if path.is_file() else "",
        )
        for path in folder.rglob("*")
    }


@pytest.mark.few(8)
@pytest.mark.parametrize("order", ORDERS)
def test_what_decides_the_next_start_is_as_before(bench: Bench, order: str) -> None:
    real = bench.folder / "home"
    write(real, SETTINGS)
    (real / ".agent/linked.json").symlink_to("linked-to.json")
    before = listing(real)
    own = home_of(bench, ".agent", kept=KEPT)
    run(bench, ShellCommand(f"cd ~/.agent; echo new > token; {order}", home=own))
    after = {path: what for path, what in listing(real).items() if path in before or path in KEPT}
    assert after == before | {".agent/token": (before[".agent/token"][0], "new\n")}
    happened = ORDERS[order] or not bench.strongest
    assert bool(bench.said) is happened and all(str(real / ".agent") in line for line in bench.said), bench.said


def test_what_a_program_leaves_alone_is_not_spoken_of(bench: Bench) -> None:
    real = bench.folder / "home"
    write(real, SETTINGS)
    os.mkfifo(real / ".agent/hooks/pipe")
    own = home_of(bench, ".agent", kept=KEPT)
    printed(
        bench, ShellCommand("cat ~/.agent/settings.json; mkdir ~/.agent/sessions; echo x > ~/.agent/deep/x", home=own)
    )
    assert bench.said == []
    assert (real / ".agent/sessions").is_dir() and (real / ".agent/deep/x").is_file()
    assert not (real / ".agent/plugins").exists() and not (real / ".agent/deep/new").exists()


def test_an_interruption_does_not_keep_it_from_being_put_back(bench: Bench) -> None:
    real = bench.folder / "home"
    write(real, SETTINGS)
    own = home_of(bench, ".agent", kept=KEPT)

    def stop(_data: bytes) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(
            bench, ShellCommand("echo x > ~/.agent/settings.local.json; echo there; sleep 60", home=own, on_output=stop)
        )
    assert not (real / ".agent/settings.local.json").exists()


def test_without_a_place_for_guards_each_run_has_its_own(bench: Bench) -> None:
    write(bench.folder / "home", SETTINGS)
    own = home_of(bench, ".agent", kept=KEPT)
    run(bench, ShellCommand("echo mine > ~/.agent/settings.local.json", home=own))
    aside = bench.scratch.glob("shell-*/put-aside/*/.agent/settings.local.json")
    assert [path.read_text() for path in aside] == ["mine\n"]


def test_links_of_an_earlier_run_lead_nobody_out_of_the_fresh_home(plain: Bench) -> None:
    write(plain.folder / "home", {".config/agent/token": "t\n"})
    elsewhere = plain.folder / "elsewhere"
    elsewhere.mkdir()
    own = home_of(plain, ".config/agent")
    (own.folder / ".config").symlink_to(elsewhere)
    command = f"cat ~/.config/agent/token; rm -r ~/.config; ln -s {shlex.quote(str(elsewhere))} ~/.config"
    write(elsewhere, {"agent/precious": "p\n"})
    assert printed(plain, ShellCommand(command, home=own)) == "t\n"
    assert listing(elsewhere).keys() == {"agent", "agent/precious"}
    assert (plain.folder / "home/.config/agent/token").exists()


def test_a_program_that_is_installed_beside_its_login_starts_and_nothing_else_is_seen_there(strong: Bench) -> None:
    agent = strong.folder / "home/.agent"
    files = {"token": "secret\n", "cache/x": "secret\n", "local/1/agent": "#!/bin/sh\necho started\n"}
    write(agent, files | {"local/1/keys/key": "secret\n", "local/1/key": "secret\n"})
    (agent / "local/1/agent").chmod(0o755)
    (agent / "local/current").symlink_to("1")
    masked = (strong.state, agent / "local/1/keys", agent, agent / "local/1/key")
    shell = strong.site(view=replace(strong.view, masked=masked, visible=(*strong.view.visible, agent / "cache"))).run
    for called in (agent / "local/current/agent", agent / "local/1/agent"):
        strong.output.clear()
        command = (
            f"{called}; cd {agent}; cat token cache/x local/1/key local/1/keys/key; touch local/1/new; ls -A . local"
        )
        shell(ShellCommand(command, visible=(called.parent, called.resolve().parent), home=home_of(strong, ".agent")))
        said = strong.printed()
        assert said.startswith("started\n") and "secret" not in said and "Read-only file system" in said
    assert not (agent / "local/1/new").exists()


def test_a_login_that_is_installed_as_a_link_is_masked_and_its_program_starts(strong: Bench) -> None:
    real = strong.folder / "home"
    write(real, {"dotfiles/agent/token": "secret\n", "dotfiles/agent/bin/agent": "#!/bin/sh\necho started\n"})
    (real / "dotfiles/agent/bin/agent").chmod(0o755)
    (real / ".agent").symlink_to("dotfiles/agent")
    shell = strong.site(view=replace(strong.view, masked=(strong.state, real / ".agent"))).run
    command = f"{real}/.agent/bin/agent; cat {real}/.agent/token {real}/dotfiles/agent/token"
    shell(ShellCommand(command, visible=(real / ".agent/bin",)))
    assert strong.printed().startswith("started\n") and "secret" not in strong.printed()


# Its tree.


def reader(bench: Bench, hidden: tuple[str, ...] = ()) -> SandboxedShell:
    """A shell for one whose words are the answer: the work tree stands for the frozen checkout."""
    shell = bench.site(view=replace(bench.view, work_tree=None, hidden=hidden)).run
    assert isinstance(shell, SandboxedShell)
    return shell


@pytest.mark.parametrize("works", [True, False], ids=["executor", "reader"])
def test_where_it_runs_is_known_before(bench: Bench, works: bool) -> None:
    shell = bench.site().run if works else reader(bench)
    assert isinstance(shell, SandboxedShell)
    assert shell(ShellCommand("pwd")).exit_code == 0
    assert bench.printed() == f"{shell.root}\n"
    assert (shell.root == bench.work_tree) is (works and not bench.strongest)


def test_whoever_reads_has_fresh_files_in_every_run_and_changes_none(bench: Bench) -> None:
    shell, before = reader(bench), bench.files()
    for _ in range(2):
        bench.output.clear()
        command = "cat a.txt; ls; echo x > a.txt; rm -r src; mkdir -p new/deep; chmod 0 new"
        assert shell(ShellCommand(command)).exit_code == 0, bench.printed()
        assert bench.printed() == "a\na.txt\nsrc\n"
    assert bench.files() == before and (bench.work_tree / "a.txt").read_text() == "a\n"


def test_an_agent_that_only_reads_edits_what_is_thrown_away(bench: Bench) -> None:
    """By the path that it is told: the root of its session."""
    steps = [{"edit": {"path": "a.txt", "content": "changed\n", "ask": False}}, {"say": "Done."}]
    (bench.work_tree / "script.json").write_text(json.dumps({"runs": [{"steps": steps}]}))
    shell = reader(bench)
    site = replace(bench.site(), run=shell, sandbox_path=shell.root)
    agent = InstalledProgram(
        "acp:test",
        "test",
        (sys.executable, "-m", "proofstone.testing.acp_agent", "script.json"),
        None,
        ProgramSettings(),
    )
    came = AcpBackend(agent).turn(talk(role="researcher"), site, 60)
    assert isinstance(came, Turn) and came.text == "Done.", came
    assert (bench.work_tree / "a.txt").read_text() == "a\n"
    if not bench.strongest:
        assert (shell.root / "a.txt").read_text() == "changed\n"


SECRETS = {".env": "KEY=1\n", "deep/.env": "KEY=2\n", "prod.pem": "KEY=3\n", "test.pem": "KEY=4\n"}


def test_files_that_may_hold_secrets_are_empty_for_whoever_reads(bench: Bench) -> None:
    write(bench.work_tree, SECRETS | {"public.txt": "public\n"})
    (bench.work_tree / ".env").chmod(0o400)
    (bench.work_tree / "linked").symlink_to(".env")
    shell = reader(bench, (*SECRETS, "linked", "gone.pem"))
    assert shell(ShellCommand("cat .env */.env *.pem linked public.txt; ls gone.pem", say=bench.said.append)).exit_code
    assert bench.printed().startswith("public\n") and "KEY" not in bench.printed()
    assert {name: (bench.work_tree / name).read_text() for name in SECRETS} == SECRETS
    assert (bench.work_tree / "linked").is_symlink() and bench.said == []


@pytest.mark.parametrize(
    ("hidden", "line"),
    [
        ((), []),
        (("gone.pem",), []),
        ((".env", "gone.pem"), ["without bubblewrap it can read .env: 1 file that may hold secrets"]),
        (
            tuple(SECRETS),
            ["without bubblewrap it can read .env, deep/.env, prod.pem, …: 4 files that may hold secrets"],
        ),
    ],
)
def test_where_a_work_tree_cannot_hide_them_it_is_told(bench: Bench, hidden: tuple[str, ...], line: list[str]) -> None:
    write(bench.work_tree, SECRETS)
    shell = bench.site(view=replace(bench.view, hidden=hidden)).run
    shell(ShellCommand("cat .env", say=bench.said.append))
    assert bench.said == ([] if bench.strongest else line)
    assert {name: (bench.work_tree / name).read_text() for name in SECRETS} == SECRETS


# Its limits.


def groups() -> set[Path]:
    """Control groups of this process's making."""
    return set(CGROUP_MOUNT.rglob(f"proofstone-{os.getpid()}-*"))


def test_a_host_that_is_none_leaves_no_control_group(strong: Bench) -> None:
    group = create_control_group(0, 64)
    if group is None:
        unavailable("control groups cannot be had here")
    assert set(group.folders) <= groups()
    group.close()
    before = groups()
    with pytest.raises(InputError, match="no host"):
        run(strong, ShellCommand("true", hosts=("no host",)))
    assert groups() == before


def test_one_that_cannot_be_started_leaves_no_control_group(bench: Bench) -> None:
    before = groups()
    with pytest.raises(ValueError, match="unmarshallable"):
        run(bench, ShellCommand("true", env={"NOT_TEXT": object()}))  # type: ignore[dict-item]
    assert groups() == before


# Its network.

DIRECT = """
import socket, sys
one = socket.create_connection((sys.argv[1], int(sys.argv[2])), 30)
one.sendall(b"hello")
one.shutdown(socket.SHUT_WR)
print(one.recv(100).decode())
"""
"""As a program that knows nothing of proxies."""
FETCH = """
import sys, urllib.error, urllib.request
request = urllib.request.Request(sys.argv[1])
request.set_proxy(urllib.request.getproxies()["http"].removeprefix("http://"), "http")
try:
    print(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""
"""By the proxy, whatever the address is."""
TUNNEL = """
import http.client, os, sys
proxy = os.environ["HTTPS_PROXY"].removeprefix("http://").split(":")
one = http.client.HTTPConnection(proxy[0], int(proxy[1]), timeout=30)
one.set_tunnel(sys.argv[1].split(":")[0], int(sys.argv[1].split(":")[1]))
try:
    one.request("GET", "/")
    print(one.getresponse().read().decode())
except OSError as error:
    print(error)
"""
TRANSFER = """
import hashlib, socket, sys, threading
one = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60)
block = bytes(range(256)) * 4096
def send():
    for _ in range(int(sys.argv[2]) // len(block)):
        one.sendall(block)
    one.shutdown(socket.SHUT_WR)
threading.Thread(target=send).start()
size, state = 0, hashlib.sha256()
while data := one.recv(1 << 20):
    size += len(data)
    state.update(data)
print(size, state.hexdigest())
"""
WAIT = """
import socket, sys
one = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print("there", flush=True)
one.recv(1)
"""
HOSTILE = """
import os, socket
proxy = ("127.0.0.1", int(os.environ["HTTP_PROXY"].rpartition(":")[2]))
garbage = socket.create_connection(proxy, 30)
garbage.sendall(b"\\x00\\xff\\r\\n\\r\\n")
print(garbage.recv(12).decode())
long = socket.create_connection(proxy, 30)
try:
    long.sendall(b"GET http://x.example.com/ HTTP/1.1\\r\\nX: " + b"x" * (1 << 20))
except OSError:
    pass
print(long.recv(12).decode())
crowd = [socket.create_connection(proxy, 30) for _ in range(300)]
for one in crowd:
    try:
        one.sendall(b"CONNECT ")
    except OSError:
        pass
for one in crowd:
    one.close()
"""


def program(bench: Bench, script: str, *arguments: object) -> str:
    """A command that runs the script in the sandbox."""
    (bench.work_tree / "program.py").write_text(script)
    return f"python3 program.py {' '.join(shlex.quote(str(argument)) for argument in arguments)}"


def test_a_server_of_the_machine_is_reached_directly_and_by_the_proxy(bench: Bench) -> None:
    with server(echo) as (echoing, _), server(http) as (serving, _):
        hosts = (f"127.0.0.1:{echoing}", f"127.0.0.1:{serving}")
        direct = program(bench, DIRECT, "127.0.0.1", echoing)
        assert printed(bench, ShellCommand(direct, hosts=hosts)) == "hello\n"
        if bench.strongest:
            for script, target in ((FETCH, f"http://127.0.0.1:{serving}/x"), (TUNNEL, f"127.0.0.1:{serving}")):
                assert "GET /" in printed(bench, ShellCommand(program(bench, script, target), hosts=hosts))
    assert bench.heard == []
    assert [("can reach any host" in line) for line in bench.said] == ([] if bench.strongest else [True])


def test_localhost_is_found_by_name_and_by_address(strong: Bench) -> None:
    with server(echo) as (port, _):
        for name in ("localhost", "127.0.0.1"):
            job = ShellCommand(program(strong, DIRECT, name, port), hosts=(f"localhost:{port}",))
            assert printed(strong, job) == "hello\n"


def test_no_other_server_of_the_machine_is_reached(strong: Bench) -> None:
    with server(echo) as (port, _), server(http) as (other, seen):
        hosts = (f"127.0.0.1:{port}",)
        assert run(strong, ShellCommand(program(strong, DIRECT, "127.0.0.1", other), hosts=hosts)).exit_code == 1
        assert "ConnectionRefusedError" in strong.printed()
        fetched = printed(strong, ShellCommand(program(strong, FETCH, f"http://127.0.0.1:{other}/"), hosts=hosts))
        assert fetched.startswith("403 ") and f"127.0.0.1:{other} may not be reached" in fetched
        assert "403" in printed(strong, ShellCommand(program(strong, TUNNEL, f"127.0.0.1:{other}"), hosts=hosts))
    assert strong.heard == [f"127.0.0.1:{other}"] * 2 and seen == []


@pytest.mark.parametrize("hosts", [(), ("api.example.com",)])
def test_no_other_host_is_reached(strong: Bench, hosts: tuple[str, ...]) -> None:
    fetched = printed(strong, ShellCommand(program(strong, FETCH, "http://evil.example.org/"), hosts=hosts))
    assert fetched.startswith("403 evil.example.org:80 may not be reached")
    assert strong.heard == ["evil.example.org:80"]
    assert run(strong, ShellCommand(program(strong, DIRECT, "192.0.2.1", 443), hosts=hosts)).exit_code == 1
    assert "Network is unreachable" in strong.printed()


def test_named_hosts_are_all_there_is_also_where_the_site_has_a_network(strong: Bench) -> None:
    shell = strong.site(view=replace(strong.view, network=True)).run
    with server(echo) as (port, seen):
        command = program(strong, DIRECT, "127.0.0.1", port)
        assert shell(ShellCommand(command, hosts=())).exit_code == 1 and seen == []
        assert shell(ShellCommand(command)).exit_code == 0 and seen == [1]


def test_no_hosts_at_all_means_no_network_at_every_level_that_can_see_to_it(bench: Bench) -> None:
    with server(echo) as (port, seen):
        done = run(bench, ShellCommand(program(bench, DIRECT, "127.0.0.1", port), hosts=()))
    assert bool(done.exit_code) is (bench.sandbox.level != "plain") is (seen == [])


def test_a_big_transfer_goes_through(strong: Bench) -> None:
    with server(echo) as (port, _):
        said = printed(strong, ShellCommand(program(strong, TRANSFER, port, BIG), hosts=(f"127.0.0.1:{port}",)))
    block = bytes(range(256)) * 4096
    assert said == f"{BIG} {hashlib.sha256(block * (BIG // len(block))).hexdigest()}\n"


def test_a_hostile_program_neither_hangs_the_way_out_nor_breaks_it(strong: Bench) -> None:
    with server(echo) as (port, _):
        (strong.work_tree / "after.py").write_text(DIRECT)
        # The crowd is gone as soon as that has been noticed.
        after = f"until python3 after.py 127.0.0.1 {port} | grep hello; do :; done"
        said = printed(strong, ShellCommand(f"{program(strong, HOSTILE)} && {after}", hosts=(f"127.0.0.1:{port}",)))
    assert said.splitlines()[0] == "HTTP/1.1 400" and said.splitlines()[1] == "HTTP/1.1 431"
    assert said.splitlines()[-1] == "hello"


# How the program ends → how it has ended, for whoever looks from outside.
CODES = {"exit 0": 0, "exit 7": 7, "kill -TERM $$": 143, "kill -PIPE $$": 141, "kill -9 $$": 137}


@pytest.mark.parametrize("command", CODES)
def test_its_end_is_its_own(strong: Bench, command: str) -> None:
    assert run(strong, ShellCommand(command, hosts=())).exit_code == CODES[command]


def test_whoever_listens_for_it_is_none_of_its_children_and_reads_none_of_its_input(strong: Bench) -> None:
    script = """
import os
try:
    os.wait()
except ChildProcessError:
    print("none")
"""
    with pipe() as (reading, writing):
        os.write(writing, b"x\n")
        job = ShellCommand(f"head -n 1; exec {program(strong, script)}", hosts=(), stdin=reading)
        assert printed(strong, job) == "x\nnone\n"


def test_the_variables_lead_every_program_to_the_proxy(strong: Bench) -> None:
    said = printed(strong, ShellCommand("env", hosts=(), env={"HTTPS_PROXY": "http://elsewhere:1", "OWN": "1"}))
    found = dict(line.split("=", 1) for line in said.splitlines())
    proxies = {
        found[name] for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    }
    assert len(proxies) == 1 and proxies.pop().startswith("http://127.0.0.1:")
    assert found["NO_PROXY"] == found["no_proxy"] == "127.0.0.1,localhost,::1"
    assert found["NODE_USE_ENV_PROXY"] == found["OWN"] == "1"


def told(word: str) -> list[bytes]:
    """Command lines of processes that have this word among their arguments, as one who listens in a sandbox has."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(file.read_bytes())
    return [line for line in found if word.encode() in line.split(b"\0")]


def test_enough_and_a_deadline_end_one_with_a_way_out(strong: Bench) -> None:
    nap, enough = odd_number(), threading.Event()
    with server(echo) as (port, _):
        waiting = program(strong, WAIT, port)
        command, hosts = f"setsid sleep {nap} & {waiting}", (f"127.0.0.1:{port}",)
        listening: list[bytes] = []

        def stop(_data: bytes) -> None:
            listening.extend(told(hosts[0]))
            enough.set()

        assert run(strong, ShellCommand(command, hosts=hosts, stop_event=enough, on_output=stop)).was_stopped
        assert any(b"relay.py" in line for line in listening)
        assert run(strong, ShellCommand(command, 0.5, hosts=hosts)).timed_out
    assert running("sleep", nap) == [] and told(f"127.0.0.1:{port}") == []
    assert [thread for thread in threading.enumerate() if "gateway" in thread.name] == []


def test_a_socket_inside_the_login_folder_is_out_of_reach(strong: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of the person's that listens there would act for whoever asks."""
    place = strong.folder / "home/.agent/daemon.sock"
    write(strong.folder / "home", {".agent/token": "t\n"})
    connect = "import os, socket; socket.socket(socket.AF_UNIX).connect(os.path.expanduser('~/.agent/daemon.sock'))"
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(place.parent)  # its address would be too long
        listener.bind(place.name)
        listener.listen()
        run(strong, ShellCommand(program(strong, connect), home=home_of(strong, ".agent")))
    assert "ConnectionRefusedError" in strong.printed() and place.is_socket()
