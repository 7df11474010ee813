"""What a run has cost, and how long everything took: read from the ledger, at any time and from any process.

Where telemetry goes.
"""
