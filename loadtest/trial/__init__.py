"""One measured pass of a load over a system: what is said, what becomes of it, what the machine does."""
