"""Resolve the agents of a run before it begins: which backends serve each role, whether they are ready, and how they
answer a probe."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from proofstone.agents.backends.api.model_choice import ModelChoice, choose_model
from proofstone.agents.backends.factory import build_backend
from proofstone.agents.backends.probing import ProbeResult, probe
from proofstone.agents.backends.programs.discovery import (
    is_named_preset,
    is_older,
    locate_acp,
    locate_cli,
    read_version,
)
from proofstone.agents.backends.programs.known import PRESETS
from proofstone.agents.backends.programs.status import describe_login, find_login, require_hosts
from proofstone.agents.executors.context import ExecutionContext, ShellCommand
from proofstone.agents.roles.registry import ROLES
from proofstone.agents.rules.tiers import ServingBackend, TierProblem, find_model_tier, find_tier_problems
from proofstone.agents.sandbox_shell import ReadOnlyView, build_read_only_shell, find_sandbox_root
from proofstone.agents.script_file import read_script
from proofstone.app.context import determine_consent, new_run_id, open_run_context, require_outside_home
from proofstone.check.context import NullProgress
from proofstone.config.backends import (
    BACKEND_KEYS,
    RULES_ONLY,
    BackendOrigin,
    BackendSelection,
    is_coding_agent,
    parse_backend_options,
)
from proofstone.config.loader import load_settings
from proofstone.config.probes import build_probe_key, find_probe_file, format_probe_records, read_probe_records
from proofstone.config.providers import find_alternative_variable, find_vendor, guess_spec
from proofstone.config.settings import Settings
from proofstone.config.user import UserConfig, choose_agent_backend, load_user_config
from proofstone.errors import InputError, InternalError
from proofstone.git.repository import find_repository_root, open_repository
from proofstone.machine.files import write_atomic
from proofstone.sandbox.job import SandboxResult

_COMMAND_NAME = re.compile(r"[\w./+@-]+")
_PROGRAMS: Final = ("cmd:", "cli:", "acp:")
"""Prefixes of specs that start a program, which needs a place to run."""
_NOT_PROBED: Final = ("human", "script", RULES_ONLY)
"""Kinds of specs that a probe tells nothing about: a person, prepared answers, rules."""


@dataclass(frozen=True)
class BackendStatus:
    """A backend that may serve an agent, and whether it is ready."""

    spec: str
    vendor: str | None = None
    model: str | None = None
    tier: int | None = None
    missing: str = ""
    """Why the backend cannot work. Empty if it is ready, as far as that can be known without a request."""
    hint: str = ""
    fault: str = ""
    """Why the backend did not answer the probe. Empty if it answered or was not probed."""
    note: str = ""
    """A possible problem that cannot be determined for certain."""
    priced: bool | None = None
    """Whether its price is known; None if the backend has no price."""


@dataclass(frozen=True)
class ResolvedAgent:
    """An agent, the choice of its backends, and the state of each of them."""

    name: str
    choice: BackendSelection
    backends: tuple[BackendStatus, ...]

    @property
    def missing(self) -> str:
        """Why the agent cannot work; empty if it can. Every backend must be ready, because the person relies on each
        fallback."""
        if not self.backends:
            return "no agent is configured"
        return "; ".join(
            standing.missing or standing.fault for standing in self.backends if standing.missing or standing.fault
        )


@dataclass(frozen=True)
class ResolvedAgents:
    """The agents in the order of their roles, and the conflicts between them."""

    agents: tuple[ResolvedAgent, ...]
    problems: tuple[TierProblem, ...]

    @property
    def is_ready(self) -> bool:
        """Whether every configured agent is ready and allowed. A role without an agent is not a failure here."""
        configured = [agent for agent in self.agents if agent.backends]
        return not any(agent.missing for agent in configured) and not any(
            problem.is_refused for problem in self.problems
        )

    def with_probe_results(self, answers: Iterable[ProbeResult]) -> ResolvedAgents:
        """Return the same agents with the results of a probe."""
        faults = {answer.spec: answer.fault for answer in answers}
        updated = [
            replace(
                agent,
                backends=tuple(replace(standing, fault=faults.get(standing.spec, "")) for standing in agent.backends),
            )
            for agent in self.agents
        ]
        return replace(self, agents=tuple(updated))


@dataclass(frozen=True)
class BackendChoices:
    """The backends chosen for each role, on the command line and in the settings of the person and the repository."""

    root: Path
    repository: Settings
    person: UserConfig
    command_line: Mapping[str, tuple[str, ...]]

    @classmethod
    def from_options(
        cls, root: Path, repository: Settings, person: UserConfig, options: Sequence[str]
    ) -> BackendChoices:
        """Build the choices from `ROLE=SPEC` options. Suggest the right spec for an option that almost names a
        model."""
        for option in options:
            spec = option.partition("=")[2]
            near = f"cli:{spec}" if spec in PRESETS and PRESETS[spec].invoke else guess_spec(spec, person.providers)
            if near:
                raise InputError(f"--backend {option}: {spec!r} names no backend", hint=f"did you mean {near}?")
        return cls(root, repository, person, parse_backend_options(options))

    def choice(self, agent: str) -> BackendSelection:
        """Return the backends chosen for an agent, and where they were chosen."""
        return choose_agent_backend(agent, self.person.settings, self.repository, self.command_line)

    def folder_of(self, origin: BackendOrigin) -> Path:
        """Return the folder that relative paths from this origin refer to."""
        folders = {BackendOrigin.COMMAND_LINE: Path.cwd(), BackendOrigin.PERSON: self.person.file.parent}
        return folders.get(origin, self.root)


def read_backend_choices(root: Path, options: Sequence[str]) -> BackendChoices:
    """Read the settings and combine them with the `ROLE=SPEC` options."""
    return BackendChoices.from_options(root, load_settings(root), load_user_config(), options)


def list_agent_names(roles: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names of the agents of these roles, or of all roles, that can be configured. Each reviewer is one of
    its own."""
    names: dict[str, None] = {}
    for requested in roles or ROLES:
        name, _, focus = requested.partition(":")
        role = ROLES.get(name)
        if role is None or (focus and requested not in role.agents):
            raise InputError(f"{requested}: there is no such role", hint=f"there are: {', '.join(list_agent_names())}")
        names |= dict.fromkeys(
            [requested] if focus else [agent if agent in BACKEND_KEYS else name for agent in role.agents]
        )
    return tuple(names)


def resolve_agents(choices: BackendChoices, names: Iterable[str] = ()) -> ResolvedAgents:
    """Resolve these agents, or every agent that can be configured, and find the conflicts between them."""
    resolved = tuple(_resolve_agent(choices, name) for name in names or list_agent_names())
    served = {
        agent.name: [ServingBackend(standing.spec, standing.vendor, standing.tier) for standing in agent.backends]
        for agent in resolved
    }
    return ResolvedAgents(
        resolved, tuple(find_tier_problems(served, {name: role.demand for name, role in ROLES.items()}))
    )


def refuse_repository_commands(choice: BackendSelection) -> None:
    """Refuse a command that only the repository names: a question is no reason to run it."""
    _refuse_repository_commands(choice, [spec for spec in choice.specs if spec.startswith("cmd:")])
    refuse_repository_login(choice)


def refuse_repository_login(choice: BackendSelection) -> None:
    """Refuse an ACP command line that the repository names, because it would run with the person's login. A preset is
    allowed."""
    _refuse_repository_commands(
        choice, [spec for spec in choice.specs if spec.startswith("acp:") and not is_named_preset(spec)]
    )


def refuse_weaker_sandbox(spec: str, choices: BackendChoices) -> None:
    """Refuse a weaker sandbox that the repository asks for, if the program has the person's login."""
    level = choices.repository.sandbox.level
    if is_coding_agent(spec) and level in ("landlock", "plain") and not _may_weaken_sandbox(choices):
        raise InputError(
            f"{spec}: the repository asks for a weaker sandbox (sandbox.level = {level!r}), but it has your login",
            hint=f"remove that line; or, if you trust it: `proofstone trust {shlex.quote(str(choices.root))}`",
        )


def _may_weaken_sandbox(choices: BackendChoices) -> bool:
    """Return whether the person granted the weaker sandbox that the repository's settings ask for."""
    if choices.person.settings.trust.weaker_sandbox or find_repository_root(choices.root) is None:
        return choices.person.settings.trust.weaker_sandbox
    missing = determine_consent(open_repository(choices.root), choices.repository, choices.person).missing
    return not any(need.setting == "sandbox.level" for need in missing)


def _refuse_repository_commands(choice: BackendSelection, commands: Sequence[str]) -> None:
    """Refuse commands that the repository chose itself."""
    if choice.origin is BackendOrigin.REPOSITORY and commands:
        raise InputError(
            f"the repository names the program to run: {commands[0]}",
            hint="if you trust it, name it yourself: on the command line, or in your own file, under [backends]",
        )


def probe_backends(choices: BackendChoices, known: ResolvedAgents) -> Iterator[ProbeResult]:
    """Send one request to each distinct backend that is ready."""
    specs: dict[str, BackendOrigin] = {}
    for agent in known.agents:
        refuse_repository_commands(agent.choice)
        for standing in agent.backends:
            if not standing.missing and standing.spec.partition(":")[0] not in _NOT_PROBED:
                specs.setdefault(standing.spec, agent.choice.origin)
    with _open_site(choices, any(spec.startswith(_PROGRAMS) for spec in specs)) as site:
        for spec, origin in specs.items():
            backend = build_backend((spec,), folder=choices.folder_of(origin), root=choices.root, person=choices.person)
            with closing(backend):
                result = probe(backend, site)
            _record_probe(choices, result)
            yield result


def _record_probe(choices: BackendChoices, result: ProbeResult) -> None:
    """Record what was found out about a model, so that runs ask it in that way."""
    record = result.to_record(datetime.now(UTC).isoformat(timespec="seconds"))
    if record is None:
        return
    model = choose_model(result.spec, choices.person.providers, choices.person.settings.models, os.environ)
    key, file = build_probe_key(model.provider, model.model), find_probe_file()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomic(file, format_probe_records({**read_probe_records(file), key: record}).encode(), mode=0o600)


def _resolve_agent(choices: BackendChoices, name: str) -> ResolvedAgent:
    choice = choices.choice(name)
    return ResolvedAgent(name, choice, tuple(_check_backend(choices, spec, choice.origin) for spec in choice.specs))


def _check_backend(choices: BackendChoices, spec: str, origin: BackendOrigin) -> BackendStatus:
    kind, _, rest = spec.partition(":")
    try:
        refuse_repository_login(BackendSelection("", (spec,), origin))
        match kind:
            case "api":
                return _check_model(choices, spec)
            case "cli" | "acp":
                return _check_program(choices, spec)
            case "cmd":
                return BackendStatus(spec, missing=_why_not_startable(rest, choices.root))
            case "script":
                read_script(choices.folder_of(origin) / rest)
    except InputError as error:
        if kind != "api":
            return BackendStatus(spec, missing=error.message, hint=error.hint or "")
        vendor, model, tier = _describe_model(choices, spec)
        return BackendStatus(
            spec, vendor, model, tier, error.message, _suggest_variable(choices, spec, error) or error.hint or ""
        )
    return BackendStatus(spec)


def _suggest_variable(choices: BackendChoices, spec: str, error: InputError) -> str:
    """Suggest the variable that holds the missing key under another name."""
    provider = choices.person.providers.get(spec.split(":")[1])
    variable = provider.key_variable if provider else None
    if not variable or variable not in error.message:
        return ""
    alternative = find_alternative_variable(variable, os.environ)
    return f'{alternative} is set: `export {variable}="${alternative}"`' if alternative else ""


def _check_model(choices: BackendChoices, spec: str) -> BackendStatus:
    model = choose_model(spec, choices.person.providers, choices.person.settings.models, os.environ)
    tier = model.settings.tier or find_model_tier(model.model)
    return BackendStatus(spec, model.vendor, model.model, tier, priced=_is_priced(model))


def _check_program(choices: BackendChoices, spec: str) -> BackendStatus:
    """Check a coding agent: it must be installed and not older than the minimum version."""
    refuse_weaker_sandbox(spec, choices)
    locate = locate_cli if spec.startswith("cli:") else locate_acp
    program = locate(spec, choices.person.settings.programs, choices.root)
    require_hosts(program)
    preset, model = program.preset, choices.person.find_model_settings(spec)
    tier = model.tier or (find_model_tier(program.model) if program.model else None)
    status = BackendStatus(spec, model.vendor or (preset.vendor if preset else None), program.model or None, tier)
    is_itself = preset is not None and (spec.startswith("cli:") or not preset.acp_program)
    version = read_version(program.argv[0], choices.root) if is_itself else ""
    if preset and version and is_older(version, preset.minimum):
        too_old = f"{program.argv[0]} is version {version}; {preset.minimum} is the oldest that is known to work"
        return replace(status, missing=too_old, hint=f"renew it: {preset.install}")
    if preset and not find_login(preset, program.settings):
        return replace(status, note=f"no login was found: {describe_login(preset)}")
    return status


def _describe_model(choices: BackendChoices, spec: str) -> tuple[str | None, str, int | None]:
    """Return vendor, name and tier of a model that cannot be reached."""
    provider_name, _, model = spec.partition(":")[2].partition(":")
    settings = choices.person.find_model_settings(f"{provider_name}:{model}")
    provider = choices.person.providers.get(provider_name)
    vendor = find_vendor(provider_name, provider, model, settings) if provider else settings.vendor
    return vendor, model, settings.tier or find_model_tier(model)


def _is_priced(model: ModelChoice) -> bool:
    from pydantic_ai.usage import RequestUsage

    from proofstone.agents.backends.api.prices import compute_cost

    usage = RequestUsage(input_tokens=1000, output_tokens=1000)
    return compute_cost(usage, model.provider_name, model.model, model.settings) is not None


def _why_not_startable(command: str, root: Path) -> str:
    """Return why a command cannot start: the shell does not find its first word. Empty if that is not certain."""
    try:
        first = shlex.split(command)[0]
    except (ValueError, IndexError):
        return ""  # the shell may understand what shlex does not
    if not _COMMAND_NAME.fullmatch(first):
        return ""
    command_line = ["/bin/sh", "-c", 'command -v -- "$1"', "sh", first]
    result = subprocess.run(command_line, cwd=root, capture_output=True, check=False)
    return "" if result.returncode == 0 else f"there is no program {first}"


@contextmanager
def _open_site(choices: BackendChoices, with_shell: bool) -> Iterator[ExecutionContext]:
    """Open the place where backends are probed. Commands run in the sandbox on the repository's base; their writes are
    discarded."""
    if not with_shell:
        yield ExecutionContext(work_tree=choices.root, scratch=choices.root, run=_refuse_to_run)
        return
    repository = open_repository(choices.root)
    base = repository.resolve_base("HEAD")
    gate = choices.repository.gate
    with (
        open_run_context(
            repository,
            base,
            choices.repository,
            NullProgress(),
            home=require_outside_home(repository, None),
            run_id=new_run_id(),
            require_sandbox=False,
            own_settings=True,
        ) as world,
        world.artifacts.open_writer(choices.repository.limits.output_mb << 20) as sink,
    ):
        sight = ReadOnlyView(base[1], base[0], gate.architect_seconds, gate.network, gate.pass_through)
        shell = build_read_only_shell(world, sight, sink)
        yield ExecutionContext(
            shell.view.files, world.scratch, shell, sandbox_path=find_sandbox_root(shell), level=world.sandbox.level
        )


def _refuse_to_run(job: ShellCommand) -> SandboxResult:
    raise InternalError(f"{job.command}: only the probe of a command runs a command")
