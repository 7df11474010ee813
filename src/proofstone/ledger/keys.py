"""The key of a ledger, which authenticates its rows, and access to the kernel's keyring.

The key is a file beside the ledger that only its owner can read, or a key in the kernel's keyring whose name the file
holds. A sandbox sees neither. The key is created with the ledger and is on the disk before the first row. A key in the
keyring is in no file and is gone when the machine is switched off.
"""

from __future__ import annotations

import ctypes
import os
import platform
import secrets
from pathlib import Path
from typing import Final, NamedTuple

from proofstone.errors import LedgerError, MachineError
from proofstone.faults import fault_point
from proofstone.ledger.rules.chain import KEY_BYTES, AuthenticationLevel

_CALL_NUMBERS: Final = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219), "riscv64": (217, 218, 219)}
"""The system call numbers of add_key, request_key and keyctl."""
_USER_KEYRING: Final = -4
_KEYCTL_READ, _KEYCTL_SETPERM = 11, 5
_ONLY_OWNER: Final = 0x3F3F0000
"""All permissions for the possessor and the owner of the key, none for others."""
_MAX_BYTES: Final = 4096


def read_from_keyring(name: str) -> str:
    _, request, control = _call_numbers()
    key = _system_call(request, f"cannot find {name}", b"user", name.encode(), None, 0)
    buffer = ctypes.create_string_buffer(_MAX_BYTES)
    size = _system_call(control, f"cannot read {name}", _KEYCTL_READ, key, buffer, _MAX_BYTES)
    return buffer.raw[:size].decode("ascii", "replace").strip()


def add_to_keyring(name: str, text: str) -> None:
    """Add a key to the keyring of the user, where it stays until the machine restarts or the user's last
    process ends.
    """
    add, _, control = _call_numbers()
    data = text.encode("ascii")
    key = _system_call(add, f"cannot add {name}", b"user", name.encode(), data, len(data), _USER_KEYRING)
    _system_call(control, f"cannot protect {name}", _KEYCTL_SETPERM, key, _ONLY_OWNER)


def _call_numbers() -> tuple[int, int, int]:
    try:
        return _CALL_NUMBERS[platform.machine()]
    except KeyError:
        raise MachineError(
            f"the kernel's keyring is not supported on {platform.machine()}", hint="keep the key in a file"
        ) from None


def _system_call(number: int, action: str, *arguments: object) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    converted = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    result = int(library.syscall(ctypes.c_long(number), *converted))
    if result < 0:
        raise MachineError(
            f"the kernel's keyring {action}: {os.strerror(ctypes.get_errno())}",
            hint="load the key from a copy with `proofstone ledger init --keyring FILE`, for example after a restart",
        )
    return result


_KEYRING_PREFIX: Final = "keyring:"


class LedgerKey(NamedTuple):
    value: bytes
    level: AuthenticationLevel


def key_path(ledger: Path) -> Path:
    return ledger.parent / "key"


def read_key(path: Path) -> LedgerKey | None:
    """Return the key; None if there is none, or none that this user may read."""
    try:
        text = path.read_text("ascii").strip()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable_error(path, str(error)) from error
    if text.startswith(_KEYRING_PREFIX):
        name = text.removeprefix(_KEYRING_PREFIX)
        return LedgerKey(_decode_key(path, read_from_keyring(name)), AuthenticationLevel.KEYRING)
    return LedgerKey(_decode_key(path, text), AuthenticationLevel.KEY_FILE)


def create_key(path: Path) -> LedgerKey:
    """Create a random key on the disk, or return the key that another process has just created."""
    text = secrets.token_hex(KEY_BYTES)
    publish_key(path, text)
    key = read_key(path)
    if key is None:
        raise _unusable_error(path, "it cannot be read back")
    return key


def use_keyring_key(path: Path, name: str) -> None:
    """Take the key from the kernel's keyring from now on."""
    publish_key(path, f"{_KEYRING_PREFIX}{name}", replace=True)


def publish_key(path: Path, text: str, *, replace: bool = False) -> None:
    """Write the key file atomically, readable for its owner only. An existing file stays unless `replace` is set."""
    temporary = path.with_name(f".key-{secrets.token_hex(4)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            fault_point("key.before-publish")
            if replace:
                temporary.replace(path)
            else:
                _link_if_missing(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_directory(path.parent)
    except OSError as error:
        raise LedgerError(
            f"{path}: the ledger's key cannot be written ({error.strerror})", hint="check PROOFSTONE_HOME"
        ) from error


def _link_if_missing(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError:
        return  # another process was faster: its key is used


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _decode_key(path: Path, text: str) -> bytes:
    try:
        value = bytes.fromhex(text)
    except ValueError:
        value = b""
    if len(value) != KEY_BYTES:
        raise _unusable_error(path, f"it does not hold {2 * KEY_BYTES} hex digits")
    return value


def _unusable_error(path: Path, reason: str) -> LedgerError:
    return LedgerError(f"{path}: the ledger's key cannot be used: {reason}", hint="restore it from a backup")
