"""Japanese inflection: a word with its class to polite and plain forms. Knows words, not sentences."""

from __future__ import annotations

from dataclasses import dataclass

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

    def dictionary(self) -> str:
        return self.before + self.text

    def adjective_stem(self) -> str:
        return self.before + (self.text[:-2] + "よ" if self.text.endswith("いい") else self.text[:-1])

    def polite(self, negative: bool, past: bool) -> str:
        if self.kind == "i":
            if negative:
                return self.adjective_stem() + ("くなかったです" if past else "くないです")
            return self.adjective_stem() + "かったです" if past else self.dictionary() + "です"
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
