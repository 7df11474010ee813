"""Drives the whole pipeline, and tells its runs from the ledger."""
