"""The engine looks up what agents claim, with the eyes that it gives to them.

Files are read as their tools read them: no path and no link leads out of the project, files that may hold secrets are
not looked at, and sizes are bounded. Whatever an agent wrote is answered, never an error. `holds` is None where it
cannot be told, or would show nothing: nobody is blamed for that, and nothing is verified by it.

What was seen is said in the engine's own words; an agent's stand in quotation marks as soon as they could be taken for
more than a name.

A claim of absence is turned round, but only where something was looked at: of a path that leads out, a revision that is
none, or a page of which parts were shown, not even the opposite is known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.agents.memory.models import Memory
from proofstone.agents.models import RefusalRule, ToolResult
from proofstone.agents.roles.models.plan_gate_records import NEEDED, ClaimKind, LookedUp, RepositoryClaim
from proofstone.agents.rules.tool_rules import FailedError, RefusedError, names, shortened
from proofstone.agents.tools.definitions import Quoted, defined, quoted
from proofstone.agents.tools.files import is_binary
from proofstone.agents.tools.history import History, commit_text
from proofstone.agents.tools.models import GitLog, Tool
from proofstone.agents.tools.tool_context import Deadline, Ground
from proofstone.agents.tools.tree import Tree
from proofstone.agents.web.pages import Page, excerpts_in, page_in
from proofstone.errors import InputError

_SECONDS: Final = 30.0
_FILE_BYTES: Final = 16 << 20
_ALL_ENTRIES: Final = 1_000_000
_SHORTEST: Final = 8
"""Characters that are not blank: fewer than these stand anywhere."""
_SHOWN: Final = 200
_ONE_WORD: Final = re.compile(r"[^\s;\"“”]+")


@dataclass(frozen=True)
class Place:
    """What claims are looked up in."""

    ground: Ground
    memory: Memory | None = None


@dataclass(frozen=True)
class _Seen:
    holds: bool | None
    saw: str
    looked: bool = True
    """Whether there was something to look at. If not, the opposite is not known either."""


_Look = Callable[[RepositoryClaim, Place, Sequence[ToolResult]], _Seen]


def look_up(claim: RepositoryClaim, place: Place, shown: Sequence[ToolResult] = ()) -> LookedUp:
    """`shown`: what the tools have shown in the conversation that the claim comes from."""
    try:
        seen = _too_short(claim) or _LOOKS[claim.kind](claim, place, shown)
    except RefusedError as refused:
        seen = _Seen(None, _why(claim, refused))
    except FailedError as failed:
        seen = _Seen(None, failed.text)
    except (FileNotFoundError, NotADirectoryError):
        seen = _Seen(False, f"there is no {_word(claim.path)}")
    return LookedUp(claim=claim, holds=_turned(seen) if claim.absent else seen.holds, saw=_one_line(seen.saw))


def _turned(seen: _Seen) -> bool | None:
    return None if seen.holds is None or not seen.looked else not seen.holds


def _too_short(claim: RepositoryClaim) -> _Seen | None:
    """That a claim says so little that it holds wherever one looks."""
    if "text" in NEEDED[claim.kind] and len("".join(claim.text.split())) < _SHORTEST:
        return _Seen(None, f"{_quote(claim.text)} is too short to show anything")
    if claim.kind is ClaimKind.SYMBOL and len(re.sub(r"\W", "", claim.name)) == 1:
        return _Seen(None, f"{_word(claim.name)} is too short to show anything")
    return None


def _file(claim: RepositoryClaim, place: Place, _shown: Sequence[ToolResult]) -> _Seen:
    if wrong := _leads_out(claim.path):
        return wrong
    if not names(claim.path):
        return _Seen(None, "that there is the project's root shows nothing")
    tree = Tree(place.ground)
    entry = tree.entry(tree.readable(claim.path))
    what = "a folder" if entry.folder else "a file" if entry.file else "neither a file nor a folder"
    return _Seen(True, f"{_word(claim.path)} is there: {what}")


def _symbol(claim: RepositoryClaim, place: Place, _shown: Sequence[ToolResult]) -> _Seen:
    name = claim.name.strip().removesuffix("()")
    if not re.split(r"::|\.", name)[-1].strip():
        return _Seen(False, f"{_word(claim.name)} is no name", looked=False)
    if not _ONE_WORD.fullmatch(name):
        return _Seen(None, f"{_word(claim.name)} is not one name")
    if wrong := _leads_out(claim.path):
        return wrong
    found = defined(Tree(place.ground), name, claim.path, _deadline(place))
    return _Seen(found.holds, found.where)


def _text(claim: RepositoryClaim, place: Place, _shown: Sequence[ToolResult]) -> _Seen:
    if wrong := _leads_out(claim.path):
        return wrong
    tree, path, words = Tree(place.ground), _word(claim.path), _quote(claim.text)
    at = tree.readable(claim.path)
    if tree.entry(at).folder:
        return _Seen(False, f"{path} is a folder")
    content = tree.read(at, _FILE_BYTES)
    if is_binary(content):
        return _Seen(None, f"{path} is a binary file")
    text = content.decode("utf-8", "replace")
    match quoted(claim.text, text):
        case Quoted.EXACTLY:
            return _Seen(True, f"{path} holds {words} in line {text.count(chr(10), 0, text.index(claim.text)) + 1}")
        case Quoted.BUT_FOR_SPACE:
            return _Seen(True, f"{path} holds {words} but for its white space")
        case Quoted.NOT:
            return _Seen(False, f"{path} does not hold {words}")


def _commit(claim: RepositoryClaim, place: Place, _shown: Sequence[ToolResult]) -> _Seen:
    ground = place.ground
    if ground.git is None or ground.commit is None:
        return _Seen(None, "there is no history here")
    deadline = _deadline(place)
    history = History(ground.git, ground.commit, Tree(ground), deadline)
    if wrong := _no_commit(history, claim.revision):
        return wrong
    commit, revision = commit_text(history, claim.revision), f"commit {_word(claim.revision)}"
    words = _quote(claim.text)
    for verb, found in (("says", commit.says(claim.text)), ("changes", commit.changes(claim.text))):
        if found:
            return _Seen(True, f"{revision} {verb} {words}{_but_for_space(found)}")
    if commit.left_out:
        return _Seen(None, f"{revision}, as far as it is shown, neither says nor changes it: {commit.left_out[0]}")
    return _Seen(False, f"{revision} neither says nor changes {words}")


def _no_commit(history: History, revision: str) -> _Seen | None:
    """Why a revision is none of the history's; None: it is one."""
    try:
        history.log(GitLog(revision=revision, limit=1))
    except RefusedError as refused:
        badly_named = refused.rule is RefusalRule.ARGUMENTS
        why = f"{_word(revision)} is not the name of one commit" if badly_named else _sentence(refused.text)
        return _Seen(False, why, looked=False)
    except FailedError:
        if history.deadline.over:
            raise
        return _Seen(False, f"there is no commit {_word(revision)}", looked=False)
    return None


def _memory(claim: RepositoryClaim, place: Place, _shown: Sequence[ToolResult]) -> _Seen:
    if place.memory is None:
        return _Seen(None, "there is no memory here")
    try:
        entries = place.memory.search((), limit=_ALL_ENTRIES)
    except InputError as error:  # somebody has edited its file
        return _Seen(None, f"the memory cannot be read: {error.message}")
    except OSError as error:
        return _Seen(None, f"the memory cannot be read: {error.strerror}")
    entry = next((item for item in entries if item.entry_id == claim.entry), None)
    if entry is None:
        return _Seen(False, f"the memory has no entry {_word(claim.entry)}")
    found = quoted(claim.text, "\n".join((entry.content, *entry.tags)))
    holds = "holds" if found else "does not hold"
    saw = f"the memory's entry {_word(claim.entry)} {holds} {_quote(claim.text)}{_but_for_space(found)}"
    return _Seen(bool(found), saw)


def _web(claim: RepositoryClaim, _place: Place, shown: Sequence[ToolResult]) -> _Seen:
    """Who was not shown a page may have read it elsewhere. What a page does not say cannot be known from a part of it,
    so that here absence is never seen."""
    url, address, words = _word(claim.url), _bare(claim.url), _quote(claim.text)
    fetched, excerpts = _pages(shown)
    named = [page for page in (*fetched, *excerpts) if address in map(_bare, page.addresses)]
    if not named:
        return _Seen(None, f"no web tool of this conversation has shown {url}")
    for page in named:
        if found := quoted(claim.text, page.text):
            last = page.addresses[-1]
            leads = "" if _bare(last) == address else f", which leads to {_word(last)},"
            return _Seen(True, f"{url}{leads} was shown, and says {words}{_but_for_space(found)}")
    if any(page in fetched for page in named):
        return _Seen(False, f"{url}, as it was shown, does not say {words}", looked=False)
    return _Seen(None, f"{url} was not fetched, and what a search has shown of it does not say {words}")


def _pages(shown: Sequence[ToolResult]) -> tuple[list[Page], list[Page]]:
    """What was fetched, and the excerpts of what was found."""
    results = [item for item in shown if item.ok and item.refused is None]
    fetched = [page_in(result.text) for result in results if result.name == Tool.WEB_FETCH]
    excerpts = [page for result in results if result.name == Tool.WEB_SEARCH for page in excerpts_in(result.text)]
    return fetched, excerpts


def _bare(address: str) -> str:
    return address.strip().partition("#")[0].rstrip("/")


_LOOKS: Final[dict[ClaimKind, _Look]] = {
    ClaimKind.FILE: _file,
    ClaimKind.SYMBOL: _symbol,
    ClaimKind.TEXT: _text,
    ClaimKind.COMMIT: _commit,
    ClaimKind.MEMORY: _memory,
    ClaimKind.WEB: _web,
}


def _leads_out(path: str) -> _Seen | None:
    """That a path by its own words is none of the project's. Where a link leads out is the tree's to say."""
    try:
        names(path)
    except RefusedError as refused:
        return _Seen(False, _sentence(refused.text), looked=False)
    return None


def _why(claim: RepositoryClaim, refused: RefusedError) -> str:
    if refused.rule is RefusalRule.SECRET:
        return f"{_word(claim.path)} may hold secrets: not looked at"
    return _sentence(refused.text)


def _sentence(text: str) -> str:
    """The first one: those after it tell an agent what to do."""
    return text.partition(". ")[0]


def _but_for_space(found: Quoted) -> str:
    return " but for its white space" if found is Quoted.BUT_FOR_SPACE else ""


def _word(text: str) -> str:
    """A name, in quotation marks unless it is plainly one word."""
    return shortened(text, _SHOWN) if _ONE_WORD.fullmatch(text) and text.isprintable() else _quote(text)


def _quote(text: str) -> str:
    """Escaped, so that it ends where the quotation marks are, and to be read in one line."""
    written = json.dumps(shortened(text, _SHOWN), ensure_ascii=False)
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in written)


def _one_line(text: str) -> str:
    return shortened(" ".join(text.split()), 1000)


def _deadline(place: Place) -> Deadline:
    return Deadline(_SECONDS, place.ground.cancel)
