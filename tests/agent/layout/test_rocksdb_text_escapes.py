"""RocksDB's textual artefacts: limits and escapes."""

from __future__ import annotations

from agent.layout.rocksdb_text import (
    MAX_CURRENT_BYTES,
    MAX_IDENTITY_BYTES,
    MAX_OPTIONS_BYTES,
    old_log_times_us,
    parse_current,
    parse_identity,
    parse_options,
)


def test_limits_leave_room_for_real_files():
    """An OPTIONS file has up to 20 KB, CURRENT and IDENTITY one line: read all of that, and no megabytes."""
    assert 100_000 <= MAX_OPTIONS_BYTES <= 10_000_000
    assert len("MANIFEST-") + 20 + 1 <= MAX_CURRENT_BYTES <= 1_000
    assert 36 + 1 <= MAX_IDENTITY_BYTES <= 10_000


def test_times_of_twenty_digits():
    """A time of twenty digits is still one, a longer one is garbage."""
    names = ["LOG.old." + "1" * 20, "LOG.old." + "1" * 21, "LOG.old.7"]
    assert old_log_times_us(names) == (7, int("1" * 20))


def test_escapes_in_family_names():
    """Line ends are escaped as letters; any other escaped character is itself."""
    assert parse_options(rb'[CFOptions "a\nb\rc\\d"]').column_families == ("a\nb\rc\\d",)


def test_a_family_that_comes_twice_is_one():
    """Names are told once, in the order of the file."""
    content = b'[CFOptions "b"]\n[CFOptions "a"]\n[CFOptions "b"]\n'
    assert parse_options(content).column_families == ("b", "a")


def test_numbers_as_they_are():
    """Leading zeros are no part of a number; white space is none of an identity."""
    assert parse_current(b"MANIFEST-0000000000000000005") == 5
    assert parse_identity(b"  abc\r\n") == "abc"
