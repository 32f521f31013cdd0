"""What a rule needs of the past: the rule declares it; `history` keeps it and knows no rule.

Readings are summaries; steps are changes of files. They are nearly all of the events, so only some are kept: the
extreme readings of each copy, and what is next to a moment that a rule asks about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.events import Severity
from spark_rollup.columns import TASK

PLACE = (*TASK, "pod", "at_us")
"""One reading or step: of a task, on a pod, at a time."""


@dataclass(frozen=True, slots=True)
class Extreme:
    """An extreme reading of each copy.

    Args of the dataclass:
        of: The column of `sizes.sizes` that must be known.
        by: The column that is the largest in it: `of` itself, or `at_us` for the last one in which `of` is known.
    """

    of: str
    by: str


def most(of: str) -> Extreme:
    """Ask for the reading with the most of something."""
    return Extreme(of, of)


def last(of: str) -> Extreme:
    """Ask for the last reading in which something is known."""
    return Extreme(of, "at_us")


@dataclass(frozen=True, slots=True)
class Window:
    """All readings and steps of a task in the time before open findings.

    Args of the dataclass:
        detector: Whose findings.
        severity: Of which severity.
        before_us: How long before such a finding opened (microseconds).
    """

    detector: str
    severity: Severity
    before_us: int


@dataclass(frozen=True, slots=True)
class Seen:
    """What a rule chooses from: some days, and what was carried to them.

    Args of the dataclass:
        events: All events.
        readings: `sizes.sizes` of them.
        steps: Readings and steps: `PLACE`, what (the change, or `summary`).
        copies: Which copies have which steps: `TASK`, pod, what, each once.
        flips: `timeline.flips`, those that are kept.
        counted: `heartbeats.beats`.
    """

    events: DataFrame
    readings: DataFrame
    steps: DataFrame
    copies: DataFrame
    flips: DataFrame
    counted: DataFrame


@dataclass(frozen=True, slots=True)
class Past:
    """What a rule still asks for when the day is over. What several rules need is kept once.

    Around each moment the step of each kind that comes last before it and the one that comes first after it are kept,
    of all copies of the task. Moments are for every rule: changes of holder, and when open findings opened.

    Args of the dataclass:
        extremes: Extreme readings.
        steps: Changes of files that it looks for between two moments.
        turns: Changes that are moments themselves.
        settled_us: So long after a change of holder is a moment, too (microseconds).
        window: Where it needs all readings and steps.
        moments: Chooses further moments: `TASK`, at_us.
        places: Chooses readings and steps: `PLACE`.
        sightings: Chooses sightings that are kept for good, from those of `timeline.sightings`: namespace,
            application_id, what, key.
    """

    extremes: tuple[Extreme, ...] = ()
    steps: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    settled_us: int | None = None
    window: Window | None = None
    moments: Callable[[Seen], DataFrame] | None = None
    places: Callable[[Seen], DataFrame] | None = None
    sightings: Callable[[DataFrame], DataFrame] | None = None


def neighbours(steps: DataFrame, around: DataFrame, key: Sequence[str]) -> DataFrame:
    """Keep steps that come last up to one of their key's moments, or first after one: by one sort, however many.

    Input columns: `PLACE` and the key; the key, at_us.
    Output columns: `PLACE`.
    """
    both = steps.select(*key, "at_us", F.lit(0).alias("moment")).unionByName(
        around.select(*key, "at_us", F.lit(1).alias("moment"))
    )
    order = W.partitionBy(*key).orderBy("at_us", "moment")
    beside = F.greatest(F.lead("moment").over(order), F.lag("moment").over(order))
    return (
        both.withColumn("beside", beside)
        .where((F.col("moment") == 0) & (F.col("beside") == 1))
        .select(*PLACE)
        .distinct()
    )
