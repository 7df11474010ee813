"""Repeats recorded calls in a process that knows nothing of tests, and writes down the answers.

    python proofstone_replay.py

The calls stand in `observe.json` of the report directory under `repeat`; each answer becomes a line of
`observed-replay-PID.jsonl`. Nothing of a runner is imported, and the modules of the probes leave `sys.modules` before
the first call. Runs on Python 3.8 or later.
"""

import importlib
import json
import os
import signal
import sys
import tempfile

import proofstone_observe
import proofstone_probe
import proofstone_values

_OF_A_PERSON = {
    "USER": "robin",
    "LOGNAME": "robin",
    "SHELL": "/bin/bash",
    "TERM": "xterm-256color",
    "HOSTNAME": "desk",
    "DISPLAY": ":0",
    "EDITOR": "vi",
    "SSH_AUTH_SOCK": "/run/user/1000/keyring/ssh",
    "XDG_SESSION_TYPE": "x11",
}
"""Variables that a person's session has, and a sandbox may not have."""
_DISGUISED = ("PYTEST", "CI", "GITHUB_", "GITLAB_", "TOX_", "NOX_", "BUILD_", "COVERAGE", "PROOFSTONE")


class _GivenUpError(BaseException):
    """A call took too long."""


def _invoke(function, arguments, options):
    return function(*arguments, **options)


def _give_up(number, frame):
    raise _GivenUpError


def replay(directory, request, runner, invoke=_invoke):
    """Make the calls through `invoke` and write the answers."""
    asked = request["repeat"]
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [place for place in sys.path if place != here]
    sys.path += [place for place in asked["path"] if place != here and place not in sys.path]
    folder = os.getcwd()
    journal = proofstone_probe.Journal(directory, "observed-" + runner)
    journal.write("start", runner=runner, base=request["root"])
    calls = list(enumerate(asked["calls"]))
    if asked["backwards"]:
        calls.reverse()
    if asked["call_seconds"]:
        signal.signal(signal.SIGPROF, _give_up)
    for number, call in calls:
        for _ in range(asked["times"]):
            answer = _repeat(call, invoke, asked["call_seconds"])
            os.chdir(folder)
            if answer is not None:
                journal.write("answer", number=number, answer=answer)
    journal.write("finish")


def _repeat(call, invoke, seconds=0):
    """Return the answer of one call; None if it cannot be repeated, or was given up."""
    try:
        function = _find(call["module"], call["name"], call.get("is_attribute", False))
        values = [proofstone_values.decode(value) for value in json.loads(call["arguments"])]
    except BaseException:  # the project's own modules are loaded here
        return None
    named = dict(zip((name for names in call["parameters"] for name in names), values))
    positional, starred, keywords, double = call["parameters"]
    arguments = [named[name] for name in positional]
    for name in starred:
        arguments += named[name]
    options = {name: named[name] for name in keywords}
    for name in double:
        options.update(named[name])
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            value = invoke(function, arguments, options)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except _GivenUpError:
        return None
    except BaseException as error:
        return ["error", type(error).__name__]
    try:
        return ["value", proofstone_values.encode(value)]
    except Exception:
        return None


def _find(module, name, is_attribute=False):
    """The function itself, below its decorators; or what the attribute holds."""
    found = importlib.import_module(module)
    parts = name.split(".")
    for part in parts[:-1]:
        found = getattr(found, part)
    found = vars(found)[parts[-1]]
    if is_attribute:
        return found
    for _ in range(20):
        inner = getattr(found, "__func__", None) or getattr(found, "__wrapped__", None) or getattr(found, "fget", None)
        if inner is None:
            break
        found = inner
    if found.__code__.co_name != parts[-1]:
        raise LookupError(name)
    return found


def main():
    directory = proofstone_probe.take_report_directory()
    request = proofstone_observe.read_request(directory)
    sys.argv[:] = ["main"]
    if request["repeat"]["backwards"]:
        os.chdir(tempfile.mkdtemp())
        for name in [name for name in os.environ if name.startswith(_DISGUISED)]:
            del os.environ[name]
        for name, value in _OF_A_PERSON.items():
            os.environ.setdefault(name, value)
    for name in [name for name in sys.modules if name.startswith("proofstone_")]:
        del sys.modules[name]
    replay(directory, request, "replay")


if __name__ == "__main__":
    main()
