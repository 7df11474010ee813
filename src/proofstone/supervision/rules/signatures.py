"""Whether a signature is as somebody says: two texts in the same language, compared part by part.

What is said must stand there; something may be left unsaid:

| part of a signature                        | may be left out of the claim | if it is said            |
|--------------------------------------------|------------------------------|--------------------------|
| a parameter, its place, its name, `*`, `…` | no                           | as it stands             |
| the receiver: `self`, `cls`, `&self`       | yes                          | not compared             |
| a type, a default, what is returned        | yes                          | as it stands             |
| `async`                                    | yes                          | must stand there         |
| other modifiers, annotations, type parameters, `where`, `throws` | yes    | not compared             |
| blanks, line breaks, comments, a last comma, quotes around a type | yes   | not compared             |

Go and Java write types without a colon: a parameter of one word there is its name or its type. What is no function has
no parameters that must be said: its name is enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

Tokens = tuple[str, ...]


class Style(Enum):
    """How a language writes a parameter."""

    COLON = auto()
    """`name: type = default`"""
    NAME_FIRST = auto()
    """`name type`, and several names may share a type"""
    TYPE_FIRST = auto()
    """`type name`"""


STYLES: Final[Mapping[str, Style]] = MappingProxyType(
    {
        **dict.fromkeys(("python", "javascript", "typescript", "tsx", "rust"), Style.COLON),
        "go": Style.NAME_FIRST,
        "java": Style.TYPE_FIRST,
    }
)
"""The languages whose signatures can be compared."""

_TOKEN: Final = re.compile(
    r"""\"[^"\n]*"|'[^'\n]*'|`[^`\n]*`|[^\W\d][\w$]*|\$[\w$]*|\d[\w.]*|->|=>|::|\.\.\.|…|\*\*|[^\s\w]"""
)
_RUST_TOKEN: Final = re.compile(r"'\w+\b(?!')|" + _TOKEN.pattern)
"""With lifetimes."""
_QUOTED: Final = re.compile(r"\"[^\"]+\"|'[^']+'")
_EITHER_QUOTE: Final = frozenset({"python", "javascript", "typescript", "tsx"})
_COMMENT: Final = re.compile(r"/\*.{0,2000}?\*/|//[^\n]*", re.DOTALL)
_OPENING: Final = {"(": ")", "[": "]", "{": "}", "<": ">"}
_CLOSING: Final = frozenset(_OPENING.values())
_RECEIVERS: Final = frozenset({"self", "cls", "this"})
_MODIFIERS: Final = frozenset(
    {"public", "private", "protected", "readonly", "mut", "ref", "final", "override", "const"}
)
_BEFORE_TYPE: Final = _MODIFIERS | {
    "static", "abstract", "synchronized", "native", "default", "strictfp", "sealed", "async",
}  # fmt: skip
_PREFIXES: Final = frozenset({"*", "**", "...", "…", "&"})
_TYPES_BY_KEYWORD: Final = frozenset({"func", "map", "chan", "interface", "struct"})
_ENDS: Final = frozenset({"{", ";", "where", "throws", "=>", ":"})
_NO_NAMES: Final = frozenset({"def", "fn", "func", "function", "async", "fun", "lambda", "new"})


@dataclass(frozen=True)
class Parameter:
    name: str
    """With `*` or `...` before it; empty: only its type is known, or it may be either."""
    type: Tokens = ()
    default: Tokens = ()
    optional: bool = False


@dataclass(frozen=True)
class Signature:
    parameters: tuple[Parameter, ...] | None
    """None: it has no list of them."""
    returns: Tokens = ()
    waits: bool = False
    """It is `async`."""


def difference(claimed: str, stands: str, names: Sequence[str], language: str, *, function: bool = True) -> str:
    """What of a claim is not as it stands in the file; empty if all is. `names`: what it is called, alone."""
    names = tuple(name.lstrip("#") for name in names)
    if other := _other_name(_tokens(claimed, language), names):
        return f"it is not called {other}"
    said, real = (read(text, names, language) for text in (claimed, stands))
    if said.waits and not real.waits:
        return "it is not async"
    if said.parameters is None:
        return "its parameters are not said" if function and real.parameters is not None else ""
    if real.parameters is None:
        return "it takes no parameters"
    if len(said.parameters) != len(real.parameters):
        return f"it takes {len(real.parameters)} parameters, not {len(said.parameters)}"
    for number, (one, other_one) in enumerate(zip(said.parameters, real.parameters, strict=True), start=1):
        if not _agrees(one, other_one):
            return f"parameter {number} is {_spelt(other_one)}"
    if said.returns and said.returns != real.returns:
        return f"it returns {' '.join(real.returns)}" if real.returns else "it does not say what it returns"
    return ""


def same(before: str, after: str, language: str) -> bool:
    """Whether two headers of a definition are the same interface: whatever is not layout counts."""
    return _tokens(before, language) == _tokens(after, language)


def read(text: str, names: Sequence[str], language: str) -> Signature:
    tokens = _tokens(text, language)
    at = _behind_name(tokens, names)
    begin = next((i for i in range(at, len(tokens)) if tokens[i] == "("), None)
    waits = "async" in tokens[:begin]
    if begin is None:
        return Signature(_lone_parameter(tokens), waits=waits)
    end = _closed(tokens, begin)
    style = STYLES[language]
    returns = _returned(tokens[end + 1 :])
    if style is Style.TYPE_FIRST and not returns:
        returns = _before_name(tokens[: max(at - 1, 0)])
    return Signature(_parameters(tokens[begin + 1 : end], style), returns, waits)


def _tokens(text: str, language: str) -> Tokens:
    """Without comments, annotations and last commas; where both quotes mean the same, with one of them."""
    form = _RUST_TOKEN if language == "rust" else _TOKEN
    plain = text if language == "python" else _COMMENT.sub(" ", text)
    found = _without_annotations(tuple(form.findall(plain.strip().strip("`"))))
    if language in _EITHER_QUOTE:
        found = tuple(f'"{item[1:-1]}"' if len(item) > 1 and item[0] == "'" else item for item in found)
    behind = (*found[1:], "")
    return tuple(one for one, after in zip(found, behind, strict=False) if not (one == "," and after in _CLOSING))


def _behind_name(tokens: Tokens, names: Sequence[str]) -> int:
    """0 if it is not said."""
    places = [number for number, token in enumerate(tokens) if token in names]
    called = [number for number in places if tokens[number + 1 : number + 2] in (("(",), ("<",), ("[",))]
    return next(iter((*called, *places)), -1) + 1


def _other_name(tokens: Tokens, names: Sequence[str]) -> str:
    """What a claim calls it, if it is none of its names."""
    begin = tokens.index("(") if "(" in tokens else 0
    before = tokens[begin - 1] if begin else ""
    if set(tokens) & set(names) or not before.isidentifier() or before in _NO_NAMES:
        return ""
    return before


def _lone_parameter(tokens: Tokens) -> tuple[Parameter, ...] | None:
    """`x => x + 1`"""
    arrow = tokens.index("=>") if "=>" in tokens else 0
    return (Parameter(tokens[arrow - 1]),) if arrow else None


def _closed(tokens: Tokens, begin: int) -> int:
    depth = 0
    for number in range(begin, len(tokens)):
        depth += (tokens[number] in "([{") - (tokens[number] in ")]}")
        if depth == 0:
            return number
    return len(tokens)


def _split(tokens: Tokens, at: str) -> Iterator[Tokens]:
    """At a sign that stands outside of all brackets."""
    part: list[str] = []
    depth = 0
    for token in tokens:
        depth += (token in _OPENING) - (token in _CLOSING)
        if token == at and depth == 0:
            yield tuple(part)
            part = []
        else:
            part.append(token)
    yield tuple(part)


def _returned(tokens: Tokens) -> Tokens:
    """What stands behind the parameters: `-> T`, `: T`, `=> T`, or `T` in Go."""
    if tokens[:1] in (("->",), (":",), ("=>",)):
        tokens = tokens[1:]
    depth = 0
    for number, token in enumerate(tokens):
        if depth == 0 and token in _ENDS and (number or token != "{"):  # noqa: S105  a bracket
            return _type(tokens[:number])
        depth += (token in _OPENING) - (token in _CLOSING)
    return _type(tokens)


def _before_name(tokens: Tokens) -> Tokens:
    """`public static <T> List<T>` as what is returned."""
    rest = tokens
    while rest and rest[0] in _BEFORE_TYPE:
        rest = rest[1:]
    if rest[:1] == ("<",):
        depth = 0
        for number, one in enumerate(rest):
            depth += (one == "<") - (one == ">")
            if depth == 0:
                return rest[number + 1 :]
    return rest


def _without_annotations(tokens: Tokens) -> Tokens:
    """Without `@Name`, `@a.b.Name(...)`, `#[...]`."""
    kept: list[str] = []
    number = 0
    while number < len(tokens):
        if tokens[number] not in ("@", "#"):
            kept.append(tokens[number])
            number += 1
            continue
        number += 1 if tokens[number] == "#" else 2
        while tokens[number : number + 1] == (".",):
            number += 2
        if tokens[number : number + 1] in (("(",), ("[",)):
            number = _closed(tokens, number) + 1
    return tuple(kept)


def _parameters(tokens: Tokens, style: Style) -> tuple[Parameter, ...]:
    parts = [part for part in _split(tokens, ",") if part]
    if style is Style.NAME_FIRST:
        return _name_first(parts)
    read_one = _colon if style is Style.COLON else _type_first
    return tuple(
        read_one(part)
        for number, part in enumerate(parts)
        if part != ("/",) and not (number == 0 and _is_receiver(part))
    )


def _is_receiver(part: Tokens) -> bool:
    """`self`, `&'a mut self`, `self: Box<Self>`; in Java `Outer this`."""
    before = tuple(item for item in _head(part) if item not in ("&", "mut") and not item.startswith("'"))
    return bool(before) and before[-1] in _RECEIVERS


def _head(part: Tokens) -> Tokens:
    return next(_split(next(_split(part, "=")), ":"))


def _colon(part: Tokens) -> Parameter:
    said, *default = _split(part, "=")
    head, *type_ = _split(said, ":")
    optional = head[-1:] == ("?",)
    name = "".join(_unmodified(head[:-1] if optional else head)).replace("…", "...")
    return Parameter(name, _type(type_[0] if type_ else ()), default[0] if default else (), optional)


def _name_first(parts: Sequence[Tokens]) -> tuple[Parameter, ...]:
    named = [_is_named(part) for part in parts]
    found: list[Parameter] = []
    type_: Tokens = ()
    for part, has_type in zip(reversed(parts), reversed(named), strict=True):
        if has_type:
            type_ = part[1:]
            found.append(Parameter(part[0], type_))
        elif any(named):  # it shares the type of the next one that has one
            found.append(Parameter(part[0], type_))
        else:
            found.append(Parameter("", part))
    return tuple(reversed(found))


def _is_named(part: Tokens) -> bool:
    return len(part) > 1 and part[0].isidentifier() and part[0] not in _TYPES_BY_KEYWORD and part[1] != "."


def _type_first(part: Tokens) -> Parameter:
    words = _unmodified(part)
    bare, brackets = words, Tokens()
    while bare[-2:] == ("[", "]"):
        bare, brackets = bare[:-2], (*brackets, "[", "]")
    if len(bare) < 2 or not bare[-1].isidentifier() or bare[-2] == ".":
        return Parameter("", words)
    return Parameter(bare[-1], (*bare[:-1], *brackets))


def _unmodified(words: Tokens) -> Tokens:
    """Without `final` and the like; what is called `final` keeps its name."""
    while len(words) > 1 and words[0] in _MODIFIERS:
        words = words[1:]
    return words


def _type(tokens: Tokens) -> Tokens:
    """A type in quotation marks, or between brackets of its own, is that type."""
    if tokens[:1] == ("(",) and _closed(tokens, 0) == len(tokens) - 1:
        tokens = tokens[1:-1]
    return tuple(
        word for token in tokens for word in (_TOKEN.findall(token[1:-1]) if _QUOTED.fullmatch(token) else [token])
    )


def _agrees(said: Parameter, real: Parameter) -> bool:
    if not said.name or not real.name:
        return said.type in (real.type, (real.name,)) or real.type == (said.name,)
    if said.name != real.name or (said.optional and not real.optional):
        return False
    return said.type in ((), real.type) and said.default in ((), real.default)


def _spelt(parameter: Parameter) -> str:
    type_, default = ("".join(part) for part in (parameter.type, parameter.default))
    named = ": ".join(filter(None, (parameter.name + "?" * parameter.optional, type_)))
    return f"{named} = {default}" if default else named
