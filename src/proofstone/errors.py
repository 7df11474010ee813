"""The one error tree. Whose fault it is decides the class, and the class decides the exit code.

ProofstoneError
├── UserError               the person can put it right                       exit 2
│   ├── ConfigError         a value in proofstone.toml or [tool.proofstone] is wrong
│   ├── TrustError          a repository's settings ask for what the person has not granted
│   ├── RepositoryError     this directory is not something Proofstone can check
│   ├── InputError          an option or an argument is wrong
│   └── BackendError        a model's provider does not let us in, or what it needs is not installed
├── MachineError            the machine lacks something that was asked for     exit 2
│   └── SandboxError        the sandbox that was required cannot be had
├── UnavailableError        a model's provider cannot be reached now           exit 1
├── LedgerError             the ledger cannot be read or written               exit 2
│   ├── LedgerBusyError     another writer held it for longer than we wait
│   ├── LedgerCorruptError  it does not verify
│   └── AnchorError         it is not the ledger that was anchored
└── InternalError           our own fault                                      exit 70

Every message says what is wrong, where, and what would be right.
"""

from __future__ import annotations


class ProofstoneError(Exception):
    """Base of every error that Proofstone raises on purpose."""

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
