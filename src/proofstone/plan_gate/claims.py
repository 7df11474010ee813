"""Look up what agents claim, with the same access that the agents have.

Files are read as the agents' tools read them: no path and no link leads out of the project, files that may contain
secrets are not read, and sizes are bounded. Every claim gets an answer, never an error. `holds` is None if a claim
cannot be decided, or if it would prove nothing: then nobody is blamed, and nothing is verified by it.

The result is described in Proofstone's own words. Words of an agent are quoted if they could be more than a name.

A claim of absence is inverted, but only if something could be examined. For a path that leads out of the project, a
revision that does not exist, or a page of which only parts were shown, the opposite is not known either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.agents.memory.models import MemoryStore
from proofstone.agents.models import RefusalRule, ToolResult
from proofstone.agents.roles.models.plan_gate_records import (
    REQUIRED_CLAIM_FIELDS,
    ClaimKind,
    LookupResult,
    RepositoryClaim,
)
from proofstone.agents.rules.tool_rules import ToolFailedError, ToolRefusedError, shorten_text, split_path
from proofstone.agents.tools.definitions import QuoteMatch, check_definition, match_quote
from proofstone.agents.tools.files import is_binary
from proofstone.agents.tools.history import History, read_commit_text
from proofstone.agents.tools.models import GitLogArguments, Tool
from proofstone.agents.tools.tool_context import ToolContext, ToolDeadline
from proofstone.agents.tools.tree import FileTree
from proofstone.agents.web.pages import WebPage, parse_page, parse_results
from proofstone.errors import InputError

_SECONDS: Final = 30.0
_FILE_BYTES: Final = 16 << 20
_ALL_ENTRIES: Final = 1_000_000
_MIN_LENGTH: Final = 8
"""Characters that are not blank: shorter texts occur everywhere."""
_MAX_SHOWN: Final = 200
_ONE_WORD: Final = re.compile(r"[^\s;\"“”]+")


@dataclass(frozen=True)
class ClaimContext:
    """Where claims are looked up."""

    ground: ToolContext
    memory: MemoryStore | None = None


@dataclass(frozen=True)
class _Result:
    holds: bool | None
    saw: str
    looked: bool = True
    """Whether there was something to examine. If not, the opposite is not known either."""


_Lookup = Callable[[RepositoryClaim, ClaimContext, Sequence[ToolResult]], _Result]


def look_up_claim(claim: RepositoryClaim, place: ClaimContext, shown: Sequence[ToolResult] = ()) -> LookupResult:
    """Look up a claim. `shown`: the tool results of the conversation in which the claim was made."""
    try:
        result = _check_length(claim) or _LOOKUPS[claim.kind](claim, place, shown)
    except ToolRefusedError as refusal:
        result = _Result(None, _explain_refusal(claim, refusal))
    except ToolFailedError as failure:
        result = _Result(None, failure.text)
    except (FileNotFoundError, NotADirectoryError):
        result = _Result(False, f"there is no {_format_name(claim.path)}")
    return LookupResult(claim=claim, holds=_invert(result) if claim.absent else result.holds, saw=_one_line(result.saw))


def _invert(result: _Result) -> bool | None:
    return None if result.holds is None or not result.looked else not result.holds


def _check_length(claim: RepositoryClaim) -> _Result | None:
    """Refuse a claim that says so little that it is always true."""
    if "text" in REQUIRED_CLAIM_FIELDS[claim.kind] and len("".join(claim.text.split())) < _MIN_LENGTH:
        return _Result(None, f"{_quote(claim.text)} is too short to prove anything")
    if claim.kind is ClaimKind.SYMBOL and len(re.sub(r"\W", "", claim.name)) == 1:
        return _Result(None, f"{_format_name(claim.name)} is too short to prove anything")
    return None


def _look_up_file(claim: RepositoryClaim, place: ClaimContext, _shown: Sequence[ToolResult]) -> _Result:
    if problem := _check_path(claim.path):
        return problem
    if not split_path(claim.path):
        return _Result(None, "the existence of the project's root proves nothing")
    tree = FileTree(place.ground)
    entry = tree.get_entry(tree.require_readable(claim.path))
    kind = "a folder" if entry.is_folder else "a file" if entry.is_file else "neither a file nor a folder"
    return _Result(True, f"{_format_name(claim.path)} is there: {kind}")


def _look_up_symbol(claim: RepositoryClaim, place: ClaimContext, _shown: Sequence[ToolResult]) -> _Result:
    name = claim.name.strip().removesuffix("()")
    if not re.split(r"::|\.", name)[-1].strip():
        return _Result(False, f"{_format_name(claim.name)} is no name", looked=False)
    if not _ONE_WORD.fullmatch(name):
        return _Result(None, f"{_format_name(claim.name)} is not one name")
    if problem := _check_path(claim.path):
        return problem
    definition = check_definition(FileTree(place.ground), name, claim.path, _deadline(place))
    return _Result(definition.holds, definition.where)


def _look_up_text(claim: RepositoryClaim, place: ClaimContext, _shown: Sequence[ToolResult]) -> _Result:
    if problem := _check_path(claim.path):
        return problem
    tree, path, words = FileTree(place.ground), _format_name(claim.path), _quote(claim.text)
    at = tree.require_readable(claim.path)
    if tree.get_entry(at).is_folder:
        return _Result(False, f"{path} is a folder")
    content = tree.read(at, _FILE_BYTES)
    if is_binary(content):
        return _Result(None, f"{path} is a binary file")
    text = content.decode("utf-8", "replace")
    match match_quote(claim.text, text):
        case QuoteMatch.EXACTLY:
            return _Result(True, f"{path} holds {words} in line {text.count(chr(10), 0, text.index(claim.text)) + 1}")
        case QuoteMatch.BUT_FOR_SPACE:
            return _Result(True, f"{path} holds {words} but for its white space")
        case QuoteMatch.NOT:
            return _Result(False, f"{path} does not hold {words}")


def _look_up_commit(claim: RepositoryClaim, place: ClaimContext, _shown: Sequence[ToolResult]) -> _Result:
    ground = place.ground
    if ground.git is None or ground.commit is None:
        return _Result(None, "there is no history here")
    deadline = _deadline(place)
    history = History(ground.git, ground.commit, FileTree(ground), deadline)
    if problem := _check_revision(history, claim.revision):
        return problem
    commit, revision = read_commit_text(history, claim.revision), f"commit {_format_name(claim.revision)}"
    words = _quote(claim.text)
    for verb, match in (("says", commit.find_in_message(claim.text)), ("changes", commit.find_in_change(claim.text))):
        if match:
            return _Result(True, f"{revision} {verb} {words}{_note_white_space(match)}")
    if commit.left_out:
        return _Result(None, f"{revision}, as far as it is shown, neither says nor changes it: {commit.left_out[0]}")
    return _Result(False, f"{revision} neither says nor changes {words}")


def _check_revision(history: History, revision: str) -> _Result | None:
    """Explain why a revision is not in the history; None if it is."""
    try:
        history.log(GitLogArguments(revision=revision, limit=1))
    except ToolRefusedError as refusal:
        is_bad_name = refusal.rule is RefusalRule.ARGUMENTS
        why = (
            f"{_format_name(revision)} is not the name of one commit" if is_bad_name else _first_sentence(refusal.text)
        )
        return _Result(False, why, looked=False)
    except ToolFailedError:
        if history.deadline.is_over:
            raise
        return _Result(False, f"there is no commit {_format_name(revision)}", looked=False)
    return None


def _look_up_memory(claim: RepositoryClaim, place: ClaimContext, _shown: Sequence[ToolResult]) -> _Result:
    if place.memory is None:
        return _Result(None, "there is no memory here")
    try:
        entries = place.memory.search((), limit=_ALL_ENTRIES)
    except InputError as error:  # somebody edited the file
        return _Result(None, f"the memory cannot be read: {error.message}")
    except OSError as error:
        return _Result(None, f"the memory cannot be read: {error.strerror}")
    entry = next((candidate for candidate in entries if candidate.entry_id == claim.entry), None)
    if entry is None:
        return _Result(False, f"the memory has no entry {_format_name(claim.entry)}")
    match = match_quote(claim.text, "\n".join((entry.content, *entry.tags)))
    verb = "holds" if match else "does not hold"
    observation = (
        f"the memory's entry {_format_name(claim.entry)} {verb} {_quote(claim.text)}{_note_white_space(match)}"
    )
    return _Result(bool(match), observation)


def _look_up_web(claim: RepositoryClaim, _place: ClaimContext, shown: Sequence[ToolResult]) -> _Result:
    """Look up a quotation in the pages that web tools showed.

    An agent that was not shown a page may have read it elsewhere. A part of a page cannot prove that the page does not
    say something, so absence is never confirmed here.
    """
    url, address, words = _format_name(claim.url), _normalize_url(claim.url), _quote(claim.text)
    fetched, excerpts = _split_pages(shown)
    pages = [page for page in (*fetched, *excerpts) if address in map(_normalize_url, page.addresses)]
    if not pages:
        return _Result(None, f"no web tool of this conversation has shown {url}")
    for page in pages:
        if match := match_quote(claim.text, page.text):
            last = page.addresses[-1]
            redirect = "" if _normalize_url(last) == address else f", which leads to {_format_name(last)},"
            return _Result(True, f"{url}{redirect} was shown, and says {words}{_note_white_space(match)}")
    if any(page in fetched for page in pages):
        return _Result(False, f"{url}, as it was shown, does not say {words}", looked=False)
    return _Result(None, f"{url} was not fetched, and what a search has shown of it does not say {words}")


def _split_pages(shown: Sequence[ToolResult]) -> tuple[list[WebPage], list[WebPage]]:
    """Return the fetched pages, and the excerpts of search results."""
    results = [tool_result for tool_result in shown if tool_result.ok and tool_result.refused is None]
    fetched = [parse_page(result.text) for result in results if result.name == Tool.WEB_FETCH]
    excerpts = [page for result in results if result.name == Tool.WEB_SEARCH for page in parse_results(result.text)]
    return fetched, excerpts


def _normalize_url(address: str) -> str:
    return address.strip().partition("#")[0].rstrip("/")


_LOOKUPS: Final[dict[ClaimKind, _Lookup]] = {
    ClaimKind.FILE: _look_up_file,
    ClaimKind.SYMBOL: _look_up_symbol,
    ClaimKind.TEXT: _look_up_text,
    ClaimKind.COMMIT: _look_up_commit,
    ClaimKind.MEMORY: _look_up_memory,
    ClaimKind.WEB: _look_up_web,
}


def _check_path(path: str) -> _Result | None:
    """Refuse a path that leads out of the project by its own text. Links are checked by the tree."""
    try:
        split_path(path)
    except ToolRefusedError as refusal:
        return _Result(False, _first_sentence(refusal.text), looked=False)
    return None


def _explain_refusal(claim: RepositoryClaim, refusal: ToolRefusedError) -> str:
    if refusal.rule is RefusalRule.SECRET:
        return f"{_format_name(claim.path)} may hold secrets, so it was not read"
    return _first_sentence(refusal.text)


def _first_sentence(text: str) -> str:
    """Return the first sentence. The others tell an agent what to do."""
    return text.partition(". ")[0]


def _note_white_space(match: QuoteMatch) -> str:
    return " but for its white space" if match is QuoteMatch.BUT_FOR_SPACE else ""


def _format_name(text: str) -> str:
    """Return a name, quoted unless it is plainly one word."""
    return shorten_text(text, _MAX_SHOWN) if _ONE_WORD.fullmatch(text) and text.isprintable() else _quote(text)


def _quote(text: str) -> str:
    """Quote and escape the text, on one line, so that it ends where the quotation marks are."""
    escaped = json.dumps(shorten_text(text, _MAX_SHOWN), ensure_ascii=False)
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in escaped
    )


def _one_line(text: str) -> str:
    return shorten_text(" ".join(text.split()), 1000)


def _deadline(place: ClaimContext) -> ToolDeadline:
    return ToolDeadline(_SECONDS, place.ground.cancel)
