"""Coding agents that the person has installed: where they are and what they are given. The person's own file alone says
so: whoever could say it could have a program of theirs run with the person's login."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, Field

from proofstone.config.backends import MODEL
from proofstone.config.component import Component
from proofstone.config.settings import VariableName, VariableValue

_LOGIN = re.compile(r"(ANTHROPIC|CLAUDE|CODEX|OPENAI|GEMINI|GOOGLE|COPILOT|DASHSCOPE|QWEN)_.*(KEY|TOKEN)")


def is_login(variable: str) -> bool:
    """Whether a variable is one in which a coding agent's login stands."""
    return _LOGIN.fullmatch(variable) is not None


_WORD = Annotated[str, Field(strict=True, pattern=r"^[^\x00]*$", title="a text")]
_MODEL = Annotated[
    str,
    Field(strict=True, pattern=rf"^({MODEL})?$", title="the name of a model, which begins with a letter or a digit"),
]
_HOST = Annotated[
    str,
    Field(
        strict=True,
        pattern=r"^(\*\.)?([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$",
        title="a host: `api.example.com`, `*.example.com` or `10.0.0.2:8080`",
    ),
]


def _below(path: str) -> str:
    if ".." in PurePosixPath(path).parts:
        raise ValueError(f"{path!r} leads out of HOME")
    return path


_BELOW_HOME = Annotated[
    str,
    Field(strict=True, pattern=r"^[^/\x00][^\x00]*$", title="a path below HOME, such as `.config/agent`"),
    AfterValidator(_below),
]


class ProgramSettings(Component):
    """One of them, by the name of its preset, or by the name of the program where there is none."""

    path: _WORD = Field(default="", description="The program; without it, it is looked for on PATH.")
    model: _MODEL = Field(default="", description="The model that it is told to use; without it, its own choice.")
    arguments: tuple[_WORD, ...] = Field(default=(), description="Further arguments, behind those of the preset.")
    set: Mapping[VariableName, VariableValue] = Field(
        default={}, description="Variables that it gets; the host of a URL among them may be reached."
    )
    pass_through: tuple[VariableName, ...] = Field(
        default=(), alias="pass", description="Further variables of your environment that it gets."
    )
    hosts: tuple[_HOST, ...] = Field(
        default=(), description="Further hosts that it may reach: `api.example.com`, `*.example.com`, `10.0.0.2:8080`."
    )
    share: tuple[_BELOW_HOME, ...] = Field(
        default=(), description="Further files and folders below HOME with its login, which it reads and writes."
    )
