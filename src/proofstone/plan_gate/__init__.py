"""The plan gate at work: the shell around `plan_gate.rules`."""
