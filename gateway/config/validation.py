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
from gateway.domain.errors import StartupError

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


def check_types(source: Source) -> None:
    """Raises `StartupError` if a name does not exist or a value has the wrong type."""
    _check_type(source, "", _SHAPE, source.tree)


def _check_type(source: Source, path: str, shape: shapes.Type, value: object) -> None:
    match shape:
        case shapes.Metadata(type=inner):
            _check_type(source, path, inner, value)
        case shapes.UnionType():
            if not _reads_as(value, type(None)):
                _check_type(source, path, _not_none(shape), value)
        case shapes.StructType():
            _check_section(source, path, shape, value)
        case shapes.VarTupleType(item_type=inner) | shapes.FrozenSetType(item_type=inner):
            if not isinstance(value, list):
                raise StartupError(f"{source.about(path)}: {value!r} is not a list.")
            for index, item in enumerate(value):
                _check_type(source, f"{path}[{index}]", inner, item)
        case shapes.DictType():
            if not isinstance(value, dict):
                raise StartupError(f"{source.about(path)}: {value!r} is not a section.")
        case shapes.LiteralType(values=choices):
            _check_choice(source, path, value, map(str, choices))
        case _:
            kind, complaint = _SCALARS[type(shape)]
            if not _reads_as(value, kind):
                raise StartupError(f"{source.about(path)}: {value!r} {complaint}.")


def _check_section(source: Source, path: str, shape: shapes.StructType, value: object) -> None:
    fields = {field.name: field for field in shape.fields}
    if not isinstance(value, dict):
        if path.endswith("]"):
            raise StartupError(f"{source.about(path)}: {value!r} is not a section.")
        # The section's first own setting, not one of its base class.
        example = source.spell(f"{path}.{next(iter(shape.cls.__annotations__))}")
        raise StartupError(
            f"{source.where(path)}: {path!r} is a section, not a setting; one of its settings is {example}."
        )
    for key, inner in value.items():
        below = f"{path}.{key}" if path else key
        if key not in fields:
            _refuse_unknown(source, below, key, fields)
        _check_type(source, below, fields[key].type, inner)
    for name, field in fields.items():
        if field.required and name not in value:
            raise StartupError(f"{source.about(path)}: {name!r} is missing.")


def _refuse_unknown(source: Source, path: str, key: str, siblings: Iterable[str]) -> None:
    # In a table of a list, such as `rules[0]`, only its own names can be meant.
    known = list(siblings) if "[" in path else _KNOWN
    same_name = [name for name in known if name.rpartition(".")[2] == key]
    meant = same_name or difflib.get_close_matches(key if "[" in path else path, known, 1)
    end = f"; did you mean {source.spell(meant[0])}?" if meant else "."
    raise StartupError(f"{source.where(path)}: there is no setting {path!r}{end}")


def _check_choice(source: Source, path: str, value: object, choices: Iterable[str]) -> None:
    choices = sorted(choices)
    if value not in choices:
        raise StartupError(f"{source.about(path)}: {value!r} is not one of {', '.join(choices)}.")


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


def check_values(sources: Sequence[Source]) -> None:
    """Raises `StartupError` if a value in force has the right type, but is not allowed for the setting."""
    _check_value(sources, "", _SHAPE, merged(sources))


def _check_value(sources: Sequence[Source], path: str, shape: shapes.Type, value: Any) -> None:
    match shape:
        case shapes.UnionType():
            if not _reads_as(value, type(None)):
                _check_value(sources, path, _not_none(shape), value)
        case shapes.StructType():
            for field in shape.fields:
                if field.name in value:
                    below = f"{path}.{field.name}" if path else field.name
                    _check_value(sources, below, field.type, value[field.name])
        case shapes.VarTupleType(item_type=inner):
            for index, item in enumerate(value):
                _check_value(sources, f"{path}[{index}]", inner, item)
        case shapes.Metadata(extra={"one_of": choices}):
            _check_choice(_source(path, sources), path, value, choices)
        case _ if (allowed := range_of(shape)) is not None:
            number = msgspec.convert(value, allowed.kind, strict=False)
            if number not in allowed:
                raise StartupError(f"{_source(path, sources).about(path)}: {number} {allowed.complaint}.")


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
