"""The decisions of the task gate: the state machine, the PASS rule, retries, outcomes, and the pages. Pure."""
