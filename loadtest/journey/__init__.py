"""The way from a queue in front of a worker to the gateway: every architecture on it, measured in one run.

VoicePing's two reports on their translation service tell what each gave them; ours stands beside it.
"""
