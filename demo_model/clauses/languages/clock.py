"""The time of day in words, as it is spoken: half past nine, halb zehn, neuf heures et demie."""

from __future__ import annotations

from demo_model.recogniser import NUMBER_WORDS

_ONE = {"en": "one", "es": "una", "de": "eins", "fr": "une", "zh": "一"}
_FRENCH = ("treize", "quatorze", "quinze", "seize", "dix-sept", "dix-huit", "dix-neuf", "vingt")
"""The hours from 13 on, where the morning would be heard."""


def clock(hour: int, minute: int, language: str, form: str = "", casual: bool = False) -> str:
    """The words of a time. hour: 1 to 23, of the end of a span at most 20; minute: 0, 15, 30 or 45.

    form: "until" ends a span of hours; "bare" is without the Spanish article; "apart" follows a Chinese weekday.
    casual: without "o'clock".
    """
    shown = (hour - 1) % 12 + 1
    if language == "ja":
        return f"{shown}時" + {0: "", 30: "半"}.get(minute, f"{minute}分")
    if language == "fr" and hour > 12 and form == "until":
        return f"{_FRENCH[hour - 13]} heures" + {30: " trente", 15: " quinze"}.get(minute, "")
    ahead = (minute == 45 and language != "zh") or (minute == 30 and language == "de")
    shown = shown % 12 + 1 if ahead else shown
    word = _ONE[language] if shown == 1 else NUMBER_WORDS[language][shown - 2]
    match language:
        case "en":
            full = word if casual else f"{word} o'clock"
            return {0: full, 15: f"quarter past {word}", 30: f"half past {word}", 45: f"quarter to {word}"}[minute]
        case "de":
            full = word if casual else f"{word.removesuffix('s') if shown == 1 else word} Uhr"
            return {0: full, 15: f"Viertel nach {word}", 30: f"halb {word}", 45: f"Viertel vor {word}"}[minute]
        case "fr":
            word = "*huit" if shown == 8 else word  # de huit heures
            hours = "midi" if shown == 12 else f"{word} heure" + ("s" if shown > 1 else "")
            half = " et demi" if shown == 12 else " et demie"
            return hours + {0: "", 15: " et quart", 30: half, 45: " moins le quart"}[minute]
        case "zh":
            part = (
                ("中午" if hour == 12 else "上午") if form == "apart" and word[0] == "十" else ""
            )  # 星期二|十二点
            return f"{part}{word}点" + {0: "", 15: "一刻", 30: "半", 45: "三刻"}[minute]
    article = "" if form == "bare" else "la " if shown == 1 else "las "
    return article + word + {0: "", 15: " y cuarto", 30: " y media", 45: " menos cuarto"}[minute]
