"""The lists of what was ingested, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_rollup.bronze.store import TAKEN
from spark_rollup.errors import DamagedError
from spark_rollup.intake import ingest
from tests.spark_rollup.intake.conftest import CutOffError, cut


def test_what_was_taken_is_forgotten_by_its_path():
    """A file, a directory, a store's prefix, or all; not what is only called alike."""
    known = {"/in/a/1": 5, "/in/a/2": 6, "/in/ab/1": 7, "s3a://b/in/1": 8}
    assert ingest.drop_ends(known, "/in/a/1").keys() == known.keys() - {"/in/a/1"}
    assert ingest.drop_ends(known, "/x/../in/a/").keys() == {"/in/ab/1", "s3a://b/in/1"}
    assert ingest.drop_ends(known, "s3a://b/in/").keys() == known.keys() - {"s3a://b/in/1"}
    assert ingest.drop_ends(known, "") == {}


def test_a_torn_list_of_what_was_taken_is_reported(tmp_path):
    """Removing it is harmless, and said."""
    (tmp_path / TAKEN).mkdir()
    (tmp_path / TAKEN / "00000000-x.jsonl").write_text('{"place": "in/1", "un')
    with pytest.raises(DamagedError, match="remove it; the files that it lists are read once more"):
        ingest.read_ends(tmp_path)


def test_lists_of_what_was_taken_are_summed_up(tmp_path, monkeypatch):
    """Without what is gone; later sizes win; cut off before the old lists go, nothing is lost."""
    monkeypatch.setattr(ingest, "LISTS", 3)
    remember = ingest._remember  # no other way to it without Spark
    for number in range(3):
        remember(tmp_path, {f"in/{number}": 1, "in/grows": number}, frozenset())
    with monkeypatch.context() as patch:
        cut(patch, Path, "unlink", after=False)
        with pytest.raises(CutOffError):
            remember(tmp_path, {"in/3": 1, "in/grows": 3}, {"in/0", "in/1"})
    known = {"in/2": 1, "in/3": 1, "in/grows": 3}
    assert ingest.read_ends(tmp_path).items() >= known.items()
    remember(tmp_path, {}, {"in/0", "in/1"})
    assert ingest.read_ends(tmp_path) == known
    assert len(list((tmp_path / TAKEN).glob("*.jsonl"))) == 1
    remember(tmp_path, {"in/grows": 4}, frozenset())
    assert ingest.read_ends(tmp_path) == known | {"in/grows": 4}
