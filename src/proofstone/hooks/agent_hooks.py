"""Hook configuration for coding agents, and a count of how often an agent was sent back.

One hook records at which commit a session begins. Another runs `proofstone check` when the agent says that it is done,
compares with that commit, and tells the agent the result. The table below describes each supported program: only
programs whose hook can send text back to the model are in it. For all others there is a paragraph of instructions,
which an agent may or may not follow.

The count since the agent last passed is kept in one small file for each conversation, in the state directory. Losing a
file costs only a few more rounds, so it is neither locked nor synchronised.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from proofstone.errors import InputError
from proofstone.machine.files import seconds_since_use

HOOK_TIMEOUT_SECONDS: Final = 900
"""How long an agent waits for the check. After that, it stops without proof."""
START_TIMEOUT_SECONDS: Final = 60
"""How long an agent waits until the beginning of its session is recorded."""
START_EVENT: Final = "agent-start"
STOP_EVENT: Final = "agent-stop"

Document = dict[str, Any]


class EntryForm(StrEnum):
    """How an event lists what it runs."""

    GROUPS = "groups"
    """Groups of commands."""
    COPILOT = "copilot"
    """Commands, each with its shell."""
    CURSOR = "cursor"
    """Commands alone; an answer is the next message to the agent."""


@dataclass(frozen=True)
class Dialect:
    """How one program configures a hook and reads its answer."""

    name: str
    title: str
    """The name of the program, as `config.rules` detects it."""
    file: str
    """The path below the root of the project."""
    start_event: str
    """The program's event at the beginning of a session."""
    events: tuple[str, ...]
    """The program's events when an agent says that it is done."""
    decision: str
    """The word that keeps the agent from stopping."""
    next: str
    """What the user has to know or do."""
    timeout_unit: int = 1
    """The program's own unit of a timeout, as a part of a second: 1000 for milliseconds."""
    project_variable: str = ""
    """The variable in which the program tells its hooks where the project is; empty if it has none."""
    form: EntryForm = EntryForm.GROUPS

    @property
    def all_events(self) -> tuple[str, ...]:
        return (self.start_event, *self.events)

    @property
    def is_flat(self) -> bool:
        """Whether an event lists commands, not groups of commands."""
        return self.form is not EntryForm.GROUPS

    def build_command(self, event: str) -> str:
        """Return what is run at one of the program's events."""
        return f"proofstone hook run {START_EVENT if event == self.start_event else STOP_EVENT} --agent {self.name}"

    def build_entry(self, event: str, command: str = "") -> Document:
        """Return the entry for one of the program's events."""
        command = command or self.build_command(event)
        seconds = START_TIMEOUT_SECONDS if event == self.start_event else HOOK_TIMEOUT_SECONDS
        match self.form:
            case EntryForm.COPILOT:
                return {"type": "command", "bash": command, "timeoutSec": seconds}
            case EntryForm.CURSOR:
                return {"command": command, "timeout": seconds}
        return {"hooks": [{"type": "command", "command": command, "timeout": seconds * self.timeout_unit}]}

    def is_own(self, entry: object) -> bool:
        """Return whether an entry of an event was written by Proofstone, possibly by another version."""
        if not isinstance(entry, dict):
            return False
        commands = [entry] if self.is_flat else entry.get("hooks", [])
        return isinstance(commands, list) and len(commands) == 1 and _starts_proofstone(commands[0])


DIALECTS: Final[Mapping[str, Dialect]] = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            "claude",
            "Claude Code",
            ".claude/settings.json",
            "SessionStart",
            ("Stop", "SubagentStop"),
            "block",
            "Claude Code asks once whether it trusts the project; `/hooks` shows the hook.",
            project_variable="CLAUDE_PROJECT_DIR",
        ),
        Dialect(
            "codex",
            "Codex",
            ".codex/hooks.json",
            "SessionStart",
            ("Stop", "SubagentStop"),
            "block",
            "Codex runs hooks of a project only after you have trusted the project and reviewed them: `/hooks`.",
        ),
        Dialect(
            "gemini",
            "Gemini CLI",
            ".gemini/settings.json",
            "SessionStart",
            ("AfterAgent",),
            "deny",
            "Gemini CLI runs hooks of a project only if you trust its folder.",
            timeout_unit=1000,
            project_variable="GEMINI_PROJECT_DIR",
        ),
        Dialect(
            "qwen",
            "Qwen Code",
            ".qwen/settings.json",
            "SessionStart",
            ("Stop", "SubagentStop"),
            "block",
            "Qwen Code runs hooks of a project only if you trust its folder.",
            timeout_unit=1000,
            project_variable="QWEN_PROJECT_DIR",
        ),
        Dialect(
            "copilot",
            "Copilot CLI",
            ".github/hooks/proofstone.json",
            "sessionStart",
            ("agentStop", "subagentStop"),
            "block",
            "Copilot CLI runs hooks of a project only if you trust its folder, and is started in it.",
            form=EntryForm.COPILOT,
        ),
        Dialect(
            "cursor",
            "Cursor",
            ".cursor/hooks.json",
            "sessionStart",
            ("stop",),
            "followup_message",
            "Cursor runs hooks of a project only in a workspace that you trust.",
            form=EntryForm.CURSOR,
        ),
    )
}

OPENCODE: Final = Dialect(
    "opencode",
    "opencode",
    ".opencode/plugin/proofstone.js",
    "session.created",
    ("session.idle",),
    "block",
    "opencode loads the plugin when it starts. `opencode run` ends as soon as the agent is idle, before it can be sent "
    "back: the plugin serves the interactive program.",
)

ALL_DIALECTS: Final[Mapping[str, Dialect]] = {**DIALECTS, OPENCODE.name: OPENCODE}

PLUGIN: Final = """\
// Written by `proofstone export hooks opencode`. When a session begins, its commit is recorded. When the agent is done,
// `proofstone check` compares with that commit and reports problems.
export const Proofstone = async ({ client, directory, $ }) => ({
  event: async ({ event }) => {
    if (event.type === "session.created") {
      const started = new Response(JSON.stringify({ session_id: event.properties.info?.id, cwd: directory }))
      const done = await $`proofstone hook run agent-start --agent opencode < ${started}`.quiet().nothrow()
      if (done.exitCode !== 0) console.error(`proofstone: ${done.stderr}`)
      return
    }
    if (event.type !== "session.idle") return
    const id = event.properties.sessionID
    const session = await client.session.get({ path: { id } })
    if (session.data?.parentID) return
    const told = new Response(JSON.stringify({ session_id: id, cwd: directory }))
    const done = await $`proofstone hook run agent-stop --agent opencode < ${told}`.quiet().nothrow()
    if (done.exitCode !== 0 && !done.stdout.length) {
      console.error(`proofstone: ${done.stderr}`)
      return
    }
    const answer = JSON.parse(done.stdout.toString().trim() || "{}")
    if (answer.systemMessage) console.error(answer.systemMessage)
    if (answer.decision !== "block") return
    await client.session.prompt({ path: { id }, body: { parts: [{ type: "text", text: answer.reason }] } })
  },
})
"""

INSTRUCTION: Final = """\
## Before you say that you are done

Run `proofstone check`. It runs the project's checks on your change, in a sandbox, and compares them with the base. If
it exits with anything but 0, fix what it names, in the code and not in the checks, and run it again. Say that you are
done only after it says PASSED, and quote its last lines. NOTHING-TO-CHECK is no pass. If a test or a requirement is
wrong, do not change it: dispute it with `proofstone dispute SUBJECT --because "why"`, and tell the person, who decides.
"""


def read_document(name: str, text: str) -> Document:
    """Read a settings file. Raise InputError if it is not JSON that can be rewritten without loss."""
    try:
        document = json.loads(text, object_pairs_hook=_refuse_duplicate_keys) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise InputError(
            f"{name}:{error.lineno}: not valid JSON: {error.msg}",
            hint="correct the file, which must not contain comments; --print shows what to add by hand",
        ) from error
    except _DuplicateKeyError as error:
        raise InputError(f"{name}: the key {error} occurs twice", hint="keep only one of them") from error
    except (ValueError, RecursionError) as error:  # a number with thousands of digits, or nested too deeply
        raise InputError(
            f"{name}: this JSON cannot be read: {error}", hint="correct the file, or move it away"
        ) from error
    if not isinstance(document, dict):
        raise InputError(f"{name}: not a JSON object", hint="settings are an object: {}")
    return document


def add_hook(dialect: Dialect, document: Document, name: str) -> Document:
    """Return the document with the hook added. Everything else stays as it was, in its order."""
    result = dict(document) or ({"version": 1} if dialect.is_flat else {})
    hooks = dict(_require_object(result.get("hooks", {}), f"{name}: hooks"))
    for event in dialect.all_events:
        others = _require_list(hooks.get(event, []), f"{name}: hooks.{event}")
        position = next((index for index, entry in enumerate(others) if dialect.is_own(entry)), len(others))
        foreign = [entry for entry in others if not dialect.is_own(entry)]
        hooks[event] = [*foreign[:position], dialect.build_entry(event), *foreign[position:]]
    result["hooks"] = hooks
    return result


def remove_hook(dialect: Dialect, document: Document, name: str) -> Document:
    """Return the document without the hook, and without what only the hook needed."""
    hooks = dict(_require_object(document.get("hooks", {}), f"{name}: hooks"))
    for event in dialect.all_events:
        entries = _require_list(hooks.get(event, []), f"{name}: hooks.{event}")
        foreign = [entry for entry in entries if not dialect.is_own(entry)]
        if foreign == entries:
            continue
        hooks[event] = foreign
        if not foreign:
            del hooks[event]
    if hooks == document.get("hooks"):
        return document
    result = {**document, "hooks": hooks}
    if not hooks:
        del result["hooks"]
    return result


def is_empty_document(dialect: Dialect, document: Document) -> bool:
    """Return whether the document is empty, so that the file can be removed."""
    return document in ({}, {"version": 1} if dialect.is_flat else {})


def format_document(document: Document, like: str = "") -> str:
    """Return the document as text, indented like the original text."""
    indentation = re.search(r"^\{\r?\n([ \t]+)\S", like)
    text = json.dumps(document, indent=indentation[1] if indentation else 2, ensure_ascii=False)
    return text + ("" if like and not like.endswith("\n") else "\n")


def format_answer(dialect: Dialect, send_back: str, remark: str) -> str:
    """Return what the program expects on the hook's standard output. Empty if there is nothing to say."""
    if dialect.form is EntryForm.CURSOR:
        return json.dumps({dialect.decision: send_back}) if send_back else ""
    if send_back:
        return json.dumps({"decision": dialect.decision, "reason": send_back})
    return json.dumps({"systemMessage": remark}) if remark else ""


class _DuplicateKeyError(ValueError):
    pass


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> Document:
    document: Document = {}
    for key, value in pairs:
        if key in document:
            raise _DuplicateKeyError(repr(key))
        document[key] = value
    return document


def _starts_proofstone(command: object) -> bool:
    if not isinstance(command, dict):
        return False
    text = command.get("command", command.get("bash"))
    return isinstance(text, str) and any(f"proofstone hook run {event}" in text for event in (START_EVENT, STOP_EVENT))


def _require_object(value: object, where: str) -> Document:
    if not isinstance(value, dict):
        raise InputError(f"{where} is not an object", hint="it must map events to lists of hooks")
    return value


def _require_list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{where} is not a list", hint="each event must have a list of hooks")
    return value


_EXPIRY_SECONDS: Final = 7 * 24 * 3600


@dataclass(frozen=True)
class StopRounds:
    folder: Path
    conversation: str

    @property
    def _file(self) -> Path:
        return self.folder / hashlib.sha256(self.conversation.encode("utf-8", "backslashreplace")).hexdigest()[:20]

    def read_count(self) -> int:
        try:
            return int(self._file.read_text("ascii"))
        except (FileNotFoundError, ValueError):
            return 0

    def write_count(self, count: int) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file.write_text(str(count), "ascii")
        for file in self.folder.iterdir():
            if seconds_since_use(file, time.time()) > _EXPIRY_SECONDS:
                file.unlink(missing_ok=True)

    def forget(self) -> None:
        self._file.unlink(missing_ok=True)
