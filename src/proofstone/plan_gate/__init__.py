"""The plan gate: a plan is challenged until it converges or is sent back. The decisions are in `plan_gate.rules`."""
