"""The changelog is read as often as it must be, and what is known of it afterwards decides what may be said."""

from __future__ import annotations

from collections.abc import Generator
from typing import cast

import pytest

from agent.contract.changelog import Logged, times_of
from agent.verify.changelog import Changelogs, Record
from agent.verify.fold import Folded, Plan, fold, prefix_of
from agent.verify.kinds import Kind
from agent.verify.scratch import Scratch
from tests.agent.verify.changelog_double import AT_MS, Cluster, Topic


class Kept:
    """A scratch database in memory."""

    def __init__(self) -> None:
        """Begin empty."""
        self.low: dict[bytes, Logged] = {}
        self.later: list[tuple[bytes, int, bool]] = []

    def put(self, key: bytes, record: Logged, *, is_later: bool) -> None:
        """See `Scratch.put`."""
        if is_later:
            self.later.append((key[8:], record.offset, record.is_committed))
        else:
            self.low[key[8:]] = record


class Counting(Cluster):
    """Remembers what was read."""

    def __init__(self, topic: Topic) -> None:
        """Take the only topic."""
        super().__init__({"t": topic})
        self.readings: list[tuple[int, bool]] = []

    def read(
        self, topic: str, partition: int, start: int, end: int, *, committed: bool
    ) -> Generator[list[Record], None, None]:
        """See `Changelogs.read`."""
        self.readings.append((start, committed))
        return super().read(topic, partition, start, end, committed=committed)


def folded(topic: Topic, offset: int | None) -> tuple[Folded, Plan, Kept, list[tuple[int, bool]]]:
    """Fold a changelog for a key-value store with this offset."""
    plan = Plan("t", 0, topic.start, topic.end, Kind.KEY_VALUE, None, {0: offset}, offset)
    kept, cluster = Kept(), Counting(topic)
    found = fold(cast("Changelogs", cluster), plan, cast("Scratch", kept), lambda done, total: None)
    return found, plan, kept, cluster.readings


def keyed(count: int) -> Topic:
    """Give a changelog of so many keys."""
    topic = Topic()
    for number in range(count):
        topic.add(b"k%d" % number, b"v", AT_MS)
    return topic


def test_a_log_without_gaps_is_read_once() -> None:
    """Nothing can have been left out."""
    topic = keyed(10)
    topic.add(b"k1", b"newer")
    found, plan, kept, readings = folded(topic, 7)
    assert readings == [(0, True)]
    assert (kept.low[b"k1"].offset, len(kept.low)) == (1, 8)
    assert kept.later == [(b"k8", 8, True), (b"k9", 9, True), (b"k1", 10, True)]
    known = found.known(plan, 7, is_fresh=False)
    assert (known.has_gaps, known.has_gaps_after) == (False, False)


def test_what_is_not_committed_behind_the_offset_is_read_again() -> None:
    """Only there: an aborted record before it counts for nothing."""
    topic = keyed(5)
    topic.add(b"before", b"v", is_aborted=True)
    topic.add(b"k1", b"newer")
    topic.add(b"behind", b"v", is_aborted=True)
    topic.add(b"last", b"v")
    found, plan, kept, readings = folded(topic, 6)
    assert readings == [(0, True), (7, False)]
    assert kept.later == [(b"last", 8, True), (b"behind", 7, False), (b"last", 8, False)]
    assert found.transactions
    known = found.known(plan, 6, is_fresh=False)
    assert not known.has_gaps_after


@pytest.mark.parametrize(("markers", "has_gaps_after"), [(0, False), (1, False), (2, True)])
def test_the_last_offset_may_be_a_marker(markers: int, has_gaps_after: bool) -> None:
    """Compaction never takes the last record of a log: what is missing there alone is the end of a transaction."""
    topic = keyed(10)
    topic.markers = markers
    found, plan, _, _ = folded(topic, 9)
    assert found.known(plan, 9, is_fresh=False).has_gaps_after is has_gaps_after


def test_a_compacted_record_is_a_gap() -> None:
    """On its side of the offset."""
    topic = keyed(10)
    del topic.records[3]
    found, plan, _, _ = folded(topic, 6)
    assert found.known(plan, 6, is_fresh=False).has_gaps
    assert not found.known(plan, 6, is_fresh=False).has_gaps_after


def test_a_segment_has_the_offset_of_its_own_database() -> None:
    """And one that is not there that of the others."""
    topic, minute_ms = Topic(), 60_000
    for number in range(3):
        topic.add(b"key" + (number * minute_ms).to_bytes(8, "big") + b"\0\0\0\0", b"v")
    plan = Plan("t", 0, 0, 3, Kind.WINDOW, times_of(2 * minute_ms), {0: 0, minute_ms: None}, 2)
    kept = Kept()
    found = fold(cast("Changelogs", Counting(topic)), plan, cast("Scratch", kept), lambda done, total: None)
    assert found.segments == {0, minute_ms, 2 * minute_ms}
    assert found.stream_ms == 2 * minute_ms
    assert sorted(x.offset for x in kept.low.values()) == [0, 2]
    assert [offset for _, offset, _ in kept.later] == [1]
    assert prefix_of(minute_ms) == minute_ms.to_bytes(8, "big")
