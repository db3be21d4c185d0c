"""What makes the bundled model: its corpus, training, scoring and calibration; and the small model of tests.

Importing this package loads nothing heavy. torch, tokenizers and sacrebleu are imported where they are used.
"""

from pathlib import Path

LANGUAGES = ("en", "ja", "es", "de", "fr", "zh")
DIRECTIONS = tuple((source, target) for source in LANGUAGES for target in LANGUAGES if source != target)

SMALL_MODEL = Path(__file__).parent / "small_model"
"""What tests and load tests use, and what steps in where the base of the bundled model is not installed."""
