"""Decide whether an edited test checks less than it did before.

Each version of a test is a list of assertions in a form that all languages share (`TestAssertion`). Local variables are
replaced by what they hold, so that a renamed variable or an extracted expression changes nothing. Then, in this order:

1. An assertion that is still there must run as often: no new condition around it, no handler that swallows its failure,
   no fewer cases.
2. An assertion about the same value must be at least as strict; `WEAKER_FORMS` lists what is not.
3. An assertion about a value is weaker if only a property of the value is left: its length, its type, a part.
4. An assertion that is gone is a removal if nothing took its place: no new assertion in this test, no added assertion
   with this content elsewhere in the tests, no call of a helper that asserts.

The rules prefer silence where they cannot tell: a rewritten test whose assertions cannot be paired is no finding.
`docs/decisions` has the measurement on the history of published packages.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from proofstone.check.rules.outcome import EvidenceLayer
from proofstone.common.models import Finding, Severity


class AssertionForm(StrEnum):
    """What an assertion demands of its subject."""

    EQUAL = "equal one value"
    APPROXIMATE = "be close to a value"
    ONE_OF = "be one of several values"
    PARTIAL = "contain or match a part"
    BOUND = "be above or below a bound"
    INSTANCE = "have a type"
    NOT_EQUAL = "differ from a value"
    ITSELF = "equal itself"
    PRESENT = "be something other than None"
    TRUTHY = "be true"
    FALSY = "be false"
    EVERY = "hold for every element"
    SOME = "hold for some element or condition"
    RAISES = "raise"
    CALLED_WITH = "be called with these arguments"
    CALLED = "be called"
    OTHER = "pass a helper's checks"


@dataclass(frozen=True)
class TestAssertion:
    """One assertion of one version of a test. All texts but `source` are normalized."""

    __test__ = False

    form: AssertionForm
    subject: str
    """The value under test."""
    text: str
    """The whole assertion. Two assertions with the same text are the same."""
    line: int
    source: str
    """The assertion as it is written."""
    expected: tuple[str, ...] = ()
    """The expected value, all accepted values, the types, or the part that is looked for."""
    tolerance: float | None = None
    """How far an approximate value may be off; None if that is not a literal."""
    bound: tuple[str, float] | None = None
    """`<` or `>`, and the number; a bound that is included counts as slightly wider."""
    has_wildcard: bool = False
    """Whether the expected value contains a part that equals everything."""
    guards: tuple[str, ...] = ()
    """Conditions around the assertion, and handlers that swallow its failure."""
    cases: tuple[str, ...] | None = None
    """The elements of the literal that a loop around the assertion runs over."""
    roots: frozenset[str] = frozenset()
    """The names of the functions that the subject calls."""
    parts: frozenset[str] = frozenset()
    """The expressions inside the subject."""
    is_local: bool = False
    """Whether the subject is a variable whose value is not known: of a loop, or assigned several times."""


@dataclass(frozen=True)
class TestBody:
    """One version of a test function, or of a helper beside the tests."""

    __test__ = False

    name: str
    line: int
    assertions: tuple[TestAssertion, ...]
    calls: frozenset[str] = frozenset()
    """The names of all functions that it calls, other than assertions."""
    cases: tuple[str, ...] = ()
    """The parameter sets that the runner calls it with."""
    setup: str = ""
    """What it does besides asserting. Where that changed, a variable of the same name may hold another value."""


@dataclass(frozen=True)
class TestSource:
    """The source of a test function, and how its assertions are read. Only functions that changed are read."""

    __test__ = False

    text: str
    read: Callable[[], TestBody]


class WeakeningKind(StrEnum):
    RELAXED = "relaxed"
    REMOVED = "removed"
    GUARDED = "guarded"
    FEWER_CASES = "fewer cases"


@dataclass(frozen=True)
class Weakening:
    """One way in which a test checks less than before."""

    kind: WeakeningKind
    reason: str
    line: int
    """In the new version of the file."""
    before: str
    after: str = ""


@dataclass(frozen=True)
class AddedChecks:
    """What the change adds to any test. An assertion that moved there was not removed."""

    assertions: Counter[str] = field(default_factory=Counter)
    roots: Counter[tuple[AssertionForm, str]] = field(default_factory=Counter)
    """How many assertions of a form were added in new tests, by a function that their subject calls."""
    cases: frozenset[str] = frozenset()
    helpers: Mapping[str, bool] = field(default_factory=dict)
    """The functions of the changed test files, and whether they assert anything."""


_EXISTENCE: Final = frozenset(
    {AssertionForm.PRESENT, AssertionForm.TRUTHY, AssertionForm.NOT_EQUAL, AssertionForm.ITSELF}
)
WEAKER_FORMS: Final[Mapping[AssertionForm, frozenset[AssertionForm]]] = {
    AssertionForm.EQUAL: _EXISTENCE
    | {AssertionForm.ONE_OF, AssertionForm.PARTIAL, AssertionForm.BOUND, AssertionForm.INSTANCE, AssertionForm.SOME},
    AssertionForm.APPROXIMATE: _EXISTENCE | {AssertionForm.BOUND, AssertionForm.INSTANCE},
    AssertionForm.ONE_OF: _EXISTENCE | {AssertionForm.PARTIAL, AssertionForm.BOUND, AssertionForm.INSTANCE},
    AssertionForm.PARTIAL: _EXISTENCE | {AssertionForm.INSTANCE},
    AssertionForm.BOUND: _EXISTENCE | {AssertionForm.INSTANCE},
    AssertionForm.INSTANCE: frozenset({AssertionForm.PRESENT, AssertionForm.TRUTHY}),
    AssertionForm.TRUTHY: frozenset({AssertionForm.PRESENT}),
    AssertionForm.EVERY: frozenset({AssertionForm.SOME}),
    AssertionForm.CALLED_WITH: frozenset({AssertionForm.CALLED}),
}
"""By form, the forms that say less about the same value."""

NARROWING_FUNCTIONS: Final = ("len", "type", "bool", "set", "frozenset", "sorted", "id", "any")
"""Functions whose result says less than the value: two different values can have the same length."""

_LARGEST_ROUNDING: Final = 0.01
"""An exact comparison may become an approximate one up to this tolerance: that is how floats are compared."""
_PLAIN_STRING: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_BOOLEANS: Final = frozenset({"True", "False", "true", "false"})
_NO_MESSAGE: Final = "it no longer compares the message of the exception"
_GENERAL_EXCEPTIONS: Final = frozenset({"Exception", "BaseException", "Error"})


def find_weakenings(old: TestBody, new: TestBody, added: AddedChecks) -> list[Weakening]:
    """Return how the new version of a test checks less than the old one."""
    pairs, old_left, changed = _pair_by_text(old.assertions, new.assertions)
    weakenings = [weakening for pair in pairs for weakening in _compare_same(*pair, added)]
    if old.setup != new.setup:
        old_left, changed = _drop_locals(old_left, changed)
    relaxed, old_left = _pair_by_subject(old_left, changed)
    has_more = len(changed) > len(relaxed)
    # The message of an exception may be compared by an assertion of its own now.
    weakenings += [weakening for weakening in relaxed if not (has_more and weakening.reason == _NO_MESSAGE)]
    if not has_more:  # nothing else was added that may check what is gone
        weakenings += _find_dropped_cases(old, new, added)
        if not _has_replacement(old, new, added):
            kept = [assertion for _, assertion in pairs if assertion.form is AssertionForm.EQUAL]
            weakenings += _find_removals([left for left in old_left if not _is_implied(left, kept)], new, added)
    return sorted(weakenings, key=lambda weakening: weakening.line)


def _pair_by_text(
    old: Sequence[TestAssertion], new: Sequence[TestAssertion]
) -> tuple[list[tuple[TestAssertion, TestAssertion]], list[TestAssertion], list[TestAssertion]]:
    """Pair the assertions that are still there, those under the same conditions first."""
    pairs: list[tuple[TestAssertion, TestAssertion]] = []
    old_left, new_left = list(old), list(new)
    matches: tuple[Callable[[TestAssertion, TestAssertion], bool], ...] = (
        lambda a, b: a.text == b.text and a.guards == b.guards,
        lambda a, b: a.text == b.text and len(b.guards) <= len(a.guards),
        lambda a, b: a.text == b.text,
    )
    for is_match in matches:
        for assertion in list(old_left):
            partner = next((candidate for candidate in new_left if is_match(assertion, candidate)), None)
            if partner is not None:
                pairs.append((assertion, partner))
                old_left.remove(assertion)
                new_left.remove(partner)
    return pairs, old_left, new_left


def _drop_locals(
    old: Sequence[TestAssertion], new: Sequence[TestAssertion]
) -> tuple[list[TestAssertion], list[TestAssertion]]:
    """Leave out the assertions about variables that both versions use: they may hold other values now."""
    shared = {a.subject for a in old if a.is_local} & {b.subject for b in new if b.is_local}
    kept = ([a for a in assertions if not (a.is_local and a.subject in shared)] for assertions in (old, new))
    return next(kept), next(kept)


def _compare_same(old: TestAssertion, new: TestAssertion, added: AddedChecks) -> Iterable[Weakening]:
    """Compare the surroundings of an assertion that is still there."""
    new_guards = [guard for guard in new.guards if guard not in old.guards]
    if new_guards and len(new.guards) > len(old.guards):
        yield _weakening(WeakeningKind.GUARDED, f"it only counts {new_guards[0]}", old, new)
    if old.cases and new.cases is not None and (lost := _find_lost_cases(old.cases, new.cases, added)):
        yield _weakening(WeakeningKind.FEWER_CASES, f"it no longer runs for {_list_cases(lost)}", old, new)


def _find_lost_cases(old: Sequence[str], new: Sequence[str], added: AddedChecks) -> list[str]:
    """Return the cases that are gone, if cases were only removed. Where others were added, the list was rewritten."""
    remaining = Counter(new) - Counter(old)
    lost = list((Counter(old) - Counter(new)).elements())
    is_repeated = all(case in new for case in lost)
    return [] if remaining or is_repeated or any(case in added.cases for case in lost) else lost


def _list_cases(cases: Sequence[str]) -> str:
    more = f" and {len(cases) - 2} more" if len(cases) > 2 else ""
    return ", ".join(_shorten(case) for case in cases[:2]) + more


def _pair_by_subject(
    old: Sequence[TestAssertion], new: Sequence[TestAssertion]
) -> tuple[list[Weakening], list[TestAssertion]]:
    """Pair the assertions about the same value, or about a property of it, and return what became weaker."""
    weakenings: list[Weakening] = []
    old_left, new_left = list(old), list(new)
    used: set[int] = set()
    for assertion in old:
        same = [
            candidate for candidate in new_left if _is_about_same(assertion, candidate) and id(candidate) not in used
        ]
        kept = next((candidate for candidate in same if not explain_weaker(assertion, candidate)), None)
        partner = kept or next(iter(same), None)
        if partner is None:
            continue
        old_left.remove(assertion)
        used.add(id(partner))
        if kept is None:
            weakenings.append(_weakening(WeakeningKind.RELAXED, explain_weaker(assertion, partner), assertion, partner))
    new_left = [candidate for candidate in new_left if id(candidate) not in used]
    for assertion in list(old_left):
        properties = [candidate for candidate in new_left if _is_property(assertion, candidate)]
        if not properties:
            continue
        old_left.remove(assertion)
        if len(properties) == 1 and (reason := _explain_property(assertion, properties[0])):
            new_left.remove(properties[0])
            weakenings.append(_weakening(WeakeningKind.RELAXED, reason, assertion, properties[0]))
    return weakenings, old_left


def _is_about_same(old: TestAssertion, new: TestAssertion) -> bool:
    return bool(old.subject) and old.subject == new.subject


def _is_property(old: TestAssertion, new: TestAssertion) -> bool:
    """Return whether the new assertion is about a property of the value that the old one was about."""
    return old.form is AssertionForm.EQUAL and old.subject in new.parts and bool(old.roots or "(" in old.subject)


def _explain_property(old: TestAssertion, new: TestAssertion) -> str:
    """Return why an assertion about a property of the value says less; empty if it may say as much."""
    if new.form is AssertionForm.EQUAL:
        function = new.subject.partition("(")[0]
        is_narrowing = function in NARROWING_FUNCTIONS and new.subject == f"{function}({old.subject})"
        return f"only its {function}() is compared" if is_narrowing else ""
    if new.form in WEAKER_FORMS[AssertionForm.EQUAL] and not (_BOOLEANS & set(old.expected)):
        return "the value is no longer compared as a whole"
    return ""


def explain_weaker(old: TestAssertion, new: TestAssertion) -> str:
    """Return why an assertion about the same value is weaker; empty if it is not."""
    if new.form in WEAKER_FORMS.get(old.form, ()):
        if new.form is AssertionForm.TRUTHY and set(old.expected) & _BOOLEANS:
            return ""
        if new.form is AssertionForm.ONE_OF and not set(old.expected) <= set(new.expected):
            return ""  # other values: the test was rewritten for another behaviour
        return f"the value had to {old.form}, and now only has to {new.form}"
    if old.form is AssertionForm.EQUAL and new.form is AssertionForm.APPROXIMATE:
        is_wide = new.tolerance is not None and new.tolerance > _LARGEST_ROUNDING
        return f"the value may now be off by {new.tolerance:g}" if is_wide else ""
    compare = _SAME_FORM.get(old.form) if old.form is new.form else None
    return compare(old, new) if compare else ""


def _compare_accepted(old: TestAssertion, new: TestAssertion) -> str:
    return "it accepts more values" if set(old.expected) < set(new.expected) else ""


def _compare_wildcards(old: TestAssertion, new: TestAssertion) -> str:
    return "a part of the expected value now equals anything" if new.has_wildcard and not old.has_wildcard else ""


def _compare_tolerances(old: TestAssertion, new: TestAssertion) -> str:
    if old.tolerance is None or new.tolerance is None or new.tolerance <= old.tolerance:
        return ""
    return f"the value may be off by {new.tolerance:g} instead of {old.tolerance:g}"


def _compare_bounds(old: TestAssertion, new: TestAssertion) -> str:
    if old.bound is None or new.bound is None or old.bound[0] != new.bound[0]:
        return ""
    direction, number = new.bound
    is_wider = number > old.bound[1] if direction == "<" else number < old.bound[1]
    return "the bound is wider" if is_wider else ""


def _compare_parts(old: TestAssertion, new: TestAssertion) -> str:
    """Compare the texts that are looked for: `"not found" in text` → `"found" in text`."""
    texts = (*old.expected[:1], *new.expected[:1])
    if len(texts) < 2 or not all(map(_PLAIN_STRING.fullmatch, texts)):
        return ""
    before, after = (text[1:-1] for text in texts)
    return "it looks for a shorter part" if after != before and after in before else ""


def _compare_exceptions(old: TestAssertion, new: TestAssertion) -> str:
    """Compare the expected exceptions: the first elements are the types, `match=…` is the pattern of the message."""
    before, after = ({name for name in a.expected if not name.startswith("match=")} for a in (old, new))
    patterns = [any(name.startswith("match=") for name in a.expected) for a in (old, new)]
    if before and before < after:  # no type at all stands for every exception
        return "it accepts more types of exceptions"
    if before != after and _is_wider_type(before, after):
        return f"it accepts any {', '.join(sorted(after)) or 'exception'}"
    return _NO_MESSAGE if patterns == [True, False] and before == after else ""


def _is_wider_type(before: Collection[str], after: Collection[str]) -> bool:
    if not before:
        return False
    return not after or bool(_GENERAL_EXCEPTIONS & set(after) and not _GENERAL_EXCEPTIONS & set(before))


_SAME_FORM: Final[Mapping[AssertionForm, Callable[[TestAssertion, TestAssertion], str]]] = {
    AssertionForm.EQUAL: _compare_wildcards,
    AssertionForm.ONE_OF: _compare_accepted,
    AssertionForm.INSTANCE: _compare_accepted,
    AssertionForm.APPROXIMATE: _compare_tolerances,
    AssertionForm.BOUND: _compare_bounds,
    AssertionForm.PARTIAL: _compare_parts,
    AssertionForm.RAISES: _compare_exceptions,
}
"""How two assertions of the same form are compared."""


def _find_dropped_cases(old: TestBody, new: TestBody, added: AddedChecks) -> Iterable[Weakening]:
    """Return the parameter sets that the test is no longer called with."""
    if old.cases and new.cases and (lost := _find_lost_cases(old.cases, new.cases, added)):
        reason = f"it no longer runs for {_list_cases(lost)}"
        yield Weakening(WeakeningKind.FEWER_CASES, reason, new.line, "\n".join(map(_shorten, lost[:_MAX_LINES])))


def _has_replacement(old: TestBody, new: TestBody, added: AddedChecks) -> bool:
    """Return whether something in the new version may check what a missing assertion checked."""
    if len(new.cases) > len(old.cases):
        return True
    return any(added.helpers.get(name, True) for name in new.calls - old.calls)


def _find_removals(left: Sequence[TestAssertion], new: TestBody, added: AddedChecks) -> Iterable[Weakening]:
    """Return the assertions that are gone and are nowhere else in the tests."""
    pool, roots = Counter(added.assertions), Counter(added.roots)
    for assertion in left:
        if pool[assertion.text]:
            pool[assertion.text] -= 1
            continue
        equivalent = next((key for key in roots if roots[key] and _may_replace(*key, assertion)), None)
        if equivalent is not None:
            roots[equivalent] -= 1
            continue
        yield Weakening(WeakeningKind.REMOVED, "the assertion is gone", new.line, assertion.source)


def _may_replace(form: AssertionForm, root: str, assertion: TestAssertion) -> bool:
    """Return whether an assertion in a new test, about the same function, may say what a missing assertion said."""
    return root in assertion.roots and form not in WEAKER_FORMS.get(assertion.form, ())


def _is_implied(assertion: TestAssertion, kept: Sequence[TestAssertion]) -> bool:
    """Return whether a value that is still compared as a whole decides what the missing assertion was about."""
    if assertion.form is AssertionForm.ITSELF:
        return True
    about = {assertion.subject, *assertion.parts}
    is_whole = assertion.form is AssertionForm.EQUAL
    return any(other.subject in about or (not is_whole and assertion.subject in other.parts) for other in kept)


def _weakening(kind: WeakeningKind, reason: str, old: TestAssertion, new: TestAssertion) -> Weakening:
    return Weakening(kind, reason, new.line, old.source, new.source)


_MAX_LINES: Final = 6
_MAX_TEXT: Final = 100


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_TEXT else f"{line[: _MAX_TEXT - 1]}…"


def build_weakened_finding(path: str, test: str, weakenings: Sequence[Weakening], check: str) -> Finding:
    """Return the finding about one test, with what it said before and says now."""
    first, *others = weakenings
    more = f" (and {len(others)} more like this in the test)" if others else ""
    return Finding(
        layer=EvidenceLayer.PROTECTED_FILES,
        rule="weakened-test",
        severity=Severity.MAJOR,
        path=path,
        line=first.line,
        detail=f"{test}: checks less than before, although its old version still passes: {first.reason}{more}",
        fix="restore what the test checked, or make it stricter",
        check=check,
        before=_join_lines(weakening.before for weakening in weakenings),
        after=_join_lines(weakening.after for weakening in weakenings),
    )


def _join_lines(texts: Iterable[str]) -> str:
    lines = [line.strip() for text in dict.fromkeys(texts) for line in text.splitlines() if line.strip()]
    more = [f"… and {len(lines) - _MAX_LINES} more lines"] if len(lines) > _MAX_LINES else []
    return "\n".join((*lines[:_MAX_LINES], *more))
