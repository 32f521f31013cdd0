"""A large input thinned by Spark, in SQL: the rows that `fleet.thin` makes of a small one.

All times are microseconds since the epoch, intervals half-open. `events` are `EVENT_ROW` and `routine`, one row per id.
Of groups only whole numbers are kept, so Spark hashes rows where they lie and moves one per group. Fleets send one
reading per store and minute: only those of tasks in question are read one by one, and of equal ones the ends.
"""

from __future__ import annotations

from string import Template

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rollup.columns import TASK
from spark_rollup.fleet import sizes as small
from spark_rollup.fleet.events import MICROS, SLOT_US
from spark_rollup.fleet.pods import TOO_MANY
from spark_rollup.fleet.rows import Reading
from spark_rollup.spark.materialize import materialize
from spark_rollup.spark.single_partition import single_partition

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
    "CURVE_SLOT": f"floor(at_us / {small.SLOT_US})",
    "THING": "STRUCT<what: STRING, key: STRING, task_id: STRING, store: STRING>",
    "TOO_MANY": TOO_MANY,
    "UNKNOWN": "CAST(NULL AS BIGINT)",
    "SAYS": ", ".join(Reading._fields[small.SAYS :]),
    "PARTS": """(
        SELECT id, namespace, application_id, task_id, pod, observed_at_us AS at_us, explode(stores) AS part,
            IF(size(offsets) = 1, get(offsets, 0).offset, NULL) AS only_offset
        FROM {events} WHERE routine AND kind = 'summary')""",
}
"""What queries have in common; a copy is what is compared between pods, a part what a summary says of one store."""


def _query(text: str, **frames: DataFrame) -> DataFrame:
    """Ask for `text`: `$NAME` is of `_NAMES`, `{frame}` one of the frames."""
    spark = next(iter(frames.values())).sparkSession
    return spark.sql(Template(text).substitute(_NAMES), None, **frames)


def beats(events: DataFrame) -> DataFrame:
    """Count what each boot said per `SLOT_US`: rows of `fleet.beats.Beat`."""
    return _query(
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
    return _query(
        """
        SELECT $BOOT, sequence AS first, sequence AS last, observed_at_us AS at_first_us, observed_at_us AS at_last_us
        FROM (SELECT $BOOT, sequence, observed_at_us, $SLOT FROM {events})
        LEFT SEMI JOIN (SELECT $BOOT, slot FROM {counted} WHERE last - first + 1 <> events) USING ($BOOT, slot)
        WHERE sequence IS NOT NULL""",
        events=events,
        counted=counted,
    )


def of_pods(events: DataFrame) -> DataFrame:
    """Take drops, findings, heartbeats with blind intervals, and of each boot the newest that names what is open."""
    named = events.where("kind = 'heartbeat' AND open_criticals IS NOT NULL AND size(open_ids) > 0")
    return (
        _query(
            """
        SELECT * FROM {named}
        LEFT SEMI JOIN (SELECT $BOOT, max(sequence) AS sequence FROM {named} GROUP BY $BOOT)
        USING ($BOOT, sequence)""",
            named=named,
        )
        .select(*events.columns)
        .unionAll(events.where("NOT routine AND kind IN ('drop', 'heartbeat', 'finding')"))
    )


def of_applications(events: DataFrame) -> DataFrame:
    """Take what started and ended processes, and reports of settings."""
    ended = "change IN ('process-started', 'process-ended')"
    return events.where(f"NOT routine AND (kind = 'configuration' OR coalesce({ended}, false))")


def members(events: DataFrame) -> DataFrame:
    """List which pods name which applications: namespace, pod, application_id."""
    return _query(
        """
        SELECT DISTINCT namespace, pod, application_id FROM (
            SELECT namespace, pod, application_id FROM {events}
            UNION ALL
            SELECT namespace, pod, explode(applications) FROM (
                SELECT DISTINCT namespace, pod, applications FROM {events} WHERE kind = 'heartbeat'
            )
        ) WHERE application_id IS NOT NULL""",
        events=events,
    )


def marks(events: DataFrame) -> DataFrame:
    """List what changed on disk, with the artefact's own time where that is earlier than the reading."""
    return _query(
        """
        SELECT $TASK, pod, least(observed_at_us, occurred_at_us) AS at_us, observed_at_us, sequence, change, store,
            segment, identity, offset_before, offset_after, puts, bytes, entries_low, entries_high, comparable, shape,
            detail
        FROM {events}
        WHERE NOT routine AND kind = 'transition' AND task_id IS NOT NULL""",
        events=events,
    )


def points(events: DataFrame) -> DataFrame:
    """List who was seen to hold what when (`fleet.holds.Point`), without summaries that only repeat.

    Where all summaries of an hour agree, or changed once, and no transition came between, the first of each kind says
    it all. All other hours are taken apart, summary by summary.
    """
    steps = _query(
        """
        SELECT $POINT, change = 'task-held' AS now_held, $HOUR FROM {events}
        WHERE NOT routine AND task_id IS NOT NULL AND change IN ('task-held', 'task-released', 'task-deleted')""",
        events=events,
    )
    readings = _query(
        """
        SELECT $POINT, held AS now_held, $HOUR FROM {events}
        WHERE routine AND kind = 'summary' AND task_id IS NOT NULL AND held IS NOT NULL""",
        events=events,
    )
    folded = _query(
        """
        SELECT $HOLDER,
            min(observed_at_us) FILTER (WHERE now_held) AS held_from_us,
            max(observed_at_us) FILTER (WHERE now_held) AS held_to_us,
            min(observed_at_us) FILTER (WHERE NOT now_held) AS free_from_us,
            max(observed_at_us) FILTER (WHERE NOT now_held) AS free_to_us
        FROM {readings} GROUP BY $HOLDER""",
        readings=readings,
    )
    return _query(
        """
        WITH apart AS (
            SELECT $HOLDER FROM {folded} WHERE held_from_us <= free_to_us AND free_from_us <= held_to_us
            UNION SELECT $HOLDER FROM {steps}
        )
        SELECT $TASK, pod, observed_at_us, boot_id, 0L AS sequence, now_held FROM (
            SELECT $HOLDER, inline(array(
                struct(held_from_us AS observed_at_us, true AS now_held),
                struct(free_from_us AS observed_at_us, false AS now_held)
            )) FROM {folded} LEFT ANTI JOIN apart USING ($HOLDER)
        ) WHERE observed_at_us IS NOT NULL
        UNION ALL SELECT $POINT, now_held FROM {readings}
            LEFT SEMI JOIN apart USING ($HOLDER)
        UNION ALL SELECT $POINT, now_held FROM {steps}""",
        folded=materialize(folded),
        steps=steps,
        readings=readings,
    )


def sightings(events: DataFrame) -> DataFrame:
    """Find when each boot of an agent had a process id or IDENTITY before its eyes (`Sighting`): folded, then apart."""
    return _query(
        """
        SELECT $WATCH, thing.what, thing.key, thing.task_id, thing.store, min(from_us) AS from_us, max(to_us) AS to_us
        FROM (
            SELECT $WATCH, from_us, to_us, explode(concat(
                array(CAST(struct('process', process_id, NULL, NULL) AS $THING),
                    CAST(struct('store', changed, task_id, store) AS $THING)),
                transform(coalesce(arrays_zip(identities, names), array()),
                    part -> CAST(struct('store', part.identities, task_id, part.names) AS $THING))
            )) AS thing FROM (
                SELECT $WATCH, process_id, task_id, store, stores.identity AS identities, stores.store AS names,
                    IF(kind = 'transition' AND task_id IS NOT NULL, identity, NULL) AS changed,
                    min(observed_at_us) AS from_us, max(observed_at_us) AS to_us FROM {events} GROUP BY ALL
            )
        ) WHERE thing.key IS NOT NULL GROUP BY $WATCH, thing""",
        events=events,
    )


def single_stores(events: DataFrame) -> DataFrame:
    """List the tasks that were never seen to have more than one store: `TASK`, store."""
    return _query(
        """
        SELECT $TASK, min(store) AS store FROM (
            SELECT $TASK, part.store FROM $PARTS
            UNION SELECT $TASK, store FROM {marks}
        ) WHERE store IS NOT NULL GROUP BY $TASK HAVING min(store) = max(store)""",
        events=events,
        marks=marks(events),
    )


def sizes(events: DataFrame, single: DataFrame) -> DataFrame:
    """Measure how far each copy of a store had come: `fleet.rows.Reading`.

    Segments of a windowed store are added up. A checkpoint transition covers all stores of its task together, so
    it counts only where the task has a single one (`single`: `single_stores`).
    """
    readings = whole_stores(events).unionAll(
        _query(
            """
            SELECT $TASK, part.store, pod, at_us, IF(count(*) = 1, max(part.identity), NULL) AS identity,
                max(coalesce(part.offset, only_offset)) AS offset, sum(part.puts) AS puts, sum(part.bytes) AS bytes,
                IF(count(part.entries_low) = count(*), sum(part.entries_low), NULL) AS entries_low,
                IF(count(part.entries_high) = count(*), sum(part.entries_high), NULL) AS entries_high,
                IF(count(part.unsaved_puts) = count(*), max(part.unsaved_puts), NULL) AS unsaved_puts,
                true AS segmented, false AS anchor, false AS comparable, false AS checkpoint
            FROM $PARTS WHERE part.segment IS NOT NULL GROUP BY id, $TASK, part.store, pod, at_us""",
            events=events,
        )
    )
    closed = _query(
        """
        SELECT $TASK, store, pod, at_us, identity, offset_after AS offset, puts, bytes, entries_low, entries_high,
            $UNKNOWN AS unsaved_puts, false AS segmented, true AS anchor, coalesce(comparable, false) AS comparable,
            false AS checkpoint
        FROM {marks} WHERE change = 'store-closed' AND store IS NOT NULL""",
        marks=marks(events),
    )
    written = _query(
        """
        SELECT $TASK, single.store, pod, at_us, identity, offset_after AS offset, puts, bytes,
            $UNKNOWN AS entries_low, $UNKNOWN AS entries_high, $UNKNOWN AS unsaved_puts,
            false AS segmented, true AS anchor, coalesce(comparable, false) AS comparable, true AS checkpoint
        FROM {marks} JOIN {single} AS single USING ($TASK)
        WHERE change = 'checkpoint-written' AND puts IS NOT NULL""",
        marks=marks(events),
        single=single,
    )
    return readings.unionAll(closed).unionAll(single_partition(written))


def whole_stores(events: DataFrame) -> DataFrame:
    """Take readings of stores without segments as they are: nothing is moved or sorted for them."""
    return _query(
        """
        SELECT $TASK, part.store, pod, at_us, part.identity, coalesce(part.offset, only_offset) AS offset, part.puts,
            part.bytes, part.entries_low, part.entries_high, part.unsaved_puts,
            false AS segmented, false AS anchor, false AS comparable, false AS checkpoint
        FROM $PARTS WHERE part.segment IS NULL""",
        events=events,
    )


def folded(readings: DataFrame, copies: DataFrame, asked: DataFrame) -> DataFrame:
    """Take the readings of tasks that are asked about, and fold equal ones as `fleet.sizes.folded` does.

    `readings`: those of all tasks; `copies`: of each copy of a store one row; `asked`: `TASK`, and `edges`.
    """
    return _query(
        """
        WITH own AS (
            SELECT $TASK, store, pod, at_us, struct($SAYS) AS told FROM {readings} LEFT SEMI JOIN {asked} USING ($TASK)
            UNION ALL
            SELECT $TASK, store, pod, explode(edges), NULL FROM {copies} JOIN {asked} USING ($TASK)
        )
        SELECT $TASK, store, pod, at_us, told.* FROM (
            SELECT *, lag(told) OVER copy AS before, lead(told) OVER copy AS after FROM own
            WINDOW copy AS (PARTITION BY $TASK, store, pod ORDER BY at_us, told)
        ) WHERE told IS NOT NULL AND NOT (told <=> before AND told <=> after)""",
        readings=readings,
        copies=copies,
        asked=asked,
    )


def left_out(readings: DataFrame, marks: DataFrame, asked: DataFrame) -> DataFrame:
    """Say what has to be left out of tasks with too many rows, as `fleet.sizes.left_out` does: `fleet.rows.Gap`.

    All is of tasks that are asked about: `folded` readings, marks of `fleet.holds.FREQUENT`; `asked` has `most`.
    """
    return _query(
        """
        WITH own AS (SELECT $TASK, pod, at_us FROM {readings} UNION ALL SELECT $TASK, pod, at_us FROM {marks}),
        cut AS (
            SELECT $TASK, max(at_us) AS to_us FROM (
                SELECT *, row_number() OVER (PARTITION BY $TASK ORDER BY at_us DESC) AS place FROM own
            ) JOIN {asked} USING ($TASK) WHERE place > most GROUP BY $TASK
        )
        SELECT $TASK, pod, min(at_us) AS from_us, to_us, '$TOO_MANY' AS cause, count(*) AS missing
        FROM own JOIN cut USING ($TASK) WHERE at_us <= to_us GROUP BY $TASK, pod, to_us""",
        readings=readings,
        marks=marks,
        asked=asked,
    )


def newest(rows: DataFrame, cut: DataFrame) -> DataFrame:
    """Leave out rows of tasks that are not after the end of the task's gaps (`left_out`)."""
    ends = cut.groupBy(*TASK).agg(F.max("to_us").alias("to_us"))
    return rows.join(ends, list(TASK), "left").where("to_us IS NULL OR at_us > to_us").drop("to_us")


def curve(readings: DataFrame) -> DataFrame:
    """Thin the readings out (`fleet.sizes.Point`): the last known numbers of each copy per slot.

    At one time a checkpoint's word goes before a reading's.
    """
    return _query(
        """
        SELECT $TASK, store, pod, max(at_us) AS at_us,
            max_by(offset, at) FILTER (WHERE offset IS NOT NULL) AS offset,
            max_by(puts, at) FILTER (WHERE puts IS NOT NULL) AS puts,
            max_by(bytes, at) FILTER (WHERE bytes IS NOT NULL) AS bytes,
            max(at) FILTER (WHERE offset IS NOT NULL) AS offset_us,
            max(at) FILTER (WHERE bytes IS NOT NULL) AS bytes_us, max(bytes) AS most_bytes
        FROM (
            SELECT *, at_us * 2 + CAST(checkpoint AS BIGINT) AS at, $CURVE_SLOT AS slot
            FROM {readings}
        ) GROUP BY $TASK, store, pod, slot""",
        readings=readings,
    )


def drawn(curves: DataFrame, asked: DataFrame) -> DataFrame:
    """Draw curves, but for tasks that are asked about: rows of `TIMELINE`."""
    return _query(
        """
        SELECT $TASK, pod, 'size' AS lane, at_us AS from_us, $UNKNOWN AS to_us, store, CAST(NULL AS STRING) AS identity,
            offset, puts, bytes, concat(puts, ' puts at offset ', offset) AS detail
        FROM {curves} LEFT ANTI JOIN {asked} USING ($TASK) WHERE task_id IS NOT NULL""",
        curves=curves,
        asked=asked,
    )


def saved(changes: DataFrame) -> DataFrame:
    """Thin the checkpoints out (`fleet.rows.Saved`): the last one of each copy of a task per slot."""
    return _query(
        """
        SELECT $TASK, pod, max(at_us) AS at_us, max_by(offset_after, at_us) AS offset FROM {changes}
        WHERE change = 'checkpoint-written' GROUP BY $TASK, pod, $CURVE_SLOT""",
        changes=changes,
    )


def latest(curves: DataFrame) -> DataFrame:
    """Say what is known last of each copy: `fleet.rows.Latest`."""
    return _query(
        """
        SELECT $TASK, store, pod, max_by(offset, offset_us) AS offset, max_by(bytes, bytes_us) AS bytes,
            max(most_bytes) AS most_bytes, max(offset_us) DIV 2 AS offset_at_us
        FROM {curves} GROUP BY $TASK, store, pod""",
        curves=curves,
    )


def settled_copies(readings: DataFrame) -> DataFrame:
    """Keep readings whose offset and files are of the same moment: `fleet.rows.Copy`, see `fleet.sizes`."""
    return _query(
        """
        WITH own AS (SELECT * FROM {readings} WHERE task_id <> 'global'),
        anchors AS (
            SELECT $PLACE, identity AS anchored, max(comparable) AS comparable FROM own WHERE anchor
            GROUP BY $PLACE, identity
        ),
        counted AS (
            SELECT $COPY, puts, min(at_us) AS first_us, max(at_us) AS last_us FROM own
            WHERE offset > 0 AND entries_low IS NOT NULL AND entries_high IS NOT NULL AND NOT segmented
            GROUP BY $COPY, puts
        ),
        fixed AS (
            SELECT $COPY, max(comparable) AS comparable, min(first_us) AS first_us, max(last_us) AS last_us
            FROM counted JOIN anchors USING ($PLACE)
            WHERE coalesce(anchored = identity, true) GROUP BY $COPY
        ),
        seen AS (
            SELECT $STORE, min(at_us) AS seen_from_us, max(at_us) AS seen_to_us FROM own
            WHERE identity IS NOT NULL GROUP BY $STORE
        )
        SELECT * FROM fixed LEFT JOIN seen USING ($STORE)""",
        readings=readings,
    )
