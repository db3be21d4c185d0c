"""An SVG file of matplotlib's as an element of a page. Must not know what is drawn."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["inline"]


def inline(drawn: str, prefix: str, colours: Mapping[str, str]) -> str:
    """Without what only a file of its own needs, in the page's font and size.

    prefix: of its ids, which have to be the page's only ones. colours: what stands for each of those it was drawn
    in, as in `#fe00f0`.
    """
    text = drawn[drawn.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    # It would be in force for the whole page, which says the same.
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>\s*", "", text, flags=re.DOTALL)
    # Words between the tags stay as they are, and no tag has a ">" within.
    return re.sub(r"<[^>]*>", lambda tag: _tag(tag[0], prefix, colours), text)


def _tag(tag: str, prefix: str, colours: Mapping[str, str]) -> str:
    if tag.startswith("<!--"):
        return ""
    tag = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", tag).replace("xlink:href", "href")
    tag = re.sub(r'\bid="([^"]*)"', rf'id="{prefix}-\1"', tag)
    tag = re.sub(r'(href="|url\()#', rf"\1#{prefix}-", tag)
    tag = re.sub(r"font(-family)?: ?[^;\"]*", _font, tag)
    for drawn, shown in colours.items():
        tag = tag.replace(drawn, shown)
    tag = re.sub(r"-?\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), tag)
    # Its size is the page's affair; the view box keeps its shape.
    return re.sub(r'\s(width|height|version)="[^"]*"', "", tag) if tag.startswith("<svg") else tag


def _font(found: re.Match[str]) -> str:
    size = re.search(r"[\d.]+px", found[0])
    return f"font-size: {size[0]}" if size else "font-family: inherit"
