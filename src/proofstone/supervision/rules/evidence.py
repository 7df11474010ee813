"""The items of an impact analysis that the engine verifies in the files, and the interfaces that a change has
changed.

This module says what is to be looked up and judges the facts; `supervision.interfaces` does the lookup. An interface
has changed when its header is different or when it is gone. An added interface breaks nobody.

| item                | holds if                                                                                    |
|---------------------|---------------------------------------------------------------------------------------------|
| RC-03 upstream      | every cited artifact exists, and at least one is cited if the task depends on something     |
| RC-04 files         | each file exists or is new by the plan, and each file that the task names is listed         |
| RC-05 interfaces    | each symbol is defined in its file with the claimed signature                               |

What cannot be looked up (another language, a file that may hold secrets, no time) is unverifiable, never a pass.
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
    """A definition in a file."""

    symbol: str
    """The qualified name, for example `Store.get`."""
    header: str
    """The source text of the definition up to its body."""
    function: bool = True
    public: bool = True
    """Whether other code may use it. True if that is unknown."""
    called: tuple[str, ...] = ()
    """Other names for it in a signature: a constructor may have the name of its class."""

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
    """Return the interfaces that changed. `after` is None if the file was deleted. `impact` is what plans said about
    interfaces before the work.
    """
    statements = tuple(impact)
    return tuple(
        ChangedSignature(
            path=path,
            symbol=definition.symbol,
            public=definition.public,
            planned=any(changes_of(text, definition.symbol) for text in statements),
        )
        for definition in _find_lost(before, after)
    )


def _find_lost(before: Outlined, after: Outlined | None) -> Iterator[Standing]:
    """Yield the definitions that no longer exist with the same name and header. Each name once, public ones first."""
    reported: set[str] = set()
    for lost in sorted(before.standing, key=lambda definition: not definition.public):
        if lost.symbol not in reported and not _is_unchanged(lost, after.standing if after else (), before.language):
            reported.add(lost.symbol)
            yield lost


def _is_unchanged(definition: Standing, candidates: Sequence[Standing], language: str) -> bool:
    return any(
        candidate.symbol == definition.symbol and same(definition.header, candidate.header, language)
        for candidate in candidates
    )


_LOCATION_SUFFIX: Final = re.compile(r"(?:#.*|:\d+(?:[-:]\d+)?|\s+§.*)$")
"""The suffix of a path that points to a place in the file."""
_RECEIVER: Final = re.compile(r"^\(\*?(\w+)\)\.")
_GLOB: Final = frozenset("*?")

Symbol = tuple[str, str]
"""A path, and a name in it."""


@dataclass(frozen=True)
class Wanted:
    """The paths and symbols that are to be looked up."""

    paths: tuple[str, ...]
    symbols: tuple[Symbol, ...]


@dataclass(frozen=True)
class Seen:
    """The definitions of a name in a file."""

    standing: tuple[Standing, ...] = ()
    """Empty if the name is not defined there, unless `unknown` is set."""
    language: str = ""
    unknown: str = ""
    """Why it is unknown."""


@dataclass(frozen=True)
class Facts:
    """The facts that were looked up."""

    paths: Mapping[str, bool | None] = field(default_factory=dict)
    """Whether each path exists. None if unknown."""
    symbols: Mapping[Symbol, Seen] = field(default_factory=dict)


@dataclass(frozen=True)
class Assigned:
    """The files of a task."""

    declared: tuple[str, ...] = ()
    """Paths and patterns that the task may change."""
    upstream: tuple[str, ...] = ()
    """Paths and ids that the task depends on: of the specification, of decisions, of other tasks."""


@dataclass(frozen=True)
class _Doubt:
    detail: str
    verdict: Verdict = Verdict.FAIL


def wanted(analysis: ImpactAnalysis) -> Wanted:
    paths = (
        *(_strip_location(citation.artifact) for citation in analysis.upstream),
        *(_normalize_path(file.path) for file in analysis.files),
        *(_normalize_path(interface.path) for interface in analysis.interfaces),
    )
    symbols = (
        *(
            (_normalize_path(file.path), _normalize_symbol(name))
            for file in analysis.files
            if not file.new
            for name in file.functions
        ),
        *((_normalize_path(interface.path), _normalize_symbol(interface.symbol)) for interface in analysis.interfaces),
    )
    return Wanted(tuple(dict.fromkeys(paths)), tuple(dict.fromkeys(symbols)))


def look_at(analysis: ImpactAnalysis, facts: Facts, task: Assigned) -> tuple[ItemVerdict, ...]:
    """Verify RC-03, RC-04 and RC-05."""
    return (
        _combine(Item.UPSTREAM, _check_upstream(analysis, facts, task)),
        _combine(Item.FILES, _check_files(analysis, facts, task)),
        _combine(Item.INTERFACES, _check_interfaces(analysis, facts)),
    )


def _combine(item: Item, doubts: Iterable[_Doubt]) -> ItemVerdict:
    """Return the worst verdict. Failures are reported before what is unknown."""
    all_doubts = tuple(doubts)
    failing = tuple(doubt for doubt in all_doubts if doubt.verdict is Verdict.FAIL)
    detail = "; ".join(dict.fromkeys(doubt.detail for doubt in failing or all_doubts))
    return ItemVerdict(
        item=item, verdict=(failing or all_doubts)[0].verdict if all_doubts else Verdict.PASS, detail=detail
    )


def _check_upstream(analysis: ImpactAnalysis, facts: Facts, task: Assigned) -> Iterator[_Doubt]:
    if not analysis.upstream and task.upstream:
        yield _Doubt(f"it cites nothing, but its task depends on {', '.join(task.upstream)}")
    for cited in analysis.upstream:
        path = _strip_location(cited.artifact)
        if cited.artifact in task.upstream or path in task.upstream:
            continue
        exists = facts.paths.get(path)
        if exists is False:
            yield _Doubt(f"{cited.artifact} does not exist")
        elif exists is None:
            yield _Doubt(f"it is unknown whether {cited.artifact} exists", Verdict.UNVERIFIABLE)


def _check_files(analysis: ImpactAnalysis, facts: Facts, task: Assigned) -> Iterator[_Doubt]:
    listed = tuple(_normalize_path(file.path) for file in analysis.files)
    for impacted, path in zip(analysis.files, listed, strict=True):
        yield from _check_file(impacted, path, facts, task)
    by_name = (_normalize_path(path) for path in task.declared if not _GLOB & set(path) and not path.endswith("/"))
    for path in by_name:
        # A listed folder covers the files in it.
        if undeclared((path,), listed) and len(undeclared(listed, (path,))) == len(listed):
            yield _Doubt(f"it does not list {path}, which its task declares")


def _check_file(file: ImpactedFile, path: str, facts: Facts, task: Assigned) -> Iterator[_Doubt]:
    exists = facts.paths.get(path)
    if exists is None:
        yield _Doubt(f"it is unknown whether {path} exists", Verdict.UNVERIFIABLE)
    elif exists and file.new:
        yield _Doubt(f"{path} is said to be new, but already exists")
    elif not exists and undeclared((path,), task.declared) and not granted((path,), task.declared):
        yield _Doubt(f"{path} does not exist, and the task does not create it")


def _check_interfaces(analysis: ImpactAnalysis, facts: Facts) -> Iterator[_Doubt]:
    functions = [
        (impacted, _normalize_symbol(name))
        for impacted in analysis.files
        if not impacted.new
        for name in impacted.functions
    ]
    for file, name in functions:
        yield from _check_defined(_normalize_path(file.path), name, facts)
    for interface in analysis.interfaces:
        yield from _check_interface(interface, facts)
    existing = [impacted.path for impacted in analysis.files if not impacted.new]
    if not functions and not analysis.interfaces and existing and not docs_only(existing):
        yield _Doubt("it names no function and no interface, so nothing was looked up", Verdict.UNVERIFIABLE)


def _check_defined(path: str, name: str, facts: Facts) -> Iterator[_Doubt]:
    if facts.paths.get(path) is False:
        return  # reported with the files
    lookup = facts.symbols.get((path, name))
    if lookup is None or lookup.unknown:
        why = lookup.unknown if lookup else "it was not looked up"
        yield _Doubt(f"{name} in {path}: {why}", Verdict.UNVERIFIABLE)
    elif not lookup.standing:
        yield _Doubt(f"{path} defines no {name}")


def _check_interface(claim: Interface, facts: Facts) -> Iterator[_Doubt]:
    path, name = _normalize_path(claim.path), _normalize_symbol(claim.symbol)
    if facts.paths.get(path) is False:
        if not claim.new:
            yield _Doubt(f"{path} does not exist, so it does not define {name}")
        return
    lookup = facts.symbols.get((path, name))
    if claim.new:
        if lookup is not None and lookup.standing:
            yield _Doubt(f"{name} is said to be new, but {path} already defines it")
        elif lookup is None or lookup.unknown:
            yield _Doubt(f"it is unknown whether {path} already defines {name}", Verdict.UNVERIFIABLE)
        return
    doubt = next(_check_defined(path, name, facts), None) or (
        _check_signature(claim, path, name, lookup) if lookup else None
    )
    if doubt is not None:
        yield doubt


def _check_signature(claim: Interface, path: str, name: str, lookup: Seen) -> _Doubt | None:
    """At least one definition of the name must be as claimed: a name may be overloaded."""
    if lookup.language not in STYLES:
        detail = f"signatures in {path} cannot be compared: {lookup.language or 'its language'} is not supported"
        return _Doubt(detail, Verdict.UNVERIFIABLE)
    differences = [
        difference(
            claim.signature,
            definition.header,
            (definition.short, *definition.called),
            lookup.language,
            function=definition.function,
        )
        for definition in lookup.standing
    ]
    if "" in differences:
        return None
    return _Doubt(f"{name} in {path} is not as claimed: {differences[0]}; the file has `{lookup.standing[0].header}`")


def _normalize_path(path: str) -> str:
    return path.strip("`").removeprefix("./")


def _strip_location(artifact: str) -> str:
    return _normalize_path(_LOCATION_SUFFIX.sub("", artifact.strip("`")))


def _normalize_symbol(symbol: str) -> str:
    """Turn `` `Store::get()` `` and `(*Store).Get` into `Store.get` and `Store.Get`."""
    plain = _RECEIVER.sub(r"\1.", symbol.strip("` "))
    return plain.partition("(")[0].replace("::", ".").strip(". ") or symbol
