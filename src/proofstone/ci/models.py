"""The data of `proofstone ci`: the job that it runs in, and what a maintainer said."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from proofstone.common.models import FrozenModel


class CiProvider(StrEnum):
    """The services that `proofstone ci` knows."""

    GITHUB = "GitHub Actions"
    GITLAB = "GitLab CI"
    OTHER = "another CI service"


class CiJob(FrozenModel):
    """The job that `proofstone ci` runs in, as its environment and its event describe it."""

    provider: CiProvider
    base: str = ""
    """The commit that the change is compared with, before the merge base is taken; empty if the service names none."""
    base_source: str = ""
    """Where the base was found."""
    head: str = ""
    """The newest commit of the pull request."""
    number: int | None = Field(default=None, ge=1)
    """The number of the pull request; None outside of one."""
    repository: str = ""
    """`owner/name` on the code host."""
    api: str = ""
    """The address of the host's API."""
    author: str = ""
    """Who opened the pull request."""
    summary_file: str = ""
    """The file that the service shows as the summary of the job."""
    run_url: str = ""
    """The page of the job."""
    label: str = ""
    """The label that the event set, if it is about one."""
    sender: str = ""
    """Who caused the event."""


class Approval(FrozenModel):
    """What a maintainer accepts, as they wrote it on the code host."""

    rule: str
    reason: str
    by: str
    source: str
    """`label` or `review`."""
