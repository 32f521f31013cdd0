"""A large input thinned by Spark, in SQL: the rows that `fleet.thin` makes of a small one; sizes are in `copies`.

All times are microseconds since the epoch, intervals half-open. `events` are `EVENT_ROW` and `routine`, one row per id.
Of groups only whole numbers are kept, so Spark hashes rows where they lie and moves one per group. Fleets send one
reading per store and minute: only those of tasks in question are read one by one, and of equal ones the ends.
"""

from __future__ import annotations

from string import Template

from pyspark.sql import DataFrame

from spark_rollup.fleet import sizes as plain
from spark_rollup.fleet.events import MICROS, SLOT_US
from spark_rollup.fleet.pods import TOO_MANY
from spark_rollup.fleet.rows import Reading
from spark_rollup.spark.materialize import materialize, small

_NAMES = {
    "BOOT": "namespace, pod, pod_uid, boot_id",
    "TASK": "namespace, application_id, task_id",
    "COPY": "namespace, application_id, task_id, store, offset, pod, identity, entries_low, entries_high",
    "POINT": "namespace, application_id, task_id, pod, observed_at_us, boot_id, sequence",
    "HOLDER": "namespace, application_id, task_id, pod, boot_id, slot",
    "PLACE": "namespace, application_id, task_id, store, pod, offset, puts",
    "STORE": "namespace, application_id, task_id, store, pod, identity",
    "WATCH": "namespace, application_id, pod, pod_uid, boot_id",
    "SLOT": f"floor(observed_at_us / {SLOT_US}) AS slot",
    "HOUR": f"floor(observed_at_us / {3600 * MICROS}) AS slot",
    "CURVE_SLOT": f"floor(at_us / {plain.SLOT_US})",
    "WHOLE": "kind = 'summary' AND NOT segmented",
    "TOO_MANY": TOO_MANY,
    "UNKNOWN": "CAST(NULL AS BIGINT)",
    "SAYS": ", ".join(Reading._fields[plain.SAYS :]),
    "PARTS": """(
        SELECT id, namespace, application_id, task_id, pod, observed_at_us AS at_us, explode(stores) AS part,
            IF(size(offsets) = 1, get(offsets, 0).offset, NULL) AS only_offset
        FROM {events} WHERE routine AND kind = 'summary')""",
}
"""What queries have in common; a copy is what is compared between pods, a part what a summary says of one store."""


def query(text: str, **frames: DataFrame) -> DataFrame:
    """Ask for `text`: `$NAME` is of `_NAMES`, `{frame}` one of the frames."""
    spark = next(iter(frames.values())).sparkSession
    return spark.sql(Template(text).substitute(_NAMES), None, **frames)


def beats(events: DataFrame) -> DataFrame:
    """Count what each boot said per `SLOT_US`: rows of `fleet.beats.Beat`."""
    return query(
        """
        SELECT $BOOT, node, agent_version, slot, count(*) AS events,
            min(observed_at_us) AS first_us, max(observed_at_us) AS last_us,
            max(observed_at_us) FILTER (WHERE phase = 'stopping') AS stop_us,
            min(sequence) AS first, max(sequence) AS last,
            min_by(observed_at_us, sequence) AS at_first_us, max_by(observed_at_us, sequence) AS at_last_us,
            max(sequence) FILTER (WHERE counts) AS level_last,
            max_by(observed_at_us, sequence) FILTER (WHERE counts) AS level_us,
            max_by(open_criticals, sequence) FILTER (WHERE counts) AS criticals,
            max_by(open_warnings, sequence) FILTER (WHERE counts) AS warnings,
            max_by(tasks, sequence) FILTER (WHERE counts) AS tasks
        FROM (SELECT *, $SLOT, open_criticals IS NOT NULL AS counts FROM {events})
        GROUP BY $BOOT, node, agent_version, slot""",
        events=events,
    )


def torn(events: DataFrame, counted: DataFrame) -> DataFrame:
    """Take slots with a hole inside apart, event by event: namespace, pod, and `fleet.beats.Stretch`."""
    return query(
        """
        SELECT $BOOT, sequence AS first, sequence AS last, observed_at_us AS at_first_us, observed_at_us AS at_last_us
        FROM (SELECT $BOOT, sequence, observed_at_us, $SLOT FROM {events})
        LEFT SEMI JOIN (SELECT $BOOT, slot FROM {counted} WHERE last - first + 1 <> events) USING ($BOOT, slot)
        WHERE sequence IS NOT NULL""",
        events=events,
        counted=counted,
    )


def of_pods(events: DataFrame) -> DataFrame:
    """Take drops, findings, heartbeats with blind intervals, and of each boot what was last named as open."""
    named = query(
        """
        SELECT $BOOT, 'heartbeat' AS kind, true AS routine, max(sequence) AS sequence,
            max_by(open_ids, sequence) AS open_ids
        FROM {events} WHERE kind = 'heartbeat' AND open_criticals IS NOT NULL AND size(open_ids) > 0 GROUP BY $BOOT""",
        events=events,
    )
    told = events.where("NOT routine AND kind IN ('drop', 'heartbeat', 'finding')")
    return told.unionByName(named, allowMissingColumns=True)


def of_applications(events: DataFrame) -> DataFrame:
    """Take what started and ended processes, and reports of settings."""
    ended = "change IN ('process-started', 'process-ended')"
    return events.where(f"NOT routine AND (kind = 'configuration' OR coalesce({ended}, false))")


def slots(events: DataFrame) -> DataFrame:
    """Fold what events show again and again, by boot and slot of time: in one pass what many questions begin with.

    Of each store and IDENTITY one row, or one for all events that show none: when it was seen, held and not held, and
    the last known numbers. `segmented`: whether a summary's part is of a segment; null = no part of a summary.
    """
    return query(
        """
        SELECT kind, $WATCH, process_id, task_id, applications, store, identity, segmented, slot,
            min(at_us) AS from_us, max(at_us) AS to_us,
            min(at_us) FILTER (WHERE held) AS held_from_us, max(at_us) FILTER (WHERE held) AS held_to_us,
            min(at_us) FILTER (WHERE NOT held) AS free_from_us, max(at_us) FILTER (WHERE NOT held) AS free_to_us,
            max_by(offset, at_us) FILTER (WHERE offset IS NOT NULL) AS offset,
            max_by(puts, at_us) FILTER (WHERE puts IS NOT NULL) AS puts,
            max_by(bytes, at_us) FILTER (WHERE bytes IS NOT NULL) AS bytes,
            max(at_us) FILTER (WHERE offset IS NOT NULL) AS offset_us,
            max(at_us) FILTER (WHERE puts IS NOT NULL) AS puts_us,
            max(at_us) FILTER (WHERE bytes IS NOT NULL) AS bytes_us, max(bytes) AS most_bytes
        FROM (
            SELECT kind, $WATCH, process_id, task_id, applications, at_us, held, $CURVE_SLOT AS slot,
                IF(place IS NULL, store, part.store) AS store,
                IF(place IS NULL, identity, part.identity) AS identity,
                IF(place IS NULL, NULL, part.segment IS NOT NULL) AS segmented,
                coalesce(part.offset, only_offset) AS offset, part.puts, part.bytes
            FROM (
                SELECT kind, $WATCH, process_id, task_id, observed_at_us AS at_us,
                    IF(kind = 'summary', held, NULL) AS held,
                    IF(kind = 'heartbeat', applications, NULL) AS applications,
                    IF(kind = 'transition', store, NULL) AS store,
                    IF(kind = 'transition' AND task_id IS NOT NULL, identity, NULL) AS identity,
                    posexplode_outer(stores) AS (place, part),
                    IF(size(offsets) = 1, get(offsets, 0).offset, NULL) AS only_offset
                FROM {events}
            )
        ) GROUP BY ALL""",
        events=events,
    )


def members(slots: DataFrame) -> DataFrame:
    """List which pods name which applications: namespace, pod, application_id."""
    return query(
        """
        SELECT DISTINCT * FROM (
            SELECT namespace, pod, application_id FROM {slots}
            UNION ALL SELECT namespace, pod, explode(applications) FROM {slots}
        ) WHERE application_id IS NOT NULL""",
        slots=slots,
    )


def marks(events: DataFrame) -> DataFrame:
    """List what changed on disk, with the artefact's own time where that is earlier than the reading."""
    return query(
        """
        SELECT $POINT, least(observed_at_us, occurred_at_us) AS at_us, change, store, segment, identity, offset_before,
            offset_after, puts, bytes, entries_low, entries_high, comparable, shape, detail
        FROM {events}
        WHERE NOT routine AND kind = 'transition' AND task_id IS NOT NULL""",
        events=events,
    )


def points(events: DataFrame, slots: DataFrame, marks: DataFrame) -> DataFrame:
    """List who was seen to hold what when (`fleet.holds.Point`), without summaries that only repeat.

    Where all summaries of an hour agree, or changed once, and no transition came between, the first of each kind says
    it all. All other hours are taken apart, summary by summary.
    """
    steps = query(
        """
        SELECT $POINT, change = 'task-held' AS now_held, $HOUR FROM {marks}
        WHERE change IN ('task-held', 'task-released', 'task-deleted')""",
        marks=marks,
    )
    folded = query(
        """
        SELECT $HOLDER, min(held_from_us) AS held_from_us, max(held_to_us) AS held_to_us,
            min(free_from_us) AS free_from_us, max(free_to_us) AS free_to_us
        FROM (SELECT *, from_us AS observed_at_us, $HOUR FROM (SELECT * EXCEPT (slot) FROM {slots}))
        WHERE task_id IS NOT NULL AND coalesce(held_from_us, free_from_us) IS NOT NULL GROUP BY $HOLDER""",
        slots=slots,
    )
    folded = materialize(folded)
    apart = query(
        """
        SELECT $HOLDER FROM {folded} WHERE held_from_us <= free_to_us AND free_from_us <= held_to_us
        UNION SELECT $HOLDER FROM {steps}""",
        folded=folded,
        steps=steps,
    )
    return query(
        """
        SELECT $TASK, pod, observed_at_us, boot_id, 0L AS sequence, now_held FROM (
            SELECT $HOLDER, inline(array(
                struct(held_from_us AS observed_at_us, true AS now_held),
                struct(free_from_us AS observed_at_us, false AS now_held)
            )) FROM {folded} LEFT ANTI JOIN {apart} USING ($HOLDER)
        ) WHERE observed_at_us IS NOT NULL
        UNION ALL SELECT $POINT, now_held FROM (
            SELECT $POINT, held AS now_held, $HOUR FROM {events}
            WHERE routine AND kind = 'summary' AND task_id IS NOT NULL AND held IS NOT NULL
        ) LEFT SEMI JOIN {apart} USING ($HOLDER)
        UNION ALL SELECT $POINT, now_held FROM {steps}""",
        events=events,
        folded=folded,
        apart=small(materialize(apart)),
        steps=steps,
    )


def sightings(slots: DataFrame) -> DataFrame:
    """Find when each boot of an agent had a process id or an IDENTITY before its eyes (`Sighting`)."""
    return query(
        """
        SELECT $WATCH, what, key, task_id, store, min(from_us) AS from_us, max(to_us) AS to_us FROM (
            SELECT $WATCH, 'process' AS what, process_id AS key, NULL AS task_id, NULL AS store, from_us, to_us
            FROM {slots}
            UNION ALL SELECT $WATCH, 'store', identity, task_id, store, from_us, to_us FROM {slots}
        ) WHERE key IS NOT NULL GROUP BY $WATCH, what, key, task_id, store""",
        slots=slots,
    )
