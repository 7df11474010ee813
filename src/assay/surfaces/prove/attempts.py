"""What a hostile check tries, as programs that are run as one. Each says `through` or `held` for what it tried.

They get what they need to know (paths, ports, names) from `known.json` beside them.
"""

from __future__ import annotations

from typing import Final

DOORS: Final = '''
import ctypes, glob, json, os, pathlib, socket

known = json.loads(pathlib.Path(__file__).with_name("known.json").read_text())
libc = ctypes.CDLL(None, use_errno=True)
REMOUNT, BIND = 32, 4096


def written(path):
    pathlib.Path(path).write_text("written by a check")


def mount():
    """Harmless where the mounts are the machine's own: an empty folder is covered, and uncovered at once."""
    if not known["own_mounts"]:
        at = known["mount_point"].encode()
        if libc.mount(b"none", at, b"tmpfs", 0, None) == 0:
            libc.umount(at)
            return True
        return False
    return any(libc.mount(b"none", b"/", None, flags, None) == 0 for flags in (REMOUNT, REMOUNT | BIND))


def connected(family, address, folder=None):
    if folder:
        os.chdir(folder)
    with socket.socket(family) as client:
        client.settimeout(3)
        client.connect(address)
    return True


def seen(mark):
    found = []
    for file in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            found.append(mark.encode() in pathlib.Path(file).read_bytes())
        except OSError:
            pass
    return any(found)


def attempt(name, function, *args):
    try:
        through = function(*args)
    except (OSError, ValueError) as error:
        through = False
    print(json.dumps({"name": name, "through": bool(through)}), flush=True)


attempt("mount", mount)
for name, path in known["writes"].items():
    attempt(name, written, path)
attempt("network", connected, socket.AF_INET, ("127.0.0.1", known["port"]))
attempt("abstract-socket", connected, socket.AF_UNIX, "\\0" + known["abstract"])
for name, folder in known["sockets"].items():
    attempt(name, connected, socket.AF_UNIX, "socket", folder)
attempt("processes", seen, known["bystander"])
attempt("state", os.listdir, known["state"])
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
    time.sleep(3)  # where nobody but the engine counts them, it does so twice a second
    print(json.dumps({"name": "crowd", "through": True}), flush=True)
finally:
    for child in children:
        os.kill(child, signal.SIGKILL)
"""

HOARD: Final = """
import json, pathlib

wanted = json.loads(pathlib.Path(__file__).with_name("known.json").read_text())["hoard_mb"]
hoard = []
for _ in range(wanted // 16):
    hoard.append(b"x" * (16 << 20))
print(json.dumps({"name": "hoard", "through": True}), flush=True)
"""

PROGRAMS: Final = {"doors.py": DOORS, "outlive.py": OUTLIVE, "crowd.py": CROWD, "hoard.py": HOARD}
