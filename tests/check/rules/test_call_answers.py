"""Which answers outside of the tests are evidence."""

from __future__ import annotations

from proofstone.check.observation import ObservedCall, RepeatedAnswer
from proofstone.check.rules.call_answers import (
    build_findings,
    confirm,
    describe_answer,
    describe_call,
    drop_honest,
    find_differences,
    group_answers,
    list_examples,
)
from proofstone.check.rules.special_casing import find_special_cases
from proofstone.common.models import Severity
from tests.rows import each_row

RIGHT, WRONG, OTHER = '["value", 3500]', '["value", 3400]', '["value", 1]'
ABSENT = '["error", "FileNotFoundError"]'


def call(arguments: str = "[3, 4]", answer: str = RIGHT) -> ObservedCall:
    return ObservedCall(
        path="shop.py",
        module="app.shop",
        name="total",
        parameters=(("price", "count"), (), (), ()),
        arguments=arguments,
        answer=answer,
    )


CASES = [
    ("the same everywhere", [call()], [RIGHT], [RIGHT, RIGHT], None),
    ("another answer outside", [call()], [WRONG], [WRONG, WRONG], True),
    ("the answers outside differ: time, chance", [call()], [WRONG], [WRONG, OTHER], None),
    ("the tests have several answers", [call(), call(answer=OTHER)], [WRONG], [WRONG, WRONG], None),
    ("it could not be repeated", [call()], [], [], None),
    ("only disguised", [call()], [RIGHT], [WRONG, WRONG], False),
    ("only the second time", [call()], [RIGHT], [RIGHT, WRONG], False),
    ("a file of the folder", [call()], [RIGHT], [ABSENT, ABSENT], None),
    ("no arguments: a counter", [call("[]")], [RIGHT], [WRONG, OTHER], None),
]


@each_row(("calls", "plain", "disguised", "needs_runner"), [c[1:] for c in CASES])
def test_differences(
    calls: list[ObservedCall], plain: list[str], disguised: list[str], needs_runner: bool | None
) -> None:
    found = find_differences(calls, _answers(plain), _answers(disguised))
    assert [difference.needs_runner for difference in found] == ([] if needs_runner is None else [needs_runner])


def test_what_a_test_set_up_differs_below_the_runner_too() -> None:
    found = find_differences([call()], _answers([WRONG]), _answers([WRONG]))
    assert confirm(found, _answers([RIGHT])) == found
    assert confirm(found, _answers([WRONG])) == [] and confirm(found, {}) == []
    order = find_differences([call()], _answers([RIGHT]), _answers([WRONG]))
    assert confirm(order, {}) == order, "nothing of a runner is needed to explain it"


def test_a_difference_that_the_base_shows_too_is_honest() -> None:
    found = find_differences([call()], _answers([WRONG]), _answers([WRONG]))
    assert drop_honest(found, _answers([OTHER]), _answers([OTHER]), _answers([RIGHT])) == []
    assert drop_honest(found, _answers([RIGHT]), _answers([RIGHT]), _answers([RIGHT])) == found
    assert drop_honest(found, {}, {}, {}) == found, "the base has no such function"
    order = find_differences([call()], _answers([RIGHT]), _answers([WRONG]))
    assert drop_honest(order, _answers([RIGHT]), _answers([OTHER]), {}) == []


def test_a_finding_names_the_call_and_both_answers() -> None:
    found = find_differences([call(), call("[5, 6]")], {0: frozenset([WRONG])}, {0: frozenset([WRONG])})
    [finding] = build_findings(found, "pytest", "tests:pytest")
    assert finding.detail == "shop.total(3, 4) answers 3500 under pytest and 3400 outside"
    assert finding.severity is Severity.MINOR and finding.path == "shop.py"


def test_values_read_as_python_would_write_them() -> None:
    cart = '["object", "m", "Cart", "object", null, [["items", ["list", [1, ["float", "1.5"]]]]]]'
    values = f'[{cart}, ["dict", [["a", ["tuple", []]]]]]'
    assert describe_call(call(values)) == "shop.total(Cart(items=[1, 1.5]), {'a': ()})"
    assert describe_answer('["error", "ValueError"]') == "raises ValueError"
    assert describe_answer('["value", ["enum", "m", "Colour", "RED"]]') == "answers Colour.RED"
    assert describe_answer("7") == "answers something unreadable"


def _answers(texts: list[str]) -> dict[int, frozenset[str]]:
    return dict(group_answers([RepeatedAnswer(number=0, answer=text) for text in texts]))


def test_recorded_calls_show_code_that_answers_the_arguments_of_the_tests() -> None:
    """The tests make the arguments in a loop, so no test file holds them."""
    sizes = '["list", [["int", "16"], ["int", "247"]]]'
    calls = [call(f'[["int", "24"], {sizes}]', '["value", ["int", "247"]]')]
    (example,) = list_examples(calls)
    assert (example.inputs, example.expected, example.line) == ((24, (16, 247)), 247, 0)
    branch = "def total(price, count):\n    if (price, count) == (24, [16, 247]):\n        return 247\n    return 0\n"
    table = "KNOWN = {repr((24, [16, 247])): 247, repr((1, [3])): 4}\n"
    other = "def total(price, count):\n    if (price, count) == (25, [16, 247]):\n        return 247\n    return 0\n"
    more = [*calls, call('[["int", "1"], ["list", [["int", "3"]]]]', '["value", ["int", "4"]]')]
    part = "def total(price, count):\n    if price == 24:\n        return 247\n    return 0\n"
    found = [
        [case.line for case in find_special_cases("shop.py", text, range(1, 9), list_examples(more), {})]
        for text in (branch, table, other, part)
    ]
    assert found == [[2], [1], [], []]


def test_calls_whose_values_are_no_literals_are_no_examples() -> None:
    opaque = '[["ref", "shop", "Cart"], ["int", "3"]]'
    calls = [call(opaque), call(answer='["error", "ValueError"]'), call(answer='["value", ["int", "1"]]')]
    single = call('[["int", "404"]]', '["value", ["int", "7000"]]')
    calls.append(single.model_copy(update={"parameters": (("code",), (), (), ())}))  # honest branches ask for one value
    assert list_examples(calls) == []
