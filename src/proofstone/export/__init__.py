"""Agent definitions and hooks as files, for the coding agents that people already use.

The definitions come from the product's own source: a role's prompt, contracts and tools. What the engine does itself,
orchestrating and verifying, is told here to agents that must do it without an engine.
"""
