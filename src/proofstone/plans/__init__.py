"""Plans: how their text is parsed into tasks, and how it is linted. Pure."""
