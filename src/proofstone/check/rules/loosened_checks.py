"""What CI, hooks and scripts demanded before a change and do not demand after it.

Every file that runs checks is read on both sides into the same terms: which programs run, what they are limited to,
whether their failure has an effect, and which thresholds must be reached. All changed files are compared together, so
what has only moved from one to another is no loss. A change that adds or strengthens raises nothing.

| found                                                                     | finding                        |
|---------------------------------------------------------------------------|--------------------------------|
| a program runs nowhere any more, and no other of its kind runs instead     | a person has to accept it      |
| it still runs, but its failure has no effect: `|| true`, `continue-on-error`, `if: false`, only by hand | likewise |
| a threshold of coverage is lower, or gone                                  | likewise                       |
| a hook or a denied permission of a coding agent is gone, or hooks are off  | likewise                       |
| another program of its kind runs instead                                   | lowers the confidence          |
| it leaves out more than before, or is limited to fewer paths               | lowers the confidence          |
| CI no longer runs for a pull request or a push                             | lowers the confidence          |
| a file cannot be read any more                                             | lowers the confidence          |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.check.rules.check_commands import CheckCommand
from proofstone.check.rules.demands import Demands, find_reader, read_demands


@dataclass(frozen=True)
class Loosening:
    """Something that is demanded no longer, or less strictly."""

    path: str
    detail: str
    needs_decision: bool


@dataclass(frozen=True)
class _Member:
    """A changed file that runs checks."""

    path: str
    group: str
    old: Demands
    new: Demands


_COUNTS_FOR: Final[Mapping[str, tuple[str, ...]]] = {
    "ci": ("ci",),
    "hooks": ("ci", "hooks"),
    "scripts": ("ci", "hooks", "scripts"),
    "agents": ("agents",),
}
"""In which groups of files a program may run now that ran in a file of the group: CI demands the most."""


def find_loosened_checks(
    files: Iterable[tuple[str, bytes | None, bytes | None]], unchanged: Mapping[str, bytes]
) -> list[Loosening]:
    """Return what these changed files (path, old and new content) demand no longer. `unchanged` are the other files of
    the tree that run checks: what one of them demands is not lost."""
    members: list[_Member] = []
    found: list[Loosening] = []
    for path, old, new in files:
        kind = find_reader(path)
        if kind is None or old == new:
            continue
        was, is_now = read_demands(old, kind.read), read_demands(new, kind.read)
        if was is not None and is_now is None:
            found.append(Loosening(path, "cannot be read any more, so what it demands is unknown", False))
        elif was is not None and is_now is not None:
            members.append(_Member(path, kind.group, was, is_now))
    if not members:
        return found
    kept: dict[str, list[Demands]] = {}
    for path, content in unchanged.items():
        kind = find_reader(path)
        demands = read_demands(content, kind.read) if kind is not None else None
        if kind is not None and demands is not None:
            kept.setdefault(kind.group, []).append(demands)
    for group, counting in _COUNTS_FOR.items():
        own = [member for member in members if member.group == group]
        after = [member.new for member in members if member.group in counting]
        before = [member.old for member in members if member.group in counting]
        others = [demands for name in counting for demands in kept.get(name, ())]
        found += _compare_commands(own, [*before, *others], [*after, *others])
        found += _compare_others(own, [*after, *others])
    return found


def _compare_commands(
    own: Sequence[_Member], before: Sequence[Demands], after: Sequence[Demands]
) -> Iterator[Loosening]:
    """Yield what the files of a group do not run any more. `before` and `after` are all demands that count for it."""
    earlier = [command for demands in before for command in demands.commands]
    later = [command for demands in after for command in demands.commands]
    strict = {command.program for command in later if command.has_effect}
    known = {command.program for command in earlier}
    added = [command for command in later if command.has_effect and command.program not in known]
    seen: set[str] = set()
    for path, command in ((member.path, command) for member in own for command in member.old.commands):
        program = command.program
        if not command.has_effect or not command.is_check or program in seen:
            continue
        seen.add(program)
        if program in strict:
            yield from _compare_reach(path, program, earlier, later)
        elif any(other.program == program for other in later):
            yield Loosening(path, f"{program} still runs, but nothing fails any more if it fails", True)
        elif substitutes := [other.program for other in added if not other.is_check or other.family == command.family]:
            yield Loosening(path, f"{substitutes[0]} runs instead of {program}", False)
        else:
            yield Loosening(path, f"{program} does not run any more", True)


def _compare_reach(
    path: str, program: str, before: Sequence[CheckCommand], after: Sequence[CheckCommand]
) -> Iterator[Loosening]:
    """Compare what a program examines, where its failure has an effect."""
    old = [command for command in before if command.program == program and command.has_effect]
    new = [command for command in after if command.program == program and command.has_effect]
    if any(not c.is_partial for c in old) and all(c.is_partial for c in new):
        yield Loosening(path, f"{program} leaves something out that it did not leave out before", False)
    old_paths, new_paths = _widest(old), _widest(new)
    if new_paths and (not old_paths or any(_is_below(new_path, old_paths) for new_path in new_paths)):
        if not old_paths or not old_paths <= new_paths:
            shown = ", ".join(sorted(new_paths))
            yield Loosening(
                path, f"{program} is limited to {shown}, and was to {', '.join(sorted(old_paths)) or 'nothing'}", False
            )
    elif new_paths and new_paths < old_paths:
        yield Loosening(path, f"{program} does not examine {', '.join(sorted(old_paths - new_paths))} any more", False)


def _widest(commands: Sequence[CheckCommand]) -> frozenset[str]:
    """Return the paths that the commands examine together; empty if one of them has no limit."""
    if not commands or any(not command.paths for command in commands):
        return frozenset()
    return frozenset().union(*(command.paths for command in commands))


def _is_below(path: str, folders: frozenset[str]) -> bool:
    return any(path != folder and (folder == "." or path.startswith(f"{folder}/")) for folder in folders)


def _compare_others(own: Sequence[_Member], after: Sequence[Demands]) -> Iterator[Loosening]:
    """Yield thresholds, events, and rules for coding agents that are lower or gone."""
    thresholds: dict[str, float] = {}
    for demands in after:
        for name, value in demands.thresholds.items():
            thresholds[name] = max(value, thresholds.get(name, 0.0))
    rules = {rule for demands in after for rule in demands.rules}
    events = {event for demands in after for event in demands.events}
    for member in own:
        for name, value in member.old.thresholds.items():
            now = thresholds.get(name)
            if now is None or now < value:
                said = "is gone" if now is None else f"is {now:g} now"
                yield Loosening(member.path, f"the threshold {name} was {value:g} and {said}", True)
        for rule in sorted(member.old.rules - rules):
            yield Loosening(member.path, f"{rule} is gone", True)
        for event in sorted(member.old.events - events):
            yield Loosening(member.path, f"no checks run for the event {event} any more", False)
