"""Read the job that `proofstone ci` runs in from its environment and the event that started it. Nothing is asked.

| service        | event                | base                                              |
|----------------|----------------------|---------------------------------------------------|
| GitHub Actions | a pull request       | the base commit of the event                      |
| GitHub Actions | a merge queue        | the commit that the queue merges onto             |
| GitHub Actions | a push               | the commit that the branch pointed to before      |
| GitLab CI      | a merge request      | `CI_MERGE_REQUEST_DIFF_BASE_SHA`                  |
| GitLab CI      | a push               | `CI_COMMIT_BEFORE_SHA`                            |
| anything else  |                      | none: `--base`, or the base of `proofstone check` |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from proofstone.ci.models import CiJob, CiProvider

Json = Mapping[str, object]
_NOTHING: Final = "0" * 40
"""What services name as the commit before a branch existed."""


def read_job(variables: Mapping[str, str], event: Json) -> CiJob:
    """Return the job. `event` is the document of GitHub's event; empty elsewhere."""
    if variables.get("GITHUB_ACTIONS") == "true":
        return _read_github(variables, event)
    if variables.get("GITLAB_CI") == "true":
        return _read_gitlab(variables)
    return CiJob(provider=CiProvider.OTHER)


def _read_github(variables: Mapping[str, str], event: Json) -> CiJob:
    pull, queue = _table(event, "pull_request"), _table(event, "merge_group")
    number = pull.get("number")
    base, source = "", ""
    if pull:
        base, source = _text(_table(pull, "base"), "sha"), "the base of the pull request"
    elif queue:
        base, source = _text(queue, "base_sha"), "the base of the merge queue"
    elif _text(event, "before") != _NOTHING:
        base, source = _text(event, "before"), "the commit before this push"
    host = variables.get("GITHUB_SERVER_URL", "https://github.com")
    repository = variables.get("GITHUB_REPOSITORY", "")
    run = variables.get("GITHUB_RUN_ID", "")
    return CiJob(
        provider=CiProvider.GITHUB,
        base=base,
        base_source=source if base else "",
        head=_text(_table(pull, "head"), "sha"),
        number=number if isinstance(number, int) and number > 0 else None,
        repository=repository,
        api=variables.get("GITHUB_API_URL", "https://api.github.com").rstrip("/"),
        author=_text(_table(pull, "user"), "login"),
        summary_file=variables.get("GITHUB_STEP_SUMMARY", ""),
        run_url=f"{host}/{repository}/actions/runs/{run}" if run and repository else "",
        label=_text(_table(event, "label"), "name") if event.get("action") == "labeled" else "",
        sender=_text(_table(event, "sender"), "login"),
    )


def _read_gitlab(variables: Mapping[str, str]) -> CiJob:
    base = variables.get("CI_MERGE_REQUEST_DIFF_BASE_SHA", "")
    source = "the base of the merge request"
    if not base and (before := variables.get("CI_COMMIT_BEFORE_SHA", _NOTHING)) != _NOTHING:
        base, source = before, "the commit before this push"
    number = variables.get("CI_MERGE_REQUEST_IID", "")
    return CiJob(
        provider=CiProvider.GITLAB,
        base=base,
        base_source=source if base else "",
        head=variables.get("CI_COMMIT_SHA", ""),
        number=int(number) if number.isdecimal() and int(number) > 0 else None,
        repository=variables.get("CI_PROJECT_PATH", ""),
        run_url=variables.get("CI_JOB_URL", ""),
    )


def _table(document: Json, name: str) -> Json:
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def _text(document: Json, name: str) -> str:
    value = document.get(name)
    return value if isinstance(value, str) else ""
