"""Tools of in-process agents."""
