"""A fake coding agent: it speaks the Agent Client Protocol and follows a script.

    python -m proofstone.testing.acp_agent SCRIPT.json

    {"runs": [{"steps": [{"edit": {"path": "a.txt", "content": "b\\n"}}, {"say": "Done."}]}]}

A script has `runs`. Only runs whose `when` is in the prompt count; the number of times that the prompt says `You said:`
selects one of them, or the last one if there are not enough. Further keys:
- `begun` and `offer` are added to the answers to `initialize` and `session/new`.
- `first` has steps to take before anything is answered.
- `key` names a variable without which the agent requires a login.
- `lingers` makes the agent stay alive when its input ends.
- `log` names a file for every message that is received or sent.
- `calls_it` is the stop reason for a cancelled prompt.

The steps are the methods of `ScriptedAgent` below.

It uses only the standard library, so that it starts quickly everywhere, and it can break every rule of the protocol:
that is its purpose. Tests check its regular messages against the protocol's own schema.
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
_LONG_SECONDS = 3000.0


class TurnCancelledError(Exception):
    """The client has cancelled the turn."""


class ScriptedAgent:
    """One session. Each public method is a step of a script; its argument is the value next to its name there."""

    def __init__(self, script: Mapping[str, Any]) -> None:
        self._script = script
        self._wire = StdioConnection(script.get("log"))
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
            time.sleep(_LONG_SECONDS)

    def play(self, step: Mapping[str, Any]) -> None:
        ((name, arguments),) = step.items()
        getattr(self, name)(arguments)

    def say(self, text: str) -> None:
        self._update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})

    def spell(self, text: str) -> None:
        """Say a text in pieces."""
        for start in range(0, len(text), 5):
            self.say(text[start : start + 5])

    def think(self, text: str) -> None:
        self._update({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}})

    def edit(self, arguments: Mapping[str, Any]) -> None:
        """Edit a file itself, if the client permits it; `ask: false`: without asking."""
        path = self._cwd / arguments["path"]
        call = self._build_call("edit", f"Edit {arguments['path']}", str(path), {"file_path": str(path)})
        call["content"] = [{"type": "diff", "path": str(path), "newText": arguments["content"]}]
        self._update({"sessionUpdate": "tool_call", "status": "pending", **call})
        allowed = arguments.get("ask", True) is False or self._ask_permission(call)
        if allowed:
            path.write_text(arguments["content"])
        self._report_end(call, ok=allowed)

    def shell(self, command: str) -> None:
        call = self._build_call("execute", command, None, {"command": command})
        self._update({"sessionUpdate": "tool_call", "status": "pending", **call})
        allowed = self._ask_permission(call)
        if allowed:
            subprocess.run(command, shell=True, cwd=self._cwd, check=False, stdin=subprocess.DEVNULL)  # noqa: S602
        self._report_end(call, ok=allowed)

    def write(self, arguments: Mapping[str, Any]) -> None:
        """Have the client write a file, and say the result."""
        self.request({"method": "fs/write_text_file", "params": self._build_file_parameters(arguments)})

    def read(self, arguments: Mapping[str, Any]) -> None:
        self.request({"method": "fs/read_text_file", "params": self._build_file_parameters(arguments)})

    def ask(self, arguments: Mapping[str, Any]) -> None:
        """Ask for permission, with a call (and options) from the script, and say the result."""
        call = {
            "toolCallId": self._next_id(),
            **json.loads(json.dumps(arguments["call"]).replace("ROOT", str(self._cwd))),
        }
        parameters = {"sessionId": self._session, "toolCall": call, "options": arguments.get("options", _OPTIONS)}
        self.request({"method": "session/request_permission", "params": parameters})

    def request(self, arguments: Mapping[str, Any]) -> None:
        """Send any request to the client, and say the result."""
        answer = self._request(arguments["method"], arguments.get("params", {}))
        outcome = {key: value for key, value in answer.items() if key in ("result", "error")}
        self.say(json.dumps(outcome, ensure_ascii=False) + "\n")

    def tell(self, update: Mapping[str, Any]) -> None:
        self._update(update)

    def flood(self, count: int) -> None:
        for number in range(count):
            self.think(f"{number} ")

    def print(self, text: str) -> None:
        """Print a line that is not a message."""
        self._wire.print(text.encode() + b"\n")

    def print_bytes(self, coded: str) -> None:
        self._wire.print(base64.b64decode(coded))

    def complain(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def leave_child(self, seconds: str) -> None:
        """Leave a process behind that outlives the agent."""
        subprocess.Popen(["sleep", seconds], stdin=subprocess.DEVNULL, start_new_session=True)

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def hang(self, _: object) -> None:
        """Wait until the turn is cancelled."""
        while (message := self._wire.receive()) is not None:
            if message.get("method") == "session/cancel":
                raise TurnCancelledError

    def sleep(self, _: object) -> None:
        """Wait, and ignore all messages."""
        time.sleep(_LONG_SECONDS)

    def exit(self, code: int) -> NoReturn:
        os._exit(code)

    def die(self, _: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def stop(self, answer: Mapping[str, Any]) -> None:
        """Set the answer to the prompt: `{"stopReason": "refusal"}`."""
        self._answer |= answer

    def fail(self, error: Mapping[str, Any]) -> None:
        """Answer the prompt with an error."""
        self._answer = {"error": dict(error)}

    def _serve(self, message: Mapping[str, Any]) -> None:
        parameters = message.get("params") or {}
        match message["method"]:
            case "initialize":
                greeting = {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}
                self._reply(message, {**greeting, **self._script.get("begun", {})})
            case "authenticate":
                self._logged_in = os.environ.get(self._script["key"]) is not None
                self._reply(message, {})
            case "session/new" if "key" in self._script and not self._logged_in:
                self._reply(message, {"error": {"code": -32000, "message": "Authentication required"}})
            case "session/new":
                self._cwd = Path(parameters["cwd"])
                self._reply(message, {"sessionId": self._session, **self._script.get("offer", {})})
            case "session/prompt":
                self._answer_prompt(message, "\n".join(block["text"] for block in parameters["prompt"]))
            case "session/set_mode" | "session/set_config_option" | "session/set_model":
                self.complain(f"{message['method']} {json.dumps(parameters)}")
                self._reply(message, self._script.get("set", {}))
            case method:
                self._reply(message, {"error": {"code": -32601, "message": f"there is no {method}"}})

    def _answer_prompt(self, message: Mapping[str, Any], prompt: str) -> None:
        turns = sum(line == "You said:" for line in prompt.splitlines())
        matching_runs = [run for run in self._script["runs"] if run.get("when", "") in prompt]
        try:
            for step in matching_runs[min(turns, len(matching_runs) - 1)]["steps"]:
                self.play(step)
        except TurnCancelledError:
            self._answer["stopReason"] = self._script.get("calls_it", "cancelled")
        self._reply(message, self._answer)

    def _build_call(self, kind: str, title: str, path: str | None, raw_input: Mapping[str, Any]) -> dict[str, Any]:
        locations = [{"path": path}] if path else []
        return {
            "toolCallId": self._next_id(),
            "kind": kind,
            "title": title,
            "locations": locations,
            "rawInput": raw_input,
        }

    def _ask_permission(self, call: Mapping[str, Any]) -> bool:
        parameters = {"sessionId": self._session, "toolCall": dict(call), "options": _OPTIONS}
        answer = self._request("session/request_permission", parameters)
        return answer.get("result", {}).get("outcome", {}).get("optionId") in ("yes", "always")

    def _report_end(self, call: Mapping[str, Any], *, ok: bool) -> None:
        status = "completed" if ok else "failed"
        self._update({"sessionUpdate": "tool_call_update", "toolCallId": call["toolCallId"], "status": status})

    def _build_file_parameters(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {"sessionId": self._session, **arguments, "path": str(self._cwd / arguments["path"])}

    def _next_id(self) -> str:
        self._number += 1
        return f"call-{self._number}"

    def _update(self, update: Mapping[str, Any]) -> None:
        self._wire.send({"method": "session/update", "params": {"sessionId": self._session, "update": dict(update)}})

    def _request(self, method: str, parameters: object) -> dict[str, Any]:
        id = self._next_id()
        self._wire.send({"id": id, "method": method, "params": parameters})
        while (message := self._wire.receive()) is not None:
            if message.get("method") == "session/cancel":
                raise TurnCancelledError
            if message.get("id") == id and "method" not in message:
                return message
        sys.exit("the client has disconnected")

    def _reply(self, message: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        answer = {"error": result["error"]} if "error" in result else {"result": dict(result)}
        self._wire.send({"id": message["id"], **answer})


class StdioConnection:
    """Standard input and output, with a log of the messages."""

    def __init__(self, log: str | None) -> None:
        self._log = Path(log) if log else None

    def send(self, message: Mapping[str, Any]) -> None:
        text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False)
        self._log_message("sent", text)
        self.print(text.encode("utf-8", "surrogatepass") + b"\n")

    def receive(self) -> dict[str, Any] | None:
        line = sys.stdin.buffer.readline()
        if not line:
            return None
        self._log_message("got", line.decode())
        message: dict[str, Any] = json.loads(line)
        return message

    def print(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def _log_message(self, direction: str, text: str) -> None:
        if self._log:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps([direction, json.loads(text)]) + "\n")


if __name__ == "__main__":
    ScriptedAgent(json.loads(Path(sys.argv[1]).read_text("utf-8"))).serve()
