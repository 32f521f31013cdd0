"""Record <-> one CloudEvents 1.0 JSON line, checked against the field table."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache

from agent.contract.digest import hex_digest
from agent.contract.events import EVENT_TYPE_PREFIX, SCHEMA_MAJOR, SCHEMA_MINOR, Kind, Origin, Record
from agent.contract.field import Field, FieldType
from agent.contract.fields import BY_NAME, fields_of

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


def parse_us(text: object) -> int | None:
    """Read RFC 3339 as microseconds since the epoch; None if it is no time: an agent's clock may be broken.

    Spark writes years after 9999, too, and agents' evidence is free text.
    """
    try:
        when = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return epoch_us(when) if when.tzinfo else None


def epoch_us(when: datetime) -> int:
    """Write a time as microseconds since the epoch."""
    elapsed = when - datetime(1970, 1, 1, tzinfo=UTC)
    return (elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds


def moment(at_us: int) -> str:
    """Write a time with date and zone, to the second: `2026-11-22 03:14:07 UTC`."""
    return f"{rfc3339(at_us)[:19].replace('T', ' ')} UTC"


def printable(text: str) -> str:
    """Make a text of a record harmless on a terminal: control characters and lone surrogates are escaped."""
    return "".join(
        x if x.isprintable() else x.encode("unicode_escape", "surrogatepass").decode("ascii") for x in text
    )


class Encoder:
    """Stamps the records of one agent process."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._stamps = {kind: _stamps(origin, kind) for kind in Kind}

    def encode(self, record: Record, sequence: int) -> str:
        """Stamp a record and write it as one JSON line (no newline).

        `record`: what to write; null-valued fields are left out. `sequence`: position in the agent's stream, from
        1. Raises `ContractError`: the body has a field that the table does not know for this kind, lacks a required
        one, or holds a value of the wrong type.
        """
        origin, kind, stamps = self._origin, record.kind, self._stamps[record.kind]
        body = {name: value for name, value in record.body.items() if value is not None}
        if clash := sorted(stamps.keys() & body.keys()):
            raise ContractError(f"a record's body may not set {clash[0]!r}: it is stamped")
        data = stamps | body
        data["sequence"], data["observed_at_us"] = sequence, record.observed_at_us
        check(kind, data)
        event = {
            "specversion": "1.0", "id": event_id(origin.pod_uid, origin.boot_id, sequence),
            "source": f"/statewarden/{origin.namespace or '-'}/{origin.pod}",
            "type": f"{EVENT_TYPE_PREFIX}{kind.value}.v{SCHEMA_MAJOR}", "time": rfc3339(record.observed_at_us),
            "datacontenttype": "application/json", "dataschema": DATASCHEMA, "data": data,
        }  # fmt: skip
        place = [str(body[name]) for name in _PLACE if name in body]
        if any(place) or len(place) > 1:
            event["subject"] = "/".join(place)
        return _to_json(event)


_PLACE = ("application_id", "task_id", "store")
# ascii output: a hostile (non-UTF-8) file name travels as an escaped lone surrogate, never as a crash
_to_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, check_circular=False).encode


def _stamps(origin: Origin, kind: Kind) -> dict[str, object]:
    """Give what every record of this kind bears, in the order of a line; two values are of the record."""
    stamps: dict[str, object] = {
        "schema_version": SCHEMA_VERSION, "kind": kind.value, "agent_version": origin.agent_version,
        "pod_uid": origin.pod_uid, "boot_id": origin.boot_id, "sequence": 0, "namespace": origin.namespace,
        "pod": origin.pod, "node": origin.node, "observed_at_us": 0,
    }  # fmt: skip
    return stamps | {"cluster": origin.cluster} if origin.cluster else stamps


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
        if str(data.get("kind")) not in _SHAPES:
            raise ContractError(f"event {envelope.get('id')!r} has unknown kind {data.get('kind')!r}")
        kind = Kind(str(data["kind"]))
        # a later version may give a field to more kinds: here it is one that is not known
        known = {name: value for name, value in data.items() if not is_later or name in _SHAPES[kind].rows}
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
    unknown = BY_NAME.keys() if allow_unknown else None
    _check_object(_SHAPES[kind], data, kind.value, unknown)


class _Shape:
    """What an object may hold."""

    def __init__(self, rows: Iterable[Field]) -> None:
        self.rows = {row.name: row for row in rows}
        self.types = {
            name: _PYTHON_TYPES[row.type][0]
            for name, row in self.rows.items()
            if not row.values and row.type not in (FieldType.STRINGS, FieldType.STRUCTS)
        }
        """Of a field with one of these the type alone decides: most values are checked by that."""
        self.inner = {name: _Shape(row.items) for name, row in self.rows.items() if row.items}
        self.required = tuple(name for name, row in self.rows.items() if row.required)


def _check_object(
    shape: _Shape, values: Mapping[str, object], where: str, others: Collection[str] | None
) -> None:
    """Check one object. `others`: names that no field may have that is not in the shape; None = none may."""
    for name, value in values.items():
        if type(value) is shape.types.get(name):
            continue
        if name in shape.rows:
            _check_value(shape, shape.rows[name], value, f"{where}.{name}", others)
        elif others is None or name in others:
            raise ContractError(f"field {name!r} does not belong to {where}")
    for name in shape.required:
        if values.get(name) is None:
            raise ContractError(f"{where} lacks the required field {name!r}")


def _check_value(
    shape: _Shape, row: Field, value: object, where: str, others: Collection[str] | None
) -> None:
    if value is None and not row.required:
        return
    is_bool = isinstance(value, bool)
    if not isinstance(value, _PYTHON_TYPES[row.type]) or is_bool is not (row.type is FieldType.BOOLEAN):
        raise ContractError(f"{where} must be {row.type.value}, got {type(value).__name__}")
    if row.values and value not in row.values:
        raise ContractError(f"{where} must be one of {', '.join(row.values)}, got {value!r}")
    for entry in value if isinstance(value, (list, tuple)) else ():
        if row.type is FieldType.STRINGS and not isinstance(entry, str):
            raise ContractError(f"{where} must be a list of strings")
        if row.type is FieldType.STRUCTS:
            if not isinstance(entry, Mapping):
                raise ContractError(f"{where} must be a list of objects")
            _check_object(shape.inner[row.name], entry, f"{where}[]", None if others is None else ())


_SHAPES = {kind: _Shape(fields_of(kind)) for kind in Kind}
