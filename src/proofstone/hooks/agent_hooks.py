"""Hook configuration for coding agents: what they run when they say that they are done, and how they hear the answer.

The table below is what is known of each program. Only programs whose hook can send words back to the model are in it;
for all others there is a paragraph of instructions, which an agent may or may not follow.

How often an agent was sent back since it last passed: one small file for each conversation, in the state directory.

A file that is lost costs a few rounds more; so it is neither locked nor synchronised.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from proofstone.errors import InputError
from proofstone.machine.files import seconds_since_use

SECONDS: Final = 900
"""How long an agent waits for the check. What takes longer is not waited for, and the agent stops unproven."""

Document = dict[str, Any]


@dataclass(frozen=True)
class Dialect:
    """How one program is told of a hook, and answered."""

    name: str
    file: str
    """Below the project's root."""
    events: tuple[str, ...]
    decision: str
    """The word that keeps the agent from stopping."""
    next: str
    """What the person has to know or do."""
    timeout: int = SECONDS
    """In the program's own unit."""
    flat: bool = False
    """Copilot's form: an event lists commands, not groups of them."""

    @property
    def command(self) -> str:
        return f"proofstone hook run agent-stop --agent {self.name}"

    def entry(self) -> Document:
        if self.flat:
            return {"type": "command", "bash": self.command, "timeoutSec": self.timeout}
        return {"hooks": [{"type": "command", "command": self.command, "timeout": self.timeout}]}

    def is_own(self, entry: object) -> bool:
        """Whether an entry of an event is the one that was written here, perhaps by another version."""
        if not isinstance(entry, dict):
            return False
        commands = [entry] if self.flat else entry.get("hooks", [])
        return isinstance(commands, list) and len(commands) == 1 and _starts_proofstone(commands[0])


DIALECTS: Final[Mapping[str, Dialect]] = {
    item.name: item
    for item in (
        Dialect(
            "claude",
            ".claude/settings.json",
            ("Stop", "SubagentStop"),
            "block",
            "Claude Code asks once whether it trusts the project; `/hooks` shows the hook.",
        ),
        Dialect(
            "codex",
            ".codex/hooks.json",
            ("Stop", "SubagentStop"),
            "block",
            "Codex runs hooks of a project only after you have trusted the project and reviewed them: `/hooks`.",
        ),
        Dialect(
            "gemini",
            ".gemini/settings.json",
            ("AfterAgent",),
            "deny",
            "Gemini CLI runs hooks of a project only if you trust its folder.",
            timeout=SECONDS * 1000,
        ),
        Dialect(
            "qwen",
            ".qwen/settings.json",
            ("Stop", "SubagentStop"),
            "block",
            "Qwen Code runs hooks of a project only if you trust its folder.",
            timeout=SECONDS * 1000,
        ),
        Dialect(
            "copilot",
            ".github/hooks/proofstone.json",
            ("agentStop", "subagentStop"),
            "block",
            "Copilot CLI runs hooks of a project only if you trust its folder, and is started in it.",
            flat=True,
        ),
    )
}

OPENCODE: Final = Dialect(
    "opencode",
    ".opencode/plugin/proofstone.js",
    ("session.idle",),
    "block",
    "opencode loads the plugin when it starts. `opencode run` ends as soon as the agent is idle, before it can be sent "
    "back: the plugin serves the interactive program.",
)

PLUGIN: Final = """\
// Written by `proofstone export hooks opencode`. When the agent is done, `proofstone check` is run, and what is wrong
is said.
export const Proofstone = async ({ client, directory, $ }) => ({
  event: async ({ event }) => {
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
it
exits with anything but 0, put right what it names, in the code and not in the checks, and run it again. Say that you
are done only after it has passed, and quote its last lines.
"""


def read_document(name: str, text: str) -> Document:
    """A settings file; InputError if it is not the JSON that can be written again without losing anything."""
    try:
        found = json.loads(text, object_pairs_hook=_each_once) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise InputError(
            f"{name}:{error.lineno}: not valid JSON: {error.msg}",
            hint="put it right, without comments; --print shows what to add by hand",
        ) from error
    except _TwiceError as error:
        raise InputError(f"{name}: the key {error} is there twice", hint="keep one of them") from error
    except (ValueError, RecursionError) as error:  # a number with thousands of digits, or nested too deeply
        raise InputError(f"{name}: not JSON that can be read: {error}", hint="put it right, or move it away") from error
    if not isinstance(found, dict):
        raise InputError(f"{name}: holds no JSON object", hint="settings are an object: {}")
    return found


def merged(dialect: Dialect, document: Document, name: str) -> Document:
    """The document with the hook in it; everything else as it was, in its order."""
    new = dict(document) or ({"version": 1} if dialect.flat else {})
    hooks = dict(_object(new.get("hooks", {}), f"{name}: hooks"))
    for event in dialect.events:
        others = _list(hooks.get(event, []), f"{name}: hooks.{event}")
        place = next((at for at, entry in enumerate(others) if dialect.is_own(entry)), len(others))
        kept = [entry for entry in others if not dialect.is_own(entry)]
        hooks[event] = [*kept[:place], dialect.entry(), *kept[place:]]
    new["hooks"] = hooks
    return new


def without(dialect: Dialect, document: Document, name: str) -> Document:
    """The document without the hook, and without what only the hook had needed."""
    hooks = dict(_object(document.get("hooks", {}), f"{name}: hooks"))
    for event in dialect.events:
        entries = _list(hooks.get(event, []), f"{name}: hooks.{event}")
        kept = [entry for entry in entries if not dialect.is_own(entry)]
        if kept == entries:
            continue
        hooks[event] = kept
        if not kept:
            del hooks[event]
    if hooks == document.get("hooks"):
        return document
    new = {**document, "hooks": hooks}
    if not hooks:
        del new["hooks"]
    return new


def is_bare(dialect: Dialect, document: Document) -> bool:
    """Whether nothing is left that anybody needs the file for."""
    return document in ({}, {"version": 1} if dialect.flat else {})


def written(document: Document, like: str = "") -> str:
    """The document as text, indented as the text was that it comes from."""
    found = re.search(r"^\{\r?\n([ \t]+)\S", like)
    text = json.dumps(document, indent=found[1] if found else 2, ensure_ascii=False)
    return text + ("" if like and not like.endswith("\n") else "\n")


def answer(dialect: Dialect, send_back: str, remark: str) -> str:
    """What the program expects on the hook's standard output; nothing to say is nothing."""
    if send_back:
        return json.dumps({"decision": dialect.decision, "reason": send_back})
    return json.dumps({"systemMessage": remark}) if remark else ""


class _TwiceError(ValueError):
    pass


def _each_once(pairs: list[tuple[str, Any]]) -> Document:
    found: Document = {}
    for key, value in pairs:
        if key in found:
            raise _TwiceError(repr(key))
        found[key] = value
    return found


def _starts_proofstone(command: object) -> bool:
    if not isinstance(command, dict):
        return False
    text = command.get("command", command.get("bash"))
    return isinstance(text, str) and "proofstone hook run agent-stop" in text


def _object(value: object, where: str) -> Document:
    if not isinstance(value, dict):
        raise InputError(f"{where} is no object", hint="it maps events to lists of hooks")
    return value


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{where} is no list", hint="an event has a list of hooks")
    return value


_FORGOTTEN_S: Final = 7 * 24 * 3600


@dataclass(frozen=True)
class StopRounds:
    folder: Path
    conversation: str

    @property
    def _file(self) -> Path:
        return self.folder / hashlib.sha256(self.conversation.encode("utf-8", "backslashreplace")).hexdigest()[:20]

    def count(self) -> int:
        try:
            return int(self._file.read_text("ascii"))
        except (FileNotFoundError, ValueError):
            return 0

    def keep(self, count: int) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file.write_text(str(count), "ascii")
        for file in self.folder.iterdir():
            if seconds_since_use(file, time.time()) > _FORGOTTEN_S:
                file.unlink(missing_ok=True)

    def forget(self) -> None:
        self._file.unlink(missing_ok=True)
