"""The strongest sandbox, also for root: what a check tries, and what holds. The same attempts succeed outside."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.check.hazards import walls
from tests.check.hazards.processes import bystander, greeting, tcp_service
from tests.needs import needs, unavailable
from tests.workshop import CheckRun, Workshop

pytestmark = needs("bwrap")
MS_REMOUNT, MS_BIND = 32, 4096


@pytest.fixture
def place(real_place: Workshop) -> Iterator[Workshop]:
    real_place.repo({"a.txt": "a\n"})
    yield real_place


def attempted(place: Workshop, script: str, **variables: str) -> str:
    """The script as a check of a change, in the sandbox; what it printed."""
    return checked(place, script, **variables).output("verify")


def checked(place: Workshop, script: str, **variables: str) -> CheckRun:
    root = place.folder / "project"
    place.write(root, {"attempt.py": script})
    done = place.check(root, "--verify", "python3 attempt.py", env=variables)
    assert done.check("verify").assurance == "bubblewrap", done.stderr
    return done


def outside(script: str) -> str:
    """The same without a sandbox: what holds there shows nothing."""
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout


def test_remounting_the_root_writable_is_refused(place: Workshop) -> None:
    for flags in (MS_REMOUNT, MS_REMOUNT | MS_BIND):
        assert attempted(place, walls.mount(flags)).startswith("held")


def test_a_new_user_namespace_gives_no_way_to_the_real_disk(place: Workshop) -> None:
    target = place.folder / "target.txt"
    script = walls.program(
        "libc = ctypes.CDLL(None, use_errno=True)",
        "libc.unshare(0x10020000)",
        "libc.mount(b'none', b'/', None, 32 | 4096, None)",
        f"pathlib.Path({str(target)!r}).write_text('x')",
        "return True",
    )
    attempted(place, script)
    assert not target.exists()


@pytest.mark.few(2)
@pytest.mark.parametrize("where", ["beside", "home", "etc", "git"])
def test_nothing_is_written_outside_the_check(place: Workshop, where: str) -> None:
    target = {
        "beside": place.folder / "beside.txt",
        "home": place.home / "left.txt",
        "etc": Path(f"/etc/proofstone-{secrets.token_hex(4)}"),
        "git": place.folder / "project/.git/left.txt",
    }[where]
    said = attempted(place, walls.write(str(target)))
    assert not target.exists()
    # HOME takes writes and forgets them, and so does a private temporary folder if the tests themselves run below it.
    is_private = any(place.folder.is_relative_to(folder) for folder in ("/tmp", "/var/tmp"))
    forgotten = where == "home" or (where == "beside" and is_private)
    assert said.startswith("through" if forgotten else "held")


def test_writes_into_the_tree_are_forgotten(place: Workshop) -> None:
    said = attempted(place, walls.write(str(place.folder / "project" / "left.txt")))
    assert said.startswith("through") and not (place.folder / "project" / "left.txt").exists()


@pytest.mark.few(2)
@pytest.mark.parametrize("parent", ["/run", "/tmp", "/var/tmp", "/dev/shm"])
def test_unix_sockets_of_the_machine_are_out_of_reach(place: Workshop, parent: str) -> None:
    if not os.access(parent, os.W_OK):
        unavailable(f"{parent} is not ours to write to")
    with tempfile.TemporaryDirectory(dir=parent) as folder, greeting(socket.AF_UNIX, f"{folder}/s"):
        script = walls.connect_unix(f"{folder}/s")
        assert outside(script).startswith("through")
        assert attempted(place, script).startswith("held")


def test_abstract_sockets_and_the_loopback_of_the_machine_are_out_of_reach(place: Workshop) -> None:
    name = f"\0proofstone-{secrets.token_hex(8)}"
    with greeting(socket.AF_UNIX, name), tcp_service() as port:
        for script in (walls.connect_unix(name), walls.connect_tcp(port)):
            assert outside(script).startswith("through")
            assert attempted(place, script).startswith("held")


@pytest.mark.few(2)
@pytest.mark.parametrize("file", [".ssh/id_ed25519", ".aws/credentials", ".netrc", ".npmrc", ".config/gh/hosts.yml"])
def test_credentials_below_home_are_masked(place: Workshop, file: str) -> None:
    place.write(place.home, {file: "secret\n"})
    assert outside(walls.read(str(place.home / file))).startswith("through")
    assert attempted(place, walls.read(str(place.home / file))).startswith("held")


@pytest.mark.parametrize("file", [".ssh/id_ed25519", ".netrc"])
def test_credentials_are_masked_also_when_home_lies_in_a_temporary_folder(workshop: Workshop, file: str) -> None:
    workshop.repo({"a.txt": "a\n"})
    workshop.write(workshop.home, {file: "secret\n"})
    assert attempted(workshop, walls.read(str(workshop.home / file))).startswith("held")


def test_credentials_behind_a_symlink_are_masked(place: Workshop) -> None:
    place.write(place.home, {"dotfiles/ssh/id_ed25519": "secret\n"})
    (place.home / ".ssh").symlink_to("dotfiles/ssh")
    for path in (".ssh/id_ed25519", "dotfiles/ssh/id_ed25519"):
        assert attempted(place, walls.read(str(place.home / path))).startswith("held")


@pytest.mark.parametrize("inside_home", [True, False])
def test_the_state_of_proofstone_is_out_of_sight(real_place: Workshop, inside_home: bool) -> None:
    state = Path("home/.local/state/proofstone") if inside_home else Path("state")
    place = Workshop(real_place.folder, state=state)
    place.repo({"a.txt": "a\n"})
    listed = walls.program(f"return bool(os.listdir({str(place.proofstone_home)!r}))")
    assert attempted(place, listed).startswith("held")
    assert outside(listed).startswith("through")


def test_processes_of_the_machine_can_be_neither_seen_nor_killed_nor_traced(place: Workshop) -> None:
    with bystander() as process:
        for script in (
            walls.read(f"/proc/{process.pid}/environ"),
            walls.trace(process.pid),
            walls.kill(process.pid),
        ):
            assert attempted(place, script).startswith("held")
        assert process.poll() is None
        assert outside(walls.read(f"/proc/{process.pid}/environ")).startswith("through")


def test_the_environment_of_outer_processes_is_not_found_in_proc(place: Workshop) -> None:
    script = "import glob\nfor f in glob.glob('/proc/[0-9]*/environ'):\n    print(open(f, 'rb').read())\n"
    with bystander():
        said = attempted(place, script, GITHUB_TOKEN="ghp_do_not_leak")
    assert "PATH" in said and "SECRET_OF_ANOTHER" not in said and "ghp_do_not_leak" not in said


SECRETS = ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "ANTHROPIC_API_KEY", "SSH_AUTH_SOCK", "PROOFSTONE_HOME")


def test_secrets_in_the_environment_are_not_passed_on(place: Workshop) -> None:
    said = attempted(place, "import os\nprint(sorted(os.environ))\n", **dict.fromkeys(SECRETS[:4], "do-not-leak"))
    assert "'PATH'" in said
    assert not [name for name in SECRETS if name in said]


def test_a_variable_that_is_declared_is_passed_on(place: Workshop) -> None:
    place.trust_everything()
    place.configure(place.folder / "project", '[environment]\npass = ["GITHUB_TOKEN"]\n')
    assert "given" in attempted(place, "import os\nprint(os.environ['GITHUB_TOKEN'])\n", GITHUB_TOKEN="given")


def test_devices_of_the_machine_are_not_there(place: Workshop) -> None:
    said = attempted(place, "import os\nprint(*sorted(os.listdir('/dev')))\n").split()
    assert "null" in said and not [
        name for name in said if name.startswith(("sd", "vd", "nvme", "mem", "kmsg", "loop"))
    ]


def test_control_groups_cannot_be_left_or_widened(place: Workshop) -> None:
    script = walls.program(
        "import glob",
        "files = glob.glob('/sys/fs/cgroup/**/cgroup.procs', recursive=True)[:50]",
        "done = 0",
        "for f in files:",
        "    try:",
        "        open(f, 'w').write(str(os.getpid())); done += 1",
        "    except OSError: pass",
        "return done",
    )
    assert attempted(place, script).startswith("held")


def test_a_change_cannot_open_the_sandbox_for_itself(place: Workshop) -> None:
    opened = '[environment]\npass = ["GITHUB_TOKEN"]\nnetwork = true\n[sandbox]\nlevel = "plain"\n'
    place.write(place.folder / "project", {"proofstone.toml": opened})
    assert "do-not-leak" not in attempted(place, "import os\nprint(os.environ)\n", GITHUB_TOKEN="do-not-leak")
