"""The error tree. The class of an error says who can fix it and decides the exit code.

ProofstoneError
 ├── UserError               the user can fix it                               exit 2
 │   ├── ConfigError         a value in proofstone.toml or [tool.proofstone] is wrong
 │   ├── TrustError          a repository's settings ask for something that the user has not granted
 │   ├── RepositoryError     Proofstone cannot check this directory
 │   ├── InputError          an option or an argument is wrong
 │   └── BackendError        a model provider refuses access, or a program that it needs is not installed
 ├── MachineError            the machine lacks something that is required       exit 2
 │   └── SandboxError        the required sandbox is not available
 ├── UnavailableError        a model provider cannot be reached now             exit 1
 ├── LedgerError             the ledger cannot be read or written               exit 2
 │   ├── LedgerBusyError     another writer held the ledger for longer than the timeout
 │   ├── LedgerCorruptError  the ledger does not verify
 │   └── AnchorError         the ledger is not the one that was anchored
 └── InternalError           a bug in Proofstone                                exit 70

Every message says what is wrong, where, and what would be right.
"""

from __future__ import annotations


class ProofstoneError(Exception):
    """The base class of every error that Proofstone raises on purpose."""

    exit_code = 70

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UserError(ProofstoneError):
    exit_code = 2


class ConfigError(UserError):
    pass


class TrustError(UserError):
    pass


class RepositoryError(UserError):
    pass


class InputError(UserError):
    pass


class BackendError(UserError):
    pass


class MachineError(ProofstoneError):
    exit_code = 2


class SandboxError(MachineError):
    pass


class UnavailableError(ProofstoneError):
    exit_code = 1


class LedgerError(ProofstoneError):
    exit_code = 2


class LedgerBusyError(LedgerError):
    pass


class LedgerCorruptError(LedgerError):
    def __init__(self, message: str, *, seq: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.seq = seq


class AnchorError(LedgerError):
    pass


class InternalError(ProofstoneError):
    pass
