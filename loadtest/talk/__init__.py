"""What is said in a load test: scenarios that are drawn, and files that are replayed.

    scenario ── turns ── words ── the corpus of the bundled model
    replay

Everything here is a pure function of its values: the same seed, the same lines.
"""
