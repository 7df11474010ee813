"""`acp:`: the Agent Client Protocol, over a program's standard input and output."""
