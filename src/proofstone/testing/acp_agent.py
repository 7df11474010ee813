"""A coding agent that is none: it speaks the Agent Client Protocol and does what a script tells it to.

    python -m proofstone.testing.acp_agent SCRIPT.json

    {"runs": [{"steps": [{"edit": {"path": "a.txt", "content": "b\\n"}}, {"say": "Done."}]}]}

A script holds `runs`: the one whose number is how often the prompt says `You said:` is played, among those whose `when`
is in the prompt; the last one again, if there are no more. `begun` and `offer` are added to what it answers to
`initialize` and `session/new`, `first` are steps before anything is answered, `key` names a variable without which it
wants a login, `lingers` says that it does not end when its input does, `log` names a file for every message that it
gets and sends, `calls_it` what it answers to a prompt that was cancelled. Steps are the methods of `Player` below.

It has only the standard library, so that it starts quickly wherever it must, and it can break every rule of the
protocol: that is what it is for. Tests hold what it says when it keeps to them against the protocol's own schema.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

_OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]
_LONG = 3000.0


class CancelledError(Exception):
    """The client has cancelled the turn."""


class Player:
    """One session. Each public method is a step of a script, and takes what stands beside its name there."""

    def __init__(self, script: Mapping[str, Any]) -> None:
        self._script = script
        self._wire = Wire(script.get("log"))
        self._cwd = Path.cwd()
        self._session = "session-1"
        self._number = 0
        self._logged_in = False
        self._answer: dict[str, Any] = {"stopReason": "end_turn"}

    def serve(self) -> None:
        for step in self._script.get("first", ()):
            self.play(step)
        while (message := self._wire.receive()) is not None:
            if "id" in message and "method" in message:
                self._serve(message)
        if self._script.get("lingers"):
            time.sleep(_LONG)

    def play(self, step: Mapping[str, Any]) -> None:
        ((name, given),) = step.items()
        getattr(self, name)(given)

    def say(self, text: str) -> None:
        self._update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})

    def spell(self, text: str) -> None:
        """The same, in pieces."""
        for at in range(0, len(text), 5):
            self.say(text[at : at + 5])

    def think(self, text: str) -> None:
        self._update({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}})

    def edit(self, given: Mapping[str, Any]) -> None:
        """A file, by itself, if it may; `ask: false`: without asking."""
        path = self._cwd / given["path"]
        call = self._call("edit", f"Edit {given['path']}", str(path), {"file_path": str(path)})
        call["content"] = [{"type": "diff", "path": str(path), "newText": given["content"]}]
        self._update({"sessionUpdate": "tool_call", "status": "pending", **call})
        allowed = given.get("ask", True) is False or self._may(call)
        if allowed:
            path.write_text(given["content"])
        self._over(call, ok=allowed)

    def shell(self, command: str) -> None:
        call = self._call("execute", command, None, {"command": command})
        self._update({"sessionUpdate": "tool_call", "status": "pending", **call})
        allowed = self._may(call)
        if allowed:
            subprocess.run(command, shell=True, cwd=self._cwd, check=False, stdin=subprocess.DEVNULL)  # noqa: S602
        self._over(call, ok=allowed)

    def write(self, given: Mapping[str, Any]) -> None:
        """A file, by the client; what came of it is said."""
        self.request({"method": "fs/write_text_file", "params": self._at(given)})

    def read(self, given: Mapping[str, Any]) -> None:
        self.request({"method": "fs/read_text_file", "params": self._at(given)})

    def ask(self, given: Mapping[str, Any]) -> None:
        """For permission, with a call (and options) of the script's own; what came of it is said."""
        call = {"toolCallId": self._id(), **json.loads(json.dumps(given["call"]).replace("ROOT", str(self._cwd)))}
        asked = {"sessionId": self._session, "toolCall": call, "options": given.get("options", _OPTIONS)}
        self.request({"method": "session/request_permission", "params": asked})

    def request(self, given: Mapping[str, Any]) -> None:
        """Anything of the client; what came of it is said."""
        answer = self._request(given["method"], given.get("params", {}))
        kept = {key: value for key, value in answer.items() if key in ("result", "error")}
        self.say(json.dumps(kept, ensure_ascii=False) + "\n")

    def tell(self, update: Mapping[str, Any]) -> None:
        self._update(update)

    def flood(self, count: int) -> None:
        for number in range(count):
            self.think(f"{number} ")

    def print(self, text: str) -> None:
        """What is no message."""
        self._wire.print(text.encode() + b"\n")

    def print_bytes(self, coded: str) -> None:
        self._wire.print(base64.b64decode(coded))

    def complain(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def leave_child(self, seconds: str) -> None:
        """A process that outlives it."""
        subprocess.Popen(["sleep", seconds], stdin=subprocess.DEVNULL, start_new_session=True)

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def hang(self, _: object) -> None:
        """Until it is cancelled."""
        while (message := self._wire.receive()) is not None:
            if message.get("method") == "session/cancel":
                raise CancelledError

    def sleep(self, _: object) -> None:
        """Whatever it is told."""
        time.sleep(_LONG)

    def exit(self, code: int) -> NoReturn:
        os._exit(code)

    def die(self, _: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def stop(self, answer: Mapping[str, Any]) -> None:
        """What the prompt is answered with, at the end: `{"stopReason": "refusal"}`."""
        self._answer |= answer

    def fail(self, error: Mapping[str, Any]) -> None:
        """The prompt is answered with an error."""
        self._answer = {"error": dict(error)}

    def _serve(self, message: Mapping[str, Any]) -> None:
        given = message.get("params") or {}
        match message["method"]:
            case "initialize":
                said = {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}
                self._reply(message, {**said, **self._script.get("begun", {})})
            case "authenticate":
                self._logged_in = os.environ.get(self._script["key"]) is not None
                self._reply(message, {})
            case "session/new" if "key" in self._script and not self._logged_in:
                self._reply(message, {"error": {"code": -32000, "message": "Authentication required"}})
            case "session/new":
                self._cwd = Path(given["cwd"])
                self._reply(message, {"sessionId": self._session, **self._script.get("offer", {})})
            case "session/prompt":
                self._prompted(message, "\n".join(block["text"] for block in given["prompt"]))
            case "session/set_mode" | "session/set_config_option" | "session/set_model":
                self.complain(f"{message['method']} {json.dumps(given)}")
                self._reply(message, self._script.get("set", {}))
            case method:
                self._reply(message, {"error": {"code": -32601, "message": f"there is no {method}"}})

    def _prompted(self, message: Mapping[str, Any], prompt: str) -> None:
        turns = sum(line == "You said:" for line in prompt.splitlines())
        fitting = [run for run in self._script["runs"] if run.get("when", "") in prompt]
        try:
            for step in fitting[min(turns, len(fitting) - 1)]["steps"]:
                self.play(step)
        except CancelledError:
            self._answer["stopReason"] = self._script.get("calls_it", "cancelled")
        self._reply(message, self._answer)

    def _call(self, kind: str, title: str, path: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
        locations = [{"path": path}] if path else []
        return {"toolCallId": self._id(), "kind": kind, "title": title, "locations": locations, "rawInput": given}

    def _may(self, call: Mapping[str, Any]) -> bool:
        asked = {"sessionId": self._session, "toolCall": dict(call), "options": _OPTIONS}
        answer = self._request("session/request_permission", asked)
        return answer.get("result", {}).get("outcome", {}).get("optionId") in ("yes", "always")

    def _over(self, call: Mapping[str, Any], *, ok: bool) -> None:
        status = "completed" if ok else "failed"
        self._update({"sessionUpdate": "tool_call_update", "toolCallId": call["toolCallId"], "status": status})

    def _at(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {"sessionId": self._session, **given, "path": str(self._cwd / given["path"])}

    def _id(self) -> str:
        self._number += 1
        return f"call-{self._number}"

    def _update(self, update: Mapping[str, Any]) -> None:
        self._wire.send({"method": "session/update", "params": {"sessionId": self._session, "update": dict(update)}})

    def _request(self, method: str, given: object) -> dict[str, Any]:
        id = self._id()
        self._wire.send({"id": id, "method": method, "params": given})
        while (message := self._wire.receive()) is not None:
            if message.get("method") == "session/cancel":
                raise CancelledError
            if message.get("id") == id and "method" not in message:
                return message
        sys.exit("the client has gone")

    def _reply(self, message: Mapping[str, Any], said: Mapping[str, Any]) -> None:
        answer = {"error": said["error"]} if "error" in said else {"result": dict(said)}
        self._wire.send({"id": message["id"], **answer})


class Wire:
    """Standard input and output, and a log of what goes through them."""

    def __init__(self, log: str | None) -> None:
        self._log = Path(log) if log else None

    def send(self, message: Mapping[str, Any]) -> None:
        text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False)
        self._note("sent", text)
        self.print(text.encode("utf-8", "surrogatepass") + b"\n")

    def receive(self) -> dict[str, Any] | None:
        line = sys.stdin.buffer.readline()
        if not line:
            return None
        self._note("got", line.decode())
        message: dict[str, Any] = json.loads(line)
        return message

    def print(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def _note(self, way: str, text: str) -> None:
        if self._log:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps([way, json.loads(text)]) + "\n")


if __name__ == "__main__":
    Player(json.loads(Path(sys.argv[1]).read_text("utf-8"))).serve()
