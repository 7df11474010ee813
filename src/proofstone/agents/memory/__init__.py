"""What is remembered from one task to the next."""
