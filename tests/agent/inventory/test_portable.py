"""Dossier values as plain JSON, and back."""

from __future__ import annotations

import contextlib
import json
from dataclasses import MISSING, fields
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.contract.finding import Finding
from agent.errors import BaselineError
from agent.inventory.model import Application, BlindInterval, Task
from agent.inventory.portable import from_plain, to_plain
from agent.inventory.recent import Recent
from agent.inventory.timeline import Flushed, Timeline

NAMES = st.text(st.characters(codec=None, exclude_categories=()), max_size=6)  # lone surrogates, too


@cache
def values(kind: Any) -> st.SearchStrategy[Any]:
    """Make values of a declared type; records by their fields."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is str:
        return NAMES
    if kind is int:
        return st.integers(-4, 2**62)
    if kind in (bool, float):
        return st.booleans() if kind is bool else st.floats(allow_nan=False)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    if kind is Timeline:
        return st.lists(values(Flushed), max_size=2).map(Timeline)
    if origin is UnionType:
        return st.none() | values(next(x for x in arguments if x is not NoneType))
    if origin is dict:
        return st.dictionaries(NAMES, values(arguments[1]), max_size=2)
    if origin is tuple and arguments[-1] is not Ellipsis:
        return st.tuples(*map(values, arguments))
    if origin in (tuple, frozenset, set, list, Recent):
        return st.lists(values(arguments[0]), max_size=2).map(list if origin is Recent else origin)
    return records(kind)


@cache
def records(kind: type) -> st.SearchStrategy[Any]:
    """Make records of a class, with any value in any field."""
    hints = get_type_hints(kind)
    given = {each.name: _deferred(hints[each.name]) for each in fields(kind)}
    return st.builds(lambda **built: _built(kind, built), **given)


def _deferred(kind: Any) -> st.SearchStrategy[Any]:
    return st.deferred(lambda: values(kind))


def _built(kind: type, given: dict[str, Any]) -> Any:
    for each in fields(kind):
        if each.default_factory is not MISSING and isinstance(history := each.default_factory(), Recent):
            history.extend(given[each.name])
            given[each.name] = history
    return kind(**given)


@pytest.mark.parametrize("kind", [Task, Application, Finding])
@settings(max_examples=15)
@given(data=st.data())
def test_every_record_survives(kind: type, data: st.DataObject) -> None:
    """Through JSON and back a record is equal, whatever its fields hold."""
    record = data.draw(records(kind))
    again: Any = from_plain(kind, json.loads(json.dumps(to_plain(record))))
    assert again == record


def test_histories_keep_their_bounds() -> None:
    """What was read goes on as a bounded history, and one that is too long is cut to its newest entries."""
    task = Task("app", "0_0", "app/0_0")
    plain = {**to_plain(task), "swept": [[at_us, "CURRENT"] for at_us in range(20)]}
    again = from_plain(Task, plain)
    assert again.swept == tuple((at_us, "CURRENT") for at_us in range(12, 20))


def test_other_releases_are_understood() -> None:
    """A field that is not known is passed over, one that is not there takes its default."""
    assert from_plain(BlindInterval, {"started_us": 1, "cause": "x", "of_tomorrow": [1]}) == BlindInterval(
        1, "x"
    )
    with pytest.raises(BaselineError, match="BlindInterval without cause"):
        from_plain(BlindInterval, {"started_us": 1})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=15)
@given(data=st.data())
def test_garbage_is_refused_and_nothing_else(data: st.DataObject) -> None:
    """A value of another shape in any place is a `BaselineError` or, where it fits, a task."""
    plain = to_plain(data.draw(records(Task)))
    plain[data.draw(st.sampled_from([x.name for x in fields(Task)]))] = data.draw(JSON)
    with contextlib.suppress(BaselineError):
        assert isinstance(from_plain(Task, plain), Task)
