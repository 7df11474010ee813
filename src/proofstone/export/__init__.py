"""Export agent definitions as files, for the coding agents that people already use.

The definitions are built from the product's own source: the prompt, contracts and tools of each role. Orchestrating and
verifying, which the engine does in the product, are described here for agents that work without an engine.
"""
