"""The filter decides as its tables say, instruction by instruction; and the kernel takes it."""

from __future__ import annotations

import errno
import struct
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from proofstone.config.settings import AllowedCalls
from proofstone.errors import SandboxError
from proofstone.sandbox.process import build_launcher_command
from proofstone.sandbox.seccomp import (
    _ARCHITECTURES,
    ALLOWABLE_GROUPS,
    CALL_GROUPS,
    NAMESPACES,
    CallGroup,
    build_filter,
    has_filter,
)
from tests.rows import each_row

ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
NEW_USER, NEW_FILES = 0x10000000, 0x00000400


def decide(code: bytes, audit: int, number: int, argument: int = 0) -> int:
    """Run the filter as the kernel would, on one call."""
    data = struct.pack("=IIQQ", number, audit, 0, argument)
    program = list(struct.iter_unpack("HBBI", code))
    accumulator = at = 0
    while True:
        operation, if_true, if_false, operand = program[at]
        at += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, operand)
            case 0x05:
                at += operand
            case 0x15:
                at += if_true if accumulator == operand else if_false
            case 0x35:
                at += if_true if accumulator >= operand else if_false
            case 0x45:
                at += if_true if accumulator & operand else if_false
            case 0x06:
                return int(operand)
            case _:
                raise AssertionError(f"no such operation: {operation:#x}")


@pytest.mark.parametrize("machine", sorted(_ARCHITECTURES))
def test_every_listed_call_is_refused_and_nothing_else(machine: str) -> None:
    code = build_filter(machine=machine)
    for architecture in _ARCHITECTURES[machine]:
        refused = {architecture.numbers["clone3"]: errno.ENOSYS}
        for group in CALL_GROUPS:
            refused |= {architecture.numbers[call]: group.error for call in group.calls if call in architecture.numbers}
        for number in range(600):
            expected = ERROR | refused[number] if number in refused else ALLOW
            assert decide(code, architecture.audit, number) == expected, number
        for call in ("clone", "unshare"):
            assert decide(code, architecture.audit, architecture.numbers[call], NEW_USER) == ERROR | errno.EPERM
            assert decide(code, architecture.audit, architecture.numbers[call], NEW_FILES) == ALLOW
    assert decide(code, 0x12345678, 1) == KILL


@each_row("group", [group for group in CALL_GROUPS if group.can_be_allowed])
def test_a_group_can_be_allowed_by_name(group: CallGroup) -> None:
    (architecture, *_) = _ARCHITECTURES["x86_64"]
    code = build_filter(frozenset({group.name}), machine="x86_64")
    numbers = [architecture.numbers[call] for call in group.calls if call in architecture.numbers]
    assert all(decide(code, architecture.audit, number) == ALLOW for number in numbers)
    flags = decide(code, architecture.audit, architecture.numbers["unshare"], NEW_USER)
    assert (flags == ALLOW) is (group.name == NAMESPACES)


def test_sockets_that_lead_off_the_process_are_refused_where_there_is_no_network_namespace() -> None:
    (architecture, second) = _ARCHITECTURES["x86_64"]
    code = build_filter(without_sockets=True, machine="x86_64")
    socket = architecture.numbers["socket"]
    answers = {family: decide(code, architecture.audit, socket, family) for family in (1, 2, 10, 16, 17, 38)}
    assert answers.pop(38) == ALLOW
    assert set(answers.values()) == {ERROR | errno.EACCES}
    assert decide(code, second.audit, 1) == KILL
    assert decide(code, architecture.audit, architecture.numbers["mount"]) == ERROR | errno.EPERM


def test_an_architecture_without_a_filter_is_said_and_not_passed_over() -> None:
    assert not has_filter("sparc64")
    assert build_filter(machine="sparc64") == b""
    with pytest.raises(SandboxError, match="sparc64"):
        build_filter(without_sockets=True, machine="sparc64")


def test_settings_offer_exactly_the_groups_that_can_be_allowed() -> None:
    assert get_args(AllowedCalls) == ALLOWABLE_GROUPS


@pytest.mark.skipif(not has_filter(), reason="no filter for this architecture")
def test_the_kernel_takes_the_filter_and_programs_go_on() -> None:
    """In a process of its own: a filter cannot be taken off again."""
    script = (
        "import launcher, os, ctypes, errno\n"
        f"launcher.prctl(38, 1, 'no new privileges'); launcher.install_filter({build_filter()!r})\n"
        "number = {'x86_64': 425, 'aarch64': 425}[os.uname().machine]\n"
        "assert ctypes.CDLL(None, use_errno=True).syscall(number, 1, 0) == -1 and ctypes.get_errno() == errno.ENOSYS\n"
        "import threading; thread = threading.Thread(target=print, args=('went on',)); thread.start(); thread.join()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(build_launcher_command("main")[-1]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "went on\n", done.stderr
