"""A simulated fleet, written by Spark: events of recorded scenarios, re-keyed and shifted in time, among idle pods.

Deterministic by seed. Knows nothing of the rules: what must be found is what the recordings' own table says.

    python tests/bench/fleet.py OUT --pods 1000 --tasks 20 --hours 24 --bugs 50 --benign 1000 --loss 0.05 --skew-s 3
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from spark_rollup.load import load  # noqa: E402 - path first
from spark_rollup.schemas import EVENT  # noqa: E402
from spark_rollup.session import build_session  # noqa: E402
from tests.support.recorded_fleet import EXPECTED, replayed  # noqa: E402

TRACES = ROOT / "tests" / "data" / "traces"
START_US = 1_795_000_000_000_000
MICROS = 1_000_000

BUGS = (
    "kafka-8187-stage1-2.2.1",
    "kafka-8187-stage2-2.0.1",
    "torn-clean-3.9.2",
    "kafka-7672-eos",
    "kafka-9891-2.5.0",
    "kafka-20685-4.1.2",
)
BENIGN = (
    "benign-rolling-standby-3.9.2",
    "benign-move-3.9.2",
    "control-8187-2.2.2",
    "control-9891-2.5.1",
    "soak-alos-3.9.2",
)
SHAPES = "soak-alos-3.9.2"
"""The recording whose heartbeat and summary the idle pods repeat: it is long enough to have both."""

TIMES = ("observed_at_us", "occurred_at_us", "opened_at_us", "resolved_at_us", "checkpoint_written_at_us")


@dataclass(frozen=True, slots=True)
class Size:
    """How large and how bad.

    Args of the dataclass:
        pods: Idle pods in the background.
        tasks: Tasks that each of them holds.
        hours: Length of the simulated time.
        bugs: Copies of each scenario of `BUGS`.
        benign: Copies of scenarios of `BENIGN`, all together.
        loss: Share of events that never arrive.
        doubled: Share of events that arrive twice.
        skew_s: Clocks of pods are off by up to this much, either way.
        seed: Everything random follows from it.
    """

    pods: int = 20
    tasks: int = 20
    hours: float = 0.25
    bugs: int = 3
    benign: int = 15
    loss: float = 0.0
    doubled: float = 0.0
    skew_s: float = 0.0
    seed: int = 1


def write(spark: SparkSession, size: Size, target: Path) -> None:
    """Write the fleet's events as JSON lines, and `truth.jsonl` beside them (application, scenario)."""
    scenarios = (*BUGS, *BENIGN)
    with tempfile.TemporaryDirectory(prefix="statewarden-templates-") as work:
        names = replayed([TRACES / name for name in scenarios], Path(work))
        templates = load(spark, Path(work)).events.drop("line", "id").localCheckpoint()
    scenario_of = F.element_at(F.split("pod", r"\.pod-"), 1)
    known = templates.withColumn("scenario", scenario_of)
    instances = _instances(spark, size)
    copies = _copies(known, instances, size)
    idle = _idle(spark, known, size)
    lines = _disturbed(copies.unionByName(idle), size)
    lines.write.mode("overwrite").option("compression", "gzip").text(str(target / "events"))
    _rename(target / "events")
    rows = [row.asDict() for row in instances.select("application", "scenario").orderBy("number").collect()]
    (target / "truth.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    assert set(names.values()) == set(scenarios)


def truth(target: Path) -> dict[str, set[tuple[str, str]]]:
    """Read what must be found: application -> (rule, task)."""
    rows = map(json.loads, (target / "truth.jsonl").read_text(encoding="utf-8").splitlines())
    return {
        row["application"]: {(rule, task) for rule, task, _, _ in EXPECTED.get(row["scenario"], set())}
        for row in rows
    }


def _instances(spark: SparkSession, size: Size) -> DataFrame:
    """Choose scenario and time of every copy.

    Output columns: number, application, scenario, begins_us.
    """
    bugs = F.array(*map(F.lit, BUGS))
    benign = F.array(*map(F.lit, BENIGN))
    of_bugs = size.bugs * len(BUGS)
    number = F.col("number")
    scenario = F.when(number < of_bugs, F.get(bugs, (number % len(BUGS)).cast("int"))).otherwise(
        F.get(benign, (number % len(BENIGN)).cast("int"))
    )
    room_us = max(int(size.hours * 3600) - 600, 1) * MICROS
    begins = F.lit(START_US) + F.pmod(F.xxhash64(number, F.lit(size.seed)), F.lit(room_us))
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
        "blind": moved_blind,
        "applications": applications,
        **{name: F.col(name) + F.col("shift_us") for name in TIMES},
    }
    ready = rows.withColumns({"new_pod": pod, "shift_us": shift})
    return ready.select(
        *(given.get(field.name, F.col(field.name)).alias(field.name) for field in EVENT.fields)
    )


def _idle(spark: SparkSession, templates: DataFrame, size: Size) -> DataFrame:
    """Let pods do nothing: start, heartbeats every 30 s, summaries of held tasks every 60 s, stop.

    Output columns: `EVENT`.
    """
    seconds, tasks = int(size.hours * 3600), size.tasks
    # in one minute: a heartbeat, all summaries, a heartbeat
    per_minute = tasks + 2
    minutes = max(seconds // 60, 1)
    slots = spark.range(size.pods * minutes * per_minute).select(
        (F.col("id") % size.pods).alias("number"),
        F.floor(F.col("id") / size.pods).alias("step"),
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
        F.concat(F.lit("0_"), (F.col("number") % 20 * tasks + place - 1).cast("string")).alias("new_task"),
        (minute == 0).alias("beginning"),
    )
    shapes = _shapes(templates)
    pod = F.format_string("idle-%05d", "number")
    joined = rows.join(F.broadcast(shapes), "kind").withColumns(
        {
            "application": F.format_string("idle-%04d", F.floor(F.col("number") / 20)),
            "sequence": F.col("new_sequence"),
            "task_id": F.when(F.col("kind") == "summary", F.col("new_task")),
            "boot_id": F.lit("boot-1"),
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
    """Lose and double events, and write the rest as the contract's lines."""
    identity = F.concat_ws("/", "pod_uid", "boot_id", F.col("sequence").cast("string"))
    luck = F.pmod(F.xxhash64("id", F.lit(size.seed)), F.lit(1_000_000)) / 1_000_000
    repeats = F.when(luck > 1 - size.doubled, F.lit(2)).otherwise(F.lit(1))
    named = events.withColumn("id", F.substring(F.sha2(identity, 256), 1, 32))
    kept = named.where(luck >= size.loss).withColumn("copy", F.explode(F.sequence(F.lit(1), repeats)))
    data = F.struct(*(field.name for field in EVENT.fields))
    return kept.select(F.to_json(F.struct("id", data.alias("data"))).alias("value"))


def _rename(folder: Path) -> None:
    for path in folder.glob("part-*.txt.gz"):
        path.rename(path.with_name(path.name.replace(".txt.gz", ".jsonl.gz")))
    for path in folder.glob(".*.crc"):
        path.unlink()


def main(arguments: Sequence[str] | None = None) -> int:
    """Write one fleet."""
    parser = argparse.ArgumentParser(prog="fleet", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("target", type=Path)
    for field in fields(Size):
        kind = type(field.default)
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind, default=field.default)
    chosen = vars(parser.parse_args(arguments))
    target = chosen.pop("target")
    write(build_session(1 << 30), Size(**chosen), target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
