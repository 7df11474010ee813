"""The shell that drives the control loop of `core.solve`."""
