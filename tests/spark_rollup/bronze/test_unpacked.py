"""What is seen of files before Spark opens them."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rollup.bronze import unpacked
from spark_rollup.bronze.unpacked import ODD_NAME, TOO_LARGE, Seen, check_local_files, is_suspect, scan

MEMBER = gzip.compress(b'{"a": 1}\n' * 100)


def seen(content: bytes, *, packed: bool = True) -> Seen:
    return scan(io.BytesIO(content), len(content), packed=packed)


@pytest.fixture
def small(monkeypatch):
    """Bounds of a few KiB."""
    monkeypatch.setattr(unpacked, "LINE_BYTES", 4096)
    monkeypatch.setattr(unpacked, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(unpacked, "BOMB_BYTES", 8192)


@pytest.mark.parametrize("packed", [True, False])
def test_a_line_that_is_too_long_is_seen_wherever_it_is(small, packed):
    """First, in the middle, last without an end, and over any number of chunks; one that just fits is not."""
    for content in (b"x" * 4097, b"a\n" + b"x" * 4097 + b"\nb\n", b"a\nb\n" + b"x" * 5000):
        found = seen(gzip.compress(content) if packed else content, packed=packed)
        assert "a line of more than" in str(found.large)
    fits = b"a\n" + b"x" * 4096 + b"\n"
    assert seen(gzip.compress(fits) if packed else fits, packed=packed) == Seen()


def test_a_second_member_is_read_as_well(small):
    """A trailer tells the size of the last member only."""
    assert seen(MEMBER + MEMBER) == Seen()
    assert seen(MEMBER + gzip.compress(b"x" * 5000) + MEMBER).large


def test_what_unpacks_beyond_measure_is_not_read_to_its_end(small):
    """Short lines, very many of them: the ratio tells."""
    assert "unpacks to more than 200 times" in str(seen(gzip.compress(b"\n" * 1_000_000)).large)
    assert seen(b"\n" * 1_000_000, packed=False) == Seen()  # that much really lies there


@given(cut=st.integers(1, len(MEMBER) - 1))
def test_a_cut_anywhere_is_torn(cut):
    """The trailer is missing, or does not fit."""
    assert "break off" in str(seen(MEMBER[:-cut]).torn)
    assert seen(MEMBER + MEMBER[:-cut]).torn


def test_damage_inside_is_torn_and_padding_is_not():
    """A flipped byte fails the check sum; zeros behind the end are what tapes leave."""
    assert seen(MEMBER[:-6] + b"\x01" + MEMBER[-5:]).torn
    assert seen(MEMBER + b"\0" * 100) == Seen()
    assert seen(b"this is no gzip").torn


def test_agents_own_segments_are_opened_unseen_if_they_are_harmless():
    """Nothing of 16 KiB unpacks to a line of 16 MiB, and the name tells its length."""
    assert not is_suspect("u/boot-1-9.jsonl.gz", 16_000)
    assert is_suspect("u/boot-1-9.jsonl.gz", 17_000)
    assert is_suspect("u/events.jsonl.gz", 100)
    assert not is_suspect("u/boot-1-9.jsonl", 1 << 24)
    assert is_suspect("u/boot-1-9.jsonl", (1 << 24) + 1)


def test_each_file_is_reported_for_its_own_reason(tmp_path, small, monkeypatch):
    """Too large, torn, not to be opened, not to be read now; what is whole is not told."""
    contents = {"whole": MEMBER, "torn": MEMBER[:-3], "large": gzip.compress(b"x" * 5000), "barred": MEMBER}
    files = {}
    for name, content in contents.items():
        path = tmp_path / f"{name}.jsonl.gz"
        path.write_bytes(content)
        files[str(path)] = len(content)
    files[str(tmp_path / "odd-\udcff.jsonl.gz")] = 10
    files[str(tmp_path / "gone.jsonl")] = 10_000
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "barred" not in str(path) and access(path, mode))
    found = check_local_files(files)
    assert {Path(path).name: why[0] for path, why in found.refused.items()} == {"large.jsonl.gz": TOO_LARGE}
    assert [Path(path).name for path in found.torn] == ["torn.jsonl.gz"]
    assert {Path(path).name for path in found.unread} == {
        "barred.jsonl.gz",
        "gone.jsonl",
        "odd-\udcff.jsonl.gz",
    }
    monkeypatch.setattr(os, "access", lambda *_: True)
    assert next(why for path, why in check_local_files(files).refused.items() if "odd" in path)[0] == ODD_NAME
