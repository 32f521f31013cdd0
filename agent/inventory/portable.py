"""Values of the inventory ⇄ plain JSON values, by the types that the records declare. Pure.

A field that has its default is left out, an unknown field is passed over and a missing one takes its default: a
baseline survives a release that adds a field. Anything else that does not fit its type is an error, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from agent.errors import BaselineError
from agent.inventory.recent import KEPT, Recent, same_or_new
from agent.inventory.timeline import Flushed, Timeline

T = TypeVar("T")
Turn = Callable[[Any], Any]

_TIMELINE = tuple[Flushed, ...]
_PLAIN = frozenset({int, str, bool, float})


def from_plain(kind: type[T], plain: object) -> T:
    """Turn it back; BaselineError for what `to_plain` does not make of this kind of record."""
    hashable: Any = kind
    value: T = _decoder(hashable)(plain)
    return value


def to_plain(value: Any) -> Any:
    """Turn a record (a dataclass), or a value of one, into what `json.dumps` takes."""
    kind: Any = type(value)
    if kind in _PLAIN or value is None or isinstance(value, Enum):
        return value
    if kind is dict:
        return {key: to_plain(each) for key, each in value.items()}
    if kind in (frozenset, set):
        return sorted(map(to_plain, value))
    if isinstance(value, tuple | list | Timeline):
        return [to_plain(each) for each in value]
    plain = {}
    for name, default in _defaults(kind):
        own = getattr(value, name)
        if own != default or default is MISSING:
            plain[name] = own if type(own) in _PLAIN else to_plain(own)
    return plain


@cache
def _defaults(kind: type) -> list[tuple[str, Any]]:
    if not is_dataclass(kind):
        raise TypeError(f"{kind!r} has no portable form; use records, enumerations and collections of them")
    return [(each.name, _default(each)) for each in fields(kind)]


@cache
def _decoder(kind: Any) -> Turn:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        return lambda plain: plain if type(plain) is kind else _refuse(kind, plain)
    if isinstance(kind, type) and issubclass(kind, Enum):
        known = {each.value: each for each in kind}
        return lambda plain: (
            known[plain] if isinstance(plain, str) and plain in known else _refuse(kind, plain)
        )
    if kind is Timeline:
        pairs = _decoder(_TIMELINE)
        return lambda plain: Timeline(pairs(plain))
    if origin in (Union, UnionType):
        inner = _decoder(_without_none(arguments))
        return lambda plain: None if plain is None else inner(plain)
    if origin is dict:
        inner = _decoder(arguments[1])
        return lambda plain: {key: inner(each) for key, each in _require(dict, plain).items()}
    if origin is tuple and arguments[-1] is not Ellipsis:
        return _pair_decoder(kind, tuple(_decoder(each) for each in arguments))
    if origin is frozenset:
        return _sharing(_decoder(arguments[0]))
    if origin in (set, tuple, list, Recent):
        inner, make = _decoder(arguments[0]), list if origin is Recent else origin
        return lambda plain: make(inner(each) for each in _require(list, plain))
    return _record_decoder(kind)


def _sharing(inner: Turn) -> Turn:
    """Give an equal set a second time, not its copy: those of one store's sessions follow each other."""
    last: frozenset[Any] = frozenset()

    def decode(plain: Any) -> Any:
        nonlocal last
        last = same_or_new(last, frozenset(inner(each) for each in _require(list, plain)))
        return last

    return decode


def _pair_decoder(kind: Any, inners: tuple[Turn, ...]) -> Turn:
    def decode(plain: Any) -> Any:
        if len(_require(list, plain)) != len(inners):
            return _refuse(kind, plain)
        return tuple(turn(each) for turn, each in zip(inners, plain, strict=True))

    return decode


def _record_decoder(kind: type) -> Turn:
    _defaults(kind)  # raises for what is no record
    hints = get_type_hints(kind)
    rows = {each.name: (_decoder(hints[each.name]), each) for each in fields(kind)}
    required = [name for name, (_, each) in rows.items() if _default(each) is MISSING]

    def decode(plain: Any) -> Any:
        given = {}
        for name, each in _require(dict, plain).items():
            if name in rows:
                turn, row = rows[name]
                given[row.name] = _into(row, turn(each))
        missing = [name for name in required if name not in given]
        if missing:
            raise BaselineError(f"{kind.__name__} without {', '.join(missing)}")
        return kind(**given)

    return decode


def _into(row: Field[Any], value: Any) -> Any:
    """A bounded history keeps its bound, whatever was written."""
    if KEPT in row.metadata:
        return value[-row.metadata[KEPT] :]
    if row.default_factory is not MISSING and isinstance(history := row.default_factory(), Recent):
        history.extend(value[-history.maxlen :])
        return history
    return value


def _default(row: Field[Any]) -> Any:
    if row.default_factory is not MISSING:
        return row.default_factory()
    return row.default


def _without_none(arguments: tuple[Any, ...]) -> Any:
    (inner,) = [each for each in arguments if each is not NoneType]
    return inner


def _require(kind: type[T], plain: Any) -> T:
    if not isinstance(plain, kind):
        _refuse(kind, plain)
    return plain  # type: ignore[no-any-return]


def _refuse(kind: Any, plain: Any) -> Any:
    name = getattr(kind, "__name__", str(kind))
    raise BaselineError(f"expected {name}, found {type(plain).__name__} {str(plain)[:40]!r}")
