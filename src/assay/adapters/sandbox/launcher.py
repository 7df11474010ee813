"""Sets up what a check must not see or exceed, then becomes it: a program of its own that imports nothing of ours.

    launcher.main() with the arguments SPEC LOG_FD PARENT_PID, in a Python without `site`: `process.py` starts it

In order: join the control groups, set rlimits, adopt orphans, end with the parent, and start a child that either
- mounts throwaway layers in a user and mount namespace of its own, and becomes bubblewrap; or
- confines itself with Landlock and seccomp where asked, and becomes the check.
However it ends, and also when the parent is killed, no descendant is left.
What goes wrong here is written to LOG_FD and ends with exit code 125: the check never started.

It runs before every command of every check, so it imports little: `json`, `pathlib`, `signal` and `typing` would each
take a good part of its time. The spec is marshalled, by the same Python that reads it.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import resource
import struct
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any, NoReturn
else:
    import _signal as signal  # the same without `enum`

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_REC, MS_PRIVATE, MS_NODEV, MS_NOSUID = 0x4000, 1 << 18, 4, 2
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 22, 36, 38
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
SETUP_FAILED = 125

libc = ctypes.CDLL(None, use_errno=True)


class SetupError(Exception):
    pass


def checked(result: int, what: str) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise SetupError(f"{what}: {os.strerror(error)}")
    return result


def prctl(option: int, value: int, what: str) -> None:
    checked(libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), what)


def join_groups(files: list[str]) -> None:
    for file in files:
        with open(file, "w") as procs:  # noqa: PTH123
            procs.write(str(os.getpid()))


def own_namespaces() -> None:
    """A user namespace in which we may mount, with the same user and group as outside."""
    uid, gid = os.geteuid(), os.getegid()
    checked(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS), "no user namespace")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
            file.write(text)
    mount("none", "/", None, MS_REC | MS_PRIVATE, None)


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None) -> None:
    def encoded(text: str | None) -> bytes | None:
        return os.fsencode(text) if text is not None else None

    result = libc.mount(encoded(source), encoded(target), encoded(kind), ctypes.c_ulong(flags), encoded(options))
    checked(result, f"cannot mount {kind or 'private'} on {target}")


def mount_layer(layer: dict[str, Any]) -> None:
    """An overlay whose writes are thrown away. Paths go in as file descriptors: nothing needs escaping."""
    if layer["memory"]:
        mount("tmpfs", layer["scratch"], "tmpfs", MS_NODEV | MS_NOSUID, "mode=0700")
    upper, work = f"{layer['scratch']}/upper", f"{layer['scratch']}/work"
    os.makedirs(upper, exist_ok=True)  # noqa: PTH103
    os.makedirs(work, exist_ok=True)  # noqa: PTH103
    lower = [f"/proc/self/fd/{os.open(path, os.O_PATH | os.O_DIRECTORY)}" for path in layer["lower"]]
    top = [f"/proc/self/fd/{os.open(path, os.O_PATH | os.O_DIRECTORY)}" for path in (upper, work)]
    options = f"userxattr,lowerdir={':'.join(lower)},upperdir={top[0]},workdir={top[1]}"
    mount("overlay", layer["at"], "overlay", 0, options)


def try_layer() -> None:
    """For `probe.py`: mount a layer and write to it. That it does not go is seen in the exit code."""
    lower, at, scratch, kind = sys.argv[1:]
    own_namespaces()
    mount_layer({"lower": [lower], "at": at, "scratch": scratch, "memory": kind == "memory"})
    with open(f"{at}/written", "w"):  # noqa: PTH123
        pass


def become(argv: list[str], cwd: str | None, env: dict[str, str]) -> NoReturn:
    if cwd:
        os.chdir(cwd)
    os.execvpe(argv[0], argv, env)


# Every right to change the file system, in the order in which the kernel's versions learned them.
_WRITE_RIGHTS = {1: [1, 4, 5, 6, 7, 8, 9, 10, 11, 12], 2: [13], 3: [14]}
_FILE_RIGHTS = (1 << 1) | (1 << 14)


def landlock(writable: list[str]) -> None:
    """From here on, only `writable` can be written to."""
    version = checked(libc.syscall(LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1), "no Landlock")
    rights = 0
    for since, bits in _WRITE_RIGHTS.items():
        if version >= since:
            rights |= sum(1 << bit for bit in bits)
    attributes = struct.pack("Q", rights)
    ruleset = checked(
        libc.syscall(LANDLOCK_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0), "Landlock ruleset"
    )
    for path in writable:
        descriptor = os.open(path, os.O_PATH)
        allowed = rights if os.path.isdir(path) else rights & _FILE_RIGHTS  # noqa: PTH112
        rule = struct.pack("=Qi", allowed, descriptor)
        checked(libc.syscall(LANDLOCK_ADD, ruleset, 1, rule, 0), f"Landlock rule for {path}")
        os.close(descriptor)
    checked(libc.syscall(LANDLOCK_RESTRICT, ruleset, 0), "Landlock restriction")


# Architecture → (audit number, number of the socket call).
_ARCHITECTURES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
_SOCKET_FAMILIES = (1, 2, 10, 16, 17)  # unix, inet, inet6, netlink, packet


def no_sockets() -> None:
    """seccomp: the families that lead off this process are refused with EACCES. Socket pairs stay."""
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        raise SetupError(f"no seccomp filter for {machine}")
    audit, socket_call = _ARCHITECTURES[machine]
    load, equal, over, give = 0x20, 0x15, 0x35, 0x06
    refuse, allow, kill = 0x00050000 | 13, 0x7FFF0000, 0x80000000
    families = len(_SOCKET_FAMILIES)
    program = [(load, 0, 0, 4), (equal, 1, 0, audit), (give, 0, 0, kill), (load, 0, 0, 0)]
    program += [(over, 0, 1, 0x40000000), (give, 0, 0, refuse)]  # the x32 numbers would walk around the rest
    program += [(equal, 0, families + 1, socket_call), (load, 0, 0, 16)]
    program += [(equal, families - at, 0, family) for at, family in enumerate(_SOCKET_FAMILIES)]
    program += [(give, 0, 0, allow), (give, 0, 0, refuse)]
    code = b"".join(struct.pack("HBBI", *line) for line in program)
    buffer = ctypes.create_string_buffer(code)
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
    checked(libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(2), header, 0, 0), "seccomp filter")


def descendants() -> list[int]:
    """Everything below us, found by parent; orphans are ours since we adopt them."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(name))
    found, waiting = [], [os.getpid()]
    while waiting:
        below = parents.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def leave_nothing() -> None:
    for _ in range(200):
        alive = descendants()
        for pid in alive:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)


def supervise(spec: dict[str, Any], log: int, parent: int) -> NoReturn:
    prctl(PR_SET_CHILD_SUBREAPER, 1, "cannot adopt orphans")

    def stop(_number: int, _frame: object) -> None:
        leave_nothing()
        os._exit(124)

    signal.signal(signal.SIGTERM, stop)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM, "cannot die with the parent")
    if os.getppid() != parent:
        os._exit(124)  # it was gone before we asked to be told
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with reporting(log):
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL, "cannot die with the supervisor")
            if spec["layers"]:
                own_namespaces()
                for layer in spec["layers"]:
                    mount_layer(layer)
            if spec["confine"]:
                confine(spec)
            become(spec["argv"], spec["cwd"], spec["env"])
    status = wait_for(child)
    leave_nothing()
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def confine(spec: dict[str, Any]) -> None:
    prctl(PR_SET_NO_NEW_PRIVS, 1, "cannot refuse new privileges")
    if spec["landlock"]:
        landlock(spec["writable"])
    if spec["no_sockets"]:
        no_sockets()


def wait_for(child: int) -> int:
    """The child's status; orphans that end meanwhile are taken in on the way."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            return status


class reporting:  # noqa: N801  reads as a word where it is used
    """What goes wrong is said on the log, and the check does not start."""

    def __init__(self, log: int) -> None:
        self.log = log

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (SetupError, OSError)):
            os.write(self.log, f"{error}\n".encode("utf-8", "replace"))
            os._exit(SETUP_FAILED)


def main() -> NoReturn:
    spec_file, log, parent = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with open(spec_file, "rb") as file:  # noqa: PTH123
        spec = marshal.load(file)  # noqa: S302  our own, written a moment ago
    with reporting(log):
        os.set_inheritable(log, False)
        join_groups(spec["groups"])
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        supervise(spec, log, parent)
    raise AssertionError("unreachable")
