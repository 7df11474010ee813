"""The memory of agents: what is remembered from one task to the next."""
