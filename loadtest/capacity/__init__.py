"""How much one gateway carries: `sweep`, `capacity` and `recommend`."""
