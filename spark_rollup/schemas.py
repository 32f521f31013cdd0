"""Spark types: the event's computed from `agent.contract.fields`, and those of the output tables."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import types as T

from agent.contract.field import Field, FieldType
from agent.contract.fields import FIELDS

_SCALARS: dict[FieldType, T.DataType] = {
    FieldType.STRING: T.StringType(),
    FieldType.LONG: T.LongType(),
    FieldType.DOUBLE: T.DoubleType(),
    FieldType.BOOLEAN: T.BooleanType(),
    FieldType.STRINGS: T.ArrayType(T.StringType()),
}


def struct_of(fields: tuple[Field, ...]) -> T.StructType:
    """Translate rows of the field table; every column is nullable, the loader checks what is required."""
    return T.StructType([T.StructField(row.name, _type_of(row)) for row in fields])


def _type_of(row: Field) -> T.DataType:
    if row.type is FieldType.STRUCTS:
        return T.ArrayType(struct_of(row.items))
    return _SCALARS[row.type]


EVENT = struct_of(FIELDS)
"""The `data` object of one event line."""

_TEXT = T.StringType()

EVENT_ROW = T.StructType([T.StructField("id", _TEXT), *EVENT.fields])
"""One loaded event."""

_KINDS: Mapping[str, T.DataType] = {
    "": _TEXT, "long": T.LongType(), "double": T.DoubleType(), "bool": T.BooleanType(), "list": T.ArrayType(_TEXT),
}  # fmt: skip


def _columns(columns: str, **kinds: T.DataType) -> T.StructType:
    """Read `name:kind` of every column; without a kind it is text, or what `kinds` says."""
    found = T.StructType()
    for name, _, kind in (one.partition(":") for one in columns.split()):
        found.add(name, kinds.get(name, _KINDS[kind]))
    return found


CORRUPT = "_corrupt_record"

ENVELOPE = _columns(f"id data {CORRUPT}", data=EVENT)
"""One CloudEvents line, as far as the rollup reads it."""

LOCAL_INCIDENT = _columns("incident_id relation mechanism since_us:long")
"""An agent's incident that a finding of the fleet is about; `agent.contract.grouping` has the relations."""

FINDING = _columns(
    """
    id detector level severity confidence status namespace application_id task_id store pod opened_at upstream:list
    affected missing_facts:list summary evidence next_action pods:list confirms:list refutes:list explains:list
    reported_by resolved_at mechanism incident_id lineage:list local_incidents identity remedy seen_at
    """,
    evidence=EVENT_ROW["evidence"].dataType,
    local_incidents=T.ArrayType(LOCAL_INCIDENT),
)
"""Table `findings` and one line of `findings.jsonl`: one row per finding of a rule, or of an agent alone.

`confirms`, `refutes` and `explains` hold the `finding_id`s of agents' findings. `reported_by` is `fleet` for a rule,
and `agent` for an agent's open critical or warning that no rule settles (`alone`): then `detector` is the agent's.
`incident_id` is known once all findings are (`agent.contract.audited`).
"""

EVIDENCE = _columns("role id detector task_id store pod")

INCIDENT = _columns(
    """
    id absorbed:list title mechanism detector severity confidence status cluster namespace application_id pods:list
    tasks:list stores:list since ended upstream:list affected sentence next_action findings
    """,
    findings=T.ArrayType(EVIDENCE),
)
"""Table `incidents` and one line of `incidents.jsonl`: one row per incident, the worst first."""

TIMELINE = _columns(
    """
    namespace application_id task_id pod lane from_us:long to_us:long store identity offset:long puts:long bytes:long
    detail
    """
)
"""Table `timelines`: one row per interval (half-open) or mark (`to_us` null) of a task on a pod.

Sizes and checkpoints of tasks that no rule asks about are thinned out: the last of each per ten minutes.
Of the others, equal sizes in a row are folded: the first and the last remain, and those next to a change of holder.
"""

HEARD = _columns(
    """
    namespace pod pod_uid boot_id node agent_version slot:long events:long first_us:long last_us:long stop_us:long
    first:long last:long at_first_us:long at_last_us:long level_last:long level_us:long criticals:long warnings:long
    tasks:long
    """
)
"""What a boot of an agent said without a hole or a pause, counted (`fleet.beats.Beat`), as a snapshot keeps it."""

COVERAGE = _columns(
    """
    namespace pod first_seen last_seen boots:long events:long lost_events:long missed_criticals:long
    missed_warnings:long span_seconds:double unknown_seconds:double watched_ratio:double
    """
)
"""Table `coverage`: one row per pod: how much of its time was really watched, and how many findings that its agent
counts as open are not in the input."""

PODS = _columns(
    "namespace pod pod_uid node agent_version agent_state last_seen applications:list tasks_held:long"
)
"""Table `pods`: one row per pod, as last seen."""

CHURN = _columns(
    "namespace application_id task_id hour_us:long moves:long wipes:long restores:long restored_bytes:long"
)
"""Table `churn`: one row per task and hour in which something moved; `hour_us` is the hour's start."""

RESTARTS = _columns(
    """
    namespace application_id task_id pod answer kinds:list follow:list first_action healthy_elsewhere:list
    ill_elsewhere:list restore_bytes:long unclean_stop doubt
    """
)
"""Table `restarts`: one row per copy of a task that is or was just held, or is damaged: may its pod be restarted?

Without a task: a finding about all of an application on that pod. `kinds` holds all answers, `answer` the worst.
"""

VERDICT = _columns(
    """
    namespace application_id task_id store pod topic partition:long offset:long state made_at entries:long verdict why
    buckets:long equal:long differing:long unknown:long missing:long extra:long different:long
    """
)
"""Table `verdicts` of `verify` and one line of `verdicts.jsonl`: one row per copy of a store.

`missing`, `extra` and `different` count keys in the buckets that differ: there are so many at least.
"""

QUARANTINE = _columns("file reason detail line")
"""Table `quarantine`: one row per line (or file) that was not used, and why."""
