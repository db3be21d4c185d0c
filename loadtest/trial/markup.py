"""HTML that cannot be forgotten to be escaped: what is not `Markup` is text. Must not know what it is about."""

from __future__ import annotations

import html

__all__ = ["Markup", "element", "joined"]


class Markup(str):
    """A fragment of HTML, balanced, in which every text is escaped."""

    __slots__ = ()


_VOID = frozenset({"meta", "img", "br", "hr"})


def element(name: str, /, *children: str, **attributes: str | bool) -> Markup:
    """An element. `class_` is the attribute `class`, `aria_label` is `aria-label`; a false one is absent."""
    words = [name]
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(attribute)
        elif value is not False:
            words.append(f'{attribute}="{html.escape(value)}"')
    begin = f"<{' '.join(words)}>"
    return Markup(begin) if name in _VOID else Markup(f"{begin}{joined(*children)}</{name}>")


def joined(*children: str) -> Markup:
    """Fragments and texts one after another."""
    return Markup("".join(each if isinstance(each, Markup) else html.escape(each) for each in children))
