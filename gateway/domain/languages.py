"""Languages by BCP 47 tag: the English names that prompts use, and how a tag is normalised.

Knows: tags and names. Must not know: which of them a model can translate (the engine says that).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from types import MappingProxyType

AUTO = "auto"
"""Stands for the language of each text, which is to be detected."""

UNDETERMINED = "und"
"""The language of a text that says too little about it. Nothing is translated from it."""

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

# As many characters as a well-formed tag of five parts has.
_MOST_CHARS = 44
_FORM = re.compile(r"[a-z]{2,8}(?:-[a-z0-9]{1,8})*")
_RIGHT_TO_LEFT = frozenset({"ar", "arc", "ckb", "dv", "fa", "he", "ks", "ku", "ps", "sd", "syr", "ug", "ur", "yi"})


def normalise(tag: str) -> str:
    """`en-US` → `en`, `zh_TW` → `zh-hant`, `iw-IL` → `he`, `cmn-Hans-CN` → `zh`, `nb-NO` → `no`.

    Aliases and scripts are those of Unicode's CLDR, then what ISO 639-3 counts as one language. An unknown tag is
    returned in lower case, for the caller to refuse.
    """
    lowered = tag.strip().replace("_", "-").lower()
    return _known(lowered) or lowered if len(lowered) <= _MOST_CHARS and _FORM.fullmatch(lowered) else lowered


def normalise_all(tags: Iterable[str]) -> tuple[str, ...]:
    """Each normalised, and once, in their order."""
    return tuple(dict.fromkeys(normalise(tag) for tag in tags))


@lru_cache(maxsize=1024)
def _known(tag: str) -> str | None:
    if tag in NAMES:
        return tag
    language, script = _canonical(tag)
    return _names().get((language, script)) or _names().get((language, None))


@cache
def _names() -> dict[tuple[str | None, str | None], str]:
    """Language, with its script where that makes a difference → tag."""
    found: dict[tuple[str | None, str | None], str] = {}
    for tag in NAMES:
        language, script = _canonical(tag)
        found[language, script if "-" in tag else None] = tag
    return found


def _canonical(tag: str) -> tuple[str | None, str | None]:
    """Language and likely script, by the names that are in force; (None, None) for what is not a tag."""
    # Its tables take a tenth of a second; most tags are known without.
    from langcodes import Language
    from langcodes.data_dicts import MACROLANGUAGES

    try:
        found = Language.get(tag)
    except ValueError:
        return None, None
    if found.language is None:  # of which English would be the likeliest
        return None, None
    found = found.maximize()
    language = found.language or ""
    return language if language in NAMES else MACROLANGUAGES.get(language, language), found.script


@lru_cache(maxsize=1024)
def likely_script(tag: str) -> str | None:
    """The script of a normalised tag by ISO 15924, such as `Latn`, `Jpan` or `Hant`."""
    return _canonical(tag)[1]


def is_right_to_left(tag: str) -> bool:
    """Whether the language of a normalised tag is written from right to left."""
    return tag.partition("-")[0] in _RIGHT_TO_LEFT


def normalised(tags: Iterable[str] | None) -> frozenset[str] | None:
    """The set of these tags, each normalised; None for None."""
    return None if tags is None else frozenset(map(normalise, tags))


def language_name(tag: str) -> str:
    """The English name of a normalised tag; the tag itself if it has none."""
    return NAMES.get(tag, tag)
