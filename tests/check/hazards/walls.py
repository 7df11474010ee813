"""Things a hostile check tries, each a Python program that prints `through` if it got there and `held` if not."""

from __future__ import annotations

ATTEMPT = """
import ctypes, os, pathlib, signal, socket, sys
def attempt():
{body}
try:
    print('through' if attempt() else 'held')
except (OSError, ValueError) as error:
    print('held', type(error).__name__, error)
"""


def program(*lines: str) -> str:
    """A script around the body of a function that returns whether the wall gave way."""
    return ATTEMPT.format(body="\n".join(f"    {line}" for line in lines))


def connect_unix(address: str) -> str:
    return program("s = socket.socket(socket.AF_UNIX)", f"s.connect({address!r})", "return s.recv(5) == b'hello'")


def connect_tcp(port: int) -> str:
    return program(f"s = socket.create_connection(('127.0.0.1', {port}), 3)", "return s.recv(5) == b'hello'")


def read(path: str) -> str:
    return program(f"return bool(pathlib.Path({path!r}).read_bytes())")


def write(path: str) -> str:
    return program(f"pathlib.Path({path!r}).write_text('written by a check')", "return True")


def kill(pid: int) -> str:
    return program(f"os.kill({pid}, signal.SIGTERM)", "return True")


def trace(pid: int) -> str:
    """PTRACE_ATTACH, which needs the right to see the process at all."""
    return program(
        "libc = ctypes.CDLL(None, use_errno=True)",
        f"if libc.ptrace(16, {pid}, 0, 0) == 0: return True",
        "raise OSError(ctypes.get_errno(), 'ptrace')",
    )


def mount(flags: int) -> str:
    """As root, `mount -o remount,rw /` (32 is MS_REMOUNT)."""
    return program(
        "libc = ctypes.CDLL(None, use_errno=True)",
        f"if libc.mount(b'none', b'/', None, {flags}, None) == 0: return True",
        "raise OSError(ctypes.get_errno(), 'mount')",
    )
