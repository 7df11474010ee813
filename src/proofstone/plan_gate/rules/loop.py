"""The convergence loop: a plan is challenged, researched and judged, until it converges or is sent back. Pure.

    challenge ──► research ──► synthesise ──► decide ──► a verdict, and a closing audit
        ▲                                        │
        └── CONTINUE, or BLOCKED and answered ───┘

Research is RESOLVE if anything is open; SURFACE and PROBE in the first iteration, or if directed. The loop is a
generator that yields effects, several at once if they may be performed in parallel, and receives their results in
order. It ends within three iterations, whatever it receives.

    | who fails | what follows |
    |---|---|
    | a challenger | the challenges so far are carried forward |
    | a researcher | its part is skipped; if its answer cannot be read, what RESOLVE should settle is UNRESOLVABLE |
    | the synthesizer, or any two | the loop ends by the table, with REVISE at best |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeVar

from proofstone.agents.roles.models.plan_gate import (
    ChallengesOutput,
    Directive,
    DirectiveKind,
    DirectiveReason,
    PlanAuditOutput,
    ProbeOutput,
    ResearchMode,
    ResolveOutput,
    SurfaceOutput,
    SynthesisOutput,
)
from proofstone.agents.roles.models.plan_gate_records import (
    Challenge,
    ChallengeLine,
    ChallengeOrigin,
    ChallengeStatus,
    ConvergenceStatus,
    IterationState,
    PlanSeverity,
    RiskLine,
    SurfacedLine,
    UnknownLine,
    UnknownResolution,
)
from proofstone.agents.rules.tool_budgets import ToolBudget, find_kind
from proofstone.common.models import FrozenModel
from proofstone.plan_gate.models import OpenQuestion, PlanEventKind, UserAnswer
from proofstone.plan_gate.rules.board import MAX_ACTIVE, ChallengeBoard, NewChallenge, is_too_weak
from proofstone.plan_gate.rules.decision import (
    CHALLENGERS,
    DirectiveContext,
    OpenChallengeCounts,
    PlanDecision,
    build_convergence,
    compute_score,
    count_open_challenges,
    decide_plan,
    describe_directive,
    explain_refused_directive,
    find_contradictions,
)
from proofstone.plan_gate.rules.effects import (
    AskChallenges,
    AskPlanAudit,
    AskPlanQuestions,
    AskPlanResearch,
    AskSynthesis,
    DiscussionSnapshot,
    DiscussionStep,
    PlanAgentFailure,
    PlanAgentReply,
    PlanAnswers,
    PlanEffectResult,
    PlanLoopResult,
    PlanProgress,
    PlanSubject,
    PlanWorkflow,
    RecordIteration,
)
from proofstone.plan_gate.rules.research import ClaimLookups, PlanResearch

MAX_PLAN_ITERATIONS: Final = 3
FIRST_CHALLENGE_CAPS: Final = {
    ChallengeOrigin.CHALLENGER: 5,
    ChallengeOrigin.DOMAIN_EXPERT: 3,
    ChallengeOrigin.DEVILS_ADVOCATE: 2,
}
LATER_CHALLENGE_CAP: Final = 3
"""New challenges of the challenger from the second iteration on. The others are asked once."""
MAX_RESEARCH_CHALLENGES: Final = 2
"""New challenges per iteration from surfaced context and probed risks together."""
MAX_FAILED_AGENTS: Final = 2

OutputT = TypeVar("OutputT", bound=FrozenModel)


def run_plan_loop(subject: PlanSubject) -> PlanWorkflow:
    """Run the loop to its verdict."""
    loop = _Loop(subject)
    for note in subject.notes:
        loop.board.note(PlanEventKind.TEAM, note)
    loop.board.admit(subject.rules, len(subject.rules))
    has_agents = subject.has_agents
    if not has_agents:
        loop.hear_beforehand()
    while True:
        loop.begin()
        if has_agents:
            yield from loop.discuss()
        decision = loop.decide(alone=not has_agents)
        if decision.is_final:
            loop.board.close()
        yield (loop.iterated(decision),)
        if decision.status is ConvergenceStatus.BLOCKED:
            yield from loop.pause(decision)
        elif decision.is_final:
            if has_agents and not loop.forced:
                yield from loop.audit(decision)
            return PlanLoopResult(decision, loop.progress())


class _Loop:
    """The state of the loop."""

    def __init__(self, subject: PlanSubject) -> None:
        self.subject = subject
        self.board = ChallengeBoard(max_active=MAX_ACTIVE if subject.has_agents else len(subject.rules))
        self.forced = ""
        """Why the loop must end, if it must."""
        self._iteration = 0
        self._research = PlanResearch()
        self._iterations: list[IterationState] = []
        self._answers: list[UserAnswer] = []
        self._directives: list[str] = []
        self._new_directives: list[str] = []
        """Directives of this iteration for the next one."""
        self._granted: dict[DirectiveKind, list[str]] = {}
        self._questions: dict[str, OpenQuestion] = {}
        self._disputes: list[str] = []
        self._synthesis: SynthesisOutput | None = None
        self._audit: PlanAuditOutput | None = None
        self._budget = ToolBudget()
        self._failures = 0
        self._was_challenged = False
        """Whether any challenger has answered."""
        self._may_add = True
        self._is_sweep_due = False
        """Whether an answer of the person changed the scope, so that another sweep was granted."""
        self._reported_events = 0

    @property
    def _is_last(self) -> bool:
        return self._iteration == MAX_PLAN_ITERATIONS

    def begin(self) -> None:
        self._iteration += 1
        self._research.begin(self._iteration)
        if self._iteration > 1:
            self.board.begin(self._iteration)
            if self._may_add:
                self.board.readmit()

    def discuss(self) -> DiscussionStep:
        """Run one iteration, until it is complete or forced to end."""
        for step in (self._challenge, self._research_step, self._synthesise):
            yield from step()
            if self.forced:
                return

    # Challenges

    def _challenge(self) -> DiscussionStep:
        first = self._iteration == 1
        if not self._may_add:
            return
        origins = CHALLENGERS[self.subject.mode] if first else (ChallengeOrigin.CHALLENGER,)
        caps = FIRST_CHALLENGE_CAPS if first else {ChallengeOrigin.CHALLENGER: LATER_CHALLENGE_CAP}
        notes = tuple(self._granted.get(DirectiveKind.NOTE, ()))
        results = yield tuple(AskChallenges(origin, caps[origin], notes, self._make_snapshot()) for origin in origins)
        for origin, answer in zip(origins, results, strict=True):
            output = self._read_answer(answer, ChallengesOutput, origin)
            if output is not None:
                self._was_challenged = True
                self._add_challenges(origin, output, _index_lookups(answer), caps[origin])

    def _add_challenges(
        self, origin: ChallengeOrigin, output: ChallengesOutput, lookups: ClaimLookups, limit: int
    ) -> None:
        drafts = output.challenges
        if origin is ChallengeOrigin.DEVILS_ADVOCATE:
            for draft in filter(is_too_weak, drafts):
                text = f"{origin} brought what is MINOR or of LOW confidence, which it may not: {draft.claim}"
                self.board.note(PlanEventKind.REFUSED, text)
            drafts = tuple(draft for draft in drafts if not is_too_weak(draft))
        ids = self.board.admit(
            [NewChallenge(new_draft, origin, lookups(new_draft.evidence)) for new_draft in drafts], limit
        )
        for id, draft in zip(ids, drafts, strict=True):
            self._research.record_false_claims(origin, id, lookups(draft.evidence))
        for withdrawal in output.withdrawals:
            self.board.withdraw(withdrawal, origin, self._research.build_exhibits())

    # Research

    def _research_step(self) -> DiscussionStep:
        needs = self._research_needs()
        if not needs:
            return
        results = yield needs
        new_challenges: list[tuple[NewChallenge, str]] = []
        for need, answer in zip(needs, results, strict=True):
            new_challenges += self._handle_research(need, answer)
        ids = self.board.admit(
            [challenge for challenge, _ in new_challenges], MAX_RESEARCH_CHALLENGES if self._may_add else 0
        )
        for id, (_, finding) in zip(ids, new_challenges, strict=True):
            self._research.link_challenge(finding, id)

    def _research_needs(self) -> tuple[AskPlanResearch, ...]:
        snapshot = self._make_snapshot()
        targets = tuple(challenge.id for challenge in self.board.open_to_discussion)
        notes = tuple(self._granted.get(DirectiveKind.NOTE, ()))
        needs = [AskPlanResearch(ResearchMode.RESOLVE, targets, notes, snapshot)] if targets else []
        for mode, kind in (
            (ResearchMode.SURFACE, DirectiveKind.RE_SWEEP),
            (ResearchMode.PROBE, DirectiveKind.RE_PROBE),
        ):
            directed = tuple(self._granted.get(kind, ()))
            if self._iteration == 1 or directed:
                needs.append(AskPlanResearch(mode, targets, (*directed, *notes), snapshot))
        return tuple(needs)

    def _handle_research(self, need: AskPlanResearch, answer: PlanEffectResult) -> list[tuple[NewChallenge, str]]:
        """Return the challenges that follow from the findings, each with the id of its finding."""
        agent, lookups = f"researcher:{need.mode}", _index_lookups(answer)
        match need.mode:
            case ResearchMode.RESOLVE:
                resolved = self._read_answer(answer, ResolveOutput, agent)
                if resolved is not None:
                    self._research.add_unknowns(self._drop_unknown_challenges(resolved), lookups, agent)
                elif isinstance(answer, PlanAgentFailure) and answer.is_unreadable:
                    claims = [(id, self.board.challenges[id].claim) for id in need.targets]
                    self._research.mark_unresolvable(claims, agent)
                return []
            case ResearchMode.SURFACE:
                surfaced = self._read_answer(answer, SurfaceOutput, agent)
                return self._research.add_surfaced(surfaced, lookups, agent) if surfaced else []
            case ResearchMode.PROBE:
                probed = self._read_answer(answer, ProbeOutput, agent)
                return self._research.add_risks(probed, lookups, agent) if probed else []

    def _drop_unknown_challenges(self, output: ResolveOutput) -> ResolveOutput:
        """Drop unknowns about challenges that do not exist."""
        known_unknowns = tuple(
            candidate for candidate in output.unknowns if candidate.affects_challenge in self.board.challenges
        )
        for unknown in output.unknowns:
            if unknown not in known_unknowns:
                self.board.note(
                    PlanEventKind.REFUSED, f"an unknown is about {unknown.affects_challenge}, which is not a challenge"
                )
        return output.model_copy(update={"unknowns": known_unknowns})

    # Synthesis

    def _synthesise(self) -> DiscussionStep:
        (answer,) = yield (AskSynthesis(self._make_snapshot()),)
        output = self._read_answer(answer, SynthesisOutput, "synthesizer")
        if output is None:
            self.forced = self.forced or "the synthesizer gave no answer"
            return
        self._synthesis = output
        exhibits = self._research.build_exhibits()
        for ruling in output.rulings:
            self.board.rule(ruling, exhibits)
        self._questions = {
            question.challenge: OpenQuestion(
                challenge=question.challenge, question=question.question, options=question.options
            )
            for question in output.questions
        }
        self._disputes += [f"{dispute.challenge}: {dispute.text}" for dispute in output.disputes]
        self._grant_directives(output.directives)
        self._note_degradation()

    def _grant_directives(self, directives: Sequence[Directive]) -> None:
        self._granted, self._new_directives = {}, []
        self._budget = ToolBudget()  # what was granted held for the iteration that ends here
        self._is_sweep_due = False
        circumstances = self._circumstances()
        for directive in directives:
            if why := self._find_refusal(directive, circumstances):
                self.board.note(PlanEventKind.REFUSED, f"{describe_directive(directive)}: not granted, {why}")
                continue
            self._is_sweep_due |= directive.reason is DirectiveReason.RESPONSE_CHANGES_SCOPE
            self._new_directives.append(describe_directive(directive))
            self._granted.setdefault(directive.kind, []).append(directive.text)
        self._directives += self._new_directives

    def _find_refusal(self, directive: Directive, circumstances: DirectiveContext) -> str:
        match directive.kind:
            case DirectiveKind.NOTE:
                return ""
            case DirectiveKind.RAISE_BUDGET:
                return "this is the last iteration" if circumstances.is_last else self._raise_budget(directive)
        return explain_refused_directive(directive, circumstances)

    def _raise_budget(self, directive: Directive) -> str:
        kind = find_kind(directive.tool)
        if directive.mode is None or kind is None or not directive.by:
            return "it names no mode, no tool that has a budget, or no number of calls"
        raised = self._budget.raise_limit(directive.mode, kind, directive.by)
        if raised == self._budget:
            return "that budget cannot be raised further"
        granted = raised.limit(directive.mode, kind) - self._budget.limit(directive.mode, kind)
        self._budget = raised
        self.board.note(
            PlanEventKind.BUDGET, f"{kind} of {directive.mode}: {granted} more were granted, {directive.text}"
        )
        return ""

    def _circumstances(self) -> DirectiveContext:
        standing = self._count_open()
        new_challenges = [
            challenge for challenge in self.board.active if challenge.iteration_introduced == self._iteration
        ]
        return DirectiveContext(
            is_last=self._is_last,
            has_only_minor=standing.blocking + standing.significant == 0,
            contradictions=find_contradictions(
                (challenge for challenge in new_challenges if challenge.origin is not ChallengeOrigin.RULES),
                self._research.surfaced,
            ),
            has_answer=any(answer.iteration == self._iteration - 1 for answer in self._answers),
            has_resolved_unknown=any(
                unknown.resolution is not UnknownResolution.UNRESOLVABLE for unknown in self._research.new_unknowns
            ),
            has_unresolved=any(challenge.status is ChallengeStatus.UNRESOLVED for challenge in self.board.all),
        )

    def _note_degradation(self) -> None:
        """Forbid new challenges in the next iteration if this one, from the second on, created more than it settled."""
        is_degraded = self._iteration > 1 and self.board.created_count > self.board.settled_count
        self._may_add = not is_degraded
        if is_degraded:
            new_challenges = (
                "1 challenge" if self.board.created_count == 1 else f"{self.board.created_count} challenges"
            )
            text = f"{new_challenges} came in and {self.board.settled_count} settled"
            self.board.note(PlanEventKind.DEGRADATION, f"{text}: the next iteration may add none")

    # Decision, pause, end

    def decide(self, *, alone: bool) -> PlanDecision:
        """Decide by the table. If no agent is asked (`alone`), another iteration would bring nothing new."""
        standing = replace(
            self._count_open(),
            is_last=alone or self._is_last,
            is_unchallenged=not alone and not self._was_challenged,
            is_sweep_due=self._is_sweep_due,
        )
        return decide_plan(standing, forced=self.forced)

    def _count_open(self) -> OpenChallengeCounts:
        return count_open_challenges(self.board.all, last=self._is_last)

    def pause(self, decision: PlanDecision) -> DiscussionStep:
        """Ask the person, who alone can settle a blocking challenge that is unresolved."""
        open_challenges = [challenge for challenge in self.board.active if _needs_person(challenge)]
        while open_challenges:
            (result,) = yield (
                AskPlanQuestions(tuple(map(self._make_question, open_challenges)), decision, self.progress()),
            )
            if not isinstance(result, PlanAnswers):
                raise TypeError(f"an answer is wanted, not {result!r}")
            texts = {challenge.id: result.answers.get(challenge.id, "").strip() for challenge in open_challenges}
            if not any(texts.values()):
                raise ValueError(f"nothing is said about {', '.join(texts)}")
            for id, text in texts.items():
                if text:
                    self.board.record_answer(id, text)
                    self._answers.append(UserAnswer(challenge=id, text=text, iteration=self._iteration))
            open_challenges = [challenge for challenge in self.board.active if _needs_person(challenge)]

    def _make_question(self, challenge: Challenge) -> OpenQuestion:
        default_question = OpenQuestion(challenge=challenge.id, question="How should this be settled?")
        question = self._questions.get(challenge.id, default_question)
        why = f"{challenge.claim}. {challenge.concern} {challenge.failure_scenario}"
        return question.model_copy(update={"why": why})

    def hear_beforehand(self) -> None:
        """Apply the answers given in advance, because no agent is asked."""
        for id, text in self.subject.answers.items():
            if why := self.board.explain_unanswerable(id):
                self.board.note(PlanEventKind.REFUSED, f"the answer to {id} settles nothing: {why}")
                continue
            self.board.settle_by_answer(id, text)
            self._answers.append(UserAnswer(challenge=id, text=text, iteration=1))

    def audit(self, decision: PlanDecision) -> DiscussionStep:
        verdict = f"{decision.verdict}: {decision.reason}"
        (answer,) = yield (AskPlanAudit(verdict, self._make_snapshot()),)
        if isinstance(answer, PlanAgentReply) and isinstance(answer.output, PlanAuditOutput):
            self._audit = answer.output
            self._disputes += [
                f"{dispute.challenge}: {dispute.text} (challenger, at the close)" for dispute in self._audit.disputes
            ]
        elif isinstance(answer, PlanAgentFailure):
            self.board.note(PlanEventKind.FAILURE, f"challenger:audit: {answer.reason}")
        else:
            raise TypeError(f"{PlanAuditOutput.__name__} is wanted, not {answer!r}")

    def iterated(self, decision: PlanDecision) -> RecordIteration:
        standing = self._count_open()
        score = compute_score(self._synthesis.scores) if self._synthesis and decision.is_final else None
        answers = [answer for answer in self._answers if answer.iteration == max(1, self._iteration - 1)]
        state = IterationState(
            iteration=self._iteration,
            plan_path=self.subject.plan_path,
            plan_quality=self.subject.quality,
            team_mode=self.subject.mode,
            challenges=tuple(
                ChallengeLine(id=entry.id, status=entry.status, severity=entry.severity) for entry in self.board.all
            ),
            unknowns=tuple(
                UnknownLine(id=unknown.id, resolution=unknown.resolution) for unknown in self._research.new_unknowns
            ),
            surfaced_contexts=tuple(
                SurfacedLine(id=entry.id, impact=entry.impact, generates_challenge=entry.generates_challenge)
                for entry in self._research.new_surfaced
            ),
            probed_risks=tuple(
                RiskLine(id=risk.id, generates_challenge=risk.generates_challenge) for risk in self._research.new_risks
            ),
            convergence=build_convergence(standing, decision.status),
            user_responses=tuple(f"{entry.challenge}: {entry.text}" for entry in answers),
            synthesizer_directives=tuple(self._new_directives),
            quality_score=score.total if score else None,
        )
        self._iterations.append(state)
        events = tuple(self.board.events[self._reported_events :])
        self._reported_events = len(self.board.events)
        return RecordIteration(state, self.board.all, events)

    def progress(self) -> PlanProgress:
        scores = self._synthesis.scores if self._synthesis else ()
        return PlanProgress(
            challenges=self.board.all,
            lines=dict(self.board.lines),
            rules=dict(self.board.rules),
            evidence=dict(self.board.evidence),
            unknowns=tuple(self._research.unknowns),
            surfaced=tuple(self._research.surfaced),
            risks=tuple(self._research.risks),
            iterations=tuple(self._iterations),
            score=compute_score(scores, self._audit.scores if self._audit else ()),
            disputes=tuple(self._disputes),
            audit=self._audit.summary if self._audit else "",
            against=tuple(self._research.false_claims),
            events=tuple(self.board.events),
            answers=tuple(self._answers),
        )

    # Shared by all steps

    def _make_snapshot(self) -> DiscussionSnapshot:
        return DiscussionSnapshot(
            iteration=self._iteration,
            is_last=self._is_last,
            challenges=self.board.all,
            unknowns=tuple(self._research.unknowns),
            surfaced=tuple(self._research.surfaced),
            risks=tuple(self._research.risks),
            responses=tuple(f"{answer.challenge}: {answer.text}" for answer in self._answers),
            directives=tuple(self._directives),
            notes=tuple(event.text for event in self.board.events),
            budget=self._budget,
        )

    def _read_answer(self, answer: PlanEffectResult, output_type: type[OutputT], agent: str) -> OutputT | None:
        """Return the output; None if there is none, which counts as a failure."""
        if isinstance(answer, PlanAgentReply) and isinstance(answer.output, output_type):
            for text in answer.refusals:
                self.board.note(PlanEventKind.BUDGET, f"{agent}: {text}")
            return answer.output
        if not isinstance(answer, PlanAgentFailure):
            raise TypeError(f"{output_type.__name__} is wanted, not {answer!r}")
        self.board.note(PlanEventKind.FAILURE, f"{agent}: {answer.reason}")
        self._failures += 1
        if self._failures >= MAX_FAILED_AGENTS:
            self.forced = f"{self._failures} agents gave no answer"
        return None


def _index_lookups(answer: PlanEffectResult) -> ClaimLookups:
    return ClaimLookups.index_by_claim(answer.lookups if isinstance(answer, PlanAgentReply) else ())


def _needs_person(challenge: Challenge) -> bool:
    return challenge.severity is PlanSeverity.BLOCKING and challenge.status is ChallengeStatus.UNRESOLVED
