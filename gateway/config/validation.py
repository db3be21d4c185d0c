"""Checks names, types and ranges of settings, which it reads from the types of the fields.

Knows: types as msgspec describes them, and a sentence for each mistake.
Must not know: any single setting.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec import inspect as shapes

from gateway.config.settings import Settings
from gateway.config.sources import Source, merged, origin

# Type of a field → how its value is read, and the complaint if that fails.
_SCALARS: dict[type[shapes.Type], tuple[type, str]] = {
    shapes.IntType: (int, "is not a whole number"),
    shapes.FloatType: (float, "is not a number"),
    shapes.BoolType: (bool, "is neither true nor false"),
    shapes.StrType: (str, "is not text"),
}


class Range(Struct, frozen=True):
    """The range of a number, both ends included."""

    kind: type[int] | type[float]
    # None: no limit.
    ge: float | None = None
    le: float | None = None

    def __contains__(self, number: float) -> bool:
        # NaN is outside every range that has a limit.
        return (self.ge is None or number >= self.ge) and (self.le is None or number <= self.le)

    @property
    def complaint(self) -> str:
        """The complaint about a number outside the range."""
        if self.le is None:
            return f"is below {self.ge}"
        if self.ge is None:
            return f"is above {self.le}"
        return f"is not between {self.ge} and {self.le}"


# ---------------------------------------------------------------- names and types


def type_mistakes(source: Source) -> Iterator[str]:
    """A sentence for each name that does not exist and each value of the wrong type."""
    return _check_type(source, "", _SHAPE, source.tree)


def _check_type(source: Source, path: str, shape: shapes.Type, value: object) -> Iterator[str]:
    match shape:
        case shapes.Metadata(type=inner):
            yield from _check_type(source, path, inner, value)
        case shapes.UnionType():
            if not _reads_as(value, type(None)):
                yield from _check_type(source, path, _not_none(shape), value)
        case shapes.StructType():
            yield from _check_section(source, path, shape, value)
        case shapes.VarTupleType(item_type=inner) | shapes.FrozenSetType(item_type=inner):
            if not isinstance(value, list):
                yield f"{source.about(path)}: {value!r} is not a list."
                return
            for index, item in enumerate(value):
                yield from _check_type(source, f"{path}[{index}]", inner, item)
        case shapes.DictType():
            if not isinstance(value, dict):
                yield f"{source.about(path)}: {value!r} is not a section."
        case shapes.LiteralType(values=choices):
            yield from _check_choice(source, path, value, map(str, choices))
        case _:
            kind, complaint = _SCALARS[type(shape)]
            if not _reads_as(value, kind):
                yield f"{source.about(path)}: {value!r} {complaint}."


def _check_section(source: Source, path: str, shape: shapes.StructType, value: object) -> Iterator[str]:
    fields = {field.name: field for field in shape.fields}
    if not isinstance(value, dict):
        if path.endswith("]"):
            yield f"{source.about(path)}: {value!r} is not a section."
            return
        # The section's first own setting, not one of its base class.
        example = source.spell(f"{path}.{next(iter(shape.cls.__annotations__))}")
        yield f"{source.where(path)}: {path!r} is a section, not a setting; one of its settings is {example}."
        return
    for key, inner in value.items():
        below = f"{path}.{key}" if path else key
        if key in fields:
            yield from _check_type(source, below, fields[key].type, inner)
        else:
            yield _unknown(source, below, key, inner, fields)
    for name, field in fields.items():
        if field.required and name not in value:
            yield f"{source.about(path)}: {name!r} is missing."


def _unknown(source: Source, path: str, key: str, value: object, siblings: Iterable[str]) -> str:
    """The sentence about a name that does not exist."""
    # In a table of a list, such as `rules[0]`, only its own names can be meant.
    known = list(siblings) if "[" in path else _KNOWN
    if isinstance(value, dict) and "." not in path and any(name in siblings for name in value):
        return (
            f"{source.where(path)}: there is no section [{path}]. Leave this heading out, and write its settings "
            "at the top of the file, before the first heading."
        )
    same_name = [name for name in known if name.rpartition(".")[2] == key]
    meant = same_name or difflib.get_close_matches(key if "[" in path else path, known, 1)
    end = f"; did you mean {source.spell(meant[0])}?" if meant else "."
    return f"{source.where(path)}: there is no setting {path!r}{end}"


def _check_choice(source: Source, path: str, value: object, choices: Iterable[str]) -> Iterator[str]:
    choices = sorted(choices)
    if value not in choices:
        yield f"{source.about(path)}: {value!r} is not one of {', '.join(choices)}."


def _reads_as(value: object, kind: type | None) -> bool:
    try:
        msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        return False
    return True


def _not_none(shape: shapes.UnionType) -> shapes.Type:
    return next(inner for inner in shape.types if not isinstance(inner, shapes.NoneType))


def _names(shape: shapes.Type, path: str = "") -> Iterator[str]:
    """Every section and setting below a path, dotted."""
    if isinstance(shape, shapes.StructType):
        for field in shape.fields:
            yield (below := f"{path}.{field.name}" if path else field.name)
            yield from _names(field.type, below)


_SHAPE = shapes.type_info(Settings)
_KNOWN = list(_names(_SHAPE))


# ---------------------------------------------------------------- values


def value_mistakes(sources: Sequence[Source]) -> Iterator[str]:
    """A sentence for each value in force that has the right type, but is not allowed for the setting."""
    return _check_value(sources, "", _SHAPE, merged(sources))


def _check_value(sources: Sequence[Source], path: str, shape: shapes.Type, value: Any) -> Iterator[str]:
    match shape:
        case shapes.UnionType():
            if not _reads_as(value, type(None)):
                yield from _check_value(sources, path, _not_none(shape), value)
        case shapes.StructType():
            for field in shape.fields:
                if field.name in value:
                    below = f"{path}.{field.name}" if path else field.name
                    yield from _check_value(sources, below, field.type, value[field.name])
        case shapes.VarTupleType(item_type=inner):
            for index, item in enumerate(value):
                yield from _check_value(sources, f"{path}[{index}]", inner, item)
        case shapes.Metadata(extra={"one_of": choices}):
            yield from _check_choice(_source(path, sources), path, value, choices)
        case _ if (allowed := range_of(shape)) is not None:
            number = msgspec.convert(value, allowed.kind, strict=False)
            if number not in allowed:
                yield f"{_source(path, sources).about(path)}: {number} {allowed.complaint}."


def _source(path: str, sources: Sequence[Source]) -> Source:
    """The source of a value in force that is not the default."""
    source = origin(path, sources)
    assert source is not None  # noqa: S101 -- the value came from one
    return source


def range_of(shape: shapes.Type) -> Range | None:
    """The range of a number; None if the type has none."""
    match shape:
        case shapes.UnionType():
            return range_of(_not_none(shape))
        case shapes.Metadata(type=shapes.IntType(), extra={"ge": ge, "le": le}):
            return Range(int, ge, le)
        case shapes.IntType(ge=ge, le=le) if (ge, le) != (None, None):
            return Range(int, ge, le)
        case shapes.FloatType(ge=ge, le=le) if (ge, le) != (None, None):
            return Range(float, ge, le)
    return None
