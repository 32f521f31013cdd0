"""Whether a store holds exactly what its offset says."""

from __future__ import annotations

import pytest

pytest.importorskip("xxhash", reason="the extra `verify` is not installed")

from agent.observe.rocksdb.replay import ManifestView, NewFile, Origin
from agent.verify.digest import _is_offset_last

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
