"""`python -m loadtest page`: what the page weighs, how fast it opens, and how it bears many captions a second.

speech (what is said when, pure) ─ meeting (speakers over WebSockets) ─┐
                          browser (the page in Chromium) ──────────────┼─ run ─ report
result (what was found, as values, pure) ──────────────────────────────┘
"""
