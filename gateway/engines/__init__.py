"""Adapters of the Engine port, one module each; each imports its engine lazily."""
