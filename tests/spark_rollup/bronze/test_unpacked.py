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
from spark_rollup.bronze.load import segments
from spark_rollup.bronze.unpacked import (
    CUT_OFF,
    ODD_NAME,
    TOO_LARGE,
    UNREAD,
    check_local_files,
    is_suspect,
    scan,
    unfinished,
)

MEMBER = gzip.compress(b'{"a": 1}\n' * 100)


def seen(content: bytes, *, packed: bool = True) -> str:
    return " ".join(scan(io.BytesIO(content), len(content), packed=packed) or ())


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
        assert found.startswith(f"{TOO_LARGE} a line of more than")
    fits = b"a\n" + b"x" * 4096 + b"\n"
    assert seen(gzip.compress(fits) if packed else fits, packed=packed) == ""


def test_a_second_member_is_read_as_well(small):
    """A trailer tells the size of the last member only."""
    assert seen(MEMBER + MEMBER) == ""
    assert TOO_LARGE in seen(MEMBER + gzip.compress(b"x" * 5000) + MEMBER)


def test_what_unpacks_beyond_measure_is_not_read_to_its_end(small):
    """Short lines, very many of them: the ratio tells."""
    assert f"{TOO_LARGE} it unpacks to more than 200 times" in seen(gzip.compress(b"\n" * 1_000_000))
    assert seen(b"\n" * 1_000_000, packed=False) == ""  # that much really lies there


@given(cut=st.integers(1, len(MEMBER) - 1))
def test_a_cut_anywhere_is_torn(cut):
    """The trailer is missing, or does not fit."""
    assert seen(MEMBER[:-cut]).startswith(f"{CUT_OFF} its gzip data break off")
    assert CUT_OFF in seen(MEMBER + MEMBER[:-cut])


def test_damage_inside_is_torn_and_padding_is_not():
    """A flipped byte fails the check sum; zeros behind the end are what tapes leave."""
    assert CUT_OFF in seen(MEMBER[:-6] + b"\x01" + MEMBER[-5:])
    assert seen(MEMBER + b"\0" * 100) == ""
    assert CUT_OFF in seen(b"this is no gzip")


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
    assert {Path(path).name: why[0] for path, why in check_local_files(files).items()} == {
        "large.jsonl.gz": TOO_LARGE,
        "torn.jsonl.gz": CUT_OFF,
        "barred.jsonl.gz": UNREAD,
        "gone.jsonl": UNREAD,
        "odd-\udcff.jsonl.gz": UNREAD,
    }
    monkeypatch.setattr(os, "access", lambda *_: True)
    assert next(why for path, why in check_local_files(files).items() if "odd" in path)[0] == ODD_NAME


def test_only_what_nothing_later_follows_is_unfinished():
    """Of an agent's own files; a hole before what came later is told by its sequences. One that is barred counts."""
    of_agents = [
        ("u/boot-1-9.jsonl.gz", CUT_OFF),
        ("u/boot-10-19.jsonl.gz", TOO_LARGE),
        ("u/new-1-3-k2.jsonl", CUT_OFF),
    ]
    of_others = [
        ("u/events.jsonl.gz", CUT_OFF),
        ("u/boot-20-29.jsonl.gz", "not-json"),
        ("u/all.jsonl", UNREAD),
    ]
    heard = [("shop", "a", "u1", "boot", 12), ("shop", "b", "u", "other", 3)]
    found = unfinished([*of_agents, *of_others], heard)
    assert found == {
        "u/all.jsonl": "shop/b",
        "u/boot-10-19.jsonl.gz": "shop/a",
        "u/new-1-3-k2.jsonl": "shop/b",
    }
    assert unfinished(of_others, [*heard, ("shop", "c", "u", "third", 1)]) == {"u/all.jsonl": ""}


def test_what_may_not_be_listed_or_leads_nowhere_is_told(tmp_path, monkeypatch):
    """Links are followed, in a circle once; what its owner alone may list is no empty folder."""
    for name in ("a/one.jsonl", "lost+found/x.jsonl", "_hidden/x.jsonl", "closed/x.jsonl", "a/note.txt"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text("1")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "two.jsonl").write_text("22")
    for name, target in {"b": "../out", "a/circle": "..", "nowhere.jsonl": "gone"}.items():
        (tmp_path / "in" / name).symlink_to(target)
    listed = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith(("closed", "lost+found")):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(os, "access", lambda path, mode: not path.endswith(("closed", "nowhere.jsonl")))
    found = {path.removeprefix(f"{tmp_path}/in/"): size for path, size in segments(tmp_path / "in").items()}
    assert found == {"a/one.jsonl": 1, "b/two.jsonl": 2, "closed": 0, "nowhere.jsonl": 0}
    told = check_local_files({f"{tmp_path}/in/{path}": size for path, size in found.items()})
    assert {path.rpartition("/")[2]: what for path, what in told.items()} == {
        "closed": (UNREAD, "permission denied"),
        "nowhere.jsonl": (UNREAD, "a broken link"),
    }
