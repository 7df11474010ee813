"""What the manual does not say by hand: each module makes parts of pages from the tables that decide."""
