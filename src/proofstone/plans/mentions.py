"""Find the paths and commands that a sentence mentions.

Prose is full of words that only look like a path (`and/or`, `Node.js`, a version, an address). A path without a slash
needs a known file extension; a path without an extension needs a slash and must be marked as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from proofstone.plans.fields import is_clearly_command, parse_paths

_MAX_LENGTH = 200
_WORD = re.compile(r"[^\s()<>\[\]{}\"'`,;|“”„*]+")
_ENDINGS = re.compile(
    r"(?:pyi?|ipynb|[cm]?js|tsx?|jsx|vue|svelte|go|rs|java|kts?|scala|swift|rb|php|c|h|cc|cpp|hpp|cs|fs|exs?|erl|hs|lua"
    r"|pl|r|jl|dart|sh|bash|zsh|ps1|sql|graphql|proto|tf|mdx?|rst|adoc|txt|jsonc?|ya?ml|toml|ini|cfg|conf|env|lock"
    r"|xml|html|s?css|less|csv|tsv|svg|png)",
    re.IGNORECASE,
)
_NAMES = frozenset(("makefile", "dockerfile", "jenkinsfile", "procfile", "justfile"))
_NOT_FILES = frozenset(("node.js", "next.js", "vue.js", "nuxt.js", "react.js", "express.js", "three.js", "d3.js"))
_PATH = re.compile(r"[\w.@+*?{},()\[\]-]+(?:/[\w.@+*?{},()\[\]-]+)*/?")
_ENDING = re.compile(r"\.([A-Za-z][A-Za-z0-9]{0,9})$")
_NOT_A_PATH = re.compile(
    r"(?:text|application|image|audio|video|font|multipart|origin|upstream|feature|feat|bugfix|hotfix|refs)/|@"
    r"|(?:[\w-]{1,63}\.){1,9}(?:com|org|net|io|dev|de|eu|uk|edu|gov|ai|app|co|info|cloud)/"
)
"""Media types, branches, scoped packages, addresses without a scheme."""
BUILD_FOLDERS = ("dist/", "build/", "out/", "target/", "node_modules/", "coverage/")
"""Folders of generated files, which are seldom committed."""
_AFTER = re.compile(r"(?::\d+(?:-\d+)?)?[.:!?…]*$")
_CHECK = re.compile(
    r"(?:^|[\s/:.-])(?:pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|cypress|playwright|tests?|check"
    r"|lint|mypy|pyright|tsc|ruff|eslint|clippy|vet|verify|validate|assert|grep|diff|cmp|build|curl)(?:$|[\s:._-])"
)


def looks_like_file(path: str) -> bool:
    """Whether the path looks like a file rather than a folder, a branch or a route."""
    return bool(_ENDING.search(path)) or path.rpartition("/")[2].lower() in _NAMES


def find_paths_in_prose(plain: str) -> Iterator[str]:
    """Find the paths among the words of a sentence."""
    for match in _WORD.finditer(plain):
        word = match[0].removeprefix("@")
        if "." not in word and "/" not in word:
            continue
        path = _AFTER.sub("", word[: _MAX_LENGTH + 1]).removeprefix("./")
        if _may_be_path(path) and (_is_file(path) or (path.endswith("/") and path.count("/") > 1)):
            yield path


def find_paths_in_code(code: str) -> Iterator[str]:
    """Find the paths in inline code: `` `src/thing.py:12` ``, `` `src/{a,b}.py` ``."""
    if len(code) > _MAX_LENGTH or not code or code[0] == "@" or " " in code or "`" in code:
        return
    if "." not in code and "/" not in code and code.lower() not in _NAMES:
        return
    for path in parse_paths(f"`{code}`"):
        if _may_be_path(path) and (_is_file(path) or "/" in path):
            yield path


def is_check_command(command: str) -> bool:
    """Whether code within a sentence is a command that checks something: `pytest -q`, but not `npm install`."""
    if len(command) > 10 * _MAX_LENGTH or command.startswith("-"):
        return False
    resembles_check = command.startswith(("[ ", "[[ ", "! ")) or bool(_CHECK.search(command))
    return resembles_check and is_clearly_command(command)


def _may_be_path(path: str) -> bool:
    if not path or len(path) > _MAX_LENGTH or path[0] in "/~$-" or ".." in path or "://" in path:
        return False
    if path.startswith(BUILD_FOLDERS):
        return False
    return bool(_PATH.fullmatch(path)) and not _NOT_A_PATH.match(path) and path.lower() not in _NOT_FILES


def _is_file(path: str) -> bool:
    ending = _ENDING.search(path)
    if ending is None:
        return path.rpartition("/")[2].lower() in _NAMES
    return bool(_ENDINGS.fullmatch(ending[1])) and not path[: ending.start()].endswith(("/", "."))
