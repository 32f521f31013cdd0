"""Stores of segments and of versions beside a changelog in memory."""

from __future__ import annotations

import pytest

from agent.verify.kinds import DEFAULT, TIMESTAMPED, WINDOW_WITH_HEADERS, Kind, big_endian, store_key
from agent.verify.rule import Word
from agent.verify.versions import LATEST
from tests.agent.verify.changelog_double import APP, AT_MS, DAY_MS, StateDir, Topic, Verify, write_database

pytestmark = pytest.mark.delivery

HOUR_MS = 3_600_000
FIRST = AT_MS // (3 * HOUR_MS) * 3 * HOUR_MS
SECOND = FIRST + 3 * HOUR_MS
WINDOWED = {"retention.ms": str(6 * HOUR_MS + DAY_MS)}
WIN, SES, VER = (f"{APP}-{name}-changelog" for name in ("win", "ses", "ver"))


def windows() -> tuple[Topic, dict[int, dict[bytes, bytes]]]:
    """Give a changelog of twenty windows in each of two segments, and the entries of a store that has them all."""
    topic = Topic(settings=dict(WINDOWED))
    entries: dict[int, dict[bytes, bytes]] = {FIRST: {}, SECOND: {}}
    for segment in (FIRST, SECOND):
        for number in range(20):
            start_ms = segment + number * 60_000
            key = b"key%02d" % number + big_endian(start_ms) + b"\0\0\0\0"
            topic.add(key, b"v", start_ms + 5)
            entries[segment][key] = big_endian(start_ms + 5) + b"v"
    return topic, entries


def write_segments(
    state: StateDir, entries: dict[int, dict[bytes, bytes]], offsets: dict[int, int | None] | None = None
) -> None:
    """Write them; with offsets as 4.3 does: segment -> offset, None = it has none."""
    for segment, rows in entries.items():
        own = None
        if offsets is not None:
            own = {"status": 1} | ({} if offsets[segment] is None else {f"{WIN}-0": offsets[segment] or 0})
        write_database(state.segment("win", segment), {DEFAULT: [], TIMESTAMPED: list(rows.items())}, own)


def test_windows_are_equal_segment_by_segment(state: StateDir, verify: Verify) -> None:
    """The kind is told from the keys, the segments' length from the topic's retention."""
    topic, entries = windows()
    write_segments(state, entries)
    state.checkpoint(win=39)
    result = verify({WIN: topic})
    assert (result.word, result.kind, result.tally.counts) == (Word.EQUAL, Kind.WINDOW, {Word.EQUAL: 40})


@pytest.mark.parametrize(
    ("first", "settings", "word"),
    [
        # 4.3: before the kill nothing is claimed for it; after the restart it claims what it does not hold
        (None, True, Word.PENDING),
        (39, True, Word.MISSING),
        # gone as a whole: the other one's offset says that it was there; or it has expired, where that is not known
        ("gone", True, Word.MISSING),
        ("gone", False, Word.EXPIRED),
    ],
)
def test_a_lost_segment_does_not_hide(
    state: StateDir, verify: Verify, first: int | str | None, settings: bool, word: Word
) -> None:
    """Empty or not there at all; every key has its word, and a damaged segment is named."""
    topic, entries = windows()
    topic.settings = topic.settings if settings else None
    entries[FIRST] = {}
    offsets: dict[int, int | None] = {SECOND: 39}
    if isinstance(first, str):
        del entries[FIRST]
    else:
        offsets[FIRST] = first
    write_segments(state, entries, offsets)
    result = verify({WIN: topic}, examples=1)
    assert result.tally.counts == {word: 20, Word.EQUAL: 20}
    if word is not Word.EXPIRED:
        assert {x: dict(y.counts) for x, y in result.by_segment.items()} == {FIRST: {word: 20}}
    if word is Word.MISSING:
        assert [(x.word, x.segment, x.offset) for x in result.examples] == [(word, FIRST, 0)]


LATE = SECOND + 9 * HOUR_MS
THIRD = SECOND + 3 * HOUR_MS


@pytest.mark.parametrize(
    ("late", "kept", "settings", "offsets", "counts"),
    [
        # the changelog still has what the store has dropped
        (LATE, [SECOND], True, None, {Word.EQUAL: 1, Word.EXPIRED: 40}),
        # without DescribeConfigs the segments on disk look twice as long as they are
        (THIRD, [FIRST], False, {FIRST: 40, THIRD: 40}, {Word.MISSING: 20, Word.EQUAL: 21}),
    ],
    ids=["expired", "lost between two others"],
)
def test_a_segment_that_is_not_there_has_expired_or_is_missing(
    state: StateDir, verify: Verify, late: int, kept: list[int], settings: bool,
    offsets: dict[int, int | None] | None, counts: dict[Word, int],
) -> None:  # fmt: skip
    """By the time of the newest record, and by the segments that are there."""
    topic, entries = windows()
    topic.settings = topic.settings if settings else None
    key = b"late" + big_endian(late) + b"\0\0\0\0"
    topic.add(key, b"v", late)
    write_segments(state, {x: entries[x] for x in kept} | {late: {key: big_endian(late) + b"v"}}, offsets)
    if offsets is None:
        state.checkpoint(win=40)
    assert verify({WIN: topic}).tally.counts == counts


def test_without_the_topics_settings_the_segments_on_disk_are_judged(state: StateDir, verify: Verify) -> None:
    """Without DescribeConfigs; a lost key is named, and one line says what is not judged."""
    topic, entries = windows()
    topic.settings = None
    del entries[SECOND][next(iter(entries[SECOND]))]
    write_segments(state, entries)
    state.checkpoint(win=39)
    result = verify({WIN: topic})
    assert result.tally.counts == {Word.MISSING: 1, Word.EQUAL: 39}
    assert f"oldest segment, {FIRST}, " in result.note
    given = verify({WIN: topic}, retentions={"win": 6 * HOUR_MS})
    assert (given.tally.counts, given.note) == (result.tally.counts, "")
    # entries would lie in segments of another length
    wrong = verify({WIN: topic}, retentions={"win": HOUR_MS // 6})
    assert wrong.word is Word.UNDECIDABLE
    assert "300000 ms long" in wrong.reason


@pytest.mark.parametrize(
    ("settings", "reason"), [(None, "--retention"), ({"retention.ms": "3600000"}, "retention.ms=3600000")]
)
def test_a_store_without_segments_needs_a_retention(
    state: StateDir, verify: Verify, settings: dict[str, str] | None, reason: str
) -> None:
    """Said in one line."""
    topic, _ = windows()
    topic.settings = settings
    (state.task / "win").mkdir()
    state.checkpoint(win=39)
    result = verify({WIN: topic})
    assert result.word is Word.UNDECIDABLE
    assert reason in result.reason


def test_sessions_belong_to_the_segment_of_their_end(state: StateDir, verify: Verify) -> None:
    """Key, end, start; the value alone."""
    topic, entries = Topic(settings=dict(WINDOWED)), {}
    for number in range(10):
        key = b"key%d" % number + big_endian(SECOND + number) + big_endian(FIRST + number)
        topic.add(key, b"v%d" % number, SECOND + number)
        entries[key] = b"v%d" % number
    topic.add(next(iter(entries)), None, SECOND)
    del entries[next(iter(entries))]
    write_database(state.segment("ses", SECOND), {DEFAULT: list(entries.items())})
    state.checkpoint(ses=10)
    result = verify({SES: topic})
    assert result.kind is Kind.SESSION
    assert result.tally.counts == {Word.EQUAL: 10}  # the tombstone's key among them: absent, as it should be


def test_windows_with_the_time_first_are_read_through_their_index(state: StateDir, verify: Verify) -> None:
    """Base entries are compared, entries of the index are not."""
    topic, entries = Topic(settings=dict(WINDOWED)), []
    for number in range(10):
        key = b"key%d" % number + big_endian(FIRST + number) + b"\0\0\0\0"
        topic.add(key, b"v", FIRST + number)
        base = store_key(Kind.TIME_FIRST_WINDOW, key)
        entries += [(base, b"\0" + big_endian(FIRST + number) + b"v"), (b"\1" + key, b"")]
    write_database(
        state.segment("win", FIRST), {DEFAULT: [], WINDOW_WITH_HEADERS: entries}, {f"{WIN}-0": 9, "status": 0}
    )
    result = verify({WIN: topic})
    assert result.kind is Kind.TIME_FIRST_WINDOW
    assert result.tally.counts == {Word.EQUAL: 10}


# ----------------------------------------------------------------------------------------------- versions


def versions() -> tuple[Topic, dict[bytes, bytes]]:
    """Give a changelog with two versions of each of ten keys, and the entries of a store that has them all."""
    topic = Topic(settings={"min.compaction.lag.ms": str(HOUR_MS + DAY_MS)})
    entries = {}
    for number in range(10):
        key = b"key%d" % number
        topic.add(key, b"old", AT_MS)
        topic.add(key, b"new", AT_MS + 10)
        head = big_endian(AT_MS + 10) + big_endian(AT_MS) + big_endian(AT_MS) + (3).to_bytes(4, "big")
        entries[big_endian(4) + key] = head + b"old"
        entries[LATEST + key] = big_endian(AT_MS + 10) + b"new"
    return topic, entries


SIZE = (3).to_bytes(4, "big")
MID = big_endian(AT_MS + 10) + big_endian(AT_MS) + big_endian(AT_MS) + SIZE + big_endian(AT_MS + 5) + SIZE
"""The head of a row with a newer version put behind its oldest one, where the store does not find it."""
DELETED = (
    big_endian(AT_MS + 20) + big_endian(AT_MS) + big_endian(AT_MS + 10) + SIZE + big_endian(AT_MS) + SIZE
)
"""The head of a row into which a tombstone moved the last value."""


@pytest.mark.parametrize(
    ("later", "lost", "put", "counts"),
    [
        (None, [], {}, {Word.EQUAL: 20}),
        # a key without its latest version, a row that is gone, a value that is another, a version nobody wrote
        (
            None,
            [LATEST + b"key1", big_endian(4) + b"key2"],
            {LATEST + b"key3": big_endian(AT_MS + 10) + b"odd", LATEST + b"ghost": big_endian(AT_MS) + b"v"},
            {Word.EQUAL: 17, Word.MISSING: 2, Word.DIFFERENT: 1, Word.EXTRA: 1},
        ),
        # older than the retention when it was put: the store did not take it, its changelog did
        ((b"late", b"v", AT_MS - 2 * HOUR_MS), [], {}, {Word.EQUAL: 21}),
        (
            (b"key1", None, AT_MS + 20),
            [LATEST + b"key1"],
            {big_endian(4) + b"key1": DELETED + b"oldnew"},
            {Word.EQUAL: 21},
        ),
        (
            (b"key1", b"mid", AT_MS + 5),
            [],
            {big_endian(4) + b"key1": MID + b"midold"},
            {Word.EQUAL: 20, Word.MISSING: 1},
        ),
        # what is older than the retention may be there or not: only the latest versions are judged
        (
            (b"key1", b"v3", AT_MS + 2 * HOUR_MS),
            [big_endian(4) + b"key2"],
            {LATEST + b"key1": big_endian(AT_MS + 2 * HOUR_MS) + b"v3"},
            {Word.EQUAL: 10},
        ),
    ],
    ids=["whole", "damaged", "too late", "deleted", "not found", "expired"],
)
def test_every_version_is_compared(
    state: StateDir, verify: Verify, later: tuple[bytes, bytes | None, int] | None, lost: list[bytes],
    put: dict[bytes, bytes], counts: dict[Word, int],
) -> None:  # fmt: skip
    """Latest and older ones, as the store finds them."""
    topic, entries = versions()
    if later is not None:
        topic.add(*later)
    held = {k: v for k, v in entries.items() if k not in lost} | put
    write_database(state.store("ver"), {DEFAULT: list(held.items())})
    state.checkpoint(ver=topic.end - 1)
    result = verify({VER: topic})
    assert (result.kind, result.tally.counts) == (Kind.VERSIONED, counts)
