"""Split shell text into words, as they were written, and the operators between them.

Nothing is expanded or evaluated. Redirections and heredocs belong to their command and are left out.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import NamedTuple

_OPERATOR = re.compile(r"&&|\|\||\|&|;;|[;|&()\n]")
_REDIRECTION = re.compile(r"\d*(?:<<<|<<-?|<>|<&|>>|>&|>\||&>>|&>|<|>)")
_HEREDOC = re.compile(r"\d*<<-?$")
_BLANKS = re.compile(r"(?:[ \t]|\\\n)+")
_QUOTE_OR_BRACKET = {"'": "'", '"': '"', "`": "`", "$(": ")", "${": "}"}
_ENDS_WORD = frozenset(" \t\n;|&()<>")
_BLOCKS = {"if": "fi", "for": "done", "while": "done", "until": "done", "select": "done", "case": "esac", "{": "}"}
_BEFORE_COMMAND = frozenset(
    [
        "if",
        "then",
        "elif",
        "else",
        "while",
        "until",
        "do",
        "{",
        "!",
        "&&",
        "||",
        "|",
        "|&",
        ";",
        "&",
        "\n",
        "(",
        ";;",
        ")",
    ]
)


_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
"""A variable that is set for a command, before its program."""


class ShellSyntaxError(Exception):
    """The text is not complete shell: a quote, a bracket or a heredoc has no end."""


class ShellToken(NamedTuple):
    text: str
    is_operator: bool
    start: int


def lex(text: str) -> tuple[ShellToken, ...]:
    """Return the tokens of `text`. Raise `ShellSyntaxError` if the text ends in the middle of one."""
    return _Lexer(text).read_tokens()


def list_programs(text: str) -> tuple[str, ...]:
    """Return the names of the programs that a command line starts, in order; none if it is not complete shell."""
    try:
        tokens = lex(text)
    except ShellSyntaxError:
        return ()
    names: list[str] = []
    expects_program, is_file = True, False
    for token in tokens:
        if token.is_operator:
            is_file = token.text.strip("&0123456789").startswith(("<", ">"))
            expects_program = expects_program or not is_file
        elif is_file:
            is_file = False
        elif expects_program and not _ASSIGNMENT.match(token.text):
            names.append(unquote(token.text).rpartition("/")[2])
            expects_program = False
    return tuple(dict.fromkeys(names))


def is_complete(text: str) -> bool:
    """Return whether a shell would run `text` as it is, instead of waiting for more lines."""
    try:
        tokens = lex(text)
    except ShellSyntaxError:
        return False
    if text.endswith("\\") or (tokens and tokens[-1].is_operator and tokens[-1].text in ("&&", "||", "|", "|&")):
        return False
    return _open_blocks(tokens) == 0


def has_blocks(text: str) -> bool:
    """Return whether the text contains a loop, a condition, a group or a function."""
    try:
        tokens = lex(text)
    except ShellSyntaxError:
        return False
    return any(not token.is_operator and token.text in _BLOCKS for token in _command_words(tokens))


def split_statements(text: str) -> tuple[str, ...]:
    """Split the text at the line breaks where a shell would run what it has read so far.

    Raise `ShellSyntaxError` in the same cases as `lex`.
    """
    parts, begin, depth, open_brackets = [], 0, 0, 0
    tokens = lex(text)
    leading = {token.start for token in _command_words(tokens)}
    previous = None
    for token in tokens:
        if token.is_operator:
            open_brackets += {"(": 1, ")": -1}.get(token.text, 0)
            is_continued = previous is not None and previous.is_operator and previous.text in ("&&", "||", "|", "|&")
            if token.text == "\n" and depth <= 0 and open_brackets <= 0 and not is_continued:
                parts.append(text[begin : token.start])
                begin = token.start
        elif token.start in leading:
            depth += _depth_of(token.text)
        if token.text != "\n":
            previous = token
    parts.append(text[begin:])
    return tuple(stripped for part in parts if (stripped := part.strip("\n").rstrip()))


def unquote(word: str) -> str:
    """Return a word without its quotes, or unchanged if it is not exactly one word."""
    try:
        parts = shlex.split(word)
    except ValueError:
        return word
    return parts[0] if len(parts) == 1 else word


def _open_blocks(tokens: tuple[ShellToken, ...]) -> int:
    brackets = sum({"(": 1, ")": -1}.get(token.text, 0) for token in tokens if token.is_operator)
    return max(brackets, 0) + max(sum(_depth_of(token.text) for token in _command_words(tokens)), 0)


def _depth_of(word: str) -> int:
    if word in _BLOCKS:
        return 1
    return -1 if word in ("fi", "done", "esac", "}") else 0


def _command_words(tokens: tuple[ShellToken, ...]) -> tuple[ShellToken, ...]:
    """Return the words at which a command begins: only there are `if` and `done` keywords."""
    words, begins_command = [], True
    for token in tokens:
        if begins_command and not token.is_operator:
            words.append(token)
        begins_command = token.text in _BEFORE_COMMAND if token.is_operator or begins_command else False
    return tuple(words)


@dataclass
class _Lexer:
    text: str
    at: int = 0

    def read_tokens(self) -> tuple[ShellToken, ...]:
        tokens: list[ShellToken] = []
        delimiters: list[str] = []
        while self.at < len(self.text):
            if blanks := _BLANKS.match(self.text, self.at):
                self.at = blanks.end()
            elif self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif redirection := _REDIRECTION.match(self.text, self.at):
                self.at = redirection.end()
                target = self._read_word_after_blanks()
                if _HEREDOC.match(redirection.group()):
                    delimiters.append(unquote(target))
            elif operator := _OPERATOR.match(self.text, self.at):
                start, self.at = self.at, operator.end()
                if operator.group() == "\n" and delimiters:
                    self._skip_heredocs(delimiters)
                    start, delimiters = self.at, []  # the heredocs belong to the line before
                tokens.append(ShellToken(operator.group(), True, start))
            else:
                start = self.at
                tokens.append(ShellToken(self._read_word(), False, start))
        if delimiters:
            raise ShellSyntaxError
        return tuple(tokens)

    def _read_word_after_blanks(self) -> str:
        if blanks := _BLANKS.match(self.text, self.at):
            self.at = blanks.end()
        return self._read_word()

    def _read_word(self) -> str:
        """Read up to the next blank or operator outside all quotes and substitutions."""
        text, start, closers = self.text, self.at, [""]
        while self.at < len(text):
            char, closer = text[self.at], closers[-1]
            step = 1
            if not closer and char in _ENDS_WORD:
                break
            if char == closer:
                closers.pop()
            elif closer == "'":
                pass
            elif char == "\\":
                step = 2
            else:
                opening = text[self.at : self.at + 2] if char == "$" else char
                if closer == ")" and char == "(":
                    closers.append(")")
                elif opening in _QUOTE_OR_BRACKET and not (closer == '"' and char == "'"):
                    closers.append(_QUOTE_OR_BRACKET[opening])
                    step = len(opening)
            self.at += step
        if len(closers) > 1 or self.at > len(text):
            raise ShellSyntaxError
        return text[start : self.at]

    def _skip_heredocs(self, delimiters: list[str]) -> None:
        for delimiter in delimiters:
            while True:
                end = self.text.find("\n", self.at)
                line = self.text[self.at : end if end >= 0 else len(self.text)]
                self.at = end + 1 if end >= 0 else len(self.text)
                if line.strip("\t ") == delimiter:
                    break
                if end < 0:
                    raise ShellSyntaxError
