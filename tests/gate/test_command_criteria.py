"""Whether a verify command asserts what a criterion says: by its own text and values, never by shared words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proofstone.gate.rules.command_criteria import is_asserted, read_command, read_criterion
from tests.rows import each_row

TOTAL = 'test "$(python -m shop total)" = 42'
ADD = "python -c 'from calc import add; assert add(2, 3) == 5'"


@each_row(
    ("criterion", "command"),
    [
        ("`python -m shop total` prints 42", TOTAL),
        ("`python -m shop total` prints 42.", TOTAL),
        ("Running `python -m shop total` prints `42`", TOTAL),
        ('The command `python -m shop total` outputs "42"', '[ "$(python -m shop total)" = "42" ]'),
        ("The output of `python -m shop total` is 42", "[[ $(python -m shop total) == 42 ]]"),
        ("`python -m shop total` prints 42", 'test 42 = "$(python -m shop total)"'),
        ("`python -m shop total` prints 42", "python -m shop total | grep -qx 42"),
        ("`python -m shop total` prints 42", "python -m shop total | grep -q '^42$'"),
        ("`python -m shop total` prints 42", 'make build && test "$(python -m shop total)" = 42'),
        ('`shop greet` prints "hello, world"', "test \"$(shop greet)\" = 'hello, world'"),
        ("The output of `shop greet` contains hello", "shop greet | grep -q hello"),
        ("`shop greet` mentions `1.50`", "shop greet | grep -qF 1.50"),
        ("`shop greet` prints hello and exits with 0", 'shop greet && test "$(shop greet)" = hello'),
        ("`shop pay` exits with 3", "shop pay; test $? -eq 3"),
        ("`shop pay` exits with code 3", 'shop pay; [ "$?" = 3 ]'),
        ("`shop pay --bad` fails", "! shop pay --bad"),
        ("`pytest -q` passes", "pytest -q"),
        ("`pytest -q` exits 0", "pytest   -q"),
        ("`make lint` succeeds", "make lint && make test"),
        ("`add(2, 3)` returns 5", ADD),
        ("`add(2,3)` returns `5`", "python3 -c 'import calc; assert calc.add(2, 3) == 5'"),
        ("`add(2, 3) == 5`", ADD),
        ("`add(2, 3) == 5` holds", ADD),
        ("`greet('a')` returns 'hi a'", "python -c \"from g import greet; assert greet('a') == 'hi a'\""),
    ],
)
def test_what_a_command_asserts_is_shown_by_it(criterion: str, command: str) -> None:
    assert is_asserted(criterion, command)


@each_row(
    ("criterion", "command"),
    [
        ("`python -m shop total` prints 42", 'test "$(python -m shop total)" = 43'),
        ("`python -m shop total` prints 42", "python -m shop total"),
        ("`python -m shop total` prints 42", "python -m shop total | grep -q 42"),
        ("`python -m shop total` prints 42", 'test "$(python -m shop total --fast)" = 42'),
        ("`python -m shop total` prints 42", f"{TOTAL} || true"),
        ("`python -m shop total` prints 42", f"{TOTAL}; true"),
        ("`python -m shop total` prints 42", 'test "$(python -m shop total)" = "$(echo 42)"'),
        ("`python -m shop total` prints 42", 'test "$(python -m shop total)" != 42'),
        ("`python -m shop total` prints 42", "echo 42 | grep -qx 42"),
        ("`python -m shop total` prints 42 and exits with 0", TOTAL),
        ("`python -m shop total` prints 42 in all locales", TOTAL),
        ("The total of the shop is 42", TOTAL),
        ("python -m shop total prints 42", TOTAL),
        ("`pytest -q` covers every edge case", "pytest -q"),
        ("`pytest -q` is used in CI", "pytest -q"),
        ("`shop greet` mentions 1.50", "shop greet | grep -q 1.50"),
        ("`shop greet` mentions hello", "shop greet | grep -qv hello"),
        ("`shop pay` exits with 3", "shop pay; test $? -eq 4"),
        ("`shop pay` exits with 3", "shop pay"),
        ("`shop pay` fails", "shop pay"),
        ("`add(2, 3)` returns 5", "python -c 'from calc import add; assert add(2, 3)'"),
        ("`add(2, 3)` returns 5", "python -c 'from calc import add; assert add(3, 2) == 5'"),
        ("`add(2, 3)` returns 5", "python -c 'if False: assert add(2, 3) == 5'"),
        ("`add(2, 3)` returns 5", "python -c 'assert add(2, 3) == 5 or True'"),
        ("`add(2, 3)` returns 5", "python -c 'assert add(2, 3) != 5'"),
        ("`add(2, 3)` returns 5", "python -c 'exit(0); assert add(2, 3) == 5'"),
        ("`add` returns 5", ADD),
        ("it works", ADD),
        ("", ""),
    ],
)
def test_shared_words_show_nothing(criterion: str, command: str) -> None:
    assert not is_asserted(criterion, command)


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_is_read(criterion: str, command: str) -> None:
    list(read_criterion(criterion))
    list(read_command(command))
    is_asserted(f"`{criterion}` prints {command}", f'test "$({criterion})" = {command}')
