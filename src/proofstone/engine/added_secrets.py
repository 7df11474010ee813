"""Keys and tokens in the lines that a change adds. Every change is looked at, whatever its size.

A key of a known form outside tests, and the value of a variable that checks were passed, block until a person accepts
them. The same form in a test or an example, where keys that open nothing are common, and guesses only inform. What the
secret is appears in no message: the ledger keeps messages for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from proofstone.adapters.checks.readiness import looks_like_credential
from proofstone.contracts.finding import Finding
from proofstone.contracts.verdict import Severity
from proofstone.core.masking import SecretMask
from proofstone.core.protected import TEST_FOLDERS
from proofstone.core.risk import is_test
from proofstone.core.secret_patterns import known_secrets
from proofstone.engine.inspection import ChangedFile

KNOWN: Final = "added-secret"
POSSIBLE: Final = "possible-secret"
_SAMPLES: Final = re.compile(r"(?:^|/)(?:examples?|demos?|samples?|fixtures?)/")
_FIX: Final = "take it out of the file, and revoke it if it was real: whoever can read the repository has it"


def secret_findings(files: Sequence[ChangedFile], passed: SecretMask) -> list[Finding]:
    """Return a finding for each secret in the added lines; `passed` are the values that checks were given."""
    return [finding for file in files if file.new is not None for finding in _in_file(file, passed)]


def _in_file(file: ChangedFile, passed: SecretMask) -> Iterator[Finding]:
    lower = file.path.lower()
    is_sample = is_test(file.path) or bool(TEST_FOLDERS.search(lower) or _SAMPLES.search(lower))
    numbers = [number for number, _ in file.added]
    text = "\n".join(line for _, line in file.added)
    found: dict[int, tuple[Severity, str]] = {}
    for secret in known_secrets(text):
        severity = Severity.MINOR if is_sample else Severity.CRITICAL
        where = " in a test or an example" if is_sample else ""
        found[numbers[secret.line - 1]] = (severity, f"a {secret.kind} in an added line{where}")
    for number, line in file.added if passed.values else ():
        if names := passed.names_in(line):
            detail = f"the value of {', '.join(names)}, which checks were passed, in an added line"
            found[number] = (Severity.CRITICAL, detail)
    for number, line in file.added:
        if number not in found and not is_sample and looks_like_credential(line):
            found[number] = (Severity.MINOR, "a text that looks like a key or a password in an added line")
    for number, (severity, detail) in sorted(found.items()):
        yield _finding(file.path, number, severity, detail)


def _finding(path: str, line: int, severity: Severity, detail: str) -> Finding:
    return Finding(
        layer="secrets",
        rule=KNOWN if severity is Severity.CRITICAL else POSSIBLE,
        severity=severity,
        path=path,
        line=line,
        detail=detail,
        fix=_FIX,
    )
