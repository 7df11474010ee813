"""The cost and the duration of runs, read from the ledger at any time and from any process, and their export."""
