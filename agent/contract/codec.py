"""Record <-> one CloudEvents 1.0 JSON line, checked against the field table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from agent.contract.digest import hex_digest
from agent.contract.events import EVENT_TYPE_PREFIX, SCHEMA_MAJOR, SCHEMA_MINOR, Kind, Origin, Record
from agent.contract.field import Field, FieldType
from agent.contract.fields import BY_NAME, fields_of


class Shape(NamedTuple):
    """What an object may hold."""

    rules: dict[str, type | frozenset[str] | Shape]
    """Type of a plain field, values of an enumeration, or the shape of a list's objects."""
    required: frozenset[str]  # names that must be there


_EXACT: dict[FieldType, type] = {
    FieldType.STRING: str,
    FieldType.LONG: int,
    FieldType.DOUBLE: float,
    FieldType.BOOLEAN: bool,
}


def shape_of(rows: Iterable[Field]) -> Shape:
    """Give the shape of an object with these fields."""
    rules: dict[str, type | frozenset[str] | Shape] = {}
    required = set()
    for row in rows:
        if row.required:
            required.add(row.name)
        if row.values and row.type is FieldType.STRING:
            rules[row.name] = frozenset(row.values)
        elif row.type is FieldType.STRUCTS:
            rules[row.name] = shape_of(row.items)
        elif row.type in _EXACT and not row.values:
            rules[row.name] = _EXACT[row.type]
    return Shape(rules, frozenset(required))


def fits(values: Mapping[str, object], shape: Shape) -> bool:
    """Return whether an object is surely right; False = it may be, or not."""
    for name, value in values.items():
        rule = shape.rules.get(name)
        found = type(value)
        if found is rule:
            continue
        if isinstance(rule, Shape) and isinstance(value, (list, tuple)):
            is_right = all(type(entry) is dict and fits(entry, rule) for entry in value)
        elif isinstance(rule, frozenset) and found is str:
            is_right = value in rule
        else:
            is_right = value is None and rule is not None and name not in shape.required
        if not is_right:
            return False
    return values.keys() >= shape.required


SCHEMA_VERSION = f"{SCHEMA_MAJOR}.{SCHEMA_MINOR}"
DATASCHEMA = f"urn:statewarden:events:v{SCHEMA_MAJOR}"

FIRST_US, LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
"""First and last microsecond of the years 1 to 9999, since the epoch."""

_MANY_DIGITS = 10  # so long a number is no version; of 4,300 digits `int` raises an error

_PYTHON_TYPES: dict[FieldType, tuple[type, ...]] = {
    FieldType.STRING: (str,), FieldType.LONG: (int,), FieldType.DOUBLE: (float, int), FieldType.BOOLEAN: (bool,),
    FieldType.STRINGS: (list, tuple), FieldType.STRUCTS: (list, tuple),
}  # fmt: skip


class ContractError(ValueError):
    """A record or a line that breaks the contract; says which field and why."""


class LaterVersionError(ContractError):
    """A line that a reader of a later version of the contract can use, and this one cannot; says so."""


class UnknownMajorError(LaterVersionError):
    """A line of a contract major that this reader does not know."""


def event_id(pod_uid: str, boot_id: str, sequence: int) -> str:
    """Derive the event id: the same record sent twice has the same id."""
    return hex_digest(f"{pod_uid}/{boot_id}/{sequence}".encode())[:32]


def rfc3339(at_us: int) -> str:
    """Format microseconds since the epoch as RFC 3339 UTC with microseconds.

    What is outside the years 1 to 9999, which RFC 3339 cannot write, becomes the first or last time that it can.
    """
    seconds, micros = divmod(min(max(at_us, FIRST_US), LAST_US), 1_000_000)
    return f"{_to_the_second(seconds)}.{micros:06d}Z"


@lru_cache(maxsize=64)  # records that follow each other are of the same second
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat(timespec="seconds")


def moment(at_us: int) -> str:
    """Write a time with date and zone, to the second: `2026-11-22 03:14:07 UTC`."""
    return f"{rfc3339(at_us)[:19].replace('T', ' ')} UTC"


def printable(text: str) -> str:
    """Make a text of a record harmless on a terminal: control characters and lone surrogates are escaped."""
    return "".join(
        x if x.isprintable() else x.encode("unicode_escape", "surrogatepass").decode("ascii") for x in text
    )


class Encoder:
    """Stamps the records of one agent process. What does not change from record to record is written once per kind."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._written: dict[Kind, _Written] = {}

    def encode(self, record: Record, sequence: int) -> str:
        """Stamp a record and write it as one JSON line (no newline).

        `record`: what to write; null-valued fields are left out. `sequence`: position in the agent's stream, from
        1. Raises `ContractError`: the body has a field that the table does not know for this kind, lacks a required
        one, or holds a value of the wrong type.
        """
        kind, at_us = record.kind, record.observed_at_us
        body = {name: value for name, value in record.body.items() if value is not None}
        written = self._written.get(kind)
        if written is None or type(at_us) is not int or not fits(body, written.body):
            self._check(record, body, sequence)
        if written is None:
            written = self._written[kind] = _write_once(self._origin, kind)
        place = [str(body[name]) for name in _PLACE if name in body]
        subject = f',"subject":{_to_json("/".join(place))}' if any(place) or len(place) > 1 else ""
        members = _to_json(body)[1:]
        return (
            f"{written.before_id}{event_id(self._origin.pod_uid, self._origin.boot_id, sequence)}"
            f"{written.before_time}{rfc3339(at_us)}"
            f"{written.before_sequence}{sequence}"
            f"{written.before_observed}{at_us}"
            f"{written.before_body}{',' if body else ''}{members}{subject}}}"
        )

    def _check(self, record: Record, body: Mapping[str, object], sequence: int) -> None:
        """Hold the whole record against the table, to say what is wrong with it, if anything is."""
        data = {
            **_stamps(self._origin, record.kind),
            "sequence": sequence,
            "observed_at_us": record.observed_at_us,
        }
        clash = sorted(data.keys() & body.keys())
        if clash:
            raise ContractError(f"a record's body may not set {clash[0]!r}: it is stamped")
        check(record.kind, {**data, **body})


class _Written(NamedTuple):
    """What the lines of one kind have in common: pieces of JSON, each up to a value that differs; the body's shape."""

    before_id: str
    before_time: str
    before_sequence: str
    before_observed: str
    before_body: str
    body: Shape


_PLACE = ("application_id", "task_id", "store")
# ascii output: a hostile (non-UTF-8) file name travels as an escaped lone surrogate, never as a crash
_to_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, check_circular=False).encode


def _stamps(origin: Origin, kind: Kind) -> dict[str, object]:
    """Give what every record of this kind bears, but for sequence and time."""
    stamps: dict[str, object] = {
        "schema_version": SCHEMA_VERSION, "kind": kind.value, "agent_version": origin.agent_version,
        "pod_uid": origin.pod_uid, "boot_id": origin.boot_id, "namespace": origin.namespace, "pod": origin.pod,
        "node": origin.node,
    }  # fmt: skip
    if origin.cluster:
        stamps["cluster"] = origin.cluster
    return stamps


def _write_once(origin: Origin, kind: Kind) -> _Written:
    def members(**values: object) -> str:
        return _to_json(values)[1:-1]

    stamps = _stamps(origin, kind)

    def stamped(*names: str) -> str:
        return members(**{name: stamps[name] for name in names})

    source = f"/statewarden/{origin.namespace or '-'}/{origin.pod}"
    type_ = f"{EVENT_TYPE_PREFIX}{kind.value}.v{SCHEMA_MAJOR}"
    schema = members(datacontenttype="application/json", dataschema=DATASCHEMA)
    speaker = stamped("schema_version", "kind", "agent_version", "pod_uid", "boot_id")
    return _Written(
        before_id=f'{{{members(specversion="1.0")},"id":"',
        before_time=f'",{members(source=source, type=type_)},"time":"',
        before_sequence=f'",{schema},"data":{{{speaker},"sequence":',
        before_observed=f',{stamped("namespace", "pod", "node")},"observed_at_us":',
        before_body=f",{stamped('cluster')}" if origin.cluster else "",
        body=shape_of(row for row in fields_of(kind) if row.name not in _STAMPED),
    )


def decode(line: str | bytes) -> dict[str, object]:
    """Read one line back into its data fields, plus `id`.

    Gives the data object; unknown fields are kept (readers ignore them). Raises `UnknownMajorError`: the line is of
    another contract major. Raises `LaterVersionError`: it is of a later minor version, and of a kind or with a
    value that this one does not know. Raises `ContractError`: the line is not JSON, not an event of ours, or breaks
    the table.
    """
    try:
        envelope = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ContractError(f"event line is not JSON: {error}") from error
    if not isinstance(envelope, dict) or not isinstance(envelope.get("data"), dict):
        raise ContractError("event line is not a CloudEvents object with a `data` object")
    data: dict[str, object] = envelope["data"]
    version = str(data.get("schema_version", ""))
    major = version.split(".", 1)[0]
    if major != str(SCHEMA_MAJOR):
        raise UnknownMajorError(
            f"event {envelope.get('id')!r} has contract version {version or 'none'!r}; "
            f"this reader knows major {SCHEMA_MAJOR}: upgrade statewarden, the line is not read"
        )
    is_later = minor_of(version) > SCHEMA_MINOR
    try:
        if str(data.get("kind")) not in _ROWS:
            raise ContractError(f"event {envelope.get('id')!r} has unknown kind {data.get('kind')!r}")
        kind = Kind(str(data["kind"]))
        # a later version may give a field to more kinds: here it is one that is not known
        known = {name: value for name, value in data.items() if not is_later or name in _ROWS[kind]}
        check(kind, known, allow_unknown=True)
    except ContractError as error:
        if not is_later:
            raise
        raise LaterVersionError(
            f"{error}; it is of contract version {version}, this reader knows {SCHEMA_VERSION}: upgrade statewarden, "
            "the line is not read"
        ) from error
    return {"id": envelope.get("id"), **data}


def minor_of(version: str) -> int:
    """Read the minor version of the contract; -1 if there is none."""
    minor = version.partition(".")[2].partition(".")[0]
    return int(minor) if minor.isascii() and minor.isdecimal() and len(minor) < _MANY_DIGITS else -1


def check(kind: Kind, data: Mapping[str, object], *, allow_unknown: bool = False) -> None:
    """Hold a data object against the table.

    Raises `ContractError`: names the first field that is unknown, missing or of the wrong type.
    """
    rows = _ROWS[kind]
    for name, value in data.items():
        row = rows.get(name)
        if row is None:
            if allow_unknown and name not in BY_NAME:
                continue
            raise ContractError(f"field {name!r} does not belong to a {kind.value} record")
        _check_value(row, value, f"{kind.value}.{name}", allow_unknown=allow_unknown)
    for row in _REQUIRED[kind]:
        if data.get(row.name) is None:
            raise ContractError(f"a {kind.value} record lacks the required field {row.name!r}")


def _check_value(row: Field, value: object, where: str, *, allow_unknown: bool) -> None:
    if value is None and not row.required:
        return
    is_bool = isinstance(value, bool)
    if not isinstance(value, _PYTHON_TYPES[row.type]) or is_bool is not (row.type is FieldType.BOOLEAN):
        raise ContractError(f"{where} must be {row.type.value}, got {type(value).__name__}")
    if row.values and value not in row.values:
        raise ContractError(f"{where} must be one of {', '.join(row.values)}, got {value!r}")
    rows = list(value) if isinstance(value, (list, tuple)) else []
    if row.type is FieldType.STRINGS and not all(isinstance(item, str) for item in rows):
        raise ContractError(f"{where} must be a list of strings")
    if row.type is FieldType.STRUCTS:
        for entry in rows:
            _check_struct(row, entry, where, allow_unknown=allow_unknown)


def _check_struct(row: Field, entry: object, where: str, *, allow_unknown: bool) -> None:
    if not isinstance(entry, Mapping):
        raise ContractError(f"{where} must be a list of objects")
    items = {item.name: item for item in row.items}
    for name, inner in entry.items():
        if name in items:
            _check_value(items[name], inner, f"{where}[].{name}", allow_unknown=allow_unknown)
        elif not allow_unknown:
            raise ContractError(f"{where}[] has no field {name!r}")
    for item in row.items:
        if item.required and entry.get(item.name) is None:
            raise ContractError(f"{where}[] lacks the required field {item.name!r}")


_STAMPED = {*_stamps(Origin("", "", "", cluster="-"), Kind.DROP), "sequence", "observed_at_us"}
_ROWS = {kind: {row.name: row for row in fields_of(kind)} for kind in Kind}
_REQUIRED = {kind: tuple(row for row in fields_of(kind) if row.required) for kind in Kind}
