"""How much one gateway carries: `sweep` and `recommend`."""
