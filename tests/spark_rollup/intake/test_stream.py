"""Streams: when a turn comes, where the place is kept, and what a turn that is cut off leaves."""

from __future__ import annotations

import os
import signal

import pytest

from spark_rollup.bronze.store import read_events
from spark_rollup.errors import DamagedError, SourceError, UsageError
from spark_rollup.intake import ingest, stream
from spark_rollup.intake.ingest import Ingested
from spark_rollup.sources.files import Directory, FileSource
from tests.spark_rollup.support.fleet import Fleet


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("availableNow", {"availableNow": True}),
        ("processing 60 seconds", {"processingTime": "60 seconds"}),
        ("processing 1 minute", {"processingTime": "1 minute"}),
    ],
)
def test_triggers_are_spark_s(text, meant):
    """Two ways: what is there, or again and again."""
    assert stream.parse_trigger(text) == meant


@pytest.mark.parametrize(
    "text", ["", "once", "60 seconds", "processing 0 seconds", "processing soon", "continuous 1 second"]
)
def test_other_triggers_are_refused(text):
    """The message shows both ways."""
    with pytest.raises(UsageError, match=r"neither availableNow nor like 'processing 60 seconds'"):
        stream.parse_trigger(text)


def test_each_source_has_its_checkpoint(tmp_path):
    """Two sources of one bronze directory do not share their places; the same source finds its own again."""
    one, other = FileSource(Directory(tmp_path / "a")), FileSource(Directory(tmp_path / "b"))
    places = [stream.checkpoint_in(tmp_path, source) for source in (one, other, one)]
    assert places[0] == places[2] != places[1]
    assert all(place.parent == tmp_path / stream.CHECKPOINTS for place in places)


def test_sigterm_is_a_wish():
    """The first signal raises a flag; afterwards signals mean what they meant before."""
    before = signal.getsignal(signal.SIGTERM)
    with stream.stop_asked() as asked:
        assert not asked.is_set()
        os.kill(os.getpid(), signal.SIGTERM)
        assert asked.wait(120)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("delta")
def test_a_turn_that_is_cut_off_is_repeated(spark, tmp_path, monkeypatch):
    """Cut off between bronze and the checkpoint's commit: told, and the next start adds nothing twice."""
    source, bronze = tmp_path / "in", tmp_path / "bronze"
    place = tmp_path / "place"
    turns: list[Ingested] = []

    def run() -> None:
        stream.run(spark, FileSource(Directory(source)), bronze, {"availableNow": True}, place, turns.append)

    shop = fleet("shop").write(source)
    with monkeypatch.context() as patch:
        patch.setattr(ingest, "_remember", cut_off)
        with pytest.raises(SourceError, match=r"the stream from .* ended: .*kill -9"):
            run()
    assert turns == []
    run()
    assert [(turn.events, turn.files) for turn in turns] == [(0, 1)]
    fleet("mall").write(source)
    run()
    assert [(turn.events, turn.files) for turn in turns[1:]] == [(len(fleet("mall").lines()), 1)]
    run()
    assert len(turns) == 2
    assert ingest.run(spark, shop, bronze) == Ingested(0, 0, 0)  # a plain run knows what streams took
    ids = [row["id"] for row in read_events(spark, bronze).select("id").collect()]
    assert len(ids) == len(set(ids)) == len(fleet("shop").lines()) + len(fleet("mall").lines())


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("delta")
def test_old_files_and_odd_directories_are_taken(spark, tmp_path):
    """A file that kept its time for more than a week beside a newer one; letters that Spark takes for a pattern."""
    source, bronze = tmp_path / "st*r [x]{y}", tmp_path / "bronze"
    fleet("new").write(source)
    fleet("old").write(source)
    (old,) = (path for path in source.rglob("*.gz") if path.parent.name.startswith("old"))
    at_s = old.stat().st_mtime - 9 * 86_400
    os.utime(old, (at_s, at_s))
    turns: list[Ingested] = []
    now = {"availableNow": True}
    stream.run(spark, FileSource(Directory(source)), bronze, now, tmp_path / "place", turns.append)
    assert sum(turn.files for turn in turns) == 2
    assert sum(turn.events for turn in turns) == len(fleet("new").lines()) + len(fleet("old").lines())


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("delta")
def test_a_damaged_bronze_ends_a_stream_with_its_name(spark, tmp_path):
    """As it ends every other command; the turn is repeated once that file is gone."""
    source, bronze, now = tmp_path / "in", tmp_path / "bronze", {"availableNow": True}
    ingest.run(spark, fleet("shop").write(source), bronze)
    damaged = sorted((bronze / "events").rglob("*.parquet"))[0]
    damaged.write_bytes(damaged.read_bytes()[:-100])
    damaged.with_name(f".{damaged.name}.crc").unlink()
    fleet("mall").write(source)
    with pytest.raises(DamagedError, match=f"{damaged} cannot be read"):
        stream.run(spark, FileSource(Directory(source)), bronze, now, tmp_path / "place", print)


def cut_off(*_: object) -> None:
    raise RuntimeError("kill -9")


def fleet(name: str) -> Fleet:
    told = Fleet(name)
    told.pod("pod-a", ends_s=50).holds("0_0", 5)
    return told
