"""Decide whether a verify command asserts what a done criterion says. Pure.

A command shows a criterion only if the criterion names the command or the expression, and the value, and the command
compares exactly these. Shared words are no evidence.

    | the criterion says                       | a command that asserts it                                        |
    |------------------------------------------|------------------------------------------------------------------|
    | `CMD` passes, succeeds, exits with 0     | `CMD` itself                                                     |
    | `CMD` fails                              | `! CMD`                                                          |
    | `CMD` exits with 3                       | `CMD; test $? -eq 3`                                             |
    | `CMD` prints VALUE                       | `test "$(CMD)" = VALUE`, `CMD | grep -qx VALUE`                  |
    | the output of `CMD` contains VALUE       | the same, or `CMD | grep -q VALUE`                               |
    | `EXPRESSION` returns VALUE               | `python -c "… assert EXPRESSION == VALUE"`                       |
    | `EXPRESSION == VALUE` (holds)            | the same                                                         |

A criterion that says two things is shown only if one command asserts both. A command with several parts joined by `&&`
asserts every part; one with `||` asserts nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from proofstone.common.shell import ShellSyntaxError, lex, unquote


class Claim(NamedTuple):
    """One thing that a criterion says or a command asserts, in a form that can be compared."""

    kind: str
    """`exits`, `prints`, `contains` or `equals`."""
    subject: str
    """The command or expression, normalized."""
    value: str


_LEAD: Final = r"^(?:(?:running|run|calling|the command|the call|the expression|the output of|output of)\s+)?"
_QUOTED: Final = r"`(?P<subject>[^`]+)`\s*"
_END: Final = r"[.!]?$"
_AND: Final = re.compile(
    r"\s*(?:,\s*)?\band\b\s+(?:it\s+)?(?=(?:exits?|prints?|returns?|contains?|outputs?|fails|passes)\b)"
)
_VALUE: Final = r"(?P<value>`[^`]+`|\"[^\"]+\"|'[^']+'|\S+)"
_SENTENCES: Final[tuple[tuple[str, re.Pattern[str]], ...]] = tuple(
    (kind, re.compile(_LEAD + _QUOTED + words + _END, re.IGNORECASE))
    for kind, words in (
        (
            "succeeds",
            r"(?:still\s+)?(?:passes|succeeds|works|runs|is green|exits?\s+(?:with\s+)?(?:code\s+|status\s+)?0)",
        ),
        ("fails", r"(?:fails|exits?\s+(?:with\s+)?(?:a\s+)?non-?zero(?:\s+(?:code|status))?)"),
        ("exits", rf"exits?\s+(?:with\s+)?(?:(?:exit\s+)?(?:code|status)\s+)?{_VALUE}"),
        ("contains", rf"(?:contains?|includes?|mentions?|has a line with)\s+{_VALUE}"),
        ("prints", rf"(?:prints|outputs|writes|shows|gives|says|is)\s+(?:exactly\s+)?{_VALUE}"),
        ("equals", rf"(?:returns|gives|yields|is|equals|evaluates to)\s+(?:exactly\s+)?{_VALUE}"),
        ("holds", r"(?:holds|is true)?"),
    )
)
_PYTHON: Final = re.compile(r"^python[\d.]*$")
_GREP_FLAGS: Final = re.compile(r"^-[A-Za-z]+$")
_PLAIN: Final = re.compile(r"^[\w .,:=@%/+-]*$")
"""A text that means the same as a regular expression of grep, as far as no dot is in it."""


def is_asserted(criterion: str, command: str) -> bool:
    """Return whether the command asserts everything that the criterion says."""
    claims = list(read_criterion(criterion))
    if not claims:
        return False
    asserted = set(read_command(command))
    return all(any(claim in asserted for claim in alternatives) for alternatives in claims)


def read_criterion(text: str) -> Iterator[tuple[Claim, ...]]:
    """Yield what the criterion says, each as the claims that would all show it; nothing if that is not clear."""
    parts = _AND.split(text.strip())
    subject = re.search(r"`([^`]+)`", parts[0])
    if subject is None:
        return
    read = [_read_sentence(parts[0]), *(_read_sentence(f"`{subject[1]}` {part}") for part in parts[1:])]
    if all(read):
        yield from read


def _read_sentence(sentence: str) -> tuple[Claim, ...]:
    claims: list[Claim] = []
    for kind, pattern in _SENTENCES:
        if match := pattern.match(sentence.strip()):
            claims += _list_claims(kind, match["subject"], match["value"] if "value" in pattern.groupindex else "")
    return tuple(dict.fromkeys(claims))


def _list_claims(kind: str, subject: str, value: str) -> Iterator[Claim]:
    command, raw, value = _normalize_command(subject), value, _unquote_value(value)
    match kind:
        case "succeeds":
            yield Claim("exits", command, "0")
        case "fails":
            yield Claim("fails", command, "")
        case "exits" if value.isdigit():
            yield Claim("exits", command, value)
        case "prints":
            yield Claim("prints", command, value)
        case "contains":
            yield Claim("contains", command, value)
            yield Claim("prints", command, value)
        case "equals":
            yield from _list_expression_claims(subject, raw.strip("`"))
        case "holds":
            try:
                parsed = ast.parse(subject, mode="eval").body
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return
            yield from _read_comparison(parsed)


def _list_expression_claims(subject: str, value: str) -> Iterator[Claim]:
    try:
        expression, literal = ast.parse(subject, mode="eval").body, ast.parse(value, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    if isinstance(expression, ast.Call):
        yield Claim("equals", ast.unparse(expression), ast.unparse(literal))


def _unquote_value(value: str) -> str:
    if value[:1] not in ("`", '"', "'"):
        return value.rstrip(".,;")
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "`\"'" else value


def _normalize_command(command: str) -> str:
    """Return a command with single blanks, and its words without quotes that change nothing."""
    try:
        return " ".join(
            token.text if token.is_operator else repr(unquote(token.text)) for token in lex(command.strip())
        )
    except ShellSyntaxError:
        return command.strip()


def read_command(command: str) -> Iterator[Claim]:
    """Yield what a command asserts when it exits with 0."""
    yield Claim("exits", _normalize_command(command), "0")
    try:
        tokens = lex(command.strip())
    except ShellSyntaxError:
        return
    operators = {token.text for token in tokens if token.is_operator}
    if operators - {"&&", "|", ";", "\n"}:
        return
    text = command.strip()
    bounds = [0, *(token.start for token in tokens if token.is_operator and token.text == "&&"), len(text)]
    for start, end in pairwise(bounds):
        yield from _read_part(text[start:end].removeprefix("&&").strip())


def _read_part(part: str) -> Iterator[Claim]:
    """Yield what one part between `&&` asserts."""
    try:
        tokens = lex(part)
    except ShellSyntaxError:
        return
    separators = [token for token in tokens if token.is_operator]
    words = [token.text for token in tokens if not token.is_operator]
    if not separators:
        if words[:1] == ["!"]:
            yield Claim("fails", _normalize_command(part[1:]), "")
            return
        yield Claim("exits", _normalize_command(part), "0")
        yield from _read_test(words)
        yield from _read_python(words)
    elif len(separators) == 1 and separators[0].text == "|":
        yield from _read_grep(part[: separators[0].start], part[separators[0].start + 1 :])
    elif len(separators) == 1 and separators[0].text == ";":
        yield from _read_status(part[: separators[0].start], part[separators[0].start + 1 :])


def _read_test(words: Sequence[str]) -> Iterator[Claim]:
    """Read `test "$(CMD)" = VALUE`, and the same in brackets."""
    inner = list(words[1:]) if words[:1] == ["test"] else []
    if words[:1] in (["["], ["[["]) and words[-1] in ("]", "]]"):
        inner = list(words[1:-1])
    if len(inner) != 3 or inner[1] not in ("=", "==", "-eq"):
        return
    for output, value in ((inner[0], inner[2]), (inner[2], inner[0])):
        command = _read_substitution(output)
        if command is not None and _read_substitution(value) is None and "$" not in value:
            yield Claim("prints", _normalize_command(command), unquote(value))


def _read_substitution(word: str) -> str | None:
    """Return the command of `$(CMD)` or of `"$(CMD)"`; None for any other word."""
    bare = word[1:-1] if len(word) > 1 and word[0] == word[-1] == '"' else word
    if bare.startswith("$(") and bare.endswith(")") and not bare.startswith("$(("):
        return bare[2:-1]
    return None


def _read_grep(left: str, right: str) -> Iterator[Claim]:
    """Read `CMD | grep -q VALUE`. Only a whole line (`-x`) is what the command prints."""
    words = [token.text for token in lex(right)]
    if words[:1] not in (["grep"], ["egrep"], ["fgrep"]):
        return
    flags = "".join(word[1:] for word in words[1:] if _GREP_FLAGS.match(word))
    values = [unquote(word) for word in words[1:] if not word.startswith("-")]
    if len(values) != 1 or set(flags) - set("qxFEwe") or (words[0] == "grep" and "v" in flags):
        return
    value, is_whole = values[0], "x" in flags
    if value.startswith("^") and value.endswith("$") and "F" not in flags:
        value, is_whole = value[1:-1], True
    is_fixed = "F" in flags or words[0] == "fgrep"
    if not is_fixed and not _PLAIN.match(value.replace("\\.", "")):
        return
    if not is_fixed and "." in value.replace("\\.", ""):
        return
    value = value if is_fixed else value.replace("\\.", ".")
    command = _normalize_command(left)
    yield Claim("contains", command, value)
    if is_whole:
        yield Claim("prints", command, value)


def _read_status(left: str, right: str) -> Iterator[Claim]:
    """Read `CMD; test $? -eq 3`."""
    words = [token.text for token in lex(right)]
    inner = words[1:] if words[:1] == ["test"] else words[1:-1] if words[:1] in (["["], ["[["]) else []
    if len(inner) == 3 and unquote(inner[0]) == "$?" and inner[1] in ("=", "==", "-eq") and inner[2].isdigit():
        yield Claim("exits", _normalize_command(left), inner[2])


def _read_python(words: Sequence[str]) -> Iterator[Claim]:
    """Read the assertions of `python -c "…"`."""
    if len(words) != 3 or not _PYTHON.match(words[0].rpartition("/")[2]) or words[1] != "-c":
        return
    try:
        module = ast.parse(unquote(words[2]))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in module.body:
        if isinstance(node, ast.Assert):
            yield from _read_comparison(node.test)
        elif not isinstance(node, ast.Import | ast.ImportFrom | ast.Assign):
            return  # it may end the program before the next assertion


def _read_comparison(node: ast.expr) -> Iterator[Claim]:
    """Read `CALL == LITERAL`. A function may be called by its module or alone."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq):
        return
    for call, value in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
        if isinstance(call, ast.Call):
            yield Claim("equals", ast.unparse(call), ast.unparse(value))
            if isinstance(call.func, ast.Attribute):
                alone = ast.Call(func=ast.Name(id=call.func.attr), args=call.args, keywords=call.keywords)
                yield Claim("equals", ast.unparse(alone), ast.unparse(value))
