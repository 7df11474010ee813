"""The demonstration: a small shop with a bug, and the agents that were asked to mend it."""
