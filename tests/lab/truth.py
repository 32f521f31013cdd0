"""What every store must hold, from what was sent; and in what it differs. Values in, values out.

Keys name the partition that they were sent to (`p0-17`), so that a difference belongs to a task.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Contents = Mapping[str, str]
"""Entry -> value as `Contents.java` writes them; entries of windows and sessions are `key@start`."""

_PARTITION = re.compile(r"r?p(\d+)-")


@dataclass(frozen=True, slots=True)
class Batch:
    """Records that were sent together: keys `first` to `last - 1` of a partition."""

    partition: int
    first: int
    last: int
    at_ms: int  # time of the first record
    step_ms: int  # from one record to the next
    is_deletion: bool = False  # tombstones, to tables only

    def records(self) -> Iterable[tuple[str, int]]:
        """Give key and time of each."""
        for number in range(self.first, self.last):
            yield f"p{self.partition}-{number}", self.at_ms + (number - self.first) * self.step_ms


@dataclass(frozen=True, slots=True)
class Spans:
    """How the application's windows are, milliseconds; sessions end after a gap of one window."""

    window_ms: int
    retention_ms: int
    grace_ms: int = 0


class Expectation(NamedTuple):
    """What a store must hold, and what it may hold because it need not have expired yet."""

    required: Mapping[str, str]
    possible: Mapping[str, str]

    def of_partition(self, number: int) -> Expectation:
        """Leave what one partition of it must hold."""
        return Expectation(
            *({entry: x for entry, x in each.items() if partition_of(entry) == number} for each in self)
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """In what one partition of a store is not as it must be: entries with too little and with too much."""

    store: str
    partition: int
    lost: int
    extra: int
    expected: int
    examples: tuple[str, ...] = ()

    @property
    def figures(self) -> str:
        """What is missing and what is too much, in a few characters."""
        return f"-{self.lost} +{self.extra} of {self.expected}"


def count_keys(sent: Sequence[Batch], _spans: Spans, prefix: str = "") -> Expectation:
    """Each key as often as it was sent."""
    counts: dict[str, int] = defaultdict(int)
    for batch in sent:
        if not batch.is_deletion:
            for key, _ in batch.records():
                counts[prefix + key] += 1
    wanted = {key: str(count) for key, count in counts.items()}
    return Expectation(wanted, wanted)


def count_repartitioned(sent: Sequence[Batch], spans: Spans) -> Expectation:
    """The same under the key that the records were sent on with."""
    return count_keys(sent, spans, prefix="r")


def latest_values(sent: Sequence[Batch], _spans: Spans) -> Expectation:
    """Each key that was not deleted last, with itself as the value."""
    wanted: dict[str, str] = {}
    for batch in sent:
        for key, _ in batch.records():
            if batch.is_deletion:
                wanted.pop(key, None)
            else:
                wanted[key] = key
    return Expectation(wanted, wanted)


def latest_times(sent: Sequence[Batch], _spans: Spans) -> Expectation:
    """Each key that was not deleted at its latest time, with that time."""
    newest: dict[str, tuple[int, bool]] = {}
    for batch in sent:
        for key, at_ms in batch.records():
            if at_ms >= newest.get(key, (0, False))[0]:
                newest[key] = (at_ms, batch.is_deletion)
    wanted = {key: str(at_ms) for key, (at_ms, is_deletion) in newest.items() if not is_deletion}
    return Expectation(wanted, wanted)


def count_windows(sent: Sequence[Batch], spans: Spans) -> Expectation:
    """Each key per window; windows that stream time has left behind by the retention may be gone."""
    counts: dict[tuple[str, int], int] = defaultdict(int)
    newest: dict[int, int] = defaultdict(int)
    for batch in sent:
        for key, at_ms in batch.records():
            start = at_ms - at_ms % spans.window_ms
            newest[batch.partition] = max(newest[batch.partition], start)
            if not batch.is_deletion:
                counts[key, start] += 1
    possible = {f"{key}@{start}": str(count) for (key, start), count in counts.items()}
    required = {
        f"{key}@{start}": str(count)
        for (key, start), count in counts.items()
        if start > newest[partition_of(key)] - spans.retention_ms
    }
    return Expectation(required, possible)


def count_sessions(sent: Sequence[Batch], spans: Spans) -> Expectation:
    """Each key per session: records not further apart than the gap."""
    times: dict[str, list[int]] = defaultdict(list)
    for batch in sent:
        for key, at_ms in batch.records():
            if not batch.is_deletion:
                times[key].append(at_ms)
    newest: dict[int, int] = defaultdict(int)
    for key, all_ms in times.items():
        newest[partition_of(key)] = max(newest[partition_of(key)], *all_ms)
    required, possible = {}, {}
    for key, all_ms in times.items():
        for session in _sessions(sorted(all_ms), spans.window_ms):
            possible[f"{key}@{session[0]}"] = str(len(session))
            if session[-1] > newest[partition_of(key)] - spans.retention_ms:
                required[f"{key}@{session[0]}"] = str(len(session))
    return Expectation(required, possible)


def _sessions(times: Sequence[int], gap_ms: int) -> Iterable[list[int]]:
    session = [times[0]]
    for at_ms in times[1:]:
        if at_ms - session[-1] > gap_ms:
            yield session
            session = []
        session.append(at_ms)
    yield session


def partition_of(entry: str) -> int:
    """Tell to which partition the key of an entry was sent."""
    match = _PARTITION.match(entry)
    assert match, entry
    return int(match[1])


def count_joined(sent: Sequence[Batch], spans: Spans, ending: str = "") -> Expectation:
    """Each record, by key and time, as one side of a join keeps it: for twice the window and the grace.

    Of those with the same key and time one must be there: `RocksDBWindowStore` numbers them, and begins at 0 again
    with every opening, so one that is sent again may take the place of an earlier one.
    """
    kept = Spans(1, 2 * spans.window_ms + spans.grace_ms)
    required, possible = (
        {x: n for x, n in of.items() if x.partition("@")[0].endswith(ending)}
        for of in count_windows(sent, kept)
    )
    return Expectation(dict.fromkeys(required, "1"), possible)


def count_joined_sevens(sent: Sequence[Batch], spans: Spans) -> Expectation:
    """The other side has every tenth key."""
    return count_joined(sent, spans, "7")


class Store(NamedTuple):
    """One kind of store whose content is known."""

    kind: str  # how `Contents.java` reads it
    expect: Callable[[Sequence[Batch], Spans], Expectation]  # gives its content
    of: tuple[str, ...]  # words of the topology that make it
    everywhere: bool = False  # each pod holds all of it
    moved: bool = False  # its keys are in other partitions than they were sent to
    readable_since: str = "2.0.0"  # oldest release whose store can be read as a whole
    is_latest: bool = False  # it keeps each key's latest record: one that is read again changes nothing


STORES: dict[str, Store] = {
    "kv": Store("key-value", count_keys, ("kv",)),
    "kv-b": Store("key-value", count_keys, ("kv-b",)),
    "plain": Store("key-value", count_keys, ("plain",)),
    "memory": Store("key-value", count_keys, ("memory",)),
    "third": Store("key-value", count_keys, ("third",)),
    "repartition": Store("key-value", count_repartitioned, ("repartition",), moved=True),
    "foreign-left": Store("key-value", latest_values, ("foreign",), is_latest=True),
    "foreign-right": Store("key-value", count_keys, ("foreign",)),
    "window": Store("window", count_windows, ("window",)),
    "window-b": Store("window", count_windows, ("window-b",)),
    "session": Store("session", count_sessions, ("session",), readable_since="3.1.0"),
    "table": Store("key-value", latest_values, ("table",), is_latest=True),
    "global": Store("key-value", latest_values, ("global",), everywhere=True, is_latest=True),
    "versioned": Store("versioned", latest_times, ("versioned",), readable_since="3.7.0", is_latest=True),
    "KSTREAM-JOINTHIS": Store("join", count_joined, ("join", "inner")),
    "KSTREAM-JOINOTHER": Store("join", count_joined_sevens, ("inner",)),
    "KSTREAM-OUTEROTHER": Store("join", count_joined_sevens, ("join",)),
}
"""Stores that are compared, by name or by the beginning of one that ends in a number; others are only lived with."""
TOPICS = {"table": "-table", "global": "-global", "versioned": "-versioned"}


def topic_of(word: str) -> str:
    """Give the ending of the topic that fills what a word of the topology makes; of most it is the input itself."""
    return TOPICS.get(word, "")


def store_of(name: str) -> Store | None:
    """Find what is known of a store."""
    numbered = next((x for x in STORES if x.startswith("KSTREAM-") and name.startswith(f"{x}-")), name)
    return STORES.get(numbered)


def compare(store: str, expected: Expectation, found: Contents) -> list[Difference]:
    """Compare what a store holds with what it must hold, partition by partition."""
    lost: dict[int, list[str]] = defaultdict(list)
    extra: dict[int, list[str]] = defaultdict(list)
    for entry, value in expected.required.items():
        has = found.get(entry)
        if has is None or is_less(has, value):
            lost[partition_of(entry)].append(f"{entry}={has or '-'} of {value}")
    for entry, has in found.items():
        wanted = expected.possible.get(entry)
        if wanted is None or is_less(wanted, has):
            extra[partition_of(entry)].append(f"{entry}={has} of {wanted or '-'}")
    totals: dict[int, int] = defaultdict(int)
    for entry in expected.required:
        totals[partition_of(entry)] += 1
    return [
        Difference(
            store,
            partition,
            len(lost[partition]),
            len(extra[partition]),
            totals[partition],
            (*lost[partition][:3], *extra[partition][:3]),
        )
        for partition in sorted({*lost, *extra})
    ]


def is_less(one: str, other: str) -> bool:
    """Tell whether a value is behind another: a smaller number, or another text."""
    return int(one) < int(other) if one.isdigit() and other.isdigit() else one != other
