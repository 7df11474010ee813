"""Decide whether a command line can prove anything about a change.

A command proves something only if its exit code can come from a program that examines the change. `true` examines
nothing; `pytest || true` does, but discards the result. The parser below knows only the shell grammar that this
question needs. A command that it cannot parse is assumed to be honest, because it is run and judged anyway.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import dropwhile

from proofstone.common.shell import ShellSyntaxError, ShellToken, lex, unquote

VACUOUS_REASON = "proves nothing: it does not check whether the change is right"

_SHOWS_ONLY = frozenset((":", "true", "echo", "printf", "cat", "ls", "pwd", "date", "sleep", "set", "export", "unset"))
"""Programs that succeed whatever the change is, or only show something, or only prepare the environment."""

_SHOWS_ONLY_STRICT = frozenset(("head", "tail", "wc", "tee", "less", "more", "cd", "pushd", "popd"))
"""Programs that are no better as the proof of a plan; a person at the terminal may have a reason to use them."""

_WRAPPERS = frozenset(("sudo", "time", "command", "builtin", "env", "exec", "nohup", "nice", "timeout"))
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh"))
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_OPTION_OR_NUMBER = re.compile(r"-|\d+[smhd]?$")
_COMMAND_OPTION = re.compile(r"-[a-z]*c$")
_INFO_OPTIONS = frozenset(("--version", "--help", "--collect-only", "--co"))
_SEPARATORS = frozenset((";", "&", "\n", ";;"))
_MAX_DEPTH = 40
_SHELL_CHARACTERS = frozenset("|&;<>$`()\n")


def is_compound(command: str) -> bool:
    """Return whether the shell does more than start one program, so that the exit code may come from any of several."""
    return bool(set(command) & _SHELL_CHARACTERS)


def is_vacuous(command: str) -> bool:
    """Return whether the exit code says nothing about the change: `true`, `echo ok`, `test -f x; true`, `pytest ||
    true`.
    """
    return not _can_prove(command)


def proves_nothing(command: str) -> bool:
    """Return the same as `is_vacuous`, by the strict rules for plans: `ls | wc -l`, `cd web`, `pytest; sleep 1`."""
    return not _can_prove(command, is_strict=True)


def loses_exit_code(command: str) -> bool:
    """Return whether a pipe ends in a program that only shows output: the exit code of `pytest | tail -5` is tail's."""
    return not _can_prove(command, is_strict=True, last_of_pipe=True)


def _can_prove(command: str, *, is_strict: bool = False, last_of_pipe: bool = False, depth: int = 0) -> bool:
    try:
        return _Parser(lex(command), is_strict, last_of_pipe, depth).parse()
    except ShellSyntaxError:
        return True


@dataclass(frozen=True)
class _ExitMeaning:
    """What the exit code of one part of a command line can say."""

    can_fail: bool
    last_can_fail: bool = False
    """Whether the last command of an and-or list can fail; `set -e` reacts to that command only."""
    exits: bool = False
    """Whether this part ends the whole command line with its own failure: `|| exit 1`."""
    keeps_previous: bool = False
    """Whether the exit code of the part before still counts: a bare `exit` returns it."""


@dataclass
class _Parser:
    """A parser that passes once over the tokens of a command line."""

    tokens: tuple[ShellToken, ...]
    is_strict: bool
    last_of_pipe: bool
    depth: int = 0
    at: int = 0
    stops_at_failure: bool = field(default=False, init=False)

    def parse(self) -> bool:
        result = self._parse_list(frozenset())
        if self.at < len(self.tokens):
            raise ShellSyntaxError
        return result.can_fail

    def _parse_list(self, ends: frozenset[str]) -> _ExitMeaning:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise ShellSyntaxError
        can_fail = exits = False
        while (token := self._peek()) is not None and token.text not in ends:
            if token.is_operator and token.text in _SEPARATORS:
                can_fail = can_fail and token.text != "&"
                self.at += 1
                continue
            result = self._parse_and_or()
            exits = exits or result.exits
            earlier_can_fail = can_fail and (result.keeps_previous or self.stops_at_failure)
            can_fail = result.can_fail or earlier_can_fail or (self.stops_at_failure and result.last_can_fail)
        self.depth -= 1
        return _ExitMeaning(can_fail or exits, exits=exits)

    def _parse_and_or(self) -> _ExitMeaning:
        result = self._parse_pipe()
        exits, can_fail, last = result.exits, result.can_fail, result
        while (operator := self._operator("&&", "||")) is not None:
            self._skip_lines()
            last = self._parse_pipe()
            exits = exits or (last.exits and can_fail)
            can_fail = (can_fail or last.can_fail) if operator == "&&" else (can_fail and last.can_fail)
        return replace(last, can_fail=can_fail, last_can_fail=last.can_fail, exits=exits)

    def _parse_pipe(self) -> _ExitMeaning:
        results = [self._parse_command()]
        while self._operator("|", "|&") is not None:
            self._skip_lines()
            results.append(self._parse_command())
        if len(results) == 1:
            return results[0]
        return _ExitMeaning(results[-1].can_fail if self.last_of_pipe else any(result.can_fail for result in results))

    def _parse_command(self) -> _ExitMeaning:
        token = self._peek()
        if token is None:
            raise ShellSyntaxError
        if token.is_operator:
            if token.text != "(":
                raise ShellSyntaxError
            self.at += 1
            inside = self._parse_list(frozenset(")"))
            self._expect(")")
            return _ExitMeaning(inside.can_fail)
        match token.text:
            case "{":
                return self._parse_block("}")
            case "if":
                return self._parse_if()
            case "while" | "until":
                self.at += 1
                condition = self._parse_list(frozenset(("do",)))
                body = self._parse_block("done")
                return replace(body, can_fail=body.can_fail or condition.can_fail)
            case "for" | "select":
                while (token := self._peek()) is not None and token.text != "do":
                    self.at += 1
                return self._parse_block("done")
            case "!" | "[[" | "case" | "function":
                return self._assume_honest(token.text)
        return self._parse_simple()

    def _parse_block(self, end: str) -> _ExitMeaning:
        self.at += 1
        inside = self._parse_list(frozenset((end,)))
        self._expect(end)
        return inside

    def _parse_if(self) -> _ExitMeaning:
        """Ignore the condition, which only selects the branch: the exit code comes from a branch."""
        can_fail = exits = False
        while (token := self._peek()) is not None and token.text != "fi":
            is_branch = token.text not in ("if", "elif")
            self.at += 1
            result = self._parse_list(frozenset(("then", "elif", "else", "fi")))
            can_fail = can_fail or (is_branch and result.can_fail)
            exits = exits or (is_branch and result.exits)
        self._expect("fi")
        return _ExitMeaning(can_fail, exits=exits)

    def _assume_honest(self, opening: str) -> _ExitMeaning:
        if opening == "!":
            while (token := self._peek()) is not None and token.text == "!":
                self.at += 1
            inverted = self._parse_command()
            return inverted if self.is_strict else _ExitMeaning(can_fail=True)
        end = {"[[": "]]", "case": "esac", "function": "}"}[opening]
        while (token := self._peek()) is not None and token.text != end:
            self.at += 1
        self._expect(end)
        return _ExitMeaning(can_fail=True)

    def _parse_simple(self) -> _ExitMeaning:
        words = []
        while (token := self._peek()) is not None and not token.is_operator:
            words.append(token.text)
            self.at += 1
        if len(words) == 1 and self._operator("(") is not None:  # `name() { … }` defines a function and runs nothing
            self._expect(")")
            self._skip_lines()
            self._expect("{")
            self.at -= 1
            self._parse_block("}")
            return _ExitMeaning(can_fail=False)
        return self._judge_words(words)

    def _judge_words(self, raw: list[str]) -> _ExitMeaning:
        if raw and all(map(_ASSIGNMENT.match, raw)):
            return _ExitMeaning(can_fail="$(" in raw[-1] or "`" in raw[-1])
        words = [unquote(word) for word in dropwhile(_ASSIGNMENT.match, raw)]
        if words and words[0] in _WRAPPERS:
            words = [*dropwhile(_is_wrapper, words)]
        if not words:
            return _ExitMeaning(can_fail=False)
        name = words[0].rpartition("/")[2]
        if name == "set":
            self._apply_set(words[1:])
        if name == "exit":
            is_success = not words[1:] or not words[1].strip("0")
            return _ExitMeaning(not is_success, exits=not is_success, keeps_previous=len(words) == 1)
        if name in _SHELLS and (
            options := [at for at, word in enumerate(words[1:-1], 1) if _COMMAND_OPTION.match(word)]
        ):
            inner, piped = words[options[0] + 1], self.last_of_pipe and "pipefail" not in words
            return _ExitMeaning(_can_prove(inner, is_strict=self.is_strict, last_of_pipe=piped, depth=self.depth + 1))
        if self.is_strict and (_examines_nothing(name, words[1:]) or _INFO_OPTIONS & set(words[1:])):
            return _ExitMeaning(can_fail=False)
        if name == "sleep" and not self.is_strict:
            return _ExitMeaning(can_fail=False, keeps_previous=True)  # nobody hides a failure by waiting
        return _ExitMeaning(name not in _SHOWS_ONLY and not (self.is_strict and name in _SHOWS_ONLY_STRICT))

    def _apply_set(self, options: list[str]) -> None:
        if any(option == "errexit" or (option[:1] == "-" and "e" in option) for option in options):
            self.stops_at_failure = True
        if "pipefail" in options:
            self.last_of_pipe = False

    def _peek(self) -> ShellToken | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def _operator(self, *texts: str) -> str | None:
        token = self._peek()
        if token is None or not token.is_operator or token.text not in texts:
            return None
        self.at += 1
        return token.text

    def _expect(self, text: str) -> None:
        token = self._peek()
        if token is None or token.text != text:
            raise ShellSyntaxError
        self.at += 1

    def _skip_lines(self) -> None:
        while self._operator("\n") is not None:
            pass


def _examines_nothing(name: str, arguments: list[str]) -> bool:
    """Return whether the command examines no file: `test 1`, `[ 1 ]`, `python3 -c pass`, `! false`, a trap."""
    if name in ("test", "["):
        return len([word for word in arguments if word != "]"]) < 2
    return name in ("false", "trap", "wait") or (
        name.startswith("python") and arguments in (["-c", "pass"], ["-c", ""])
    )


def _is_wrapper(word: str) -> bool:
    """Return whether the word comes before the program that really runs: `sudo`, `timeout 60`, `env A=1`."""
    return word in _WRAPPERS or bool(_OPTION_OR_NUMBER.match(word) or _ASSIGNMENT.match(word))
