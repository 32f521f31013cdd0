"""What every rule is given and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Affected, Confidence, Kind, Level, Severity, Status
from agent.contract.fields import fields_of
from spark_rollup.columns import is_notable, no_texts, rfc3339
from spark_rollup.config import FLEET
from spark_rollup.fleet.meta import RuleMeta
from spark_rollup.schemas import FINDING


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that rules may read; all frames are of the same input up to `as_of_us`.

    Args of the dataclass:
        said: Each agent finding's last word (`last_local_findings`), or that its agent no longer counts it
            (`levels.settled`).
        local: Those that are open, or were resolved in the look-back.
        held: `timeline.holders`.
        questioned: Tasks (`TASK`) that some rule reads one by one (`questioned.questioned`).
        marks: `timeline.marks`; of tasks not in question without what happens all the time (`timeline.FREQUENT`).
        sizes: `sizes.sizes` of the tasks in question.
        curve: `sizes.curve` of all tasks.
        saved: `sizes.saved` of all tasks.
        latest: `sizes.latest` of all tasks.
        settled: `sizes.settled_copies` of stores that several pods have.
        lives: `timeline.lives`.
        members: `timeline.members`.
        sightings: `timeline.sightings`.
        gaps: `gaps.find_gaps`, those that reach into the look-back.
        unwatched: `gaps.merged`: all times that were not watched, each listed once per pod.
        heard: `heartbeats.last_words`, with what each agent counts as open (`levels.with_missed`).
        settings: `settings.effective_settings`.
        as_of_us: Microseconds since the epoch.
        since_us: When the look-back began; a story that ended before is left out. 0 = none is.
    """

    said: DataFrame
    local: DataFrame
    held: DataFrame
    questioned: DataFrame
    marks: DataFrame
    sizes: DataFrame
    curve: DataFrame
    saved: DataFrame
    latest: DataFrame
    settled: DataFrame
    lives: DataFrame
    members: DataFrame
    sightings: DataFrame
    gaps: DataFrame
    unwatched: DataFrame
    heard: DataFrame
    settings: DataFrame
    as_of_us: int
    since_us: int = 0


SAID = (
    "application_id", "task_id", "store", "observed_at_us", "boot_id", "sequence",
    *(row.name for row in fields_of(Kind.FINDING) if row.kinds and row.name != "finding_id"),
)  # fmt: skip
"""What is kept of an agent's finding: where, when, and all that only findings say."""


def last_local_findings(events: DataFrame) -> DataFrame:
    """Keep the last word about each agent finding, by time and sequence.

    A repetition is the same word: it was said when the agent said it first.

    Input columns: `EVENT_ROW`, one row per id.
    Output columns: the finding fields of the contract, `TASK`, pod, observed_at_us, heard_us, heard_boot and
        heard_sequence (of the event itself).
    Grain: one row per finding_id and pod.
    """
    order = F.struct("observed_at_us", "sequence")
    rows = events.where(is_notable() & (F.col("kind") == "finding")).groupBy("namespace", "pod", "finding_id")
    last = (
        rows.agg(F.max_by(F.struct(*SAID), order).alias("said"))
        .select("namespace", "pod", "finding_id", "said.*")
        .withColumnsRenamed({"boot_id": "heard_boot", "sequence": "heard_sequence"})
    )
    return last.withColumns(
        {
            "heard_us": F.col("observed_at_us"),
            "observed_at_us": F.coalesce("said_us", "observed_at_us"),
            **{name: _known(name, values, default) for name, (values, default) in _WORDS.items()},
        }
    )


_WORDS: Mapping[str, tuple[type[StrEnum], StrEnum]] = {
    "level": (Level, Level.EVENT),
    "severity": (Severity, Severity.WARNING),
    "confidence": (Confidence, Confidence.UNKNOWN),
    "status": (Status, Status.OPEN),
    "affected": (Affected, Affected.POSSIBLY),
}
"""What a word is taken for that this version does not know: a newer minor version of the contract may add some."""


def _known(name: str, values: type[StrEnum], default: StrEnum) -> Column:
    word = F.col(name)
    return F.when(word.isin([value.value for value in values]), word).otherwise(F.lit(default.value))


def finding(rows: DataFrame, meta: RuleMeta, columns: Mapping[str, Column]) -> DataFrame:
    """Shape a rule's rows into findings and give each its stable id.

    Args:
        rows: One row per finding.
        meta: The rule; gives detector, level and the defaults of severity and upstream.
        columns: Further `FINDING` columns by name; must have `opened_at_us`, `summary`, `evidence`, `next_action`,
            `confidence`; may have `identity`, and `ended_us` for what is resolved. Columns of `rows` with a finding's
            name are taken over.

    Returns:
        `FINDING` rows.
    """
    given: dict[str, Column] = {
        "detector": F.lit(meta.id),
        "level": F.lit(meta.level.value),
        "severity": F.lit(meta.severity.value),
        "status": F.lit(Status.OPEN.value),
        "upstream": F.array(*(F.lit(key) for key in meta.upstream)).cast("array<string>"),
        "affected": F.lit(Affected.POSSIBLY.value),
        "missing_facts": no_texts(),
        "confirms": no_texts(),
        "refutes": no_texts(),
        "explains": no_texts(),
        "reported_by": F.lit(FLEET),
        "mechanism": F.lit(meta.mechanism.slug if meta.mechanism else meta.id),
        "incident_id": F.lit(None),
        "local_incidents": F.lit(None),
        "pods": F.array("pod"),
        "confidence": F.lit(Confidence.CONFIRMED.value),
    }
    for name in ("namespace", "application_id", "task_id", "store", "pod", "identity"):
        given[name] = F.col(name) if name in rows.columns else F.lit(None).cast("string")
    given |= columns
    key = ("detector", "namespace", "application_id", "task_id", "store", "pod", "identity")
    parts = [F.coalesce(given[name].cast("string"), F.lit("")) for name in key]
    given["id"] = F.substring(
        F.sha2(F.concat_ws("\x1f", *parts, columns["opened_at_us"].cast("string")), 256), 1, 32
    )
    given["opened_at"] = rfc3339(columns["opened_at_us"])
    is_over = given["status"] == Status.RESOLVED.value
    given["resolved_at"] = F.when(is_over, rfc3339(columns.get("ended_us", F.lit(None).cast("bigint"))))
    given["lineage"] = _lineage(given, meta.joined_by)
    return rows.select(
        *(given[field.name].cast(field.dataType).alias(field.name) for field in FINDING.fields)
    )


def _lineage(given: Mapping[str, Column], joined_by: Sequence[Sequence[str]]) -> Column:
    """Write what findings of one incident have in common: a key for each set of columns, or for each pod in it."""
    return F.concat(*(_keys(given, names) for names in joined_by))


def _keys(given: Mapping[str, Column], names: Sequence[str]) -> Column:
    parts = [F.coalesce(given[name].cast("string"), F.lit("")) for name in names if name != "pods"]
    if "pods" not in names:
        return F.array(F.concat_ws("/", *parts))
    return F.transform(given["pods"], lambda pod: F.concat_ws("/", *parts, pod))
