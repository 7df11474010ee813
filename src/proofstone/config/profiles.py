"""Profiles: one word for what suits models of a size. Plain data.

A profile fills in what neither the settings of a model nor a probe decide. `profile.models` of the person chooses it,
and `--profile` for one command.

| profile  | answers                        | changes files by | tools that read         | lane without named files |
|----------|--------------------------------|------------------|-------------------------|--------------------------|
| small    | as text held to a schema       | blocks           | read, list, grep, glob  | fix, with one reviewer   |
| standard | by the table of the providers  | by the tier      | all                     | standard                 |
| frontier | by a tool                      | tools            | all                     | standard                 |
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from proofstone.common.models import Lane
from proofstone.errors import ConfigError

PROFILE_VARIABLE: Final = "PROOFSTONE_PROFILE"
"""Carries `--profile` to everything that the command does."""


class ProfileName(StrEnum):
    SMALL = "small"
    STANDARD = "standard"
    FRONTIER = "frontier"


@dataclass(frozen=True)
class Profile:
    """What a profile sets. None leaves the decision to the tables."""

    answer: Literal["tool", "schema", "text"] | None = None
    edits: Literal["tool", "blocks"] | None = None
    hidden_tools: frozenset[str] = frozenset()
    """Tools that a model is not offered: each of them costs tokens in every request."""
    lane: Lane | None = None
    """The lane of a request that names no files."""


PROFILES: Final[Mapping[ProfileName, Profile]] = {
    ProfileName.SMALL: Profile(
        answer="schema",
        edits="blocks",
        hidden_tools=frozenset({"symbols", "git_log", "git_show", "git_diff"}),
        lane=Lane.FIX,
    ),
    ProfileName.STANDARD: Profile(),
    ProfileName.FRONTIER: Profile(answer="tool", edits="tool"),
}


def choose_profile(setting: ProfileName) -> Profile:
    """Return the profile of this process: that of the command line, else that of the settings."""
    chosen = os.environ.get(PROFILE_VARIABLE, "")
    if chosen and chosen not in set(ProfileName):
        raise ConfigError(
            f"{PROFILE_VARIABLE}={chosen}: there is no such profile", hint=f"use one of {', '.join(ProfileName)}"
        )
    return PROFILES[ProfileName(chosen) if chosen else setting]
