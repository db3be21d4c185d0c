"""Adapters of the EventLog port, one module each; each imports its store lazily."""
