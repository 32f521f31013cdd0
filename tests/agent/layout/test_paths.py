"""Paths below a state directory and their roles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.layout.paths import PathRole, StatePath, classify, join

A = "my-app"

PIECES = st.one_of(
    st.sampled_from(
        [
            *(
                "my-app",
                "0_1",
                "__T__",
                "global",
                "rocksdb",
                "s",
                "s.1000",
                "s:1000",
                "s-20200101",
                "",
                ".lock",
            ),
            *(".checkpoint", ".checkpoint_s", ".checkpoint.tmp", "s.position"),
            *("CURRENT", "MANIFEST-000001", "000012.sst", "LOCK"),
        ]
    ),
    st.text(st.characters(exclude_characters="/"), max_size=12),
)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", StatePath("", PathRole.STATE_DIRECTORY)),
        (A, StatePath(A, PathRole.APPLICATION, A)),
        (f"{A}/.lock", StatePath(f"{A}/.lock", PathRole.APPLICATION_LOCK, A)),
        (
            f"{A}/kafka-streams-process-metadata",
            StatePath(f"{A}/kafka-streams-process-metadata", PathRole.PROCESS_FILE, A),
        ),
        (f"{A}/0_1", StatePath(f"{A}/0_1", PathRole.TASK, A, "0_1")),
        (f"{A}/global", StatePath(f"{A}/global", PathRole.TASK, A, "global")),
        (f"{A}/__T__", StatePath(f"{A}/__T__", PathRole.TOPOLOGY, A)),
        (f"{A}/__T__/0_1", StatePath(f"{A}/__T__/0_1", PathRole.TASK, A, "__T__/0_1")),
        (f"{A}/__T__/x", StatePath(f"{A}/__T__/x", PathRole.OTHER, A)),
        (f"{A}/____", StatePath(f"{A}/____", PathRole.OTHER, A)),
        (f"{A}/0_1x", StatePath(f"{A}/0_1x", PathRole.OTHER, A)),
        (f"{A}/\u0660_\u0661", StatePath(f"{A}/\u0660_\u0661", PathRole.OTHER, A)),
        (f"{A}/0_1/.lock", StatePath(f"{A}/0_1/.lock", PathRole.TASK_LOCK, A, "0_1")),
        (f"{A}/0_1/.checkpoint", StatePath(f"{A}/0_1/.checkpoint", PathRole.CHECKPOINT, A, "0_1")),
        (f"{A}/0_1/.checkpoint.tmp", StatePath(f"{A}/0_1/.checkpoint.tmp", PathRole.TEMPORARY, A, "0_1")),
        (
            f"{A}/0_1/.checkpoint_s",
            StatePath(f"{A}/0_1/.checkpoint_s", PathRole.STORE_CHECKPOINT, A, "0_1", "s"),
        ),
        (f"{A}/0_1/.checkpoint_s.tmp", StatePath(f"{A}/0_1/.checkpoint_s.tmp", PathRole.TEMPORARY, A, "0_1")),
        (f"{A}/0_1/s.position", StatePath(f"{A}/0_1/s.position", PathRole.POSITION, A, "0_1", "s")),
        (f"{A}/0_1/rocksdb", StatePath(f"{A}/0_1/rocksdb", PathRole.STORES, A, "0_1")),
        (f"{A}/0_1/rocksdb/s", StatePath(f"{A}/0_1/rocksdb/s", PathRole.STORE, A, "0_1", "s")),
        (f"{A}/0_1/rocksdb/s/sub/x", StatePath(f"{A}/0_1/rocksdb/s/sub/x", PathRole.OTHER, A, "0_1", "s")),
        (f"{A}/0_1/s", StatePath(f"{A}/0_1/s", PathRole.SEGMENTED_STORE, A, "0_1", "s")),
        (f"{A}/0_1/s/s.1000", StatePath(f"{A}/0_1/s/s.1000", PathRole.SEGMENT, A, "0_1", "s", "s.1000")),
        (f"{A}/0_1/s/s:1000", StatePath(f"{A}/0_1/s/s:1000", PathRole.SEGMENT, A, "0_1", "s", "s:1000")),
        (
            f"{A}/0_1/s/s-20180101",
            StatePath(f"{A}/0_1/s/s-20180101", PathRole.SEGMENT, A, "0_1", "s", "s-20180101"),
        ),
        (f"{A}/0_1/s/t.1000", StatePath(f"{A}/0_1/s/t.1000", PathRole.OTHER, A, "0_1", "s")),
        (
            f"{A}/0_1/s/s.1000/000012.sst",
            StatePath(f"{A}/0_1/s/s.1000/000012.sst", PathRole.SST, A, "0_1", "s", "s.1000"),
        ),
        (f"{A}//0_1", StatePath(f"{A}//0_1", PathRole.OTHER, A)),
    ],
)
def test_examples(path, expected):
    """Each shape that Kafka Streams makes has its role, and near misses have none."""
    assert classify(path) == expected


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("LOCK", PathRole.STORE_LOCK),
        ("IDENTITY", PathRole.IDENTITY),
        ("CURRENT", PathRole.CURRENT),
        ("MANIFEST-000005", PathRole.MANIFEST),
        ("OPTIONS-000007", PathRole.OPTIONS),
        ("OPTIONS-000007.dbtmp", PathRole.OTHER),
        ("000012.sst", PathRole.SST),
        ("1234567.sst", PathRole.SST),
        ("x.sst", PathRole.OTHER),
        ("000004.log", PathRole.WAL),
        ("LOG", PathRole.INFO_LOG),
        ("LOG.old.1795227118449068", PathRole.INFO_LOG),
        ("LOG.old.", PathRole.OTHER),
        ("000005.dbtmp", PathRole.OTHER),
    ],
)
@pytest.mark.parametrize("database", [f"{A}/0_1/rocksdb/s", f"{A}/0_1/s/s.1000"])
def test_database_files(database, name, role):
    """Files of a store and of a segment have the same roles, and know their database."""
    place = classify(f"{database}/{name}")
    assert place.role is role
    assert place.store == "s"
    assert place.task_path == f"{A}/0_1"
    assert place.database == (None if role is PathRole.OTHER else database)


@given(st.lists(PIECES, max_size=7).map("/".join))
def test_total(path):
    """No path makes it raise; the fields agree with the role and lead back to the path."""
    place = classify(path)
    assert place.path == path
    assert (place.application is None) == (place.role is PathRole.STATE_DIRECTORY)
    if place.task is not None:
        assert path == place.task_path or path.startswith(f"{place.task_path}/")
    if place.role in (PathRole.STORE, PathRole.SEGMENT):
        assert place.database == path
    if place.segment is not None:
        assert place.store is not None
        assert place.segment.startswith(place.store)
    if place.database is not None:
        assert path == place.database or path == f"{place.database}/{place.name}"


def test_join_knows_the_root() -> None:
    """A name in the root has no slash before it."""
    assert join("", "a") == "a"
    assert join("a", "b") == "a/b"
