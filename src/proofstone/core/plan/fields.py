"""What people write into a plan's elements: paths, done criteria, references."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import dedent

_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_COMMENT = re.compile(r" (?:\(|#|//|[—–→]|--? ).*$")
_FILE_TAG = re.compile(
    r"</?(?:file|path|item|li|create|created|modify|modified|new|edit|delete|test)s?>", re.IGNORECASE
)
_LABEL = re.compile(
    r"^(?:new|create|created|add|modify|modified|update|updated|edit|delete|remove|test|read)s?(?::\s*|\s+(?=\S*[./]))",
    re.IGNORECASE,
)
_LINK = re.compile(r"^\[[^\]]*\]\(([^)\s]*)\)$")
_BOLD = re.compile(r"^(?:\*\*|\*)([^*]+)(?:\*\*|\*)$")
_LINES = re.compile(r":\d+(?:-\d+)?$")
_CODE = re.compile(r"`([^`]+)`")
_ENDS_LIKE_A_PATH = re.compile(r"(?:[/*]|\.\w{1,12})$")
_NONE = frozenset(("", "-", "—", "none", "n/a", "na", "(none)", "null", "nil", "~", "[]", "no files", "tbd"))
_BRACES = re.compile(r"\{([^{},]*,[^{}]*)\}")
_MOST_SPELLINGS = 64
_PAIRS = {"(": ")", "[": "]", "{": "}", "`": "`", '"': '"', "“": "”", "„": "“", "«": "»", "「": "」"}
_SEPARATORS = {"done": ";\n；", "files": ",\n，、"}


def is_none(text: str) -> bool:
    """Whether somebody wrote that there is nothing: `N/A`, `none`, `[]`."""
    return text.strip().strip("`").lower() in _NONE


def paths(text: str) -> tuple[str, ...]:
    """The paths of a `<files>` element, each once, in order."""
    found: dict[str, None] = {}
    for item in _split(_FILE_TAG.sub("\n", text), _SEPARATORS["files"], keep="({["):
        for path in _paths_of(_BULLET.sub("", item)):
            found.update(dict.fromkeys(_spelt_out(path)))
    return tuple(found)


def _paths_of(item: str) -> Iterator[str]:
    if code := _CODE.findall(item):
        yield from (cleaned for one in code if (cleaned := _cleaned(one)))
        return
    item = _LABEL.sub("", _COMMENT.sub("", " " + " ".join(item.split())).strip()).strip()
    words = item.split()
    if len(words) > 1 and all(_ENDS_LIKE_A_PATH.search(word) for word in words):
        yield from (cleaned for word in words if (cleaned := _cleaned(word)))
    elif cleaned := _cleaned(item):
        yield cleaned


def _cleaned(path: str) -> str:
    path = _BOLD.sub(r"\1", path.strip().strip("\"'")).rstrip(";").strip()
    if link := _LINK.match(path):
        path = link[1]
    path = _LINES.sub("", path)
    return "" if is_none(path) else path.removeprefix("./")


def _spelt_out(path: str) -> list[str]:
    """`src/{a,b}.ts` as two paths."""
    done: list[str] = []
    todo = [path]
    while todo:
        one = todo.pop(0)
        match = _BRACES.search(one)
        if match is None or len(done) + len(todo) >= _MOST_SPELLINGS:
            done.append(one)
        else:
            todo += [one[: match.start()] + choice.strip() + one[match.end() :] for choice in match[1].split(",")]
    return done


def criteria(text: str) -> tuple[str, ...]:
    """Done criteria: by line or `;`, not within code, quotes or brackets; a wrapped bullet is one."""
    found: list[list[str]] = []
    bulleted = any(_BULLET.match(line) for line in text.split("\n"))
    for line in _split(text, "\n"):
        begins = not bulleted or bool(_BULLET.match(line)) or not found
        pieces = [piece.strip() for piece in _split(_BULLET.sub("", line), _SEPARATORS["done"])]
        pieces = [piece for piece in pieces if piece.strip(".;,-* ")]
        if not begins and pieces:
            found[-1].append(pieces.pop(0))
        found += [[piece] for piece in pieces]
    return tuple(" ".join(parts) for parts in found)


def tests(text: str) -> tuple[str, ...]:
    """Ids of tests, one a line: a comma or a bracket may be part of one."""
    lines = (_BULLET.sub("", line).strip().strip("`").strip() for line in text.split("\n"))
    return tuple(line for line in lines if line)


def references(text: str) -> tuple[str, ...]:
    """What a `depends_on` names: by commas, with or without brackets and quotes."""
    items = (item.strip().strip("\"'`").strip() for item in re.split(r"[,\n;]", text.strip().strip("[]()")))
    return tuple(item for item in (_BULLET.sub("", one) for one in items) if not is_none(item))


def _split(text: str, separators: str, keep: str = '([{`"“„«「') -> Iterator[str]:
    """The text cut at any of `separators` that stands outside the pairs that `keep` opens; a line ends any pair."""
    begin, closer = 0, ""
    for at, char in enumerate(text):
        if char == "\n":
            closer = ""
        if closer:
            closer = "" if char == closer else closer
        elif char in separators:
            yield text[begin:at]
            begin = at + 1
        elif char in keep and _closes(text, at, _PAIRS[char]):
            closer = _PAIRS[char]
    yield text[begin:]


def _closes(text: str, at: int, closer: str) -> bool:
    """Whether the pair is closed on its line, looking no further than a line can sensibly be long."""
    line = text[at + 1 : at + 500].partition("\n")[0]
    return closer in line


def dedented(text: str) -> str:
    """Without the indentation of the element; the first line often stands beside the tag and has none."""
    first, newline, rest = text.partition("\n")
    if not first.strip():
        return f"{newline}{dedent(rest)}"
    return dedent(text) if first[0].isspace() else f"{first}{newline}{dedent(rest)}"
