"""Compare a claimed signature with the one in the file, part by part. Both are in the same language.

A claim must be true, but it may leave something out:

| part of a signature                        | may be left out of the claim | if it is claimed         |
|--------------------------------------------|------------------------------|--------------------------|
| a parameter, its place, its name, `*`, `…` | no                           | must be as in the file   |
| the receiver: `self`, `cls`, `&self`       | yes                          | not compared             |
| a type, a default, the return type         | yes                          | must be as in the file   |
| `async`                                    | yes                          | must be in the file      |
| other modifiers, annotations, type parameters, `where`, `throws` | yes    | not compared             |
| blanks, line breaks, comments, a last comma, quotes around a type | yes   | not compared             |

Go and Java write types without a colon: there, a parameter of one word is its name or its type. A definition that is
not a function needs no parameters in the claim: its name is enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

Tokens = tuple[str, ...]


class ParameterStyle(Enum):
    """How a language writes a parameter."""

    COLON = auto()
    """`name: type = default`"""
    NAME_FIRST = auto()
    """`name type`, where several names may share a type"""
    TYPE_FIRST = auto()
    """`type name`"""


STYLE_BY_LANGUAGE: Final[Mapping[str, ParameterStyle]] = MappingProxyType(
    {
        **dict.fromkeys(("python", "javascript", "typescript", "tsx", "rust"), ParameterStyle.COLON),
        "go": ParameterStyle.NAME_FIRST,
        "java": ParameterStyle.TYPE_FIRST,
    }
)
"""The languages whose signatures can be compared."""

_TOKEN: Final = re.compile(
    r"""\"[^"\n]*"|'[^'\n]*'|`[^`\n]*`|[^\W\d][\w$]*|\$[\w$]*|\d[\w.]*|->|=>|::|\.\.\.|…|\*\*|[^\s\w]"""
)
_RUST_TOKEN: Final = re.compile(r"'\w+\b(?!')|" + _TOKEN.pattern)
"""Tokens of Rust, with lifetimes."""
_QUOTED: Final = re.compile(r"\"[^\"]+\"|'[^']+'")
_LANGUAGES_WITH_EITHER_QUOTE: Final = frozenset({"python", "javascript", "typescript", "tsx"})
_COMMENT: Final = re.compile(r"/\*.{0,2000}?\*/|//[^\n]*", re.DOTALL)
_OPENING: Final = {"(": ")", "[": "]", "{": "}", "<": ">"}
_CLOSING: Final = frozenset(_OPENING.values())
_RECEIVERS: Final = frozenset({"self", "cls", "this"})
_MODIFIERS: Final = frozenset(
    {"public", "private", "protected", "readonly", "mut", "ref", "final", "override", "const"}
)
_MODIFIERS_BEFORE_TYPE: Final = _MODIFIERS | {
    "static", "abstract", "synchronized", "native", "default", "strictfp", "sealed", "async",
}  # fmt: skip
_TYPES_BY_KEYWORD: Final = frozenset({"func", "map", "chan", "interface", "struct"})
_RETURN_TERMINATORS: Final = frozenset({"{", ";", "where", "throws", "=>", ":"})
_KEYWORDS_BEFORE_PARAMETERS: Final = frozenset({"def", "fn", "func", "function", "async", "fun", "lambda", "new"})


@dataclass(frozen=True)
class Parameter:
    name: str
    """The name, prefixed with `*` or `...`. Empty if only the type is known, or if the word may be either."""
    type: Tokens = ()
    default: Tokens = ()
    optional: bool = False


@dataclass(frozen=True)
class Signature:
    parameters: tuple[Parameter, ...] | None
    """None if the signature has no parameter list."""
    returns: Tokens = ()
    is_async: bool = False
    """Whether it is `async`."""


def describe_difference(
    claimed: str, stands: str, names: Sequence[str], language: str, *, function: bool = True
) -> str:
    """Return how the claim differs from the file, or an empty string. `names` are the unqualified names of the
    definition.
    """
    names = tuple(name.lstrip("#") for name in names)
    if other_name := _find_other_name(_tokenize(claimed, language), names):
        return f"it is not called {other_name}"
    claim, actual = (read_signature(text, names, language) for text in (claimed, stands))
    if claim.is_async and not actual.is_async:
        return "it is not async"
    if claim.parameters is None:
        return "the claim leaves out its parameters" if function and actual.parameters is not None else ""
    if actual.parameters is None:
        return "it takes no parameters"
    if len(claim.parameters) != len(actual.parameters):
        return f"it takes {len(actual.parameters)} parameters, not {len(claim.parameters)}"
    for number, (claimed_parameter, actual_parameter) in enumerate(
        zip(claim.parameters, actual.parameters, strict=True), start=1
    ):
        if not _matches(claimed_parameter, actual_parameter):
            return f"parameter {number} is {_format_parameter(actual_parameter)}"
    if claim.returns and claim.returns != actual.returns:
        return f"it returns {' '.join(actual.returns)}" if actual.returns else "it declares no return type"
    return ""


def is_same_interface(before: str, after: str, language: str) -> bool:
    """Return whether two headers are the same interface. Everything but layout counts."""
    return _tokenize(before, language) == _tokenize(after, language)


def read_signature(text: str, names: Sequence[str], language: str) -> Signature:
    tokens = _tokenize(text, language)
    start = _index_after_name(tokens, names)
    opening = next((i for i in range(start, len(tokens)) if tokens[i] == "("), None)
    waits = "async" in tokens[:opening]
    if opening is None:
        return Signature(_read_lone_parameter(tokens), is_async=waits)
    closing = _find_closing(tokens, opening)
    style = STYLE_BY_LANGUAGE[language]
    returns = _read_return_type(tokens[closing + 1 :])
    if style is ParameterStyle.TYPE_FIRST and not returns:
        returns = _type_before_name(tokens[: max(start - 1, 0)])
    return Signature(_read_parameters(tokens[opening + 1 : closing], style), returns, waits)


def _tokenize(text: str, language: str) -> Tokens:
    """Split into tokens, without comments, annotations and trailing commas, and with one kind of quotes where both
    kinds mean the same.
    """
    pattern = _RUST_TOKEN if language == "rust" else _TOKEN
    plain = text if language == "python" else _COMMENT.sub(" ", text)
    tokens = _without_annotations(tuple(pattern.findall(plain.strip().strip("`"))))
    if language in _LANGUAGES_WITH_EITHER_QUOTE:
        tokens = tuple(f'"{word[1:-1]}"' if len(word) > 1 and word[0] == "'" else word for word in tokens)
    next_tokens = (*tokens[1:], "")
    return tuple(
        word for word, after in zip(tokens, next_tokens, strict=False) if not (word == "," and after in _CLOSING)
    )


def _index_after_name(tokens: Tokens, names: Sequence[str]) -> int:
    """Return the index after the name, or 0 if the text does not contain it."""
    positions = [number for number, token in enumerate(tokens) if token in names]
    followed_by_bracket = [
        number for number in positions if tokens[number + 1 : number + 2] in (("(",), ("<",), ("[",))
    ]
    return next(iter((*followed_by_bracket, *positions)), -1) + 1


def _find_other_name(tokens: Tokens, names: Sequence[str]) -> str:
    """Return the name in the claim if it is none of the definition's names."""
    begin = tokens.index("(") if "(" in tokens else 0
    before = tokens[begin - 1] if begin else ""
    if set(tokens) & set(names) or not before.isidentifier() or before in _KEYWORDS_BEFORE_PARAMETERS:
        return ""
    return before


def _read_lone_parameter(tokens: Tokens) -> tuple[Parameter, ...] | None:
    """`x => x + 1`"""
    arrow = tokens.index("=>") if "=>" in tokens else 0
    return (Parameter(tokens[arrow - 1]),) if arrow else None


def _find_closing(tokens: Tokens, begin: int) -> int:
    depth = 0
    for number in range(begin, len(tokens)):
        depth += (tokens[number] in "([{") - (tokens[number] in ")]}")
        if depth == 0:
            return number
    return len(tokens)


def _split_outside_brackets(tokens: Tokens, at: str) -> Iterator[Tokens]:
    """Split at a token that is outside of all brackets."""
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


def _read_return_type(tokens: Tokens) -> Tokens:
    """Read the return type after the parameters: `-> T`, `: T`, `=> T`, or `T` in Go."""
    if tokens[:1] in (("->",), (":",), ("=>",)):
        tokens = tokens[1:]
    depth = 0
    for number, token in enumerate(tokens):
        if depth == 0 and token in _RETURN_TERMINATORS and (number or token != "{"):  # noqa: S105  a bracket
            return _normalize_type(tokens[:number])
        depth += (token in _OPENING) - (token in _CLOSING)
    return _normalize_type(tokens)


def _type_before_name(tokens: Tokens) -> Tokens:
    """Read `public static <T> List<T>` as a return type."""
    rest = tokens
    while rest and rest[0] in _MODIFIERS_BEFORE_TYPE:
        rest = rest[1:]
    if rest[:1] == ("<",):
        depth = 0
        for number, word in enumerate(rest):
            depth += (word == "<") - (word == ">")
            if depth == 0:
                return rest[number + 1 :]
    return rest


def _without_annotations(tokens: Tokens) -> Tokens:
    """Remove `@Name`, `@a.b.Name(...)` and `#[...]`."""
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
            number = _find_closing(tokens, number) + 1
    return tuple(kept)


def _read_parameters(tokens: Tokens, style: ParameterStyle) -> tuple[Parameter, ...]:
    parts = [part for part in _split_outside_brackets(tokens, ",") if part]
    if style is ParameterStyle.NAME_FIRST:
        return _read_name_first_parameters(parts)
    read_parameter = _read_colon_parameter if style is ParameterStyle.COLON else _read_type_first_parameter
    return tuple(
        read_parameter(part)
        for number, part in enumerate(parts)
        if part != ("/",) and not (number == 0 and _is_receiver(part))
    )


def _is_receiver(part: Tokens) -> bool:
    """`self`, `&'a mut self`, `self: Box<Self>`; in Java `Outer this`."""
    words = tuple(token for token in _head(part) if token not in ("&", "mut") and not token.startswith("'"))
    return bool(words) and words[-1] in _RECEIVERS


def _head(part: Tokens) -> Tokens:
    return next(_split_outside_brackets(next(_split_outside_brackets(part, "=")), ":"))


def _read_colon_parameter(part: Tokens) -> Parameter:
    declaration, *default = _split_outside_brackets(part, "=")
    head, *type_ = _split_outside_brackets(declaration, ":")
    optional = head[-1:] == ("?",)
    name = "".join(_strip_modifiers(head[:-1] if optional else head)).replace("…", "...")
    return Parameter(name, _normalize_type(type_[0] if type_ else ()), default[0] if default else (), optional)


def _read_name_first_parameters(parts: Sequence[Tokens]) -> tuple[Parameter, ...]:
    have_names = [_has_name(part) for part in parts]
    parameters: list[Parameter] = []
    type_: Tokens = ()
    for part, has_type in zip(reversed(parts), reversed(have_names), strict=True):
        if has_type:
            type_ = part[1:]
            parameters.append(Parameter(part[0], type_))
        elif any(have_names):  # the parameter shares the type of the next one that has a type
            parameters.append(Parameter(part[0], type_))
        else:
            parameters.append(Parameter("", part))
    return tuple(reversed(parameters))


def _has_name(part: Tokens) -> bool:
    return len(part) > 1 and part[0].isidentifier() and part[0] not in _TYPES_BY_KEYWORD and part[1] != "."


def _read_type_first_parameter(part: Tokens) -> Parameter:
    words = _strip_modifiers(part)
    bare, brackets = words, Tokens()
    while bare[-2:] == ("[", "]"):
        bare, brackets = bare[:-2], (*brackets, "[", "]")
    if len(bare) < 2 or not bare[-1].isidentifier() or bare[-2] == ".":
        return Parameter("", words)
    return Parameter(bare[-1], (*bare[:-1], *brackets))


def _strip_modifiers(words: Tokens) -> Tokens:
    """Remove `final` and the like, but keep a parameter that is named `final`."""
    while len(words) > 1 and words[0] in _MODIFIERS:
        words = words[1:]
    return words


def _normalize_type(tokens: Tokens) -> Tokens:
    """Remove quotes, and brackets around the whole type."""
    if tokens[:1] == ("(",) and _find_closing(tokens, 0) == len(tokens) - 1:
        tokens = tokens[1:-1]
    return tuple(
        word for token in tokens for word in (_TOKEN.findall(token[1:-1]) if _QUOTED.fullmatch(token) else [token])
    )


def _matches(claimed: Parameter, actual: Parameter) -> bool:
    if not claimed.name or not actual.name:
        return claimed.type in (actual.type, (actual.name,)) or actual.type == (claimed.name,)
    if claimed.name != actual.name or (claimed.optional and not actual.optional):
        return False
    return claimed.type in ((), actual.type) and claimed.default in ((), actual.default)


def _format_parameter(parameter: Parameter) -> str:
    type_, default = ("".join(part) for part in (parameter.type, parameter.default))
    declaration = ": ".join(filter(None, (parameter.name + "?" * parameter.optional, type_)))
    return f"{declaration} = {default}" if default else declaration
