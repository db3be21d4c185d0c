"""Translates marked-up text: what to translate of it, and where its tags are in the translation.

Knows: tokens of markup, translations of plain texts. Must not know: APIs, engines.

An engine has no tags. A sentence with tags in it is translated without them, and each part within tags once more
by itself. Its tags are put around it where it is found again in the sentence, else where most of its words are,
else where it was, in proportion. Only where something that is to be kept is not in the translation, or a tag ends
in another sentence, all parts stand in their old order, each with its own translation. So tags are never lost.
"""

from __future__ import annotations

import html
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, count, pairwise

from msgspec import Struct

from gateway.server.compat.alignment import Places, Span
from gateway.server.compat.markup import Kind, Rules, Token, tokens

# Elements within each other in one sentence; what is deeper is not moved.
_MOST_DEPTH = 16

_MARK = re.compile(r"\{\d+\}")
_SPACE = re.compile(r"[ \t\r\n\f]+")
# What XML cannot have.
_NO_CHARACTER = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_QUOTES = '"“”„«»‹›「」『』'
_STOPS = ".,;:!?…。、！？；："


class _Point(Struct, frozen=True):
    """A tag without content, a comment, or a tag whose other half is not in the same sentence."""

    raw: str
    # Stands for it in a text.
    mark: str = ""
    is_half: bool = False


class _Kept(Struct, frozen=True):
    """An element that is not translated."""

    raw: str
    text: str


class _Element(Struct, frozen=True):
    start: str
    children: list[_Node]
    end: str


# A string is text, without entities.
_Node = str | _Point | _Kept | _Element


class Tagged:
    """One text. Raises `InvalidValue` for XML that is not well-formed."""

    def __init__(self, text: str, rules: Rules) -> None:
        self._kind: Kind = rules.kind
        found = tokens(text, rules)
        self.plain = _SPACE.sub(" ", "".join(each.text for each in found if each.kind == "text")).strip()
        """All that is to be translated, without tags."""
        self._pieces = list(_pieces(found, _marks(text)))
        blocks = (_core(piece)[1] for piece in self._pieces if not isinstance(piece, str))
        self.texts = list(dict.fromkeys(text for nodes in blocks for text in _texts_of(nodes)))
        """What is to be translated, each once."""

    def translated(self, said: Mapping[str, str]) -> tuple[str, list[str]]:
        """The whole, and what is to be translated besides before it is right; mostly nothing.

        said: the translation of each of `texts`, and of what was to be translated besides.
        """
        missing: dict[str, None] = {}

        def of(text: str) -> str:
            if text not in said:
                missing[text] = None
            return said.get(text, "")

        whole = "".join(piece if isinstance(piece, str) else self._block(piece, of) for piece in self._pieces)
        return whole, list(missing)

    def _block(self, nodes: Sequence[_Node], said: Callable[[str], str]) -> str:
        before, nodes, after = _core(nodes)
        whole = _text(nodes) if _is_a_whole(nodes) else None
        inner = None if whole is None else self._placed(nodes, said(whole), said)
        if inner is None:
            inner = self._part_by_part(nodes, said if len(nodes) == 1 else _as_part(said))
        return self._as_it_was(before) + inner + self._as_it_was(after)

    def _placed(self, nodes: Sequence[_Node], text: str, said: Callable[[str], str]) -> str | None:
        """The tags of `nodes` in the translation of their text; None if it cannot be told where."""
        found = _found(nodes, text, said)
        if found is None:
            return None
        found.sort(key=lambda each: each[0])
        if any(one[0][1] > other[0][0] for one, other in pairwise(found)):
            return None
        parts, done = [], 0
        for (start, end), node in found:
            # A blank that is within the tags stays there.
            before, after = _blanks(node)
            start -= before and text[done:start].endswith(" ")
            end += after and text[end:].startswith(" ")
            inner = self._tagged(node, text[start:end], said)
            if inner is None:
                return None
            parts += [self._escaped(text[done:start]), inner]
            done = end
        return "".join([*parts, self._escaped(text[done:])])

    def _tagged(self, node: _Node, text: str, said: Callable[[str], str]) -> str | None:
        if not isinstance(node, _Element):
            return self._as_it_was([node])
        inner = self._placed(node.children, text, said)
        return None if inner is None else f"{node.start}{inner}{node.end}"

    def _part_by_part(self, nodes: Sequence[_Node], said: Callable[[str], str]) -> str:
        parts = []
        for node in nodes:
            if isinstance(node, _Element):
                parts.append(f"{node.start}{self._part_by_part(node.children, said)}{node.end}")
            elif isinstance(node, str) and _has_words(node):
                before, core, after = _without_quotes(node)
                # Small models may make nothing of a few words without their sentence.
                parts.append(before + self._escaped(said(core).strip() or core) + after)
            else:
                parts.append(self._as_it_was([node]))
        return "".join(parts)

    def _as_it_was(self, nodes: Sequence[_Node]) -> str:
        return "".join(
            self._escaped(node)
            if isinstance(node, str)
            else f"{node.start}{self._as_it_was(node.children)}{node.end}"
            if isinstance(node, _Element)
            else node.raw
            for node in nodes
        )

    def _escaped(self, text: str) -> str:
        escaped = html.escape(_NO_CHARACTER.sub("", text), quote=False)
        return escaped.replace("\xa0", "&nbsp;") if self._kind == "html" else escaped


# ---------------------------------------------------------------- sentences, and what is in them


def _pieces(found: list[Token], marks: Iterator[str]) -> Iterator[str | list[_Node]]:
    """In order: what is written between sentences, and the nodes of each sentence or paragraph."""
    block = _Block(marks)
    for token in found:
        if token.divides:
            yield block.end()
            yield token.raw
        else:
            block.add(token)
    yield block.end()


class _Block:
    """The nodes of a sentence, as its tokens come."""

    def __init__(self, marks: Iterator[str]) -> None:
        self._marks = marks
        # Elements that are open, the innermost last: its start, and what is in it. The first is the whole.
        self._open: list[tuple[Token, list[_Node]]] = []
        self._nodes: list[_Node] = []

    def add(self, token: Token) -> None:
        if token.kind == "start" and len(self._open) < _MOST_DEPTH:
            self._open.append((token, self._nodes))
            self._nodes = []
        elif token.kind == "end" and any(start.name == token.name for start, _ in self._open):
            while self._open[-1][0].name != token.name:
                self._give_up()
            start, around = self._open.pop()
            around.append(self._closed(start, self._nodes, token))
            self._nodes = around
        elif token.kind == "text":
            self._nodes.append(token.text)
        elif token.kind == "kept" and token.text.strip():
            self._nodes.append(_Kept(token.raw, _SPACE.sub(" ", token.text.strip())))
        else:
            self._nodes.append(_Point(token.raw, next(self._marks), token.kind in ("start", "end")))

    def end(self) -> list[_Node]:
        while self._open:
            self._give_up()
        nodes, self._nodes = self._nodes, []
        return nodes

    def _closed(self, start: Token, nodes: list[_Node], end: Token) -> _Node:
        if _text(nodes):
            return _Element(start.raw, nodes, end.raw)
        return _Point(start.raw + "".join(map(_raw, nodes)) + end.raw, next(self._marks))

    def _give_up(self) -> None:
        """The innermost element does not end within this sentence."""
        start, around = self._open.pop()
        self._nodes = [*around, _Point(start.raw, next(self._marks), is_half=True), *self._nodes]


def _raw(node: _Node) -> str:
    """A node without words, as it was written."""
    return node if isinstance(node, str) else "" if isinstance(node, _Element) else node.raw


def _marks(text: str) -> Iterator[str]:
    """What can stand for a tag, and is not in the text. Models mostly leave such things as they are."""
    taken = set(_MARK.findall(text))
    for number in count(1):
        if (mark := f"{{{number}}}") not in taken:
            yield mark


def _core(nodes: Sequence[_Node]) -> tuple[list[_Node], Sequence[_Node], list[_Node]]:
    """What stands before all words and can stay there, the rest, and what stands after all words."""
    before: list[_Node] = []
    after: list[_Node] = []
    while True:
        nodes = _without_space(nodes, before, after)
        if len(nodes) != 1 or not isinstance(element := nodes[0], _Element):
            return before, nodes, after
        before.append(_Point(element.start))
        after.insert(0, _Point(element.end))
        nodes = element.children


def _without_space(nodes: Sequence[_Node], before: list[_Node], after: list[_Node]) -> Sequence[_Node]:
    """Moves what has no words from both ends to `before` and `after`."""
    left = deque(nodes)
    while left and _is_edge(left[0]):
        before.append(left.popleft())
    ends: deque[_Node] = deque()
    while left and _is_edge(left[-1]):
        ends.appendleft(left.pop())
    if left and isinstance(first := left[0], str):
        before.append(_stripped(first)[0])
        left[0] = first.lstrip()
    if left and isinstance(last := left[-1], str):
        ends.appendleft(_stripped(last)[2])
        left[-1] = last.rstrip()
    after[:0] = ends
    return list(left)


def _is_edge(node: _Node) -> bool:
    return isinstance(node, _Point) or (isinstance(node, str) and not node.strip())


def _texts_of(nodes: Sequence[_Node]) -> Iterator[str]:
    """The whole, and what its elements are found by in its translation; else its parts."""
    is_whole = _is_a_whole(nodes)
    if is_whole:
        yield _text(nodes)
    yield from _inner_texts_of(nodes, whole=is_whole)


def _inner_texts_of(nodes: Sequence[_Node], *, whole: bool) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, _Element):
            if whole and _is_said(node.children):
                yield _words_of(node)
            yield from _inner_texts_of(node.children, whole=whole)
        elif isinstance(node, str) and not whole and _has_words(node):
            yield _without_quotes(node)[1]


def _words_of(node: _Element) -> str:
    """What is translated of it by itself."""
    return _without_quotes(_text([node]))[1]


def _is_a_whole(nodes: Sequence[_Node]) -> bool:
    """Whether a sentence can be translated with what is around its parts."""
    return len(nodes) > 1 and _is_said(nodes) and not any(map(_has_half, nodes))


def _has_half(node: _Node) -> bool:
    # If its other half stays where it is, it must not be moved.
    return any(map(_has_half, node.children)) if isinstance(node, _Element) else getattr(node, "is_half", False)


def _is_said(nodes: Sequence[_Node]) -> bool:
    """Whether there is something to translate."""
    return any(
        _has_words(node) if isinstance(node, str) else isinstance(node, _Element) and _is_said(node.children)
        for node in nodes
    )


def _has_words(text: str) -> bool:
    return any(map(str.isalpha, text))


def _text(nodes: Sequence[_Node]) -> str:
    """All text, and a mark for each tag that has none."""
    return _SPACE.sub(" ", "".join(map(_text_of, nodes))).strip()


def _found(nodes: Sequence[_Node], text: str, said: Callable[[str], str]) -> list[tuple[Span, _Node]] | None:
    """Where each node is in the translation of their text. None: a word that is to be kept is not there."""
    shares = _shares(nodes)
    wanted = {index: _sought(node, said) for index, node in enumerate(nodes) if not isinstance(node, str)}
    times = Counter(wanted.values())
    spans = {each: [match.span() for match in _pattern(each).finditer(text)] for each in times}
    exact = {each for each, often in times.items() if len(spans[each]) == often}
    found = {index: spans[each].pop(0) for index, each in wanted.items() if each in exact}
    if any(one[1] > other[0] for one, other in pairwise(sorted(found.values()))):
        found = {}
    places = Places(text)
    for span in found.values():
        places.take(span)
    elements = [index for index in wanted if index not in found and isinstance(nodes[index], _Element)]
    for index in elements:
        if (words := places.of_words(wanted[index], shares[index])) is not None:
            places.take(words)
            found[index] = words
    for index in elements:
        if index not in found and (words := places.about(shares[index])) is not None:
            places.take(words)
            found[index] = words
    for index in wanted.keys() - found.keys():
        if not isinstance(nodes[index], _Point) or "{" in text:  # a mark that the engine has changed
            return None
        at = places.before_a_word(shares[index][0])
        found[index] = at, at
    return [(found[index], nodes[index]) for index in wanted]


def _shares(nodes: Sequence[_Node]) -> list[tuple[float, float]]:
    """Where in their text each node begins and ends, from 0 to 1."""
    ends = list(accumulate((len(_text_of(node)) for node in nodes), initial=0))
    length = ends[-1] or 1
    return [(begin / length, end / length) for begin, end in pairwise(ends)]


def _text_of(node: _Node) -> str:
    match node:
        case str():
            return node
        case _Point():
            return node.mark
        case _Kept():
            return node.text
        case _Element():
            return "".join(map(_text_of, node.children))


def _stripped(text: str) -> tuple[str, str, str]:
    """Space before, the text, space after."""
    core = text.strip()
    at = text.index(core)
    return text[:at], _SPACE.sub(" ", core), text[at + len(core) :]


def _blanks(node: _Node) -> tuple[bool, bool]:
    """Whether an element begins, and ends, with a blank."""
    text = _text_of(node) if isinstance(node, _Element) else ""
    return text[:1].isspace(), text[-1:].isspace()


def _without_quotes(text: str) -> tuple[str, str, str]:
    """As `_stripped`, with the quotation marks at either end whose other halves are in other parts."""
    before, core, after = _stripped(text)
    inside = core.strip(_QUOTES + " ")
    if not inside or inside == core or not set(_QUOTES).isdisjoint(inside) or _is_quoted(core):
        return before, core, after
    at = core.index(inside)
    return before + core[:at], inside, core[at + len(inside) :] + after


def _is_quoted(text: str) -> bool:
    return text[0] in _QUOTES and text[-1] in _QUOTES


def _sought(node: _Node, said: Callable[[str], str]) -> str:
    """What to look for in a translation to find a node."""
    if isinstance(node, _Element) and _is_said(node.children):
        return _as_part(said)(_words_of(node))
    return _text([node])


def _as_part(said: Callable[[str], str]) -> Callable[[str], str]:
    """What is said within a sentence: by itself, a part of it often gets a full stop."""

    def part(text: str) -> str:
        found = said(text).strip()
        return found if text[-1] in _STOPS else found.rstrip(_STOPS)

    return part


def _pattern(text: str) -> re.Pattern[str]:
    """Finds a text, in any case, as whole words where words have spaces between them."""
    before, after = (r"\b" if text and _is_of_words(edge) else "" for edge in (text[:1], text[-1:]))
    words = r"\s+".join(map(re.escape, text.split())) or r"(?!)"
    return re.compile(before + words + after, re.IGNORECASE)


def _is_of_words(letter: str) -> bool:
    # Chinese, Japanese and Thai have neither cases nor spaces.
    return letter.isdigit() or letter.lower() != letter.upper()
