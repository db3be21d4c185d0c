"""Sentences composed from clauses: one abstract sentence, written in six languages. See README.md here."""
