"""Executors and architects: agents, programs and people who carry out and review the tasks of a plan."""
