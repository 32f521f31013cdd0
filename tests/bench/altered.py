"""Kinds of bugs that no recording has, made of recorded events.

A cloned volume, a zombie that stays frozen, and pods that come and go for longer than anybody recorded.
"""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"
MICROS = 1_000_000

TIMES = ("observed_at_us", "occurred_at_us", "opened_at_us", "resolved_at_us", "checkpoint_written_at_us")
"""Fields that tell a time: shifted together."""

CLONE_OF = "benign-restart-alos-4.3.1"
"""Its pod is told twice, as if its volume had been cloned while it ran."""

ZOMBIE_OF = "benign-eos-fencing-4.1.2"
"""Its frozen pod stays frozen: the recording ends before it wakes up, and its heir had ten times the traffic. Told as
at-least-once: under exactly-once a warm-up looks the same, and nothing is confirmed."""

SLOWER = 3
"""The zombie's story takes this many times as long from the moment when it froze: longer than clocks may differ by."""

CHURN_OF = "soak-eos-2.5.1"
"""Told twice in a row: one and a half minutes of three pods that come and go are too short for a warning."""

PAUSE_S = 5
"""Between the two tellings (seconds)."""

ALTERED: dict[str, set[tuple[str, str]]] = {
    "cloned-volume": {("cloned-process", "None")},
    "split-owner": {("split-owner", "0_0")},
    "task-churn": {("task-churn", f"0_{number}") for number in range(4)},
}
"""No recording has these; they are made of recorded events. Kind -> what must be found (rule, task)."""


def clone(known: DataFrame) -> DataFrame:
    """Tell one pod's recording a second time as another pod's, two seconds later: same stores, same process id."""
    own = known.where(F.col("scenario") == CLONE_OF)
    later = {name: F.col(name) + 2 * MICROS for name in TIMES}
    other = own.withColumns(
        {
            "pod": F.concat("pod", F.lit("-clone")),
            "pod_uid": F.concat("pod_uid", F.lit("-clone")),
            **later,
        }
    )
    return own.unionByName(other).withColumn("scenario", F.lit("cloned-volume"))


def zombie(known: DataFrame) -> DataFrame:
    """Cut a recording off while one of its pods is frozen; the other one writes ten times as much, for longer."""
    scenario = json.loads((TRACES / ZOMBIE_OF / "scenario.json").read_text(encoding="utf-8"))
    at_us = {what: round(at * MICROS) for at, what in scenario["timeline"]}
    frozen_us, woken_us = at_us["pod-a: SIGSTOP"], at_us["pod-a: SIGCONT"]
    own = known.where(F.col("scenario") == ZOMBIE_OF)
    stop = F.coalesce(F.col("phase") == "stopping", F.lit(False))
    kept = own.where((F.col("observed_at_us") < woken_us) & ~stop)
    last = kept.groupBy("pod_uid", "boot_id").agg(F.max("sequence").alias("last"))
    ends = (
        own.where(stop)
        .join(last, ["pod_uid", "boot_id"])
        .withColumns({"sequence": F.col("last") + 1, "observed_at_us": F.lit(woken_us).cast("long")})
        .drop("last")
    )
    heir = ~F.col("pod").endswith("pod-a") & (F.col("observed_at_us") > frozen_us)
    more = {
        name: F.when(heir, F.col(name) * 10).otherwise(F.col(name))
        for name in ("puts", "puts_before", "offset_after", "offset_before")
    }
    stores = F.transform(
        "stores",
        lambda item: item.withField("puts", item["puts"] * 10).withField("offset", item["offset"] * 10),
    )
    offsets = F.transform("offsets", lambda item: item.withField("offset", item["offset"] * 10))
    settings = F.transform(
        "settings",
        lambda item: F.when(
            item["key"] == "processing_guarantee", item.withField("value", F.lit("at_least_once"))
        ).otherwise(item),
    )
    louder = {
        "settings": settings,
        "stores": F.when(heir, stores).otherwise(F.col("stores")),
        "offsets": F.when(heir, offsets).otherwise(F.col("offsets")),
    }
    later = {name: F.greatest(name, F.col(name) * SLOWER - frozen_us * (SLOWER - 1)) for name in TIMES}
    told = kept.unionByName(ends).withColumns(more | louder).withColumns(later)
    return told.withColumn("scenario", F.lit("split-owner"))


def again(known: DataFrame) -> DataFrame:
    """Tell a recording twice in a row, as one: the same boots go on, and end once."""
    own = known.where(F.col("scenario") == CHURN_OF)
    boot = ("pod_uid", "boot_id")
    once = own.where(~F.coalesce(F.col("phase") == "stopping", F.lit(False)))
    length = own.agg(
        (F.max("observed_at_us") - F.min("observed_at_us") + PAUSE_S * MICROS).alias("length_us")
    )
    told = once.groupBy(*boot).agg(F.max("sequence").alias("told"))
    later = {name: F.col(name) + F.col("length_us") for name in TIMES}
    second = own.join(told, list(boot)).crossJoin(length)
    more = second.withColumns(later | {"sequence": F.col("sequence") + F.col("told")})
    return once.unionByName(more.select(*own.columns)).withColumn("scenario", F.lit("task-churn"))
