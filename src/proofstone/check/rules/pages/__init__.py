"""The pages of the rules, as tables."""
