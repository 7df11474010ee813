"""Pursue a goal in rounds: perform the control loop of `solve.rules`."""
