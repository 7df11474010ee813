"""The threat model of the sandbox, as one table: what a check must not be able to do, and which level prevents it.

`proofstone prove` tries every row on the machine, `proofstone doctor` lists those that the level of this machine does
not prevent, and the page on the threat model shows the table. Every gap is reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from proofstone.common.models import Assurance


class Prevention(StrEnum):
    """Whether a level prevents a threat."""

    YES = "yes"
    NO = "no"
    UNLESS_ROOT = "unless Proofstone runs as root"


class ThreatSubject(StrEnum):
    """What is protected."""

    FILES = "files of the machine"
    SECRETS = "secrets"
    KERNEL = "the kernel and its settings"
    OTHERS = "other processes and services"
    RESOURCES = "resources"


@dataclass(frozen=True)
class Threat:
    """One row: something that a check may attempt, the protection against it, and the levels that
    have this protection.
    """

    name: str
    """The name of the attempt, for programs."""
    protection: str
    """The protection, in words."""
    subject: ThreatSubject
    landlock: Prevention
    plain: Prevention = Prevention.NO
    bubblewrap: Prevention = Prevention.YES
    fix: str = ""
    """How to restore the protection if it fails at a level that should have it."""

    def is_prevented_at(self, level: Assurance, *, as_root: bool) -> bool:
        """Return whether this level prevents the threat."""
        prevention: Prevention = getattr(self, level.value)
        return prevention is Prevention.YES or (prevention is Prevention.UNLESS_ROOT and not as_root)


NEEDS_BUBBLEWRAP: Final = "only the level bubblewrap prevents this; `proofstone doctor` shows how to get it"
_REPORT_HOLE: Final = "this is a hole in the sandbox; please report it as SECURITY.md says"
_MOVE_SOCKETS: Final = "configure services to keep their sockets in /run, in /tmp or below HOME"
_DELEGATE_GROUP: Final = "run under a delegated group: systemd-run --user --scope -p Delegate=yes proofstone check"
_OLD_KERNEL: Final = "the kernel has no time namespaces; Linux 5.6 and later have them"

YES, NO, UNLESS_ROOT = Prevention.YES, Prevention.NO, Prevention.UNLESS_ROOT

THREATS: Final[tuple[Threat, ...]] = (
    Threat("mount", "the machine's root cannot be made writable", ThreatSubject.FILES, YES, UNLESS_ROOT),
    Threat("write-etc", "nothing is written to /etc", ThreatSubject.FILES, YES, UNLESS_ROOT),
    Threat("write-usr", "nothing is written to /usr", ThreatSubject.FILES, YES, UNLESS_ROOT),
    Threat("write-home", "nothing is written to HOME", ThreatSubject.FILES, YES),
    Threat("write-repository", "nothing is written to the work tree", ThreatSubject.FILES, YES),
    Threat("write-git", "nothing is written to the repository's .git", ThreatSubject.FILES, YES),
    Threat(
        "read-root", "files that only root may read cannot be read", ThreatSubject.SECRETS, UNLESS_ROOT, UNLESS_ROOT
    ),
    Threat(
        "read-root-home", "private files in root's HOME cannot be read", ThreatSubject.SECRETS, UNLESS_ROOT, UNLESS_ROOT
    ),
    Threat("credentials", "credential folders in HOME cannot be read", ThreatSubject.SECRETS, NO),
    Threat("state", "Proofstone's own state cannot be read", ThreatSubject.SECRETS, NO),
    Threat("session-key", "keys in the user's session keyring cannot be read", ThreatSubject.SECRETS, YES, YES),
    Threat("keyring", "the kernel's keyrings cannot be used", ThreatSubject.SECRETS, YES),
    Threat("host-root", "no process of a check is root of the machine", ThreatSubject.KERNEL, UNLESS_ROOT, UNLESS_ROOT),
    Threat("kernel-settings", "kernel settings below /proc cannot be written", ThreatSubject.KERNEL, YES),
    Threat("sysfs", "kernel settings below /sys cannot be written", ThreatSubject.KERNEL, YES, UNLESS_ROOT),
    Threat("control-groups", "a check cannot leave its control group", ThreatSubject.KERNEL, YES, UNLESS_ROOT),
    Threat("user-namespace", "no user namespace can be created", ThreatSubject.KERNEL, YES),
    Threat("bpf", "no program can be loaded into the kernel", ThreatSubject.KERNEL, YES),
    Threat("userfaultfd", "userfaultfd cannot be used", ThreatSubject.KERNEL, YES),
    Threat("perf", "performance counters cannot be used", ThreatSubject.KERNEL, YES),
    Threat("io_uring", "io_uring cannot be used", ThreatSubject.KERNEL, YES),
    Threat("time", "the check has its own clocks", ThreatSubject.KERNEL, NO, fix=_OLD_KERNEL),
    Threat("network", "the network, and services of the machine on it, cannot be reached", ThreatSubject.OTHERS, YES),
    Threat("abstract-socket", "abstract sockets of the machine cannot be reached", ThreatSubject.OTHERS, YES),
    Threat("socket-run", "sockets in /run cannot be reached", ThreatSubject.OTHERS, YES),
    Threat("socket-tmp", "sockets in temporary folders cannot be reached", ThreatSubject.OTHERS, YES),
    Threat("socket-home", "sockets below HOME cannot be reached", ThreatSubject.OTHERS, YES),
    Threat(
        "socket-elsewhere",
        "sockets anywhere else on the disk cannot be reached",
        ThreatSubject.OTHERS,
        YES,
        fix=_MOVE_SOCKETS,
    ),
    Threat("shared-memory", "shared memory of other processes cannot be reached", ThreatSubject.OTHERS, NO),
    Threat("processes", "other processes cannot be seen", ThreatSubject.OTHERS, NO),
    Threat("trace", "other processes cannot be traced or signalled", ThreatSubject.OTHERS, NO),
    Threat("outlive", "nothing outlives the check that started it", ThreatSubject.OTHERS, YES, YES),
    Threat("crowd", "the limit on processes holds", ThreatSubject.RESOURCES, YES, YES, fix=_DELEGATE_GROUP),
    Threat("hoard", "the limit on memory holds", ThreatSubject.RESOURCES, YES, YES, fix=_DELEGATE_GROUP),
    Threat(
        "fill", "the limit on disk space holds", ThreatSubject.RESOURCES, YES, YES, fix="report it: this is a defect"
    ),
)


def advise_on_threat(threat: Threat, level: Assurance, *, as_root: bool) -> str:
    """Return how to restore a protection that has failed."""
    return threat.fix or _REPORT_HOLE if threat.is_prevented_at(level, as_root=as_root) else NEEDS_BUBBLEWRAP


def list_gaps(level: Assurance, *, as_root: bool) -> list[Threat]:
    """Return the threats that this level does not prevent."""
    return [threat for threat in THREATS if not threat.is_prevented_at(level, as_root=as_root)]
