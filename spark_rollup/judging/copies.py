"""How far copies of stores had come, thinned by Spark, in SQL: the rows that `fleet.sizes` makes of a small input.

Times, `events` and `slots` are those of `facts`. `readings` are namespace, application and `fleet.rows.Reading`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rollup.columns import TASK
from spark_rollup.facts import query


def single_stores(slots: DataFrame) -> DataFrame:
    """List the tasks that were never seen to have more than one store: `TASK`, store."""
    return query(
        """
        SELECT $TASK, min(store) AS store FROM (
            SELECT DISTINCT $TASK, store FROM {slots}
            WHERE kind IN ('summary', 'transition') AND task_id IS NOT NULL AND store IS NOT NULL
        ) GROUP BY $TASK HAVING min(store) = max(store)""",
        slots=slots,
    )


def windowed(slots: DataFrame) -> DataFrame:
    """List the tasks with windowed stores."""
    return query("SELECT DISTINCT $TASK FROM {slots} WHERE segmented", slots=slots)


def segments(events: DataFrame) -> DataFrame:
    """Add up what a summary says of the segments of a windowed store: readings."""
    return query(
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


def anchors(marks: DataFrame, single: DataFrame) -> DataFrame:
    """Take readings of closed stores and of checkpoints.

    A checkpoint transition covers all stores of its task together, so it counts only where the task has a single one
    (`single`: `single_stores`).
    """
    return query(
        """
        SELECT $TASK, IF(checkpoint, single.store, own.store) AS store, pod, at_us, identity, offset_after AS offset,
            puts, bytes, IF(checkpoint, NULL, entries_low) AS entries_low,
            IF(checkpoint, NULL, entries_high) AS entries_high, $UNKNOWN AS unsaved_puts, false AS segmented,
            true AS anchor, coalesce(comparable, false) AS comparable, checkpoint
        FROM (SELECT *, change = 'checkpoint-written' AS checkpoint FROM {marks}) AS own
        LEFT JOIN {single} AS single USING ($TASK)
        WHERE change = 'store-closed' AND own.store IS NOT NULL
            OR checkpoint AND puts IS NOT NULL AND single.store IS NOT NULL""",
        marks=marks,
        single=single,
    )


def whole_stores(events: DataFrame) -> DataFrame:
    """Take readings of stores without segments as they are: nothing is moved or sorted for them."""
    return query(
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
    return query(
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
    return query(
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


def curve(slots: DataFrame, readings: DataFrame) -> DataFrame:
    """Thin readings out (`fleet.sizes.Point`): the last known numbers of each copy per slot.

    `slots` have those of whole stores, `readings` are the others. At one time a checkpoint's word goes before a
    reading's.
    """
    return query(
        """
        SELECT $TASK, store, pod, max(at_us) AS at_us, max_by(offset, offset_us) AS offset,
            max_by(puts, puts_us) AS puts, max_by(bytes, bytes_us) AS bytes, max(offset_us) AS offset_us,
            max(bytes_us) AS bytes_us, max(coalesce(most_bytes, bytes)) AS most_bytes
        FROM (
            SELECT $TASK, store, pod, slot, to_us AS at_us, offset, puts, bytes, offset_us * 2 AS offset_us,
                puts_us * 2 AS puts_us, bytes_us * 2 AS bytes_us, most_bytes
            FROM {slots} WHERE $WHOLE
            UNION ALL
            SELECT $TASK, store, pod, $CURVE_SLOT, at_us, offset, puts, bytes, IF(offset IS NULL, NULL, at),
                IF(puts IS NULL, NULL, at), IF(bytes IS NULL, NULL, at), NULL
            FROM (SELECT *, at_us * 2 + CAST(checkpoint AS BIGINT) AS at FROM {readings})
        ) GROUP BY $TASK, store, pod, slot""",
        slots=slots,
        readings=readings,
    )


def drawn(curves: DataFrame, asked: DataFrame) -> DataFrame:
    """Draw curves, but for tasks that are asked about: rows of `TIMELINE`."""
    return query(
        """
        SELECT $TASK, pod, 'size' AS lane, at_us AS from_us, $UNKNOWN AS to_us, store, CAST(NULL AS STRING) AS identity,
            offset, puts, bytes, concat(puts, ' puts at offset ', offset) AS detail
        FROM {curves} LEFT ANTI JOIN {asked} USING ($TASK) WHERE task_id IS NOT NULL""",
        curves=curves,
        asked=asked,
    )


def saved(changes: DataFrame) -> DataFrame:
    """Thin the checkpoints out (`fleet.rows.Saved`): the last one of each copy of a task per slot."""
    return query(
        """
        SELECT $TASK, pod, max(at_us) AS at_us, max_by(offset_after, at_us) AS offset FROM {changes}
        WHERE change = 'checkpoint-written' GROUP BY $TASK, pod, $CURVE_SLOT""",
        changes=changes,
    )


def latest(curves: DataFrame) -> DataFrame:
    """Say what is known last of each copy: `fleet.rows.Latest`."""
    return query(
        """
        SELECT $TASK, store, pod, max_by(offset, offset_us) AS offset, max_by(bytes, bytes_us) AS bytes,
            max(most_bytes) AS most_bytes, max(offset_us) DIV 2 AS offset_at_us
        FROM {curves} GROUP BY $TASK, store, pod""",
        curves=curves,
    )


def settled_copies(
    readings: DataFrame, anchors: DataFrame, slots: DataFrame, segments: DataFrame
) -> DataFrame:
    """Keep readings whose offset and files are of the same moment: `fleet.rows.Copy`, see `fleet.sizes`.

    `readings`: those of whole stores; `anchors`: those of stores that several pods have.
    """
    return query(
        """
        WITH own AS (SELECT * FROM {anchors} WHERE task_id <> 'global'),
        anchors AS (
            SELECT $PLACE, identity AS anchored, max(comparable) AS comparable FROM own GROUP BY $PLACE, identity
        ),
        counted AS (
            SELECT $COPY, puts, min(at_us) AS first_us, max(at_us) AS last_us
            FROM (SELECT * FROM {readings} UNION ALL SELECT * FROM {anchors}) LEFT SEMI JOIN {anchors} USING ($PLACE)
            WHERE offset > 0 AND entries_low IS NOT NULL AND entries_high IS NOT NULL GROUP BY $COPY, puts
        ),
        fixed AS (
            SELECT $COPY, max(comparable) AS comparable, min(first_us) AS first_us, max(last_us) AS last_us
            FROM counted JOIN anchors USING ($PLACE)
            WHERE coalesce(anchored = identity, true) GROUP BY $COPY
        ),
        seen AS (
            SELECT $STORE, min(from_us) AS seen_from_us, max(to_us) AS seen_to_us FROM (
                SELECT $STORE, from_us, to_us FROM {slots} WHERE $WHOLE
                UNION ALL SELECT $STORE, at_us, at_us FROM {segments}
                UNION ALL SELECT $STORE, at_us, at_us FROM own
            ) WHERE identity IS NOT NULL GROUP BY $STORE
        )
        SELECT * FROM fixed LEFT JOIN seen USING ($STORE)""",
        readings=readings,
        anchors=anchors,
        slots=slots,
        segments=segments,
    )
