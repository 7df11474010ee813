"""Set up the restrictions of a check, then become the check: a program that imports no other module of ours.

    launcher.main() with the arguments SPEC LOG_FD PARENT_PID, in a Python without `site`: `process.py` starts it

In order: join the control groups, set rlimits, adopt orphans, arrange to end with the parent, and start a child that
either
- mounts throwaway layers in its own namespaces (for root: as a user without rights, see `unprivileged.py`), and becomes
  bubblewrap; or
- confines itself with Landlock and seccomp if requested, and becomes the check.

However it ends, also when the parent is killed, no descendant is left. A setup error is written to LOG_FD and ends with
exit code 125: the check never started.

This runs before every command of every check, so it imports little: `json`, `pathlib`, `signal` and `typing` would each
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

CLONE_NEWTIME, CLONE_NEWNS, CLONE_NEWUSER = 0x00000080, 0x00020000, 0x10000000
MS_REC, MS_PRIVATE, MS_NODEV, MS_NOSUID = 0x4000, 1 << 18, 4, 2
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 22, 24, 36, 38
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
# Architecture → number of keyctl; the calls above have the same number everywhere.
KEYCTL = {"x86_64": 250, "aarch64": 219}
SETUP_FAILED = 125

libc = ctypes.CDLL(None, use_errno=True)


class SandboxSetupError(Exception):
    pass


def check_result(result: int, what: str) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise SandboxSetupError(f"{what}: {os.strerror(error)}")
    return result


def prctl(option: int, value: int, what: str) -> None:
    check_result(libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), what)


def join_groups(files: list[str]) -> None:
    for file in files:
        with open(file, "w") as procs:  # noqa: PTH123
            procs.write(str(os.getpid()))


def enter_namespaces() -> None:
    """Enter a user namespace that allows mounts, with the same user and group as outside."""
    uid, gid = os.geteuid(), os.getegid()
    check_result(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS), "no user namespace")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
            file.write(text)
    mount("none", "/", None, MS_REC | MS_PRIVATE, None)
    enter_time_namespace()


def enter_time_namespace() -> None:
    """Request a time namespace for the next program, if the kernel has them; `proofstone prove`
    reports if it does not.
    """
    libc.unshare(CLONE_NEWTIME)


def join_empty_keyring() -> None:
    """Join a session keyring without keys: the inherited one may hold the user's keys."""
    number = KEYCTL.get(os.uname().machine)
    if number is not None:
        libc.syscall(number, 1, None)  # a kernel without keyrings has no keys to hide either


def enter_unprivileged(stage: dict[str, Any]) -> None:
    """As root: mount what the sandbox needs below the stage, and become a user that owns nothing on this machine."""
    check_result(libc.unshare(CLONE_NEWNS), "no mount namespace")
    mount("none", "/", None, MS_REC | MS_PRIVATE, None)
    namespace = create_mapped_namespace(stage["first_id"], stage["id_count"])
    trees = [copy_mapped_mount(mount_spec, namespace, stage["first_id"]) for mount_spec in stage["mounts"]]
    mount("tmpfs", stage["at"], "tmpfs", MS_NODEV | MS_NOSUID, "mode=0755")
    for folder in stage["folders"]:
        os.makedirs(folder)  # noqa: PTH103
    for mount_spec, tree in zip(stage["mounts"], trees, strict=True):
        attach(tree, mount_spec["target"])
    os.setgroups([])
    check_result(libc.setns(namespace, CLONE_NEWUSER), "cannot enter the user namespace")
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL, "cannot die with the supervisor")  # a change of user resets it
    check_result(libc.unshare(CLONE_NEWNS), "no mount namespace")
    enter_time_namespace()


def create_mapped_namespace(first: int, count: int) -> int:
    """Return a descriptor of a user namespace whose ids, from 0 on, stand for `count` ids of the machine."""
    ready_read, ready_write = os.pipe()
    finish_read, finish_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(finish_write)
        failed = libc.unshare(CLONE_NEWUSER) < 0
        os.write(ready_write, bytes([ctypes.get_errno() if failed else 0]))
        os.read(finish_read, 1)  # until the parent closes its end
        os._exit(0)
    os.close(ready_write)
    try:
        error = os.read(ready_read, 1)
        if error != b"\0":
            raise SandboxSetupError(f"no user namespace: {os.strerror(error[0]) if error else 'its process ended'}")
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{child}/{name}", "w") as file:  # noqa: PTH123
                file.write(f"0 {first} {count}")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY)
    finally:
        for descriptor in (ready_read, finish_read, finish_write):
            os.close(descriptor)
        os.waitpid(child, 0)


def copy_mapped_mount(mount_spec: dict[str, Any], namespace: int, first: int) -> int:
    """Return a descriptor of a detached copy of a mount, with owners mapped.

    Where the file system cannot map owners, the engine's own files change their owner, and others keep theirs: the
    sandbox then reads only what every user can read.
    """
    recursive = 0x8000 if mount_spec["recursive"] else 0
    source = mount_spec["source"]
    result = libc.syscall(OPEN_TREE, -100, os.fsencode(source), ctypes.c_uint(1 | os.O_CLOEXEC | recursive))
    tree = check_result(result, f"cannot show {source} to the sandbox")
    attributes = struct.pack("QQQQ", 0x100000, 0, 0, namespace)
    size = ctypes.c_size_t(len(attributes))
    if (
        libc.syscall(MOUNT_SETATTR, tree, b"", ctypes.c_uint(0x1000 | recursive), attributes, size) < 0
        and mount_spec["own"]
    ):
        change_owner(source, first)
    return tree


def attach(tree: int, target: str) -> None:
    """Attach a copied mount at a path that does not exist yet."""
    if os.fstat(tree).st_mode & 0o170000 == 0o040000:
        os.mkdir(target)  # noqa: PTH102
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    check_result(
        libc.syscall(MOVE_MOUNT, tree, b"", -100, os.fsencode(target), ctypes.c_uint(4)), f"cannot stage {target}"
    )


def change_owner(path: str, owner: int) -> None:
    """Change the owner of everything below one of the engine's own paths."""
    os.chown(path, owner, owner, follow_symlinks=False)
    if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
        with os.scandir(path) as entries:
            for entry in entries:
                change_owner(entry.path, owner)


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None) -> None:
    def encoded(text: str | None) -> bytes | None:
        return os.fsencode(text) if text is not None else None

    result = libc.mount(encoded(source), encoded(target), encoded(kind), ctypes.c_ulong(flags), encoded(options))
    check_result(result, f"cannot mount {kind or 'private'} on {target}")


def mount_layer(layer: dict[str, Any]) -> None:
    """Mount an overlay whose writes are discarded. Paths are passed as file descriptors, so nothing needs escaping."""
    if layer["memory"]:
        size = f",size={layer['size_mb']}m" if layer["size_mb"] else ""
        mount("tmpfs", layer["scratch"], "tmpfs", MS_NODEV | MS_NOSUID, f"mode=0700{size}")
    upper, work = f"{layer['scratch']}/upper", f"{layer['scratch']}/work"
    os.makedirs(upper, exist_ok=True)  # noqa: PTH103
    os.makedirs(work, exist_ok=True)  # noqa: PTH103
    lower = [f"/proc/self/fd/{os.open(path, os.O_PATH | os.O_DIRECTORY)}" for path in layer["lower"]]
    top = [f"/proc/self/fd/{os.open(path, os.O_PATH | os.O_DIRECTORY)}" for path in (upper, work)]
    options = f"userxattr,lowerdir={':'.join(lower)},upperdir={top[0]},workdir={top[1]}"
    mount("overlay", layer["at"], "overlay", 0, options)


def prepare(spec: dict[str, Any]) -> None:
    """Enter the namespaces that bubblewrap is started in, with their mounts."""
    if spec.get("stage"):
        enter_unprivileged(spec["stage"])
    elif spec["layers"] or spec.get("namespaces"):
        enter_namespaces()
    for layer in spec["layers"]:
        mount_layer(layer)


def try_setup() -> None:
    """For `probe.py`: set up what a spec requests, and become its command. A failure shows in the exit code."""
    with open(sys.argv[1], "rb") as file:  # noqa: PTH123
        spec = marshal.load(file)  # noqa: S302  our own, written a moment ago
    prepare(spec)
    execute(spec["argv"], None, dict(os.environ))


def execute(argv: list[str], cwd: str | None, env: dict[str, str]) -> NoReturn:
    if cwd:
        os.chdir(cwd)
    os.execvpe(argv[0], argv, env)


# Every right to change the file system, by the version of Landlock that introduced it.
_WRITE_RIGHTS = {1: [1, 4, 5, 6, 7, 8, 9, 10, 11, 12], 2: [13], 3: [14]}
_FILE_RIGHTS = (1 << 1) | (1 << 14)


def restrict_writes(writable: list[str]) -> None:
    """Allow writes only to `writable` from here on."""
    version = check_result(libc.syscall(LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1), "no Landlock")
    rights = 0
    for since, bits in _WRITE_RIGHTS.items():
        if version >= since:
            rights |= sum(1 << bit for bit in bits)
    attributes = struct.pack("Q", rights)
    ruleset = check_result(
        libc.syscall(LANDLOCK_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0), "Landlock ruleset"
    )
    for path in writable:
        descriptor = os.open(path, os.O_PATH)
        allowed = rights if os.path.isdir(path) else rights & _FILE_RIGHTS  # noqa: PTH112
        rule = struct.pack("=Qi", allowed, descriptor)
        check_result(libc.syscall(LANDLOCK_ADD, ruleset, 1, rule, 0), f"Landlock rule for {path}")
        os.close(descriptor)
    check_result(libc.syscall(LANDLOCK_RESTRICT, ruleset, 0), "Landlock restriction")


def install_filter(code: bytes) -> None:
    """Install a seccomp filter: from here on, the kernel checks every system call with it."""
    buffer = ctypes.create_string_buffer(code)
    header = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    check_result(libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(2), header, 0, 0), "seccomp filter")


def drop_capabilities() -> None:
    """Give up all capabilities, also for child processes: for root where there are no namespaces."""
    for number in range(64):
        if libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(number), 0, 0, 0) < 0:
            break  # past the last capability that this kernel knows
    header, none = struct.pack("Ii", 0x20080522, 0), struct.pack("6I", *[0] * 6)
    check_result(libc.capset(header, none), "cannot give up capabilities")


def find_all_descendants() -> list[int]:
    """Return all processes below this one, found by parent; orphans are included because this process adopts them."""
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
    result, pending = [], [os.getpid()]
    while pending:
        below = parents.get(pending.pop(), [])
        result += below
        pending += below
    return result


def kill_descendants() -> None:
    for _ in range(200):
        alive = find_all_descendants()
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
        kill_descendants()
        os._exit(124)

    signal.signal(signal.SIGTERM, stop)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM, "cannot die with the parent")
    if os.getppid() != parent:
        os._exit(124)  # the parent had ended before the request
    child = os.fork()
    if child == 0:
        # A check behaves the same whether Proofstone was started with `nohup`, in the background of a script, or
        # neither.
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        with SetupErrorLog(log):
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL, "cannot die with the supervisor")
            join_empty_keyring()
            prepare(spec)
            if spec["confine"]:
                confine(spec)
            execute(add_filter(spec), spec["cwd"], spec["env"])
    status = wait_for(child)
    kill_descendants()
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def confine(spec: dict[str, Any]) -> None:
    prctl(PR_SET_NO_NEW_PRIVS, 1, "cannot refuse new privileges")
    if spec["landlock"]:
        restrict_writes(spec["writable"])
        if os.geteuid() == 0:
            drop_capabilities()
    if spec["filter"]:
        install_filter(spec["filter"])


def add_filter(spec: dict[str, Any]) -> list[str]:
    """Return the command. Bubblewrap gets the seccomp filter in a descriptor, because it must still mount by itself."""
    argv: list[str] = spec["argv"]
    if spec["confine"] or not spec.get("filter"):
        return argv
    descriptor = os.memfd_create("filter", 0)
    os.write(descriptor, spec["filter"])
    os.lseek(descriptor, 0, os.SEEK_SET)
    return [argv[0], "--seccomp", str(descriptor), *argv[1:]]


def wait_for(child: int) -> int:
    """Return the child's status; orphans that end meanwhile are reaped on the way."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            return status


class SetupErrorLog:
    """Write a setup error to the log and exit, so that the check does not start."""

    def __init__(self, log: int) -> None:
        self.log = log

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (SandboxSetupError, OSError)):
            os.write(self.log, f"{error}\n".encode("utf-8", "replace"))
            os._exit(SETUP_FAILED)


def main() -> NoReturn:
    spec_file, log, parent = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with open(spec_file, "rb") as file:  # noqa: PTH123
        spec = marshal.load(file)  # noqa: S302  our own, written a moment ago
    with SetupErrorLog(log):
        os.set_inheritable(log, False)
        join_groups(spec["groups"])
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        supervise(spec, log, parent)
    raise AssertionError("unreachable")
