"""`assay ask`, put together: a role, whoever serves it, and the repository to look at."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from assay.adapters.backends.choosing import backend_from
from assay.adapters.executors.human import Listen
from assay.adapters.executors.site import ShellJob, Site
from assay.adapters.git.repository import open_repository
from assay.adapters.sandbox.job import Execution
from assay.agents_app import Words, refuse_commands_of_repositories
from assay.app import new_run_id, opened_world, outside_of, resolve_base, settings_at
from assay.config.backends import RULES, from_command_line
from assay.config.person import load_person
from assay.contracts.base import Contract
from assay.engine.agents.asking import Asked, Asking, ask
from assay.engine.progress import Silent
from assay.engine.world import CheckRequest
from assay.errors import InputError, InternalError
from assay.gate_cast import budget_for
from assay.roles import role as role_named
from assay.roles.role import Role

_WORKS_AT_THE_GATE = "executor"


@dataclass(frozen=True)
class Question:
    """What `assay ask` was asked for."""

    agent: str
    """A role, or one of several agents of it: `reviewer:security`."""
    text: str
    """The request as YAML or JSON; or, for a role that needs but one text, that text."""
    backends: Sequence[str] = ()
    budget: tuple[str, ...] = ()
    seconds: float | None = None


@dataclass(frozen=True)
class Answer:
    run_id: str
    asked: Asked


def asked_once(directory: Path, question: Question, site: Site, *, listen: Listen | None = None) -> Answer:
    name, _, focus = question.agent.partition(":")
    role = role_named(name)
    if name == _WORKS_AT_THE_GATE:
        raise InputError("an executor changes files, so it works at the gate", hint="`assay gate PLAN.md --executor …`")
    if focus and "focus" not in role.input.model_fields:
        raise InputError(f"{question.agent}: a {name} has no focus", hint=f"ask for {name}")
    request = request_in(role, question.text, focus)
    repository = open_repository(directory)
    base = resolve_base(repository, CheckRequest())
    settings = settings_at(repository, base[0])
    person = load_person()
    said = Words(repository.root, settings, person, from_command_line(_named(question.backends, name)))
    choice = said.choice(question.agent)
    if not choice.specs or choice.specs == (RULES,):
        raise InputError(
            f"nobody is named who serves {question.agent}",
            hint=f"--backend api:<provider>:<model>, or {name} under [backends]; `assay backends` shows them",
        )
    refuse_commands_of_repositories(choice)
    backend = backend_from(
        choice.specs,
        folder=said.folder(choice.origin),
        listen=listen,
        providers=person.providers,
        models=person.settings.models,
    )
    with (
        closing(backend),
        opened_world(
            repository,
            base,
            settings,
            Silent(),
            home=outside_of(repository, None),
            run_id=new_run_id(),
            require_sandbox=False,
        ) as world,
    ):
        budget = budget_for(settings, question.budget)
        asking = Asking(role, focus or None, request, backend, budget, question.seconds)
        try:
            return Answer(world.run_id, ask(world, asking, site))
        except KeyboardInterrupt:
            world.cancel.set()
            raise


def request_in(role: Role, text: str, focus: str = "") -> Contract:
    """The request that the text is, for that role."""
    fields = role.input.model_fields
    needed = [name for name, field in fields.items() if field.is_required()]
    takes = f"it takes: {', '.join(fields)}; it needs: {', '.join(needed) or 'none of them'}"
    said = _mapping(text, fields)
    if said is None:
        others = [name for name in needed if name != "focus"]
        if len(others) != 1 or fields[others[0]].annotation is not str:
            raise InputError(f"the request for the role {role.name} is a mapping, and this is none", hint=takes)
        said = {others[0]: text.strip()}
    if focus:
        said = {**said, "focus": focus}
    try:
        return role.input.model_validate(said)
    except ValidationError as error:
        wrong = sorted(error.errors(), key=lambda one: one["type"] == "missing")
        told = [f"{'.'.join(map(str, one['loc']))}: {one['msg'].lower()}" for one in wrong[:5]]
        raise InputError(f"this is no request for the role {role.name}: {'; '.join(told)}", hint=takes) from error


def _mapping(text: str, fields: Collection[str]) -> dict[str, object] | None:
    """JSON or YAML, if it is a mapping with fields of a request; a sentence with a colon in it is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        try:
            found = YAML(typ="safe", pure=True).load(text)
        except (YAMLError, RecursionError, ValueError):
            return None
    if not isinstance(found, Mapping) or not all(isinstance(key, str) for key in found):
        return None
    return dict(found) if text.lstrip().startswith("{") or found.keys() & set(fields) else None


def _named(backends: Sequence[str], role: str) -> list[str]:
    """`SPEC` alone is about the role that is asked."""
    known = (f"{role}=", "default=")
    return [word if word.startswith(known) else f"{role}={word}" for word in backends]


def nobody_runs_here(job: ShellJob) -> Execution:
    raise InternalError(f"{job.command}: there is no place to run it yet")
