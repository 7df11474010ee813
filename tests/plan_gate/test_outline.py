"""A plan in any form: what code sees in it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofstone.plan_gate.rules.outline import outline_plan
from proofstone.plan_gate.rules.plan_rules import find_rule_findings, is_trivial_plan, rate_complexity, rate_quality
from proofstone.plans.mentions import find_paths_in_code, find_paths_in_prose, is_check_command
from tests.plans.reading import element, fixture
from tests.rows import each_row

DESIGN = """\
# Faster imports

## Background

1. The importer in `src/importer.py` reads every row twice.

## Plan

1. Read each row once, in `src/importer.py`.
   - keep the order of the rows
   Verify: `pytest -q tests/test_importer.py`
   Done when: 10,000 rows take 2 s
2. Create `src/cache.py:12`, which depends on step 1.
   ```bash
   $ pytest -q tests/test_cache.py
   npm install
   ```
- a bullet
3. Say so in docs/import.md.

That is all.

## Acceptance criteria

- [ ] `import --check` prints 0
- [ ] every row is there
"""


def test_the_steps_of_a_design() -> None:
    found = outline_plan(DESIGN, "design.md")
    first, second, bullet, third = found.steps
    assert (found.title, found.plan, found.problems, found.is_plan) == ("Faster imports", None, (), False)
    assert (first.line, first.end, first.files) == (9, 12, ("src/importer.py",))
    assert (first.verify, first.done) == (("pytest -q tests/test_importer.py",), ("10,000 rows take 2 s",))
    assert (second.line, second.files, second.verify) == (13, ("src/cache.py",), ("pytest -q tests/test_cache.py",))
    assert (bullet.name, bullet.is_ordered) == ("a bullet", False)
    assert (third.line, third.files, third.is_ordered) == (19, ("docs/import.md",), True)
    assert found.whole.done == ("`import --check` prints 0", "every row is there")
    assert found.files == ("src/importer.py", "src/cache.py", "docs/import.md")


@each_row(
    ("text", "names"),
    [
        ("## Step 1: a\n\n- x\n\n## Step 2: b\n1. y\n", ["Step 1: a", "Step 2: b"]),
        ("## Phase 1: a\n### Task 1.1: b\n### Task 1.2: c\n", ["Task 1.1: b", "Task 1.2: c"]),
        ("## Tasks\n### Parse it\n#### Verification\nmake check\n### Print it\n## Risks\n", ["Parse it", "Print it"]),
        ("- [ ] a\n- [x] b\n  - [ ] nested\n- c\n", ["a", "b"]),
        ("Steps:\n- a\n- b\n", ["a", "b"]),
        ("## Goals\n1. a\n## Steps\n1. b\n## Design\n1. c\n", ["b"]),
        ("1. **Parser**: a\n2. b\n\nText.\n- c\n", ["Parser: a", "b"]),
        ("- a\n- b\n", []),
        ("Just a text about `steps`.\n", []),
        ("# T\n## 1. Extract it\n## 2. Print it\n## 3. Testing\n", ["1. Extract it", "2. Print it"]),
        ("# T\n## 1. Introduction\n## 2. Protocol\n", []),
        ("**Step 1** - a\n- x\n\nmore\n**Step 2**: b\n", ["Step 1 - a", "Step 2: b"]),
        ("Step 1 is hard.\n", []),
        ("| # | Task |\n|---|---|\n| 1 | a |\n| 2 | b |\n", ["a", "b"]),
        ("| What | Why |\n|---|---|\n| a | b |\n", []),
        ("```\n1. a\n```\n<!--\n1. b\n-->\n> 1. c\n", []),
    ],
)
def test_what_reads_like_a_step_is_one(text: str, names: list[str]) -> None:
    assert [step.name for step in outline_plan(text, "x.md").steps] == names


@each_row(
    ("text", "verify", "done"),
    [
        ("1. a\n   Verify: `make check`\n", ("make check",), ()),
        ("1. a\n   **Verify:** pytest -q tests/a.py\n", ("pytest -q tests/a.py",), ()),
        ("1. a\n   Verify: echo done\n", ("echo done",), ()),
        ("1. a, until `pytest -q` passes\n", ("pytest -q",), ()),
        ("1. run `npm install`\n", (), ()),
        ("1. Add it. Verify: `docker compose config`. Done: 3 rows\n", ("docker compose config",), ("3 rows",)),
        ("1. Add `a`. **Verify:** echo done\n", ("echo done",), ()),
        ("1. a\nVerify: `make check`\n", ("make check",), ()),
        ("| Step | Files | Verify | Done |\n|--|--|--|--|\n| a | b.py | `make check` | c |\n", ("make check",), ("c",)),
        ("1. a\n   Done when: b; c\n", (), ("b", "c")),
        ("1. a\n   Acceptance criteria:\n   - b\n   - `make check` ok\n", ("make check",), ("b", "`make check` ok")),
        ("## Step 1\n### Test plan\n- `make lint`\n### Definition of done\n- b\n", ("make lint",), ("b",)),
        ("## Step 1\nVerification:\n\n```sh\nmake lint\ngo vet ./a\n```\n", ("make lint", "go vet ./a"), ()),
    ],
)  # fmt: skip
def test_how_a_step_is_verified_and_when_it_is_done(text: str, verify: tuple[str, ...], done: tuple[str, ...]) -> None:
    [step] = outline_plan(text, "x.md").steps
    assert (step.verify, step.done) == (verify, done)


def test_what_belongs_to_no_step_belongs_to_the_whole() -> None:
    found = outline_plan("1. a\n\n## Verification\n`make check`\n", "x.md")
    assert (found.steps[0].verify, found.whole.verify) == ((), ("make check",))


@pytest.mark.parametrize(
    ("text", "steps", "whole"),
    [
        ("- [ ] a\n- [ ] b\nVerify: `make check`\n", [(), ()], ("make check",)),
        ("1. a\nVerify: `make a-test`\n2. b\nVerify: `make check`\n", [("make a-test",), ("make check",)], ()),
        ("- [ ] a\n- [ ] Run `make check`\n", [(), ("make check",)], ("make check",)),
        ("- [ ] a\n- [ ] Add a rule to `make check`\n", [(), ("make check",)], ()),
    ],
)
def test_what_ends_a_list_holds_for_all_of_it(text: str, steps: list[tuple[str, ...]], whole: tuple[str, ...]) -> None:
    found = outline_plan(text, "x.md")
    assert ([step.verify for step in found.steps], found.whole.verify) == (steps, whole)


@each_row(
    ("said", "found"),
    [
        ("docs.python.org/3/whatsnew.html, github.com/org/repo/x.py, dist/main.js, node_modules/a/b.js", []),
        ("src/a.py and docs/b.md, tests/c.py.", ["src/a.py", "docs/b.md", "tests/c.py"]),
        ("see setup.cfg:12 (and ./src/d.ts)", ["setup.cfg", "src/d.ts"]),
        ("in src/proofstone/core/ only", ["src/proofstone/core/"]),
        ("and/or, he/she, TCP/IP, 1/2, e.g. this, v1.2.3, 3.11", []),
        ("https://x.org/a/b.md, www.x.org, Node.js, foo.bar(), /etc/passwd, ../x.py, ~/y.py", []),
    ],
)
def test_paths_among_words(said: str, found: list[str]) -> None:
    assert [*find_paths_in_prose(said)] == found


@each_row(
    ("code", "found"),
    [
        ("src/a.py:3", ["src/a.py"]),
        ("src/{a,b}.py", ["src/a.py", "src/b.py"]),
        ("src/core", ["src/core"]),
        ("Makefile", ["Makefile"]),
        ("app/[id]/page.tsx", ["app/[id]/page.tsx"]),
        ("text/html", []),
        ("origin/main", []),
        ("@scope/package", []),
        ("self.value", []),
        ("/api/users", []),
        ("GET src/a.py", []),
    ],
)
def test_paths_that_code_is(code: str, found: list[str]) -> None:
    assert [*find_paths_in_code(code)] == found


@each_row(
    ("code", "check"),
    [("pytest -q tests/a.py", True), ("npm run lint", True), ("! grep -r x src", True), ("npm install", False),
     ("git checkout -b x", False), ("isReady", False), ("--verify 'x'", False)],
)  # fmt: skip
def test_code_that_is_a_check(code: str, check: bool) -> None:
    assert is_check_command(code) is check


@each_row(
    "line",
    [
        "The limit is TBD.", "TODO: choose one", "Which one ???", "[NEEDS CLARIFICATION: who pays?]",
        "The name is to be decided.", "We have to figure out the order.", "It is still unknown.", "Owner: unknown",
        "It is unclear whether it scales.", "FIXME", "We decide later.", "Not yet decided.",
        "- [ ] TODO choose", "The rate: TODO.", "| a | TODO |", "Fix the sum. TODO(ann): which?",
        "The owner (unknown) pays.",
        "Whether to cache is still open. We go on.", "The format is still open", "It is unclear if it scales.",
    ],
)  # fmt: skip
def test_words_that_leave_something_open(line: str) -> None:
    assert [one.line for one in outline_plan(f"# A\n\n{line}\n", "x.md").markers] == [3]


@each_row(
    "text",
    [
        "Unknown keys are ignored; an unknown user gets 404.", "Build a todo app.", "Remove the TODO comments.",
        "`TODO` is refused.", 'It says "TBD" there.', "> TBD", "```\n# TODO\n```", "<!-- TBD -->", "Really??",
        "## Open questions\n- none\n", "Remove all TODO and FIXME notes.", "Resolve every TODO: none may stay.",
        "Add a TODO column.", "No FIXME is left.", "Replace the XXX in it.", "The handle is still open after a crash.",
        "The name is unclear if missing.", "Raise KeyError (unknown) then.",
    ],
)  # fmt: skip
def test_words_that_leave_nothing_open(text: str) -> None:
    assert outline_plan(text, "x.md").markers == ()


def test_open_questions_are_markers_one_a_line() -> None:
    found = outline_plan("## Open questions\n- Who pays, TBD, ???\n- Since when?\n", "x.md")
    assert [(one.line, one.text) for one in found.markers] == [(2, "TBD"), (3, "Since when?")]


def test_a_plan_is_read_by_its_own_reader() -> None:
    found = outline_plan(fixture("plain"), "PLAN.md")
    assert found.plan is not None
    assert [(step.line, step.end, step.files) for step in found.steps] == [
        (40, 46, ("src/ids.py", "tests/test_ids.py")),
        (48, 55, ("src/store.py", "tests/test_store.py")),
    ]
    assert all(step.is_ordered and step.verify and step.done for step in found.steps)
    assert [step.is_checkpoint for step in outline_plan(fixture("checkpoints"), "x").steps] == [True, False, True, True]
    assert [step.line for step in outline_plan(fixture("pasted"), "PLAN.md").steps] == [7, 19]


def test_a_plan_that_cannot_be_read_is_still_a_plan() -> None:
    found = outline_plan('<task type="auto>\n<name>A</name>\n', "PLAN.md")
    assert (found.plan, found.is_plan, found.steps) == (None, True, ())
    assert {problem.rule for problem in found.problems} == {"broken-tag", "no-task"}


def test_a_text_that_speaks_of_tasks_is_none() -> None:
    assert not outline_plan("We write a `<task>` for each; a <task> is small.\n", "x.md").is_plan


def test_commands_and_code_of_a_plan_leave_nothing_open() -> None:
    text = element(verify="! grep -rn TODO src", action="Remove it:\n```py\n# TODO\n```\nThe rest is TBD.")
    assert [(one.line, one.text) for one in outline_plan(text, "PLAN.md").markers] == [(8, "TBD")]


def test_what_stands_beside_a_command_is_heard() -> None:
    parts = element(verify="! grep -rn TBD src", action="The rate is still undecided.").splitlines()
    text = f"{parts[0]}\n{''.join(parts[1:-1])}\n{parts[-1]}\n"
    assert [(one.line, one.text) for one in outline_plan(text, "PLAN.md").markers] == [(2, "still undecided")]


def test_who_waits_for_what_does_not_exist_has_no_place() -> None:
    text = element(attributes='depends_on="9"') + element(name="Two", files="b.py")
    assert [step.is_ordered for step in outline_plan(text, "PLAN.md").steps] == [False, True]


def test_words_are_found_whole_in_any_case_and_once() -> None:
    found = outline_plan("The API and the api; a Webhook, webhooks, Stripe; gdpr. Capital, rapid, restart.", "x.md")
    assert (found.domains, found.integrations) == (("api",), ("webhook", "payment service"))
    assert found.compliance == ("GDPR",)


def test_line_ends_do_not_matter() -> None:
    text = DESIGN.replace("\n", "\r\n")
    assert outline_plan(f"\ufeff{text}", "x.md") == outline_plan(DESIGN, "x.md")


PIECES = [
    *("# ", "## ", "### Step 1\n", "## Tasks\n", "## Verification\n", "Verify: ", "Done when: ", "Acceptance:\n"),
    *("1. ", "- ", "- [ ] ", "  ", "\t", "\n", "\n\n", "\r\n", "```\n", "```sh\n", "`", "``", "<!--", "-->", "> ", "*"),
    *("src/a.py", "a/b", "make check", "echo x", "TBD", "???", "TODO", "it works", "create ", "fix ", "in ", ".", ":"),
    *('<task type="auto">', "</task>", "<verify>", "</verify>", "<files>", "</files>", "<done>", "</done>", "<task"),
    *("---\n", "files_modified: [a.py]\n", "Open questions:\n", "ü", "日本", "\u2028", "\x00", "{a,b}", "*", "(", "["),
]  # fmt: skip
TREE = ("src/a.py", "src/b/c.py", "tests/test_a.py", "README.md")


def whole(text: str) -> None:
    """All that code says of a text, and that it can be said."""
    found = outline_plan(text, "x.md")
    lines = found.text.count("\n") + 1
    for step in found.steps:
        assert 1 <= step.line <= step.end <= lines
    assert all(1 <= one.line <= lines for one in found.markers)
    assert 0 <= rate_complexity(found).total <= 16
    assert rate_quality(found)[1]
    is_trivial_plan(found, TREE)
    for one in find_rule_findings(found, TREE):
        assert 1 <= one.line <= lines
        assert one.draft.claim.startswith(f"line {one.line}: ")


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    whole(text)


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_any_heap_of_pieces_is_read(text: str) -> None:
    whole(text)


@pytest.mark.few(10)
@pytest.mark.parametrize(
    "piece",
    [
        "<", "-", "- ", "`", "` ", "```\n", "`a` ", "1. ", "1. TBD\n", "## Step 1\n", "src/x/a.py ", "`src/x/a.py` ",
        ".", "?", "\n", " ", "\"", "<!--", "> ", "**", "Verify: make check\n", "Acceptance:\n", "- [ ] works\n", "(",
        "create src/x/b.py ", "Steps:\n", "a:", "<task>\n", "\t", "to be ", "The page is fast; ", "#", "[", "a/",
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [128 * 1024, pytest.param(1024 * 1024, marks=pytest.mark.sweep)])
def test_a_text_full_of_one_thing_ends(piece: str, size: int) -> None:
    """By construction: a search that went over the rest of the text again and again would take hours here."""
    whole(piece * (size // len(piece)))


@pytest.mark.few(1)
@pytest.mark.parametrize("piece", ["x", "<", "`a` ", "a/b.py, "])
def test_one_line_of_a_megabyte_ends(piece: str) -> None:
    whole(f"1. {piece * (1024 * 1024 // len(piece))}\n")


@pytest.mark.parametrize("form", ["fix src/x{0}/a.py\n", "1. `src/a{0}.py` TBD {0}\n", "`pytest tests/test_{0}.py` "])
def test_a_text_with_many_different_things_ends(form: str) -> None:
    whole("".join(form.format(number) for number in range(4_000)))
