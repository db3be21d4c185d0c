"""Japanese inflection: a word with its class to polite and plain forms. Knows words, not sentences."""

from __future__ import annotations

from dataclasses import dataclass

from demo_model.clauses.syntax import Modal, Mood

ASKING_MOODS = (Mood.IMPERATIVE, Mood.REQUEST, Mood.LETS)

_GODAN = {
    "う": ("わ", "い", "っ"),
    "つ": ("た", "ち", "っ"),
    "る": ("ら", "り", "っ"),
    "む": ("ま", "み", "ん"),
    "ぶ": ("ば", "び", "ん"),
    "ぬ": ("な", "に", "ん"),
    "く": ("か", "き", "い"),
    "ぐ": ("が", "ぎ", "い"),
    "す": ("さ", "し", "し"),
}

_E_ROW = dict(zip("うつるむぶぬくぐす", "えてれめべねけげせ", strict=True))


@dataclass(frozen=True)
class Word:
    """kind: "1" (ichidan), "5" (godan), "する", "i" or "na" adjective; na words stand without な.

    before: what precedes an inflected ending that was built: Word("いい", "i", "送った方が").
    """

    text: str
    kind: str
    before: str = ""

    def stem(self) -> str:
        """送り, 食べ, し."""
        if self.kind == "する":
            return self.before + self.text[:-2] + "し"
        if self.kind == "1":
            return self.before + self.text[:-1]
        if self.text.endswith("来る"):
            return self.before + self.text[:-1]
        return self.before + self.text[:-1] + _GODAN[self.text[-1]][1]

    def negative_stem(self) -> str:
        """送ら, 食べ, し."""
        if self.kind != "5" or self.text.endswith("来る"):
            return self.stem()
        return self.before + self.text[:-1] + _GODAN[self.text[-1]][0]

    def te(self) -> str:
        if self.kind != "5" or self.text.endswith("来る"):
            return self.stem() + "て"
        if self.text.endswith("行く"):
            return self.before + self.text[:-1] + "って"
        voiced = self.text[-1] in "むぶぬぐ"
        return self.before + self.text[:-1] + _GODAN[self.text[-1]][2] + ("で" if voiced else "て")

    def ta(self) -> str:
        te = self.te()
        return te[:-1] + ("だ" if te[-1] == "で" else "た")

    def e_row(self) -> str:
        """送れ, 食べれ, すれ."""
        if self.kind == "する":
            return self.before + self.text[:-2] + "すれ"
        if self.kind == "1" or self.text.endswith("来る"):
            return self.before + self.text[:-1] + "れ"
        return self.before + self.text[:-1] + _E_ROW[self.text[-1]]

    def potential(self) -> Word:
        """送れる, 食べられる, 確認できる."""
        if self.kind == "する":
            return Word("できる", "1", self.before + self.text[:-2])
        if self.kind == "1" or self.text.endswith("来る"):
            return Word("られる", "1", self.before + self.text[:-1])
        return Word("る", "1", self.e_row())

    def dictionary(self) -> str:
        return self.before + self.text

    def adjective_stem(self) -> str:
        return self.before + (self.text[:-2] + "よ" if self.text.endswith("いい") else self.text[:-1])

    def polite(self, negative: bool, past: bool) -> str:
        if self.kind == "i":
            if negative:
                return self.adjective_stem() + ("くなかったです" if past else "くないです")
            return self.adjective_stem() + "かったです" if past else self.dictionary() + "です"
        if self.kind == "na" and negative and self.text.endswith("必要"):
            return self.dictionary() + ("ありませんでした" if past else "ありません")
        if self.kind == "na":
            ending = (
                ("ではありませんでした" if past else "ではありません")
                if negative
                else "でした"
                if past
                else "です"
            )
            return self.dictionary() + ending
        if negative and self.text == "知っている":
            return "知りませんでした" if past else "知りません"
        return self.stem() + (("ませんでした" if past else "ません") if negative else "ました" if past else "ます")

    def plain(self, negative: bool, past: bool, da: str = "だ") -> str:
        """da: what a na word has after it in the present: だ, な, の or である."""
        if self.kind == "i":
            if negative:
                return self.adjective_stem() + ("くなかった" if past else "くない")
            return self.adjective_stem() + "かった" if past else self.dictionary()
        if self.kind == "na":
            ending = ("ではなかった" if past else "ではない") if negative else "だった" if past else da
            return self.dictionary() + ending
        if negative:
            nai = self.before + self.text[:-2] if self.text.endswith("ある") else self.negative_stem()
            return nai + ("なかった" if past else "ない")
        return self.ta() if past else self.dictionary()


def verb(cell: str) -> Word:
    """送る → godan; 始める1 → ichidan; 確認する → する."""
    if cell.endswith(("な", "の")):
        return Word(cell[:-1], "na")
    if cell.endswith("い"):
        return Word(cell, "i")
    if cell.endswith("1"):
        return Word(cell[:-1], "1")
    return Word(cell, "する" if cell.endswith("する") else "5")


def adjective(cell: str) -> Word:
    """高い, 重要な, 無料の; also a verb: 信頼できる1."""
    return verb(cell)


def with_modal(
    word: Word, modal: Modal, mood: Mood, third: bool, negative: bool, past: bool
) -> tuple[Word, bool, bool]:
    """What one can, must, wants to … do: (word, negative, past). third: he, she or they."""
    match modal:
        case Modal.CAN:
            return word.potential(), negative, past
        case Modal.MUST if negative:
            return Word("いい", "i", word.negative_stem() + "なくても"), False, past
        case Modal.MUST if mood in (Mood.YES_NO, Mood.WH):
            return Word("ある", "5", word.dictionary() + "必要が"), False, past
        case Modal.MUST:
            return Word("なる", "5", word.negative_stem() + "なければ"), True, past
        case Modal.SHOULD if negative:
            return Word("いい", "i", word.negative_stem() + "ない方が"), False, past
        case Modal.SHOULD if mood is Mood.WH:
            return Word("いい", "i", word.e_row() + "ば"), False, past
        case Modal.SHOULD if mood is Mood.YES_NO:
            return Word("いい", "i", word.ta() + "方が"), False, past
        case Modal.SHOULD:
            return Word("べき", "na", word.dictionary()), False, past
        case Modal.MIGHT:
            return Word("しれる", "1", word.plain(negative, False, "") + "かも"), True, False
        case Modal.WANT if third and mood is Mood.STATEMENT:
            return Word("いる", "1", word.stem() + "たがって"), negative, past
    return Word("たい", "i", word.stem()), negative, past
