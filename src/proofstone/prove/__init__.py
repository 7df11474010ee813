"""`proofstone prove`: try every trick of the catalogue, and an honest twin of each that must pass."""
