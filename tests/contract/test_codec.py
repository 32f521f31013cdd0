"""Record <-> line: round trips, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from agent.contract.codec import (
    ContractError,
    Encoder,
    UnknownMajorError,
    decode,
    event_id,
    rfc3339,
)
from agent.contract.events import Kind, Origin, Record
from agent.contract.field import Field, FieldType
from agent.contract.fields import fields_of

ORIGIN = Origin("uid-1", "boot-1", "pod-0", "shop", "node-a", "0.1.0")
AT_US = 1_795_227_118_449_068
STAMPED = {
    "schema_version",
    "kind",
    "agent_version",
    "pod_uid",
    "boot_id",
    "sequence",
    "namespace",
    "pod",
    "node",
    "observed_at_us",
}
# file names that are not UTF-8 arrive as lone surrogates
TEXT = st.text(st.characters(codec=None), max_size=20)


def values_of(row: Field) -> SearchStrategy:
    if row.values:
        return st.sampled_from(row.values)
    return {
        FieldType.STRING: TEXT,
        FieldType.LONG: st.integers(-(2**63), 2**63 - 1),
        FieldType.DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
        FieldType.BOOLEAN: st.booleans(),
        FieldType.STRINGS: st.lists(TEXT, max_size=3),
        FieldType.STRUCTS: st.lists(objects_of(row.items), max_size=3),
    }[row.type]


def objects_of(rows: Iterable[Field]) -> SearchStrategy:
    return st.fixed_dictionaries(
        {row.name: values_of(row) for row in rows if row.required},
        optional={row.name: st.one_of(st.none(), values_of(row)) for row in rows if not row.required},
    )


@st.composite
def records(draw):
    kind = draw(st.sampled_from(Kind))
    rows = [row for row in fields_of(kind) if row.name not in STAMPED]
    return Record(kind, draw(st.integers(0, 4_000_000_000_000_000)), draw(objects_of(rows)))


@given(records(), st.integers(1, 2**63 - 1))
def test_round_trip(record, sequence):
    """Every record that the table allows comes back as it was, stamped with its origin; nulls are left out."""
    line = Encoder(ORIGIN).encode(record, sequence)
    assert "\n" not in line
    assert json.dumps(json.loads(line), separators=(",", ":")) == line
    assert line.isascii()
    read = decode(line)
    assert read.pop("id") == event_id("uid-1", "boot-1", sequence)
    stamps = {name: read.pop(name) for name in STAMPED}
    assert read == {name: value for name, value in record.body.items() if value is not None}
    assert stamps["kind"] == record.kind.value
    assert stamps["sequence"] == sequence
    assert stamps["observed_at_us"] == record.observed_at_us
    assert (stamps["pod_uid"], stamps["boot_id"], stamps["pod"]) == ("uid-1", "boot-1", "pod-0")


def test_every_record_of_a_process_is_stamped_alike():
    """What is written once per kind is the same in every record, whatever was refused in between."""
    for origin in (ORIGIN, Origin('u"', "b\\", "pod\udc80", cluster="eu-1")):
        encoder = Encoder(origin)
        task = Record(Kind.TRANSITION, AT_US, {"change": "task-held", "application_id": "a", "held": None})
        phase = Record(Kind.LIFECYCLE, AT_US + 1, {"phase": "started"})
        for record in (task, phase):
            first = encoder.encode(record, 7)
            with pytest.raises(ContractError):
                encoder.encode(Record(record.kind, AT_US, {"colour": "red"}), 8)
            assert encoder.encode(record, 7) == first == Encoder(origin).encode(record, 7)


@pytest.mark.parametrize("name", ["pod", "sequence", "cluster"])
def test_a_body_may_not_set_what_is_stamped(name):
    """Neither in the first record of a kind nor in a later one."""
    encoder = Encoder(Origin("u", "b", "p", cluster="eu-1"))
    for _ in range(2):
        with pytest.raises(ContractError, match=f"may not set '{name}'"):
            encoder.encode(Record(Kind.LIFECYCLE, AT_US, {"phase": "started", name: "x"}), 1)
        encoder.encode(Record(Kind.LIFECYCLE, AT_US, {"phase": "started"}), 1)


def test_same_record_sent_twice_has_the_same_id():
    """Sending again changes nothing; another sequence, boot or pod is another event."""
    record = Record(Kind.LIFECYCLE, AT_US, {"phase": "started"})
    assert Encoder(ORIGIN).encode(record, 1) == Encoder(ORIGIN).encode(record, 1)
    ids = {event_id("a", "b", 1), event_id("a", "b", 2), event_id("a", "c", 1), event_id("d", "b", 1)}
    assert len(ids) == 4


def test_envelope():
    """The line is a CloudEvents 1.0 object."""
    record = Record(
        Kind.TRANSITION, AT_US, {"change": "task-held", "application_id": "a", "task_id": "0_1", "store": "s"}
    )
    envelope = json.loads(Encoder(ORIGIN).encode(record, 7))
    assert envelope["specversion"] == "1.0"
    assert envelope["type"] == "io.statewarden.transition.v1"
    assert envelope["source"] == "/statewarden/shop/pod-0"
    assert envelope["subject"] == "a/0_1/s"
    assert envelope["time"] == "2026-11-21T02:11:58.449068Z"


def test_time_keeps_microseconds():
    """A time before a full second keeps all its digits."""
    assert rfc3339(1) == "1970-01-01T00:00:00.000001Z"
    assert rfc3339(999_999) == "1970-01-01T00:00:00.999999Z"


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        (Kind.LIFECYCLE, {}, "lacks the required field 'phase'"),
        (Kind.LIFECYCLE, {"phase": None}, "lacks the required field 'phase'"),
        (Kind.LIFECYCLE, {"phase": "paused"}, "must be one of started, stopping"),
        (Kind.LIFECYCLE, {"phase": 1}, "must be string, got int"),
        (Kind.LIFECYCLE, {"phase": "started", "colour": "red"}, "'colour' does not belong"),
        (Kind.LIFECYCLE, {"phase": "started", "change": "task-held"}, "'change' does not belong"),
        (Kind.TRANSITION, {"change": "task-held", "puts": "5"}, "transition.puts must be long"),
        (Kind.TRANSITION, {"change": "task-held", "puts": True}, "transition.puts must be long"),
        (Kind.TRANSITION, {"change": "task-held", "held": 1}, "transition.held must be boolean"),
        (Kind.HEARTBEAT, {"applications": "orders"}, "heartbeat.applications must be strings"),
        (Kind.HEARTBEAT, {"applications": [1]}, "must be a list of strings"),
        (Kind.HEARTBEAT, {"blind": ["x"]}, "must be a list of objects"),
        (Kind.HEARTBEAT, {"blind": [{"from_us": 1}]}, r"blind\[\] lacks the required field 'cause'"),
        (Kind.HEARTBEAT, {"blind": [{"from_us": "1", "cause": "x"}]}, r"blind\[\].from_us must be long"),
        (
            Kind.HEARTBEAT,
            {"blind": [{"from_us": 1, "cause": "x", "colour": 1}]},
            r"'colour' does not .*blind\[\]",
        ),
    ],
)
def test_encode_refuses(kind, body, message):
    """What the table does not allow is refused with the field's name."""
    with pytest.raises(ContractError, match=message):
        Encoder(ORIGIN).encode(Record(kind, AT_US, body), 1)


def changed(**data: object) -> str:
    envelope = json.loads(Encoder(ORIGIN).encode(Record(Kind.LIFECYCLE, AT_US, {"phase": "started"}), 1))
    envelope["data"].update(data)
    return json.dumps(envelope)


def test_unknown_field_is_kept_and_ignored():
    """A reader accepts a field of a later minor version."""
    assert decode(changed(colour="red"))["colour"] == "red"


def test_field_of_another_kind_is_refused():
    """A known field in a record that must not have it is a mistake, not a later version."""
    with pytest.raises(ContractError, match="'change' does not belong"):
        decode(changed(change="task-held"))


@pytest.mark.parametrize("version", ["2.0", "2.7", "0.9", "10.0", "", None, "one"])
def test_unknown_major(version):
    """A line of another major is told apart from a broken one and says what to do."""
    with pytest.raises(UnknownMajorError, match="upgrade statewarden"):
        decode(changed(schema_version=version))


def test_later_minor_is_read():
    """A later minor version is read."""
    assert decode(changed(schema_version="1.9"))["schema_version"] == "1.9"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        (b"\xff", "not JSON"),
        ("[]", "not a CloudEvents object"),
        ("{}", "not a CloudEvents object"),
        ('{"data": []}', "not a CloudEvents object"),
        ('{"data": {"schema_version": "1.0", "kind": "gossip"}}', "unknown kind 'gossip'"),
        ('{"data": {"schema_version": "1.0", "kind": "drop"}}', "lacks the required field"),
    ],
)
def test_decode_refuses(line, message):
    """A line that is no event of ours is refused with a reason."""
    with pytest.raises(ContractError, match=message):
        decode(line)


@given(st.one_of(st.binary(max_size=60), st.text(max_size=60)))
def test_garbage_raises_nothing_else(line):
    """Arbitrary input is refused with the declared error."""
    with pytest.raises(ContractError):
        decode(line)


@given(at_us=st.integers(-(2**63), 2**63 - 1))
def test_any_long_is_written_as_a_time(at_us):
    """Years that RFC 3339 cannot write become the first or the last that it can; the order is kept."""
    text = rfc3339(at_us)
    assert len(text) == len("2026-11-20T14:00:00.000000Z")
    assert rfc3339(-(2**63)) <= text <= rfc3339(2**63 - 1) == "9999-12-31T23:59:59.999999Z"
