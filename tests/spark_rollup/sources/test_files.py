"""Files as a source: what is new, what is damaged, and what could only not be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rollup.bronze.store import read_events, read_quarantine
from spark_rollup.errors import SourceError
from spark_rollup.intake import ingest
from spark_rollup.sources.files import Directory, FileSource, gone, is_damaged
from tests.spark_rollup.support.fleet import Fleet

NAME = "uid/boot-1-3.jsonl.gz"


def segment(*sequences: int) -> bytes:
    return "".join(json.dumps({"data": {"sequence": number}}) + "\n" for number in sequences).encode()


def test_a_whole_segment_is_not_damaged():
    """If the bytes hold what the name announces, somebody else is to blame for what is missing."""
    assert not is_damaged(NAME, gzip.compress(segment(1, 2, 3)))
    assert not is_damaged("uid/boot-1-3.jsonl", segment(1, 2, 3))
    assert not is_damaged("uid/boot-1-9-k2.jsonl", segment(1, 5))
    assert is_damaged("uid/boot-1-9-k3.jsonl", segment(1, 5))


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(segment(1, 2, 3))[:-9],
        gzip.compress(segment(1, 2)),
        b"",
        gzip.compress(b"[]\n{\nnull\n"),
    ],
    ids=["torn", "too short", "empty", "no events"],
)
def test_damage_is_seen(content):
    """Torn gzip, fewer records, or none at all."""
    assert is_damaged(NAME, content)


@given(st.binary(max_size=200))
def test_garbage_is_damage(content):
    """Whatever bytes are there: an answer, and never that a segment is whole."""
    assert is_damaged(NAME, content)
    assert is_damaged(NAME, gzip.compress(content))


class Flaky(Directory):
    """A store of which Spark sees a shortened copy, as after a cut connection."""

    def __init__(self, whole: Path, cut: Path) -> None:
        super().__init__(cut)
        self._whole = whole

    def content(self, spark: object, path: str) -> bytes:
        return (self._whole / Path(path).relative_to(self.root)).read_bytes()


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_what_could_not_be_read_is_left_for_the_next_run(delta, tmp_path):
    """A file that gave less than it holds is neither remembered nor quarantined, whatever letters its name has."""
    whole, cut = tmp_path / "whole", tmp_path / "a b%20[1]{x}é#?+*"
    fleet = Fleet("shop")
    for pod in ("pod-a", "pod-b"):
        fleet.pod(pod, ends_s=50).holds("0_0", 5)
    fleet.write(whole)
    fleet.write(cut)
    (victim,) = (path for path in cut.rglob("*.gz") if "pod-b" in str(path))
    victim.write_bytes(victim.read_bytes()[:40])
    bronze = tmp_path / "bronze"
    first = ingest.run(delta, FileSource(Flaky(whole, cut)), bronze)
    assert list(first.unread) == [str(victim)]
    assert first.quarantined == read_quarantine(delta, bronze).count() == 0
    assert str(victim) not in ingest.read_ends(bronze)
    fleet.write(cut)
    second = ingest.run(delta, cut, bronze)
    assert not second.unread
    assert read_events(delta, bronze).count() == len(fleet.lines())
    assert ingest.run(delta, cut, bronze) == ingest.Ingested(0, 0, 0)


def test_an_empty_place_is_reported_unless_all_of_it_was_taken(tmp_path):
    """Nothing there is a mistake in the address; nothing left is not."""
    none: Any = None
    with pytest.raises(SourceError, match=r"holds no \*\.jsonl"):
        FileSource(Directory(tmp_path)).fresh(none, {})
    assert FileSource(Directory(tmp_path)).fresh(none, {f"{tmp_path}/a": 1}) == ({}, set())
    assert FileSource(Directory(tmp_path), may_be_empty=True).fresh(none, {}) == ({}, set())


@pytest.mark.parametrize("root", ["s3a://b/in", "s3a://b/in/"])
def test_what_is_gone_from_the_source_need_not_be_remembered(root):
    """Of this source only, not of one whose name begins alike; an empty place may be a mount that is missing."""
    taken = ["s3a://b/in/u/1", "s3a://b/in/u/2", "s3a://b/in-2/u/1", "kafka:id/0"]
    assert gone(root, {"s3a://b/in/u/2"}, taken) == {"s3a://b/in/u/1"}
    assert gone(root, {}, taken) == set()
