"""The auditor: it reads the messages and events of runs and reports what looks wrong. It cannot write anything."""
