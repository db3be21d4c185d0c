"""One linearizer per language."""
