"""The kernel's keyring, by its system calls: a key there is in no file and gone when the machine is switched off.

The key of a ledger: what its rows are authenticated with.

It is a file beside the ledger, readable to its owner only, or a name in the kernel's keyring that the file holds. A
sandbox sees neither. The key is made with the ledger and on the disk before the first row is.
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
    given = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    result = int(library.syscall(ctypes.c_long(number), *given))
    if result < 0:
        raise MachineError(
            f"the kernel's keyring {what}: {os.strerror(ctypes.get_errno())}",
            hint="`proofstone ledger init --keyring FILE` loads the key from a copy of it, after a restart for example",
        )
    return result


_KEYRING: Final = "keyring:"


class LedgerKey(NamedTuple):
    value: bytes
    level: AuthenticationLevel


def key_path(ledger: Path) -> Path:
    return ledger.parent / "key"


def read_key(path: Path) -> LedgerKey | None:
    """The key; None if there is none, or none that we may read."""
    try:
        text = path.read_text("ascii").strip()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(path, str(error)) from error
    if text.startswith(_KEYRING):
        name = text.removeprefix(_KEYRING)
        return LedgerKey(_decoded(path, read_from_keyring(name)), AuthenticationLevel.KEYRING)
    return LedgerKey(_decoded(path, text), AuthenticationLevel.KEY_FILE)


def make_key(path: Path) -> LedgerKey:
    """A new random key on the disk, or the one that another process has just made."""
    text = secrets.token_hex(KEY_BYTES)
    publish_key(path, text)
    found = read_key(path)
    if found is None:
        raise _unusable(path, "it cannot be read back")
    return found


def name_in_keyring(path: Path, name: str) -> None:
    """From now on the key is taken from the kernel's keyring."""
    publish_key(path, f"{_KEYRING}{name}", replace=True)


def publish_key(path: Path, text: str, *, replace: bool = False) -> None:
    """The file appears whole and readable to its owner only, or not at all; one that is there stays."""
    aside = path.with_name(f".key-{secrets.token_hex(4)}")
    try:
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            fault_point("key.before-publish")
            if replace:
                aside.replace(path)
            else:
                _link(aside, path)
        finally:
            aside.unlink(missing_ok=True)
        _sync(path.parent)
    except OSError as error:
        raise LedgerError(
            f"{path}: the ledger's key cannot be written ({error.strerror})", hint="see PROOFSTONE_HOME"
        ) from error


def _link(aside: Path, path: Path) -> None:
    try:
        os.link(aside, path)
    except FileExistsError:
        return  # another process was faster: its key counts


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _decoded(path: Path, text: str) -> bytes:
    try:
        value = bytes.fromhex(text)
    except ValueError:
        value = b""
    if len(value) != KEY_BYTES:
        raise _unusable(path, f"it does not hold {2 * KEY_BYTES} hex digits")
    return value


def _unusable(path: Path, why: str) -> LedgerError:
    return LedgerError(f"{path}: the ledger's key cannot be used: {why}", hint="restore it from a copy")
