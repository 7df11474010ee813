"""Set a repository up for Proofstone: what `proofstone init` proposes, writes and takes back."""
