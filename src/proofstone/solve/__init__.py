"""The shell that drives the control loop of `solve.rules`."""
