"""The only place that chooses implementations."""
