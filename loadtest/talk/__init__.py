"""What is said in a load test: scenarios, files that are replayed, what a recogniser says meanwhile.

Everything here is a pure function of its values: the same seed, the same lines.
"""
