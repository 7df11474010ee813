"""Check a pull request in CI: find the base, report to the code host, and pass on what a maintainer accepted."""
