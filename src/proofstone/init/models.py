"""The data of `proofstone init`: what was seen in a repository, what is proposed, and what was written."""

from __future__ import annotations

from enum import StrEnum

from proofstone.common.models import FrozenModel


class CiService(StrEnum):
    """The services that a workflow can be written for."""

    GITHUB = "GitHub Actions"
    GITLAB = "GitLab CI"


class SetupStep(FrozenModel):
    """A command that installs dependencies."""

    command: str
    evidence: str
    """The file that asks for it."""
    tool: str
    """The program that it needs."""
    is_installed: bool
    """Whether this machine has that program."""


class RepositoryFacts(FrozenModel):
    """What was seen in a repository and on this machine."""

    setup: tuple[SetupStep, ...] = ()
    checks: tuple[str, ...] = ()
    """The checks that the project's files name."""
    ignorable: tuple[str, ...] = ()
    """Patterns of files that running the project leaves behind, and that git does not ignore yet."""
    has_settings: bool = False
    """Whether the repository has settings of Proofstone."""
    services: tuple[CiService, ...] = ()
    existing: frozenset[str] = frozenset()
    """Paths of files that exist already."""
    gitignore: str = ""
    agents: tuple[str, ...] = ()
    """The coding agents that are installed, by the name of their hook configuration."""
    version: str
    """The version of Proofstone."""


class Proposal(FrozenModel):
    """A file that `init` proposes to write."""

    path: str
    """Relative to the root of the repository."""
    content: str
    previous: str | None = None
    """The content that is replaced; None if the file does not exist."""
    why: str
    """What the file does, in one sentence that the person is asked about."""
    after: str = ""
    """What is left for the person to do."""


class WrittenFile(FrozenModel):
    """A file that `init` wrote."""

    path: str
    digest: str
    """SHA-256 of what was written. A file that was edited since is left alone."""
    previous: str | None = None
    """What the file held before; None if it did not exist."""


class InitRecord(FrozenModel):
    """What `init` has written into a repository, so that it can be taken back."""

    files: tuple[WrittenFile, ...] = ()
    git_hook: bool = False
