"""Whether a store holds exactly what its offset says, and what an entry says without its form."""

from __future__ import annotations

import struct

import pytest

pytest.importorskip("xxhash", reason="the extra `verify` is not installed")

from agent.errors import LayoutError
from agent.observe.rocksdb.replay import ManifestView, NewFile, Origin
from agent.verify.digest import _is_offset_last
from agent.verify.kinds import Kind, record_value

DATA, OFFSETS = 1, 2


def manifest(
    data: int, offsets: int = 0, *, opened: int | None = 100, has_zeroed: bool = False
) -> ManifestView:
    """Make the manifest of a database whose last flushes reach these sequence numbers."""
    files = (
        NewFile(27, OFFSETS, offsets, Origin.FLUSH),
        NewFile(28, DATA, data, Origin.FLUSH),
        NewFile(29, OFFSETS, 0, Origin.COMPACTION),
    )
    return ManifestView(
        5, data, 30, ((0, "default"), (DATA, "keyValueWithTimestamp"), (OFFSETS, "offsets")), (), files, data, 0,
        opened, has_zeroed,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("view", "sequence", "is_last"),
    [
        # a clean close; data behind the offset: it runs, was killed, or closed dirty
        (manifest(3005), 3008, True),
        (manifest(8013), 6214, False),
        # older data has no sequences, the offset is of this session; since the open came nothing: unknown
        (manifest(3005, has_zeroed=True), 3008, True),
        (manifest(90, has_zeroed=True), 95, False),
        (manifest(90, has_zeroed=True, opened=None), 95, False),
        # the offset's own sequence is gone: the last flush wrote more than a status; a dirty close; no data
        (manifest(3405, 3410), 0, True),
        (manifest(8013, 8014), 0, False),
        (manifest(90, 104), 0, False),
        (manifest(3405, 3410, opened=None), 0, False),
    ],
)
def test_an_offset_is_exact_if_it_was_written_after_all_data(view, sequence, is_last):
    """Sequence numbers order what was written; where a compaction took them away, the flushes do."""
    assert _is_offset_last(view, sequence) is is_last


TIME = struct.pack(">q", 5)


@pytest.mark.parametrize(
    ("kind", "family", "entry"),
    [
        (Kind.KEY_VALUE, "default", b"v"),
        (Kind.KEY_VALUE, "keyValueWithTimestamp", TIME + b"v"),
        (Kind.WINDOW, "keyValueWithTimestampAndHeaders", b"\0" + TIME + b"v"),
        (Kind.WINDOW, "keyValueWithTimestampAndHeaders", b"\x04\x02" + TIME + b"v"),
        (Kind.TIME_FIRST_WINDOW, "default", TIME + b"v"),
        (Kind.TIME_FIRST_WINDOW, "windowKeyValueWithHeaders", b"\0" + TIME + b"v"),
        (Kind.SESSION, "default", b"v"),
        (Kind.SESSION, "sessionKeyValueWithHeaders", b"\0v"),
        (Kind.TIME_FIRST_SESSION, "default", b"v"),
    ],
)
def test_the_value_of_a_record_is_the_same_in_every_form(kind, family, entry):
    """Time and headers are taken off; what is left is what the changelog has."""
    if entry.startswith(b"\x04\x02"):
        entry = b"\x04\x02\x00" + entry[2:]  # two bytes of headers
    assert record_value(kind, family, entry) == b"v"


def test_a_form_that_is_not_known_is_refused():
    """Nothing is guessed about a column family that no release has."""
    with pytest.raises(LayoutError, match="column family other"):
        record_value(Kind.KEY_VALUE, "other", b"v")
    with pytest.raises(LayoutError):
        record_value(Kind.KEY_VALUE, "keyValueWithTimestamp", b"short")
