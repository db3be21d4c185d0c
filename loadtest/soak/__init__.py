"""The soak: half an hour of everything that breaks, and the proof that nothing accepted was lost.

population, faults (seeded plans, pure) ─┐
gateway (the product's process), watch ──┤
crowd ─ clients ─ visitor, raw ─ relay ──┼─ injection ─ run ─ result ─ report
records ─ ledger, verdict (the checker, pure) ─ timeline
"""
