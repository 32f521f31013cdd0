"""Render `docs/contract.md` from the field table."""

from __future__ import annotations

from agent.contract.buckets import DATABASES, DIGESTS
from agent.contract.codec import DATASCHEMA
from agent.contract.events import SCHEMA_MAJOR, Kind
from agent.contract.field import Field, FieldType
from agent.contract.fields import BLIND, EVIDENCE, FIELDS, OFFSETS, SETTINGS, STORES

_HEAD = f"""\
# The event contract

<!-- generated from `agent/contract/fields.py`; change it there -->

The agent writes one JSON object per line: a CloudEvents 1.0 envelope (`specversion`, `id`, `source`, `type`,
`subject`, `time`, `datacontenttype`, `dataschema`) around `data`, whose fields are listed here. `type` is
`io.statewarden.<kind>.v{SCHEMA_MAJOR}`, `dataschema` is `{DATASCHEMA}`; the JSON Schema is
`agent/contract/schema.json`.

Rules for readers: delivery is at least once, so drop repeated `id`s. `sequence` counts from 1 within one `boot_id`; a
hole means lost events. Ignore unknown fields. Set aside records of another major version
([how the contract changes](#how-the-contract-changes)). A field that is not required may be null or absent; both mean
"not known". A field without a `since` is there from 1.0 on.
"""

CLOUDEVENTS = (
    ("specversion", "`1.0`", "`ce_specversion`"),
    ("id", "hash of pod uid, boot id and sequence: the same event sent twice has the same id", "`ce_id`"),
    ("source", "`/statewarden/<namespace>/<pod>`", "`ce_source`"),
    ("type", f"`io.statewarden.<kind>.v{SCHEMA_MAJOR}`", "`ce_type`"),
    ("subject", "`<application>/<task>/<store>`, as far as they are known; absent without", "`ce_subject`"),
    ("time", "`observed_at_us` as RFC 3339, UTC", "`ce_time`"),
    ("datacontenttype", "`application/json`", "`content-type`"),
    ("dataschema", f"`{DATASCHEMA}`", "`ce_dataschema`"),
)
"""Attribute of the envelope, what it holds, Kafka header in binary mode."""

OPENTELEMETRY = (
    ("Timestamp", "`occurred_at_us` if present, else `observed_at_us`, times 1,000"),
    ("ObservedTimestamp", "`observed_at_us` times 1,000"),
    (
        "SeverityNumber, SeverityText",
        "of a finding: info 9 `INFO`, warning 13 `WARN`, critical 18 `ERROR2`; others 9",
    ),
    ("Body", "`summary` of a finding, `detail` of a transition, else empty"),
    ("EventName", "`type`"),
    ("TraceId, SpanId, TraceFlags", "not set: nothing here belongs to a request"),
    ("Resource `service.name`", "`statewarden`"),
    ("Resource `service.version`", "`agent_version`"),
    ("Resource `service.instance.id`", "`boot_id`"),
    ("Resource `k8s.namespace.name`, `k8s.pod.name`, `k8s.node.name`", "`namespace`, `pod`, `node`"),
    ("Resource `k8s.pod.uid`", "`pod_uid`"),
    ("Resource `k8s.cluster.name`", "`cluster`, if present"),
    ("InstrumentationScope name, version", "`io.statewarden`, `schema_version`"),
    ("Attribute `cloudevents.event_id` and `_source`, `_spec_version`, `_subject`, `_type`", "the envelope"),
    ("Attribute `statewarden.<field>`", "every other field of `data`, lists as arrays of maps"),
)
"""Field of an OpenTelemetry log record, where its value comes from."""

_DELIVERY = """\
## How events travel

- **Files and objects**: `<pod uid>/<boot>-<first>-<last>.jsonl.gz`, one event per line, gzip. `<first>` and `<last>`
  are sequences. A name that ends with `-k<n>` is a segment of which only n events are left (see `drop`). The same
  name always has the same lines.
- **Kafka**, one message per event, key `<application>/<task>` (without a task: the application, or the pod's uid).
  Structured mode: the value is the event, header `content-type: application/cloudevents+json`. Binary mode: the value
  is `data`, attributes are headers as below.
- **HTTP**: `application/cloudevents-batch+json`, at most 500 events and about 512 KiB per request.

| attribute | holds | Kafka header in binary mode |
|---|---|---|
"""

_OPENTELEMETRY_HEAD = """\
## As OpenTelemetry log records

For collectors that turn events into log records; statewarden itself sends CloudEvents.

| log record | from |
|---|---|
"""

_POLICY = f"""\
## How the contract changes

- `schema_version` is `major.minor`. A minor version only adds optional fields, enumeration values and kinds of records.
  Types, units, meanings and required fields stay; no name is used twice.
- Readers of `{SCHEMA_MAJOR}.x` read every `{SCHEMA_MAJOR}.y`. Unknown fields are ignored. Unknown kinds and values are
  no error, and no verdict rests on them: bronze keeps those lines and counts them in `sequence`, `audit` shows an
  unknown severity as a warning, and `ingest`, `audit` of segments and `explain --events` ask for an upgrade.
- A record of another major version goes whole into bronze's quarantine until a version that knows it runs `ingest`. Its
  `type` and schema end with another number.
- Spool and sinks ship a line as it was written, whatever its version.
- `tests/contract/golden` keeps samples of every published version; the build fails if today's code cannot read them.
- A field that is going away is announced for one minor version and stays, null, until the next major one.
"""

_KIND_TEXT = {
    Kind.TRANSITION: "Something on disk changed from one reading to the next.",
    Kind.FINDING: "A finding opened, changed or was resolved; or is said again, at each start and every 6 hours.",
    Kind.SUMMARY: "The present state of a task; once a minute.",
    Kind.HEARTBEAT: "The agent lives; when and where it was blind; what it watches, and what is open.",
    Kind.CONFIGURATION: "The settings in force for an application, each with its origin.",
    Kind.LIFECYCLE: "The agent started, or is about to stop.",
    Kind.DROP: "Records were dropped, how many and why: the hole in `sequence` is announced.",
    Kind.DIGEST: "What a store held, as numbers and fingerprints ([digests](digests.md)).",
}

_LISTS = (
    ("evidence", EVIDENCE),
    ("stores", STORES),
    ("offsets", OFFSETS),
    ("blind", BLIND),
    ("settings", SETTINGS),
    ("digests", DIGESTS),
    ("databases", DATABASES),
)

_TYPE_TEXT = {FieldType.STRINGS: "list of strings", FieldType.STRUCTS: "list of objects"}


def render_contract_page() -> str:
    """Render the page: fields of every kind first, then kind by kind, then the objects inside lists."""
    parts = [_HEAD, _section("In every record", [row for row in FIELDS if not row.kinds])]
    for kind in Kind:
        rows = [row for row in FIELDS if kind in row.kinds]
        parts.append(_section(f"`{kind.value}`", rows, _KIND_TEXT[kind]))
    parts.extend(_section(f"Objects in `{name}`", list(rows)) for name, rows in _LISTS)
    parts.append(
        _DELIVERY + "".join(f"| `{name}` | {text} | {header} |\n" for name, text, header in CLOUDEVENTS)
    )
    parts.append(_OPENTELEMETRY_HEAD + "".join(f"| {name} | {text} |\n" for name, text in OPENTELEMETRY))
    parts.append(_POLICY)
    return "\n".join(parts)


def _section(title: str, rows: list[Field], text: str = "") -> str:
    lines = [f"## {title}", ""]
    if text:
        lines += [text, ""]
    lines += ["| field | type | required | since | meaning |", "|---|---|---|---|---|"]
    lines += [_row(row) for row in rows]
    return "\n".join(lines) + "\n"


def _row(row: Field) -> str:
    meaning = row.meaning
    if row.unit:
        meaning += f" Unit: {row.unit}."
    if row.values:
        meaning += " One of: " + ", ".join(f"`{value}`" for value in row.values) + "."
    kind = _TYPE_TEXT.get(row.type, row.type.value)
    required = "yes" if row.required else ""
    since = "" if str(row.since) == "1.0" else row.since
    return f"| `{row.name}` | {kind} | {required} | {since} | {_escaped(meaning)} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
