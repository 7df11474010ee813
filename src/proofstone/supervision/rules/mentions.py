"""The files, names and changed interfaces that a free-text answer mentions, and whether a plan matches its task.

Agents write a path in backticks, in bold, followed by `:12` or `(NEW)`, at the end of a sentence, or only its last
part. Where the engine knows the paths, a last part means the one known path that ends with it. A file that is mentioned
only to say that it is left alone does not count: "I do not touch b.py" does not announce b.py.

| a plan must                                                           | otherwise     |
|-----------------------------------------------------------------------|---------------|
| name only files that the task declares, or that a rule grants         | it is rejected |
| name every file that the agent has announced or already changed       | it is rejected |
| have a risk that is not below the engine's for these files            | it is rejected |
| state the impact on interfaces, if one changes                        | it is rejected |

The engine knows that an interface changes from the files, from the agent's answers, or from the plan's own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from proofstone.agents.models import SignatureChange, WorkFile
from proofstone.check.rules.file_requests import grant_files
from proofstone.common.globs import find_undeclared
from proofstone.common.models import ChangeKind
from proofstone.common.risk import PathChange, Risk, assess_risk
from proofstone.plans.mentions import find_paths_in_prose
from proofstone.supervision.models.messages import WorkPlan

_TOKEN: Final = re.compile(r"[^\s()<>\[\]{}\"'`,;|“”„‘’«»*—–→]+")
_MAX_TOKEN_CHARACTERS: Final = 300
_PATH_SUFFIX: Final = re.compile(r"(?::\d+(?:[-:]\d+)?|#L\d+(?:-L?\d+)?)?[.:!?…]*$")
_CLAUSE: Final = re.compile(r"(?<![.;!?])[.;!?]+ | (?:but|however|whereas|only) ", re.IGNORECASE)
_NEW_BEHIND: Final = re.compile(r"[`*\"']* ?[(\[{]? ?new\b", re.IGNORECASE)
_NEW_BEFORE: Final = re.compile(
    r"\b(?:new(?: files?| modules?)?:?|create[sd]?|creating|add(?:s|ed|ing)?(?: an?| the)?(?: new)? files?) ?[`*\"']*$",
    re.IGNORECASE,
)
_NEAR: Final = 60
"""Characters before and after a path that may qualify it."""

_NOT: Final = r"(?:\bnot|\bnever|\bno longer|\bno need|\bcannot|\bwithout|\bneither|n['’]t)"
_TOUCH: Final = (
    r"(?:touch|chang|modif|edit|alter|affect|need|creat|add|writ|rewrit|us(?:e|ing)|requir|involv|be\b|go\b)\w*"
)
_LEFT_ALONE: Final = re.compile(rf"{_NOT}\b(?: \w+){{0,3}}? {_TOUCH}", re.IGNORECASE)
"""Applies to everything that follows in the clause."""
_ALONE_BEFORE: Final = re.compile(r"\b(?:instead of|rather than|leav\w+)(?: the)? ?[`*\"']*$", re.IGNORECASE)
_ALONE_BEHIND: Final = re.compile(
    r"(?:(?! and )[^,/]){0,40}?\b(?:untouched|unchanged|unaffected|as (?:it is|they are)|alone|out of scope|off limits"
    r"|(?:is|are|will|was|were) (?:not|never) (?:be )?(?:touch|chang|modifi|edit|affect)ed)\b",
    re.IGNORECASE,
)

_INTERFACE: Final = re.compile(
    r"\b(?:interfaces?|signatures?|apis?|parameters?|arguments?|return (?:types?|values?)|contracts?)\b", re.IGNORECASE
)
_CHANGES: Final = re.compile(
    r"\b(?:chang\w*|add(?:s|ed|ing|itional)?|new|gains?|takes?|accepts?|remov\w*|drop\w*|renam\w*|extend\w*|replac\w*"
    r"|break\w*|alter\w*|modif\w*|becomes?|now|widen\w*|narrow\w*|requir\w*|differ\w*|longer)\b",
    re.IGNORECASE,
)
_NO_CHANGE: Final = re.compile(
    r"\b(?:no|without|zero)\b(?! longer)(?: \w+){0,3}? (?:interface|signature|api|parameter|argument|contract|return)"
    rf"|{_NOT}\b(?: \w+){{0,2}}? (?:chang|add|alter|modif|remov|renam|break|extend|affect|touch|differ)"
    r"|\b(?:changes?|impact) ?:? ?(?:none|no|nothing|n/a)\b|\b(?:unchanged|unaffected|untouched)\b"
    r"|\b(?:is|are) the same\b|\b(?:stays?|remains?|keeps?) (?:\w+ ){0,2}(?:same|as|stable|intact|compatible)\b",
    re.IGNORECASE,
)
_NONE: Final = re.compile(
    r"(?:none|no|nothing|n/?a|nil|null|-|—|no (?:interface |signature |public api )?(?:changes?|impact|effects?))[.!]?",
    re.IGNORECASE,
)


class Mention(NamedTuple):
    path: str
    new: bool
    """The text says that the file is new."""


def find_mentioned_files(text: str, known: Iterable[str] = ()) -> tuple[Mention, ...]:
    """Return the files that a text names as its own, each once, in order. `known` are the paths that the engine
    knows.
    """
    paths = tuple(dict.fromkeys(path.removeprefix("./") for path in known))
    mentions: dict[str, bool] = {}
    for clause in _split_clauses(text):
        denial = _LEFT_ALONE.search(clause)
        for path, start, end in _find_paths(clause, paths):
            before, after = clause[max(0, start - _NEAR) : start], clause[end : end + 2 * _NEAR]
            if denial and denial.end() <= start:
                continue
            if _ALONE_BEFORE.search(before) or _ALONE_BEHIND.match(after):
                continue
            new = bool(_NEW_BEHIND.match(after) or _NEW_BEFORE.search(before))
            mentions[path] = mentions.get(path, False) or new
    return tuple(Mention(path, new) for path, new in mentions.items())


def mentions_symbol(text: str, symbol: str) -> bool:
    """Return whether a text mentions a symbol as a whole word. `get` also mentions `Store.get`."""
    qualified = symbol.strip("`() ").replace("::", ".")
    short = qualified.rpartition(".")[2]
    plain = text.replace("::", ".")
    return mentions_words(plain, qualified) or (short.isidentifier() and mentions_words(plain, short))


def mentions_words(text: str, words: str) -> bool:
    """Return whether a text contains an id or a title as whole words. Case is ignored for several words."""
    pattern = rf"(?<![\w-]){re.escape(words)}(?![\w-])"
    return bool(words) and bool(re.search(pattern, text, re.IGNORECASE if " " in words else 0))


def find_interface_changes(text: str) -> tuple[str, ...]:
    """Return the sentences that announce a change of an interface."""
    return tuple(
        sentence
        for sentence in _split_clauses(text)
        if _INTERFACE.search(sentence) and _CHANGES.search(sentence) and not _NO_CHANGE.search(sentence)
    )


def mentions_change_of(text: str, symbol: str) -> bool:
    """Return whether a text mentions a symbol other than to say that it stays unchanged."""
    return any(mentions_symbol(clause, symbol) and not _NO_CHANGE.search(clause) for clause in _split_clauses(text))


def means_none(text: str) -> bool:
    """Return whether the text means "nothing": `none`, `n/a`, `no interface change`."""
    return bool(_NONE.fullmatch(text.strip().strip("`*_ ")))


def _split_clauses(text: str) -> Iterator[str]:
    for line in re.sub(r"(?<=\w)\\(?=\w)", "/", text).splitlines():
        yield from filter(None, _CLAUSE.split(" ".join(line.split())))


def _find_paths(clause: str, known: tuple[str, ...]) -> Iterator[tuple[str, int, int]]:
    for path in known:
        if " " in path and (at := clause.find(path)) >= 0:
            yield path, at, at + len(path)
            clause = clause.replace(path, " " * len(path))
    for match in _TOKEN.finditer(clause):
        if len(match[0]) > _MAX_TOKEN_CHARACTERS:
            continue
        bare = _PATH_SUFFIX.sub("", match[0]).removeprefix("./")
        if path := _resolve(bare, known) or next(find_paths_in_prose(bare), ""):
            yield path, match.start(), match.start() + len(match[0].rstrip(".:!?…"))


def _resolve(mention: str, known: tuple[str, ...]) -> str:
    """Return the known path that is meant, or an empty string if there is none or more than one."""
    if mention in known:
        return mention
    candidates = [path for path in known if path.endswith(f"/{mention}")] if "." in mention or "/" in mention else []
    return candidates[0] if len(candidates) == 1 else ""


_RISK_ORDER: Final = (Risk.GREEN, Risk.YELLOW, Risk.RED)
_RISK_BY_MARK: Final[Mapping[str, Risk]] = {risk.mark: risk for risk in Risk}


@dataclass(frozen=True)
class PlanExpectations:
    """What a plan is compared with."""

    declared: tuple[str, ...]
    """Paths and patterns that the agent owns, including those it was given later."""
    absent: frozenset[str] = frozenset()
    """Files of the plan that do not exist yet: the plan creates them."""
    announced: tuple[str, ...] = ()
    """Files that the agent said it needs, and was given."""
    observe_changes: tuple[WorkFile, ...] = ()
    """Files that the agent has already changed."""
    signatures: tuple[SignatureChange, ...] = ()
    """Interfaces that the agent has already changed."""
    last_answer: str = ""
    """The agent's last answer, which may mention an interface."""
    minimum_risk: Risk = Risk.GREEN
    """The minimum risk of the task, whatever its files are."""


def check_plan(plan: WorkPlan, against: PlanExpectations) -> tuple[str, ...]:
    """Return why the plan is rejected; nothing if it is approved."""
    files = tuple(dict.fromkeys(path.removeprefix("./") for path in plan.files))
    undeclared_paths = find_undeclared(files, against.declared)
    allowed = grant_files(undeclared_paths, against.declared)
    return (
        *_find_undeclared(undeclared_paths, allowed),
        *_find_omitted(files, against),
        *_check_risk(plan, files, against),
        *_check_interface_impact(plan, against),
    )


def compute_plan_risk(files: tuple[str, ...], against: PlanExpectations) -> Risk:
    """Return the highest risk of the planned files, the changed files and the task."""
    changed_files = {file.path: file for file in against.observe_changes}
    changes = [
        PathChange(path=changed.path, kind=changed.kind, added=changed.added, removed=changed.removed)
        if (changed := changed_files.get(path))
        else PathChange(path=path, kind=ChangeKind.ADDED if path in against.absent else ChangeKind.MODIFIED)
        for path in dict.fromkeys((*files, *changed_files))
    ]
    return max((against.minimum_risk, *(assess_risk(change).risk for change in changes)), key=_RISK_ORDER.index)


def _find_undeclared(undeclared_paths: tuple[str, ...], allowed: tuple[str, ...]) -> Iterator[str]:
    for path in undeclared_paths:
        if path not in allowed:
            yield f"{path} is not a file of the task"


def _find_omitted(files: tuple[str, ...], against: PlanExpectations) -> Iterator[str]:
    for path in find_undeclared(against.announced, files):
        yield f"it omits {path}, which was announced"
    changed = find_undeclared((file.path for file in against.observe_changes), (*files, *against.announced))
    for path in changed:
        yield f"it omits {path}, which has already changed"


def _check_risk(plan: WorkPlan, files: tuple[str, ...], against: PlanExpectations) -> Iterator[str]:
    minimum = compute_plan_risk(files, against)
    if _RISK_ORDER.index(_RISK_BY_MARK[plan.risk]) < _RISK_ORDER.index(minimum):
        yield f"its risk is {minimum.mark}, not {plan.risk}"


def _check_interface_impact(plan: WorkPlan, against: PlanExpectations) -> Iterator[str]:
    public = [signature.symbol for signature in against.signatures if signature.public]
    if missing := [symbol for symbol in public if not mentions_change_of(plan.interface_impact, symbol)]:
        yield f"the signature of {', '.join(missing)} has changed, but its interface impact does not say so"
    elif means_none(plan.interface_impact) and (
        announcements := find_interface_changes(f"{plan.changes}. {against.last_answer}")
    ):
        yield f"its interface impact is `{plan.interface_impact}`, but it says: {announcements[0]}"
