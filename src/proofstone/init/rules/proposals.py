"""Decide which files `proofstone init` proposes, and what they hold. Nothing that exists is replaced.

| file                               | proposed                                                                  |
|------------------------------------|---------------------------------------------------------------------------|
| `proofstone.toml`                  | dependencies must be installed, and the repository has no settings yet    |
| `.gitignore`                       | running the project leaves files that git does not ignore                 |
| `.github/workflows/proofstone.yml` | the repository is on GitHub                                               |
| `.gitlab/proofstone.yml`           | the repository is on GitLab                                               |
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from proofstone.init.models import CiService, Proposal, RepositoryFacts, SetupStep

SETTINGS: Final = "proofstone.toml"
GITIGNORE: Final = ".gitignore"
GITHUB_WORKFLOW: Final = ".github/workflows/proofstone.yml"
GITLAB_TEMPLATE: Final = ".gitlab/proofstone.yml"

_TOOL_STEPS: Final = {
    "uv": "pip install uv",
    "poetry": "pip install poetry",
    "pdm": "pip install pdm",
    "pipenv": "pip install pipenv",
    "pnpm": "npm install --global pnpm",
    "yarn": "npm install --global yarn",
    "bun": "npm install --global bun",
}
"""How a job installs the program of a set-up command. Runners of both services have the others."""


def list_proposals(facts: RepositoryFacts) -> list[Proposal]:
    """Return what is proposed for a repository, in the order in which the person is asked."""
    return [*_propose_settings(facts), *_propose_ignoring(facts), *_propose_ci(facts)]


def _propose_settings(facts: RepositoryFacts) -> Iterator[Proposal]:
    if facts.has_settings or not facts.setup or SETTINGS in facts.existing:
        return
    yield Proposal(
        path=SETTINGS,
        content=write_settings(facts.setup),
        why="installs the dependencies for checks, once for each state of the lock files",
        after="commit it: the settings of the base decide, so they count once they are on your main branch",
    )


def write_settings(setup: tuple[SetupStep, ...]) -> str:
    """Return settings that install the dependencies with these commands."""
    lines = [
        "# Settings of Proofstone. `proofstone config show` prints all that are in force.",
        "",
        "[environment]",
        "# Runs once for each state of the lock files, with network. Checks themselves have none.",
        "setup = [",
        *(f"    {json.dumps(step.command, ensure_ascii=False)},  # {step.evidence}" for step in setup),
        "]",
    ]
    return "\n".join(lines) + "\n"


def _propose_ignoring(facts: RepositoryFacts) -> Iterator[Proposal]:
    if not facts.ignorable:
        return
    before = facts.gitignore if not facts.gitignore or facts.gitignore.endswith("\n") else f"{facts.gitignore}\n"
    yield Proposal(
        path=GITIGNORE,
        content=before + "".join(f"{pattern}\n" for pattern in facts.ignorable),
        previous=facts.gitignore if GITIGNORE in facts.existing else None,
        why="keeps files that running the project leaves behind out of commits",
    )


def _propose_ci(facts: RepositoryFacts) -> Iterator[Proposal]:
    if CiService.GITHUB in facts.services and GITHUB_WORKFLOW not in facts.existing:
        yield Proposal(
            path=GITHUB_WORKFLOW,
            content=write_github_workflow(facts),
            why="checks each pull request, comments on it, and shows findings beside the lines",
            after="commit it; a rule of the branch can then require the job `proofstone`",
        )
    if CiService.GITLAB in facts.services and GITLAB_TEMPLATE not in facts.existing:
        yield Proposal(
            path=GITLAB_TEMPLATE,
            content=write_gitlab_template(facts),
            why="checks each merge request, and shows the test results in it",
            after=f"commit it, and add to .gitlab-ci.yml:  include: {{local: {GITLAB_TEMPLATE}}}",
        )


def write_github_workflow(facts: RepositoryFacts) -> str:
    """Return the workflow for GitHub Actions."""
    installs = _list_tool_installs(facts)
    tools = "".join(f"      - run: {command}\n" for command in installs)
    return f"""\
# Checks pull requests with Proofstone. Written by `proofstone init`.
# The settings of the base decide how a pull request is checked, not its own. No secret is needed.
name: proofstone
on:
  pull_request:
    types: [opened, synchronize, reopened, labeled]
  pull_request_review:
    types: [submitted]
permissions:
  contents: read
  pull-requests: write # for the comment; code under test never sees the token
jobs:
  proofstone:
    runs-on: ubuntu-24.04
    timeout-minutes: 60
    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: 0 # the base must be there, not the last commit alone
          persist-credentials: false
          ref: ${{{{ github.event.pull_request.head.sha }}}}
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - name: Install the sandbox
        run: |
          sudo apt-get update --quiet && sudo apt-get install --yes --quiet bubblewrap
          # Ubuntu 24.04 keeps programs from making namespaces of their own
          sudo sysctl --write kernel.apparmor_restrict_unprivileged_userns=0
      - run: pip install "proofstone=={facts.version}"
{tools}\
      - run: proofstone ci --require-sandbox --output "$RUNNER_TEMP/proofstone"
        env:
          GITHUB_TOKEN: ${{{{ github.token }}}}
      - uses: actions/upload-artifact@v4
        if: always()
        with:
          name: proofstone
          path: ${{{{ runner.temp }}}}/proofstone
"""


def write_gitlab_template(facts: RepositoryFacts) -> str:
    """Return the template for GitLab CI."""
    tools = "".join(f"    - {command}\n" for command in _list_tool_installs(facts))
    return f"""\
# Checks merge requests with Proofstone. Written by `proofstone init`.
# The settings of the base decide how a merge request is checked, not its own. No secret is needed.
proofstone:
  image: python:3.12-bookworm
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
  variables:
    GIT_DEPTH: "0" # the base must be there, not the last commit alone
  before_script:
    - apt-get update --quiet && apt-get install --yes --quiet bubblewrap
    - pip install "proofstone=={facts.version}"
{tools}\
  script:
    - proofstone ci --output "$CI_PROJECT_DIR/../proofstone-report"
  after_script:
    - mkdir -p .proofstone-report && cp -r "$CI_PROJECT_DIR/../proofstone-report/." .proofstone-report/
  artifacts:
    when: always
    paths: [.proofstone-report]
    reports:
      junit: .proofstone-report/junit.xml
"""


def _list_tool_installs(facts: RepositoryFacts) -> list[str]:
    return [_TOOL_STEPS[step.tool] for step in facts.setup if step.tool in _TOOL_STEPS]
