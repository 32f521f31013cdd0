"""RocksDB's textual artefacts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.layout.rocksdb_text import (
    MAX_CURRENT_BYTES,
    MAX_IDENTITY_BYTES,
    MAX_OPTIONS_BYTES,
    OptionsFacts,
    old_log_times_us,
    parse_current,
    parse_identity,
    parse_options,
)

OPTIONS = b"""# This is a RocksDB option file.
[Version]
  rocksdb_version=10.1.3
  options_file_version=1.1

[DBOptions]
  wal_dir=/data/s

[CFOptions "default"]
  compression=kNoCompression

[TableOptions/BlockBasedTable "default"]
  format_version=6

[CFOptions "offsets"]
  compression=kNoCompression
"""


def test_options():
    """Version and column families are found, other sections are not taken for families."""
    assert parse_options(OPTIONS) == OptionsFacts("10.1.3", ("default", "offsets"))


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        (b"  keep_log_file_num=1000\n  db_log_dir=\n", 1000),
        (b"  db_log_dir=\n  keep_log_file_num=1\n", 1),
        (b"  keep_log_file_num=1000\n  db_log_dir=/logs\n", 0),
        (b"  db_log_dir=/logs\n", 0),
        (b"  max_log_file_size=65536\n  keep_log_file_num=1000\n", 0),
        (b"  keep_log_file_num=1000\n  log_file_time_to_roll=3600\n", 0),
        (b"  max_log_file_size=0\n  log_file_time_to_roll=0\n  keep_log_file_num=1000\n", 1000),
        (b"  keep_log_file_num=many\n", None),
        (b"  recycle_log_file_num=0\n", None),
    ],
)
def test_old_logs_that_stay(lines, kept):
    """As many as RocksDB was told, 0 if they go elsewhere or roll, not known if the file does not say."""
    assert parse_options(OPTIONS.replace(b"  wal_dir=/data/s\n", lines)).old_logs_kept == kept


@pytest.mark.parametrize(
    ("line", "forgets"),
    [
        (b"  compaction_style=kCompactionStyleFIFO\n", True),
        (b"  compaction_filter_factory=MyExpiry\n", True),
        (b"  compaction_filter=MyFilter\r\n", True),
        (b"  compaction_style=kCompactionStyleUniversal\n", False),
        (b"  compaction_filter=nullptr\n  compaction_filter_factory=nullptr\r\n", False),
        (b"  compaction_filter=\n", False),
        (b"  compaction_options_fifo={ttl=0;}\n", False),
    ],
)
def test_entries_that_rocksdb_drops(line, forgets):
    """FIFO compaction and a compaction filter drop live entries; what every recording says does not."""
    assert parse_options(OPTIONS.replace(b"  compression=kNoCompression\n", line)).forgets is forgets


def test_names_of_families():
    """Line ends are escaped as letters, any other escaped character is itself; each name once, in their order."""
    assert parse_options(b'[CFOptions "a\\#b"]\n').column_families == ("a#b",)
    assert parse_options(rb'[CFOptions "a\nb\rc\\d"]').column_families == ("a\nb\rc\\d",)
    content = b'[CFOptions "b"]\n[CFOptions "a"]\n[CFOptions "b"]\n'
    assert parse_options(content).column_families == ("b", "a")


def test_truncated_options():
    """What a cut file still says is told."""
    assert parse_options(OPTIONS[:60]) == OptionsFacts(None, ())
    assert parse_options(OPTIONS[:150]).rocksdb_version == "10.1.3"


@pytest.mark.parametrize(
    ("content", "number"),
    [
        (b"MANIFEST-000005\n", 5),
        (b"MANIFEST-1234567", 1234567),
        (b"MANIFEST-0000000000000000005", 5),
        (b"", None),
        (b"\n", None),
        (b"MANIFEST-\n", None),
        (b"MANIFEST-000005\nx", None),
        (b"MANIFEST-" + b"1" * 50, None),
    ],
)
def test_current(content, number):
    """CURRENT names one manifest or nothing."""
    assert parse_current(content) == number


@pytest.mark.parametrize(
    ("content", "identity"),
    [
        (b"b5cf056e-6e60-4781-ba5d-90c41b42cfc2", "b5cf056e-6e60-4781-ba5d-90c41b42cfc2"),
        (b"b5cf056e-6e60-4781-ba5d-90c41b42cfc2\n", "b5cf056e-6e60-4781-ba5d-90c41b42cfc2"),
        (b"  abc\r\n", "abc"),
        (b"", None),
        (b"two tokens", None),
        (b"\x00" * 36, None),
        (b"caf\xc3\xa9", None),
        (b"x" * 300, None),
    ],
)
def test_identity(content, identity):
    """IDENTITY is one printable token or nothing."""
    assert parse_identity(content) == identity


def test_old_log_times():
    """Only rotated info logs count, in order of time."""
    names = ["LOG", "LOG.old.300", "000004.log", "LOG.old.x", "LOG.old.20", "LOG.old." + "9" * 21, "LOG.old."]
    assert old_log_times_us([*names, "LOG.old." + "1" * 20]) == (20, 300, int("1" * 20))


@given(st.binary())
def test_total(content):
    """No content makes any of them raise."""
    parse_options(content)
    parse_options(b'[CFOptions "' + content + b'"]\nrocksdb_version=' + content)
    parse_current(content)
    parse_identity(content)
    old_log_times_us([content.decode("utf-8", "surrogateescape")])


def test_bulk_loading_is_both_of_its_options():
    """A configuration may set one of them."""
    trigger, compactions = b"level0_file_num_compaction_trigger=1073741824", b"disable_auto_compactions=true"
    for lines, loading in (
        (trigger + b"\n" + compactions, True),
        (trigger, False),
        (compactions, False),
        (b"", False),
    ):
        assert parse_options(OPTIONS.replace(b"compression=kNoCompression", lines)).bulk_loading is loading


def test_limits_leave_room_for_real_files():
    """An OPTIONS file has up to 20 KB, CURRENT and IDENTITY one line: read all of that, and no megabytes."""
    assert 100_000 <= MAX_OPTIONS_BYTES <= 10_000_000
    assert len("MANIFEST-") + 20 + 1 <= MAX_CURRENT_BYTES <= 1_000
    assert 36 + 1 <= MAX_IDENTITY_BYTES <= 10_000
