"""The field table: every field of every record, once.

The codec, `schema.json`, `docs/contract.md` and the rollup's StructType are computed from this table.
Additive inside a major version; a name is never reused.
"""

from __future__ import annotations

from agent.contract.buckets import DIGESTS
from agent.contract.events import Affected, Change, Confidence, Kind, Level, Severity, Source, Status
from agent.contract.field import Field, FieldType
from agent.contract.units import Remedy

_S, _L, _B = FieldType.STRING, FieldType.LONG, FieldType.BOOLEAN
_TRANSITION, _FINDING, _SUMMARY = (Kind.TRANSITION,), (Kind.FINDING,), (Kind.SUMMARY,)
_HEARTBEAT = (Kind.HEARTBEAT,)

OFFSETS = (
    Field("topic", _S, "Changelog (or source) topic of the entry.", required=True),
    Field("partition", _L, "Partition of the topic.", required=True),
    Field("offset", _L, "Offset as written; -4 = unknown but registered.", required=True),
)

EVIDENCE = (
    Field("at", _S, "When it was observed or happened, RFC 3339 UTC.", required=True),
    Field("what", _S, "What was seen, one sentence.", required=True),
    Field("where", _S, "Path relative to the state directory, or the source.", required=True),
)

# fmt: off
STORES = (
    Field("store", _S, "Store name.", required=True),
    Field("segment", _S, "Segment directory of a windowed store; null for key-value stores."),
    Field("identity", _S, "Content of RocksDB's IDENTITY, or `unnamed-...` without one: the store's incarnation."),
    Field("held", _B, "Whether the store's LOCK is held; null = unknown."),
    Field("puts", _L, "Highest sequence number ever flushed in this incarnation.", unit="records"),
    Field("bytes", _L, "Size of the live SST files.", unit="bytes"),
    Field("files", _L, "Number of live SST files."),
    Field("entries_low", _L, "Lower bound of live entries; null = unknown."),
    Field("entries_high", _L, "Upper bound of live entries; null = unknown."),
    Field("offset", _L, "Changelog offset the store itself or its checkpoint entry holds."),
    Field("status", _S, "4.3+: 'open' or 'closed' as the store says; null = no such marker."),
    Field("unsaved_puts", _L,
          "Puts that 10,000 records make at most in this kind of store; null = no limit is known.", since="1.3",
          unit="records"),
)
# fmt: on

BLIND = (
    Field("from_us", _L, "Start of the blind interval.", required=True, unit="microseconds"),
    Field("to_us", _L, "End; null while it lasts.", unit="microseconds"),
    Field("cause", _S, "Cause slug, for example `queue-overflow`.", required=True),
    Field("application_id", _S, "Application concerned; null = all."),
    Field("task_id", _S, "Task concerned; null = all of the application."),
)

# fmt: off
SETTINGS = (
    Field("key", _S, "Setting name.", required=True),
    Field("value", _S, "Effective value; null = unknown."),
    Field("origin", _S,
          "Where it came from: flag, file, environment, properties (the application's file), default (Kafka's), unset.",
          required=True),
)

FIELDS: tuple[Field, ...] = (
    # identity: dedupe and proof of completeness
    Field("schema_version", _S, "Contract version, `major.minor`.", required=True),
    Field("kind", _S, "Record kind.", required=True, values=tuple(k.value for k in Kind)),
    Field("agent_version", _S, "Version of the agent that wrote it.", required=True),
    Field("pod_uid", _S, "Pod uid (or a stable stand-in).", required=True),
    Field("boot_id", _S, "Random id of one start of the agent.", required=True),
    Field("sequence", _L, "Counts from 1 within a boot, without holes.", required=True),
    # place: correlation keys
    Field("cluster", _S, "Name of the Kubernetes cluster or region; null = there is one only.", since="1.1"),
    Field("namespace", _S, "Kubernetes namespace; empty outside Kubernetes.", required=True),
    Field("pod", _S, "Pod (or host) name.", required=True),
    Field("node", _S, "Node name; empty if unknown.", required=True),
    Field("application_id", _S, "Kafka Streams application.id."),
    Field("process_id", _S, "processId of `kafka-streams-process-metadata`."),
    Field("task_id", _S, "Task id, `N_M`, `__NAME__/N_M` or `global`."),
    Field("store", _S, "Store name."),
    Field("segment", _S, "Segment directory of a windowed store."),
    # time
    Field("observed_at_us", _L, "When the agent saw it, UTC.", required=True, unit="microseconds"),
    Field("source", _S, "How it was seen.", (*_TRANSITION, *_SUMMARY), values=tuple(s.value for s in Source)),
    # transition
    Field("change", _S, "What changed.", _TRANSITION, required=True, values=tuple(c.value for c in Change)),
    Field("detail", _S, "One sentence for people.", _TRANSITION),
    Field("occurred_at_us", _L, "When it happened, taken from the file's own timestamp, if it has one.", _TRANSITION,
          unit="microseconds"),
    Field("task_incarnation", _L, "Number of the task directory's life, from 1.", (*_TRANSITION, *_SUMMARY)),
    Field("store_incarnation", _L, "Number of the store's life in this task, from 1.", _TRANSITION),
    Field("identity", _S, "RocksDB IDENTITY of the store concerned.", (*_TRANSITION, *_FINDING)),
    Field("identity_before", _S, "IDENTITY of the previous incarnation.", _TRANSITION),
    Field("offset_before", _L, "Changelog offset before (task's only store, or the largest).", _TRANSITION),
    Field("offset_after", _L, "Changelog offset after.", _TRANSITION),
    Field("puts", _L, "Highest flushed sequence number after the change.", _TRANSITION, unit="records"),
    Field("puts_before", _L, "Highest flushed sequence number before it.", _TRANSITION, unit="records"),
    Field("bytes", _L, "Live SST bytes after the change.", (*_TRANSITION, *_SUMMARY), unit="bytes"),
    Field("entries_low", _L, "Of a closed store: lower bound of live entries.", _TRANSITION, since="1.2"),
    Field("entries_high", _L, "Of a closed store: upper bound of live entries.", _TRANSITION, since="1.2"),
    Field(
        "comparable",
        _B,
        "The store holds what its offset says and nothing later, and every close since it was made was in order; null ="
        " not known.",
        _TRANSITION,
        since="1.2",
    ),
    Field("shape", _S, "Shape of a deletion.", _TRANSITION,
          values=("owner-walk", "cleaner-walk", "vanished-unseen", "unknown")),
    Field("held", _B, "Whether the task's lock (or a store's LOCK) is held; null = unknown.",
          (*_TRANSITION, *_SUMMARY)),
    # finding
    Field("finding_id", _S, "Stable id of the finding.", _FINDING, required=True),
    Field("detector", _S, "Detector or rule id.", _FINDING, required=True),
    Field("level", _S, "Kind of statement.", _FINDING, required=True, values=tuple(x.value for x in Level)),
    Field("severity", _S, "How severe.", _FINDING, required=True, values=tuple(x.value for x in Severity)),
    Field("confidence", _S, "How sure.", _FINDING, required=True, values=tuple(x.value for x in Confidence)),
    Field("status", _S, "open or resolved.", _FINDING, required=True, values=tuple(x.value for x in Status)),
    Field("opened_at_us", _L, "When the finding opened.", _FINDING, required=True, unit="microseconds"),
    Field("resolved_at_us", _L, "When it was resolved.", _FINDING, unit="microseconds"),
    Field("upstream", FieldType.STRINGS, "Upstream issue keys.", _FINDING, required=True),
    Field("affected", _S, "Is this release affected?", _FINDING, required=True,
          values=tuple(x.value for x in Affected)),
    Field("missing_facts", FieldType.STRINGS, "Settings that would decide more.", _FINDING, required=True),
    Field("summary", _S, "One sentence: what is wrong with which task.", _FINDING, required=True),
    Field("next_action", _S, "What is safe to do next.", _FINDING, required=True),
    Field("evidence", FieldType.STRUCTS, "Ordered chain of observations.", _FINDING, required=True, items=EVIDENCE),
    Field("mechanism", _S, "What goes wrong; several detectors can see one mechanism.", _FINDING, since="1.2"),
    Field("incident_id", _S, "Incident that the finding is evidence of.", _FINDING, since="1.2"),
    Field("process_ended_at_us", _L,
          "When the application's last process had ended before the finding opened; null = none was seen.", _FINDING,
          since="1.2", unit="microseconds"),
    Field("lasting", _B, "Whether it comes from release or settings and stays as long as they do.", _FINDING,
          since="1.2"),
    Field("remedy", _S, "What the next step does with the task's directory.", _FINDING, since="1.4",
          values=tuple(x.value for x in Remedy)),
    Field("said_us", _L, "Of a repetition: when the agent first said this; null = it is news.", _FINDING, since="1.3",
          unit="microseconds"),
    # summary
    Field("checkpoint_written_at_us", _L, "mtime of the checkpoint.", _SUMMARY, unit="microseconds"),
    Field("stores", FieldType.STRUCTS, "One row per store or segment.", _SUMMARY, items=STORES),
    Field("offsets", FieldType.STRUCTS, "Checkpoint entries.", (*_TRANSITION, *_SUMMARY), items=OFFSETS),
    # heartbeat
    Field("blind", FieldType.STRUCTS, "Blind intervals since the last heartbeat, open ones included.", _HEARTBEAT,
          items=BLIND),
    Field("applications", FieldType.STRINGS, "Applications seen.", _HEARTBEAT),
    Field("tasks", _L, "Number of task directories watched.", _HEARTBEAT),
    Field("open_criticals", _L, "Number of open critical findings; null = not known.", _HEARTBEAT, since="1.3"),
    Field("open_warnings", _L, "Number of open warnings; null = not known.", _HEARTBEAT, since="1.3"),
    Field("open_ids", FieldType.STRINGS,
          "Ids of open criticals, then of warnings; of each the oldest first; 100 at most.", _HEARTBEAT, since="1.3"),
    # configuration
    Field("settings", FieldType.STRUCTS, "Effective settings with their origin.", (Kind.CONFIGURATION,),
          items=SETTINGS),
    Field("release_low", _S, "Oldest Kafka Streams release the evidence allows.", (Kind.CONFIGURATION,)),
    Field("release_high", _S, "Newest Kafka Streams release the evidence allows.", (Kind.CONFIGURATION,)),
    # lifecycle
    Field("phase", _S, "started or stopping.", (Kind.LIFECYCLE,), required=True, values=("started", "stopping")),
    Field("reason", _S, "Why.", (Kind.LIFECYCLE, Kind.DROP)),
    # drop
    Field("dropped_kind", _S, "Kind of the dropped records.", (Kind.DROP,), required=True),
    Field("dropped_count", _L, "How many were dropped.", (Kind.DROP,), required=True),
    Field("first_sequence", _L, "First dropped sequence.", (Kind.DROP,), required=True),
    Field("last_sequence", _L, "Last dropped sequence.", (Kind.DROP,), required=True),
    # digest
    Field("digests", FieldType.STRUCTS, "The digest of the store: one object.", (Kind.DIGEST,), since="1.2",
          items=DIGESTS),
)
# fmt: on

BY_NAME = {row.name: row for row in FIELDS}


def fields_of(kind: Kind) -> tuple[Field, ...]:
    """List the fields that a record of this kind may carry, in table order."""
    return tuple(row for row in FIELDS if not row.kinds or kind in row.kinds)
