"""Findings of digests: `state-differs` against the changelog, `replicas-differ` against another copy."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from agent.contract.codec import rfc3339
from agent.contract.events import Confidence, Level, Severity
from spark_rollup.judging.base import RuleMeta, finding
from spark_rollup.schemas import FINDING
from spark_rollup.verify.digests import Copy
from spark_rollup.verify.replicas import Difference
from spark_rollup.verify.verdicts import Verdict, Word

STATE_DIFFERS = RuleMeta(
    id="state-differs",
    title="A store does not hold what its changelog says",
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
)

REPLICAS_DIFFER = RuleMeta(
    id="replicas-differ",
    title="Two copies of a store at the same offset do not hold the same",
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
)

_SEGMENTS_NAMED = 5

_GIVEN = (
    "namespace", "application_id", "task_id", "store", "pod", "severity", "confidence", "summary", "evidence",
    "next_action", "pods",
)  # fmt: skip

_ROW = T.StructType([*(FINDING[name] for name in _GIVEN), T.StructField("opened_at_us", T.LongType())])


def findings(
    spark: SparkSession, judged: Sequence[Verdict], differences: Sequence[Difference], brokers: str | None
) -> DataFrame:
    """Give a finding for each copy that differs, and for each pair of which the changelog does not show the wrong one.

    Output columns: `FINDING`.
    """
    wrong = {one.source.copy for one in judged if one.word is Word.DIFFERS}
    states = [_state(one, brokers) for one in judged if one.word is Word.DIFFERS]
    replicas = [
        _replicas(one, brokers) for one in differences if not {one.pair.one.copy, one.pair.other.copy} & wrong
    ]
    return _frame(spark, STATE_DIFFERS, states).unionByName(_frame(spark, REPLICAS_DIFFER, replicas))


def _frame(spark: SparkSession, meta: RuleMeta, rows: Sequence[tuple[object, ...]]) -> DataFrame:
    frame = spark.createDataFrame(rows, _ROW)
    return finding(frame, meta, {name: F.col(name) for name in (*_GIVEN, "opened_at_us")})


def _state(one: Verdict, brokers: str | None) -> tuple[object, ...]:
    copy, (topic, number) = one.source, one.source.part
    where = _where(one)
    doubt = f" ({one.doubt})" if one.doubt else ""
    return (
        *_place(copy),
        *_grade(one.doubt is not None),
        f"{copy.task_id}, store {copy.store}: against {topic}-{number} at offset {copy.last_offset}, {one.found()} of "
        f"{sum(place.entries for place in copy.places)} entries on {copy.pod}{where}{doubt}",
        [
            _evidence(copy),
            (
                rfc3339(copy.made_us),
                f"{one.counts['differing']} of {one.counts['buckets']} buckets differ from those of the changelog",
                f"{topic}-{number}",
            ),
        ],
        f"Keep a copy of {copy.task_id} on {copy.pod}, and name the keys there: {_command(copy, brokers)}. Then stop "
        f"the instance, remove the store's directories with the task's checkpoint, and let it restore: the changelog "
        f"is right.",
        [copy.pod],
        copy.made_us,
    )


def _replicas(found: Difference, brokers: str | None) -> tuple[object, ...]:
    one, other = found.pair.one, found.pair.other
    offset = one.last_offset
    return (
        *_place(one),
        *_grade(found.is_doubtful),
        f"{one.task_id}, store {one.store}: the copies on {one.pod} and {other.pod} are at the same offset ({offset}) "
        f"and do not hold the same: at least {found.counts['extra']} entries only on {one.pod}, "
        f"{found.counts['missing']} only on {other.pod}, {found.counts['different']} with another value",
        [_evidence(one), _evidence(other)],
        f"Do not fail over between them until it is known which one is right. The changelog says it, on either pod: "
        f"{_command(one, brokers)}",
        [one.pod, other.pod],
        max(one.made_us, other.made_us),
    )


def _place(copy: Copy) -> tuple[str, ...]:
    return copy.namespace, copy.application_id, copy.task_id, copy.store, copy.pod


def _grade(is_doubtful: bool) -> tuple[str, str]:
    if is_doubtful:
        return Severity.WARNING.value, Confidence.SUSPECTED.value
    return Severity.CRITICAL.value, Confidence.CONFIRMED.value


def _evidence(copy: Copy) -> tuple[str, str, str]:
    entries = sum(place.entries for place in copy.places)
    return (
        rfc3339(copy.made_us),
        f"digest of {copy.pod}: {entries} entries at offset {copy.last_offset}, {copy.state.value}",
        f"{copy.application_id}/{copy.task_id}/{copy.store}",
    )


def _where(one: Verdict) -> str:
    if not one.segments:
        return ""
    named = ", ".join(map(str, one.segments[:_SEGMENTS_NAMED]))
    more = len(one.segments) - _SEGMENTS_NAMED
    return f", segments {named}{f' and {more} more' if more > 0 else ''}"


def _command(copy: Copy, brokers: str | None) -> str:
    """Write the command that names the keys."""
    words = [
        "statewarden", "verify", "STATE_DIR", "--bootstrap-servers", brokers or "HOST:PORT",
        "--application", copy.application_id, "--task", copy.task_id, "--store", copy.store, "--explain", "10",
    ]  # fmt: skip
    return shlex.join(words)
