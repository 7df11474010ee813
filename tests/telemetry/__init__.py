"""What runs have cost, and their export."""
