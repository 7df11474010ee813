"""What is remembered from one task to the next, in a file that a person can read."""

from proofstone.adapters.memory.file import FileMemory, memory_path

__all__ = ["FileMemory", "memory_path"]
