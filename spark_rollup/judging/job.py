"""Facts -> applications -> what rules say of them: plain Python, on the driver or in Spark's Python workers.

An input that fits one partition is judged where it is: no worker has to be started. Of a larger one each application
is judged by one worker, with pickled rows: that needs neither pandas nor pyarrow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark import RDD, StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from spark_rollup.fleet.application import Pods
from spark_rollup.fleet.gathered import (
    OF_APPLICATION,
    OF_POD,
    OF_TASK,
    Place,
    application_of,
    pods_of,
    row_of,
)
from spark_rollup.fleet.judge import CHURN, FINDINGS, RESTARTS, judge
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.pods import known_pods
from spark_rollup.fleet.rule import Rule
from spark_rollup.judging.base import Facts
from spark_rollup.schemas import CHURN as CHURN_TABLE
from spark_rollup.schemas import FINDING, KNOWN_PODS
from spark_rollup.schemas import RESTARTS as RESTARTS_TABLE
from spark_rollup.spark.py4j_cache import run_parallel
from spark_rollup.spark.rows import frame_of, rows_of
from spark_rollup.spark.single_partition import is_whole

FRAMES: Mapping[str, str] = {
    "holds": "held", "marks": "marks", "readings": "sizes", "copies": "settled", "latest": "latest", "saved": "saved",
    "said": "said", "lives": "lives", "sightings": "sightings", "settings": "settings",
    "heard": "heard", "gaps": "gaps", "unwatched": "unwatched",
}  # fmt: skip
"""Field of a task, an application or a pod -> the frame of `Facts` with its rows."""

TABLES: Mapping[str, T.StructType] = {FINDINGS: FINDING, RESTARTS: RESTARTS_TABLE, CHURN: CHURN_TABLE}

PROOFS = "proofs"

Keyed = tuple[Place, tuple[str, Any]]


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found.

    Args of the dataclass:
        findings: `FINDING`: of rules, of `verify`, and what agents say alone.
        restarts: `RESTARTS`.
        churn: `CHURN`.
        known_pods: `KNOWN_PODS`.
    """

    findings: DataFrame
    restarts: DataFrame
    churn: DataFrame
    known_pods: DataFrame


@dataclass(frozen=True, slots=True)
class _Common:
    """What every application is judged with: small, and sent to each worker."""

    pods: Mapping[str, Pods]
    as_of_us: int
    since_us: int
    rules: Sequence[Rule]
    verified: bool


def judged(facts: Facts, rules: Sequence[Rule], proofs: DataFrame | None) -> Judged:
    """Judge all applications.

    Args:
        facts: All facts.
        rules: Those that are asked.
        proofs: What `verify` found, `FINDING`; None = it was not asked.
    """
    spark = facts.said.sparkSession
    pods = _pods(spark, facts)
    common = _Common(pods, facts.as_of_us, facts.since_us, rules, proofs is not None)
    frames = {field: facts_frame(facts, field) for field in (*OF_TASK, *OF_APPLICATION)}
    tables = (_here if is_whole(spark) else _by_workers)(spark, common, frames, proofs)
    known = [row for namespace, named in pods.items() for row in known_pods(namespace, named, facts.as_of_us)]
    return Judged(**tables, known_pods=frame_of(spark, known, KNOWN_PODS))


def facts_frame(facts: Facts, field: str) -> DataFrame:
    """Select a field's rows: namespace, application unless it is about pods, and the row's own columns."""
    of_pod = field in OF_POD
    kind = {**OF_TASK, **OF_APPLICATION, **OF_POD}[field]
    frame: DataFrame = getattr(facts, FRAMES[field])
    return frame.select("namespace", *(() if of_pod else ("application_id",)), *kind._fields)


def _pods(spark: SparkSession, facts: Facts) -> Mapping[str, Pods]:
    members = facts.members.select("namespace", "application_id", "pod")
    frames = [members, *(facts_frame(facts, field) for field in OF_POD)]
    first, *rest = run_parallel(spark, lambda frame: [tuple(row) for row in frame.collect()], frames)
    rows = [
        (row[0], field, row_of(field, row[1:]))
        for field, found in zip(OF_POD, rest, strict=True)
        for row in found
    ]
    return pods_of(first, rows)


def _places(common: _Common) -> set[Place]:
    """List what only pods are known of: all of a namespace, and applications of which only blindness is reported."""
    return {
        (namespace, application)
        for namespace, pods in common.pods.items()
        for application in (None, *(gap.application_id for pod in pods.values() for gap in pod.gaps))
    }


def _here(
    spark: SparkSession, common: _Common, frames: Mapping[str, DataFrame], proofs: DataFrame | None
) -> dict[str, DataFrame]:
    """Judge on the driver."""
    found = run_parallel(spark, lambda frame: [tuple(row) for row in frame.collect()], frames.values())
    rows: dict[Place, list[tuple[str, Any]]] = defaultdict(list, {place: [] for place in _places(common)})
    for field, group in zip(frames, found, strict=True):
        for namespace, application, *values in group:
            rows[namespace, application].append((field, row_of(field, values)))
    for row in rows_of(proofs) if proofs is not None else ():
        rows[str(row["namespace"]), row["application_id"]].append((PROOFS, row))  # type: ignore[index]
    tables: dict[str, list[Row]] = {name: [] for name in TABLES}
    for place, named in rows.items():
        for table, row in _of_group(common, (place, named)):
            tables[table].append(row)
    return {name: frame_of(spark, tables[name], schema) for name, schema in TABLES.items()}


def _by_workers(
    spark: SparkSession, common: _Common, frames: Mapping[str, DataFrame], proofs: DataFrame | None
) -> dict[str, DataFrame]:
    """Judge in Spark's Python workers, one application at a time."""
    parts = [frame.rdd.map(partial(_keyed, field)) for field, frame in frames.items()]
    if proofs is not None:
        parts.append(proofs.rdd.map(_keyed_proof))
    context = spark.sparkContext
    parts.append(context.parallelize([(place, (PROOFS, None)) for place in _places(common)]))
    sent = context.broadcast(common)
    groups: RDD[tuple[Place, Iterable[tuple[str, Any]]]] = context.union(parts).groupByKey()
    found = groups.flatMap(lambda group: _of_group(sent.value, group)).persist(StorageLevel.MEMORY_AND_DISK)
    return {
        name: spark.createDataFrame(
            found.filter(partial(_is_of, name)).map(partial(_values, schema.names)), schema
        )
        for name, schema in TABLES.items()
    }


def _keyed(field: str, row: Sequence[Any]) -> Keyed:
    return (row[0], row[1]), (field, row_of(field, row[2:]))


def _keyed_proof(row: Any) -> Keyed:
    found = row.asDict(recursive=True)
    return (found["namespace"], found["application_id"]), (PROOFS, found)


def _is_of(table: str, found: tuple[str, Row]) -> bool:
    return found[0] == table


def _values(names: Sequence[str], found: tuple[str, Row]) -> tuple[object, ...]:
    return tuple(found[1][name] for name in names)


def _of_group(common: _Common, group: tuple[Place, Iterable[tuple[str, Any]]]) -> Iterator[tuple[str, Row]]:
    place, found = group[0], list(group[1])
    rows = [row for row in found if row[0] != PROOFS]
    proofs = [row for field, row in found if field == PROOFS and row is not None] if common.verified else None
    pods = common.pods.get(place[0], {})
    yield from judge(
        application_of(place, rows, pods, common.as_of_us, common.since_us, proofs), common.rules
    )
