"""What is wrong with a plan that could be read: commands that prove nothing, files that cannot be meant, words that
nobody can check. `read_plan` tells what is missing; this tells what is there and will not do.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from proofstone.common.commands import loses_exit_code, proves_nothing
from proofstone.common.globs import overlap
from proofstone.common.risk import docs_only, is_test
from proofstone.plans.fields import error, shortened, warning
from proofstone.plans.models import Plan, PlanProblem, PlanTask, ProblemSeverity
from proofstone.plans.order import may_run_together

MOST_PRODUCTION_FILES = 3

_BROAD = re.compile(
    "(?:"
    + "|".join(
        (
            r"(?:npm|yarn|pnpm|bun) (?:run )?test|npm t|composer test|(?:npx )?(?:jest|vitest(?: run)?)|phpunit",
            r"(?:(?:uv|poetry) run )?(?:python3? -m )?pytest|python3? -m unittest|tox|nox|make(?: test| check)?|ctest",
            r"go test \./\.\.\.|(?:cargo|dotnet|mix|flutter|swift) test|mvn (?:clean )?test|(?:\./gradlew|gradle) test",
            r"(?:bundle exec )?rspec|rake(?: test)?",
        )
    )
    + r")(?: -q| -v| -x| --silent| --run)*"
)
_VAGUE = re.compile(
    r"(?:the |this )?(?:it|task|code|feature|everything|all|implementation|changes?|work)?\s*"
    r"(?:is |are |has been |all )?(?:done|finished|implemented|ready|fine|ok|okay|good|correct|completed?|successful"
    r"|success|working|works?(?: as expected| correctly| properly)?|as expected|no errors|no issues|looks good)"
)
_PRAISE = re.compile(
    r"(?:[^\s;]{1,30} ){0,5}?(?:works?(?: well| fine| as expected| correctly| properly)?"
    r"|(?:is|are|be|looks?|feels?|seems?) (?:very |really |reasonably |more )?"
    r"(?:fast|quick|good|great|nice|fine|clean|robust|stable|scalable|intuitive|correct|usable|performant"
    r"|user[- ]friendly|easy to use|production[- ]ready|as expected)"
    r"|(?:fast|robust|intuitive|scalable|user[- ]friendly|easy to use|production[- ]ready))"
)
"""What is praised rather than described: `the page is fast`."""
_MEASURED = re.compile(r"\d|`|\b(?:tests?|suite|build|checks?|lint|ci)\b")
_TIDY = r"(?:clean|readable|maintainable|tidy)"
_WISH = re.compile(
    rf"(?:the |our )?(?:code|api|implementation|ui|design)? ?(?:is |are )?{_TIDY}(?: and {_TIDY})?"
    r"|(?:the |our )?(?:users?|customers?|everyone|everybody) (?:is|are) (?:happy|satisfied|pleased)"
    r"|(?:the )?(?:performance|speed|quality|usability|ux|readability)(?: is| has been)?"
    r" (?:improved|better|increased|acceptable)|(?:there are )?no (?:known )?(?:bugs|regressions|problems)"
)
_ABSOLUTE_CD = re.compile(r"(?:^|[;&|(\n]\s*)cd\s+[\"']?(/[^\s\"';&|)]*|[A-Za-z]:\\\S*|~\S*)")
_LOOKS_SO_FAR = 3000
"""Lines of one task in which a text is looked for, so that a message can name its line."""
_FILE_OR_PATH = re.compile(r"[/.]")


def lint(plan: Plan, text: str, root: str | None = None) -> tuple[PlanProblem, ...]:
    """Every further problem of a plan; `root` is where its repository lies, if that is known."""
    found = _Linting(plan, text, root)
    problems = [problem for task in plan.tasks for problem in found.of_task(task)]
    problems += [*found.of_names(), *found.of_overlaps(), *found.of_head()]
    return tuple(problems)


def errors(problems: Iterable[PlanProblem]) -> tuple[PlanProblem, ...]:
    """Those with which a plan cannot be run."""
    return tuple(problem for problem in problems if problem.severity is ProblemSeverity.ERROR)


def is_vague(criterion: str) -> bool:
    """Whether nobody can check it: `it works`, `the page is fast`."""
    said = criterion.strip().rstrip(".!").lower()
    praised = _PRAISE.fullmatch(said) and not _MEASURED.search(said)
    return bool(_VAGUE.fullmatch(said) or _WISH.fullmatch(said) or praised)


class _Linting:
    def __init__(self, plan: Plan, text: str, root: str | None) -> None:
        self._plan = plan
        self._lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._root = root.rstrip("/") if root else None
        starts = [task.line for task in plan.tasks]
        self._end = dict(zip(starts, [*starts[1:], len(self._lines) + 1], strict=True))

    def of_task(self, task: PlanTask) -> Iterator[PlanProblem]:
        if task.type.is_checkpoint:
            if not task.prompt:
                hint = "say it: <what-built> and <how-to-verify>, <decision> and <options>, or <instructions>"
                yield error("empty-checkpoint", task.line, f"{task.name!r} asks the person nothing", hint, task.id)
            return
        for command in task.verify:
            yield from self._command(task, command, "verify")
        for command in task.heldout:
            yield from self._command(task, command, "heldout")
            if command in task.verify:
                message = f"`{shortened(command, 40)}` is in <verify> too, so the executor sees it"
                hint = "hold out a check that the executor cannot know"
                yield warning("heldout-shown", self._line(task, command), message, hint, task.id)
        vague = [item for item in task.done if is_vague(item)]
        if vague:
            message = f"nobody can check {shortened('; '.join(vague), 40)!r}"
            hint = "say what one can see or count: `parse()` refuses an empty file; all 5 tests of test_parse.py pass"
            yield warning("vague-done", self._line(task, vague[0]), message, hint, task.id)
        yield from self._paths(task)

    def of_names(self) -> Iterator[PlanProblem]:
        seen: dict[str, PlanTask] = {}
        for task in self._plan.tasks:
            first = seen.setdefault(task.name.casefold(), task)
            if first is not task:
                message = f"{task.name!r} is also the name of the task on line {first.line}"
                yield warning("duplicate-name", task.line, message, "tell them apart by name", task.id)

    def of_overlaps(self) -> Iterator[PlanProblem]:
        together = may_run_together({task.id: task.depends_on for task in self._plan.tasks})
        for at, task in enumerate(self._plan.tasks):
            beside = (other for other in self._plan.tasks[:at] if other.id in together.get(task.id, ()))
            other = next((other for other in beside if overlap(other.files, task.files)), None)
            if other is not None:
                message = f"{shortened(other.name, 40)!r} and {shortened(task.name, 40)!r} may change the same files"
                hint = f"they will run one after the other; say so with depends_on, or part them: {_same(other, task)}"
                yield warning("overlapping-files", task.line, message, hint, task.id)

    def of_head(self) -> Iterator[PlanProblem]:
        checkpoint = next((task for task in self._plan.tasks if task.type.is_checkpoint), None)
        if checkpoint is not None and self._plan.autonomous and self._says("autonomous:"):
            message = "the frontmatter says `autonomous: true`, and here it stops for a person"
            yield warning("autonomous", checkpoint.line, message, "write `autonomous: false`", checkpoint.id)
        for artifact in self._plan.must_haves.artifacts:
            if wrong := self._wrong_path(artifact.path):
                yield error(
                    "bad-path", artifact.line, f"artifact {shortened(artifact.path, 60)!r} {wrong[0]}", wrong[1]
                )
        for link in self._plan.must_haves.key_links:
            if link.pattern and (fault := _regex_fault(link.pattern)):
                message = f"the pattern {shortened(link.pattern, 40)!r} is no regular expression: {fault}"
                yield error("bad-pattern", link.line, message, "put a backslash before brackets that are meant as such")
            elif not _FILE_OR_PATH.search(link.source):
                message = f"the key link is from {shortened(link.source, 40)!r}, which is no file"
                yield warning(
                    "key-link", link.line, message, "name the file in `from`; as it is, it cannot be looked at"
                )

    def _command(self, task: PlanTask, command: str, element: str) -> Iterator[PlanProblem]:
        line, shown = self._line(task, command), shortened(command.removeprefix("set -e\n"), 60)
        if proves_nothing(command):
            hint = f"let it fail when the task is not done: {_instead(task)}"
            yield error(f"vacuous-{element}", line, f"`{shown}` passes whatever was changed", hint, task.id)
        elif loses_exit_code(command):
            hint = "leave out the last `|` and what follows: the shell reports only how the last program ended"
            yield error("lost-exit-code", line, f"`{shown}` passes whatever was changed", hint, task.id)
        elif element == "verify" and _BROAD.fullmatch(" ".join(command.split())):
            hint = f"name the tests of this task, as in {_instead(task)}; the whole suite is run in any case"
            yield warning(
                "broad-verify", line, f"`{shown}` runs everything, and says little of this task", hint, task.id
            )
        if (away := _ABSOLUTE_CD.search(command)) and not self._is_within(away[1]):
            message = f"`cd {shortened(away[1], 40)}` leaves the copy of the repository that is checked"
            yield warning(
                "absolute-cd", line, message, "commands begin in the repository's root: leave the cd out", task.id
            )

    def _paths(self, task: PlanTask) -> Iterator[PlanProblem]:
        for path in task.files:
            if wrong := self._wrong_path(path):
                line = self._line(task, path)
                yield error("bad-path", line, f"{shortened(path, 60)!r} {wrong[0]}", wrong[1], task.id)
            elif " " in path and len(path.split()) > 2:
                message = f"{shortened(path, 60)!r} is taken as one path"
                yield warning(
                    "odd-path", self._line(task, path), message, "write one path a line, and no sentences", task.id
                )
        production = [path for path in task.files if not is_test(path) and not docs_only([path])]
        if len(production) > MOST_PRODUCTION_FILES:
            message = f"{task.name!r} changes {len(production)} production files"
            hint = f"a task of at most {MOST_PRODUCTION_FILES} can be judged and taken back as a whole; split it"
            yield warning("many-files", task.line, message, hint, task.id)

    def _wrong_path(self, path: str) -> tuple[str, str] | None:
        inside = "name it from the repository's root: src/thing.py"
        if self._root and path.startswith(f"{self._root}/"):
            return "is absolute", f"write {path.removeprefix(self._root).lstrip('/')}"
        if path.startswith(("/", "~")) or re.match(r"[A-Za-z]:[\\/]", path):
            return "is absolute", inside
        if ".." in PurePosixPath(path).parts:
            return "leads out of where it begins by `..`", inside
        if "\\" in path:
            return "has a backslash", f"write {path.replace(chr(92), '/')}"
        if path == ".git" or path.startswith(".git/"):
            return "is git's own", "name files of the project"
        return None

    def _is_within(self, folder: str) -> bool:
        return self._root is not None and (folder == self._root or folder.startswith(f"{self._root}/"))

    def _says(self, key: str) -> bool:
        return any(line.startswith(key) for line in self._lines[:200])

    def _line(self, task: PlanTask, fragment: str) -> int:
        """Where in the task a text stands, as far as it stands there as it was read."""
        needle = next((line for line in fragment.split("\n") if line not in ("set -e", "{")), fragment).strip()
        for number in range(task.line, min(self._end[task.line], task.line + _LOOKS_SO_FAR)):
            if needle and needle in self._lines[number - 1]:
                return number
        return task.line


def _instead(task: PlanTask) -> str:
    """A command that would prove something, out of what the task itself names."""
    tests = next((path for path in task.files if is_test(path) and path.endswith(".py")), None)
    if tests:
        return f"`pytest -q {tests}`"
    file = next((path for path in task.files if path[0] not in "/~." and path[-1] != "/" and "*" not in path), None)
    return f"`grep -q 'what must be in it' {file}`, or run its tests" if file else "`pytest -q tests/test_thing.py`"


def _same(one: PlanTask, other: PlanTask) -> str:
    shared = [path for path in one.files if overlap([path], other.files)]
    return shortened(", ".join(shared), 80)


def _regex_fault(pattern: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `[[` may mean something else in a later Python: it is theirs to know
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as fault:
        return str(fault)
    return None
