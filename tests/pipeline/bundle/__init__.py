"""The documents of a run, and its evidence bundle."""
