"""Meetings are held on a gateway: one's own that runs already, or one that is started for it, with any engine."""
