"""Sandboxes: one Protocol (`job.Sandbox`), three levels of assurance, chosen by trying (`probe`)."""
