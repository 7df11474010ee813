"""What is known of the agents before a run begins: who serves each, whether they can, and how they answer."""

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

_PLAIN_WORD = re.compile(r"[\w./+@-]+")
_PROGRAMS: Final = ("cmd:", "cli:", "acp:")
"""Specs of programs, which need a place to run."""
_NOT_ASKED: Final = ("human", "script", RULES)
"""Kinds that a probe would tell nothing about: a person, prepared answers, rules."""


@dataclass(frozen=True)
class Standing:
    """One that may serve an agent, and whether it can."""

    spec: str
    vendor: str | None = None
    model: str | None = None
    tier: int | None = None
    missing: str = ""
    """What keeps it from working; empty: it is ready as far as can be told without asking."""
    hint: str = ""
    fault: str = ""
    """Why it did not answer when it was asked; empty too where it was not asked."""
    note: str = ""
    """What may keep it from working, though that cannot be told for certain."""
    priced: bool | None = None
    """Whether its price is known; None: it has none that we could know."""


@dataclass(frozen=True)
class Agent:
    name: str
    choice: Choice
    standings: tuple[Standing, ...]

    @property
    def missing(self) -> str:
        """Why nobody can serve it, if so: every spec is needed, since the person counts on each of them."""
        if not self.standings:
            return "nobody is named"
        return "; ".join(
            standing.missing or standing.fault for standing in self.standings if standing.missing or standing.fault
        )


@dataclass(frozen=True)
class Agents:
    """Who serves which agent, in the order of the roles."""

    agents: tuple[Agent, ...]
    problems: tuple[TierProblem, ...]

    @property
    def able(self) -> bool:
        """Whether all that are named can serve, and may. That nobody is named for a role is no failure yet."""
        named = [agent for agent in self.agents if agent.standings]
        return not any(agent.missing for agent in named) and not any(problem.refuse for problem in self.problems)

    def having_answered(self, answers: Iterable[Probed]) -> Agents:
        """The same agents, with what came of asking those that serve them."""
        faults = {answer.spec: answer.fault for answer in answers}
        asked = [
            replace(
                agent,
                standings=tuple(replace(standing, fault=faults.get(standing.spec, "")) for standing in agent.standings),
            )
            for agent in self.agents
        ]
        return replace(self, agents=tuple(asked))


@dataclass(frozen=True)
class Words:
    """Everything that was said about who serves whom."""

    root: Path
    repository: Settings
    person: Person
    command_line: Mapping[str, tuple[str, ...]]

    @classmethod
    def spoken(cls, root: Path, repository: Settings, person: Person, options: Sequence[str]) -> Words:
        """With `ROLE=SPEC` options. What is almost the name of a model is told how to become one."""
        for option in options:
            spec = option.partition("=")[2]
            if near := meant(spec, person.providers):
                raise InputError(f"--backend {option}: {spec!r} names no backend", hint=f"did you mean {near}?")
        return cls(root, repository, person, from_command_line(options))

    def choice(self, agent: str) -> Choice:
        return chosen(agent, self.person.settings, self.repository, self.command_line)

    def folder(self, origin: Origin) -> Path:
        """Where paths count from that were written there."""
        folders = {Origin.COMMAND_LINE: Path.cwd(), Origin.PERSON: self.person.file.parent}
        return folders.get(origin, self.root)


def words(root: Path, options: Sequence[str]) -> Words:
    return Words.spoken(root, load(root), load_person(), options)


def agents_of(roles: Iterable[str] = ()) -> tuple[str, ...]:
    """The agents of these roles that can be set, else of all: each reviewer has a line of its own."""
    found: dict[str, None] = {}
    for word in roles or ROLES:
        name, _, focus = word.partition(":")
        role = ROLES.get(name)
        if role is None or (focus and word not in role.agents):
            raise InputError(f"{word}: there is no such role", hint=f"there are: {', '.join(agents_of())}")
        found |= dict.fromkeys([word] if focus else [agent if agent in KEYS else name for agent in role.agents])
    return tuple(found)


def agents(said: Words, names: Iterable[str] = ()) -> Agents:
    """These agents, else every one that can be set: who serves each, and what does not hold between them."""
    found = tuple(_agent(said, name) for name in names or agents_of())
    served = {
        agent.name: [Served(standing.spec, standing.vendor, standing.tier) for standing in agent.standings]
        for agent in found
    }
    return Agents(found, tuple(problems(served, {name: one.demand for name, one in ROLES.items()})))


def refuse_commands_of_repositories(choice: Choice) -> None:
    """A question is no reason to run a program that only the repository has named."""
    _refuse_of_repository(choice, [spec for spec in choice.specs if spec.startswith("cmd:")])
    refuse_login_for_repositories(choice)


def refuse_login_for_repositories(choice: Choice) -> None:
    """A repository may name a preset. A command line of its own would be run with the person's login."""
    _refuse_of_repository(
        choice, [spec for spec in choice.specs if spec.startswith("acp:") and not is_named_preset(spec)]
    )


def refuse_weaker_sandbox(spec: str, said: Words) -> None:
    """A repository cannot take away the walls around a program that carries the person's login."""
    level = said.repository.sandbox.level
    if works_alone(spec) and level in ("landlock", "plain") and not _may_weaken_sandbox(said):
        raise InputError(
            f"{spec}: the repository wants a weaker sandbox (sandbox.level = {level!r}) for what has your login",
            hint=f"remove that line; or, if you trust it, grant it: `proofstone trust {shlex.quote(str(said.root))}`",
        )


def _may_weaken_sandbox(said: Words) -> bool:
    """Whether the person granted the weaker sandbox that the repository's settings ask for."""
    if said.person.settings.trust.weaker_sandbox or repository_around(said.root) is None:
        return said.person.settings.trust.weaker_sandbox
    missing = consent_for(open_repository(said.root), said.repository, said.person).missing
    return not any(need.setting == "sandbox.level" for need in missing)


def _refuse_of_repository(choice: Choice, commands: Sequence[str]) -> None:
    if choice.origin is Origin.REPOSITORY and commands:
        raise InputError(
            f"the repository has named the program that would be run: {commands[0]}",
            hint="if you trust it, name it yourself: on the command line, or in your own file, under [backends]",
        )


def probes(said: Words, known: Agents) -> Iterator[Probed]:
    """Ask each distinct backend that is ready once."""
    specs: dict[str, Origin] = {}
    for agent in known.agents:
        refuse_commands_of_repositories(agent.choice)
        for standing in agent.standings:
            if not standing.missing and standing.spec.partition(":")[0] not in _NOT_ASKED:
                specs.setdefault(standing.spec, agent.choice.origin)
    with _site(said, any(spec.startswith(_PROGRAMS) for spec in specs)) as site:
        for spec, origin in specs.items():
            backend = backend_from((spec,), folder=said.folder(origin), root=said.root, person=said.person)
            with closing(backend):
                yield probe(backend, site)


def _agent(said: Words, name: str) -> Agent:
    choice = said.choice(name)
    return Agent(name, choice, tuple(_standing(said, spec, choice.origin) for spec in choice.specs))


def _standing(said: Words, spec: str, origin: Origin) -> Standing:
    kind, _, rest = spec.partition(":")
    try:
        refuse_login_for_repositories(Choice("", (spec,), origin))
        match kind:
            case "api":
                return _of_model(said, spec)
            case "cli" | "acp":
                return _of_program(said, spec)
            case "cmd":
                return Standing(spec, missing=_no_program(rest, said.root))
            case "script":
                read_script(said.folder(origin) / rest)
    except InputError as error:
        if kind != "api":
            return Standing(spec, missing=error.message, hint=error.hint or "")
        vendor, model, tier = _by_name(said, spec)
        return Standing(
            spec, vendor, model, tier, error.message, _other_variable(said, spec, error) or error.hint or ""
        )
    return Standing(spec)


def _other_variable(said: Words, spec: str, error: InputError) -> str:
    """What to do where it is the key that is missing, and it is there under another name."""
    provider = said.person.providers.get(spec.split(":")[1])
    variable = provider.key_variable if provider else None
    if not variable or variable not in error.message:
        return ""
    other = same_key(variable, os.environ)
    return f'{other} is set: `export {variable}="${other}"`' if other else ""


def _of_model(said: Words, spec: str) -> Standing:
    found = choose_model(spec, said.person.providers, said.person.settings.models, os.environ)
    tier = found.settings.tier or tier_of(found.model)
    return Standing(spec, found.vendor, found.model, tier, priced=_is_priced(found))


def _of_program(said: Words, spec: str) -> Standing:
    """A coding agent: it must be there, and not be older than what is known to work."""
    refuse_weaker_sandbox(spec, said)
    locate = locate_cli if spec.startswith("cli:") else locate_acp
    found = locate(spec, said.person.settings.programs, said.root)
    require_hosts(found)
    preset, known = found.preset, said.person.model(spec)
    tier = known.tier or (tier_of(found.model) if found.model else None)
    standing = Standing(spec, known.vendor or (preset.vendor if preset else None), found.model or None, tier)
    is_itself = preset is not None and (spec.startswith("cli:") or not preset.acp_program)
    version = version_of(found.argv[0], said.root) if is_itself else ""
    if preset and version and is_older(version, preset.minimum):
        too_old = f"{found.argv[0]} is version {version}; {preset.minimum} is the oldest that is known to work"
        return replace(standing, missing=too_old, hint=f"renew it: {preset.install}")
    if preset and not login_of(preset, found.settings):
        return replace(standing, note=f"no login was found: {how_to_log_in(preset)}")
    return standing


def _by_name(said: Words, spec: str) -> tuple[str | None, str, int | None]:
    """What can be told of a model that cannot be reached."""
    provider_name, _, model = spec.partition(":")[2].partition(":")
    settings = said.person.model(f"{provider_name}:{model}")
    provider = said.person.providers.get(provider_name)
    vendor = vendor_of(provider_name, provider, model, settings) if provider else settings.vendor
    return vendor, model, settings.tier or tier_of(model)


def _is_priced(found: ModelChoice) -> bool:
    from pydantic_ai.usage import RequestUsage

    from proofstone.agents.backends.api.prices import cost

    usage = RequestUsage(input_tokens=1000, output_tokens=1000)
    return cost(usage, found.provider_name, found.model, found.settings) is not None


def _no_program(command: str, root: Path) -> str:
    """Why a command cannot start, where that can be told: its first word names nothing that the shell would find."""
    try:
        first = shlex.split(command)[0]
    except (ValueError, IndexError):
        return ""  # the shell may make more of it than we do
    if not _PLAIN_WORD.fullmatch(first):
        return ""
    look = ["/bin/sh", "-c", 'command -v -- "$1"', "sh", first]
    asked = subprocess.run(look, cwd=root, capture_output=True, check=False)
    return "" if asked.returncode == 0 else f"there is no program {first}"


@contextmanager
def _site(said: Words, with_shell: bool) -> Iterator[Site]:
    """Where backends are probed: for commands the repository's base, in the sandbox, with writes thrown away."""
    if not with_shell:
        yield Site(work_tree=said.root, scratch=said.root, run=_nothing_is_run)
        return
    repository = open_repository(said.root)
    base = resolve_base(repository, CheckRequest())
    gate = said.repository.gate
    with (
        opened_world(
            repository,
            base,
            said.repository,
            Silent(),
            home=outside_of(repository, None),
            run_id=new_run_id(),
            require_sandbox=False,
            own_settings=True,
        ) as world,
        world.artifacts.writer(said.repository.limits.output_mb << 20) as sink,
    ):
        sight = Sight(base[1], base[0], gate.architect_seconds, gate.network, gate.pass_through)
        shell = shell_at(world, sight, sink)
        yield Site(shell.view.files, world.scratch, shell, seen_at=seen_at(shell), level=world.sandbox.level)


def _nothing_is_run(job: ShellJob) -> Execution:
    raise InternalError(f"{job.command}: no probe but that of a command runs one")
