"""The pipeline as tables: its steps, the edges between them with their limits, and the conditions that stop it.

The orchestrator's workflow, the dispatch patterns and the diagram are built from these tables. Numbers that the product
defines elsewhere are imported from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from proofstone.agents.models import FaultKind
from proofstone.agents.roles.models.pipeline import ResearchFocus, ReviewFocus
from proofstone.agents.rules.budget import FAULT_POLICIES
from proofstone.agents.rules.conversation import MAX_REPAIRS
from proofstone.check.models import CheckKind
from proofstone.common.models import Confidence
from proofstone.export.schemas import MAX_SELF_CORRECTIONS
from proofstone.gate.rules.pass_rule import MIN_SIGNALS, MIN_SIGNALS_LARGE
from proofstone.gate.rules.state_machine import MAX_ATTEMPTS

FEATURE_FOLDER: Final = "docs/feature/<feature-slug>"
BASELINE_TAG: Final = "pipeline-baseline-<run_id>"

MAX_PARALLEL_AGENTS: Final = 4
RESEARCHERS: Final = len(ResearchFocus)
RESEARCHERS_NEEDED: Final = 2
REVIEWERS: Final = len(ReviewFocus)
APPROVALS_NEEDED: Final = 2
DESIGN_REVISIONS: Final = 1
REPLANS: Final = 3
REVIEW_ROUNDS: Final = 2
MAX_STEP_REPEATS: Final = 1
"""How often a person may repeat a step at an approval gate."""
MAX_TRANSIENT_RETRIES: Final = FAULT_POLICIES[FaultKind.UNAVAILABLE].retries
MAX_REDISPATCHES: Final = int(FAULT_POLICIES[FaultKind.MALFORMED].can_repeat)


class PipelineStep(NamedTuple):
    id: str
    title: str
    agent: str
    """The agent that does the step. The orchestrator itself if no agent is dispatched."""
    note: str
    """The note in the diagram."""
    does: str
    """The orchestrator's instructions."""
    pattern: str = ""
    approval: bool = False


class PipelineEdge(NamedTuple):
    source: str
    target: str
    when: str = ""
    bound: str = ""
    """The limit of a loop back."""


STEPS: Final = (
    PipelineStep(
        "0",
        "Setup",
        "orchestrator",
        "git, run id, resume, pushback",
        "Make sure that this is a git repository with a clean work tree (`git status --porcelain`); changes that are "
        "not of an earlier run of this feature are the person's to sort out first. On `main` or `master` go to a "
        "branch `proofstone/<feature-slug>`. Make the run id: UTC time and six hex digits, "
        "`20260226T143000Z-1a2b3c`. See "
        "which outputs are there already "
        f"(`git ls-files --cached --others {FEATURE_FOLDER}`) and go on after the last step whose "
        f"`completion.status` is "
        "`DONE`. Weigh the request: ask the person about concerns in interactive mode; in autonomous mode log them "
        "and go on, but stop at one that is a blocker.",
    ),
    PipelineStep(
        "1",
        f"Research ×{RESEARCHERS}",
        "researcher",
        "Pattern A",
        f"Dispatch the researcher {RESEARCHERS} times at once, once for each focus: {', '.join(ResearchFocus)}. Those "
        f"that fail are asked once more. With fewer than {RESEARCHERS_NEEDED} `DONE` the run ends in `ERROR`.",
        "A",
    ),
    PipelineStep(
        "1a",
        "Approval",
        "orchestrator",
        "gate-post-research",
        "`gate-post-research`: show what was found, in a few sentences, and let the person choose.",
        approval=True,
    ),
    PipelineStep(
        "2",
        "Specification",
        "spec",
        "criteria, pushback",
        "Dispatch the spec agent with the request and all research. Treat its `pushback` as in step 0; what the person "
        "says to it goes back to the spec agent once, as `answers`.",
        "C",
    ),
    PipelineStep(
        "3",
        "Design",
        "designer",
        "decisions with alternatives",
        "Dispatch the designer with the specification and the research; on a revision also with the reviews.",
        "C",
    ),
    PipelineStep(
        "3b",
        f"Design review ×{REVIEWERS}",
        "adversarial-reviewer",
        f"{', '.join(ReviewFocus)}",
        f"Dispatch the adversarial reviewer {REVIEWERS} times at once with `scope: design`, once for each focus: "
        f"{', '.join(ReviewFocus)}; each with another model where you can choose one, and say so where you cannot. "
        "Then decide by the rows about a review.",
        "A",
    ),
    PipelineStep(
        "4",
        "Planning",
        "planner",
        "tasks with risk 🟢 🟡 🔴",
        "Dispatch the planner with specification, design and what is left of the reviews.",
        "C",
    ),
    PipelineStep(
        "4a",
        "Approval",
        "orchestrator",
        "gate-post-planning",
        "`gate-post-planning`: show tasks and risks, every 🔴 file by name, and let the person choose.",
        approval=True,
    ),
    PipelineStep(
        "5",
        "Implementation",
        "implementer",
        f"one task each, at most {MAX_PARALLEL_AGENTS} at once",
        f"Mark where the work starts: `git tag {BASELINE_TAG}`. Dispatch the implementer once for each task, in "
        f"the order "
        f"of `depends_on`, at most {MAX_PARALLEL_AGENTS} at once, and never two at once whose files overlap. "
        f"Nobody stages or "
        "commits.",
        "B",
    ),
    PipelineStep(
        "6",
        "Verification",
        "verifier",
        "one for each task, tiers 1 to 4",
        "Dispatch one verifier for each finished task. Then look for yourself: "
        f"`proofstone check --base {BASELINE_TAG} --json`; its exit code decides, not what anybody reports. A task "
        f"passes with "
        f"at least {MIN_SIGNALS} distinct passing checks ({MIN_SIGNALS_LARGE} for a Large one), none that "
        f"failed or could not "
        "be verified, no regression, and no file changed that was not declared.",
        "B",
    ),
    PipelineStep(
        "6r",
        "Replan",
        "planner",
        "what failed, and a directive",
        "Dispatch the planner again with `failures` and a `directive` that says what must differ. A task that failed "
        f"twice is taken back first: the implementer restores its files from `{BASELINE_TAG}`.",
        "B",
    ),
    PipelineStep(
        "7",
        f"Code review ×{REVIEWERS}",
        "adversarial-reviewer",
        f"{', '.join(ReviewFocus)}",
        f"Dispatch the adversarial reviewer {REVIEWERS} times at once with `scope: code`, once for each focus; "
        f"`subject` is `git diff {BASELINE_TAG}`, `checks` is what step 6 gave. Then decide by the rows about a "
        f"review.",
        "A",
    ),
    PipelineStep(
        "7f",
        "Fix",
        "implementer",
        "through 5 and 6 again",
        "Each finding that must be put right becomes a task for the implementer, and goes through step 6 like any "
        "other before the next round.",
        "B",
    ),
    PipelineStep(
        "8",
        "Knowledge",
        "knowledge-agent",
        "non-blocking",
        "Dispatch the knowledge agent with the outcome and what happened. Its `ERROR` is noted and holds up nothing.",
        "C",
    ),
    PipelineStep(
        "9",
        "Commit",
        "orchestrator",
        "only with confidence of at least medium",
        "Stage the files of the tasks (`git add -- <files>`), run `proofstone check --staged`, and commit only "
        "if it exits "
        "with 0 and the confidence is at least medium. Without `proofstone` nothing is committed: hand over to "
        "the person.",
    ),
    PipelineStep(
        "8b",
        "Evidence bundle",
        "knowledge-agent",
        "one page, names the commit",
        "Dispatch the knowledge agent once more, with the commit if there is one, for `evidence-bundle.md`: confidence "
        "and what would raise it, checks by task, reviews, files and risks, known issues, how to take it back. Also "
        "when the run was given up.",
        "C",
    ),
)

EDGES: Final = (
    PipelineEdge("0", "1"),
    PipelineEdge("1", "1a"),
    PipelineEdge("1a", "2"),
    PipelineEdge("1a", "1", "expand", f"max {MAX_STEP_REPEATS}"),
    PipelineEdge("2", "3"),
    PipelineEdge("3", "3b"),
    PipelineEdge("3b", "4", "DONE"),
    PipelineEdge("3b", "3", "NEEDS_REVISION", f"max {DESIGN_REVISIONS}"),
    PipelineEdge("4", "4a"),
    PipelineEdge("4a", "5"),
    PipelineEdge("4a", "4", "revise", f"max {MAX_STEP_REPEATS}"),
    PipelineEdge("5", "6"),
    PipelineEdge("6", "7", "DONE"),
    PipelineEdge("6", "6r", "NEEDS_REVISION", f"max {REPLANS}"),
    PipelineEdge("6r", "5"),
    PipelineEdge("6", "8", "given up"),
    PipelineEdge("7", "8", "DONE"),
    PipelineEdge("7", "7f", "NEEDS_REVISION", f"max {REVIEW_ROUNDS} rounds"),
    PipelineEdge("7f", "7"),
    PipelineEdge("8", "9"),
    PipelineEdge("9", "8b"),
    PipelineEdge("8b", "end"),
)
END: Final = "end"


class LoopBudget(NamedTuple):
    loop: str
    most: int
    then: str


BUDGETS: Final = (
    LoopBudget(
        "Retries of a tool inside an agent, for an error that may pass",
        MAX_TRANSIENT_RETRIES,
        "the agent answers `ERROR`",
    ),
    LoopBudget("Retries of an error that will not pass: not found, denied", 0, "the agent answers `ERROR`"),
    LoopBudget("Corrections of an output that is not of its schema", MAX_REPAIRS, "the dispatch counts as failed"),
    LoopBudget("Further dispatches of an agent that failed", MAX_REDISPATCHES, "the step ends in `ERROR`"),
    LoopBudget(
        "Corrections by an implementer of its own work, within an attempt",
        MAX_SELF_CORRECTIONS,
        "it is handed on as it is, and its report says so",
    ),
    LoopBudget("Attempts at one task", MAX_ATTEMPTS, "the task has failed, and a person is asked"),
    LoopBudget("Steps 5 and 6 with a new plan", REPLANS, "the run is given up: nothing is committed, confidence low"),
    LoopBudget(
        "Revisions of the design, steps 3 and 3b",
        DESIGN_REVISIONS,
        "what is left goes on as constraints of the plan and known issues; a blocker halts",
    ),
    LoopBudget(
        "Rounds of code review, step 7",
        REVIEW_ROUNDS,
        "what is left are known issues, confidence low, nothing is committed",
    ),
    LoopBudget(
        "Times that a gate, or the `NEEDS_REVISION` of spec or designer, sends a step back",
        MAX_STEP_REPEATS,
        "at a gate only going on or aborting is left; otherwise `ERROR`",
    ),
)


class GateOption(NamedTuple):
    id: str
    means: str


class ApprovalGate(NamedTuple):
    id: str
    step: str
    options: tuple[GateOption, ...]
    """The first option is the default."""


GATES: Final = (
    ApprovalGate(
        "gate-post-research",
        "1a",
        (
            GateOption("proceed", "go on to the specification"),
            GateOption("expand", f"research once more, with questions that are open; at most {MAX_STEP_REPEATS} time"),
            GateOption("abort", "stop; what was found stays"),
        ),
    ),
    ApprovalGate(
        "gate-post-planning",
        "4a",
        (
            GateOption("approve", "begin with the work"),
            GateOption("revise", f"back to the planner with what the person says; at most {MAX_STEP_REPEATS} time"),
            GateOption("abort", "stop; what was planned stays"),
        ),
    ),
)


class OrchestratorDecision(NamedTuple):
    """One row of the orchestrator's decision table: the same inputs always lead to the same action."""

    when: str
    then: str


DECISIONS: Final = (
    OrchestratorDecision("setup: the work tree has changes", "stop, and ask the person to commit or stash them"),
    OrchestratorDecision("setup or spec: a concern is a blocker", "stop, and ask the person"),
    OrchestratorDecision(f"research: at least {RESEARCHERS_NEEDED} of {RESEARCHERS} `DONE`", "step 1a"),
    OrchestratorDecision("research: fewer, after one more dispatch of those that failed", "`ERROR`"),
    OrchestratorDecision("spec or design: `DONE`", "the next step"),
    OrchestratorDecision(
        "spec or design: `NEEDS_REVISION`", "the step before it with what the summary says, within its budget"
    ),
    OrchestratorDecision(
        "a review: any verdict is `blocker`", "halt: it must be put right, and reviewed anew; nobody waives it"
    ),
    OrchestratorDecision(
        f"a review: {REVIEWERS} submitted, no blocker, at least {APPROVALS_NEEDED} approve, no critical finding open",
        "the next step; what the others found are known issues",
    ),
    OrchestratorDecision(
        "design review: otherwise", f"step 3, at most {DESIGN_REVISIONS} time; then step 4, with the findings"
    ),
    OrchestratorDecision("plan: `DONE`", "step 4a"),
    OrchestratorDecision("plan: `NEEDS_REVISION`", "step 3, within the budget of its revisions"),
    OrchestratorDecision("implementation: every report is there", "step 6, task by task"),
    OrchestratorDecision("verification: every task passes", "step 7"),
    OrchestratorDecision("verification: a task does not pass", f"step 6r, at most {REPLANS} times"),
    OrchestratorDecision("verification: no replan is left", "step 8, confidence low, no commit"),
    OrchestratorDecision(
        "code review: otherwise",
        f"step 7f and a new round, at most {REVIEW_ROUNDS} rounds; then step 8, confidence low, no commit",
    ),
    OrchestratorDecision("knowledge: `DONE` or `ERROR`", "step 9"),
    OrchestratorDecision(
        "confidence at least medium, and `proofstone check --staged` exits with 0", "commit, then step 8b"
    ),
    OrchestratorDecision(
        "confidence low, or it exits with anything else", "no commit; step 8b says what would raise the confidence"
    ),
    OrchestratorDecision(
        "any agent: `ERROR`, or no `completion` that can be read",
        f"dispatch it again, {MAX_REDISPATCHES} time; then `ERROR`",
    ),
)

CONFIDENCE: Final[Mapping[Confidence, str]] = {
    Confidence.HIGH: "`proofstone check` passed with confidence high, no regression, and no reviewer left "
    "anything open",
    Confidence.MEDIUM: "all gates passed, but something is unproven: a changed path that no test covers, a flaky "
    "check, a concern closed without proof, a weaker sandbox",
    Confidence.LOW: "a loop was exhausted, a critical finding is open, a required check could not be verified, or "
    "`proofstone check` did not run",
}

CHECKS_BY_TIER: Final[Mapping[int, tuple[CheckKind, ...]]] = {
    1: (CheckKind.SYNTAX, CheckKind.CONFLICT, CheckKind.SIZE),
    2: (CheckKind.BUILD, CheckKind.TYPES, CheckKind.LINT, CheckKind.TESTS, CheckKind.VERIFY, CheckKind.HELD_OUT),
    3: (CheckKind.IMPORT, CheckKind.SMOKE),
    4: (CheckKind.READINESS,),
}
"""The kinds of check in each tier."""

TIER_CONDITIONS: Final[Mapping[int, str]] = {
    1: "always",
    2: "whatever the project has tools for; the task's own commands among them",
    3: "when tiers 1 and 2 executed nothing of the project's",
    4: "for a Large task: secrets, errors that are handled, something to see it by",
}


def build_diagram() -> str:
    """Return the pipeline as a Mermaid flowchart."""
    lines = ["flowchart TD"]
    for step in STEPS:
        label = f"{step.id} {step.title}<br/>{step.note}"
        opening, closing = ("{", "}") if step.approval else ("[", "]")
        lines.append(f'    {_node(step.id)}{opening}"{label}"{closing}')
    lines.append(f'    {_node(END)}(["Pipeline complete"])')
    lines.append("")
    for edge in EDGES:
        edge_label = "<br/>".join(filter(None, (edge.when, f"({edge.bound})" if edge.bound else "")))
        arrow = f'-- "{edge_label}" -->' if edge_label else "-->"
        lines.append(f"    {_node(edge.source)} {arrow} {_node(edge.target)}")
    return "\n".join(lines)


def _node(step: str) -> str:
    return "DONE" if step == END else f"S{step}"
