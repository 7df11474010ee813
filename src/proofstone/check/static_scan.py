"""The static scan of a change (L6), and notes about ignored modules.

The added lines of each changed file are compared with the rules of `check.rules.scan`, and with the inputs and answers
of the tests (`check.rules.special_casing`).

An ignored module is a generated file such as `_version.py` that tests import and that exists only in the work tree. It
is outside the tree, so no check sees it, and the user must name it in the settings.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from proofstone.check.inspection import ChangedFile
from proofstone.check.observation import ObservedCall
from proofstone.check.rules.call_answers import list_examples
from proofstone.check.rules.demands import find_reader
from proofstone.check.rules.disguised_names import find_disguised_names
from proofstone.check.rules.loaded_code import find_unseen_code
from proofstone.check.rules.loosened_checks import find_loosened_checks
from proofstone.check.rules.opaque_files import find_opaque_file
from proofstone.check.rules.outcome import EvidenceLayer
from proofstone.check.rules.runner_plugins import drop_imported, find_runner_plugins, is_runner_plugin
from proofstone.check.rules.scan import scan_lines
from proofstone.check.rules.scan_paths import scan_path
from proofstone.check.rules.scan_rule import ScanHit, ScanLine
from proofstone.check.rules.special_answers import SpecialAnswer, find_expected_values, find_special_answers
from proofstone.check.rules.special_casing import SpecialCase, find_examples, find_special_cases
from proofstone.check.variants.views import plain_lines, split_views
from proofstone.common.models import Finding, Severity
from proofstone.common.risk import is_test_path
from proofstone.sources.syntax import detect_language

SPECIAL_CASING: Final = "special-casing"
_MAX_MINOR = 20
"""Maximum number of minor findings. A generated file could give thousands."""


def scan_changes(files: Sequence[ChangedFile]) -> list[Finding]:
    """Return the findings of the static scan."""
    removed = {test: _find_removed_lines(files, tests=test) for test in (False, True)}
    texts = [(file.path, (file.new or b"").decode("utf-8", "replace")) for file in files]
    plugins = drop_imported(find_runner_plugins(texts), texts)
    findings = [
        _build_finding(file.path, _downgrade_moved(hit, file, removed[is_test_path(file.path)]))
        for file in files
        for hit in _scan_file(file, plugins)
    ]
    # First, because the number of minor findings is limited, and these lower the confidence.
    findings = [*(finding for file in files for finding in _find_unreadable(file)), *findings]
    serious = [finding for finding in findings if finding.severity is not Severity.MINOR]
    return serious + [finding for finding in findings if finding.severity is Severity.MINOR][:_MAX_MINOR]


def _find_unreadable(file: ChangedFile) -> Iterator[Finding]:
    """Yield what a reader of the change cannot read, or reads as something else."""
    if file.new is None:
        return
    opaque = find_opaque_file(file.path, file.old, file.new)
    if opaque is not None:
        fix = "keep it out of the repository, or add what it is made from; a person can accept it"
        yield _build_reading_finding(
            file, "opaque-file", 0, opaque.describe(len(file.new)), fix, strict=opaque.needs_decision
        )
        return
    language = detect_language(file.path, file.new)
    if language is None or not file.added_lines:
        return
    lines, added = _split_views(file.path, file.new), {number for number, _ in file.added_lines}
    for name in find_disguised_names(lines, added):
        fix = "write it with the letters that it seems to have"
        yield _build_reading_finding(file, "disguised-name", name.line, name.detail, fix)
    for unseen in find_unseen_code(lines, added, is_test=is_test_path(file.path)):
        fix = "write the code out, or import it; a person can accept it"
        yield _build_reading_finding(
            file,
            "encoded-code" if unseen.is_encoded else "loaded-code",
            unseen.line,
            unseen.detail,
            fix,
            strict=unseen.needs_decision,
        )


def _build_reading_finding(
    file: ChangedFile, rule: str, line: int, detail: str, fix: str, *, strict: bool = False
) -> Finding:
    return _build_finding(file.path, ScanHit(rule, strict, line, detail, fix))


def find_loosened(
    files: Sequence[ChangedFile], paths: Iterable[str], read: Callable[[Iterable[str]], Mapping[str, bytes]]
) -> list[Finding]:
    """Return a finding for everything that CI, hooks and scripts demanded before the change and do not demand now.
    `paths` are the files of the tree under check, and `read` reads some of them."""
    changed = [file for file in files if find_reader(file.path) is not None]
    if not changed:
        return []
    known = {file.path for file in files}
    unchanged = read([path for path in paths if path not in known and find_reader(path) is not None][:_MAX_TEST_FILES])
    loosened = find_loosened_checks(((file.path, file.old, file.new) for file in changed), unchanged)
    return [
        Finding(
            layer=EvidenceLayer.PROTECTED_FILES,
            rule="loosened-check",
            severity=Severity.MAJOR if loosening.needs_decision else Severity.MINOR,
            path=loosening.path,
            detail=loosening.detail,
            fix="restore it; if the project no longer wants it, a person accepts that",
        )
        for loosening in loosened
    ][:_MAX_MINOR]


_MAX_TEST_FILES = 300


def find_special_casing(
    files: Sequence[ChangedFile], paths: Iterable[str], read: Callable[[Iterable[str]], Mapping[str, bytes]]
) -> list[Finding]:
    """Return a finding for added code that answers the inputs of a test. `paths` are the files of the tree under check,
    and `read` reads some of them."""
    changed = [file for file in files if file.new is not None and file.path.endswith(".py")]
    products = [file for file in changed if not is_test_path(file.path) and file.added_lines]
    if not products:
        return []
    first = [file.path for file in changed if is_test_path(file.path)]
    others = sorted(path for path in paths if path.endswith(".py") and is_test_path(path))
    selected = [*dict.fromkeys((*first, *others))][:_MAX_TEST_FILES]
    tests = {path: content.decode("utf-8", "replace") for path, content in read(selected).items()}
    examples, expected = find_examples(tests), find_expected_values(tests)
    findings = []
    for file in products:
        text, added = (file.new or b"").decode("utf-8", "replace"), {number for number, _ in file.added_lines}
        cases = find_special_cases(file.path, text, added, examples, tests)
        answers = find_special_answers(file.path, text, added - {case.line for case in cases}, expected, tests)
        special: list[SpecialCase | SpecialAnswer] = [*cases, *answers]
        findings += [build_special_finding(file.path, case) for case in special]
    return findings[:_MAX_MINOR]


def find_recorded_special_casing(files: Sequence[ChangedFile], calls: Sequence[ObservedCall]) -> list[Finding]:
    """Return a finding for added code that answers the arguments with which the tests were seen to call it. The tests
    need not name them: a loop or a helper may make them."""
    examples = list_examples(calls)
    by_file = {path: [example for example in examples if example.path == path] for path in {e.path for e in examples}}
    return [
        build_special_finding(file.path, case)
        for file in files
        if file.new is not None and file.path in by_file
        for case in find_special_cases(
            file.path,
            file.new.decode("utf-8", "replace"),
            {number for number, _ in file.added_lines},
            by_file[file.path],
            {},
        )
    ][:_MAX_MINOR]


def build_special_finding(path: str, case: SpecialCase | SpecialAnswer) -> Finding:
    """Return the finding about code that answers the inputs of a test."""
    return Finding(
        layer=EvidenceLayer.STATIC_SCAN,
        rule=SPECIAL_CASING,
        severity=Severity.MINOR,
        path=path,
        line=case.line,
        detail=case.describe(),
        fix="compute the answer; a held-out check (--heldout) shows that other inputs are answered too",
        before=case.test_code or None,
        after=case.code,
    )


def _scan_file(file: ChangedFile, plugins: frozenset[str]) -> list[ScanHit]:
    """Scan a file. A new file that the change registers as a plug-in of the runner is a file of the tests."""
    if file.new is None:
        return []
    if b"\0" in file.new[:8192]:
        return scan_path(file.path, file.kind)  # not a text file
    return scan_path(file.path, file.kind) + scan_lines(
        file.path,
        detect_language(file.path, file.new) or "",
        _split_views(file.path, file.new),
        {number for number, _ in file.added_lines},
        _split_views(file.path, file.old) if file.old is not None else (),
        test_file=is_test_path(file.path) or (file.old is None and is_runner_plugin(file.path, plugins)),
        new_file=file.old is None,
    )


def _find_removed_lines(files: Sequence[ChangedFile], *, tests: bool) -> set[bytes]:
    """Return the lines that the change removed from some file: they may have been moved. Lines of tests excuse no
    product code."""
    removed: set[bytes] = set()
    for file in files:
        if tests or not is_test_path(file.path):
            removed_here = Counter((file.old or b"").splitlines()) - Counter((file.new or b"").splitlines())
            removed |= {line.strip() for line in removed_here}
    return removed


def _downgrade_moved(hit: ScanHit, file: ChangedFile, removed: set[bytes]) -> ScanHit:
    """Return the hit, downgraded if its line was only moved here: the project did this before."""
    lines = (file.new or b"").splitlines()
    moved = hit.strict and 0 < hit.line <= len(lines) and lines[hit.line - 1].strip() in removed
    return replace(hit, strict=False) if moved else hit


def _split_views(path: str, content: bytes) -> Sequence[ScanLine]:
    """Return code, text and comments of each line. Without a grammar, the whole line counts as code and text."""
    return split_views(path, content) or plain_lines(content)


def _build_finding(path: str, hit: ScanHit) -> Finding:
    return Finding(
        layer=EvidenceLayer.STATIC_SCAN,
        rule=hit.rule,
        severity=Severity.MAJOR if hit.strict else Severity.MINOR,
        path=path,
        line=hit.line or None,
        detail=hit.detail,
        fix=hit.fix,
    )


_MISSING = re.compile(r"(?:No module named|cannot import name '\w+' from) '([\w.]+)'")


def find_ignored_modules(outputs: Iterable[str], root: Path, tracked: frozenset[str]) -> list[str]:
    """Return files of the work tree, outside the tree, that would be the modules that `outputs` report as missing."""
    modules: list[str] = []
    for name in dict.fromkeys(name for output in outputs for name in _MISSING.findall(output)):
        path = name.replace(".", "/")
        for candidate in (f"{path}.py", f"src/{path}.py", f"{path}/__init__.py", f"src/{path}/__init__.py"):
            if candidate not in tracked and (root / candidate).is_file():
                modules.append(candidate)
    return modules


def build_include_note(files: list[str]) -> str:
    """Return the note that tells the user which files to include."""
    listed = ", ".join(f'"{file}"' for file in files)
    return f"checks do not see ignored files of the work tree; to include them: [environment] include = [{listed}]"
