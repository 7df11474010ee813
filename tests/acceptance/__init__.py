"""The seed's acceptance criteria and edge cases, each as tests that are named for it.

`test_ac_05_…` holds AC-5, `test_ec_04_…` EC-4. Where the seed and the design differ, the design stands, and the test's
docstring says so. A criterion is really exercised: through the pure loop where a decision is meant, through a whole
`proofstone run` where behaviour is; two such runs are shared (`conftest.py`). `test_map.py` holds this table.

| criterion | means | here | and in detail |
|---|---|---|---|
| AC-1 | every step, gate and approval is defined and there | `test_whole_run` | `tests/documentation` |
| AC-2 | at least 4 and at most 15 agents | `test_agents` | `tests/export` |
| AC-3 | everybody ends DONE, NEEDS_REVISION or ERROR | `test_agents` | `tests/agents/roles` |
| AC-4 | three reviewers, a gate by rows, two rounds | `test_reviews` | `tests/pipeline/test_reviews.py` |
| AC-5 | without enough evidence nothing goes on | `test_evidence` | `tests/gate/test_rules.py` |
| AC-6 | a risk for each file; any 🔴 makes it Large | `test_risk` | `tests/pipeline/test_lanes.py` |
| AC-7 | one scale of severity | `test_agents` | `tests/export` |
| AC-8 | what agents say is typed | `test_agents`, `test_whole_run` | `tests/agents/roles` |
| AC-9 | the same outputs, the same decisions | `test_routing` | `tests/pipeline/test_histories.py` |
| AC-10 | approvals with choices, or defaults on record | `test_asking`, `test_whole_run` | `tests/pipeline` |
| AC-11 | on its own from the request to the end | `test_whole_run` | `tests/pipeline` |
| AC-12 | everybody verifies their own work | `test_agents` | `tests/export` |
| AC-13 | concerns about the request, with choices | `test_asking` | `tests/pipeline/test_loop.py` |
| AC-14 | every file at its place | `test_whole_run` | `tests/pipeline/bundle` |
| AC-15 | every loop has its bound | `test_bounds` | `tests/pipeline/test_loop_holds.py` |
| EC-3 | an answer that is not of its schema | `test_malformed` | `tests/agents/test_loop.py` |
| EC-4 | no ledger can be had | `test_ledger_unavailable` | `tests/ledger` |
| EC-5 | a run that breaks off is resumed | `test_resume` | `tests/pipeline` |
| EC-9 | three reviewers who are one model | `test_whole_run` | `tests/pipeline/test_reviews.py` |
"""
