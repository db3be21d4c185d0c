"""Reads marked-up text: which of it is text, which is tags, and where a sentence cannot go on.

Knows: XML and HTML. Must not know: translations, APIs.

Whatever is not text is kept as it was written, character by character.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from typing import Literal
from xml.parsers import expat

from msgspec import Struct
from msgspec.structs import replace

from gateway.domain.errors import InvalidValue

Kind = Literal["xml", "html"]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Elements of HTML that are not within a line, and some that have no text for people. All others are inline.
_BLOCKS = _names(
    """address article aside audio base blockquote body br caption center col colgroup dd details dialog dir div dl
    dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe
    legend li link main math menu meta nav noscript object ol optgroup option p param pre script search section
    select source style summary svg table tbody td template textarea tfoot th thead title tr track ul video"""
)
_VOID = _names("area base br col embed hr img input link meta param source track wbr")
_NOT_FOR_PEOPLE = _names("math script style svg template textarea")

# As an entity, without the zeros before it.
_NUMBER = re.compile("&#0*([0-9]+)")

# What may stand before the root of a document. A document type with declarations of its own is not read.
_PROLOGUE = re.compile(r"\s*(?:<\?xml\b[^>]*\?>)?\s*(?:<!DOCTYPE\b[^>\[]*>)?", re.IGNORECASE)


class Rules(Struct, frozen=True):
    """How text is marked up. Names of tags are as they are written; in HTML, in lower case."""

    kind: Kind
    # Elements whose text is not translated.
    ignored: frozenset[str] = frozenset()
    # Tags at which a sentence ends; and those at which it goes on, whatever else is said.
    splitting: frozenset[str] = frozenset()
    non_splitting: frozenset[str] = frozenset()
    # In XML: where there are only elements beside each other, and no text, none of them is within a sentence.
    outline: bool = True


class Token(Struct, frozen=True):
    """A part of the text. point: a tag without content, a comment or the like. kept: a whole element as it is."""

    kind: Literal["text", "start", "end", "point", "kept"]
    raw: str
    name: str = ""
    # A sentence ends here.
    divides: bool = False
    # The content of this element is not translated.
    ignored: bool = False
    # What it says to people, without tags and entities.
    text: str = ""


def tokens(text: str, rules: Rules) -> list[Token]:
    """The parts of a text; their `raw` together are the text. Raises `InvalidValue` for malformed XML."""
    found = _with_outline(list(_xml(text, rules)), rules) if rules.kind == "xml" else list(_html(text, rules))
    return list(_kept_together(found))


def _text(raw: str) -> Token:
    # A number of 9 digits is no character, and one of some thousands is refused by Python.
    short = _NUMBER.sub(lambda match: f"&#{match[1][:9]}", raw)
    return Token("text", raw, text=html.unescape(short))


def _kept_together(found: list[Token]) -> Iterator[Token]:
    """Each element that is not translated as one token; one without an end stays a start."""
    ends, at = _ends(found), 0
    while at < len(found):
        token = found[at]
        end = ends.get(at, at) if token.ignored else at
        if end > at:
            inside = found[at : end + 1]
            raw, text = "".join(each.raw for each in inside), "".join(each.text for each in inside)
            token = replace(token, kind="kept", raw=raw, text=text)
        yield token
        at = end + 1


def _ends(found: list[Token]) -> dict[int, int]:
    """Where each element that begins here or there ends, among elements of its name."""
    ends: dict[int, int] = {}
    begun: dict[str, list[int]] = {}
    for at, token in enumerate(found):
        if token.kind == "start":
            begun.setdefault(token.name, []).append(at)
        elif token.kind == "end" and (starts := begun.get(token.name)):
            ends[starts.pop()] = at
    return ends


# ---------------------------------------------------------------- HTML

# It is read as browsers do (https://html.spec.whatwg.org/multipage/parsing.html#tokenization), but after the last
# `>` there is only text. Every step begins where the one before it ended, and nothing that was not found is looked
# for again: the time is linear in the length of the text, whatever it is.

_S = r" \t\n\r\f"
_MARKUP = re.compile(r"<[a-zA-Z!?/]")
_TAG = re.compile(rf"<(/?)([a-zA-Z][^{_S}/>]*)")
# Without a name: what stands before the end of a tag. A quotation mark without its other half is like a letter.
_ATTRIBUTE = re.compile(
    rf"""[{_S}/]*(?:(?P<name>[^{_S}/>][^{_S}/>=]*)"""
    rf"""(?:[{_S}]*=[{_S}]*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^{_S}>]+))?)?)?"""
)
_LINES = re.compile(r"[\r\n]+|[^\r\n]+")
_COMMENT_END = re.compile("--!?>")
_CDATA_END = re.compile("]]>")
# Elements in which there are no tags, with what ends them.
_RAW_TEXT_END = {
    name: re.compile(rf"</{name}(?=[{_S}/>])", re.IGNORECASE | re.ASCII) for name in ("script", "style")
}


def _html(text: str, rules: Rules) -> Iterator[Token]:
    # in_lines: how many elements are open in which each line is by itself.
    at, last, in_lines = 0, text.rfind(">"), 0
    while at < len(text):
        found = _MARKUP.search(text, at, max(last, at))
        start = len(text) if found is None else found.start()
        if start > at:
            yield from _lines(text[at:start]) if in_lines else [_text(text[at:start])]
        if found is None:
            return
        token = _markup(text, start, rules)
        yield token
        at = start + len(token.raw)
        if token.name == "pre" and token.divides:
            in_lines = max(0, in_lines + (token.kind == "start") - (token.kind == "end"))
        if token.kind == "start" and token.name in _RAW_TEXT_END:
            raw = text[at : _end(text, at, _RAW_TEXT_END[token.name], with_it=False)]
            if raw:
                yield Token("point", raw, divides=True)
            at += len(raw)


def _lines(text: str) -> Iterator[Token]:
    for part in _LINES.findall(text):
        yield replace(_text(part), divides=part[0] in "\r\n")


def _markup(text: str, at: int, rules: Rules) -> Token:
    """What begins at this place, with a `>` somewhere after it."""
    if (tag := _TAG.match(text, at)) is not None:
        return _tag(text, tag, rules)
    if text.startswith("<!--", at):
        # `<!-->` is whole.
        return Token("point", text[at : _end(text, at + 2, _COMMENT_END)])
    if text.startswith("<![CDATA[", at):
        return Token("point", text[at : _end(text, at, _CDATA_END)])
    raw = text[at : text.index(">", at) + 1]
    return Token("point", raw, divides=raw.startswith("<?") or raw[:9].lower() == "<!doctype")


def _end(text: str, at: int, of: re.Pattern[str], *, with_it: bool = True) -> int:
    """What has no end goes on to the end of the text."""
    found = of.search(text, at)
    return len(text) if found is None else found.end() if with_it else found.start()


def _tag(text: str, tag: re.Match[str], rules: Rules) -> Token:
    given: dict[str, str] = {}
    end, before_end = tag.end(), ""
    for attribute in _ATTRIBUTE.finditer(text, tag.end()):
        end, before_end = attribute.end(), attribute[0]
        if (attribute_name := attribute["name"]) is None:
            break
        value = attribute["double"] or attribute["single"] or attribute["bare"] or ""
        given.setdefault(attribute_name.lower(), value)
    if end == len(text):
        # It has no end; every `>` after it is within quotation marks.
        return Token("point", text[tag.start() :])
    name, raw = tag[2].lower(), text[tag.start() : end + 1]
    divides = name in rules.splitting or (name in _BLOCKS and name not in rules.non_splitting)
    if tag[1]:
        return Token("end", raw, name, divides)
    is_empty = name in _VOID or before_end.endswith("/")
    ignored = (
        name in rules.ignored
        or name in _NOT_FOR_PEOPLE
        or given.get("translate") == "no"
        or "notranslate" in given.get("class", "").split()
    )
    return Token("point" if is_empty else "start", raw, name, divides, ignored)


# ---------------------------------------------------------------- XML


class _Events:
    """Where what begins. Each goes on until the next."""

    def __init__(self) -> None:
        self.found: list[tuple[int, Token]] = []

    def add(self, at: int, token: Token) -> None:
        # Text comes in pieces, with an entity each.
        if not (token.kind == "text" and self.found and self.found[-1][1].kind == "text"):
            self.found.append((at, token))

    def tokens(self, data: bytes) -> Iterator[Token]:
        """data: what was read."""
        ends = [*(at for at, _ in self.found[1:]), None]
        for (at, token), end in zip(self.found, ends, strict=False):
            raw = data[at:end].decode()
            yield _text(raw) if token.kind == "text" else replace(token, raw=raw)


def _xml(text: str, rules: Rules) -> Iterator[Token]:
    prologue = text[: _prologue_ends(text)]
    if prologue:
        yield Token("point", prologue, divides=True)
    # Not a document but what could stand in one. It cannot declare entities there.
    opening = b"<r>"
    data = opening + text[len(prologue) :].encode() + b"</r>"
    events, parser, in_cdata = _Events(), expat.ParserCreate("utf-8"), False

    def add(token: Token) -> None:
        if not in_cdata:
            events.add(parser.CurrentByteIndex, token)

    def cdata(begins: bool) -> None:
        nonlocal in_cdata
        if begins:
            add(Token("point", ""))
        in_cdata = begins

    def place() -> int:
        read = data[len(opening) : parser.ErrorByteIndex].decode(errors="replace")
        return min(len(prologue) + len(read) + 1, len(text))

    handlers: dict[str, Callable[..., None]] = {
        "StartElementHandler": lambda name, _: add(Token("start", "", name, ignored=name in rules.ignored)),
        "EndElementHandler": lambda name: add(Token("end", "", name)),
        "CharacterDataHandler": lambda _: add(Token("text", "")),
        "CommentHandler": lambda _: add(Token("point", "")),
        "ProcessingInstructionHandler": lambda *_: add(Token("point", "")),
        "StartCdataSectionHandler": lambda: cdata(True),
        "EndCdataSectionHandler": lambda: cdata(False),
    }
    for name, handler in handlers.items():
        setattr(parser, name, handler)
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise _not_well_formed(f"{expat.ErrorString(error.code)}, at character {place()}") from None
    finally:
        # They hold the parser, and with it all that was found, until the garbage collector looks.
        for name in handlers:
            setattr(parser, name, None)
    # Without the element around it.
    found = list(events.tokens(data))[1:-1]
    yield from _without_empty_ends(found)


def _prologue_ends(text: str) -> int:
    match = _PROLOGUE.match(text)
    return match.end() if match is not None and match[0].strip() else 0


def _without_empty_ends(found: list[Token]) -> Iterator[Token]:
    for token, after in zip(found, [*found[1:], None], strict=False):
        if token.kind == "end" and not token.raw:
            continue
        is_empty = token.kind == "start" and after is not None and after.kind == "end" and not after.raw
        yield replace(token, kind="point") if is_empty else token


def _with_outline(found: list[Token], rules: Rules) -> list[Token]:
    """Which tags a sentence does not go across."""
    # The element that each token is in, by the place of its start; text directly in it.
    parents, open_at, with_text = [-1] * len(found), [-1], set()
    for at, token in enumerate(found):
        if token.kind == "end":
            parents[at] = parents[open_at.pop()]
            continue
        parents[at] = open_at[-1]
        if token.kind == "start":
            open_at.append(at)
        elif token.kind == "text" and token.raw.strip():
            with_text.add(open_at[-1])

    def divides(token: Token, parent: int) -> bool:
        if token.name in rules.splitting or not token.name:
            return token.name in rules.splitting or token.divides
        return rules.outline and parent not in with_text and token.name not in rules.non_splitting

    return [replace(token, divides=divides(token, parent)) for token, parent in zip(found, parents, strict=True)]


def _not_well_formed(why: str) -> InvalidValue:
    return InvalidValue(f"The tags of the text cannot be read (tag_handling): {why}.", field="text")
