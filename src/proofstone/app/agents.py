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
from pathlib import Path
from typing import Final

from proofstone.agents.backends.api.choice import Choice as ModelChoice
from proofstone.agents.backends.api.choice import choose as choose_model
from proofstone.agents.backends.choosing import Probed, backend_from, probe
from proofstone.agents.backends.programs.locating import is_named_preset, is_older, locate_acp, locate_cli, version_of
from proofstone.agents.backends.programs.status import how_to_log_in, login_of, require_hosts
from proofstone.agents.executors.context import ShellJob, Site
from proofstone.agents.roles.registry import ROLES
from proofstone.agents.rules.tiers import Served, TierProblem, problems, tier_of
from proofstone.agents.sandbox_shell import Sight, seen_at, shell_at
from proofstone.agents.script_file import read_script
from proofstone.app.context import consent_for, new_run_id, opened_world, outside_of, resolve_base
from proofstone.check.context import CheckRequest, Silent
from proofstone.config.backends import KEYS, RULES, Choice, Origin, from_command_line, works_alone
from proofstone.config.person import Person, chosen, load_person
from proofstone.config.providers import meant, same_key, vendor_of
from proofstone.config.reading import load
from proofstone.config.settings import Settings
from proofstone.errors import InputError, InternalError
from proofstone.git.repository import open_repository, repository_around
from proofstone.sandbox.job import Execution

_COMMAND_NAME = re.compile(r"[\w./+@-]+")
_PROGRAMS: Final = ("cmd:", "cli:", "acp:")
"""Prefixes of specs that start a program, which needs a place to run."""
_NOT_PROBED: Final = ("human", "script", RULES)
"""Kinds of specs that a probe tells nothing about: a person, prepared answers, rules."""


@dataclass(frozen=True)
class Standing:
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
class Agent:
    """An agent, the choice of its backends, and the state of each of them."""

    name: str
    choice: Choice
    standings: tuple[Standing, ...]

    @property
    def missing(self) -> str:
        """Why the agent cannot work; empty if it can. Every backend must be ready, because the person relies on each
        fallback."""
        if not self.standings:
            return "no agent is configured"
        return "; ".join(
            standing.missing or standing.fault for standing in self.standings if standing.missing or standing.fault
        )


@dataclass(frozen=True)
class Agents:
    """The agents in the order of their roles, and the conflicts between them."""

    agents: tuple[Agent, ...]
    problems: tuple[TierProblem, ...]

    @property
    def able(self) -> bool:
        """Whether every configured agent is ready and allowed. A role without an agent is not a failure here."""
        configured = [agent for agent in self.agents if agent.standings]
        return not any(agent.missing for agent in configured) and not any(problem.refuse for problem in self.problems)

    def having_answered(self, answers: Iterable[Probed]) -> Agents:
        """Return the same agents with the results of a probe."""
        faults = {answer.spec: answer.fault for answer in answers}
        updated = [
            replace(
                agent,
                standings=tuple(replace(standing, fault=faults.get(standing.spec, "")) for standing in agent.standings),
            )
            for agent in self.agents
        ]
        return replace(self, agents=tuple(updated))


@dataclass(frozen=True)
class Words:
    """The backends chosen for each role, on the command line and in the settings of the person and the repository."""

    root: Path
    repository: Settings
    person: Person
    command_line: Mapping[str, tuple[str, ...]]

    @classmethod
    def spoken(cls, root: Path, repository: Settings, person: Person, options: Sequence[str]) -> Words:
        """Build the choices from `ROLE=SPEC` options. Suggest the right spec for an option that almost names a
        model."""
        for option in options:
            spec = option.partition("=")[2]
            if near := meant(spec, person.providers):
                raise InputError(f"--backend {option}: {spec!r} names no backend", hint=f"did you mean {near}?")
        return cls(root, repository, person, from_command_line(options))

    def choice(self, agent: str) -> Choice:
        """Return the backends chosen for an agent, and where they were chosen."""
        return chosen(agent, self.person.settings, self.repository, self.command_line)

    def folder(self, origin: Origin) -> Path:
        """Return the folder that relative paths from this origin refer to."""
        folders = {Origin.COMMAND_LINE: Path.cwd(), Origin.PERSON: self.person.file.parent}
        return folders.get(origin, self.root)


def words(root: Path, options: Sequence[str]) -> Words:
    """Read the settings and combine them with the `ROLE=SPEC` options."""
    return Words.spoken(root, load(root), load_person(), options)


def agents_of(roles: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names of the agents of these roles, or of all roles, that can be configured. Each reviewer is one of
    its own."""
    names: dict[str, None] = {}
    for requested in roles or ROLES:
        name, _, focus = requested.partition(":")
        role = ROLES.get(name)
        if role is None or (focus and requested not in role.agents):
            raise InputError(f"{requested}: there is no such role", hint=f"there are: {', '.join(agents_of())}")
        names |= dict.fromkeys([requested] if focus else [agent if agent in KEYS else name for agent in role.agents])
    return tuple(names)


def agents(choices: Words, names: Iterable[str] = ()) -> Agents:
    """Resolve these agents, or every agent that can be configured, and find the conflicts between them."""
    resolved = tuple(_resolve_agent(choices, name) for name in names or agents_of())
    served = {
        agent.name: [Served(standing.spec, standing.vendor, standing.tier) for standing in agent.standings]
        for agent in resolved
    }
    return Agents(resolved, tuple(problems(served, {name: role.demand for name, role in ROLES.items()})))


def refuse_commands_of_repositories(choice: Choice) -> None:
    """Refuse a command that only the repository names: a question is no reason to run it."""
    _refuse_repository_commands(choice, [spec for spec in choice.specs if spec.startswith("cmd:")])
    refuse_login_for_repositories(choice)


def refuse_login_for_repositories(choice: Choice) -> None:
    """Refuse an ACP command line that the repository names, because it would run with the person's login. A preset is
    allowed."""
    _refuse_repository_commands(
        choice, [spec for spec in choice.specs if spec.startswith("acp:") and not is_named_preset(spec)]
    )


def refuse_weaker_sandbox(spec: str, choices: Words) -> None:
    """Refuse a weaker sandbox that the repository asks for, if the program has the person's login."""
    level = choices.repository.sandbox.level
    if works_alone(spec) and level in ("landlock", "plain") and not _may_weaken_sandbox(choices):
        raise InputError(
            f"{spec}: the repository asks for a weaker sandbox (sandbox.level = {level!r}), but it has your login",
            hint=f"remove that line; or, if you trust it: `proofstone trust {shlex.quote(str(choices.root))}`",
        )


def _may_weaken_sandbox(choices: Words) -> bool:
    """Return whether the person granted the weaker sandbox that the repository's settings ask for."""
    if choices.person.settings.trust.weaker_sandbox or repository_around(choices.root) is None:
        return choices.person.settings.trust.weaker_sandbox
    missing = consent_for(open_repository(choices.root), choices.repository, choices.person).missing
    return not any(need.setting == "sandbox.level" for need in missing)


def _refuse_repository_commands(choice: Choice, commands: Sequence[str]) -> None:
    """Refuse commands that the repository chose itself."""
    if choice.origin is Origin.REPOSITORY and commands:
        raise InputError(
            f"the repository names the program to run: {commands[0]}",
            hint="if you trust it, name it yourself: on the command line, or in your own file, under [backends]",
        )


def probes(choices: Words, known: Agents) -> Iterator[Probed]:
    """Send one request to each distinct backend that is ready."""
    specs: dict[str, Origin] = {}
    for agent in known.agents:
        refuse_commands_of_repositories(agent.choice)
        for standing in agent.standings:
            if not standing.missing and standing.spec.partition(":")[0] not in _NOT_PROBED:
                specs.setdefault(standing.spec, agent.choice.origin)
    with _open_site(choices, any(spec.startswith(_PROGRAMS) for spec in specs)) as site:
        for spec, origin in specs.items():
            backend = backend_from((spec,), folder=choices.folder(origin), root=choices.root, person=choices.person)
            with closing(backend):
                yield probe(backend, site)


def _resolve_agent(choices: Words, name: str) -> Agent:
    choice = choices.choice(name)
    return Agent(name, choice, tuple(_check_backend(choices, spec, choice.origin) for spec in choice.specs))


def _check_backend(choices: Words, spec: str, origin: Origin) -> Standing:
    kind, _, rest = spec.partition(":")
    try:
        refuse_login_for_repositories(Choice("", (spec,), origin))
        match kind:
            case "api":
                return _check_model(choices, spec)
            case "cli" | "acp":
                return _check_program(choices, spec)
            case "cmd":
                return Standing(spec, missing=_why_not_startable(rest, choices.root))
            case "script":
                read_script(choices.folder(origin) / rest)
    except InputError as error:
        if kind != "api":
            return Standing(spec, missing=error.message, hint=error.hint or "")
        vendor, model, tier = _describe_model(choices, spec)
        return Standing(
            spec, vendor, model, tier, error.message, _suggest_variable(choices, spec, error) or error.hint or ""
        )
    return Standing(spec)


def _suggest_variable(choices: Words, spec: str, error: InputError) -> str:
    """Suggest the variable that holds the missing key under another name."""
    provider = choices.person.providers.get(spec.split(":")[1])
    variable = provider.key_variable if provider else None
    if not variable or variable not in error.message:
        return ""
    alternative = same_key(variable, os.environ)
    return f'{alternative} is set: `export {variable}="${alternative}"`' if alternative else ""


def _check_model(choices: Words, spec: str) -> Standing:
    model = choose_model(spec, choices.person.providers, choices.person.settings.models, os.environ)
    tier = model.settings.tier or tier_of(model.model)
    return Standing(spec, model.vendor, model.model, tier, priced=_is_priced(model))


def _check_program(choices: Words, spec: str) -> Standing:
    """Check a coding agent: it must be installed and not older than the minimum version."""
    refuse_weaker_sandbox(spec, choices)
    locate = locate_cli if spec.startswith("cli:") else locate_acp
    program = locate(spec, choices.person.settings.programs, choices.root)
    require_hosts(program)
    preset, model = program.preset, choices.person.model(spec)
    tier = model.tier or (tier_of(program.model) if program.model else None)
    status = Standing(spec, model.vendor or (preset.vendor if preset else None), program.model or None, tier)
    is_itself = preset is not None and (spec.startswith("cli:") or not preset.acp_program)
    version = version_of(program.argv[0], choices.root) if is_itself else ""
    if preset and version and is_older(version, preset.minimum):
        too_old = f"{program.argv[0]} is version {version}; {preset.minimum} is the oldest that is known to work"
        return replace(status, missing=too_old, hint=f"renew it: {preset.install}")
    if preset and not login_of(preset, program.settings):
        return replace(status, note=f"no login was found: {how_to_log_in(preset)}")
    return status


def _describe_model(choices: Words, spec: str) -> tuple[str | None, str, int | None]:
    """Return vendor, name and tier of a model that cannot be reached."""
    provider_name, _, model = spec.partition(":")[2].partition(":")
    settings = choices.person.model(f"{provider_name}:{model}")
    provider = choices.person.providers.get(provider_name)
    vendor = vendor_of(provider_name, provider, model, settings) if provider else settings.vendor
    return vendor, model, settings.tier or tier_of(model)


def _is_priced(model: ModelChoice) -> bool:
    from pydantic_ai.usage import RequestUsage

    from proofstone.agents.backends.api.prices import cost

    usage = RequestUsage(input_tokens=1000, output_tokens=1000)
    return cost(usage, model.provider_name, model.model, model.settings) is not None


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
def _open_site(choices: Words, with_shell: bool) -> Iterator[Site]:
    """Open the place where backends are probed. Commands run in the sandbox on the repository's base; their writes are
    discarded."""
    if not with_shell:
        yield Site(work_tree=choices.root, scratch=choices.root, run=_refuse_to_run)
        return
    repository = open_repository(choices.root)
    base = resolve_base(repository, CheckRequest())
    gate = choices.repository.gate
    with (
        opened_world(
            repository,
            base,
            choices.repository,
            Silent(),
            home=outside_of(repository, None),
            run_id=new_run_id(),
            require_sandbox=False,
            own_settings=True,
        ) as world,
        world.artifacts.writer(choices.repository.limits.output_mb << 20) as sink,
    ):
        sight = Sight(base[1], base[0], gate.architect_seconds, gate.network, gate.pass_through)
        shell = shell_at(world, sight, sink)
        yield Site(shell.view.files, world.scratch, shell, seen_at=seen_at(shell), level=world.sandbox.level)


def _refuse_to_run(job: ShellJob) -> Execution:
    raise InternalError(f"{job.command}: only the probe of a command runs a command")
