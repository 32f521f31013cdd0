"""The kind of a store shows in its entries, or in its changelog's keys; a guess is refused."""

from __future__ import annotations

import pytest

from agent.contract.changelog import times_of
from agent.errors import LayoutError
from agent.verify.kinds import DEFAULT, TIMESTAMPED, Kind, big_endian, store_key
from agent.verify.shape import kind_of_one, kind_of_segments
from agent.verify.versions import LATEST

HOUR_MS = 3_600_000
SEGMENT = 472_222 * HOUR_MS
TIMES = times_of(2 * HOUR_MS)
WINDOW = b"customer-1" + big_endian(SEGMENT + 5) + b"\0\0\0\0"
SESSION = b"customer-1" + big_endian(SEGMENT + 9) + big_endian(SEGMENT + 5)


def test_segments_are_half_the_retention_long_and_at_least_a_minute() -> None:
    """As the suppliers of Kafka Streams make them."""
    assert times_of(6 * HOUR_MS).interval_ms == 3 * HOUR_MS
    assert times_of(1000).interval_ms == 60_000
    assert TIMES.segment(SEGMENT + HOUR_MS - 1) == SEGMENT
    assert TIMES.live_from(SEGMENT + 2 * HOUR_MS + 1) == SEGMENT


@pytest.mark.parametrize(
    ("kind", "key", "family"),
    [
        (Kind.WINDOW, WINDOW, DEFAULT),
        (Kind.WINDOW, WINDOW, TIMESTAMPED),
        (Kind.SESSION, SESSION, DEFAULT),
        (Kind.TIME_FIRST_WINDOW, WINDOW, DEFAULT),
        (Kind.TIME_FIRST_SESSION, SESSION, DEFAULT),
    ],
)
def test_an_entry_shows_its_kind(kind: Kind, key: bytes, family: str) -> None:
    """Its time is in its segment for one kind only."""
    stored = store_key(kind, key)
    assert kind_of_segments([(SEGMENT, (stored, family, b"12345678v"))], [key], TIMES) is kind


@pytest.mark.parametrize(("key", "kind"), [(WINDOW, Kind.WINDOW), (SESSION, Kind.SESSION)])
def test_an_empty_store_takes_its_kind_from_the_changelog(key: bytes, kind: Kind) -> None:
    """A store that lost everything must not hide."""
    assert kind_of_segments([], [key], TIMES) is kind


def test_entries_of_another_length_of_segment_are_refused() -> None:
    """The message names the length that was taken."""
    with pytest.raises(LayoutError, match=r"3600000 ms long.*--retention"):
        kind_of_segments([(SEGMENT - HOUR_MS, (WINDOW, DEFAULT, b"v"))], [], TIMES)


def test_a_versioned_store_is_known_by_all_its_entries() -> None:
    """One that does not fit, and it is a plain one."""
    latest = (LATEST + b"k", DEFAULT, big_endian(5) + b"v")
    assert kind_of_one([latest]) is Kind.VERSIONED
    assert kind_of_one([latest, (b"customer-1", DEFAULT, b"v")]) is Kind.KEY_VALUE
    assert kind_of_one([latest, (b"customer-1", TIMESTAMPED, big_endian(5) + b"v")]) is Kind.KEY_VALUE
    assert kind_of_one([]) is Kind.KEY_VALUE
