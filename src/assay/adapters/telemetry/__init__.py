"""Where telemetry goes."""
