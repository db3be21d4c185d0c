"""The frozen corpus: one set is one sentence in six languages. Its card is README.md beside this file."""
