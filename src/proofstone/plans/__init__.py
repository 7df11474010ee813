"""A plan, from its text to its tasks, and what is wrong with it. Pure."""
