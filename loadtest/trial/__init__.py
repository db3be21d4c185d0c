"""One measured pass of a load over a system: what is said, what became of it, and what the machine did meanwhile."""
