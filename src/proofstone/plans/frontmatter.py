"""Parse the YAML frontmatter of a plan.

The YAML is composed into nodes, not values: a node keeps its line and its text as written (`01` stays `01`, `1.10`
stays `1.10`, which no YAML type preserves). Unknown keys are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar
from warnings import catch_warnings, simplefilter

from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from proofstone.common.parsing import make_yaml_reader
from proofstone.plans.fields import is_none_word, make_error, make_warning, parse_paths, parse_references, shorten_text
from proofstone.plans.models import KeyLink, MustHaves, PlanProblem, RequiredArtifact

_MAX_LENGTH = 64 * 1024
_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[\w +.-]*$")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NOTE = re.compile(r" (?:\(|—|–|- ).*$", re.DOTALL)
_ARROW = re.compile(r"->|→|=>")
_Item = TypeVar("_Item")
_YES = {"true": True, "yes": True, "false": False, "no": False}


@dataclass
class Frontmatter:
    """The values of a plan's frontmatter, and its problems."""

    phase: str = ""
    plan: str = ""
    type: str = ""
    wave: str = ""
    depends_on: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    autonomous: bool = True
    must_haves: MustHaves = field(default_factory=MustHaves)
    problems: list[PlanProblem] = field(default_factory=list)
    end: int = 0
    """Index of the first line after the frontmatter; 0 if there is none."""


class _Block(NamedTuple):
    yaml: str
    first: int
    """Index of the YAML's first line in the document."""
    end: int


def read_frontmatter(lines: list[str], at: int = 0) -> Frontmatter:
    """Read the frontmatter of a document that begins at line `at`. It is empty if the document has none."""
    frontmatter = Frontmatter()
    begin = _find_opening(lines, at)
    if begin is None:
        return frontmatter
    end = next((at for at in range(begin + 1, len(lines)) if lines[at].rstrip() in ("---", "...")), None)
    if end is None:
        if begin + 1 < len(lines) and re.match(r"[A-Za-z_]\w*:", lines[begin + 1]):
            hint = "write a line with `---` after the last key"
            frontmatter.problems.append(make_error("frontmatter", begin + 1, "the frontmatter is not closed", hint))
        return frontmatter
    block = _Block("\n".join(lines[begin + 1 : end]), begin + 1, end + 1)
    frontmatter.end = block.end
    root = _compose(block, frontmatter)
    if root is not None:
        _FrontmatterParser(block, frontmatter).read(root)
    return frontmatter


def _find_opening(lines: list[str], at: int) -> int | None:
    """Return the first line that is not blank, if it is `---`. A pasted plan may have a fence before it."""
    while at < len(lines) and not lines[at].strip():
        at += 1
    if at + 1 < len(lines) and _FENCE.match(lines[at]):
        at += 1
    return at if at < len(lines) and lines[at].rstrip() == "---" else None


def _find_lone_surrogate(root: Node) -> int | None:
    """Return the line of a value that no file can hold, counted from 0. YAML can spell half of a surrogate pair."""
    pending, visited = [root], set()
    while pending:
        node = pending.pop()
        if id(node) in visited:
            continue  # an alias
        visited.add(id(node))
        if isinstance(node, MappingNode):
            pending += [part for pair in node.value for part in pair]
        elif isinstance(node, SequenceNode):
            pending += node.value
        elif _SURROGATE.search(str(node.value)):
            return int(node.start_mark.line)
    return None


def _compose(block: _Block, frontmatter: Frontmatter) -> MappingNode | None:
    if len(block.yaml) > _MAX_LENGTH:
        hint = "keep identifiers and must_haves there, and the plan below it"
        frontmatter.problems.append(
            make_error("frontmatter", block.first + 1, "the frontmatter is larger than 64 KiB", hint)
        )
        return None
    try:
        with catch_warnings():
            simplefilter("ignore", ReusedAnchorWarning)  # YAML allows it
            root = make_yaml_reader().compose(block.yaml)
    except MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        line = block.first + 1 + (mark.line if mark else 0)
        hint = "values with `: `, `#`, quotes or brackets in them need quotes around the whole value"
        frontmatter.problems.append(
            make_error("frontmatter", line, f"the frontmatter is not valid YAML: {fault.problem}", hint)
        )
        return None
    except (YAMLError, ValueError, OverflowError, RecursionError) as fault:
        reason = shorten_text(str(fault).partition("\n")[0])
        hint = "write plain `key: value` lines and lists"
        frontmatter.problems.append(
            make_error("frontmatter", block.first + 1, f"the frontmatter is not valid YAML: {reason}", hint)
        )
        return None
    if root is not None and (half := _find_lone_surrogate(root)) is not None:
        hint = "write the character itself"
        frontmatter.problems.append(
            make_error("frontmatter", block.first + 1 + half, "this value contains half of a character", hint)
        )
        return None
    if root is None:
        return None
    if not isinstance(root, MappingNode):
        hint = "write `phase: …`, `plan: …` and so on, one key per line"
        frontmatter.problems.append(
            make_error("frontmatter", block.first + 1, "the frontmatter is not a list of keys", hint)
        )
        return None
    return root


@dataclass
class _FrontmatterParser:
    block: _Block
    found: Frontmatter

    def read(self, root: MappingNode) -> None:
        keys = dict(_items(root))
        for key in ("phase", "plan", "type", "wave"):
            if key in keys:
                setattr(self.found, key, self._read_text(key, keys[key]))
        if "depends_on" in keys:
            texts = self._read_texts("depends_on", keys["depends_on"])
            self.found.depends_on = tuple(reference for text in texts for reference in parse_references(text))
        if "files_modified" in keys:
            texts = self._read_texts("files_modified", keys["files_modified"])
            self.found.files_modified = tuple(dict.fromkeys(path for text in texts for path in parse_paths(text)))
        if "autonomous" in keys:
            self._read_autonomous(keys["autonomous"])
        if "must_haves" in keys and not _is_empty(keys["must_haves"]):
            self._read_must_haves(keys["must_haves"])

    def _line(self, node: Node) -> int:
        return int(self.block.first + 1 + node.start_mark.line)

    def _add_problem(self, node: Node, message: str, hint: str) -> None:
        self.found.problems.append(make_error("frontmatter", self._line(node), message, hint))

    def _read_text(self, key: str, node: Node) -> str:
        if isinstance(node, ScalarNode):
            return "" if _is_empty(node) else str(node.value).strip()
        self._add_problem(node, f"`{key}` must be one value", f"write `{key}: 01`, with quotes if it holds brackets")
        return ""

    def _read_texts(self, key: str, node: Node) -> tuple[str, ...]:
        """Return a list of texts. A single text counts as a list of one."""
        if _is_empty(node):
            return ()
        if isinstance(node, ScalarNode):
            return (str(node.value),)
        if isinstance(node, SequenceNode):
            return tuple(text for item in node.value if (text := self._read_text(key, item)))
        self._add_problem(node, f"`{key}` must be a list", f"write `{key}: []`, or one item per line after `- `")
        return ()

    def _read_autonomous(self, node: Node) -> None:
        value = self._read_text("autonomous", node).lower()
        if value in _YES:
            self.found.autonomous = _YES[value]
        else:
            self._add_problem(node, f"`autonomous` is {value!r}", "write `true` or `false`")

    def _read_must_haves(self, node: Node) -> None:
        if not isinstance(node, MappingNode):
            self._add_problem(
                node, "`must_haves` must hold keys", "write `truths:`, `artifacts:` and `key_links:` under it"
            )
            return
        keys = dict(_items(node))
        truths = self._read_texts("truths", keys["truths"]) if "truths" in keys else ()
        self.found.must_haves = MustHaves(
            truths=truths,
            artifacts=tuple(self._read_each(keys.get("artifacts"), self._read_artifacts)),
            key_links=tuple(self._read_each(keys.get("key_links"), self._read_links)),
        )

    def _read_each(self, node: Node | None, reader: Callable[[Node], Iterator[_Item]]) -> Iterator[_Item]:
        if node is not None and not _is_empty(node):
            for child in node.value if isinstance(node, SequenceNode) else [node]:
                yield from reader(child)

    def _read_artifacts(self, node: Node) -> Iterator[RequiredArtifact]:
        if isinstance(node, ScalarNode):
            for path in parse_paths(str(node.value)):
                yield RequiredArtifact(path=path, line=self._line(node))
            return
        keys = dict(_items(node)) if isinstance(node, MappingNode) else {}
        path = self._read_text("path", keys["path"]) if "path" in keys else ""
        if not path:
            self._add_problem(node, "an artifact has no `path`", "write `- path: src/thing.py`")
            return
        contains = self._read_texts("contains", keys["contains"]) if "contains" in keys else ()
        for text in contains or ("",):
            yield RequiredArtifact(
                path=_NOTE.sub("", path).strip("`").removeprefix("./"),
                provides=self._read_text("provides", keys["provides"]) if "provides" in keys else "",
                contains=text,
                exports=self._read_texts("exports", keys["exports"]) if "exports" in keys else (),
                min_lines=self._read_number("min_lines", keys["min_lines"]) if "min_lines" in keys else 0,
                line=self._line(node),
            )

    def _read_number(self, key: str, node: Node) -> int:
        text = self._read_text(key, node)
        if re.fullmatch(r"[0-9]{1,9}", text):
            return int(text)
        self._add_problem(node, f"`{key}` is {text!r}", f"write a number: `{key}: 20`")
        return 0

    def _read_links(self, node: Node) -> Iterator[KeyLink]:
        if isinstance(node, ScalarNode):
            ends = _ARROW.split(str(node.value), maxsplit=1)
            if len(ends) == 2 and all(end.strip() for end in ends):
                source, target = (_NOTE.sub("", end.strip()).strip("`") for end in ends)
                yield KeyLink(source=source, target=target, line=self._line(node))
                return
            message = f"the key link {shorten_text(str(node.value), 40)!r} does not say which file refers to which"
            hint = "write `- from: src/a.py`, `to: src/b.py` and a `pattern`; until then it is not checked"
            self.found.problems.append(make_warning("key-link", self._line(node), message, hint))
            return
        keys = dict(_items(node)) if isinstance(node, MappingNode) else {}
        values = {key: self._read_text(key, keys[key]) for key in ("from", "to", "via", "pattern") if key in keys}
        if not values.get("from") or not values.get("to"):
            self._add_problem(
                node, "a key link needs `from` and `to`", "write `- from: src/a.py` and under it `to: src/b.py`"
            )
            return
        yield KeyLink(
            source=_NOTE.sub("", values["from"]).strip("`").removeprefix("./"),
            target=values["to"],
            via=values.get("via", ""),
            pattern=values.get("pattern", ""),
            line=self._line(node),
        )


def _items(node: MappingNode) -> Iterator[tuple[str, Node]]:
    for key, value in node.value:
        if isinstance(key, ScalarNode):
            yield str(key.value).strip(), value


def _is_empty(node: Node) -> bool:
    if isinstance(node, ScalarNode):
        return is_none_word(str(node.value)) if node.style is None else not str(node.value).strip()
    return not node.value
