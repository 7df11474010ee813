"""What an answer in free words names: files, names, a changed interface.

Agents write a path in backticks, in bold, with `:12` behind it, with `(NEW)`, at the end of a sentence, or only its
last part. Where the engine knows which paths there are, a last part stands for the one that ends so. What is named only
to say that it is left alone is not named: somebody who hides a file behind "I do not touch" has not announced it.

Whether the plan of an agent is the plan of its task.

| the plan                                                              | if not                                    |
|-----------------------------------------------------------------------|-------------------------------------------|
| names only files that the task declares, or that a rule grants        | sent back                                 |
| names every file that the agent has announced or changed already      | sent back                                 |
| has a risk that is not below the engine's for these files             | sent back                                 |
| states the impact on interfaces, where one changes                    | sent back                                 |
| otherwise                                                             | approved                                  |

That an interface changes is known from the files, from what the agent has said, or from the plan's own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from proofstone.agents.models import ChangedSignature, WorkedFile
from proofstone.check.rules.file_requests import granted
from proofstone.common.globs import undeclared
from proofstone.common.models import ChangeKind
from proofstone.common.risk import PathChange, Risk, risk_of
from proofstone.plans.mentions import in_words
from proofstone.supervision.models.context import brief
from proofstone.supervision.models.messages import PlanApproved, Rejected, WorkPlan

_TOKEN: Final = re.compile(r"[^\s()<>\[\]{}\"'`,;|“”„‘’«»*—–→]+")
_LONGEST: Final = 300
_AFTER: Final = re.compile(r"(?::\d+(?:[-:]\d+)?|#L\d+(?:-L?\d+)?)?[.:!?…]*$")
_CLAUSE: Final = re.compile(r"(?<![.;!?])[.;!?]+ | (?:but|however|whereas|only) ", re.IGNORECASE)
_NEW_BEHIND: Final = re.compile(r"[`*\"']* ?[(\[{]? ?new\b", re.IGNORECASE)
_NEW_BEFORE: Final = re.compile(
    r"\b(?:new(?: files?| modules?)?:?|create[sd]?|creating|add(?:s|ed|ing)?(?: an?| the)?(?: new)? files?) ?[`*\"']*$",
    re.IGNORECASE,
)
_NEAR: Final = 60
"""Characters before and after a path that may say something of it."""

_NOT: Final = r"(?:\bnot|\bnever|\bno longer|\bno need|\bcannot|\bwithout|\bneither|n['’]t)"
_TOUCH: Final = (
    r"(?:touch|chang|modif|edit|alter|affect|need|creat|add|writ|rewrit|us(?:e|ing)|requir|involv|be\b|go\b)\w*"
)
_LEFT_ALONE: Final = re.compile(rf"{_NOT}\b(?: \w+){{0,3}}? {_TOUCH}", re.IGNORECASE)
"""Holds for all that follows in the clause."""
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
    """It is said to be new."""


def files(text: str, known: Iterable[str] = ()) -> tuple[Mention, ...]:
    """The files that a text names as its own, each once, in order. `known`: paths that the engine knows."""
    paths = tuple(dict.fromkeys(path.removeprefix("./") for path in known))
    found: dict[str, bool] = {}
    for clause in _clauses(text):
        denied = _LEFT_ALONE.search(clause)
        for path, start, end in _paths(clause, paths):
            before, behind = clause[max(0, start - _NEAR) : start], clause[end : end + 2 * _NEAR]
            if denied and denied.end() <= start:
                continue
            if _ALONE_BEFORE.search(before) or _ALONE_BEHIND.match(behind):
                continue
            new = bool(_NEW_BEHIND.match(behind) or _NEW_BEFORE.search(before))
            found[path] = found.get(path, False) or new
    return tuple(Mention(path, new) for path, new in found.items())


def names(text: str, symbol: str) -> bool:
    """Whether a text mentions a symbol, as a whole. `Store.get` is also named by `get`."""
    wanted = symbol.strip("`() ").replace("::", ".")
    short = wanted.rpartition(".")[2]
    plain = text.replace("::", ".")
    return says(plain, wanted) or (short.isidentifier() and says(plain, short))


def says(text: str, words: str) -> bool:
    """Whether a text has these words, an id or a title, as they are; several words also otherwise capitalised."""
    form = rf"(?<![\w-]){re.escape(words)}(?![\w-])"
    return bool(words) and bool(re.search(form, text, re.IGNORECASE if " " in words else 0))


def interface_changes(text: str) -> tuple[str, ...]:
    """The sentences that announce that an interface changes; none of those that say that none does."""
    return tuple(
        sentence
        for sentence in _clauses(text)
        if _INTERFACE.search(sentence) and _CHANGES.search(sentence) and not _NO_CHANGE.search(sentence)
    )


def changes_of(text: str, symbol: str) -> bool:
    """Whether a text speaks of a symbol otherwise than to say that it stays as it is."""
    return any(names(clause, symbol) and not _NO_CHANGE.search(clause) for clause in _clauses(text))


def says_none(text: str) -> bool:
    """Whether somebody wrote that there is nothing to say: `none`, `n/a`, `no interface change`."""
    return bool(_NONE.fullmatch(text.strip().strip("`*_ ")))


def _clauses(text: str) -> Iterator[str]:
    for line in re.sub(r"(?<=\w)\\(?=\w)", "/", text).splitlines():
        yield from filter(None, _CLAUSE.split(" ".join(line.split())))


def _paths(clause: str, known: tuple[str, ...]) -> Iterator[tuple[str, int, int]]:
    for path in known:
        if " " in path and (at := clause.find(path)) >= 0:
            yield path, at, at + len(path)
            clause = clause.replace(path, " " * len(path))
    for match in _TOKEN.finditer(clause):
        if len(match[0]) > _LONGEST:
            continue
        bare = _AFTER.sub("", match[0]).removeprefix("./")
        if path := _resolved(bare, known) or next(in_words(bare), ""):
            yield path, match.start(), match.start() + len(match[0].rstrip(".:!?…"))


def _resolved(bare: str, known: tuple[str, ...]) -> str:
    """The known path that is meant; nothing if it is none of them, or might be several."""
    if bare in known:
        return bare
    ending = [path for path in known if path.endswith(f"/{bare}")] if "." in bare or "/" in bare else []
    return ending[0] if len(ending) == 1 else ""


_ORDER: Final = (Risk.GREEN, Risk.YELLOW, Risk.RED)
_MARKS: Final[Mapping[str, Risk]] = {risk.mark: risk for risk in Risk}


@dataclass(frozen=True)
class Planned:
    """What a plan is held against."""

    declared: tuple[str, ...]
    """Paths and patterns that the agent owns, with those that it was given since."""
    absent: frozenset[str] = frozenset()
    """Those of the plan's files that are not there: it makes them."""
    announced: tuple[str, ...] = ()
    """Files that it has said it needs, and was given."""
    worked: tuple[WorkedFile, ...] = ()
    """What it has changed already."""
    signatures: tuple[ChangedSignature, ...] = ()
    """Interfaces that it has changed already."""
    said: str = ""
    """What it answered when it was last asked: an interface may be spoken of."""
    floor: Risk = Risk.GREEN
    """The task has this risk whatever the files are."""


@dataclass(frozen=True)
class PlanCheck:
    answer: PlanApproved | Rejected
    reasons: tuple[str, ...] = ()
    """Why it is sent back; none: it is approved."""
    granted: tuple[str, ...] = field(default=())
    """Files beyond the declared ones that it may change by rule."""

    @property
    def approved(self) -> bool:
        return not self.reasons


def check_plan(plan: WorkPlan, against: Planned) -> PlanCheck:
    files = tuple(dict.fromkeys(path.removeprefix("./") for path in plan.files))
    beyond = undeclared(files, against.declared)
    allowed = granted(beyond, against.declared)
    reasons = (
        *_strange(beyond, allowed),
        *_forgotten(files, against),
        *_too_low(plan, files, against),
        *_unsaid(plan, against),
    )
    if reasons:
        return PlanCheck(Rejected(phase=plan.phase, reason=brief("; ".join(reasons))), reasons)
    return PlanCheck(PlanApproved(phase=plan.phase), granted=allowed)


def engine_risk(files: tuple[str, ...], against: Planned) -> Risk:
    """The highest of the files that are planned or were changed already, and of the task."""
    worked = {item.path: item for item in against.worked}
    changes = [
        PathChange(path=one.path, kind=one.kind, added=one.added, removed=one.removed)
        if (one := worked.get(path))
        else PathChange(path=path, kind=ChangeKind.ADDED if path in against.absent else ChangeKind.MODIFIED)
        for path in dict.fromkeys((*files, *worked))
    ]
    return max((against.floor, *(risk_of(change).risk for change in changes)), key=_ORDER.index)


def _strange(beyond: tuple[str, ...], allowed: tuple[str, ...]) -> Iterator[str]:
    for path in beyond:
        if path not in allowed:
            yield f"{path} is not among the files of the task"


def _forgotten(files: tuple[str, ...], against: Planned) -> Iterator[str]:
    for path in undeclared(against.announced, files):
        yield f"it leaves out {path}, which was announced"
    changed = undeclared((item.path for item in against.worked), (*files, *against.announced))
    for path in changed:
        yield f"it leaves out {path}, which has changed already"


def _too_low(plan: WorkPlan, files: tuple[str, ...], against: Planned) -> Iterator[str]:
    least = engine_risk(files, against)
    if _ORDER.index(_MARKS[plan.risk]) < _ORDER.index(least):
        yield f"its risk is {least.mark}, not {plan.risk}"


def _unsaid(plan: WorkPlan, against: Planned) -> Iterator[str]:
    public = [signature.symbol for signature in against.signatures if signature.public]
    if missing := [symbol for symbol in public if not changes_of(plan.interface_impact, symbol)]:
        yield f"the signature of {', '.join(missing)} has changed, and its interface impact does not say so"
    elif says_none(plan.interface_impact) and (spoken := interface_changes(f"{plan.changes}. {against.said}")):
        yield f"its interface impact is `{plan.interface_impact}`, though it says: {spoken[0]}"
