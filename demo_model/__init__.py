"""The small bundled translation model: its corpus, tokenizer, training and evaluation.

Importing this package loads nothing heavy. torch, tokenizers and sacrebleu are imported where they are used.
"""

LANGUAGES = ("en", "ja", "es", "de", "fr", "zh")
DIRECTIONS = tuple((source, target) for source in LANGUAGES for target in LANGUAGES if source != target)
