"""The soak: half an hour of everything that breaks, and the proof that nothing accepted was lost.

faults (who is there, what breaks: seeded, pure) ─┐
gateway (the product's processes) ────────────────┤
crowd (client processes, their clients) ──────────┼─ run ─ report
relay (a network that breaks) ────────────────────┤
records ─ ledger (the checker, pure) ─────────────┘
"""
