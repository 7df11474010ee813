"""`acp:`: the Agent Client Protocol, spoken to a program over its standard input and output."""
