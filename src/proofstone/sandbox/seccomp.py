"""The seccomp filter of a sandbox: the system calls that no check needs, as data, and the program for the kernel.

A refused call returns an error and the program continues. `EPERM` means that the call is forbidden, `ENOSYS` that it is
not available: programs that can work without the call, such as runtimes that would use io_uring, then fall back.
`sandbox.allow` in the settings allows a group again, for projects that are about these calls.

`ptrace` is allowed: the pid namespace shows a check only its own processes, and leak detectors and debuggers need it.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from proofstone.errors import SandboxError

NAMESPACES: Final = "namespaces"


@dataclass(frozen=True)
class CallGroup:
    """System calls that are refused together."""

    name: str
    purpose: str
    error: int
    calls: tuple[str, ...]
    can_be_allowed: bool = True


CALL_GROUPS: Final = (
    CallGroup(
        NAMESPACES,
        "mounting file systems and creating namespaces",
        errno.EPERM,
        (
            "mount", "umount", "umount2", "pivot_root", "setns", "open_tree", "move_mount", "fsopen", "fsconfig",
            "fsmount", "fspick", "mount_setattr", "open_tree_attr",
        ),
    ),
    CallGroup("bpf", "loading programs into the kernel", errno.EPERM, ("bpf",)),
    CallGroup("keyring", "the kernel's keyrings", errno.ENOSYS, ("add_key", "request_key", "keyctl")),
    CallGroup("userfaultfd", "handling page faults in user space", errno.ENOSYS, ("userfaultfd",)),
    CallGroup("perf", "performance counters", errno.EPERM, ("perf_event_open",)),
    CallGroup(
        "io_uring",
        "asynchronous input and output by io_uring",
        errno.ENOSYS,
        ("io_uring_setup", "io_uring_enter", "io_uring_register"),
    ),
    CallGroup(
        "administration",
        "administering the machine: its clock, kernel modules, swap, host name, quotas and log",
        errno.EPERM,
        (
            "swapon", "swapoff", "reboot", "sethostname", "setdomainname", "init_module", "finit_module",
            "delete_module", "kexec_load", "kexec_file_load", "quotactl", "quotactl_fd", "acct", "settimeofday",
            "stime", "clock_settime", "clock_settime64", "iopl", "ioperm", "open_by_handle_at", "lookup_dcookie",
            "syslog", "vhangup", "nfsservctl",
        ),
        can_be_allowed=False,
    ),
)  # fmt: skip
ALLOWABLE_GROUPS: Final = tuple(group.name for group in CALL_GROUPS if group.can_be_allowed)

_NEW_USER_NAMESPACE: Final = 0x10000000
_COMMON_NUMBERS: Final = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "mount_setattr": 442,
    "quotactl_fd": 443, "open_tree_attr": 467,
}  # fmt: skip
"""Calls that have the same number on every architecture."""


@dataclass(frozen=True)
class Architecture:
    """The kernel's id of an architecture in a filter, and the numbers of its calls."""

    audit: int
    numbers: Mapping[str, int]
    has_x32: bool = False
    """Whether there is a second set of numbers for the same calls, as on x86-64; all of them are refused."""


_X86_64: Final = Architecture(
    0xC000003E,
    {
        "socket": 41, "clone": 56, "syslog": 103, "vhangup": 153, "pivot_root": 155, "acct": 163, "settimeofday": 164,
        "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170,
        "setdomainname": 171, "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179,
        "nfsservctl": 180, "lookup_dcookie": 212, "clock_settime": 227, "kexec_load": 246, "add_key": 248,
        "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298, "open_by_handle_at": 304,
        "setns": 308, "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323, **_COMMON_NUMBERS,
    },
    has_x32=True,
)  # fmt: skip
_I386: Final = Architecture(
    0x40000003,
    {
        "mount": 21, "umount": 22, "stime": 25, "acct": 51, "umount2": 52, "sethostname": 74, "settimeofday": 79,
        "swapon": 87, "reboot": 88, "ioperm": 101, "syslog": 103, "iopl": 110, "vhangup": 111, "swapoff": 115,
        "clone": 120, "setdomainname": 121, "init_module": 128, "delete_module": 129, "quotactl": 131,
        "nfsservctl": 169, "pivot_root": 217, "lookup_dcookie": 253, "clock_settime": 264, "kexec_load": 283,
        "add_key": 286, "request_key": 287, "keyctl": 288, "unshare": 310, "perf_event_open": 336,
        "open_by_handle_at": 342, "setns": 346, "finit_module": 350, "bpf": 357, "userfaultfd": 374,
        "clock_settime64": 404, **_COMMON_NUMBERS,
    },
)  # fmt: skip
_AARCH64: Final = Architecture(
    0xC00000B7,
    {
        "lookup_dcookie": 18, "umount2": 39, "mount": 40, "pivot_root": 41, "nfsservctl": 42, "vhangup": 58,
        "quotactl": 60, "acct": 89, "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106,
        "clock_settime": 112, "syslog": 116, "reboot": 142, "sethostname": 161, "setdomainname": 162,
        "settimeofday": 170, "socket": 198, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220,
        "swapon": 224, "swapoff": 225, "perf_event_open": 241, "open_by_handle_at": 265, "setns": 268,
        "finit_module": 273, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294, **_COMMON_NUMBERS,
    },
)  # fmt: skip
_ARCHITECTURES: Final[Mapping[str, tuple[Architecture, ...]]] = {"x86_64": (_X86_64, _I386), "aarch64": (_AARCH64,)}
"""By the machine's name: its own architecture first, then others whose programs it also runs."""

_SOCKET_FAMILIES: Final = (1, 2, 10, 16, 17)  # unix, inet, inet6, netlink, packet
_LOAD, _JUMP, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_X32_NUMBERS: Final = 0x40000000

Instruction = tuple[int, int, int, int]
"""Operation, jump if true, jump if false, operand."""


def has_filter(machine: str | None = None) -> bool:
    """Return whether there is a filter for this machine's architecture."""
    return (machine or os.uname().machine) in _ARCHITECTURES


def build_filter(
    allowed: frozenset[str] = frozenset(), *, without_sockets: bool = False, machine: str | None = None
) -> bytes:
    """Return the filter program, as bytes for the kernel; empty if there is none for this architecture.

    `allowed` names groups that are not refused. `without_sockets` also refuses sockets that leave the process, for
    levels without a network namespace; programs of a second architecture are then killed, because that architecture
    opens sockets by other calls.
    """
    machine = machine or os.uname().machine
    architectures = _ARCHITECTURES.get(machine, ())
    if without_sockets and not architectures:
        raise SandboxError(f"Proofstone cannot block sockets on {machine}, because it has no seccomp filter for it")
    program: list[Instruction] = []
    for architecture in architectures[:1] if without_sockets else architectures:
        body = list(_build_instructions(architecture, allowed, without_sockets=without_sockets))
        program += [
            (_LOAD, 0, 0, _ARCHITECTURE_AT),
            (_EQUAL, 1, 0, architecture.audit),
            (_JUMP, 0, 0, len(body)),
            *body,
        ]
    if program:
        program.append((_RETURN, 0, 0, _KILL))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)


def _build_instructions(
    architecture: Architecture, allowed: frozenset[str], *, without_sockets: bool
) -> Iterator[Instruction]:
    """Yield the instructions for one architecture; each refusal is a comparison and a return."""
    numbers = architecture.numbers
    yield (_LOAD, 0, 0, _NUMBER_AT)
    if architecture.has_x32:
        yield (_AT_LEAST, 0, 1, _X32_NUMBERS)
        yield (_RETURN, 0, 0, _ERROR | errno.ENOSYS)
    for group in CALL_GROUPS:
        for call in group.calls if group.name not in allowed else ():
            if call in numbers:
                yield (_EQUAL, 0, 1, numbers[call])
                yield (_RETURN, 0, 0, _ERROR | group.error)
    if NAMESPACES not in allowed:
        # The flags of clone3 are in memory, which a filter cannot read: libraries fall back to clone.
        yield (_EQUAL, 0, 1, numbers["clone3"])
        yield (_RETURN, 0, 0, _ERROR | errno.ENOSYS)
        for call in ("clone", "unshare"):
            yield (_EQUAL, 0, 4, numbers[call])
            yield (_LOAD, 0, 0, _FIRST_ARGUMENT_AT)
            yield (_ANY_BIT, 0, 1, _NEW_USER_NAMESPACE)
            yield (_RETURN, 0, 0, _ERROR | errno.EPERM)
            yield (_RETURN, 0, 0, _ALLOW)
    if without_sockets:
        families = len(_SOCKET_FAMILIES)
        yield (_EQUAL, 0, families + 3, numbers["socket"])
        yield (_LOAD, 0, 0, _FIRST_ARGUMENT_AT)
        for index, family in enumerate(_SOCKET_FAMILIES):
            yield (_EQUAL, families - index, 0, family)
        yield (_RETURN, 0, 0, _ALLOW)
        yield (_RETURN, 0, 0, _ERROR | errno.EACCES)
    yield (_RETURN, 0, 0, _ALLOW)
