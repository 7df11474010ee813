"""The plan gate at work: the shell around `core.plan_gate`."""
