"""What every source gives: batches of lines that no earlier run took."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from pyspark.sql import functions as F

from spark_rollup.bronze.load import Loaded

Ends = Mapping[str, int]
"""Place -> how far it was ingested: a file with its size (bytes), a partition with the next offset to read."""


Checker = Callable[[Sequence[str]], Mapping[str, str]]
"""Given files that gave less than their names announce: which could not be read now, and why; others are damaged."""


def labelled(loaded: Loaded, cluster: str | None) -> Loaded:
    """Give events the cluster that they are of; what an agent says itself wins. None = they stay without one."""
    if not cluster:
        return loaded
    own = F.when(F.col("cluster") != "", F.col("cluster"))
    return replace(loaded, events=loaded.events.withColumn("cluster", F.coalesce(own, F.lit(cluster))))


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines that bronze may not have yet.

    Args of the dataclass:
        size_bytes: About how much it is, compressed.
        ends: What to remember once bronze has it, of each file or partition that is new.
        unread: Which files of those that gave too little could not be read, and why.
        gone: Places that were ingested once and are not in the source any more: no run will ask for them again.
        notes: What a person should know, one line each.
    """

    loaded: Loaded
    size_bytes: int
    ends: Ends
    unread: Checker = lambda _: {}
    gone: Set[str] = frozenset()
    notes: Sequence[str] = field(default=())
