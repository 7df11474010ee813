"""Which files `proofstone init` proposes, and what they hold."""

from __future__ import annotations

import tomllib

from proofstone.config.loader import load_settings_text
from proofstone.init.models import CiService, RepositoryFacts, SetupStep
from proofstone.init.rules.proposals import list_proposals, write_settings

STEP = SetupStep(command="pip install -e '.[a]' && echo \"ü\"", evidence="pyproject.toml", tool="uv", is_installed=True)
ALL = RepositoryFacts(
    setup=(STEP,), ignorable=(".venv/",), gitignore="dist", services=tuple(CiService), version="1.2", checks=("x",)
)


def paths(facts: RepositoryFacts) -> list[str]:
    return [proposal.path for proposal in list_proposals(facts)]


def test_everything_that_is_missing_is_proposed_in_order() -> None:
    assert paths(ALL) == [
        "proofstone.toml",
        ".gitignore",
        ".github/workflows/proofstone.yml",
        ".gitlab/proofstone.yml",
    ]
    assert paths(RepositoryFacts(version="1")) == []


def test_nothing_that_exists_is_replaced() -> None:
    existing = frozenset(paths(ALL))
    facts = ALL.model_copy(update={"existing": existing, "gitignore": "dist"})
    (ignoring,) = list_proposals(facts)
    assert (ignoring.path, ignoring.previous, ignoring.content) == (".gitignore", "dist", "dist\n.venv/\n")
    assert "proofstone.toml" not in paths(ALL.model_copy(update={"has_settings": True}))


def test_the_settings_are_those_that_were_read() -> None:
    text = write_settings((STEP, STEP))
    assert tomllib.loads(text) == {"environment": {"setup": [STEP.command, STEP.command]}}
    assert load_settings_text(text, "proofstone.toml").environment.setup == (STEP.command, STEP.command)


def test_a_job_installs_the_version_that_wrote_it_and_the_tools_of_the_set_up() -> None:
    workflow, template = (proposal.content for proposal in list_proposals(ALL)[2:])
    for text in (workflow, template):
        assert 'pip install "proofstone==1.2"' in text and "pip install uv" in text and "proofstone ci" in text
    assert "${{ github.token }}" in workflow and "persist-credentials: false" in workflow
    assert "pip install uv" not in list_proposals(ALL.model_copy(update={"setup": ()}))[1].content
