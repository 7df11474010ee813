"""Executors and architects: the agents, programs and people that carry out and review the tasks of a plan."""
