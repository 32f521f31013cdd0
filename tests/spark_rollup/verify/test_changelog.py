"""Spark makes of a changelog the buckets that the agent makes of a store that has applied it."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

pytest.importorskip("xxhash", reason="the extra `verify` is not installed")

from agent.contract.buckets import StoreKind
from spark_rollup.sources.changelogs import Ends, Topic
from spark_rollup.verify import digests, parts, plan
from spark_rollup.verify.compare import Compared, verdict
from spark_rollup.verify.verdicts import Verdict, Word
from tests.spark_rollup.support.digest_files import (
    HOUR_MS,
    NOW_US,
    Logged,
    Told,
    database,
    digest,
    folded,
    frame,
    window_key,
    write,
)

pytestmark = pytest.mark.spark

SETTINGS = {
    "retention.ms": 30 * HOUR_MS, "delete.retention.ms": 24 * HOUR_MS, "min.compaction.lag.ms": 30 * HOUR_MS,
}  # fmt: skip
"""Windows and histories of six hours, segments of three."""


def judge(
    spark: SparkSession,
    tmp_path: Path,
    logs: dict[str, list[Logged]],
    told: Sequence[Told],
    *,
    settings: dict[str, int] = SETTINGS,
    first: int = 0,
) -> dict[str, Verdict]:
    """Compare digests with changelogs; gives verdicts by pod."""
    read = digests.load(spark, write(tmp_path / "digests", told))
    topics = {
        topic: Topic({0: Ends(first, records[-1].offset + 1, records[-1].offset + 1)}, settings)
        for topic, records in logs.items()
    }
    planned = plan.plan(read.copies, topics, NOW_US)
    judged = {one.source.copy: one for one in planned if isinstance(one, plan.Judged)}
    records = frame(spark, logs)
    rows = parts.hashed(spark, list(judged.values()), records, records)
    found = parts.compared(spark, read, parts.Work(judged, {}), rows).select(*Compared._fields)
    said = [verdict(judged[one.copy], one) for one in (Compared(*row) for row in found.collect())]
    return {x.source.pod: x for x in [*said, *(x for x in planned if isinstance(x, Verdict))]}


def records(seed: int, number: int = 400, keys: int = 60) -> list[Logged]:
    """Make a changelog with repeated keys, tombstones, and empty keys and values."""
    choose = random.Random(seed)
    return [
        Logged(
            offset * 2,
            choose.randbytes(choose.choice((0, 1, 1, 9)))
            if choose.random() < 0.1
            else b"%d" % choose.randrange(keys),
            None if choose.random() < 0.2 else choose.randbytes(choose.choice((0, 3, 40))),
        )
        for offset in range(number)
    ]


TOPIC = "orders-counts-changelog"


def damaged(whole: dict[bytes, bytes]) -> dict[str, dict[bytes, bytes]]:
    """Give what copies hold: one whole, and one for each planted damage."""
    key = sorted(whole)[7]
    flipped = bytes([whole[key][0] ^ 1]) + whole[key][1:] if whole[key] else b"\x01"
    return {
        "whole": whole,
        "removed": {k: v for k, v in whole.items() if k != key},
        "flipped": {**whole, key: flipped},
        "added": {**whole, b"never in the changelog": b"1"},
        "empty": {},
    }


def test_planted_damage_is_found(spark, tmp_path):
    """One byte flipped, one key removed, one added, everything gone; the whole copy is equal."""
    log = records(1)
    copies = damaged(folded(log, 798))
    told = [digest(database(held, 798), pod=pod) for pod, held in copies.items()]
    said = judge(spark, tmp_path, {TOPIC: log}, told)
    names = ("missing", "extra", "different")
    assert {pod: (one.word, *(one.counts[name] for name in names)) for pod, one in said.items()} == {
        "whole": ("equal", 0, 0, 0), "removed": ("differs", 1, 0, 0), "flipped": ("differs", 0, 0, 1),
        "added": ("differs", 0, 1, 0), "empty": ("differs", len(copies["whole"]), 0, 0),
    }  # fmt: skip


@pytest.mark.slow
def test_later_records_leave_open_only_what_they_may_have_replaced(spark, tmp_path):
    """An exact copy in the middle of the changelog is equal; one that went on is never called different for that."""
    log = records(2)
    told = [
        digest(database(folded(log, 400), 400), pod="exact"),
        digest(database(folded(log, 500), 400, is_exact=False), pod="ahead"),
        digest(database(folded(log, 300), 400), pod="behind"),
        digest(database(folded(log, 400), None, is_exact=False), pod="says-nothing"),
    ]
    said = judge(spark, tmp_path, {TOPIC: log}, told)
    assert said["exact"].word is Word.EQUAL
    assert said["ahead"].word in (Word.PARTLY, Word.UNDECIDABLE)
    assert said["behind"].word is Word.DIFFERS
    assert said["says-nothing"].reason == "the store has no offset: its expected content is unknown"


@pytest.mark.slow
def test_what_compaction_and_age_take_away_is_no_damage(spark, tmp_path):
    """Replaced records and old tombstones are gone, the beginning is cut off: no difference but what is missing."""
    log = records(3)
    held = folded(log, 400)
    last = {one.key: one.offset for one in log}
    compacted = [one for one in log if last[one.key] == one.offset and one.value is not None]
    key = next(one.key for one in compacted if one.offset <= 400)
    told = [
        digest(database(held, 400), pod="whole"),
        digest(
            database({k: v for k, v in held.items() if k != key}, 400, number=1024),
            pod="removed",
            buckets=1024,
        ),
    ]
    gone = {**SETTINGS, "delete.retention.ms": 0}
    said = judge(spark, tmp_path, {TOPIC: compacted}, told, settings=gone)
    assert said["whole"].word in (Word.PARTLY, Word.UNDECIDABLE)
    assert (said["removed"].word, said["removed"].counts["missing"]) == (Word.DIFFERS, 1)
    cut = judge(spark, tmp_path / "cut", {TOPIC: log[150:]}, told, first=300)
    assert cut["whole"].word in (Word.PARTLY, Word.UNDECIDABLE)
    assert "begins at offset 300" in cut["whole"].reason


def windows(seed: int) -> list[Logged]:
    """Make a changelog of windows over 15 hours: five segments, of which three are live."""
    choose = random.Random(seed)
    return [
        Logged(n, window_key(b"%d" % choose.randrange(9), n * 15 * HOUR_MS // 600), choose.randbytes(5))
        for n in range(600)
    ]


def segmented(log: Sequence[Logged], until: int) -> dict[int, dict[bytes, bytes]]:
    """Give what each segment holds."""
    found: dict[int, dict[bytes, bytes]] = {}
    for key, value in folded(log, until).items():
        start_ms = struct.unpack(">q", key[-12:-4])[0]
        found.setdefault(start_ms // (3 * HOUR_MS) * 3 * HOUR_MS, {})[key] = value
    return found


def window_digest(held: dict[int, dict[bytes, bytes]], offset: int | None, **fields: object) -> Told:
    """Digest segments, each at its own offset as the releases from 4.3 on keep it."""
    parts = [database(entries, 599, segment_ms=start_ms) for start_ms, entries in sorted(held.items())]
    return digest(*parts, kind=StoreKind.WINDOW, offset=offset, **fields)


@pytest.mark.slow
def test_expired_segments_are_no_damage_and_lost_ones_are(spark, tmp_path):
    """What is older than the retention may be there or not; an empty live segment is damage, one not there is if the
    store says an offset for it."""
    log = windows(4)
    held = segmented(log, 599)
    live = {start: part for start, part in held.items() if start >= 6 * HOUR_MS}
    lost = {start: {} if start == 9 * HOUR_MS else part for start, part in live.items()}
    without = {start: part for start, part in live.items() if start != 9 * HOUR_MS}
    told = [
        window_digest(held, None, pod="all"),
        window_digest(live, None, pod="live"),
        window_digest(lost, None, pod="lost"),
        window_digest(without, None, pod="absent"),
        window_digest(without, 599, pod="absent-before-4.3"),
    ]
    said = judge(spark, tmp_path, {TOPIC: log}, told)
    number = len(held[9 * HOUR_MS])
    assert {pod: (one.word.value, one.counts["missing"]) for pod, one in said.items()} == {
        "all": ("equal", 0), "live": ("equal", 0), "lost": ("differs", number), "absent": ("partly-equal", 0),
        "absent-before-4.3": ("differs", number),
    }  # fmt: skip
    assert said["lost"].segments == (9 * HOUR_MS,)


@pytest.mark.slow
def test_a_versioned_store_is_its_latest_versions(spark, tmp_path):
    """The version with the latest time counts, not the last record; keys that may have been compacted are left open."""
    choose = random.Random(5)
    now_ms = NOW_US // 1000
    log = [
        Logged(
            n,
            b"%d" % choose.randrange(40),
            choose.choice((None, b"", b"x", b"yz")),
            now_ms - choose.randrange(9_000),
        )
        for n in range(300)
    ]
    latest: dict[bytes, Logged] = {}
    for one in log:
        if one.key not in latest or one.at_ms >= latest[one.key].at_ms:
            latest[one.key] = one
    held = {k: struct.pack(">q", one.at_ms) + one.value for k, one in latest.items() if one.value is not None}
    key = sorted(held)[3]
    told = [
        digest(database(entries, 299), kind=StoreKind.VERSIONED, pod=pod)
        for pod, entries in (("whole", held), ("flipped", {**held, key: held[key] + b"!"}))
    ]
    said = judge(spark, tmp_path, {TOPIC: log}, told)
    assert said["whole"].word is Word.EQUAL
    assert (said["flipped"].word, said["flipped"].counts["different"]) == (Word.DIFFERS, 1)
    old = {**SETTINGS, "min.compaction.lag.ms": 24 * HOUR_MS + 1}
    assert (
        judge(spark, tmp_path / "old", {TOPIC: log}, told, settings=old)["flipped"].word is not Word.DIFFERS
    )


@pytest.mark.slow
def test_spark_hashes_as_the_agent_does(spark, tmp_path):
    """Every combination of empty, short and long keys and values, of both signs of the hash."""
    choose = random.Random(6)
    entries = {choose.randbytes(n % 70): choose.randbytes((n * 7) % 300) for n in range(500)}
    entries[b""] = b""
    log = [Logged(n, key, value) for n, (key, value) in enumerate(entries.items())]
    read = digests.load(
        spark, write(tmp_path, [digest(database(entries, 999, number=8), buckets=8, offset=999)])
    )
    (copy,) = read.copies
    judged = plan.Judged(copy, Ends(0, 1000, 1000), None, None, False)
    records = parts.hashed(spark, [judged], frame(spark, {TOPIC: log}), frame(spark, {TOPIC: []}))
    (row,) = parts.compared(spark, read, parts.Work({copy.copy: judged}, {}), records).collect()
    assert row["counts"] | {"buckets": 8, "equal": 8} == row["counts"]
