"""How a release is made: from a commit and locked inputs to an sdist and a wheel, the same bytes each time."""
