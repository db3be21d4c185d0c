"""The same lines through the gateway and through others: vLLM's own server, the engine called directly.

    python -m loadtest peers --out FOLDER

All systems run at the same time and take turns, each repetition in the opposite order of the one before, so that
what drifts falls on all of them; what is compared are rounds of the same lines.
"""
