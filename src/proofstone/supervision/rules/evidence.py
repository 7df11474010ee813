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

from proofstone.agents.models import SignatureChange
from proofstone.check.rules.file_requests import grant_files
from proofstone.common.globs import find_undeclared
from proofstone.common.models import Verdict
from proofstone.common.risk import is_docs_only
from proofstone.supervision.models.understanding import (
    AnalysisItem,
    ArtifactCitation,
    FileImpact,
    ImpactAnalysis,
    InterfaceClaim,
    ItemVerdict,
)
from proofstone.supervision.rules.mentions import mentions_change_of
from proofstone.supervision.rules.signatures import STYLE_BY_LANGUAGE, describe_difference, is_same_interface


@dataclass(frozen=True)
class FileDefinition:
    """A definition in a file."""

    symbol: str
    """The qualified name, for example `Store.get`."""
    header: str
    """The source text of the definition up to its body."""
    is_function: bool = True
    is_public: bool = True
    """Whether other code may use it. True if that is unknown."""
    aliases: tuple[str, ...] = ()
    """Other names for it in a signature: a constructor may have the name of its class."""

    @property
    def short_name(self) -> str:
        return self.symbol.rpartition(".")[2]


@dataclass(frozen=True)
class FileOutline:
    """The definitions of one file."""

    language: str
    definitions: tuple[FileDefinition, ...] = ()


def find_changed_interfaces(
    path: str, before: FileOutline, after: FileOutline | None, impact: Iterable[str] = ()
) -> tuple[SignatureChange, ...]:
    """Return the interfaces that changed. `after` is None if the file was deleted. `impact` is what plans said about
    interfaces before the work.
    """
    statements = tuple(impact)
    return tuple(
        SignatureChange(
            path=path,
            symbol=definition.symbol,
            public=definition.is_public,
            planned=any(mentions_change_of(text, definition.symbol) for text in statements),
        )
        for definition in _find_lost(before, after)
    )


def _find_lost(before: FileOutline, after: FileOutline | None) -> Iterator[FileDefinition]:
    """Yield the definitions that no longer exist with the same name and header. Each name once, public ones first."""
    reported: set[str] = set()
    for lost in sorted(before.definitions, key=lambda definition: not definition.is_public):
        if lost.symbol not in reported and not _is_unchanged(lost, after.definitions if after else (), before.language):
            reported.add(lost.symbol)
            yield lost


def _is_unchanged(definition: FileDefinition, candidates: Sequence[FileDefinition], language: str) -> bool:
    return any(
        candidate.symbol == definition.symbol and is_same_interface(definition.header, candidate.header, language)
        for candidate in candidates
    )


_LOCATION_SUFFIX: Final = re.compile(r"(?:#.*|:\d+(?:[-:]\d+)?|\s+§.*)$")
"""The suffix of a path that points to a place in the file."""
_RECEIVER: Final = re.compile(r"^\(\*?(\w+)\)\.")
_GLOB: Final = frozenset("*?")

SymbolKey = tuple[str, str]
"""A path, and a name in it."""


@dataclass(frozen=True)
class LookupRequest:
    """The paths and symbols that are to be looked up."""

    paths: tuple[str, ...]
    symbols: tuple[SymbolKey, ...]


@dataclass(frozen=True)
class SymbolLookup:
    """The definitions of a name in a file."""

    definitions: tuple[FileDefinition, ...] = ()
    """Empty if the name is not defined there, unless `unknown` is set."""
    language: str = ""
    unknown_reason: str = ""
    """Why it is unknown."""


@dataclass(frozen=True)
class LookupFacts:
    """The facts that were looked up."""

    paths: Mapping[str, bool | None] = field(default_factory=dict)
    """Whether each path exists. None if unknown."""
    symbols: Mapping[SymbolKey, SymbolLookup] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskFileScope:
    """The files of a task."""

    declared: tuple[str, ...] = ()
    """Paths and patterns that the task may change."""
    upstream: tuple[str, ...] = ()
    """Paths and names that the task depends on: of the specification, of decisions, of other tasks."""
    upstream_ids: tuple[str, ...] = ()
    """The ids of the tasks that it depends on."""


@dataclass(frozen=True)
class _Doubt:
    detail: str
    verdict: Verdict = Verdict.FAIL


def list_lookups(analysis: ImpactAnalysis) -> LookupRequest:
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
    return LookupRequest(tuple(dict.fromkeys(paths)), tuple(dict.fromkeys(symbols)))


def verify_looked_up_items(
    analysis: ImpactAnalysis, facts: LookupFacts, task: TaskFileScope
) -> tuple[ItemVerdict, ...]:
    """Verify RC-03, RC-04 and RC-05."""
    return (
        _combine(AnalysisItem.UPSTREAM, _check_upstream(analysis, facts, task)),
        _combine(AnalysisItem.FILES, _check_files(analysis, facts, task)),
        _combine(AnalysisItem.INTERFACES, _check_interfaces(analysis, facts)),
    )


def _combine(item: AnalysisItem, doubts: Iterable[_Doubt]) -> ItemVerdict:
    """Return the worst verdict. Failures are reported before what is unknown."""
    all_doubts = tuple(doubts)
    failing = tuple(doubt for doubt in all_doubts if doubt.verdict is Verdict.FAIL)
    detail = "; ".join(dict.fromkeys(doubt.detail for doubt in failing or all_doubts))
    return ItemVerdict(
        item=item, verdict=(failing or all_doubts)[0].verdict if all_doubts else Verdict.PASS, detail=detail
    )


def _check_upstream(analysis: ImpactAnalysis, facts: LookupFacts, task: TaskFileScope) -> Iterator[_Doubt]:
    if not analysis.upstream and task.upstream:
        yield _Doubt(f"it cites nothing, but its task depends on {', '.join(task.upstream)}")
    for cited in analysis.upstream:
        path = _strip_location(cited.artifact)
        if path in task.upstream or _cites_task(cited, (*task.upstream, *task.upstream_ids)):
            continue
        exists = facts.paths.get(path)
        if exists is False:
            yield _Doubt(f"{cited.artifact} does not exist")
        elif exists is None:
            yield _Doubt(f"it is unknown whether {cited.artifact} exists", Verdict.UNVERIFIABLE)


def _cites_task(cited: ArtifactCitation, names: Iterable[str]) -> bool:
    """Return whether a citation begins with one of the names. A name may contain a colon, at which an agent's line is
    split into the artifact and what it says.
    """
    artifact = " ".join(cited.artifact.strip("` ").split()).casefold()
    said = " ".join(f"{artifact}: {cited.says}".split()).casefold()
    known = [" ".join(name.split()).casefold() for name in names]
    return any(name and (artifact == name or said.startswith(f"{name}:")) for name in known)


def _check_files(analysis: ImpactAnalysis, facts: LookupFacts, task: TaskFileScope) -> Iterator[_Doubt]:
    listed = tuple(_normalize_path(file.path) for file in analysis.files)
    for impacted, path in zip(analysis.files, listed, strict=True):
        yield from _check_file(impacted, path, facts, task)
    by_name = (_normalize_path(path) for path in task.declared if not _GLOB & set(path) and not path.endswith("/"))
    for path in by_name:
        # A listed folder covers the files in it.
        if find_undeclared((path,), listed) and len(find_undeclared(listed, (path,))) == len(listed):
            yield _Doubt(f"it does not list {path}, which its task declares")


def _check_file(file: FileImpact, path: str, facts: LookupFacts, task: TaskFileScope) -> Iterator[_Doubt]:
    exists = facts.paths.get(path)
    if exists is None:
        yield _Doubt(f"it is unknown whether {path} exists", Verdict.UNVERIFIABLE)
    elif exists and file.new:
        yield _Doubt(f"{path} is said to be new, but already exists")
    elif not exists and find_undeclared((path,), task.declared) and not grant_files((path,), task.declared):
        yield _Doubt(f"{path} does not exist, and the task does not create it")


def _check_interfaces(analysis: ImpactAnalysis, facts: LookupFacts) -> Iterator[_Doubt]:
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
    if not functions and not analysis.interfaces and existing and not is_docs_only(existing):
        yield _Doubt("it names no function and no interface, so nothing was looked up", Verdict.UNVERIFIABLE)


def _check_defined(path: str, name: str, facts: LookupFacts) -> Iterator[_Doubt]:
    if facts.paths.get(path) is False:
        return  # reported with the files
    lookup = facts.symbols.get((path, name))
    if lookup is None or lookup.unknown_reason:
        why = lookup.unknown_reason if lookup else "it was not looked up"
        yield _Doubt(f"{name} in {path}: {why}", Verdict.UNVERIFIABLE)
    elif not lookup.definitions:
        yield _Doubt(f"{path} defines no {name}")


def _check_interface(claim: InterfaceClaim, facts: LookupFacts) -> Iterator[_Doubt]:
    path, name = _normalize_path(claim.path), _normalize_symbol(claim.symbol)
    if facts.paths.get(path) is False:
        if not claim.new:
            yield _Doubt(f"{path} does not exist, so it does not define {name}")
        return
    lookup = facts.symbols.get((path, name))
    if claim.new:
        if lookup is not None and lookup.definitions:
            yield _Doubt(f"{name} is said to be new, but {path} already defines it")
        elif lookup is None or lookup.unknown_reason:
            yield _Doubt(f"it is unknown whether {path} already defines {name}", Verdict.UNVERIFIABLE)
        return
    doubt = next(_check_defined(path, name, facts), None) or (
        _check_signature(claim, path, name, lookup) if lookup else None
    )
    if doubt is not None:
        yield doubt


def _check_signature(claim: InterfaceClaim, path: str, name: str, lookup: SymbolLookup) -> _Doubt | None:
    """At least one definition of the name must be as claimed: a name may be overloaded."""
    if lookup.language not in STYLE_BY_LANGUAGE:
        detail = f"signatures in {path} cannot be compared: {lookup.language or 'its language'} is not supported"
        return _Doubt(detail, Verdict.UNVERIFIABLE)
    differences = [
        describe_difference(
            claim.signature,
            definition.header,
            (definition.short_name, *definition.aliases),
            lookup.language,
            function=definition.is_function,
        )
        for definition in lookup.definitions
    ]
    if "" in differences:
        return None
    return _Doubt(
        f"{name} in {path} is not as claimed: {differences[0]}; the file has `{lookup.definitions[0].header}`"
    )


def _normalize_path(path: str) -> str:
    return path.strip("`").removeprefix("./")


def _strip_location(artifact: str) -> str:
    return _normalize_path(_LOCATION_SUFFIX.sub("", artifact.strip("`")))


def _normalize_symbol(symbol: str) -> str:
    """Turn `` `Store::get()` `` and `(*Store).Get` into `Store.get` and `Store.Get`."""
    plain = _RECEIVER.sub(r"\1.", symbol.strip("` "))
    return plain.partition("(")[0].replace("::", ".").strip(". ") or symbol
