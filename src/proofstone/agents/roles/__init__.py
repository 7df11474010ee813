"""Roles: who takes part in a run, what each is given and must answer, and its prompt."""
