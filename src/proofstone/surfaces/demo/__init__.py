"""The demonstration: a small shop with a bug, and the agents that are asked to build something in it."""
