"""The kernel's keyring, by its system calls: a key there is in no file and gone when the machine is switched off."""

from __future__ import annotations

import ctypes
import os
import platform
from typing import Final

from proofstone.errors import MachineError

_CALLS: Final = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219), "riscv64": (217, 218, 219)}
"""Numbers of add_key, request_key and keyctl."""
_USER_KEYRING: Final = -4
_READ, _SETPERM = 11, 5
_ONLY_OWNER: Final = 0x3F3F0000
"""Everything to whoever possesses the key and to its owner, nothing to others."""
_MOST_BYTES: Final = 4096


def read_from_keyring(name: str) -> str:
    _, request, control = _numbers()
    key = _call(request, f"cannot find {name}", b"user", name.encode(), None, 0)
    buffer = ctypes.create_string_buffer(_MOST_BYTES)
    size = _call(control, f"cannot read {name}", _READ, key, buffer, _MOST_BYTES)
    return buffer.raw[:size].decode("ascii", "replace").strip()


def add_to_keyring(name: str, text: str) -> None:
    """Into the keyring of the user, where it stays until the machine restarts or the user's last process ends."""
    add, _, control = _numbers()
    data = text.encode("ascii")
    key = _call(add, f"cannot add {name}", b"user", name.encode(), data, len(data), _USER_KEYRING)
    _call(control, f"cannot protect {name}", _SETPERM, key, _ONLY_OWNER)


def _numbers() -> tuple[int, int, int]:
    try:
        return _CALLS[platform.machine()]
    except KeyError:
        raise MachineError(
            f"the kernel's keyring is not known on {platform.machine()}", hint="keep the key in a file"
        ) from None


def _call(number: int, what: str, *arguments: object) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    result = int(library.syscall(ctypes.c_long(number), *given))
    if result < 0:
        raise MachineError(
            f"the kernel's keyring {what}: {os.strerror(ctypes.get_errno())}",
            hint="`proofstone ledger init --keyring FILE` loads the key from a copy of it, after a restart for example",
        )
    return result
