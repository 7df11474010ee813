"""The attempts of a hostile check, as programs that run as checks. Each attempt prints whether it got through.

The programs read the paths, ports and names that they need from `known.json` in their folder.
"""

from __future__ import annotations

from typing import Final

DOORS: Final = '''
import ctypes, glob, json, os, pathlib, socket

known = json.loads(pathlib.Path(__file__).with_name("known.json").read_text())
libc = ctypes.CDLL(None, use_errno=True)
REMOUNT, BIND = 32, 4096


def write(path):
    pathlib.Path(path).write_text("written by a check")


def mount():
    """Harmless where the mounts belong to the machine: an empty folder is mounted over and unmounted at once."""
    if not known["own_mounts"]:
        at = known["mount_point"].encode()
        if libc.mount(b"none", at, b"tmpfs", 0, None) == 0:
            libc.umount(at)
            return True
        return False
    return any(libc.mount(b"none", b"/", None, flags, None) == 0 for flags in (REMOUNT, REMOUNT | BIND))


def connect(family, address, folder=None):
    if folder:
        os.chdir(folder)
    with socket.socket(family) as client:
        client.settimeout(3)
        client.connect(address)
    return True


def find_process(mark):
    found = []
    for file in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            found.append(mark.encode() in pathlib.Path(file).read_bytes())
        except OSError:
            pass
    return any(found)


def read_any(paths):
    for path in paths:
        try:
            if pathlib.Path(path).read_bytes():
                return True
        except OSError:
            pass
    return False


def trace(pid):
    """Return whether a process of the machine can be signalled or traced. It is released at once."""
    try:
        os.kill(pid, 0)
        return True
    except OSError:
        pass
    if libc.ptrace(16, pid, None, None) == 0:
        libc.ptrace(17, pid, None, None)
        return True
    return False


def attempt(name, function, *args):
    try:
        through = function(*args)
    except (OSError, ValueError) as error:
        through = False
    print(json.dumps({"name": name, "through": bool(through)}), flush=True)


attempt("mount", mount)
for name, path in known["writes"].items():
    attempt(name, write, path)
attempt("network", connect, socket.AF_INET, ("127.0.0.1", known["port"]))
attempt("abstract-socket", connect, socket.AF_UNIX, "\\0" + known["abstract"])
for name, folder in known["sockets"].items():
    attempt(name, connect, socket.AF_UNIX, "socket", folder)
attempt("processes", find_process, known["bystander"])
attempt("state", os.listdir, known["state"])
attempt("trace", trace, known["bystander_pid"])
for name in ("read-root", "read-root-home", "credentials"):
    if known[name]:
        attempt(name, read_any, known[name])
'''

KERNEL: Final = '''
import ctypes, errno, glob, json, os, pathlib, platform, subprocess, sys, time

known = json.loads(pathlib.Path(__file__).with_name("known.json").read_text())
libc = ctypes.CDLL(None, use_errno=True)
CALLS = {
    "x86_64": {"keyctl": 250, "perf": 298, "bpf": 321, "userfaultfd": 323},
    "aarch64": {"keyctl": 219, "perf": 241, "bpf": 280, "userfaultfd": 282},
}.get(platform.machine(), {}) | {"io_uring": 425}
REFUSED = (errno.EPERM, errno.ENOSYS, errno.EACCES)
NEW_USER_NAMESPACE, SESSION_KEYRING = 0x10000000, -3


def say(name, through):
    print(json.dumps({"name": name, "through": bool(through)}), flush=True)


def answered(name, *args):
    """Return whether the kernel accepted the call, even if it refused the arguments."""
    if name not in CALLS:
        return False
    return libc.syscall(CALLS[name], *args) >= 0 or ctypes.get_errno() not in REFUSED


def openable(patterns):
    """Return whether a file of the kernel can be opened for writing. Nothing is written."""
    for pattern in patterns:
        for file in glob.iglob(pattern, recursive=True):
            try:
                os.close(os.open(file, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                continue
            return True
    return False


def new_user_namespace():
    child = os.fork()
    if child == 0:
        os._exit(0 if libc.unshare(NEW_USER_NAMESPACE) == 0 else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def session_key():
    """Return whether the key can be read, found in our session or by its number in the kernel's list."""
    number, read, search = CALLS.get("keyctl"), 11, 10
    if number is None:
        return False
    serials = [libc.syscall(number, search, SESSION_KEYRING, b"user", known["key"].encode(), 0)]
    for line in pathlib.Path("/proc/keys").read_text().splitlines() if os.access("/proc/keys", os.R_OK) else ():
        if known["key"] in line:
            serials.append(int(line.split()[0], 16))
    content = ctypes.create_string_buffer(16)
    return any(serial > 0 and libc.syscall(number, read, serial, content, 16) > 0 for serial in serials)


def shared_memory():
    return libc.shmget(known["shared_memory"], 0, 0) >= 0


def own_clock():
    try:
        return os.stat("/proc/self/ns/time").st_ino == known["time_namespace"]
    except OSError:
        return False


attribute = ctypes.create_string_buffer(bytes([1, 0, 0, 0, 112, 0, 0, 0]) + bytes(104))
say("kernel-settings", openable(["/proc/sys/kernel/*", "/proc/sys/vm/*", "/proc/sys/fs/*", "/proc/sysrq-trigger"]))
say("sysfs", openable(["/sys/kernel/*", "/sys/kernel/mm/**", "/sys/power/*", "/sys/module/*/parameters/*"]))
say("control-groups", openable(["/sys/fs/cgroup/**/cgroup.procs"]))
say("user-namespace", new_user_namespace())
say("bpf", answered("bpf", 0, None, 0))
say("userfaultfd", answered("userfaultfd", 1))
say("perf", answered("perf", attribute, 0, -1, -1, 0))
say("io_uring", answered("io_uring", 1, ctypes.create_string_buffer(120)))
say("keyring", answered("keyctl", 0, SESSION_KEYRING, 0))
if known["key"]:
    say("session-key", session_key())
if known["shared_memory"]:
    say("shared-memory", shared_memory())
say("time", own_clock())
watched = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1)", known["watched"]])
watched.wait()
'''

OUTLIVE: Final = """
import json, os, pathlib, subprocess, sys

mark = json.loads(pathlib.Path(__file__).with_name("known.json").read_text())["outliving"]
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(120)", mark])
    os._exit(0)
"""

CROWD: Final = """
import json, os, pathlib, signal, time

wanted = json.loads(pathlib.Path(__file__).with_name("known.json").read_text())["crowd"]
children = []
try:
    for _ in range(wanted):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        children.append(child)
    time.sleep(3)  # where only the engine counts the processes, it does so twice a second
    print(json.dumps({"name": "crowd", "through": True}), flush=True)
finally:
    for child in children:
        os.kill(child, signal.SIGKILL)
"""

HOARD: Final = """
import json, pathlib, time

wanted = json.loads(pathlib.Path(__file__).with_name("known.json").read_text())["hoard_mb"]
hoard = []
for _ in range(wanted // 16):
    hoard.append(b"x" * (16 << 20))
time.sleep(3)  # where only the engine measures the memory, it does so twice a second
print(json.dumps({"name": "hoard", "through": True}), flush=True)
"""

FILL: Final = """
import json, os, pathlib, time

wanted = json.loads(pathlib.Path(__file__).with_name("known.json").read_text())["fill_mb"]
try:
    with open("filled", "wb") as file:
        for _ in range(wanted):
            file.write(os.urandom(1 << 20))
    with open("/tmp/filled", "wb") as file:
        for _ in range(wanted):
            file.write(os.urandom(1 << 20))
except OSError:
    raise SystemExit(1)
time.sleep(3)  # the engine measures twice a second
print(json.dumps({"name": "fill", "through": True}), flush=True)
"""

PROGRAMS: Final = {
    "doors.py": DOORS,
    "kernel.py": KERNEL,
    "outlive.py": OUTLIVE,
    "crowd.py": CROWD,
    "hoard.py": HOARD,
    "fill.py": FILL,
}
