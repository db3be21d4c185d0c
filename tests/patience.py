"""How long somebody waits for a state before it is taken for a hang. Others may use the machine, too."""

PATIENCE_MS = 120_000
