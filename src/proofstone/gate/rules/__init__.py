"""What is decided at the task gate: the machine, the PASS rule, retries, outcomes, and the pages. Pure."""
