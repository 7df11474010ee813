"""What people write into a plan's elements: paths, done criteria, references.

How the reader and the linter say what is wrong with a plan.

Is this line a command, or a sentence about one?

Plans say both: `pytest -q tests/a.py`, and "Open the page and check that it looks right". A command that is taken for
prose stops an honest plan; prose that is taken for a command fails when it is run. So the doubt goes to the command:
a line is prose only if it shows it, by the words of a sentence outside quotes or by a first word that starts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import dropwhile
from textwrap import dedent

from proofstone.plans.models import PlanProblem, ProblemSeverity

_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_COMMENT = re.compile(r" (?:\(|#|//|[—–→]|--? ).*$")
_FILE_TAG = re.compile(
    r"</?(?:file|path|item|li|create|created|modify|modified|new|edit|delete|test)s?>", re.IGNORECASE
)
_LABEL = re.compile(
    r"^(?:new|create|created|add|modify|modified|update|updated|edit|delete|remove|test|read)s?(?::\s*|\s+(?=\S*[./]))",
    re.IGNORECASE,
)
_LINK = re.compile(r"^\[[^\]]*\]\(([^)\s]*)\)$")
_BOLD = re.compile(r"^(?:\*\*|\*)([^*]+)(?:\*\*|\*)$")
_LINES = re.compile(r":\d+(?:-\d+)?$")
_CODE = re.compile(r"`([^`]+)`")
_ENDS_LIKE_A_PATH = re.compile(r"(?:[/*]|\.\w{1,12})$")
_NONE = frozenset(("", "-", "—", "none", "n/a", "na", "(none)", "null", "nil", "~", "[]", "no files", "tbd"))
_BRACES = re.compile(r"\{([^{},]*,[^{}]*)\}")
_MOST_SPELLINGS = 64
_PAIRS = {"(": ")", "[": "]", "{": "}", "`": "`", '"': '"', "“": "”", "„": "“", "«": "»", "「": "」"}
_SEPARATORS = {"done": ";\n；", "files": ",\n，、"}


def is_none(text: str) -> bool:
    """Whether somebody wrote that there is nothing: `N/A`, `none`, `[]`."""
    return text.strip().strip("`").lower() in _NONE


def paths(text: str) -> tuple[str, ...]:
    """The paths of a `<files>` element, each once, in order."""
    found: dict[str, None] = {}
    for item in _split(_FILE_TAG.sub("\n", text), _SEPARATORS["files"], keep="({["):
        for path in _paths_of(_BULLET.sub("", item)):
            found.update(dict.fromkeys(_spelt_out(path)))
    return tuple(found)


def _paths_of(item: str) -> Iterator[str]:
    if code := _CODE.findall(item):
        yield from (cleaned for entry in code if (cleaned := _cleaned(entry)))
        return
    item = _LABEL.sub("", _COMMENT.sub("", " " + " ".join(item.split())).strip()).strip()
    words = item.split()
    if len(words) > 1 and all(_ENDS_LIKE_A_PATH.search(word) for word in words):
        yield from (cleaned for word in words if (cleaned := _cleaned(word)))
    elif cleaned := _cleaned(item):
        yield cleaned


def _cleaned(path: str) -> str:
    path = _BOLD.sub(r"\1", path.strip().strip("\"'")).rstrip(";").strip()
    if link := _LINK.match(path):
        path = link[1]
    path = _LINES.sub("", path)
    return "" if is_none(path) else path.removeprefix("./")


def _spelt_out(path: str) -> list[str]:
    """`src/{a,b}.ts` as two paths."""
    done: list[str] = []
    todo = [path]
    while todo:
        one = todo.pop(0)
        match = _BRACES.search(one)
        if match is None or len(done) + len(todo) >= _MOST_SPELLINGS:
            done.append(one)
        else:
            todo += [one[: match.start()] + choice.strip() + one[match.end() :] for choice in match[1].split(",")]
    return done


def criteria(text: str) -> tuple[str, ...]:
    """Done criteria: by line or `;`, not within code, quotes or brackets; a wrapped bullet is one."""
    found: list[list[str]] = []
    bulleted = any(_BULLET.match(line) for line in text.split("\n"))
    for line in _split(text, "\n"):
        begins = not bulleted or bool(_BULLET.match(line)) or not found
        pieces = [piece.strip() for piece in _split(_BULLET.sub("", line), _SEPARATORS["done"])]
        pieces = [piece for piece in pieces if piece.strip(".;,-* ")]
        if not begins and pieces:
            found[-1].append(pieces.pop(0))
        found += [[piece] for piece in pieces]
    return tuple(" ".join(parts) for parts in found)


def tests(text: str) -> tuple[str, ...]:
    """Ids of tests, one a line: a comma or a bracket may be part of one."""
    lines = (_BULLET.sub("", line).strip().strip("`").strip() for line in text.split("\n"))
    return tuple(line for line in lines if line)


def references(text: str) -> tuple[str, ...]:
    """What a `depends_on` names: by commas, with or without brackets and quotes."""
    items = (item.strip().strip("\"'`").strip() for item in re.split(r"[,\n;]", text.strip().strip("[]()")))
    return tuple(item for item in (_BULLET.sub("", entry) for entry in items) if not is_none(item))


def _split(text: str, separators: str, keep: str = '([{`"“„«「') -> Iterator[str]:
    """The text cut at any of `separators` that stands outside the pairs that `keep` opens; a line ends any pair."""
    begin, closer = 0, ""
    for at, char in enumerate(text):
        if char == "\n":
            closer = ""
        if closer:
            closer = "" if char == closer else closer
        elif char in separators:
            yield text[begin:at]
            begin = at + 1
        elif char in keep and _closes(text, at, _PAIRS[char]):
            closer = _PAIRS[char]
    yield text[begin:]


def _closes(text: str, at: int, closer: str) -> bool:
    """Whether the pair is closed on its line, looking no further than a line can sensibly be long."""
    line = text[at + 1 : at + 500].partition("\n")[0]
    return closer in line


def dedented(text: str) -> str:
    """Without the indentation of the element; the first line often stands beside the tag and has none."""
    first, newline, rest = text.partition("\n")
    if not first.strip():
        return f"{newline}{dedent(rest)}"
    return dedent(text) if first[0].isspace() else f"{first}{newline}{dedent(rest)}"


def error(rule: str, line: int, message: str, hint: str, task: str | None = None) -> PlanProblem:
    """The plan cannot be run."""
    return PlanProblem(
        severity=ProblemSeverity.ERROR, rule=rule, line=line, message=message, hint=hint, task=task
    )  # fmt: skip


def warning(rule: str, line: int, message: str, hint: str, task: str | None = None) -> PlanProblem:
    """The plan can be run; somebody should look at it."""
    return PlanProblem(
        severity=ProblemSeverity.WARNING, rule=rule, line=line, message=message, hint=hint, task=task
    )  # fmt: skip


def shortened(text: str, length: int = 80) -> str:
    """On one line, and not longer than a message can bear."""
    flat = " ".join(text.split())
    return flat if len(flat) <= length else f"{flat[: length - 1]}…"


def _set_of(words: str) -> frozenset[str]:
    return frozenset(words.split())


_PROGRAMS = _set_of(
    """
    [ [[ alembic ansible ant apk apt ash autopep8 awk az aws bandit bash basedpyright bats bazel biome black brew
    buf buildozer bun bundle bunx busybox c++ cargo cat cd cdk chmod clang clang-format clang-tidy clj clojure cmake
    cmp codesign comm command composer conda convert cookiecutter corepack cp coverage cppcheck createdb crystal csc
    ctest curl cut cypress dart date dbt deno df diff dig django-admin docker docker-compose dotnet drizzle-kit du
    duckdb dune echo ed egrep elixir elm env erl eslint ex exit expo expr export eza false fd ffmpeg ffprobe fgrep
    file find firebase fish flake8 flutter fly forge fvm g++ gatsby gcc gcloud gem gh ghc git gitleaks gleam gofmt
    golangci-lint gpg gradle gradlew grep grpcurl gunicorn hadolint head helm heroku hg http hugo hurl hyperfine id
    iex install isort jar java javac javap jest jinja jq julia jupyter just k6 kotlinc ktlint kubectl kubeval
    kustomize lake latexmk ldd lean ls lsof lua luac luacheck make markdownlint maturin md5sum meson mix mkdir
    mktemp mocha mongosh msbuild mv mvn mvnw mypy mysql nc next ng nginx nice nim nimble ninja nix nixpkgs-fmt nm
    node nohup nox npm npx nslookup nuxt objdump ocaml ollama openssl opam otool oxlint pandoc paste patch pdflatex
    pdm perl pg_isready php phpstan phpunit pint ping pip pip3 pipenv pipx pixi pkill plutil pnpm poetry powershell
    pre-commit prettier printf prisma promtool ps psql pulumi pwd pwsh py pylint pyright pytest python python2
    python3 r racket rails rake react-scripts readelf realpath redis-cli rg rm robot rollup rspec rscript rsync
    rubocop ruby ruff rustc rustfmt rye sbt scala scons scp sed semgrep seq set sh sha256sum shasum shellcheck shopt
    sleep sort source spark-submit sphinx-build sqlfluff sqlite3 ssh stack stat storybook strings stylelint sudo
    supabase swift swiftlint swift-format swc systemctl tail tar task taplo tee terraform terragrunt test tflint
    time timeout tofu touch tox tr tree trivy true tsc tslint tsx turbo twine ty typst unzip uv uvicorn uvx vagrant
    valgrind vercel virtualenv vite vitest vue-tsc wait wasm-pack wc webpack wget which wrangler xargs xcodebuild
    xcrun xmllint xvfb-run yamllint yarn yq zcat zig zip zsh : . go
    """
)
_OUTCOMES = _set_of(
    """
    passes passed succeeds succeeded successful successfully returns returned shows displays displayed works working
    exists exits exited completes completed compiles compiled should must shall confirms verifies ensures manually
    visually inspection looks appears renders rendered loads loaded starts started prints outputs contains without
    errors warnings cleanly correct correctly properly fails failing failed sure matches visible expected the an is
    are that this
    """
)
"""What a sentence says and an argument hardly ever is."""
_SMALL = _set_of(
    """
    it its with and or of to in on at no not all any each when then into from by as has have after before
    """
)
_REQUESTS = _set_of(
    """
    verify check confirm ensure inspect open visit run see look manual visual try navigate click start none tbd todo
    done missing pass passing green fine good ok works tests test all everything
    """
)
"""What a sentence begins with, or says when it is short: "tests pass", "all green"."""

_ALSO_ENGLISH = _set_of("test find file time next set install sort convert patch robot tree strings")
_BLOCKS = frozenset(("for", "while", "until", "if", "case", "[", "[[", "{", "("))
_FUNCTION = re.compile(r"[A-Za-z_]\w*\s?\(\)\s?\{", re.ASCII)
_QUOTED = re.compile(r"\"[^\"\n]*\"|(?<![\w])'[^'\n]*'|`[^`\n]*`")
_QUOTE = "\0"
_OPTION = re.compile(r"--?[A-Za-z]")
_SIGN = re.compile(r"[|;$=]|&&|\d?>|<|^--?[A-Za-z]")
_PATH = re.compile(r"[./]|\.{0,2}/.+|[\w@.-]+/\S*|[\w-]+\.\w{1,8}")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_STARTS_PATH = re.compile(r"(?:\.{0,2}/|~/|\$|[A-Za-z]:\\)")
_SCRIPT = re.compile(r"[\w.+-]+\.(?:sh|bash|exe|bat|cmd|ps1|py|js|mjs|rb|pl|php)", re.IGNORECASE)
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_:.+@-]*", re.ASCII)
_SENTENCE_END = re.compile(r"(?:[^\W\d_]{2}|\))[.。！？!?:：]$")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")


def is_command(line: str) -> bool:
    """Whether the engine should run the line as it stands."""
    written = _bare_words(line)
    words = [*dropwhile(_ASSIGNMENT.match, written)]
    if not words:
        return bool(written)
    bracketed = words[0][0] in "!({"
    assigned = len(words) < len(written)
    words = [*dropwhile(lambda word: not word.strip("!({"), words)]
    if not words:
        return False
    words[0] = words[0].lstrip("!({")
    first = words[0]
    if first in _BLOCKS or first in ("echo", "printf") or _FUNCTION.match(line.strip()):
        return True
    if _is_sentence(words):
        return False
    if _is_program(first) or (assigned and not bracketed):
        return True
    if any(_SIGN.search(word) or _PATH.fullmatch(word) for word in words):
        return first.isascii() and (first[0].islower() or any(_OPTION.match(word) for word in words))
    return len(words) <= 3 and all(_PLAIN.fullmatch(word) and word not in _REQUESTS | _SMALL for word in words)


def is_plainly_command(text: str) -> bool:
    """The same for code within a sentence, where a lone name is a name: `` `isReady` is set ``."""
    words = _bare_words(text)
    if not words or not is_command(text):
        return False
    first = words[0].strip("!({)}")
    if first in _ALSO_ENGLISH:
        return any(_SIGN.search(word) or _PATH.fullmatch(word) for word in words[1:])
    if len(words) == 1:
        return first.startswith("./") or first in ("pytest", "tsc", "make", "tox", "nox", "vitest", "jest", "mypy")
    return (
        _is_program(first)
        or first in _BLOCKS
        or not first
        or bool(_ASSIGNMENT.match(first))
        or any(_SIGN.search(word) for word in words)
    )


def words_of(text: str) -> list[str]:
    """The words of a sentence."""
    return _WORD.findall(text)


def _bare_words(line: str) -> list[str]:
    """The words with a mark in place of everything quoted, which says nothing of what the line is."""
    return _QUOTED.sub(_QUOTE, line).split()


def _is_program(first: str) -> bool:
    name = first.rstrip(");")
    if name in _PROGRAMS or _STARTS_PATH.match(name) or _SCRIPT.fullmatch(name) or name == "Rscript":
        return True
    return name.lower() in _PROGRAMS and not name[1:].islower()  # MSBuild, but not Docker


def _is_sentence(words: list[str]) -> bool:
    first, rest = words[0], _arguments(words[1:])
    if len(words) > 1 and _SENTENCE_END.search(words[-1]) and not _PATH.fullmatch(words[-1]):
        return True
    named = first[0].isupper() and first.isalpha() and not _is_program(first)
    if first.lower() in _OUTCOMES and not _is_program(first):
        return True
    said = [word.strip(",.;:()").lower() for word in (words[1:] if named else rest)]
    outcomes = sum(word in _OUTCOMES for word in said)
    small = sum(word in _SMALL for word in said)
    shell = any(_SIGN.search(word) or _PATH.fullmatch(word) for word in words)
    if named:
        return bool(outcomes or small) or not shell
    if not first.isascii() and not shell:
        return True
    foreign = not shell and any(word.isalpha() and not word.isascii() for word in said)
    request = first in _REQUESTS and not _is_program(first)
    return outcomes > 0 or foreign or small >= (3 if shell else 2) or (request and small > 0)


def _arguments(words: list[str]) -> list[str]:
    """Those that are not the value of an option, nor handed on after `--`."""
    kept, after_option = [], False
    for word in words:
        if word == "--":
            break
        if not after_option:
            kept.append(word)
        after_option = bool(_OPTION.match(word)) and "=" not in word
    return kept
