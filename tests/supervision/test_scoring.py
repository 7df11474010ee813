"""Abbreviated analyses, against the plan and what really changed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.agents.models import SignatureChange, WorkFile
from proofstone.common.models import ChangeKind, Verdict
from proofstone.supervision.models.ladder import AnswerResult, DeviationImpact, LaterTask, MiniAnalysis
from proofstone.supervision.models.understanding import AnalysisItem, ItemVerdict
from proofstone.supervision.rules.scoring import WorkObservation, compute_deviation, score_analysis
from tests.rows import each_row
from tests.supervision.watching import HANDLER, LIMITER

NONE, MINOR, SIGNIFICANT = DeviationImpact
CART, TAX, LOGIN = "src/shop/cart.py", "src/shop/tax.py", "src/auth/login.py"
ADD = SignatureChange(path=CART, symbol="Cart.add", public=True, planned=False)
PLANNED = ADD.model_copy(update={"planned": True})
PRIVATE = ADD.model_copy(update={"public": False})


def worked(*paths: str, kind: ChangeKind = ChangeKind.MODIFIED) -> tuple[WorkFile, ...]:
    return tuple(WorkFile(path=path, kind=kind) for path in paths)


def said(
    impact: DeviationImpact, files: str = CART, *, reality: str = "as planned", downstream: str = "nobody"
) -> MiniAnalysis:
    return MiniAnalysis(
        task="the cart", files=files, downstream=downstream, claimed_before="the same", reality=reality, impact=impact
    )


JUDGED = (
    ItemVerdict(item=AnalysisItem.TASK, verdict=Verdict.PASS),
    ItemVerdict(item=AnalysisItem.DOWNSTREAM, verdict=Verdict.PASS),
)


@each_row(
    ("reality", "expected"),
    [
        (WorkObservation((CART,)), NONE),
        (WorkObservation((CART,), worked(CART)), NONE),
        (WorkObservation(("src/**",), worked(CART, TAX, LOGIN)), NONE),
        (WorkObservation((CART,), worked(CART), (PLANNED,)), NONE),
        (WorkObservation((CART,), worked(CART), (PRIVATE,)), NONE),
        (WorkObservation((CART,), worked(CART, "src/shop/__init__.py")), NONE),
        (WorkObservation((CART,), worked(CART, TAX)), MINOR),
        (WorkObservation((CART,), worked("docs/a.md", "tests/test_a.py")), MINOR),
        (WorkObservation((CART,), worked(TAX, kind=ChangeKind.ADDED)), MINOR),
        (WorkObservation((CART,), worked(CART, TAX), (PLANNED,)), MINOR),
        (WorkObservation((CART,), worked(CART), (ADD,)), SIGNIFICANT),
        (WorkObservation((CART,), worked(CART, TAX), (ADD,)), SIGNIFICANT),
        (WorkObservation((CART,), worked(CART, LOGIN)), SIGNIFICANT),
        (WorkObservation((CART,), (WorkFile(path=TAX, added=("shutil.rmtree(all)",)),)), SIGNIFICANT),
    ],
)
@pytest.mark.seed("continuity", "rv3-items")
def test_the_deviation_is_computed(reality: WorkObservation, expected: DeviationImpact) -> None:
    assert compute_deviation(reality) is expected


@each_row(
    ("reality", "analysis", "result"),
    [
        (WorkObservation((CART,), worked(CART)), said(NONE), AnswerResult.INTACT),
        (WorkObservation((CART,), worked(CART)), said(NONE, "Same as before, no new files."), AnswerResult.INTACT),
        (WorkObservation(("src/**",), worked(CART)), said(NONE, "all in src/shop/ as declared"), AnswerResult.INTACT),
        (WorkObservation((CART,), worked(CART, TAX)), said(MINOR, f"{CART}, {TAX} (NEW)"), AnswerResult.JUSTIFIED),
        (WorkObservation((CART,), worked(CART, TAX)), said(MINOR, "as before, and tax.py"), AnswerResult.JUSTIFIED),
        (
            WorkObservation((CART,), worked(CART, LOGIN)),
            said(SIGNIFICANT, f"{CART} and {LOGIN}"),
            AnswerResult.JUSTIFIED,
        ),
        (
            WorkObservation((CART,), worked(CART), (ADD,)),
            said(SIGNIFICANT, reality="`add` takes a tax"),
            AnswerResult.JUSTIFIED,
        ),
        (WorkObservation((CART,), worked(CART)), said(MINOR, f"{CART}, then {TAX}"), AnswerResult.JUSTIFIED),
        (WorkObservation((CART,), worked(CART)), said(NONE, "I sum it up."), AnswerResult.UNJUSTIFIED),
        (WorkObservation((CART,), worked(CART, TAX)), said(NONE, f"{CART}, {TAX}"), AnswerResult.UNJUSTIFIED),
        (WorkObservation((CART,), worked(CART, LOGIN)), said(MINOR, f"{CART}, {LOGIN}"), AnswerResult.UNJUSTIFIED),
        (WorkObservation((CART,), worked(CART, TAX)), said(MINOR), AnswerResult.UNJUSTIFIED),
        (WorkObservation((CART,), worked(CART, TAX)), said(SIGNIFICANT, "the same files"), AnswerResult.UNJUSTIFIED),
        (
            WorkObservation((CART,), worked(CART, TAX)),
            said(MINOR, f"{CART}; I do not touch {TAX}"),
            AnswerResult.UNJUSTIFIED,
        ),
        (
            WorkObservation((CART,), worked(CART, TAX)),
            said(MINOR, f"{CART} and all of src/shop/"),
            AnswerResult.UNJUSTIFIED,
        ),
        (WorkObservation((CART,), worked(CART), (ADD,)), said(SIGNIFICANT), AnswerResult.UNJUSTIFIED),
    ],
)
@pytest.mark.seed("continuity", "rv3-justified")
def test_a_deviation_that_is_owned_up_to_is_justified(
    reality: WorkObservation, analysis: MiniAnalysis, result: AnswerResult
) -> None:
    assert score_analysis(analysis, reality, JUDGED).result is result


def test_the_new_file_of_the_seed_is_owned_up_to_and_then_belongs_to_it() -> None:
    handler = SignatureChange(path=HANDLER, symbol="handler", public=True, planned=False)
    reality = WorkObservation((HANDLER,), (*worked(HANDLER), *worked(LIMITER, kind=ChangeKind.ADDED)), (handler,))
    honest = said(SIGNIFICANT, f"{HANDLER} (original), {LIMITER} (NEW)", reality="handler takes rate_config")
    scored = score_analysis(honest, reality, JUDGED)
    assert (scored.result, scored.amended, scored.hidden) == (AnswerResult.JUSTIFIED, (LIMITER,), None)
    assert scored.impact is SIGNIFICANT and scored.unverifiable == ()
    hiding = score_analysis(said(NONE, HANDLER), reality, JUDGED)
    assert hiding.result is AnswerResult.UNJUSTIFIED and hiding.amended == () and hiding.hidden is not None
    assert (hiding.hidden.rule, hiding.hidden.before, hiding.hidden.after) == (
        "claim-mismatch", "NONE", "SIGNIFICANT_DEVIATION",
    )  # fmt: skip
    for told in (LIMITER, "handler", "claims NONE"):
        assert told in hiding.hidden.detail and told in hiding.reason


@pytest.mark.seed("continuity", "rv3-items")
def test_an_incomplete_list_of_declared_files_is_corrected_but_hides_no_deviation() -> None:
    scored = score_analysis(said(NONE, "I sum it up."), WorkObservation((CART,), worked(CART)), JUDGED)
    assert scored.result is AnswerResult.UNJUSTIFIED and scored.hidden is None
    assert scored.reason == f"RC-04: it changed {CART}, which its list does not name"


@pytest.mark.parametrize(
    ("impact", "files", "amended"),
    [
        (MINOR, f"{CART}, {TAX} (NEW)", (TAX,)),
        (MINOR, f"{CART}, {LOGIN} (NEW)", ()),
        (SIGNIFICANT, f"{CART}, {LOGIN} (NEW)", (LOGIN,)),
        (SIGNIFICANT, f"{CART}, src/shop/", ()),
    ],
)
def test_what_is_to_come_is_given_only_with_the_impact_that_it_has(
    impact: DeviationImpact, files: str, amended: tuple[str, ...]
) -> None:
    assert score_analysis(said(impact, files), WorkObservation((CART,), worked(CART)), JUDGED).amended == amended


@each_row(
    ("later", "downstream", "expected"),
    [
        ((), "nobody", Verdict.PASS),
        ((LaterTask(id="T3"),), "T3 reads the sum", Verdict.PASS),
        ((LaterTask(id="T3", title="The checkout page"),), "then the Checkout page", Verdict.PASS),
        ((LaterTask(id="T3", files=("src/page.ts",)),), "src/page.ts shows it", Verdict.PASS),
        ((LaterTask(id="T3"), LaterTask(id="T4")), "T4", Verdict.PASS),
        ((LaterTask(id="T3"), LaterTask(id="T4", files=("src/**",))), "T3", Verdict.FAIL),
        ((LaterTask(id="T3"),), "T31 and T2", Verdict.FAIL),
        ((LaterTask(id="1.2"),), "2 things", Verdict.FAIL),
    ],
)
def test_the_tasks_that_follow_are_named(later: tuple[LaterTask, ...], downstream: str, expected: Verdict) -> None:
    reality = WorkObservation((CART,), worked(CART), later=later)
    scored = score_analysis(said(NONE, downstream=downstream), reality, JUDGED)
    [item] = [one for one in scored.items if one.item is AnalysisItem.DOWNSTREAM]
    assert item.verdict is expected
    assert scored.result is (AnswerResult.INTACT if expected is Verdict.PASS else AnswerResult.UNJUSTIFIED)


def test_what_somebody_judges_counts_and_what_nobody_does_caps() -> None:
    reality = WorkObservation((CART,), worked(CART), unseen=("src/a.zig",), later=(LaterTask(id="T3"),))
    analysis = said(NONE, downstream="T3")
    unjudged = score_analysis(analysis, reality)
    assert unjudged.result is AnswerResult.INTACT
    assert unjudged.unverifiable == (AnalysisItem.TASK, AnalysisItem.DOWNSTREAM, AnalysisItem.INTERFACES)
    wrong = ItemVerdict(item=AnalysisItem.TASK, verdict=Verdict.FAIL, detail="that is another task")
    refused = score_analysis(analysis, reality, (wrong, *JUDGED))
    assert refused.result is AnswerResult.UNJUSTIFIED and refused.reason == "RC-01: that is another task"


paths = st.sampled_from([CART, TAX, LOGIN, "docs/a.md", "go.sum", "src/shop/__init__.py"])
files_worked = st.lists(st.builds(WorkFile, path=paths, kind=st.sampled_from(list(ChangeKind))), max_size=5)
signatures = st.lists(
    st.builds(
        SignatureChange,
        path=paths,
        symbol=st.sampled_from(["Cart.add", "total"]),
        public=st.booleans(),
        planned=st.booleans(),
    ),
    max_size=3,
)
realities = st.builds(
    lambda declared, worked, signatures: WorkObservation(tuple(declared), tuple(worked), tuple(signatures)),
    st.lists(paths, max_size=3),
    files_worked,
    signatures,
)
texts = st.lists(
    st.one_of(paths, st.sampled_from(["same", "add", "total", "I do not touch", "but", ".", "(NEW)"]))
).map(lambda words: " ".join(["It:", *words]))


@given(realities, files_worked, signatures)
def test_more_that_changed_is_never_less_of_a_deviation(
    reality: WorkObservation, more: list[WorkFile], others: list[SignatureChange]
) -> None:
    further = replace(
        reality, observe_changes=(*reality.observe_changes, *more), signatures=(*reality.signatures, *others)
    )
    assert compute_deviation(further).rank >= compute_deviation(reality).rank


@given(realities, paths)
def test_more_that_is_declared_is_never_more_of_a_deviation(reality: WorkObservation, path: str) -> None:
    assert (
        compute_deviation(replace(reality, declared=(*reality.declared, path))).rank <= compute_deviation(reality).rank
    )


@given(realities, st.sampled_from(list(DeviationImpact)), texts, texts, st.lists(st.sampled_from(JUDGED)))
@pytest.mark.seed("continuity", "rv3-justified")
def test_a_hidden_deviation_is_never_justified(
    reality: WorkObservation, impact: DeviationImpact, files: str, told: str, judged: list[ItemVerdict]
) -> None:
    scored = score_analysis(said(impact, files, reality=told), reality, judged)
    unnamed = [
        one.path
        for one in reality.undeclared_files
        if one.path not in files and one.path.rpartition("/")[2] not in files
    ]
    silent = [
        one
        for one in reality.unplanned_signatures
        if one.symbol.rpartition(".")[2] not in f"{files} {told} the cart nobody"
    ]
    if impact.rank < scored.computed.rank or unnamed or silent:
        assert scored.result is AnswerResult.UNJUSTIFIED and scored.hidden is not None and scored.amended == ()
    if scored.result is AnswerResult.INTACT:
        assert impact is NONE and scored.computed is NONE
    if scored.hidden is not None:
        assert scored.result is AnswerResult.UNJUSTIFIED
    assert (scored.result is AnswerResult.JUSTIFIED) or not scored.amended
