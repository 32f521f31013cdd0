"""Findings of digests: `state-differs` and `state-equal` (against the changelog), `replicas-differ` (another copy)."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from agent.contract.codec import rfc3339
from agent.contract.events import Confidence, Severity, Status
from spark_rollup.fleet.meta import RuleMeta
from spark_rollup.fleet.rows import Entry
from spark_rollup.fleet.words import finding
from spark_rollup.proofs import replicas_differ, state_differs, state_equal
from spark_rollup.schemas import FINDING
from spark_rollup.spark.rows import frame_of
from spark_rollup.verify.digests import Copy
from spark_rollup.verify.replicas import Difference
from spark_rollup.verify.suspicions import Refuted, Suspicion, proved, refuted
from spark_rollup.verify.verdicts import Verdict, Word

_SEGMENTS_NAMED = 5

_GIVEN = (
    "namespace", "application_id", "task_id", "store", "pod", "severity", "confidence", "summary", "evidence",
    "next_action", "pods", "status", "confirms", "refutes",
)  # fmt: skip


def findings(
    spark: SparkSession,
    judged: Sequence[Verdict],
    differences: Sequence[Difference],
    suspicions: Sequence[Suspicion],
    brokers: str | None,
) -> DataFrame:
    """Give what is to be reported.

    That is each copy that differs, each pair of which the changelog does not show the wrong one, and each store or task
    of which a suspicion is refuted.

    Output columns: `FINDING`.
    """
    wrong = {one.source.copy for one in judged if one.word is Word.DIFFERS}
    borne_out = proved(judged, suspicions)
    states = [
        _state(one, borne_out.get(one.source.copy, ()), brokers) for one in judged if one.word is Word.DIFFERS
    ]
    replicas = [
        _replicas(one, brokers) for one in differences if not {one.pair.one.copy, one.pair.other.copy} & wrong
    ]
    equal = [_equal(one) for one in refuted(judged, suspicions)]
    return (
        _frame(spark, state_differs.META, states)
        .unionByName(_frame(spark, replicas_differ.META, replicas))
        .unionByName(_frame(spark, state_equal.META, equal))
    )


def repair(one: Verdict, brokers: str | None) -> str:
    """Say what to do about a copy that differs: nothing is removed that may be the last to have what is lost."""
    copy = one.source
    unless = (
        "If extra keys are of an aborted transaction and no process was killed, the changelog has lost them, and this "
        "copy is the last that has them: do not remove it, see the runbook. Otherwise "
        if one.counts.get("extra")
        else "Then "
    )
    return (
        f"Keep a copy of {copy.task_id} on {copy.pod} before anything else, and name the keys there: "
        f"{_command(copy, brokers)}. {unless}stop the instance, remove the store's directories with the task's "
        f"checkpoint, and let it restore."
    )


def _frame(spark: SparkSession, meta: RuleMeta, rows: Sequence[tuple[object, ...]]) -> DataFrame:
    found = []
    for *values, opened_us in rows:
        namespace, application, *rest = values
        given: dict[str, Any] = dict(zip(_GIVEN[2:], rest, strict=True))
        given["evidence"] = [Entry(*one)._asdict() for one in given["evidence"]]
        where, opened_at_us = (str(namespace), str(application)), int(str(opened_us))
        found.append(finding(meta, where, opened_at_us, **given, ended_us=opened_at_us))
    return frame_of(spark, found, FINDING)


def _state(one: Verdict, borne_out: Sequence[Suspicion], brokers: str | None) -> tuple[object, ...]:
    copy, (topic, number) = one.source, one.source.part
    where = _where(one)
    doubt = f" ({one.doubt})" if one.doubt else ""
    return (
        *_place(copy),
        *_grade(one.doubt is not None),
        f"{copy.task_id}, store {copy.store}: against {topic}-{number} at offset {copy.last_offset}, {one.found()} of "
        f"{sum(place.entries for place in copy.places)} entries on {copy.pod}{where}{doubt}",
        [
            *map(_suspected, borne_out),
            _evidence(copy),
            (
                rfc3339(copy.made_us),
                f"{one.counts['differing']} of {one.counts['buckets']} buckets differ from those of the changelog",
                f"{topic}-{number}",
            ),
        ],
        repair(one, brokers),
        [copy.pod],
        Status.OPEN.value,
        [suspicion.finding_id for suspicion in borne_out],
        [],
        copy.made_us,
    )


def _equal(found: Refuted) -> tuple[object, ...]:
    first, copies = found.suspicions[0], [one.source for one in found.equal]
    namespace, application, task, pod = first.home
    stores = ", ".join(f"{copy.store} at offset {copy.last_offset} of {_log(copy)}" for copy in copies)
    named = ", ".join(sorted({suspicion.detector for suspicion in found.suspicions}))
    every = "every store holds" if first.store is None else "the store holds"
    return (
        namespace,
        application,
        task,
        first.store,
        pod,
        Severity.INFO.value,
        Confidence.CONFIRMED.value,
        f"{task} on {pod}: {every} what its changelog says ({stores}): {named} is refuted",
        [*map(_suspected, found.suspicions), *map(_evidence, copies)],
        "Nothing: a restoration would give the same content.",
        [pod],
        Status.RESOLVED.value,
        [],
        [suspicion.finding_id for suspicion in found.suspicions],
        max(copy.made_us for copy in copies),
    )


def _replicas(found: Difference, brokers: str | None) -> tuple[object, ...]:
    one, other = found.pair.one, found.pair.other
    offset = one.last_offset
    return (
        *_place(one),
        *_grade(found.doubt is not None),
        f"{one.task_id}, store {one.store}: the copies on {one.pod} and {other.pod} are at the same offset ({offset}) "
        f"and do not hold the same: at least {found.counts['extra']} entries only on {one.pod}, "
        f"{found.counts['missing']} only on {other.pod}, {found.counts['different']} with another value"
        f"{f' ({found.doubt})' if found.doubt else ''}",
        [_evidence(one), _evidence(other)],
        f"Do not fail over between them until it is known which one is right. The changelog says it, on either pod: "
        f"{_command(one, brokers)}",
        [one.pod, other.pod],
        Status.OPEN.value,
        [],
        [],
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


def _suspected(one: Suspicion) -> tuple[str, str, str]:
    return rfc3339(one.opened_us), f"{one.detector}: suspected by the agent", f"finding {one.finding_id}"


def _log(copy: Copy) -> str:
    return f"{copy.part[0]}-{copy.part[1]}"


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
