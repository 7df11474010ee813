"""What a person's command line can prove.

A command proves something only if its exit code can come from a program that looks at the change. `true` looks at
nothing; `pytest || true` looks, and then throws the answer away. The reader of shell text below knows as much of the
grammar as that question needs; what it cannot read is taken to be honest, because it is run and judged anyway.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import dropwhile

from proofstone.common.shell import Piece, UnreadableError, lex, unquoted

VACUOUS = "says too little: it does not look at whether the change is right"

_SHOWS_ONLY = frozenset((":", "true", "echo", "printf", "cat", "ls", "pwd", "date", "sleep", "set", "export", "unset"))
"""They succeed whatever the change is, or only show something, or only set the scene."""

_SHOWS_AS_LITTLE = frozenset(("head", "tail", "wc", "tee", "less", "more", "cd", "pushd", "popd"))
"""As a plan's proof they are no better; a person at the terminal may have a reason."""

_WRAPPERS = frozenset(("sudo", "time", "command", "builtin", "env", "exec", "nohup", "nice", "timeout"))
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh"))
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_OPTION_OR_NUMBER = re.compile(r"-|\d+[smhd]?$")
_GIVES_TEXT = re.compile(r"-[a-z]*c$")
_ASKS_ABOUT_ITSELF = frozenset(("--version", "--help", "--collect-only", "--co"))
_NOTHING_MORE = frozenset((";", "&", "\n", ";;"))
_DEEPEST = 40
_SHELL = frozenset("|&;<>$`()\n")


def is_compound(command: str) -> bool:
    """Whether the shell does more than start one program: then its exit code may come from any of several."""
    return bool(set(command) & _SHELL)


def is_vacuous(command: str) -> bool:
    """Whether the exit code says nothing of the change: `true`, `echo ok`, `test -f x; true`, `pytest || true`."""
    return not _can_tell(command)


def proves_nothing(command: str) -> bool:
    """The same, as strictly as a plan must be read: `ls | wc -l`, `cd web`, `pytest; sleep 1`."""
    return not _can_tell(command, strictly=True)


def loses_exit_code(command: str) -> bool:
    """Whether a pipe ends in a program that only shows: of `pytest | tail -5` the shell reports tail's exit code."""
    return not _can_tell(command, strictly=True, last_of_pipe=True)


def _can_tell(command: str, *, strictly: bool = False, last_of_pipe: bool = False, depth: int = 0) -> bool:
    try:
        return _Reading(lex(command), strictly, last_of_pipe, depth).whole()
    except UnreadableError:
        return True


@dataclass(frozen=True)
class _Heard:
    """What one part of a command line tells by its exit code."""

    tells: bool
    finally_tells: bool = False
    """Of an and-or list: its last command, the only one whose failure `set -e` heeds."""
    leaves: bool = False
    """It ends the whole with a failure of its own: `|| exit 1`."""
    keeps: bool = False
    """What ran before it still counts: a bare `exit` leaves with its exit code."""


@dataclass
class _Reading:
    """One pass over the pieces of a command line."""

    pieces: tuple[Piece, ...]
    strictly: bool
    last_of_pipe: bool
    depth: int = 0
    at: int = 0
    stops_at_failure: bool = field(default=False, init=False)

    def whole(self) -> bool:
        heard = self._list(frozenset())
        if self.at < len(self.pieces):
            raise UnreadableError
        return heard.tells

    def _list(self, ends: frozenset[str]) -> _Heard:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise UnreadableError
        tells = leaves = False
        while (piece := self._peek()) is not None and piece.text not in ends:
            if piece.operator and piece.text in _NOTHING_MORE:
                tells = tells and piece.text != "&"
                self.at += 1
                continue
            heard = self._and_or()
            leaves = leaves or heard.leaves
            earlier = tells and (heard.keeps or self.stops_at_failure)
            tells = heard.tells or earlier or (self.stops_at_failure and heard.finally_tells)
        self.depth -= 1
        return _Heard(tells or leaves, leaves=leaves)

    def _and_or(self) -> _Heard:
        heard = self._pipe()
        leaves, tells, last = heard.leaves, heard.tells, heard
        while (operator := self._operator("&&", "||")) is not None:
            self._skip_lines()
            last = self._pipe()
            leaves = leaves or (last.leaves and tells)
            tells = (tells or last.tells) if operator == "&&" else (tells and last.tells)
        return replace(last, tells=tells, finally_tells=last.tells, leaves=leaves)

    def _pipe(self) -> _Heard:
        heard = [self._command()]
        while self._operator("|", "|&") is not None:
            self._skip_lines()
            heard.append(self._command())
        if len(heard) == 1:
            return heard[0]
        return _Heard(heard[-1].tells if self.last_of_pipe else any(item.tells for item in heard))

    def _command(self) -> _Heard:
        piece = self._peek()
        if piece is None:
            raise UnreadableError
        if piece.operator:
            if piece.text != "(":
                raise UnreadableError
            self.at += 1
            inside = self._list(frozenset(")"))
            self._expect(")")
            return _Heard(inside.tells)
        match piece.text:
            case "{":
                return self._block("}")
            case "if":
                return self._if()
            case "while" | "until":
                self.at += 1
                condition = self._list(frozenset(("do",)))
                body = self._block("done")
                return replace(body, tells=body.tells or condition.tells)
            case "for" | "select":
                while (piece := self._peek()) is not None and piece.text != "do":
                    self.at += 1
                return self._block("done")
            case "!" | "[[" | "case" | "function":
                return self._taken_as_honest(piece.text)
        return self._simple()

    def _block(self, end: str) -> _Heard:
        self.at += 1
        inside = self._list(frozenset((end,)))
        self._expect(end)
        return inside

    def _if(self) -> _Heard:
        """Of the condition nothing remains but which branch runs: only what a branch tells is told."""
        tells = leaves = False
        while (piece := self._peek()) is not None and piece.text != "fi":
            branch = piece.text not in ("if", "elif")
            self.at += 1
            heard = self._list(frozenset(("then", "elif", "else", "fi")))
            tells = tells or (branch and heard.tells)
            leaves = leaves or (branch and heard.leaves)
        self._expect("fi")
        return _Heard(tells, leaves=leaves)

    def _taken_as_honest(self, opening: str) -> _Heard:
        if opening == "!":
            while (piece := self._peek()) is not None and piece.text == "!":
                self.at += 1
            turned = self._command()
            return turned if self.strictly else _Heard(tells=True)
        end = {"[[": "]]", "case": "esac", "function": "}"}[opening]
        while (piece := self._peek()) is not None and piece.text != end:
            self.at += 1
        self._expect(end)
        return _Heard(tells=True)

    def _simple(self) -> _Heard:
        raw = []
        while (piece := self._peek()) is not None and not piece.operator:
            raw.append(piece.text)
            self.at += 1
        if len(raw) == 1 and self._operator("(") is not None:  # name() { … } defines and runs nothing
            self._expect(")")
            self._skip_lines()
            self._expect("{")
            self.at -= 1
            self._block("}")
            return _Heard(tells=False)
        return self._heard_of(raw)

    def _heard_of(self, raw: list[str]) -> _Heard:
        if raw and all(map(_ASSIGNMENT.match, raw)):
            return _Heard(tells="$(" in raw[-1] or "`" in raw[-1])
        words = [unquoted(word) for word in dropwhile(_ASSIGNMENT.match, raw)]
        if words and words[0] in _WRAPPERS:
            words = [*dropwhile(_is_wrapping, words)]
        if not words:
            return _Heard(tells=False)
        name = words[0].rpartition("/")[2]
        if name == "set":
            self._set(words[1:])
        if name == "exit":
            nothing = not words[1:] or not words[1].strip("0")
            return _Heard(not nothing, leaves=not nothing, keeps=len(words) == 1)
        if name in _SHELLS and (given := [at for at, word in enumerate(words[1:-1], 1) if _GIVES_TEXT.match(word)]):
            inner, piped = words[given[0] + 1], self.last_of_pipe and "pipefail" not in words
            return _Heard(_can_tell(inner, strictly=self.strictly, last_of_pipe=piped, depth=self.depth + 1))
        if self.strictly and (_looks_at_nothing(name, words[1:]) or _ASKS_ABOUT_ITSELF & set(words[1:])):
            return _Heard(tells=False)
        if name == "sleep" and not self.strictly:
            return _Heard(tells=False, keeps=True)  # nobody hides a failure by waiting
        return _Heard(name not in _SHOWS_ONLY and not (self.strictly and name in _SHOWS_AS_LITTLE))

    def _set(self, options: list[str]) -> None:
        if any(option == "errexit" or (option[:1] == "-" and "e" in option) for option in options):
            self.stops_at_failure = True
        if "pipefail" in options:
            self.last_of_pipe = False

    def _peek(self) -> Piece | None:
        return self.pieces[self.at] if self.at < len(self.pieces) else None

    def _operator(self, *texts: str) -> str | None:
        piece = self._peek()
        if piece is None or not piece.operator or piece.text not in texts:
            return None
        self.at += 1
        return piece.text

    def _expect(self, text: str) -> None:
        piece = self._peek()
        if piece is None or piece.text != text:
            raise UnreadableError
        self.at += 1

    def _skip_lines(self) -> None:
        while self._operator("\n") is not None:
            pass


def _looks_at_nothing(name: str, given: list[str]) -> bool:
    """`test 1`, `[ 1 ]`, `python3 -c pass`, `false` turned round, a trap: none of them looks at a file."""
    if name in ("test", "["):
        return len([word for word in given if word != "]"]) < 2
    return name in ("false", "trap", "wait") or (name.startswith("python") and given in (["-c", "pass"], ["-c", ""]))


def _is_wrapping(word: str) -> bool:
    """Whether it stands before the program that is really run: `sudo`, `timeout 60`, `env A=1`."""
    return word in _WRAPPERS or bool(_OPTION_OR_NUMBER.match(word) or _ASSIGNMENT.match(word))
