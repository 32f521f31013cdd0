"""A rule of the fleet audit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from spark_rollup.fleet.application import Application
from spark_rollup.fleet.meta import Row, RuleMeta


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its identity, and a pure function from an application to findings."""

    meta: RuleMeta
    find: Callable[[Application], Iterator[Row]]
