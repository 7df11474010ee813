"""Definitions as they stand in files, and which interfaces a change has changed.

An interface has changed when its header is another one, or when it is gone. One that is added breaks nobody.

The items of an impact analysis that the engine looks up itself. It says what is to be looked up, and judges what was
found; who looks is another.

| item                | holds if                                                                                    |
|---------------------|---------------------------------------------------------------------------------------------|
| RC-03 upstream      | all that is cited is there, and something is, if the task rests on something                |
| RC-04 files         | each file is there, or new by the plan; and each that the task declares by name is listed   |
| RC-05 interfaces    | each symbol is defined where it is said to be, with the signature that is claimed           |

What cannot be looked up (another language, a file that may hold secrets, no time) is unverifiable, and never a pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from proofstone.agents.models import ChangedSignature
from proofstone.check.rules.file_requests import granted
from proofstone.common.globs import undeclared
from proofstone.common.models import Verdict
from proofstone.common.risk import docs_only
from proofstone.supervision.models.understanding import ImpactAnalysis, ImpactedFile, Interface, Item, ItemVerdict
from proofstone.supervision.rules.mentions import changes_of
from proofstone.supervision.rules.signatures import STYLES, difference, same


@dataclass(frozen=True)
class Standing:
    """A definition."""

    symbol: str
    """With what it is defined in: `Store.get`."""
    header: str
    """As it stands there, up to its body."""
    function: bool = True
    public: bool = True
    """Others may use it; also where that cannot be told."""
    called: tuple[str, ...] = ()
    """What it may be called in a signature, beside the last part of its name: a constructor by its class."""

    @property
    def short(self) -> str:
        return self.symbol.rpartition(".")[2]


@dataclass(frozen=True)
class Outlined:
    """The definitions of one file."""

    language: str
    standing: tuple[Standing, ...] = ()


def changed_interfaces(
    path: str, before: Outlined, after: Outlined | None, impact: Iterable[str] = ()
) -> tuple[ChangedSignature, ...]:
    """`after` None: the file is gone. `impact`: what plans said about interfaces before the work."""
    said = tuple(impact)
    return tuple(
        ChangedSignature(
            path=path,
            symbol=item.symbol,
            public=item.public,
            planned=any(changes_of(text, item.symbol) for text in said),
        )
        for item in _lost(before, after)
    )


def _lost(before: Outlined, after: Outlined | None) -> Iterator[Standing]:
    """Those of before that nothing of the same name and header stands for now. Each name once, public ones first."""
    told: set[str] = set()
    for item in sorted(before.standing, key=lambda definition: not definition.public):
        if item.symbol not in told and not _stands(item, after.standing if after else (), before.language):
            told.add(item.symbol)
            yield item


def _stands(wanted: Standing, standing: Sequence[Standing], language: str) -> bool:
    return any(item.symbol == wanted.symbol and same(wanted.header, item.header, language) for item in standing)


_PLACE: Final = re.compile(r"(?:#.*|:\d+(?:[-:]\d+)?|\s+§.*)$")
"""What follows a path to say where in it."""
_RECEIVER: Final = re.compile(r"^\(\*?(\w+)\)\.")
_GLOB: Final = frozenset("*?")

Symbol = tuple[str, str]
"""A path, and a name in it."""


@dataclass(frozen=True)
class Wanted:
    """What is to be looked up."""

    paths: tuple[str, ...]
    symbols: tuple[Symbol, ...]


@dataclass(frozen=True)
class Seen:
    """What stands in a file under a name."""

    standing: tuple[Standing, ...] = ()
    """None: it is not defined there, unless that is `unknown`."""
    language: str = ""
    unknown: str = ""
    """Why it cannot be told."""


@dataclass(frozen=True)
class Facts:
    """What was found."""

    paths: Mapping[str, bool | None] = field(default_factory=dict)
    """Whether something is there; None: it cannot be told."""
    symbols: Mapping[Symbol, Seen] = field(default_factory=dict)


@dataclass(frozen=True)
class Assigned:
    """A task, as far as the files speak of it."""

    declared: tuple[str, ...] = ()
    """Paths and patterns that it may change."""
    upstream: tuple[str, ...] = ()
    """Paths and ids that it rests on: of the specification, of decisions, of other tasks."""


@dataclass(frozen=True)
class _Doubt:
    detail: str
    verdict: Verdict = Verdict.FAIL


def wanted(analysis: ImpactAnalysis) -> Wanted:
    paths = (
        *(_cited(item.artifact) for item in analysis.upstream),
        *(_plain(file.path) for file in analysis.files),
        *(_plain(interface.path) for interface in analysis.interfaces),
    )
    symbols = (
        *((_plain(file.path), _bare(name)) for file in analysis.files if not file.new for name in file.functions),
        *((_plain(interface.path), _bare(interface.symbol)) for interface in analysis.interfaces),
    )
    return Wanted(tuple(dict.fromkeys(paths)), tuple(dict.fromkeys(symbols)))


def look_at(analysis: ImpactAnalysis, facts: Facts, task: Assigned) -> tuple[ItemVerdict, ...]:
    """RC-03, RC-04 and RC-05."""
    return (
        _verdict(Item.UPSTREAM, _upstream(analysis, facts, task)),
        _verdict(Item.FILES, _files(analysis, facts, task)),
        _verdict(Item.INTERFACES, _interfaces(analysis, facts)),
    )


def _verdict(item: Item, doubts: Iterable[_Doubt]) -> ItemVerdict:
    """The worst of all that was found; what fails is told before what nobody knows."""
    found = tuple(doubts)
    failing = tuple(entry for entry in found if entry.verdict is Verdict.FAIL)
    detail = "; ".join(dict.fromkeys(entry.detail for entry in failing or found))
    return ItemVerdict(item=item, verdict=(failing or found)[0].verdict if found else Verdict.PASS, detail=detail)


def _upstream(analysis: ImpactAnalysis, facts: Facts, task: Assigned) -> Iterator[_Doubt]:
    if not analysis.upstream and task.upstream:
        yield _Doubt(f"it cites nothing, and its task rests on {', '.join(task.upstream)}")
    for cited in analysis.upstream:
        path = _cited(cited.artifact)
        if cited.artifact in task.upstream or path in task.upstream:
            continue
        there = facts.paths.get(path)
        if there is False:
            yield _Doubt(f"there is no {cited.artifact}")
        elif there is None:
            yield _Doubt(f"whether there is {cited.artifact} cannot be told", Verdict.UNVERIFIABLE)


def _files(analysis: ImpactAnalysis, facts: Facts, task: Assigned) -> Iterator[_Doubt]:
    listed = tuple(_plain(file.path) for file in analysis.files)
    for one, path in zip(analysis.files, listed, strict=True):
        yield from _file(one, path, facts, task)
    by_name = (_plain(path) for path in task.declared if not _GLOB & set(path) and not path.endswith("/"))
    for path in by_name:
        # A declared folder covers what is in it.
        if undeclared((path,), listed) and len(undeclared(listed, (path,))) == len(listed):
            yield _Doubt(f"it does not list {path}, which its task declares")


def _file(one: ImpactedFile, path: str, facts: Facts, task: Assigned) -> Iterator[_Doubt]:
    there = facts.paths.get(path)
    if there is None:
        yield _Doubt(f"whether there is {path} cannot be told", Verdict.UNVERIFIABLE)
    elif there and one.new:
        yield _Doubt(f"{path} is said to be new, and is there already")
    elif not there and undeclared((path,), task.declared) and not granted((path,), task.declared):
        yield _Doubt(f"there is no {path}, and the task does not make it")


def _interfaces(analysis: ImpactAnalysis, facts: Facts) -> Iterator[_Doubt]:
    functions = [(item, _bare(name)) for item in analysis.files if not item.new for name in item.functions]
    for file, name in functions:
        yield from _defined(_plain(file.path), name, facts)
    for interface in analysis.interfaces:
        yield from _interface(interface, facts)
    old = [item.path for item in analysis.files if not item.new]
    if not functions and not analysis.interfaces and old and not docs_only(old):
        yield _Doubt("it names no function and no interface, so that nothing was looked up", Verdict.UNVERIFIABLE)


def _defined(path: str, name: str, facts: Facts) -> Iterator[_Doubt]:
    if facts.paths.get(path) is False:
        return  # that is said with the files
    seen = facts.symbols.get((path, name))
    if seen is None or seen.unknown:
        why = seen.unknown if seen else "it was not looked up"
        yield _Doubt(f"{name} in {path}: {why}", Verdict.UNVERIFIABLE)
    elif not seen.standing:
        yield _Doubt(f"{path} defines no {name}")


def _interface(claim: Interface, facts: Facts) -> Iterator[_Doubt]:
    path, name = _plain(claim.path), _bare(claim.symbol)
    if facts.paths.get(path) is False:
        if not claim.new:
            yield _Doubt(f"there is no {path}, and so no {name} in it")
        return
    seen = facts.symbols.get((path, name))
    if claim.new:
        if seen is not None and seen.standing:
            yield _Doubt(f"{name} is said to be new, and {path} defines it already")
        elif seen is None or seen.unknown:
            yield _Doubt(f"whether {path} defines {name} already cannot be told", Verdict.UNVERIFIABLE)
        return
    doubt = next(_defined(path, name, facts), None) or (_signature(claim, path, name, seen) if seen else None)
    if doubt is not None:
        yield doubt


def _signature(claim: Interface, path: str, name: str, seen: Seen) -> _Doubt | None:
    """One of those that stand there must be as claimed: a name may be overloaded."""
    if seen.language not in STYLES:
        detail = f"signatures in {path} cannot be compared: {seen.language or 'its language'} is not known for that"
        return _Doubt(detail, Verdict.UNVERIFIABLE)
    differences = [
        difference(claim.signature, item.header, (item.short, *item.called), seen.language, function=item.function)
        for item in seen.standing
    ]
    if "" in differences:
        return None
    return _Doubt(f"{name} in {path} is not as claimed: {differences[0]}; there stands `{seen.standing[0].header}`")


def _plain(path: str) -> str:
    return path.strip("`").removeprefix("./")


def _cited(artifact: str) -> str:
    return _plain(_PLACE.sub("", artifact.strip("`")))


def _bare(symbol: str) -> str:
    """`` `Store::get()` `` and `(*Store).Get` as `Store.get` and `Store.Get`."""
    plain = _RECEIVER.sub(r"\1.", symbol.strip("` "))
    return plain.partition("(")[0].replace("::", ".").strip(". ") or symbol
