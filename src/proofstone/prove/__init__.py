"""`proofstone prove`: every trick of the catalogue, really tried, beside an honest twin that must pass."""
