"""Sandboxes: one protocol (`job.Sandbox`) and three levels of assurance. `probe` finds the strongest by trying them."""
