from __future__ import annotations

import pytest

from assay.core.commands import is_vacuous


@pytest.mark.parametrize(
    "command",
    ["true", ":", "echo done", "exit 0", "exit", "ls -la", "cat README.md", "true && echo ok", "/bin/true", "", "# x",
     "echo a; true", "cat x | cat", "printf 'ok\\n'", "true\necho ok"],
)  # fmt: skip
def test_these_prove_nothing(command: str) -> None:
    assert is_vacuous(command)


@pytest.mark.parametrize(
    "command",
    ["pytest -q", "make test", "true && pytest", "exit 1", "test -f x", "[ -f x ]", "./check.sh", "grep -q x file",
     "cat x | grep y", "python -c 'print(1)'", "echo 'unclosed", "! true"],
)  # fmt: skip
def test_these_can_fail(command: str) -> None:
    assert not is_vacuous(command)
