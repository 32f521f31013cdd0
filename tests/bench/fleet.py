"""A simulated fleet, written by Spark: events of recorded scenarios, re-keyed and shifted in time, among idle pods.

Deterministic by seed. Knows nothing of the rules: what must be found is what the recordings' own table says.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from spark_rollup.bronze import table  # noqa: E402
from spark_rollup.bronze.load import load  # noqa: E402
from spark_rollup.bronze.store import EVENTS, ORDER, PARTITIONS  # noqa: E402 - path first
from spark_rollup.columns import ROUTINE  # noqa: E402
from spark_rollup.schemas import EVENT  # noqa: E402
from tests.bench.altered import (  # noqa: E402
    ALTERED,
    CHURN_OF,
    CLONE_OF,
    MICROS,
    TIMES,
    TRACES,
    ZOMBIE_OF,
    again,
    clone,
    zombie,
)
from tests.support.recorded_fleet import EXPECTED, replayed  # noqa: E402

START_US = 1_795_000_000_000_000

BUGS = (
    "kafka-8187-stage1-2.2.1",
    "kafka-8187-stage2-2.0.1",
    "kafka-8187-stage2-eos-2.1.1",
    "torn-clean-2.3.1",
    "torn-clean-3.9.2",
    "kafka-7672-eos",
    "kafka-7672-gap",
    "kafka-9891-2.5.0",
    "kafka-20685-4.1.2",
)
"""Recordings of what rules must find, one kind each: copied as they are."""

KINDS = (*BUGS, *ALTERED)

BENIGN = (
    "benign-rolling-standby-3.9.2",
    "benign-move-3.9.2",
    "benign-eos-fencing-4.1.2",
    "benign-restart-alos-4.3.1",
    "control-8187-2.2.2",
    "control-9891-2.5.1",
    "soak-alos-3.9.2",
    "soak-eos-2.5.1",
)
SHAPES = "soak-alos-3.9.2"
"""The recording whose heartbeat and summary the idle pods repeat: it is long enough to have both."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large and how bad."""

    pods: int = 20  # idle pods in the background
    tasks: int = 20  # tasks that each of them holds
    hours: float = 0.25  # length of the simulated time
    bugs: int = 3  # copies of each of `KINDS`
    benign: int = 21  # copies of scenarios of `BENIGN`, all together
    loss: float = 0.0  # share of events that never arrive
    doubled: float = 0.0  # share of events that arrive twice
    skew_s: float = 0.0  # clocks of pods are off by up to this much, either way
    late_s: float = 0.0  # every fifth pod's events arrive up to this much later
    busy: float = 0.5  # share of idle tasks whose offset, puts and bytes are others in every summary
    together: int = 20  # idle pods that share one application
    seed: int = 1  # everything random follows from it

    @property
    def middle_us(self) -> int:
        """Half time: what arrived until then is the first of two deliveries."""
        return START_US + int(self.hours * 1800) * MICROS


def write(
    spark: SparkSession, size: Size, target: Path, *, idle: bool = True, begins_s: float = 0
) -> DataFrame:
    """Write the fleet's events as JSON lines, and `truth.jsonl` beside them (application, scenario).

    `events/wave=0` is what arrived until half time, `events/wave=1` the rest. Files are named as Spark names them.
    Without `idle` the idle pods are left to `fill`, which takes what is given back: the shapes of their events. They
    have told for `begins_s` seconds already, and go on.
    """
    recorded = tuple(dict.fromkeys((*BUGS, *BENIGN, CLONE_OF, ZOMBIE_OF, CHURN_OF)))
    with tempfile.TemporaryDirectory(prefix="statewarden-templates-") as work:
        names = replayed([TRACES / name for name in recorded], Path(work))
        templates = load(spark, Path(work)).events.drop("line", "id").localCheckpoint()
    scenario_of = F.element_at(F.split("pod", r"\.pod-"), 1)
    known = templates.withColumn("scenario", scenario_of)
    shapes = _shapes(known)
    instances = _instances(spark, size)
    kinds = reduce(DataFrame.unionByName, (known, clone(known), zombie(known), again(known)))
    told = _copies(kinds, instances, size)
    lines = _lines(
        _disturbed(told.unionByName(_idle(spark, shapes, size, int(begins_s // 60))) if idle else told, size)
    )
    lines.write.mode("overwrite").option("compression", "gzip").partitionBy("wave").text(
        str(target / "events")
    )
    _rename(target / "events")
    rows = [row.asDict() for row in instances.select("application", "scenario").orderBy("number").collect()]
    (target / "truth.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    assert set(names.values()) == set(recorded)
    return shapes


def fill(spark: SparkSession, shapes: DataFrame, size: Size, bronze: Path, wave: int) -> None:
    """Put the idle pods' events of a delivery straight into bronze, without raw lines: where JSON would take hours.

    `size` as `write` was given; doubled events are dropped, as `ingest` would.
    """
    once = replace(size, doubled=0.0)
    rows = _disturbed(_idle(spark, shapes, once), once).where(F.col("wave") == wave)
    day = F.date_format(F.timestamp_micros("observed_at_us"), "yyyy-MM-dd")
    # columns that no idle pod fills are left out: readers take them for null, as they would be
    told = {name for row in shapes.collect() for name, value in row.asDict().items() if value is not None}
    ready = rows.select("id", *(name for name in EVENT.names if name in told), day.alias("day"))
    # pods come one after the other, so every part is a stretch of tasks already
    classed = ready.withColumn(ROUTINE, F.lit(True)).sortWithinPartitions("day", ROUTINE, *ORDER)
    place = bronze / EVENTS
    table.append(classed, place, table.version(place), PARTITIONS)


def scenarios(target: Path) -> dict[str, str]:
    """Read which application is a copy of which scenario; idle applications are not listed."""
    rows = map(json.loads, (target / "truth.jsonl").read_text(encoding="utf-8").splitlines())
    return {row["application"]: row["scenario"] for row in rows}


def truth(target: Path) -> dict[str, set[tuple[str, str]]]:
    """Read what must be found: application -> (rule, task)."""
    return {
        application: ALTERED.get(scenario)
        or {(rule, task) for rule, task, _, _ in EXPECTED.get(scenario, set())}
        for application, scenario in scenarios(target).items()
    }


def _instances(spark: SparkSession, size: Size) -> DataFrame:
    """Choose scenario and time of every copy.

    Output columns: number, application, scenario, begins_us.
    """
    bugs = F.array(*map(F.lit, KINDS))
    benign = F.array(*map(F.lit, BENIGN))
    of_bugs = size.bugs * len(KINDS)
    number = F.col("number")
    scenario = F.when(number < of_bugs, F.get(bugs, (number % len(KINDS)).cast("int"))).otherwise(
        F.get(benign, (number % len(BENIGN)).cast("int"))
    )
    room_us = max(int(size.hours * 3600) - 600, 1) * MICROS
    chance = F.pmod(F.xxhash64(number, F.lit(size.seed)), F.lit(room_us))
    # every eighth runs when the first delivery is cut off
    soon = F.lit(size.middle_us - START_US) - F.pmod(chance, F.lit(min(300 * MICROS, room_us)))
    begins = F.lit(START_US) + F.when(F.floor(number / 3) % 8 == 0, soon).otherwise(chance)
    return spark.range(of_bugs + size.benign).select(
        F.col("id").alias("number"), F.format_string("app-%05d", "id").alias("application")
    ).select("number", "application", scenario.alias("scenario"), begins.alias("begins_us"))  # fmt: skip


def _copies(templates: DataFrame, instances: DataFrame, size: Size) -> DataFrame:
    """Re-key and shift the templates for every instance.

    Output columns: `EVENT`.
    """
    first = templates.groupBy("scenario").agg(F.min("observed_at_us").alias("first_us"))
    joined = templates.join(F.broadcast(instances.join(first, "scenario")), "scenario")
    pod = F.concat("application", F.lit("-"), F.element_at(F.split("pod", r"\."), -1))
    return _placed(joined, pod, F.col("begins_us") - F.col("first_us"), size)


def _placed(rows: DataFrame, pod: Column, shift_us: Column, size: Size) -> DataFrame:
    skew = size.skew_s * MICROS
    off_us = F.round((F.pmod(F.xxhash64(pod, F.lit(size.seed)), F.lit(2001)) / 1000 - 1) * skew).cast("long")
    shift = shift_us + off_us
    moved_blind = F.transform(
        "blind",
        lambda item: (
            item.withField("from_us", item["from_us"] + F.col("shift_us"))
            .withField("to_us", item["to_us"] + F.col("shift_us"))
            .withField("application_id", F.when(item["application_id"].isNotNull(), F.col("application")))
        ),
    )
    applications = F.transform("applications", lambda _: F.col("application"))
    given = {
        "pod": F.col("new_pod"),
        "pod_uid": F.concat(F.lit("uid-"), F.col("new_pod")),
        "application_id": F.when(F.col("application_id").isNotNull(), F.col("application")),
        "finding_id": F.concat("finding_id", F.lit("-"), F.col("application")),
        "incident_id": F.concat("incident_id", F.lit("-"), F.col("application")),
        "open_ids": F.transform("open_ids", lambda id_: F.concat(id_, F.lit("-"), F.col("application"))),
        "blind": moved_blind,
        "applications": applications,
        **{name: F.col(name) + F.col("shift_us") for name in TIMES},
    }
    ready = rows.withColumns({"new_pod": pod, "shift_us": shift})
    return ready.select(
        *(given.get(field.name, F.col(field.name)).alias(field.name) for field in EVENT.fields)
    )


def _idle(spark: SparkSession, shapes: DataFrame, size: Size, since_minute: int = 0) -> DataFrame:
    """Let pods do nothing but hold tasks: heartbeats every 30 s, summaries of held tasks every 60 s.

    Rows come pod by pod. Tasks that are `busy` tell higher numbers in every summary.

    Output columns: `EVENT`.
    """
    tasks, minutes = size.tasks, max(int(size.hours * 60), 1)
    per_minute = tasks + 2  # a heartbeat, all summaries, a heartbeat
    per_pod = minutes * per_minute
    parts = max(1, size.pods * per_pod // 250_000)
    step = F.col("id") % per_pod + since_minute * per_minute
    slots = spark.range(0, size.pods * per_pod, 1, parts).select(
        F.floor(F.col("id") / per_pod).alias("number"), step.alias("step")
    )
    minute = F.floor(F.col("step") / per_minute)
    place = F.col("step") % per_minute
    kind = F.when(place.isin(0, per_minute - 1), F.lit("heartbeat")).otherwise(F.lit("summary"))
    at_us = (
        F.lit(START_US) + (minute * 60 + F.when(place == per_minute - 1, 30).otherwise(0)) * MICROS + place
    )
    rows = slots.select(
        "number",
        kind.alias("kind"),
        at_us.alias("at_us"),
        (F.col("step") + 1).alias("new_sequence"),
        F.concat(F.lit("0_"), (F.col("number") % size.together * tasks + place - 1).cast("string")).alias(
            "new_task"
        ),
        F.when(place <= size.busy * tasks, minute).otherwise(F.lit(0)).alias("grown"),
    )
    pod = F.format_string("idle-%05d", "number")
    more = F.col("grown") * 1000
    stores = F.transform(
        "stores",
        lambda item: (
            item.withField("offset", item["offset"] + more)
            .withField("puts", item["puts"] + more)
            .withField("bytes", item["bytes"] + more * 100)
        ),
    )
    joined = rows.join(F.broadcast(shapes), "kind").withColumns(
        {
            "application": F.format_string("idle-%04d", F.floor(F.col("number") / size.together)),
            "sequence": F.col("new_sequence"),
            "task_id": F.when(F.col("kind") == "summary", F.col("new_task")),
            "boot_id": F.lit("boot-1"),
            "stores": stores,
            "offsets": F.transform("offsets", lambda item: item.withField("offset", item["offset"] + more)),
        }
    )
    unmoved = joined.withColumn("observed_at_us", F.col("at_us"))
    return _placed(unmoved, pod, F.lit(0).cast("long"), size)


def _shapes(templates: DataFrame) -> DataFrame:
    """Take one recorded heartbeat and one recorded summary of a held task as the shape of all idle ones."""
    quiet = templates.where(F.col("scenario") == SHAPES)
    beat = quiet.where(
        (F.col("kind") == "heartbeat") & (F.size("blind") == 0) & (F.size("applications") == 1)
    )
    summary = quiet.where((F.col("kind") == "summary") & F.col("held"))
    # without identities: twenty pods of one application would look like clones of one volume
    bare = F.transform("stores", lambda item: item.withField("identity", F.lit(None).cast("string")))
    parts = (
        beat.orderBy("sequence").limit(1),
        summary.orderBy("sequence").limit(1).withColumn("stores", bare),
    )
    shapes = reduce(DataFrame.unionByName, parts).withColumn("process_id", F.lit(None).cast("string"))
    assert shapes.count() == len(parts), f"{SHAPES} has no heartbeat or no summary of a held task"
    return shapes.localCheckpoint()


def _disturbed(events: DataFrame, size: Size) -> DataFrame:
    """Lose, double and delay events.

    Output columns: id, `EVENT`, wave (0: arrived until half time, 1: later).
    """
    identity = F.concat_ws("/", "pod_uid", "boot_id", F.col("sequence").cast("string"))
    luck = F.pmod(F.xxhash64("id", F.lit(size.seed)), F.lit(1_000_000)) / 1_000_000
    repeats = F.when(luck > 1 - size.doubled, F.lit(2)).otherwise(F.lit(1))
    named = events.withColumn("id", F.substring(F.sha2(identity, 256), 1, 32))
    kept = named.where(luck >= size.loss).withColumn("copy", F.explode(F.sequence(F.lit(1), repeats)))
    chance = F.pmod(F.xxhash64("pod", "copy", F.lit(size.seed)), F.lit(5_000)) / 1_000
    late_us = F.when(chance < 1, chance * size.late_s * MICROS).otherwise(F.lit(0))
    wave = F.when(F.col("observed_at_us") + late_us <= size.middle_us, F.lit(0)).otherwise(F.lit(1))
    return kept.select("id", *EVENT.names, wave.alias("wave"))


def _lines(events: DataFrame) -> DataFrame:
    """Write events as the contract's lines.

    Output columns: value, wave.
    """
    data = F.struct(*EVENT.names)
    return events.select(F.to_json(F.struct("id", data.alias("data"))).alias("value"), "wave")


def _rename(folder: Path) -> None:
    for path in folder.rglob("part-*.txt.gz"):
        path.rename(path.with_name(path.name.replace(".txt.gz", ".jsonl.gz")))
    for path in folder.rglob(".*.crc"):
        path.unlink()
