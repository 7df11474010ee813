"""`proofstone gate`: the loop, what it drives, and what it remembers."""
