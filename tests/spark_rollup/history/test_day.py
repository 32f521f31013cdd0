"""Making snapshots: which days, cut off between any two steps, and events that come in late or meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spark_rollup.bronze import snapshots
from spark_rollup.bronze.snapshots import MADE, Carried
from spark_rollup.history import carry, day
from spark_rollup.intake import ingest
from spark_rollup.judging.asks import PASTS
from tests.spark_rollup.support.fleet import Fleet

DAYS = ("2026-11-18", "2026-11-19", "2026-11-20", "2026-11-21")


class CutOffError(Exception):
    """Stands for kill -9."""


class Session:
    """As much of a session as the order of steps needs."""

    class catalog:  # noqa: N801 - Spark's name
        """Caches nothing."""

        clearCache = staticmethod(lambda: None)  # noqa: N815 - Spark's name


def cut(*_: object, **__: object) -> None:
    raise CutOffError


@pytest.fixture
def bronze(tmp_path: Path) -> Path:
    """Four days with one file each; the newest two rest."""
    for name in DAYS:
        (tmp_path / "events" / f"day={name}").mkdir(parents=True)
        (tmp_path / "events" / f"day={name}" / "part").write_text(f"{name}\n")
    return tmp_path


@pytest.fixture
def summed(monkeypatch, bronze) -> Callable[[str], list[str]]:
    """Let texts stand for tables, and carry all on as it is; gives what a day's snapshot knows."""

    def events(_: object, place: Path, day: str) -> str:
        return "".join(path.read_text() for path in sorted((place / "events" / f"day={day}").iterdir()))

    def write(rows: str, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(rows)

    def read(_: object, place: Path) -> Carried:
        return Carried(*((place / name).read_text() for name in ("events", "heard", "unwatched")))  # type: ignore[arg-type]

    def keep_all(rows: str, earlier: Carried | None, *_: int) -> Carried:
        return Carried((f"{earlier.events}" if earlier else "") + rows, "", "")  # type: ignore[arg-type]

    monkeypatch.setattr(day, "_events", events)
    monkeypatch.setattr(day, "_write", write)
    monkeypatch.setattr(snapshots, "read", read)
    monkeypatch.setattr(carry, "carry", keep_all)
    return lambda day: (snapshots.folder(bronze, day) / "events").read_text().split()


def run(bronze: Path) -> list[str]:
    return day.run(Session(), bronze, ())  # type: ignore[arg-type]


def test_every_day_that_does_not_rest_is_summed_up_once_from_the_day_before(bronze, summed):
    """The newest two days rest; a second run has nothing to do."""
    assert run(bronze) == [*DAYS[:2]] == snapshots.days_made(bronze)
    assert (summed(DAYS[0]), summed(DAYS[1])) == ([DAYS[0]], [*DAYS[:2]])
    assert run(bronze) == []


@pytest.mark.parametrize(
    ("owner", "step"),
    [(carry, "carry"), (day, "_write"), (snapshots, "finish")],
    ids=["before", "between", "after"],
)
def test_a_run_that_is_cut_off_leaves_nothing_that_holds(bronze, summed, monkeypatch, owner, step):
    """Neither before the tables, nor between them, nor before the marker; the repeat makes it whole."""
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, cut)
        with pytest.raises(CutOffError):
            run(bronze)
    assert snapshots.days_made(bronze) == []
    assert run(bronze) == [*DAYS[:2]]
    assert summed(DAYS[1]) == [*DAYS[:2]]


def test_late_events_make_the_day_be_summed_up_again(bronze, summed):
    """Only from that day on: the day before it still holds. Nothing is lost or there twice."""
    run(bronze)
    (bronze / "events" / f"day={DAYS[1]}" / "late").write_text("late\n")
    snapshots.withdraw(bronze, DAYS[1])
    assert snapshots.days_made(bronze) == [DAYS[0]]
    assert run(bronze) == [DAYS[1]]
    assert sorted(summed(DAYS[1])) == [*DAYS[:2], "late"]


def test_old_snapshots_go(bronze, summed, monkeypatch):
    """The newest few stay."""
    monkeypatch.setattr(day, "KEEP", 1)
    assert run(bronze) == [*DAYS[:2]]
    assert [place.name for place in (bronze / snapshots.FOLDER).iterdir()] == [f"day={DAYS[1]}"]


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("delta")
def test_an_ingest_withdraws_before_it_adds(spark, tmp_path, monkeypatch):
    """Cut off before its events are there, the snapshots that will lack them hold no more."""
    fleet = Fleet("shop")
    fleet.pod("pod-a", ends_s=50, announces_end=False).holds("0_0", 5)
    source, bronze = fleet.write(tmp_path / "in"), tmp_path / "bronze"
    for name in DAYS[:2]:
        (snapshots.folder(bronze, name)).mkdir(parents=True)
        (snapshots.folder(bronze, name) / MADE).write_text("{}")
    with monkeypatch.context() as patch:
        patch.setattr(ingest, "write_events", cut)
        with pytest.raises(CutOffError):
            ingest.run(spark, source, bronze)
    assert not list((bronze / snapshots.FOLDER).rglob(MADE))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("delta")
def test_a_snapshot_is_read_as_its_marker_says(spark, tmp_path):
    """A reader that chose it goes on with it while it is made again."""
    for number in range(3):
        fleet = Fleet(f"day-{number}")
        begins_s = number * 86_400
        fleet.pod("pod-a", begins_s=begins_s, ends_s=begins_s + 50).holds("0_0", begins_s + 5)
        fleet.write(tmp_path / "in")
    bronze = tmp_path / "bronze"
    ingest.run(spark, tmp_path / "in", bronze)
    assert day.run(spark, bronze, PASTS) == [DAYS[0]]
    carried = snapshots.read(spark, snapshots.folder(bronze, DAYS[0]))
    before = sorted(row["id"] for row in carried.events.collect())
    late = Fleet("late")
    late.pod("pod-b", ends_s=50).holds("0_0", 5)
    ingest.run(spark, late.write(tmp_path / "late"), bronze)
    assert day.run(spark, bronze, PASTS) == [DAYS[0]]
    again = snapshots.read(spark, snapshots.folder(bronze, DAYS[0])).events
    assert {row["namespace"] for row in again.collect()} == {"day-0", "late"}
    assert sorted(row["id"] for row in carried.events.collect()) == before
