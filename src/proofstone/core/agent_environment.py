"""Whether an environment is that of a coding agent's shell. Consent is a person's: there it is refused.

This is no wall. Whoever owns the account can unset a variable; it keeps an agent that follows a hint from granting
itself what only a person may grant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_MARKS: Final[Mapping[str, str]] = {
    "CLAUDECODE": "Claude Code",
    "CODEX_SANDBOX": "Codex",
    "CODEX_THREAD_ID": "Codex",
    "GEMINI_CLI": "Gemini CLI",
    "QWEN_CODE": "Qwen Code",
    "OPENCODE": "opencode",
    "COPILOT_CLI": "Copilot CLI",
    "CURSOR_AGENT": "Cursor",
    "GOOSE_TERMINAL": "goose",
    "PROOFSTONE_TASK": "an executor of Proofstone",
}
"""Variables that coding agents set for the commands that they run."""


def coding_agent_in(environment: Mapping[str, str]) -> str:
    """Return the name of the coding agent whose shell this is, or nothing."""
    return next((name for variable, name in _MARKS.items() if environment.get(variable)), "")
