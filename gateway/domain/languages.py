"""Languages by BCP 47 tag: the English names that prompts use, and how a tag is normalised.

Knows: tags and names. Must not know: which of them a model can translate (the engine says that).
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

AUTO = "auto"
"""Stands for the language of each text, which is to be detected."""

# English names as the model cards of open translation models spell them.
NAMES = MappingProxyType(
    {
        "ar": "Arabic",
        "bg": "Bulgarian",
        "bn": "Bengali",
        "ca": "Catalan",
        "cs": "Czech",
        "da": "Danish",
        "de": "German",
        "el": "Greek",
        "en": "English",
        "es": "Spanish",
        "et": "Estonian",
        "fa": "Persian",
        "fi": "Finnish",
        "fr": "French",
        "gu": "Gujarati",
        "he": "Hebrew",
        "hi": "Hindi",
        "hr": "Croatian",
        "hu": "Hungarian",
        "id": "Indonesian",
        "it": "Italian",
        "ja": "Japanese",
        "km": "Khmer",
        "ko": "Korean",
        "lt": "Lithuanian",
        "lv": "Latvian",
        "mr": "Marathi",
        "ms": "Malay",
        "my": "Burmese",
        "nl": "Dutch",
        "no": "Norwegian",
        "pl": "Polish",
        "pt": "Portuguese",
        "ro": "Romanian",
        "ru": "Russian",
        "sk": "Slovak",
        "sl": "Slovenian",
        "sv": "Swedish",
        "ta": "Tamil",
        "te": "Telugu",
        "th": "Thai",
        "tl": "Filipino",
        "tr": "Turkish",
        "uk": "Ukrainian",
        "ur": "Urdu",
        "vi": "Vietnamese",
        "zh": "Chinese",
        "zh-hant": "Traditional Chinese",
    }
)

# Browsers and recognisers send regions. Only these regions change the script.
_TRADITIONAL = {"zh-tw", "zh-hk", "zh-mo"}


def normalise(tag: str) -> str:
    """`en-US` → `en`, `zh_TW` → `zh-hant`. An unknown tag is returned in lower case, for the caller to refuse."""
    lowered = tag.strip().replace("_", "-").lower()
    if lowered in _TRADITIONAL or lowered.startswith("zh-hant"):
        return "zh-hant"
    primary = lowered.partition("-")[0]
    return primary if primary in NAMES else lowered


def normalised(tags: Iterable[str] | None) -> frozenset[str] | None:
    """The set of these tags, each normalised; None for None."""
    return None if tags is None else frozenset(map(normalise, tags))


def language_name(tag: str) -> str:
    """The English name of a normalised tag; the tag itself if it has none."""
    return NAMES.get(tag, tag)
