"""One object for equal values: ten thousand tasks have the same few names and options in them."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import TypeVar, cast

T = TypeVar("T", bound=Hashable)

KEPT = 1024
"""Values that are remembered; of more, those that were not met for longest are no longer shared."""


def shared(value: T) -> T:
    """Give the value that was met first of all equal ones. For immutable values that live long."""
    return cast("T", _first(value))


@lru_cache(maxsize=KEPT)
def _first(value: Hashable) -> Hashable:
    return value
