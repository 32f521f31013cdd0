"""Paths below a state directory and their roles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.layout.names import changelog_store
from agent.layout.paths import PathRole, StatePath, classify, join
from tests.support.every import every

A = "my-app"
# fmt: off
PIECES = st.one_of(
    st.sampled_from(["my-app", "0_1", "__T__", "global", "rocksdb", "s", "s.1000", "s:1000", "s-20200101", ".lock",
         ".checkpoint", ".checkpoint_s", ".checkpoint.tmp", "s.position", "CURRENT", "MANIFEST-000001",
          "000012.sst", "LOCK", ""]),
    st.text(st.characters(exclude_characters="/"), max_size=12),
)
R = PathRole
EXAMPLES: dict[str, tuple[R, *tuple[str, ...]]] = {
    A: (R.APPLICATION,), f"{A}/.lock": (R.APPLICATION_LOCK,), f"{A}/kafka-streams-process-metadata": (R.PROCESS_FILE,),
    f"{A}/0_1": (R.TASK, "0_1"), f"{A}/global": (R.TASK, "global"), f"{A}/__T__": (R.TOPOLOGY,),
    f"{A}/__T__/0_1": (R.TASK, "__T__/0_1"), f"{A}/__T__/x": (R.OTHER,), f"{A}/____": (R.OTHER,),
         f"{A}/0_1x": (R.OTHER,),
    f"{A}/\u0660_\u0661": (R.OTHER,), f"{A}//0_1": (R.OTHER,), f"{A}/0_1/.lock": (R.TASK_LOCK, "0_1"),
    f"{A}/0_1/.checkpoint": (R.CHECKPOINT, "0_1"), f"{A}/0_1/.checkpoint.tmp": (R.TEMPORARY, "0_1"),
    f"{A}/0_1/.checkpoint_s": (R.STORE_CHECKPOINT, "0_1", "s"), f"{A}/0_1/.checkpoint_s.tmp": (R.TEMPORARY, "0_1"),
    f"{A}/0_1/s.position": (R.POSITION, "0_1", "s"), f"{A}/0_1/rocksdb": (R.STORES, "0_1"),
    f"{A}/0_1/rocksdb/s": (R.STORE, "0_1", "s"), f"{A}/0_1/rocksdb/s/sub/x": (R.OTHER, "0_1", "s"),
    f"{A}/0_1/rocksdb/s/sub/CURRENT": (R.OTHER, "0_1", "s"), f"{A}/0_1/s": (R.SEGMENTED_STORE, "0_1", "s"),
    f"{A}/0_1/s/s.0": (R.SEGMENT, "0_1", "s", "s.0"), f"{A}/0_1/s/s:1000": (R.SEGMENT, "0_1", "s", "s:1000"),
    f"{A}/0_1/s/s-20180101": (R.SEGMENT, "0_1", "s", "s-20180101"), f"{A}/0_1/s/t.1000": (R.OTHER, "0_1", "s"),
    f"{A}/0_1/s/s": (R.OTHER, "0_1", "s"), f"{A}/0_1/s/s.": (R.OTHER, "0_1", "s"), f"{A}/0_1/s/s.x": (R.OTHER,
         "0_1", "s"),
    f"{A}/0_1/s/s60000": (R.OTHER, "0_1", "s"), f"{A}/0_1/s/s.x/CURRENT": (R.OTHER, "0_1", "s"),
    f"{A}/0_1/s/s.1000/000012.sst": (R.SST, "0_1", "s", "s.1000"),
    f"{A}/0_1/s/s.0/deep/CURRENT": (R.OTHER, "0_1", "s", "s.0"),
}
FILES = {
    "LOCK": R.STORE_LOCK, "IDENTITY": R.IDENTITY, "CURRENT": R.CURRENT, "MANIFEST-000005": R.MANIFEST,
    "OPTIONS-000007": R.OPTIONS, "OPTIONS-000007.dbtmp": R.OTHER, "000012.sst": R.SST, "1234567.sst": R.SST,
         "6.sst": R.SST,
    ".sst": R.OTHER, "x.sst": R.OTHER, "000006.sst.tmp": R.OTHER, "000004.log": R.WAL, "LOG": R.INFO_LOG,
    "LOG.old.1795227118449068": R.INFO_LOG, "LOG.old.": R.OTHER, "000005.dbtmp": R.OTHER,
}
# fmt: on


@every("path", EXAMPLES)
def test_examples(path):
    """Each shape that Kafka Streams makes has its role, and near misses have none."""
    role, *rest = EXAMPLES[path]
    assert classify(path) == StatePath(path, role, A, *rest)
    assert classify("") == StatePath("", PathRole.STATE_DIRECTORY)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("database", [f"{A}/0_1/rocksdb/s", f"{A}/0_1/s/s.1000"])
def test_database_files(database, name):
    """Files of a store and of a segment have the same roles, and know their database."""
    place, role = classify(f"{database}/{name}"), FILES[name]
    assert (place.role, place.store, place.task_path) == (role, "s", f"{A}/0_1")
    assert place.database == (None if role is PathRole.OTHER else database)


TOPICS = {
    "app-s-changelog": "s", "app-my-store-changelog": "my-store", "app-changelog-changelog": "changelog",
    "other-s-changelog": None, "app-s-repartition": None, "orders": None, "app-changelog": None, "app--changelog": None,
    "application-s-changelog": None,
}  # fmt: skip


@every("topic", TOPICS)
def test_changelog_store(topic):
    """Application id, store and suffix; a source topic or another application's is none."""
    assert changelog_store(topic, "app") == TOPICS[topic]


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
