"""Lint a plan that could be read: commands that prove nothing, impossible paths, criteria that cannot be checked.

`read_plan` reports what is missing; the linter reports what is there and not good enough.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from proofstone.common.commands import loses_exit_code, proves_nothing
from proofstone.common.globs import may_overlap
from proofstone.common.risk import is_docs_only, is_test_path
from proofstone.plans.fields import make_error, make_warning, shorten_text
from proofstone.plans.models import Plan, PlanProblem, PlanTask, ProblemSeverity
from proofstone.plans.order import find_concurrent_tasks

MAX_PRODUCTION_FILES = 3

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
"""Criteria that praise instead of describing: `the page is fast`."""
_MEASURED = re.compile(r"\d|`|\b(?:tests?|suite|build|checks?|lint|ci)\b")
_TIDY = r"(?:clean|readable|maintainable|tidy)"
_WISH = re.compile(
    rf"(?:the |our )?(?:code|api|implementation|ui|design)? ?(?:is |are )?{_TIDY}(?: and {_TIDY})?"
    r"|(?:the |our )?(?:users?|customers?|everyone|everybody) (?:is|are) (?:happy|satisfied|pleased)"
    r"|(?:the )?(?:performance|speed|quality|usability|ux|readability)(?: is| has been)?"
    r" (?:improved|better|increased|acceptable)|(?:there are )?no (?:known )?(?:bugs|regressions|problems)"
)
_ABSOLUTE_CD = re.compile(r"(?:^|[;&|(\n]\s*)cd\s+[\"']?(/[^\s\"';&|)]*|[A-Za-z]:\\\S*|~\S*)")
_MAX_SEARCHED_LINES = 3000
"""How many lines of a task are searched for a text, so that a message can name its line."""
_FILE_OR_PATH = re.compile(r"[/.]")


def find_lint_problems(plan: Plan, text: str, root: str | None = None) -> tuple[PlanProblem, ...]:
    """Return the further problems of a plan. `root` is the path of its repository, if known."""
    linter = _Linter(plan, text, root)
    problems = [problem for task in plan.tasks for problem in linter.lint_task(task)]
    problems += [*linter.lint_names(), *linter.lint_overlaps(), *linter.lint_frontmatter()]
    return tuple(problems)


def select_errors(problems: Iterable[PlanProblem]) -> tuple[PlanProblem, ...]:
    """Return the problems with which the plan cannot be run."""
    return tuple(problem for problem in problems if problem.severity is ProblemSeverity.ERROR)


def is_vague(criterion: str) -> bool:
    """Whether nobody can check the criterion: `it works`, `the page is fast`."""
    text = criterion.strip().rstrip(".!").lower()
    is_praise = _PRAISE.fullmatch(text) and not _MEASURED.search(text)
    return bool(_VAGUE.fullmatch(text) or _WISH.fullmatch(text) or is_praise)


class _Linter:
    def __init__(self, plan: Plan, text: str, root: str | None) -> None:
        self._plan = plan
        self._lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._root = root.rstrip("/") if root else None
        starts = [task.line for task in plan.tasks]
        self._end = dict(zip(starts, [*starts[1:], len(self._lines) + 1], strict=True))

    def lint_task(self, task: PlanTask) -> Iterator[PlanProblem]:
        if task.type.is_checkpoint:
            if not task.prompt:
                hint = "say it: <what-built> and <how-to-verify>, <decision> and <options>, or <instructions>"
                yield make_error(
                    "empty-checkpoint", task.line, f"{task.name!r} does not ask the person anything", hint, task.id
                )
            return
        for command in task.verify:
            yield from self._lint_command(task, command, "verify")
        for command in task.heldout:
            yield from self._lint_command(task, command, "heldout")
            if command in task.verify:
                message = f"`{shorten_text(command, 40)}` is in <verify> too, so the executor sees it"
                hint = "hold out a check that the executor cannot know"
                yield make_warning("heldout-shown", self._find_line(task, command), message, hint, task.id)
        vague = [criterion for criterion in task.done if is_vague(criterion)]
        if vague:
            message = f"nobody can check {shorten_text('; '.join(vague), 40)!r}"
            hint = "say what one can see or count: `parse()` refuses an empty file; all 5 tests of test_parse.py pass"
            yield make_warning("vague-done", self._find_line(task, vague[0]), message, hint, task.id)
        yield from self._lint_paths(task)

    def lint_names(self) -> Iterator[PlanProblem]:
        first_by_name: dict[str, PlanTask] = {}
        for task in self._plan.tasks:
            first = first_by_name.setdefault(task.name.casefold(), task)
            if first is not task:
                message = f"{task.name!r} has the same name as the task on line {first.line}"
                yield make_warning("duplicate-name", task.line, message, "give each task its own name", task.id)

    def lint_overlaps(self) -> Iterator[PlanProblem]:
        together = find_concurrent_tasks({task.id: task.depends_on for task in self._plan.tasks})
        for index, task in enumerate(self._plan.tasks):
            earlier = (other for other in self._plan.tasks[:index] if other.id in together.get(task.id, ()))
            other = next((other for other in earlier if may_overlap(other.files, task.files)), None)
            if other is not None:
                message = (
                    f"{shorten_text(other.name, 40)!r} and {shorten_text(task.name, 40)!r} may change the same files"
                )
                shared = _list_shared_files(other, task)
                hint = f"they will run one after the other; say so with depends_on, or part them: {shared}"
                yield make_warning("overlapping-files", task.line, message, hint, task.id)

    def lint_frontmatter(self) -> Iterator[PlanProblem]:
        checkpoint = next((task for task in self._plan.tasks if task.type.is_checkpoint), None)
        if checkpoint is not None and self._plan.autonomous and self._has_line("autonomous:"):
            message = "the frontmatter says `autonomous: true`, but this task waits for a person"
            yield make_warning("autonomous", checkpoint.line, message, "write `autonomous: false`", checkpoint.id)
        for artifact in self._plan.must_haves.artifacts:
            if problem := self._find_path_problem(artifact.path):
                yield make_error(
                    "bad-path", artifact.line, f"artifact {shorten_text(artifact.path, 60)!r} {problem[0]}", problem[1]
                )
        for link in self._plan.must_haves.key_links:
            if link.pattern and (fault := _find_regex_error(link.pattern)):
                message = f"the pattern {shorten_text(link.pattern, 40)!r} is not a valid regular expression: {fault}"
                yield make_error("bad-pattern", link.line, message, "put a backslash before literal brackets")
            elif not _FILE_OR_PATH.search(link.source):
                message = f"the key link is from {shorten_text(link.source, 40)!r}, which is not a file"
                yield make_warning(
                    "key-link", link.line, message, "name the file in `from`; until then the link cannot be checked"
                )

    def _lint_command(self, task: PlanTask, command: str, element: str) -> Iterator[PlanProblem]:
        line, shown = self._find_line(task, command), shorten_text(command.removeprefix("set -e\n"), 60)
        if proves_nothing(command):
            hint = f"let it fail when the task is not done: {_suggest_command(task)}"
            yield make_error(f"vacuous-{element}", line, f"`{shown}` passes whatever was changed", hint, task.id)
        elif loses_exit_code(command):
            hint = "remove the last `|` and what follows: the shell reports only the exit code of the last program"
            yield make_error("lost-exit-code", line, f"`{shown}` passes whatever was changed", hint, task.id)
        elif element == "verify" and _BROAD.fullmatch(" ".join(command.split())):
            hint = (
                f"name the tests of this task, as in {_suggest_command(task)}; Proofstone runs the whole suite anyway"
            )
            yield make_warning(
                "broad-verify", line, f"`{shown}` runs everything, which says little about this task", hint, task.id
            )
        if (directory := _ABSOLUTE_CD.search(command)) and not self._is_within(directory[1]):
            message = f"`cd {shorten_text(directory[1], 40)}` leaves the copy of the repository that Proofstone checks"
            yield make_warning(
                "absolute-cd", line, message, "commands start in the root of the repository: remove the cd", task.id
            )

    def _lint_paths(self, task: PlanTask) -> Iterator[PlanProblem]:
        for path in task.files:
            if problem := self._find_path_problem(path):
                line = self._find_line(task, path)
                yield make_error("bad-path", line, f"{shorten_text(path, 60)!r} {problem[0]}", problem[1], task.id)
            elif " " in path and len(path.split()) > 2:
                message = f"{shorten_text(path, 60)!r} is read as one path"
                yield make_warning(
                    "odd-path",
                    self._find_line(task, path),
                    message,
                    "write one path per line, and no sentences",
                    task.id,
                )
        production = [path for path in task.files if not is_test_path(path) and not is_docs_only([path])]
        if len(production) > MAX_PRODUCTION_FILES:
            message = f"{task.name!r} changes {len(production)} production files"
            hint = f"a task of at most {MAX_PRODUCTION_FILES} can be reviewed and reverted as a whole; split it"
            yield make_warning("many-files", task.line, message, hint, task.id)

    def _find_path_problem(self, path: str) -> tuple[str, str] | None:
        inside = "write the path from the root of the repository: src/thing.py"
        if self._root and path.startswith(f"{self._root}/"):
            return "is absolute", f"write {path.removeprefix(self._root).lstrip('/')}"
        if path.startswith(("/", "~")) or re.match(r"[A-Za-z]:[\\/]", path):
            return "is absolute", inside
        if ".." in PurePosixPath(path).parts:
            return "leaves its folder with `..`", inside
        if "\\" in path:
            return "has a backslash", f"write {path.replace(chr(92), '/')}"
        if path == ".git" or path.startswith(".git/"):
            return "belongs to git", "name files of the project"
        return None

    def _is_within(self, folder: str) -> bool:
        return self._root is not None and (folder == self._root or folder.startswith(f"{self._root}/"))

    def _has_line(self, key: str) -> bool:
        return any(line.startswith(key) for line in self._lines[:200])

    def _find_line(self, task: PlanTask, fragment: str) -> int:
        """Return the line of the task that contains the text, else the first line of the task."""
        needle = next((line for line in fragment.split("\n") if line not in ("set -e", "{")), fragment).strip()
        for number in range(task.line, min(self._end[task.line], task.line + _MAX_SEARCHED_LINES)):
            if needle and needle in self._lines[number - 1]:
                return number
        return task.line


def _suggest_command(task: PlanTask) -> str:
    """Suggest a command that would prove something, from the files that the task names."""
    tests = next((path for path in task.files if is_test_path(path) and path.endswith(".py")), None)
    if tests:
        return f"`pytest -q {tests}`"
    file = next((path for path in task.files if path[0] not in "/~." and path[-1] != "/" and "*" not in path), None)
    return f"`grep -q 'what must be in it' {file}`, or run its tests" if file else "`pytest -q tests/test_thing.py`"


def _list_shared_files(task: PlanTask, other: PlanTask) -> str:
    shared = [path for path in task.files if may_overlap([path], other.files)]
    return shorten_text(", ".join(shared), 80)


def _find_regex_error(pattern: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns that `[[` may get another meaning
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as fault:
        return str(fault)
    return None
