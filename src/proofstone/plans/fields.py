"""Parse the text that people write into a plan's elements: paths, done criteria, references and commands.

The module also creates the problems that the parser and the linter report.

Verify lines may be commands (`pytest -q tests/a.py`) or sentences about them ("Open the page and check that it looks
right"). A command mistaken for prose stops an honest plan; prose mistaken for a command fails when it is run. So a
doubtful line counts as a command: it is prose only if it contains the words of a sentence outside quotes, or if its
first word cannot start a program.
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
_MAX_EXPANSIONS = 64
_PAIRS = {"(": ")", "[": "]", "{": "}", "`": "`", '"': '"', "“": "”", "„": "“", "«": "»", "「": "」"}
_SEPARATORS = {"done": ";\n；", "files": ",\n，、"}


def is_none_word(text: str) -> bool:
    """Whether the author wrote that there is nothing: `N/A`, `none`, `[]`."""
    return text.strip().strip("`").lower() in _NONE


def parse_paths(text: str) -> tuple[str, ...]:
    """Return the paths of a `<files>` element, each once, in order."""
    result: dict[str, None] = {}
    for file_item in _split(_FILE_TAG.sub("\n", text), _SEPARATORS["files"], keep="({["):
        for path in _read_item_paths(_BULLET.sub("", file_item)):
            result.update(dict.fromkeys(_expand_braces(path)))
    return tuple(result)


def _read_item_paths(file_item: str) -> Iterator[str]:
    if code := _CODE.findall(file_item):
        yield from (cleaned for fragment in code if (cleaned := _clean_path(fragment)))
        return
    file_item = _LABEL.sub("", _COMMENT.sub("", " " + " ".join(file_item.split())).strip()).strip()
    words = file_item.split()
    if len(words) > 1 and all(_ENDS_LIKE_A_PATH.search(word) for word in words):
        yield from (cleaned for word in words if (cleaned := _clean_path(word)))
    elif cleaned := _clean_path(file_item):
        yield cleaned


def _clean_path(path: str) -> str:
    path = _BOLD.sub(r"\1", path.strip().strip("\"'")).rstrip(";").strip()
    if link := _LINK.match(path):
        path = link[1]
    path = _LINES.sub("", path)
    return "" if is_none_word(path) else path.removeprefix("./")


def _expand_braces(path: str) -> list[str]:
    """Expand `src/{a,b}.ts` into two paths."""
    expanded: list[str] = []
    pending = [path]
    while pending:
        candidate = pending.pop(0)
        match = _BRACES.search(candidate)
        if match is None or len(expanded) + len(pending) >= _MAX_EXPANSIONS:
            expanded.append(candidate)
        else:
            pending += [
                candidate[: match.start()] + choice.strip() + candidate[match.end() :] for choice in match[1].split(",")
            ]
    return expanded


def parse_criteria(text: str) -> tuple[str, ...]:
    """Split done criteria by line or `;`, but not within code, quotes or brackets. A wrapped bullet is a single
    criterion.
    """
    groups: list[list[str]] = []
    bulleted = any(_BULLET.match(line) for line in text.split("\n"))
    for line in _split(text, "\n"):
        begins = not bulleted or bool(_BULLET.match(line)) or not groups
        pieces = [piece.strip() for piece in _split(_BULLET.sub("", line), _SEPARATORS["done"])]
        pieces = [piece for piece in pieces if piece.strip(".;,-* ")]
        if not begins and pieces:
            groups[-1].append(pieces.pop(0))
        groups += [[piece] for piece in pieces]
    return tuple(" ".join(parts) for parts in groups)


def parse_test_ids(text: str) -> tuple[str, ...]:
    """Return test ids, one per line. A comma or a bracket may be part of an id."""
    lines = (_BULLET.sub("", line).strip().strip("`").strip() for line in text.split("\n"))
    return tuple(line for line in lines if line)


def parse_references(text: str) -> tuple[str, ...]:
    """Return the names in a `depends_on`: separated by commas, with or without brackets and quotes."""
    items = (reference.strip().strip("\"'`").strip() for reference in re.split(r"[,\n;]", text.strip().strip("[]()")))
    return tuple(
        reference for reference in (_BULLET.sub("", stripped) for stripped in items) if not is_none_word(reference)
    )


def _split(text: str, separators: str, keep: str = '([{`"“„«「') -> Iterator[str]:
    """Split the text at `separators` outside the pairs that `keep` opens. A line break ends every pair."""
    begin, closer = 0, ""
    for at, char in enumerate(text):
        if char == "\n":
            closer = ""
        if closer:
            closer = "" if char == closer else closer
        elif char in separators:
            yield text[begin:at]
            begin = at + 1
        elif char in keep and _is_closed(text, at, _PAIRS[char]):
            closer = _PAIRS[char]
    yield text[begin:]


def _is_closed(text: str, at: int, closer: str) -> bool:
    """Whether the pair is closed on its line. The search stops at a sensible line length."""
    line = text[at + 1 : at + 500].partition("\n")[0]
    return closer in line


def dedent_element(text: str) -> str:
    """Remove the indentation of an element. Its first line often follows the tag and has none."""
    first, newline, rest = text.partition("\n")
    if not first.strip():
        return f"{newline}{dedent(rest)}"
    return dedent(text) if first[0].isspace() else f"{first}{newline}{dedent(rest)}"


def make_error(rule: str, line: int, message: str, hint: str, task: str | None = None) -> PlanProblem:
    """Create a problem with which the plan cannot be run."""
    return PlanProblem(
        severity=ProblemSeverity.ERROR, rule=rule, line=line, message=message, hint=hint, task=task
    )  # fmt: skip


def make_warning(rule: str, line: int, message: str, hint: str, task: str | None = None) -> PlanProblem:
    """Create a problem with which the plan can still be run."""
    return PlanProblem(
        severity=ProblemSeverity.WARNING, rule=rule, line=line, message=message, hint=hint, task=task
    )  # fmt: skip


def shorten_text(text: str, length: int = 80) -> str:
    """Return the text on one line, cut to `length`."""
    flat = " ".join(text.split())
    return flat if len(flat) <= length else f"{flat[: length - 1]}…"


def _to_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_PROGRAMS = _to_set(
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
_OUTCOMES = _to_set(
    """
    passes passed succeeds succeeded successful successfully returns returned shows displays displayed works working
    exists exits exited completes completed compiles compiled should must shall confirms verifies ensures manually
    visually inspection looks appears renders rendered loads loaded starts started prints outputs contains without
    errors warnings cleanly correct correctly properly fails failing failed sure matches visible expected the an is
    are that this
    """
)
"""Words of a sentence that are hardly ever arguments."""
_FUNCTION_WORDS = _to_set(
    """
    it its with and or of to in on at no not all any each when then into from by as has have after before
    """
)
_REQUESTS = _to_set(
    """
    verify check confirm ensure inspect open visit run see look manual visual try navigate click start none tbd todo
    done missing pass passing green fine good ok works tests test all everything
    """
)
"""Words that begin a sentence, or make up a short one: "tests pass", "all green"."""

_ALSO_ENGLISH = _to_set("test find file time next set install sort convert patch robot tree strings")
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
    """Whether Proofstone should run the line as it is."""
    unquoted_words = _split_unquoted(line)
    words = [*dropwhile(_ASSIGNMENT.match, unquoted_words)]
    if not words:
        return bool(unquoted_words)
    bracketed = words[0][0] in "!({"
    assigned = len(words) < len(unquoted_words)
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
    return len(words) <= 3 and all(_PLAIN.fullmatch(word) and word not in _REQUESTS | _FUNCTION_WORDS for word in words)


def is_clearly_command(text: str) -> bool:
    """Like `is_command`, for code within a sentence, where a lone name is just a name: `` `isReady` is set ``."""
    words = _split_unquoted(text)
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


def find_words(text: str) -> list[str]:
    """Return the words of a sentence."""
    return _WORD.findall(text)


def _split_unquoted(line: str) -> list[str]:
    """Split the line into words, with a mark in place of everything quoted: quotes do not show what the line is."""
    return _QUOTED.sub(_QUOTE, line).split()


def _is_program(first: str) -> bool:
    name = first.rstrip(");")
    if name in _PROGRAMS or _STARTS_PATH.match(name) or _SCRIPT.fullmatch(name) or name == "Rscript":
        return True
    return name.lower() in _PROGRAMS and not name[1:].islower()  # MSBuild, but not Docker


def _is_sentence(words: list[str]) -> bool:
    first, rest = words[0], _plain_arguments(words[1:])
    if len(words) > 1 and _SENTENCE_END.search(words[-1]) and not _PATH.fullmatch(words[-1]):
        return True
    is_capitalized = first[0].isupper() and first.isalpha() and not _is_program(first)
    if first.lower() in _OUTCOMES and not _is_program(first):
        return True
    lowered = [word.strip(",.;:()").lower() for word in (words[1:] if is_capitalized else rest)]
    outcomes = sum(word in _OUTCOMES for word in lowered)
    small = sum(word in _FUNCTION_WORDS for word in lowered)
    shell = any(_SIGN.search(word) or _PATH.fullmatch(word) for word in words)
    if is_capitalized:
        return bool(outcomes or small) or not shell
    if not first.isascii() and not shell:
        return True
    foreign = not shell and any(word.isalpha() and not word.isascii() for word in lowered)
    request = first in _REQUESTS and not _is_program(first)
    return outcomes > 0 or foreign or small >= (3 if shell else 2) or (request and small > 0)


def _plain_arguments(words: list[str]) -> list[str]:
    """Return the arguments that are not the value of an option and do not follow `--`."""
    arguments, after_option = [], False
    for word in words:
        if word == "--":
            break
        if not after_option:
            arguments.append(word)
        after_option = bool(_OPTION.match(word)) and "=" not in word
    return arguments
