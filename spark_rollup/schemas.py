"""Spark types: the event's computed from `agent.contract.fields`, and those of the output tables."""

from __future__ import annotations

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

CORRUPT = "_corrupt_record"

ENVELOPE = T.StructType(
    [
        T.StructField("id", T.StringType()),
        T.StructField("data", EVENT),
        T.StructField(CORRUPT, T.StringType()),
    ]
)
"""One CloudEvents line, as far as the rollup reads it."""

EVENT_ROW = T.StructType([T.StructField("id", T.StringType()), *EVENT.fields])
"""One loaded event."""

_TEXT, _LONG = T.StringType(), T.LongType()


def _of_event(*names: str) -> dict[str, T.DataType]:
    """Take columns over from the contract, with their types."""
    return {name: EVENT_ROW[name].dataType for name in names}


def _columns(**kinds: T.DataType) -> T.StructType:
    return T.StructType([T.StructField(name, kind) for name, kind in kinds.items()])


LOCAL_INCIDENT = _columns(incident_id=_TEXT, relation=_TEXT, mechanism=_TEXT, since_us=_LONG)
"""An agent's incident that a finding of the fleet is about; `judging.lineage` has the relations."""

FINDING = _columns(
    id=_TEXT,
    **_of_event("detector", "level", "severity", "confidence", "status"),
    **_of_event("namespace", "application_id", "task_id", "store", "pod"),
    opened_at=_TEXT,
    **_of_event("upstream", "affected", "missing_facts", "summary", "evidence", "next_action"),
    pods=T.ArrayType(_TEXT),
    confirms=T.ArrayType(_TEXT),
    refutes=T.ArrayType(_TEXT),
    explains=T.ArrayType(_TEXT),
    reported_by=_TEXT,
    resolved_at=_TEXT,
    **_of_event("mechanism", "incident_id"),
    lineage=T.ArrayType(_TEXT),
    local_incidents=T.ArrayType(LOCAL_INCIDENT),
)
"""Table `findings` and one line of `findings.jsonl`: one row per finding of a rule, or of an agent alone.

`confirms`, `refutes` and `explains` hold the `finding_id`s of agents' findings. `reported_by` is `fleet` for a rule,
and `agent` for an agent's open critical or warning that no rule settles (`alone`): then `detector` is the agent's.
`incident_id` is known once all findings are (`judging.incidents`).
"""

EVIDENCE = _columns(role=_TEXT, id=_TEXT, **_of_event("detector", "task_id", "store", "pod"))

INCIDENT = _columns(
    id=_TEXT,
    absorbed=T.ArrayType(_TEXT),
    title=_TEXT,
    **_of_event("mechanism", "detector", "severity", "confidence", "status"),
    cluster=_TEXT,
    **_of_event("namespace", "application_id"),
    pods=T.ArrayType(_TEXT),
    tasks=T.ArrayType(_TEXT),
    stores=T.ArrayType(_TEXT),
    since=_TEXT,
    ended=_TEXT,
    **_of_event("upstream", "affected"),
    sentence=_TEXT,
    next_action=_TEXT,
    findings=T.ArrayType(EVIDENCE),
)
"""Table `incidents` and one line of `incidents.jsonl`: one row per incident (`judging.incidents`), the worst first."""

TIMELINE = _columns(
    namespace=_TEXT,
    application_id=_TEXT,
    task_id=_TEXT,
    pod=_TEXT,
    lane=_TEXT,
    from_us=_LONG,
    to_us=_LONG,
    store=_TEXT,
    identity=_TEXT,
    offset=_LONG,
    puts=_LONG,
    bytes=_LONG,
    detail=_TEXT,
)
"""Table `timelines`: one row per interval (half-open) or mark (`to_us` null) of a task on a pod.

Sizes and checkpoints of tasks that no rule asks about are thinned out: the last of each per ten minutes.
"""

HEARD = _columns(
    namespace=_TEXT,
    pod=_TEXT,
    pod_uid=_TEXT,
    boot_id=_TEXT,
    node=_TEXT,
    agent_version=_TEXT,
    slot=_LONG,
    events=_LONG,
    first_us=_LONG,
    last_us=_LONG,
    stop_us=_LONG,
    first=_LONG,
    last=_LONG,
    at_first_us=_LONG,
    at_last_us=_LONG,
    level_last=_LONG,
    level_us=_LONG,
    criticals=_LONG,
    warnings=_LONG,
    tasks=_LONG,
)
"""What a boot of an agent said without a hole or a pause, counted (`fleet.beats.Beat`), as a snapshot keeps it."""

COVERAGE = _columns(
    namespace=_TEXT,
    pod=_TEXT,
    first_seen=_TEXT,
    last_seen=_TEXT,
    boots=_LONG,
    events=_LONG,
    lost_events=_LONG,
    missed_criticals=_LONG,
    missed_warnings=_LONG,
    span_seconds=T.DoubleType(),
    unknown_seconds=T.DoubleType(),
    watched_ratio=T.DoubleType(),
)
"""Table `coverage`: one row per pod: how much of its time was really watched, and how many findings that its agent
counts as open are not in the input."""

PODS = _columns(
    namespace=_TEXT,
    pod=_TEXT,
    pod_uid=_TEXT,
    node=_TEXT,
    agent_version=_TEXT,
    agent_state=_TEXT,
    last_seen=_TEXT,
    applications=T.ArrayType(_TEXT),
    tasks_held=_LONG,
)
"""Table `pods`: one row per pod, as last seen."""

CHURN = _columns(
    namespace=_TEXT,
    application_id=_TEXT,
    task_id=_TEXT,
    hour_us=_LONG,
    moves=_LONG,
    wipes=_LONG,
    restores=_LONG,
    restored_bytes=_LONG,
)
"""Table `churn`: one row per task and hour in which something moved; `hour_us` is the hour's start."""

RESTARTS = _columns(
    namespace=_TEXT,
    application_id=_TEXT,
    task_id=_TEXT,
    pod=_TEXT,
    answer=_TEXT,
    kinds=T.ArrayType(_TEXT),
    follow=T.ArrayType(_TEXT),
    first_action=_TEXT,
    healthy_elsewhere=T.ArrayType(_TEXT),
    ill_elsewhere=T.ArrayType(_TEXT),
    restore_bytes=_LONG,
    unclean_stop=_TEXT,
    doubt=_TEXT,
)
"""Table `restarts`: one row per copy of a task that is or was just held, or is damaged: may its pod be restarted?

Without a task: a finding about all of an application on that pod. `kinds` holds all answers, `answer` the worst.
"""

KNOWN_PODS = _columns(namespace=_TEXT, pod=_TEXT, doubt=_TEXT, gone=T.BooleanType())
"""One row per pod that was heard of: what puts it in doubt (null: nothing), and whether its agent announced its end."""

VERDICT = _columns(
    **_of_event("namespace", "application_id", "task_id", "store", "pod"),
    topic=_TEXT,
    partition=_LONG,
    offset=_LONG,
    state=_TEXT,
    made_at=_TEXT,
    entries=_LONG,
    verdict=_TEXT,
    why=_TEXT,
    buckets=_LONG,
    equal=_LONG,
    differing=_LONG,
    unknown=_LONG,
    missing=_LONG,
    extra=_LONG,
    different=_LONG,
)
"""Table `verdicts` of `verify` and one line of `verdicts.jsonl`: one row per copy of a store.

`missing`, `extra` and `different` count keys in the buckets that differ: there are so many at least.
"""

QUARANTINE = _columns(file=_TEXT, reason=_TEXT, detail=_TEXT, line=_TEXT)
"""Table `quarantine`: one row per line (or file) that was not used, and why."""

LOCAL_FINDING = _columns(
    **_of_event("finding_id", "detector", "severity", "confidence", "status"),
    **_of_event("namespace", "application_id", "task_id", "store", "pod", "opened_at_us", "summary"),
)
"""What one agent said last about one of its findings, as the report shows it."""
