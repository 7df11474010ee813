"""`proofstone doctor`: show what this machine has, what it lacks, and how to get it. It changes nothing."""

from __future__ import annotations

import os
import platform
import stat
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from proofstone import __version__
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.common.text import escape_control
from proofstone.config.home import find_proofstone_home
from proofstone.errors import ProofstoneError
from proofstone.ledger.connection import ledger_path
from proofstone.machine.facts import (
    PROGRAMS,
    ProgramSearchResult,
    ProgramState,
    detect_container,
    find_cgroup_version,
    look_for_programs,
    read_kernel_setting,
    read_os_release,
)
from proofstone.sandbox.rules import Threat, list_gaps

if TYPE_CHECKING:
    from rich.console import Console

    from proofstone.common.models import Assurance
    from proofstone.sandbox.probe import SandboxFacts


app = typer.Typer(add_completion=False)


class DoctorFact(NamedTuple):
    """A line of the report that is not about a program."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


class MachineFacts(NamedTuple):
    """The facts that the hints depend on, so that tests can describe any machine."""

    system: str
    root: bool
    container: str | None
    switches: Mapping[str, int | None]


@app.command()
def doctor(as_json: JsonOption = False, no_color: NoColorOption = False) -> int:
    """Examine this machine: programs, sandbox and state directory. Say how to get what is missing.

    In a repository it also says for each check that the project's files name whether its tool is there for the check.

    Exit code: 0 everything essential is there; 1 something essential is missing.
    """
    output = Output(json=as_json, no_color=no_color)
    programs = look_for_programs(PROGRAMS)
    home = find_proofstone_home()
    sandbox = probe_sandbox(home)
    threats = list_gaps(sandbox.best_level, as_root=os.geteuid() == 0)
    facts = {
        "sandbox": describe_sandbox(sandbox, find_cgroup_version()),
        "state": describe_state_directory(home),
        "this repository": describe_repository(Path.cwd()),
    }
    advice = [] if facts["sandbox"][0].ok else suggest_fixes(read_machine_facts())
    is_ok = all(program.state is ProgramState.OK for program in programs if program.program.essential)
    if as_json:
        output.print_document(
            {
                "ok": is_ok,
                "system": describe_system(),
                "programs": [_program_document(program) for program in programs],
                **{name.replace(" ", "_"): [fact._asdict() for fact in group] for name, group in facts.items()},
                "not_prevented": [{"attempt": threat.name, "wall": threat.protection} for threat in threats],
                "hints": advice,
            }
        )
    else:
        _print(output.result_console(), programs, facts, advice)
        _print_threats(output.result_console(), sandbox.best_level, threats)
    return 0 if is_ok else 1


def describe_system() -> dict[str, str]:
    return {
        "proofstone": __version__,
        "python": platform.python_version(),
        "system": read_os_release().get("PRETTY_NAME", platform.system()),
        "kernel": platform.release(),
    }


def read_machine_facts() -> MachineFacts:
    names = (
        "kernel.apparmor_restrict_unprivileged_userns",
        "kernel.unprivileged_userns_clone",
        "user.max_user_namespaces",
    )
    switches = {name: read_kernel_setting(name) for name in names}
    return MachineFacts(platform.system(), os.geteuid() == 0, detect_container(), switches)


def suggest_fixes(machine: MachineFacts) -> list[str]:
    """Return the usual reasons why a sandbox does not work on such a machine, and how to fix them."""
    if machine.system != "Linux":
        return [
            f"{machine.system} has neither bubblewrap nor Landlock: checks run as plain processes with limits, at "
            "the lowest assurance. Run Proofstone in a Linux virtual machine or container for a sandbox."
        ]
    texts = []
    switches = machine.switches
    if switches.get("user.max_user_namespaces") == 0:
        texts.append("User namespaces are off: `sudo sysctl user.max_user_namespaces=15000` turns them on.")
    if not machine.root and switches.get("kernel.unprivileged_userns_clone") == 0:
        texts.append("User namespaces are for root only: `sudo sysctl kernel.unprivileged_userns_clone=1` opens them.")
    if not machine.root and switches.get("kernel.apparmor_restrict_unprivileged_userns") == 1:
        texts.append(
            "AppArmor restricts user namespaces (Ubuntu 23.10 and later). Give bubblewrap its profile: `sudo apt "
            "install apparmor-profiles && sudo ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict "
            "/etc/apparmor.d/ && sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict`; or lift the "
            "restriction for all: `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`."
        )
    if machine.container:
        texts.append(
            f"This is a container ({machine.container}), and most refuse nested namespaces by default. Start "
            "it with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt "
            "systempaths=unconfined`."
        )
    return texts


def probe_sandbox(home: Path) -> SandboxFacts:
    """Probe the sandbox, with its layers in the state directory if that is usable."""
    from proofstone.sandbox.probe import try_sandboxes

    if home.is_dir() and os.access(home, os.W_OK | os.X_OK):
        return try_sandboxes(home)
    with tempfile.TemporaryDirectory(prefix="proofstone-doctor-") as scratch:
        return try_sandboxes(Path(scratch))


def describe_sandbox(facts: SandboxFacts, cgroup: int | None) -> list[DoctorFact]:
    """Return the results of the probe as lines. The first gives the sandbox level of checks."""
    from proofstone.sandbox import seccomp

    error = facts.namespaces_error.partition("\n")[0]
    return [
        DoctorFact("level", facts.namespaces, f"checks run at the level {facts.best_level}"),
        DoctorFact("own namespaces", facts.namespaces, "bubblewrap can create them" if facts.namespaces else error),
        DoctorFact("throwaway layers", facts.layers != "none", f"overlay file system: {facts.layers}"),
        DoctorFact(
            "Landlock", facts.landlock > 0, f"version {facts.landlock}" if facts.landlock else "not in this kernel"
        ),
        DoctorFact(
            "system call filter",
            seccomp.has_filter(),
            "calls that no check needs are refused" if seccomp.has_filter() else "none for this architecture",
        ),
        DoctorFact(
            "limits by cgroup",
            facts.cgroup,
            f"version {cgroup}"
            if facts.cgroup
            else "no control group: Proofstone measures memory and processes of a check twice a second instead",
            ""
            if facts.cgroup
            else "run under a delegated group: systemd-run --user --scope -p Delegate=yes proofstone check",
        ),
    ]


def describe_state_directory(home: Path) -> list[DoctorFact]:
    """Return whether the state directory is usable and private."""
    if not home.exists():
        parent = next(folder for folder in home.parents if folder.exists())
        usable = os.access(parent, os.W_OK | os.X_OK)
        fix = "" if usable else "set PROOFSTONE_HOME to a directory that you can write to"
        return [
            DoctorFact(str(home), usable, "will be created when needed" if usable else f"{parent} is not writable", fix)
        ]
    if not home.is_dir() or not os.access(home, os.W_OK | os.X_OK):
        return [
            DoctorFact(
                str(home), False, "not a writable directory", "set PROOFSTONE_HOME to a directory that you can write to"
            )
        ]
    mode = stat.S_IMODE(home.stat().st_mode)
    private = mode & 0o077 == 0
    ledger = "a ledger is there" if ledger_path(home).exists() else "no ledger yet"
    return [
        DoctorFact(
            str(home),
            private,
            f"writable, mode {mode:04o}, {ledger}" + ("" if private else "; other users can read it"),
            "" if private else f"chmod 700 {home}",
        )
    ]


def describe_repository(directory: Path) -> list[DoctorFact]:
    """Return whether the tools that the checks of this repository need are there; nothing outside of a repository."""
    from proofstone.app.project_tools import find_project_tools

    try:
        tools = find_project_tools(directory)
    except ProofstoneError as error:
        return [DoctorFact(str(directory), False, error.message, error.hint or "")]
    return [DoctorFact(tool.check, tool.is_found, tool.detail, tool.fix) for tool in tools]


def _program_document(found: ProgramSearchResult) -> dict[str, object]:
    program = found.program
    return {
        "name": program.name,
        "group": program.group,
        "why": program.why,
        "essential": program.essential,
        "state": found.state.value,
        "path": found.path,
        "version": found.version,
        "minimum": ".".join(str(part) for part in program.minimum) or None,
        "detail": found.detail,
        "install": found.install,
    }


def _print(
    console: Console,
    programs: Sequence[ProgramSearchResult],
    facts: Mapping[str, Sequence[DoctorFact]],
    advice: Sequence[str],
) -> None:
    about = describe_system()
    console.print(
        f"proofstone {about['proofstone']}, Python {about['python']}, {about['system']}, kernel {about['kernel']}",
        soft_wrap=True,
    )
    for group in dict.fromkeys(found.program.group for found in programs):
        console.print(f"\n{group}", style="bold")
        for found in programs:
            if found.program.group == group:
                _print_program(console, found)
    for name, group_facts in facts.items():
        if not group_facts:
            continue
        console.print(f"\n{name.capitalize()}", style="bold")
        for fact in group_facts:
            _print_line(console, "ok" if fact.ok else "no", fact.ok, f"{fact.name}: {fact.detail}", fact.fix)
    for hint in advice:
        console.print(f"\nhint: {hint}", soft_wrap=True)


def _print_threats(console: Console, level: Assurance, threats: Sequence[Threat]) -> None:
    """Print what the sandbox level does not prevent. `proofstone prove` tries each of these."""
    if threats:
        subject = "as root, the" if os.geteuid() == 0 else "the"
        console.print(f"\nNot prevented: {subject} level {level} does not promise that", style="bold")
        for threat in threats:
            console.print(f"  - {threat.protection}", soft_wrap=True)


def _print_program(console: Console, found: ProgramSearchResult) -> None:
    name = f"{found.program.name} {found.version or ''}".strip()
    text = f"{name:<18} {found.program.why}"
    _print_line(console, found.state.value, found.state is ProgramState.OK, text, found.install, found.detail)


def _print_line(console: Console, state: str, ok: bool, text: str, fix: str = "", detail: str = "") -> None:
    style = "green" if ok else "yellow"
    console.print(f"  {state:<12}", style=style, end="")
    console.print(escape_control(f" {text}" + (f" ({detail})" if detail else "")), soft_wrap=True)
    if fix and not ok:
        console.print(f"{'':<15}→ {escape_control(fix)}", soft_wrap=True)
